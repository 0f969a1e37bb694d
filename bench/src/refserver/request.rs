//! Reading requests, and what they may ask of the reference server.

use std::future::poll_fn;
use std::io;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::{Options, UsagePlace};
use crate::http::arrival;

/// The largest request that is read.
const LIMIT: usize = 256 * 1024 * 1024;

/// One request.
#[derive(Clone, Debug)]
pub struct Request {
    /// When its last bytes arrived, by the kernel's stamp.
    pub received_at: Instant,
    /// `GET`, `POST`, …
    pub method: String,
    /// The path, without query.
    pub path: String,
    /// `x-request-id`.
    pub id: Option<String>,
    /// `host`.
    pub host: Option<String>,
    /// `x-refserver-shape`.
    pub shape: Option<String>,
    /// The client wants the connection closed.
    pub close: bool,
    /// The body.
    pub body: Vec<u8>,
}

/// A connection that is read: bytes that came early, and when the last ones did.
pub struct Incoming {
    pending: Vec<u8>,
    read: Vec<u8>,
    control: Option<Vec<u8>>,
    last_arrival: Instant,
}

impl Incoming {
    /// Nothing has been read yet. Asks the kernel to stamp what arrives.
    pub fn of(stream: &TcpStream) -> Self {
        Self {
            pending: Vec::new(),
            read: vec![0; 16 * 1024],
            control: arrival::request_stamps(stream).then(arrival::control_buffer),
            last_arrival: Instant::now(),
        }
    }

    /// Reads the next request; none when the client has gone.
    pub async fn next(&mut self, stream: &mut TcpStream) -> io::Result<Option<Request>> {
        loop {
            if let Some((mut request, head, length)) = parse(&self.pending)? {
                let end = head + length;
                while self.pending.len() < end {
                    if self.receive(stream).await? == 0 {
                        return Ok(None);
                    }
                }
                request.received_at = self.last_arrival;
                request.body = self.pending[head..end].to_vec();
                self.pending.drain(..end);
                return Ok(Some(request));
            }
            if self.pending.len() > LIMIT || self.receive(stream).await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn receive(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        let (count, at) = match &mut self.control {
            Some(control) => poll_fn(|cx| arrival::poll_receive(stream, cx, &mut self.read, control)).await?,
            None => (stream.read(&mut self.read).await?, Instant::now()),
        };
        self.last_arrival = at;
        self.pending.extend_from_slice(&self.read[..count]);
        Ok(count)
    }
}

fn parse(bytes: &[u8]) -> io::Result<Option<(Request, usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(bytes).map_err(io::Error::other)? {
        httparse::Status::Complete(head) => head,
        httparse::Status::Partial => return Ok(None),
    };
    let target = parsed.path.unwrap_or("/");
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path_of(target).to_owned(),
        received_at: Instant::now(),
        id: None,
        host: None,
        shape: None,
        close: false,
        body: Vec::new(),
    };
    let mut length = 0;
    for header in parsed.headers.iter() {
        let value = String::from_utf8_lossy(header.value).trim().to_owned();
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "x-request-id" => request.id = Some(value),
            "host" => request.host = Some(value),
            "x-refserver-shape" => request.shape = Some(value),
            "connection" => request.close = value.eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    if length > LIMIT {
        return Err(io::Error::other("request too large"));
    }
    Ok(Some((request, head, length)))
}

/// The path of a request's target, which a proxy may have given whole (RFC 9112, 3.2.2).
fn path_of(target: &str) -> &str {
    let target = target.split('?').next().unwrap_or_default();
    match target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    }
}

/// What a generation request asks for, over the server's options.
#[derive(Clone, Debug)]
pub struct Asked {
    /// How to behave for this request.
    pub options: Options,
    /// Streamed?
    pub stream: bool,
    /// Wants usage in the stream.
    pub include_usage: bool,
    /// Output tokens.
    pub tokens: u64,
    /// Input tokens: words / words a token, as nothing here tokenizes.
    pub prompt_tokens: u64,
}

/// Reads a generation request. The member `refserver` may override shape, ttft_ms, itl_ms, tokens, usage and more.
pub fn asked(request: &Request, options: &Options) -> Result<Asked, String> {
    let body: Value = serde_json::from_slice(&request.body).map_err(|error| format!("bad JSON: {error}"))?;
    let mut options = options.clone();
    if let Some(shape) = &request.shape {
        options.shape = shape.parse()?;
    }
    let wish = &body["refserver"];
    let ms = |value: &Value| value.as_f64().and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok());
    if let Some(shape) = wish["shape"].as_str() {
        options.shape = shape.parse()?;
    }
    options.ttft = ms(&wish["ttft_ms"]).unwrap_or(options.ttft);
    options.itl = ms(&wish["itl_ms"]).unwrap_or(options.itl);
    options.tokens = wish["tokens"].as_u64().or(options.tokens);
    options.reasoning_tokens = wish["reasoning_tokens"].as_u64().unwrap_or(options.reasoning_tokens);
    match wish["usage"].as_str() {
        Some("none") => options.usage = UsagePlace::None,
        Some("finish") => options.usage = UsagePlace::Finish,
        Some("every") => options.usage = UsagePlace::Every,
        Some("final") => options.usage = UsagePlace::Final,
        _ => {}
    }
    let wanted = [&body["max_completion_tokens"], &body["max_tokens"]].into_iter().find_map(Value::as_u64);
    let tokens = options.tokens.or(wanted).unwrap_or(64);
    let words: usize = match &body["prompt"] {
        Value::String(prompt) => prompt.split_whitespace().count(),
        _ => body["messages"].as_array().into_iter().flatten().map(message_words).sum(),
    };
    Ok(Asked {
        stream: body["stream"].as_bool().unwrap_or(false),
        include_usage: body["stream_options"]["include_usage"].as_bool().unwrap_or(false),
        tokens,
        prompt_tokens: (words as f64 / options.words_per_token).round() as u64,
        options,
    })
}

fn message_words(message: &Value) -> usize {
    match &message["content"] {
        Value::String(text) => text.split_whitespace().count(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .map(|text| text.split_whitespace().count())
            .sum(),
        _ => 0,
    }
}
