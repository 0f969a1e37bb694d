//! Reading requests, and what they may ask of the reference server.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::{Options, UsagePlace};

/// The largest request that is read.
const LIMIT: usize = 256 * 1024 * 1024;

/// One request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// The path, without query.
    pub path: String,
    /// `x-request-id`.
    pub id: Option<String>,
    /// `x-refserver-shape`.
    pub shape: Option<String>,
    /// The client wants the connection closed.
    pub close: bool,
    /// The body.
    pub body: Vec<u8>,
}

/// Reads the next request; none when the client has gone. `pending` keeps bytes that came early.
pub async fn read(stream: &mut TcpStream, pending: &mut Vec<u8>) -> io::Result<Option<Request>> {
    loop {
        if let Some((mut request, head, length)) = parse(pending)? {
            let end = head + length;
            while pending.len() < end {
                if stream.read_buf(pending).await? == 0 {
                    return Ok(None);
                }
            }
            request.body = pending[head..end].to_vec();
            pending.drain(..end);
            return Ok(Some(request));
        }
        if pending.len() > LIMIT || stream.read_buf(pending).await? == 0 {
            return Ok(None);
        }
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
        ..Request::default()
    };
    let mut length = 0;
    for header in parsed.headers.iter() {
        let value = String::from_utf8_lossy(header.value).trim().to_owned();
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "x-request-id" => request.id = Some(value),
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
