//! Reading one HTTP/1.1 response from reads that may be cut anywhere.

use std::time::{Duration, Instant};

use super::chunked;

/// What the head of a response says, as far as a load generator needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// `content-type`, in lower case, parameters included.
    pub content_type: String,
    /// `server`.
    pub server: String,
    /// `location`, for redirects.
    pub location: Option<String>,
    /// `retry-after`, for rate limits.
    pub retry_after: Option<String>,
}

/// What the consumer of a body says after each piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There may be more.
    More,
    /// The answer is complete, whatever else the body may hold.
    Complete,
}

/// The consumer of a response.
pub trait Sink {
    /// The head has arrived.
    fn head(&mut self, head: Head, at: Instant);
    /// A piece of the body, with the moment its bytes arrived.
    fn body(&mut self, piece: &[u8], at: Instant) -> Progress;
    /// Once the answer could be complete: how long a silence says that it is.
    fn complete_after_silence(&self) -> Option<Duration> {
        None
    }
}

/// Why a response could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The head is no HTTP/1.x head.
    #[error("not an HTTP/1.1 response: {0}")]
    Head(String),
    /// The chunked coding was violated.
    #[error(transparent)]
    Chunked(#[from] chunked::Malformed),
    /// The connection ended inside the head.
    #[error("connection closed inside the response head")]
    CutInHead,
    /// The connection ended before the body was whole.
    #[error("connection closed inside the response body")]
    CutInBody,
}

/// The longest head that is read.
const HEAD_LIMIT: usize = 256 * 1024;
const MAX_HEADERS: usize = 100;

#[derive(Debug)]
enum Framing {
    Head(Vec<u8>),
    Chunked(chunked::Decoder),
    Length(u64),
    UntilClose,
    Done,
}

/// The reader of one response.
#[derive(Debug)]
pub struct ResponseReader {
    framing: Framing,
    keep_alive: bool,
    any_byte: bool,
    complete: bool,
    surplus: bool,
}

impl Default for ResponseReader {
    fn default() -> Self {
        Self {
            framing: Framing::Head(Vec::new()),
            keep_alive: true,
            any_byte: false,
            complete: false,
            surplus: false,
        }
    }
}

impl ResponseReader {
    /// True once any byte of the response has arrived.
    pub fn has_begun(&self) -> bool {
        self.any_byte
    }

    /// True once the whole body has been read.
    pub fn is_done(&self) -> bool {
        matches!(self.framing, Framing::Done)
    }

    /// True once the sink has said that the answer is complete.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// True when the connection can serve another request.
    pub fn is_reusable(&self) -> bool {
        self.is_done() && self.keep_alive && !self.surplus
    }

    /// True when the connection may become reusable once the rest of the body has been read.
    pub fn may_become_reusable(&self) -> bool {
        self.keep_alive && !matches!(self.framing, Framing::UntilClose | Framing::Head(_))
    }

    /// Takes one read.
    pub fn feed(&mut self, read: &[u8], at: Instant, sink: &mut impl Sink) -> Result<(), ReadError> {
        self.any_byte |= !read.is_empty();
        let mut rest = read;
        while let Framing::Head(pending) = &mut self.framing {
            let head_of = match pending.is_empty() {
                true => rest,
                false => {
                    pending.extend_from_slice(rest);
                    pending.as_slice()
                }
            };
            let already = head_of.len() - rest.len();
            match parse_head(head_of)? {
                Some(parsed) => {
                    rest = &rest[parsed.length - already..];
                    if (100..200).contains(&parsed.head.status) {
                        self.framing = Framing::Head(Vec::new());
                        if rest.is_empty() {
                            return Ok(());
                        }
                        continue;
                    }
                    self.keep_alive = parsed.keep_alive;
                    self.framing = parsed.framing;
                    sink.head(parsed.head, at);
                }
                None if head_of.len() > HEAD_LIMIT => {
                    return Err(ReadError::Head("the head does not end".into()));
                }
                None => {
                    if already == 0 {
                        pending.extend_from_slice(rest);
                    }
                    return Ok(());
                }
            }
        }
        let complete = &mut self.complete;
        let mut deliver = |piece: &[u8]| {
            if !*complete && !piece.is_empty() {
                *complete = sink.body(piece, at) == Progress::Complete;
            }
        };
        match &mut self.framing {
            Framing::Chunked(decoder) => {
                let used = decoder.feed(rest, deliver)?;
                self.surplus |= used < rest.len();
                if decoder.is_done() {
                    self.framing = Framing::Done;
                }
            }
            Framing::Length(left) => {
                let take = (*left).min(rest.len() as u64) as usize;
                deliver(&rest[..take]);
                *left -= take as u64;
                self.surplus |= take < rest.len();
                if *left == 0 {
                    self.framing = Framing::Done;
                }
            }
            Framing::UntilClose => deliver(rest),
            Framing::Done => self.surplus |= !rest.is_empty(),
            Framing::Head(_) => {}
        }
        Ok(())
    }

    /// The connection has ended: was that the proper end of the body?
    pub fn closed(&mut self) -> Result<(), ReadError> {
        self.keep_alive = false;
        match self.framing {
            Framing::Done => Ok(()),
            Framing::UntilClose => {
                self.framing = Framing::Done;
                Ok(())
            }
            Framing::Head(_) => Err(ReadError::CutInHead),
            Framing::Chunked(_) | Framing::Length(_) => Err(ReadError::CutInBody),
        }
    }
}

struct ParsedHead {
    head: Head,
    framing: Framing,
    keep_alive: bool,
    length: usize,
}

fn parse_head(bytes: &[u8]) -> Result<Option<ParsedHead>, ReadError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(ReadError::Head(error.to_string())),
    };
    let mut head = Head { status: response.code.unwrap_or(0), ..Head::default() };
    let mut keep_alive = response.version == Some(1);
    let (mut chunked, mut content_length) = (false, None);
    for header in response.headers.iter() {
        let value = String::from_utf8_lossy(header.value);
        let value = value.trim();
        match header.name.to_ascii_lowercase().as_str() {
            "content-type" => head.content_type = value.to_ascii_lowercase(),
            "server" => head.server = value.to_owned(),
            "location" => head.location = Some(value.to_owned()),
            "retry-after" => head.retry_after = Some(value.to_owned()),
            "transfer-encoding" => {
                chunked =
                    value.rsplit(',').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("chunked"));
            }
            "content-length" => {
                let length = value.parse().map_err(|_| ReadError::Head(format!("content-length {value}")))?;
                content_length = Some(length);
            }
            "connection" => {
                for token in value.split(',').map(str::trim) {
                    keep_alive = (keep_alive || token.eq_ignore_ascii_case("keep-alive"))
                        && !token.eq_ignore_ascii_case("close");
                }
            }
            _ => {}
        }
    }
    let framing = match (head.status, chunked, content_length) {
        (204 | 304, _, _) => Framing::Done,
        (_, true, _) => Framing::Chunked(chunked::Decoder::default()),
        (_, false, Some(0)) => Framing::Done,
        (_, false, Some(length)) => Framing::Length(length),
        (_, false, None) => Framing::UntilClose,
    };
    Ok(Some(ParsedHead { head, framing, keep_alive, length }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Collect {
        head: Option<Head>,
        body: Vec<u8>,
    }

    impl Sink for Collect {
        fn head(&mut self, head: Head, _: Instant) {
            self.head = Some(head);
        }
        fn body(&mut self, piece: &[u8], _: Instant) -> Progress {
            self.body.extend_from_slice(piece);
            Progress::More
        }
    }

    fn read(reads: &[&[u8]]) -> (ResponseReader, Collect) {
        let (mut reader, mut sink) = (ResponseReader::default(), Collect::default());
        for bytes in reads {
            reader.feed(bytes, Instant::now(), &mut sink).unwrap();
        }
        (reader, sink)
    }

    #[test]
    fn a_body_with_a_length_ends_there_and_the_connection_is_reusable() {
        let (reader, sink) = read(&[b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"]);
        assert!(reader.is_reusable());
        assert_eq!(sink.body, b"ok");
    }

    #[test]
    fn an_informational_response_is_skipped() {
        let (_, sink) = read(&[b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n"]);
        assert_eq!(sink.head.unwrap().status, 404);
    }

    #[test]
    fn connection_close_forbids_reuse() {
        let (reader, _) = read(&[b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"]);
        assert!(!reader.is_reusable());
    }

    #[test]
    fn a_body_without_length_ends_with_the_connection() {
        let (mut reader, sink) = read(&[b"HTTP/1.1 200 OK\r\n\r\nabc"]);
        assert_eq!(reader.closed(), Ok(()));
        assert_eq!(sink.body, b"abc");
    }

    #[test]
    fn a_chunked_body_cut_short_is_a_cut() {
        let (mut reader, _) = read(&[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"]);
        assert_eq!(reader.closed(), Err(ReadError::CutInBody));
    }

    proptest! {
        #[test]
        fn any_split_reads_the_same_response(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
            let wire = b"HTTP/1.1 200 OK\r\nServer: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).collect();
            places.extend([0, wire.len()]);
            places.sort_unstable();
            let reads: Vec<&[u8]> = places.windows(2).map(|w| &wire[w[0]..w[1]]).collect();
            let (reader, sink) = read(&reads);
            prop_assert!(reader.is_reusable());
            prop_assert_eq!(sink.body, b"abcd");
            prop_assert_eq!(sink.head.unwrap().server, "x");
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut reader = ResponseReader::default();
            let _ = reader.feed(&[b"HTTP/1.1 200 OK\r\n".as_slice(), &bytes].concat(), Instant::now(), &mut Collect::default());
        }
    }
}
