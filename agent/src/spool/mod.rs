//! The spool: every report is on disk before it is sent, and stays until the control plane has answered for it.
//!
//! Reports are appended as lines of JSON to numbered segment files. A thread makes them durable, many at a time;
//! only what is durable is sent. What was answered is remembered as one place in the segments (everything
//! before it is settled): losing that place costs a resend, never a report. Settled segments are deleted; what
//! they held is kept as a [`Tally`] an attempt, so that after a crash the agent still knows how many samples and
//! lines it had taken.
//!
//! When the disk is full, reports are held in memory and sent from there, and moved to the disk when it takes
//! them again. A report is never half-written: a write that failed is cut off.

mod queue;
mod segments;
mod sender;
mod tally;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use events::report::{ReportBody, ReportItem};
use events::timestamp::Timestamp;
use tokio::sync::watch;
use uuid::Uuid;

use queue::Queue;
pub use sender::Sender;
pub use tally::{AttemptId, Tally};

/// How often a full disk is tried again.
const DISK_RETRY: Duration = Duration::from_secs(1);

/// What can go wrong with the spool's folder.
#[derive(Debug, thiserror::Error)]
#[error(
    "the spool {path} cannot be used: {source}. Reports are kept there until they are acknowledged; see that the folder is writable and its disk has room"
)]
pub struct SpoolError {
    /// The folder or file.
    pub path: PathBuf,
    /// Why.
    pub source: std::io::Error,
}

/// The oldest reports that are not settled, ready to be sent.
#[derive(Debug, Default)]
pub struct Batch {
    /// The reports, oldest first.
    pub items: Vec<ReportItem>,
    /// How to settle each of them.
    marks: Vec<queue::Mark>,
}

/// The spool. Cheap to share; `append` never waits for the network or the disk.
pub struct Spool {
    shared: Arc<Shared>,
    syncer: Option<std::thread::JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Wakes the syncing thread.
    dirty: Condvar,
    /// Counts up whenever there may be more to send, or something was settled.
    changed: watch::Sender<u64>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self) {
        self.changed.send_modify(|n| *n += 1);
    }
}

impl Spool {
    /// Opens the spool in `folder`, cutting off a line that a crash left half-written.
    ///
    /// # Errors
    /// [`SpoolError`] when the folder cannot be used.
    pub fn open(folder: &Path, max_bytes: u64) -> Result<Self, SpoolError> {
        let queue = Queue::open(folder, max_bytes)?;
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            dirty: Condvar::new(),
            changed: watch::Sender::new(0),
        });
        let for_thread = Arc::clone(&shared);
        let syncer = std::thread::Builder::new()
            .name("spool-sync".into())
            .spawn(move || keep_durable(&for_thread))
            .map_err(|source| SpoolError { path: folder.to_owned(), source })?;
        Ok(Self { shared, syncer: Some(syncer) })
    }

    /// Keeps a report until it is settled, under an id of its own.
    pub fn append(&self, at: Timestamp, body: ReportBody) -> Uuid {
        // Version 7 ids of one process are in the order in which they were made.
        let event_id = Uuid::now_v7();
        self.append_item(&ReportItem { event_id, at, body });
        event_id
    }

    /// Keeps a report that has an id already. Tells whether there was room for it.
    pub fn append_item(&self, item: &ReportItem) -> bool {
        let kept = self.shared.lock().append(item);
        self.shared.dirty.notify_one();
        kept
    }

    /// Waits until every report that was appended before is durable, or settled; at most for `limit`. Tells whether it
    /// is so. What a report takes the place of (a record, an entry of a list) may be removed only then.
    pub async fn durable(&self, limit: Duration) -> bool {
        let taken = self.shared.lock().taken();
        let mut changes = self.changes();
        let all_durable = async {
            while self.shared.lock().taken_durable() < taken {
                if changes.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        };
        tokio::time::timeout(limit, all_durable).await.is_ok()
    }

    /// The oldest durable reports: at most `items` of them, of at most `bytes` (but at least one).
    pub fn next_batch(&self, items: usize, bytes: usize) -> Batch {
        self.shared.lock().next_batch(items, bytes)
    }

    /// Settles the first `count` reports of a batch: they will not be sent again.
    pub fn settle(&self, batch: &Batch, count: usize) {
        self.shared.lock().settle(&batch.marks[..count.min(batch.marks.len())]);
        self.shared.announce();
    }

    /// Reports that are not settled.
    pub fn pending(&self) -> u64 {
        self.shared.lock().pending()
    }

    /// What was reported of an attempt so far, also before a crash.
    pub fn tally(&self, attempt: &AttemptId) -> Tally {
        self.shared.lock().tally(attempt)
    }

    /// Keeps reports that the control plane will never take, each with the reason, for people to look at; durably, so
    /// that they can be settled.
    ///
    /// # Errors
    /// When the disk does not take them.
    pub fn set_aside<'a>(
        &self,
        rejected: impl IntoIterator<Item = (&'a ReportItem, String)>,
    ) -> std::io::Result<()> {
        let mut lines = String::new();
        for (item, why) in rejected {
            lines.push_str(&serde_json::json!({ "why": why, "item": item }).to_string());
            lines.push('\n');
        }
        let folder = self.shared.lock().folder().clone();
        folder.set_aside(&lines)
    }

    /// Changes whenever there may be more to send, or something was settled.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Waits until everything is settled, at most for `limit`. Tells whether it is.
    pub async fn drained(&self, limit: Duration) -> bool {
        let mut changes = self.changes();
        let all_settled = async {
            while self.pending() > 0 {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(limit, all_settled).await.is_ok()
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.shared.lock().close();
        self.shared.dirty.notify_one();
        if let Some(thread) = self.syncer.take() {
            // It has nothing to report; a panic in it was printed already.
            let _ = thread.join();
        }
    }
}

/// The syncing thread: whatever was appended since the last round becomes durable in one go.
fn keep_durable(shared: &Shared) {
    let mut queue = shared.lock();
    loop {
        if let Some(work) = queue.start_sync() {
            drop(queue);
            let outcome = work.run();
            queue = shared.lock();
            queue.finish_sync(work, outcome);
            shared.announce();
            continue;
        }
        if queue.is_closed() {
            return;
        }
        queue = if queue.holds_in_memory() {
            let (mut queue, _) =
                shared.dirty.wait_timeout(queue, DISK_RETRY).unwrap_or_else(PoisonError::into_inner);
            queue.move_to_disk();
            shared.announce();
            queue
        } else {
            shared.dirty.wait(queue).unwrap_or_else(PoisonError::into_inner)
        };
    }
}

#[cfg(test)]
mod tests;
