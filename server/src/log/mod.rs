//! The event log: append, read, watch, prove, verify.

mod error;
mod request;

use std::path::PathBuf;
use std::time::Duration;

use events::envelope::Recorded;
use events::keys::StreamKey;
use events::merkle::{Checkpoint, Proof};
use tokio::sync::watch;
use uuid::Uuid;

pub use error::LogError;
pub use request::{AppendOutcome, AppendRequest, Expected, Placed, StreamWrite};

/// How a log is opened.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// `postgres://…` of a database to which [`migrate`] has been applied.
    pub database_url: String,
    /// Where the signing key `log-signing.key` is kept (mode 0600; made where there is none).
    pub data_dir: PathBuf,
    /// The role to act as: one that can append and read but neither alter nor delete.
    pub role: Option<String>,
    /// How often the head is looked up, to see what other processes appended.
    pub poll: Duration,
    /// How long a lost database is waited for before callers are told [`LogError::Unavailable`].
    pub give_up_after: Duration,
    /// Connections for reading.
    pub read_connections: u32,
}

impl LogConfig {
    /// The usual settings for a database and a data directory.
    pub fn new(database_url: impl Into<String>, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            database_url: database_url.into(),
            data_dir: data_dir.into(),
            role: Some("benchtrail_app".to_owned()),
            poll: Duration::from_millis(150),
            give_up_after: Duration::from_secs(30),
            read_connections: 8,
        }
    }
}

/// The last position of the log and the chain hash there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Position of the last event; 0 while there is none.
    pub position: i64,
    /// The chain hash there.
    pub hash: [u8; 32],
}

/// A handle on the event log; cheap to clone.
#[derive(Debug, Clone)]
pub struct Log {
    seen: watch::Receiver<i64>,
}

/// Applies the migrations. Needs the right to create tables and roles.
///
/// # Errors
/// The database refused.
pub async fn migrate(database_url: &str) -> Result<(), LogError> {
    let _ = database_url;
    Err(LogError::Closed)
}

impl Log {
    /// Opens the log of a migrated database and starts its appender.
    ///
    /// # Errors
    /// The database cannot be reached or is not migrated, or the key file cannot be read or made.
    pub async fn open(config: LogConfig) -> Result<Self, LogError> {
        let _ = config;
        Err(LogError::Closed)
    }

    /// Appends a request and returns when it is durable, or finally refused.
    ///
    /// # Errors
    /// The database is lost; whether the events were appended is then unknown, and sending them again is safe.
    pub async fn append(&self, request: AppendRequest) -> Result<AppendOutcome, LogError> {
        let _ = request;
        Err(LogError::Closed)
    }

    /// Up to `limit` events of a stream, from `from_version` (1 for all), in order.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn read_stream(
        &self,
        stream: &StreamKey,
        from_version: i64,
        limit: i64,
    ) -> Result<Vec<Recorded>, LogError> {
        let _ = (stream, from_version, limit);
        Err(LogError::Closed)
    }

    /// Up to `limit` events after position `after` (0 for all), in order.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn read_all(&self, after: i64, limit: i64) -> Result<Vec<Recorded>, LogError> {
        let _ = (after, limit);
        Err(LogError::Closed)
    }

    /// The event with this id.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn event_by_id(&self, event_id: Uuid) -> Result<Option<Recorded>, LogError> {
        let _ = event_id;
        Err(LogError::Closed)
    }

    /// The version of a stream's last event; 0 where it has none.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn stream_version(&self, stream: &StreamKey) -> Result<i64, LogError> {
        let _ = stream;
        Err(LogError::Closed)
    }

    /// The committed head, as the database has it now.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn head(&self) -> Result<Head, LogError> {
        Err(LogError::Closed)
    }

    /// The last committed position this process knows of: its own appends at once, others' within
    /// [`LogConfig::poll`]. A hint to look, never the delivery itself.
    pub fn watch(&self) -> watch::Receiver<i64> {
        self.seen.clone()
    }

    /// Signs a checkpoint at the present head, or returns the one that stands there already. `None` while the log is
    /// empty.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub async fn checkpoint(&self) -> Result<Option<Checkpoint>, LogError> {
        Err(LogError::Closed)
    }

    /// The proof that the event at a position is in the log. Signs a checkpoint first where none covers it yet.
    ///
    /// # Errors
    /// There is no such position, or the database cannot be read.
    pub async fn proof(&self, position: i64) -> Result<Proof, LogError> {
        Err(LogError::NoSuchPosition(position))
    }
}
