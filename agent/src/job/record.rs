//! What the agent is doing, on disk, so that its successor can clean up after a crash.

use std::path::{Path, PathBuf};
use std::time::Duration;

use events::report::HeldAttempt;
use serde::{Deserialize, Serialize};

use super::Place;
use crate::serving::ProcessId;
use crate::spool::Spool;
use crate::state_dir::write_atomically;

/// How long the report of an attempt's end may take to be durable.
const DURABLE_WITHIN: Duration = Duration::from_secs(10);

/// The attempt being carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Whose attempt it is.
    pub held: HeldAttempt,
    /// In the environment of every process that was started for it.
    pub marker: String,
    /// The kernel's boot; ids of processes mean nothing after another one.
    pub boot_id: String,
    /// Where processes work.
    pub work_dir: PathBuf,
    /// Where logs lie.
    pub log_dir: PathBuf,
    /// The leaders of the process groups that were started.
    pub processes: Vec<ProcessId>,
}

/// A record that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct RecordError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: std::io::Error,
}

impl Record {
    /// A record of an attempt that begins.
    pub fn new(held: HeldAttempt, place: &Place) -> Self {
        Self {
            held,
            marker: uuid::Uuid::new_v4().to_string(),
            boot_id: boot_id(),
            work_dir: place.work_dir.clone(),
            log_dir: place.log_dir.clone(),
            processes: Vec::new(),
        }
    }

    /// Where the attempt works.
    pub fn place(&self) -> Place {
        Place { work_dir: self.work_dir.clone(), log_dir: self.log_dir.clone() }
    }

    /// Whether the machine was not restarted since.
    pub fn is_of_this_boot(&self) -> bool {
        self.boot_id == boot_id()
    }

    /// Writes it, durably.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn save(&self, path: &Path) -> Result<(), RecordError> {
        let error = |source| RecordError { path: path.to_owned(), source };
        let json = serde_json::to_vec_pretty(self).map_err(|e| error(e.into()))?;
        write_atomically(path, &json).map_err(error)
    }

    /// Reads what a predecessor left; nothing when it ended in order.
    ///
    /// # Errors
    /// [`RecordError`] when there is one that cannot be read.
    pub fn load(path: &Path) -> Result<Option<Self>, RecordError> {
        let error = |source| RecordError { path: path.to_owned(), source };
        match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| error(e.into())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(error(e)),
        }
    }

    /// Removes the record of an attempt whose end was reported, once that report is durable. Where the disk does not take
    /// it in time the record stays: should the report be lost, a successor reports the end in its place.
    pub async fn close(&self, path: &Path, spool: &Spool) {
        if spool.durable(DURABLE_WITHIN).await {
            Self::remove(path);
        } else {
            tracing::error!(job = %self.held.job.stream(), "the end of an attempt is not on the disk yet: its record is kept. Free some room");
        }
    }

    /// Removes it: the attempt is over.
    pub fn remove(path: &Path) {
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                tracing::error!(path = %path.display(), error = %e, "the record of a finished attempt cannot be removed");
            }
            _ => {}
        }
    }
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
