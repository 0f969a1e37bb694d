//! Files that have to reach the control plane: kept on a list on disk until they are there.
//!
//! A file is named in a report only once it is stored. While the control plane is away, uploads wait; a job's end does not
//! wait for them longer than a few seconds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use events::keys::JobKey;
use events::report::{ReportBody, ReportItem};
use events::system::BlobStored;
use events::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::control::{Control, ControlError};
use crate::spool::Spool;
use crate::state_dir::write_atomically;

/// The pause after an upload that failed; it doubles up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A file to be uploaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Upload {
    /// The file. It must not change any more.
    pub file: PathBuf,
    /// What it is, for example `framework_log`.
    pub purpose: String,
    /// Its media type.
    pub media_type: String,
    /// The job it belongs to.
    pub job: JobKey,
    /// The attempt it belongs to.
    pub attempt: u32,
    /// When it was finished.
    pub at: Timestamp,
    /// The id of the report that will name it.
    pub event_id: Uuid,
}

/// The list, and the task that works it off.
pub struct Uploader {
    folder: PathBuf,
    added: Notify,
    settled: Notify,
}

impl Uploader {
    /// Opens the list.
    ///
    /// # Errors
    /// When its folder cannot be made.
    pub fn open(folder: &Path) -> std::io::Result<Arc<Self>> {
        std::fs::create_dir_all(folder)?;
        Ok(Arc::new(Self { folder: folder.to_owned(), added: Notify::new(), settled: Notify::new() }))
    }

    /// Puts a file on the list.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn add(&self, upload: &Upload) -> std::io::Result<()> {
        let json = serde_json::to_vec(upload)?;
        write_atomically(&self.folder.join(format!("{}.json", upload.event_id)), &json)?;
        self.added.notify_one();
        Ok(())
    }

    /// Waits until the list is empty, at most for `limit`. Tells whether it is.
    pub async fn finished(&self, limit: Duration) -> bool {
        let empty = async {
            loop {
                let settled = self.settled.notified();
                if self.waiting().is_empty() {
                    return;
                }
                settled.await;
            }
        };
        tokio::time::timeout(limit, empty).await.is_ok()
    }

    fn waiting(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut waiting: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .collect();
        waiting.sort();
        waiting
    }

    /// Uploads for ever; drop the future to stop.
    pub async fn run(self: Arc<Self>, control: Arc<Control>, spool: Arc<Spool>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let Some(entry) = self.waiting().into_iter().next() else {
                self.added.notified().await;
                continue;
            };
            match upload(&entry, &control, &spool).await {
                Ok(()) => pause = FIRST_PAUSE,
                Err(Trouble::Passing(error)) => {
                    tracing::warn!(%error, "an upload waits and will be tried again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                    continue;
                }
                Err(Trouble::Lasting(why)) => {
                    tracing::error!(entry = %entry.display(), why, "a file cannot be uploaded; it stays on this host");
                }
            }
            if let Err(error) = std::fs::remove_file(&entry) {
                tracing::error!(%error, "the list of uploads cannot be written");
                tokio::time::sleep(MAX_PAUSE).await;
            }
            self.settled.notify_waiters();
        }
    }
}

enum Trouble {
    Passing(ControlError),
    Lasting(String),
}

async fn upload(entry: &Path, control: &Control, spool: &Spool) -> Result<(), Trouble> {
    let lasting = |e: &dyn std::fmt::Display| Trouble::Lasting(e.to_string());
    let bytes = std::fs::read(entry).map_err(|e| lasting(&e))?;
    let upload: Upload = serde_json::from_slice(&bytes).map_err(|e| lasting(&e))?;
    let file = upload.file.clone();
    let hashed = tokio::task::spawn_blocking(move || hash_file(&file)).await.map_err(|e| lasting(&e))?;
    let (sha256, size) = hashed.map_err(|e| Trouble::Lasting(format!("{}: {e}", upload.file.display())))?;
    match control.https().upload(&sha256, &upload.media_type, &upload.file).await {
        Ok(()) => {}
        Err(error) if error.is_permanent() => return Err(lasting(&error)),
        Err(error) => return Err(Trouble::Passing(error)),
    }
    let blob = BlobStored {
        sha256,
        size,
        media_type: upload.media_type,
        purpose: upload.purpose,
        job: Some(upload.job.stream().to_string()),
    };
    let body = ReportBody::Blob { job: upload.job, attempt: upload.attempt, blob };
    // The id was made with the entry: when the agent dies right here, the successor reports the same.
    // The entry is removed only when the report is as durable as the entry was.
    let item = ReportItem { event_id: upload.event_id, at: upload.at, body };
    while !(spool.append_item(&item) && spool.durable(Duration::MAX).await) {
        tracing::error!("there is no room for the report of an upload: it is tried again");
        tokio::time::sleep(MAX_PAUSE).await;
    }
    Ok(())
}

fn hash_file(path: &Path) -> std::io::Result<(String, u64)> {
    let mut hasher = Sha256::new();
    let size = std::io::copy(&mut std::fs::File::open(path)?, &mut hasher)?;
    Ok((hex::encode(hasher.finalize()), size))
}
