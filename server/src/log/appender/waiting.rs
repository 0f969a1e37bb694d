//! A request on its way through the appender.

use std::collections::VecDeque;

use tokio::sync::{mpsc, oneshot};
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

/// Most events of one transaction, unless one request alone has more.
const BATCH_EVENTS: usize = 500;

/// Requests that were taken from the queue and wait for a batch.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    requests: VecDeque<Waiting>,
    events: usize,
}

impl Gathered {
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Events of all requests together.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Whether the next batch is not full yet.
    pub fn has_room(&self) -> bool {
        self.events < BATCH_EVENTS
    }

    /// Waits for the next request; false where there will be none. Nothing is lost if this is dropped.
    pub async fn receive(&mut self, queue: &mut mpsc::Receiver<Waiting>) -> bool {
        let Some(request) = queue.recv().await else { return false };
        self.push(request);
        true
    }

    /// Takes the requests that are there, as long as there is room.
    pub fn receive_ready(&mut self, queue: &mut mpsc::Receiver<Waiting>) {
        while self.has_room() {
            let Ok(request) = queue.try_recv() else { return };
            self.push(request);
        }
    }

    fn push(&mut self, request: Waiting) {
        self.events += request.events();
        self.requests.push_back(request);
    }

    /// The next batch: at least one request, and as many as fit into `most` events and one transaction.
    pub fn batch(&mut self, most: usize) -> Vec<Waiting> {
        let most = most.min(BATCH_EVENTS);
        let mut batch = Vec::with_capacity(self.requests.len());
        let mut count = 0;
        while let Some(next) = self.requests.front() {
            if !batch.is_empty() && count + next.events() > most {
                break;
            }
            count += next.events();
            batch.extend(self.requests.pop_front());
        }
        self.events -= count;
        batch
    }

    /// The ids of the events of all requests.
    pub fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.requests.iter().flat_map(Waiting::ids)
    }
}
