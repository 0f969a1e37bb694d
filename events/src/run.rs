//! Runs: one execution of a workload across its scenarios, on a chosen server.

use serde::{Deserialize, Serialize};

use crate::keys::ServerKey;

/// A person executed a workload. Stream: the run's. Its jobs are created in the same append.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCreated {
    /// The server the jobs run on.
    pub server: ServerKey,
    /// The scenarios executed, in order; each is one job.
    pub scenario_codes: Vec<String>,
    /// The number of the run of the same workload that this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<u32>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunOutcome {
    /// Every job completed.
    Completed,
    /// At least one job failed or was lost.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

impl RunOutcome {
    /// The word used in SQL, the API and the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The control plane saw the run's last job end. Stream: the run's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFinished {
    /// How it ended.
    pub outcome: RunOutcome,
    /// Jobs that completed.
    pub completed: u32,
    /// Jobs that failed or were lost.
    pub failed: u32,
    /// Jobs that were cancelled.
    pub cancelled: u32,
}

/// A person asked to stop a run: its unfinished jobs are cancelled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCancelRequested {}

/// A person asked for another try of one of the run's failed jobs after the run had finished: it goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReopened {}
