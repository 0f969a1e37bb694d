//! The chunked transfer coding of HTTP/1.1 (RFC 9112, 7.1), undone incrementally and without copying.

/// The coding was violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed chunk: {0}")]
pub struct Malformed(&'static str);

/// Where in the coding the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size { value: u64, digits: u8 },
    Extension { value: u64 },
    Data { left: u64 },
    AfterData,
    TrailerStart,
    Trailer,
    Done,
}

/// An incremental decoder for one body.
#[derive(Debug)]
pub struct Decoder {
    state: State,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { state: State::Size { value: 0, digits: 0 } }
    }
}

impl Decoder {
    /// True once the last chunk and its trailers have been read.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes one read, hands each piece of payload to `on_payload`, and returns how many bytes belonged to
    /// this body: fewer than given only when it is done.
    pub fn feed(&mut self, read: &[u8], mut on_payload: impl FnMut(&[u8])) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < read.len() {
            let byte = read[at];
            self.state = match self.state {
                State::Size { value, digits } => match (byte as char).to_digit(16) {
                    Some(_) if digits == 15 => return Err(Malformed("size too large")),
                    Some(digit) => State::Size { value: value * 16 + u64::from(digit), digits: digits + 1 },
                    None if digits == 0 => return Err(Malformed("size missing")),
                    None if byte == b'\n' => after_size(value),
                    None if matches!(byte, b'\r' | b';' | b' ' | b'\t') => State::Extension { value },
                    None => return Err(Malformed("size is not hexadecimal")),
                },
                State::Extension { value } if byte == b'\n' => after_size(value),
                State::Extension { value } => State::Extension { value },
                State::Data { left } => {
                    let take = left.min((read.len() - at) as u64) as usize;
                    on_payload(&read[at..at + take]);
                    at += take;
                    self.state = match left - take as u64 {
                        0 => State::AfterData,
                        left => State::Data { left },
                    };
                    continue;
                }
                State::AfterData if byte == b'\n' => State::Size { value: 0, digits: 0 },
                State::AfterData if byte == b'\r' => State::AfterData,
                State::AfterData => return Err(Malformed("data longer than its size")),
                State::TrailerStart if byte == b'\n' => State::Done,
                State::TrailerStart if byte == b'\r' => State::TrailerStart,
                State::TrailerStart => State::Trailer,
                State::Trailer if byte == b'\n' => State::TrailerStart,
                State::Trailer => State::Trailer,
                State::Done => return Ok(at),
            };
            at += 1;
        }
        Ok(at)
    }
}

fn after_size(value: u64) -> State {
    match value {
        0 => State::TrailerStart,
        left => State::Data { left },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(reads: &[&[u8]]) -> Result<(Vec<u8>, bool), Malformed> {
        let (mut decoder, mut payload) = (Decoder::default(), Vec::new());
        for read in reads {
            decoder.feed(read, |piece| payload.extend_from_slice(piece))?;
        }
        Ok((payload, decoder.is_done()))
    }

    #[test]
    fn chunks_are_joined_and_the_last_one_ends_the_body() {
        assert_eq!(decode(&[b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"]), Ok((b"abcde".to_vec(), true)));
    }

    #[test]
    fn trailers_are_skipped() {
        assert_eq!(decode(&[b"1\r\na\r\n0\r\nX: y\r\n\r\n"]), Ok((b"a".to_vec(), true)));
    }

    #[test]
    fn a_body_without_its_last_chunk_is_not_done() {
        assert_eq!(decode(&[b"1\r\na\r\n"]), Ok((b"a".to_vec(), false)));
    }

    #[test]
    fn bytes_after_the_body_are_left() {
        assert_eq!(Decoder::default().feed(b"0\r\n\r\nHTTP", |_| {}), Ok(5));
    }

    #[test]
    fn a_size_that_is_no_number_is_refused() {
        assert!(decode(&[b"<html>\r\n"]).is_err());
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_payload(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..6),
                                            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
            let mut wire = Vec::new();
            for piece in &pieces {
                wire.extend(format!("{:x}\r\n", piece.len()).bytes());
                wire.extend_from_slice(piece);
                wire.extend(b"\r\n");
            }
            wire.extend(b"0\r\n\r\n");
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).collect();
            places.extend([0, wire.len()]);
            places.sort_unstable();
            let reads: Vec<&[u8]> = places.windows(2).map(|w| &wire[w[0]..w[1]]).collect();
            prop_assert_eq!(decode(&reads), Ok((pieces.concat(), true)));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode(&[&bytes]);
        }
    }
}
