//! The jobs that a batch is about, loaded from their own streams: the log decides, never a read table.

use std::collections::HashMap;

use events::keys::{JobKey, ServerKey};
use events::{Event, StreamKey};
use uuid::Uuid;

use super::Retry;
use crate::domain::{Job, Server, decode};
use crate::log::Log;

const PAGE: i64 = 500;

/// A job with what its reports' envelopes need.
#[derive(Debug, Clone)]
pub(super) struct LoadedJob {
    pub job: Job,
    /// The request that executed the run: every report belongs to it.
    pub correlation_id: Option<Uuid>,
    /// The event of each attempt's claim: what caused the attempt's reports.
    pub claims: HashMap<u32, Uuid>,
}

/// The jobs of a batch, each loaded once.
#[derive(Debug, Default)]
pub(super) struct Jobs(HashMap<JobKey, Option<LoadedJob>>);

impl Jobs {
    /// A job; `None` when there is no such job.
    pub async fn get(&mut self, log: &Log, key: &JobKey) -> Result<Option<&mut LoadedJob>, Retry> {
        if !self.0.contains_key(key) {
            let loaded = load(log, key).await?;
            self.0.insert(key.clone(), loaded);
        }
        Ok(self.0.get_mut(key).and_then(Option::as_mut))
    }

    /// A job that was loaded before.
    pub fn known(&self, key: &JobKey) -> Option<&LoadedJob> {
        self.0.get(key).and_then(Option::as_ref)
    }
}

async fn read(log: &Log, stream: &StreamKey) -> Result<Vec<events::envelope::Recorded>, Retry> {
    let mut events = Vec::new();
    let mut from = 1;
    loop {
        let page = log.read_stream(stream, from, PAGE).await?;
        let full = page.len() as i64 == PAGE;
        from += page.len() as i64;
        events.extend(page);
        if !full {
            return Ok(events);
        }
    }
}

async fn load(log: &Log, key: &JobKey) -> Result<Option<LoadedJob>, Retry> {
    let recorded = read(log, &key.stream()).await?;
    let Some(job) = Job::load(&recorded)? else { return Ok(None) };
    let correlation_id = recorded.first().and_then(|first| first.correlation_id);
    let mut claims = HashMap::new();
    for event in recorded.iter().filter(|event| event.event_type == "job.claimed") {
        if let Event::JobClaimed(claimed) = decode(event)? {
            claims.insert(claimed.attempt, event.event_id);
        }
    }
    Ok(Some(LoadedJob { job, correlation_id, claims }))
}

/// A server as its stream says; the position of its last event.
pub(super) async fn server(log: &Log, key: &ServerKey) -> Result<Option<(Server, i64)>, Retry> {
    let recorded = read(log, &key.stream()).await?;
    let last = recorded.last().map_or(0, |last| last.position);
    Ok(Server::load(&recorded)?.map(|server| (server, last)))
}
