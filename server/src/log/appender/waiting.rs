//! A request on its way through the appender.

use tokio::sync::oneshot;
use uuid::Uuid;

use crate::log::LogError;
use crate::log::request::{AppendOutcome, AppendRequest, Placed};

/// A request on its way, with the caller who waits for its outcome.
#[derive(Debug)]
pub(in crate::log) struct Waiting {
    pub request: AppendRequest,
    pub reply: oneshot::Sender<Result<AppendOutcome, LogError>>,
    /// Places tried when the connection was lost, any one of which may have been committed.
    pub tried: Vec<Vec<Placed>>,
}

impl Waiting {
    pub fn new(request: AppendRequest, reply: oneshot::Sender<Result<AppendOutcome, LogError>>) -> Self {
        Self { request, reply, tried: Vec::new() }
    }

    pub(super) fn events(&self) -> usize {
        self.request.writes.iter().map(|write| write.events.len()).sum()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.request.writes.iter().flat_map(|write| &write.events).map(|event| event.event_id)
    }

    pub(super) fn answer(self, outcome: AppendOutcome) {
        // A caller that went away does not change what was appended.
        let _ = self.reply.send(Ok(outcome));
    }

    pub(super) fn fail(self, error: LogError) {
        let _ = self.reply.send(Err(error));
    }
}
