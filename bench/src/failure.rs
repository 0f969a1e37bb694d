//! Why a request failed, in the classes the methodology names, with secrets taken out of every message.

use std::io;

use crate::http::connect::ConnectError;
use crate::http::exchange::ExchangeError;
use crate::http::pool::SendError;
use crate::http::response::ReadError;

/// The class of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// HTTP 429.
    RateLimit,
    /// HTTP 401 or 403.
    Authentication,
    /// HTTP 400.
    BadRequest,
    /// HTTP 5xx.
    ServerError,
    /// Any other status that is no success.
    HttpError,
    /// HTTP 3xx: a benchmark follows no redirect.
    Redirect,
    /// The request timeout passed.
    Timeout,
    /// No connection, or one that died before the answer began.
    Connection,
    /// The answer broke off while it was read, or broke the rules of HTTP.
    Body,
    /// The answer could not be understood.
    Decode,
    /// A stream that stopped before its body was whole.
    StreamCut,
    /// An answer whose body is whole but which never said that it was finished.
    MissingFinish,
    /// An error object inside an answer that began with status 200.
    InBandError,
    /// Status 200 with something that is no answer, such as an HTML page.
    WrongContentType,
    /// Image data that is no image.
    ImageData,
    /// An image that could not be saved.
    Artifact,
    /// The request could not be made.
    Request,
}

impl FailureKind {
    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Authentication => "authentication",
            Self::BadRequest => "bad_request",
            Self::ServerError => "server_error",
            Self::HttpError => "http_error",
            Self::Redirect => "redirect",
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Body => "body",
            Self::Decode => "decode",
            Self::StreamCut => "stream_cut",
            Self::MissingFinish => "missing_finish",
            Self::InBandError => "in_band_error",
            Self::WrongContentType => "wrong_content_type",
            Self::ImageData => "decode_error",
            Self::Artifact => "artifact_error",
            Self::Request => "request_error",
        }
    }

    /// The name among the seven classes the methodology has for image generation.
    pub fn imagegen_name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Connection | Self::Body | Self::StreamCut => "connection_error",
            Self::RateLimit | Self::Authentication | Self::BadRequest | Self::ServerError => "http_error",
            Self::HttpError | Self::Redirect => "http_error",
            Self::Decode | Self::MissingFinish | Self::InBandError | Self::WrongContentType => "schema_error",
            Self::ImageData => "decode_error",
            Self::Artifact => "artifact_error",
            Self::Request => "request_error",
        }
    }

    /// Worth another try: the same request may well succeed.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Timeout | Self::Connection | Self::Body | Self::RateLimit | Self::ServerError)
    }

    /// The class of an HTTP status that is no success.
    pub fn of_status(status: u16) -> Self {
        match status {
            429 => Self::RateLimit,
            401 | 403 => Self::Authentication,
            400 => Self::BadRequest,
            500..=599 => Self::ServerError,
            300..=399 => Self::Redirect,
            _ => Self::HttpError,
        }
    }
}

/// One failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its class.
    pub kind: FailureKind,
    /// The HTTP status, if an answer began.
    pub status: Option<u16>,
    /// What was said.
    pub message: String,
    /// For want of something on this machine: open files, local ports.
    pub is_local: bool,
}

/// Messages longer than this are cut.
const MESSAGE_LIMIT: usize = 600;

impl Failure {
    /// A failure of `kind`; the message is shortened.
    pub fn new(kind: FailureKind, status: Option<u16>, message: impl Into<String>) -> Self {
        Self { kind, status, message: shorten(message.into()), is_local: false }
    }

    /// The failure behind a request that got no complete response. `streamed` and `status` tell what had begun.
    pub fn of_send(error: &SendError, streamed: bool, status: Option<u16>) -> Self {
        let kind = match error {
            SendError::Connect(ConnectError::Timeout(_)) | SendError::Exchange(ExchangeError::Timeout) => {
                FailureKind::Timeout
            }
            SendError::Connect(_) => FailureKind::Connection,
            SendError::Exchange(ExchangeError::Write(_)) => FailureKind::Connection,
            SendError::Exchange(ExchangeError::Response(ReadError::Head(_))) => FailureKind::Decode,
            SendError::Exchange(ExchangeError::Response(ReadError::Chunked(_))) => FailureKind::Body,
            SendError::Exchange(ExchangeError::Response(ReadError::CutInHead)) => FailureKind::Connection,
            SendError::Exchange(
                ExchangeError::Response(ReadError::CutInBody)
                | ExchangeError::Read(_)
                | ExchangeError::Http2(_),
            ) => match (status, streamed) {
                (None, _) => FailureKind::Connection,
                (Some(_), true) => FailureKind::StreamCut,
                (Some(_), false) => FailureKind::Body,
            },
        };
        let (message, is_local) = with_advice(error);
        Self { is_local, ..Self::new(kind, status, message) }
    }

    /// True when the message says that memory ran out on the server.
    pub fn speaks_of_memory(&self) -> bool {
        let text = self.message.to_lowercase();
        [
            "out of memory",
            "outofmemory",
            "out_of_memory",
            "cuda oom",
            "hip out of",
            "failed to allocate",
            "cannot allocate memory",
            "oom-kill",
            "oom kill",
        ]
        .iter()
        .any(|phrase| text.contains(phrase))
            || text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "oom")
    }
}

/// The message, and whether it is this machine that lacks something.
fn with_advice(error: &SendError) -> (String, bool) {
    let source = match error {
        SendError::Connect(ConnectError::Tcp { source, .. }) => Some(source),
        SendError::Exchange(ExchangeError::Read(source) | ExchangeError::Write(source)) => Some(source),
        _ => None,
    };
    let advice = match source {
        Some(source) if source.kind() == io::ErrorKind::AddrNotAvailable => {
            "; no free local port: fewer connections at once, or a server that keeps them open, would help"
        }
        Some(source) if source.raw_os_error() == Some(nix::libc::EMFILE) => {
            "; raise the open-file limit (ulimit -n)"
        }
        _ => "",
    };
    (format!("{error}{advice}"), !advice.is_empty())
}

fn shorten(mut message: String) -> String {
    if message.len() > MESSAGE_LIMIT {
        let cut = (0..=MESSAGE_LIMIT).rev().find(|&at| message.is_char_boundary(at)).unwrap_or(0);
        message.truncate(cut);
        message.push('…');
    }
    message
}

/// Takes secrets out of text before it is shown, logged or stored.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    secrets: Vec<String>,
}

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

impl Redactor {
    /// A redactor for these exact secrets, and for anything that looks like a bearer token or an API key.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|secret| secret.len() >= 3).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    /// `text` without secrets.
    pub fn redact(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.secrets {
            if clean.contains(secret.as_str()) {
                clean = clean.replace(secret.as_str(), REDACTED);
            }
        }
        for prefix in ["Bearer ", "bearer ", "sk-", "hf_"] {
            clean = redact_after(&clean, prefix);
        }
        redact_userinfo(&clean)
    }
}

/// Replaces the token that follows `prefix`, where it is long enough to be one.
fn redact_after(text: &str, prefix: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(prefix) {
        let (before, tail) = rest.split_at(at + prefix.len());
        let is_token = |c: char| c.is_ascii_alphanumeric() || "-_.~+/=".contains(c);
        let token = tail.find(|c| !is_token(c)).unwrap_or(tail.len());
        out.push_str(before);
        let starts_a_word = before[..at].chars().next_back().is_none_or(|c| !c.is_ascii_alphanumeric());
        if token >= 12 && starts_a_word {
            out.push_str(REDACTED);
            rest = &tail[token..];
        } else {
            rest = tail;
        }
    }
    out.push_str(rest);
    out
}

/// Replaces `user:password` in any URL inside `text`.
fn redact_userinfo(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, tail) = rest.split_at(at + 3);
        out.push_str(before);
        let authority = tail
            .find(|c: char| c == '/' || c == '?' || c == '#' || c.is_whitespace() || c == '"')
            .unwrap_or(tail.len());
        match tail[..authority].rfind('@') {
            Some(sign) => {
                out.push_str(REDACTED);
                rest = &tail[sign..];
            }
            None => rest = tail,
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_the_classes_of_the_methodology() {
        let kinds =
            [429, 401, 403, 400, 500, 503, 404, 302].map(|status| FailureKind::of_status(status).name());
        assert_eq!(
            kinds,
            [
                "rate_limit",
                "authentication",
                "authentication",
                "bad_request",
                "server_error",
                "server_error",
                "http_error",
                "redirect"
            ]
        );
    }

    #[test]
    fn memory_running_out_is_recognised() {
        for message in ["CUDA out of memory. Tried to allocate", "worker OOM", "torch.OutOfMemoryError: x"] {
            assert!(
                Failure::new(FailureKind::ServerError, Some(500), message).speaks_of_memory(),
                "{message}"
            );
        }
        assert!(!Failure::new(FailureKind::ServerError, Some(500), "no room for zoom").speaks_of_memory());
    }

    #[test]
    fn given_secrets_are_taken_out() {
        assert_eq!(Redactor::new(["hunter2".to_owned()]).redact("key hunter2!"), "key [redacted]!");
    }

    #[test]
    fn tokens_nobody_told_us_about_are_taken_out_too() {
        let redactor = Redactor::default();
        assert_eq!(
            redactor.redact("Incorrect API key provided: sk-abcdefghijklmnop."),
            "Incorrect API key provided: sk-[redacted]"
        );
        assert_eq!(redactor.redact("http://me:secret@host/x"), "http://[redacted]@host/x");
        assert_eq!(redactor.redact("a task-oriented-and-long"), "a task-oriented-and-long");
    }
}
