//! The jobs that a batch is about, loaded from their own streams: the log decides, never a read table.

use std::collections::HashMap;

use events::Event;
use events::envelope::Recorded;
use events::keys::{JobKey, ServerKey};
use uuid::Uuid;

use super::Retry;
use crate::domain::{Aggregate, Job, LoadError, Server, decode};
use crate::log::Log;

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

impl Aggregate for LoadedJob {
    fn begin(first: &Recorded) -> Result<Self, LoadError> {
        let job = Job::begin(first)?;
        Ok(Self { job, correlation_id: first.correlation_id, claims: HashMap::new() })
    }

    fn follow(&mut self, recorded: &Recorded) -> Result<(), LoadError> {
        let event = decode(recorded)?;
        self.job.evolve(&event, recorded.occurred_at);
        if let Event::JobClaimed(claimed) = event {
            self.claims.insert(claimed.attempt, recorded.event_id);
        }
        Ok(())
    }
}

async fn load(log: &Log, key: &JobKey) -> Result<Option<LoadedJob>, Retry> {
    log.fold(&key.stream(), LoadedJob::step).await
}

/// A server as its stream says; the position of its last event.
#[derive(Debug, Clone)]
pub(super) struct LoadedServer {
    pub server: Server,
    pub position: i64,
}

impl Aggregate for LoadedServer {
    fn begin(first: &Recorded) -> Result<Self, LoadError> {
        Ok(Self { server: Server::begin(first)?, position: first.position })
    }

    fn follow(&mut self, recorded: &Recorded) -> Result<(), LoadError> {
        self.position = recorded.position;
        self.server.follow(recorded)
    }
}

/// A server; `None` when it never was.
pub(super) async fn server(log: &Log, key: &ServerKey) -> Result<Option<LoadedServer>, Retry> {
    log.fold(&key.stream(), LoadedServer::step).await
}
