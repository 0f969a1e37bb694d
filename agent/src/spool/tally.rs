//! How much was reported of each attempt: the agent's bookkeeping, which survives its crash.

use std::collections::BTreeMap;

use events::keys::JobKey;
use events::report::ReportBody;
use events::tool_output::LogSource;
use serde::{Deserialize, Serialize};

/// One attempt at one job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AttemptId {
    /// The job.
    pub job: JobKey,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// What was reported of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Telemetry samples.
    pub telemetry_samples: u64,
    /// Log lines of the model server.
    pub framework_lines: u64,
    /// Log lines of the tool.
    pub tool_lines: u64,
    /// Log lines of the agent.
    pub agent_lines: u64,
    /// Whether its end was reported.
    pub ended: bool,
}

impl Tally {
    /// Lines of one log.
    pub fn lines(&self, source: LogSource) -> u64 {
        match source {
            LogSource::Framework => self.framework_lines,
            LogSource::Tool => self.tool_lines,
            LogSource::Agent => self.agent_lines,
        }
    }

    fn add(&mut self, other: &Self) {
        self.telemetry_samples += other.telemetry_samples;
        self.framework_lines += other.framework_lines;
        self.tool_lines += other.tool_lines;
        self.agent_lines += other.agent_lines;
        self.ended |= other.ended;
    }
}

/// Tallies by attempt.
#[derive(Debug, Clone, Default)]
pub(super) struct Tallies(BTreeMap<AttemptId, Tally>);

impl Tallies {
    /// Counts a report.
    pub(super) fn count(&mut self, body: &ReportBody) {
        let Some((job, attempt)) = body.job() else { return };
        let id = AttemptId { job: job.clone(), attempt };
        let tally = self.0.entry(id).or_default();
        match body {
            ReportBody::Telemetry { telemetry, .. } => {
                tally.telemetry_samples += telemetry.samples.len() as u64;
            }
            ReportBody::Log { log, .. } => {
                let lines = log.lines.len() as u64;
                match log.source {
                    LogSource::Framework => tally.framework_lines += lines,
                    LogSource::Tool => tally.tool_lines += lines,
                    LogSource::Agent => tally.agent_lines += lines,
                }
            }
            ReportBody::Completed { .. } | ReportBody::Failed { .. } | ReportBody::Cancelled { .. } => {
                tally.ended = true;
            }
            _ => {}
        }
    }

    /// Adds other tallies.
    pub(super) fn merge(&mut self, other: &Self) {
        for (id, tally) in &other.0 {
            self.0.entry(id.clone()).or_default().add(tally);
        }
    }

    pub(super) fn get(&self, id: &AttemptId) -> Tally {
        self.0.get(id).copied().unwrap_or_default()
    }

    /// Forgets attempts whose end was reported.
    pub(super) fn forget_ended(&mut self) {
        self.0.retain(|_, tally| !tally.ended);
    }

    pub(super) fn to_list(&self) -> Vec<(AttemptId, Tally)> {
        self.0.iter().map(|(id, tally)| (id.clone(), *tally)).collect()
    }

    pub(super) fn from_list(list: Vec<(AttemptId, Tally)>) -> Self {
        Self(list.into_iter().collect())
    }
}
