//! What a load generator must say about its requests for the one work loop to send them.

use std::time::Instant;

use crate::answer::{AnswerReader, Measured};
use crate::failure::Failure;
use crate::http::pool::SendError;
use crate::http::response::Sink;

/// One request, ready to be sent.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// The body.
    pub body: Vec<u8>,
    /// Words of its prompt.
    pub prompt_words: u64,
    /// Whether the answer is to be streamed.
    pub streamed: bool,
}

/// Reads one answer.
pub trait Reader: Sink + Send {
    /// The HTTP status, once there is one.
    fn status(&self) -> Option<u16>;
    /// True when our own reference server answered.
    fn is_simulated(&self) -> bool;
    /// What had arrived so far.
    fn so_far(&self) -> &Measured;
    /// What arrived, and the failure if it is no complete answer, given how the exchange ended.
    fn finish(self, sent: Result<(), &SendError>, ended_at: Instant) -> (Measured, Option<Failure>);
}

impl Reader for AnswerReader {
    fn status(&self) -> Option<u16> {
        self.status()
    }
    fn is_simulated(&self) -> bool {
        self.is_simulated()
    }
    fn so_far(&self) -> &Measured {
        self.so_far()
    }
    fn finish(self, sent: Result<(), &SendError>, ended_at: Instant) -> (Measured, Option<Failure>) {
        self.finish(sent, ended_at)
    }
}

/// The requests of one tool.
pub trait Workload: Send + Sync + 'static {
    /// Reads its answers.
    type Reader: Reader;
    /// Makes request `index`. Called before its clock starts.
    fn prepare(&self, index: u64) -> Prepared;
    /// A reader for the answer to `prepared`.
    fn reader(&self, prepared: &Prepared) -> Self::Reader;
    /// The `Accept` header.
    fn accept(&self) -> &'static str;
}
