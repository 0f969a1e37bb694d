//! Reading a whole answer of any kind.

use std::time::Instant;

use crate::answer::{Measured, REFSERVER_NAME};
use crate::failure::{Failure, FailureKind};
use crate::http::pool::SendError;
use crate::http::response::{Head, Progress, Sink};
use crate::openai::error_message;
use crate::workload::Reader;

/// The largest answer that is kept: a few large images in base64.
const LIMIT: usize = 1 << 30;

/// Collects the body of an answer.
#[derive(Debug, Default)]
pub struct BodyReader {
    /// Wants JSON: another content type is a failure.
    json: bool,
    head: Option<Head>,
    too_large: bool,
    measured: Measured,
}

impl BodyReader {
    /// A reader of JSON answers, or of any text.
    pub fn new(json: bool) -> Self {
        Self { json, ..Self::default() }
    }
}

impl Sink for BodyReader {
    fn head(&mut self, head: Head, _: Instant) {
        self.head = Some(head);
    }

    fn body(&mut self, piece: &[u8], _: Instant) -> Progress {
        self.measured.body.extend_from_slice(piece);
        self.too_large = self.measured.body.len() > LIMIT;
        if self.too_large { Progress::Complete } else { Progress::More }
    }
}

impl Reader for BodyReader {
    fn status(&self) -> Option<u16> {
        self.head.as_ref().map(|head| head.status)
    }

    fn is_simulated(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.server.starts_with(REFSERVER_NAME))
    }

    fn so_far(&self) -> &Measured {
        &self.measured
    }

    fn finish(self, sent: Result<(), &SendError>, ended_at: Instant) -> (Measured, Option<Failure>) {
        let status = self.status();
        let mut measured = self.measured;
        let kind = self
            .head
            .as_ref()
            .map_or("", |head| head.content_type.split(';').next().unwrap_or_default().trim());
        let failure = match (status, sent) {
            (Some(code), _) if !(200..300).contains(&code) => {
                Some(Failure::new(FailureKind::of_status(code), status, error_message(&measured.body)))
            }
            (_, Err(error)) => Some(Failure::of_send(error, false, status)),
            (None, Ok(())) => Some(Failure::new(FailureKind::Connection, None, "no response")),
            _ if self.too_large => {
                Some(Failure::new(FailureKind::Body, status, "the answer is larger than 1 GiB"))
            }
            _ if kind == "text/html" || self.json && kind.starts_with("text/event") => Some(Failure::new(
                FailureKind::WrongContentType,
                status,
                format!("{kind} where JSON was expected"),
            )),
            _ => None,
        };
        if failure.is_none() && !measured.body.is_empty() {
            measured.first_output = Some(ended_at);
        }
        (measured, failure)
    }
}
