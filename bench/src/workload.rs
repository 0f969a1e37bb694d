//! What a load generator must say about its requests for the one work loop to send them.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::answer::{AnswerReader, Measured};
use crate::extra::Extra;
use crate::failure::Failure;
use crate::http::pool::SendError;
use crate::http::response::Sink;
use crate::live::Live;

/// One request, ready to be sent.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// The body.
    pub body: Vec<u8>,
    /// Words of its prompt; none where there is no prompt.
    pub prompt_words: Option<u64>,
    /// Whether the answer is to be streamed.
    pub streamed: bool,
    /// What the modality knows of the request already.
    pub extra: Extra,
}

/// Reads one answer.
pub trait Reader: Sink + Send {
    /// Counts output into `live` as it arrives. `started_at` where its first output is to be timed too.
    fn count_into(&mut self, _live: Arc<Live>, _started_at: Option<Instant>) {}
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
    fn count_into(&mut self, live: Arc<Live>, started_at: Option<Instant>) {
        self.count_into(live, started_at);
    }
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

    /// The answers are text counted in tokens, so that TTFT, words and usage mean something.
    const TEXT: bool;

    /// The clock of a request starts before it is prepared: the methodology counts reading an audio file.
    const CLOCK_BEFORE_PREPARATION: bool = false;

    /// Makes request `index`.
    fn prepare(&self, index: u64) -> impl Future<Output = Result<Prepared, Failure>> + Send;

    /// A reader for the answer to `prepared`.
    fn reader(&self, prepared: &Prepared) -> Self::Reader;

    /// Looks into a whole answer after its clock has stopped; may turn it into a failure. The slot is free already.
    fn inspect(
        &self,
        _index: u64,
        _measured: &mut Measured,
        extra: Extra,
    ) -> impl Future<Output = (Extra, Option<Failure>)> + Send {
        async move { (extra, None) }
    }

    /// Whether something of a request that ended is yet to be had from elsewhere, once the load is over.
    fn is_unfinished(&self, _extra: &Extra) -> bool {
        false
    }

    /// The time that may take for all requests together.
    fn completion_limit(&self) -> Duration {
        Duration::ZERO
    }

    /// Gets it: for request `index`, answered by this endpoint.
    fn complete(&self, _endpoint: usize, _index: u64, _extra: &mut Extra) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Says why it was not to be had.
    fn give_up(&self, _extra: &mut Extra, _reason: &str) {}

    /// The `Accept` header.
    fn accept(&self) -> &str;

    /// The `Content-Type` header of requests.
    fn content_type(&self) -> &str {
        "application/json"
    }
}
