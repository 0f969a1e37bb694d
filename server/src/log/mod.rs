//! The event log: append, read, watch, prove, verify.

mod appender;
mod archive;
mod checkpoint;
mod database;
mod error;
mod fold;
mod plan;
mod raw;
mod read;
mod request;
mod rows;
mod same;
mod signing;
mod verify;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use events::envelope::Recorded;
use events::keys::StreamKey;
use events::merkle::{Checkpoint, Proof};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Connection, PgConnection};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

use appender::{Appender, Waiting};
use checkpoint::Checkpointer;
use fold::Folds;
use read::Reader;

pub use archive::{Archive, Manifest, archive_range, archive_sealed};
pub use checkpoint::EVERY as CHECKPOINT_EVERY;
pub(crate) use database::FLUSH_AS_WRITTEN;
pub use error::LogError;
pub use read::Stretch;
pub use request::{
    AppendOutcome, AppendRequest, Expected, MAX_REQUEST_BYTES, MAX_REQUEST_EVENTS, Placed, StreamWrite,
};
pub use signing::{KEY_FILE, signature_holds};
pub use verify::{Fault, VerifyOptions, VerifyReport, signature_fault, verify};

/// Requests that wait to be taken into a batch; beyond it callers wait to put theirs in.
const QUEUE: usize = 4096;

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
    /// Folder of archived ranges, for positions that the database no longer holds.
    pub archive: Option<PathBuf>,
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
            archive: None,
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

/// A handle on the event log; cheap to clone. When the last one is dropped, what was asked is settled and the
/// appender ends.
#[derive(Debug, Clone)]
pub struct Log {
    reader: Reader,
    requests: mpsc::Sender<Waiting>,
    seen: watch::Receiver<i64>,
    checkpointer: Arc<Checkpointer>,
    folds: Arc<Folds>,
}

/// Applies the migrations of the whole project. Needs the right to create tables and roles.
///
/// # Errors
/// The database cannot be reached or refused.
pub async fn migrate(database_url: &str) -> Result<(), LogError> {
    let mut connection = PgConnection::connect(database_url).await?;
    sqlx::migrate!("../migrations").run(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

impl Log {
    /// Opens the log of a migrated database and starts its appender.
    ///
    /// # Errors
    /// The database cannot be reached or is not migrated, or the key file cannot be read or made.
    pub async fn open(config: LogConfig) -> Result<Self, LogError> {
        let key = signing::open_key(&config.data_dir)?;
        let pool = PgPoolOptions::new()
            .max_connections(config.read_connections.max(1))
            .acquire_timeout(Duration::from_secs(30))
            .connect_with(database::connect_options(&config, "benchtrail-log")?)
            .await?;
        let archive = config.archive.as_deref().map(Archive::open).transpose()?.unwrap_or_default();
        let reader = Reader::with_archive(pool, archive);
        let checkpointer = Arc::new(Checkpointer::open(reader.clone(), key).await?);
        let (sender, seen) = watch::channel(0);
        let sender = Arc::new(sender);
        let (requests, waiting) = mpsc::channel(QUEUE);
        let (committed, mut commits) = mpsc::unbounded_channel();

        let mut appender = Appender::new(config.clone(), waiting, sender.clone(), committed);
        appender.connect().await?;
        tokio::spawn(appender.run());

        let signer = checkpointer.clone();
        tokio::spawn(async move {
            while let Some(commit) = commits.recv().await {
                if let Err(error) = signer.committed(commit).await {
                    tracing::error!(%error, "no checkpoint was signed; the next append tries again");
                }
            }
        });
        tokio::spawn(poll_head(reader.clone(), sender, config.poll));
        Ok(Self { reader, requests, seen, checkpointer, folds: Arc::default() })
    }

    /// Appends a request and returns when it is durable, or finally refused.
    ///
    /// The request is judged as a whole, apart from all others. If every event id of it is in the log already with
    /// the same content, the answer is [`AppendOutcome::AlreadyAppended`], whatever versions it expects: a resend is
    /// harmless. If only some are, or the content differs, it is [`AppendOutcome::Rejected`]: an id belongs to one
    /// request.
    ///
    /// # Errors
    /// The database is lost; whether the events were appended is then unknown, and sending them again is safe.
    pub async fn append(&self, request: AppendRequest) -> Result<AppendOutcome, LogError> {
        if let Some(reason) = request::fault(&request) {
            return Ok(AppendOutcome::Rejected { reason });
        }
        let (reply, outcome) = oneshot::channel();
        self.requests.send(Waiting::new(request, reply)).await.map_err(|_| LogError::Closed)?;
        let outcome = outcome.await.map_err(|_| LogError::Closed)??;
        if let AppendOutcome::VersionConflict { stream, .. } = &outcome {
            // Usually somebody was quicker. But should the database have been put back to an earlier state, then what is
            // remembered is wrong, and every try would be refused.
            self.folds.forget(stream);
        }
        Ok(outcome)
    }

    /// The state that a stream's events fold to by `step`, in order, from `None`; `None` where it has none. It is
    /// remembered, for each stream and type, so that only what was appended since is read: `step` must make the same state
    /// of the same events, and a type stand for one way to fold.
    ///
    /// # Errors
    /// The database cannot be read, or `step` fails.
    pub async fn fold<S, F, E>(
        &self,
        stream: &StreamKey,
        step: impl Fn(Option<S>, &Recorded) -> Result<S, F>,
    ) -> Result<Option<S>, E>
    where
        S: Clone + Send + Sync + 'static,
        E: From<LogError> + From<F>,
    {
        self.folds.fold(&self.reader, stream, step).await
    }

    /// What is remembered of a stream, with the version of the last event in it, without asking whether there are later
    /// ones: for who then expects exactly that version.
    pub fn remembered<S: Clone + Send + Sync + 'static>(&self, stream: &StreamKey) -> Option<(i64, S)> {
        self.folds.known(stream)
    }

    /// Remembers the state that a stream folds to, up to its event of this version, which whoever appended it knows: the
    /// same that [`Log::fold`] would make.
    pub fn remember<S: Send + Sync + 'static>(&self, stream: &StreamKey, version: i64, state: S) {
        self.folds.remember(stream, version, state);
    }

    /// Up to `limit` events (10,000 at most) of a stream, from `from_version` (1 for all), in order.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn read_stream(
        &self,
        stream: &StreamKey,
        from_version: i64,
        limit: i64,
    ) -> Result<Vec<Recorded>, LogError> {
        self.reader.read_stream(stream, from_version, limit).await
    }

    /// Up to `limit` events (10,000 at most) after position `after` (0 for all), in order and without a gap.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn read_all(&self, after: i64, limit: i64) -> Result<Vec<Recorded>, LogError> {
        self.reader.read_all(after, limit).await
    }

    /// The same of about `bytes` in all, and at least one where there is one: fewer than `limit` do not mean that there are no
    /// more.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn read_within(&self, after: i64, limit: i64, bytes: usize) -> Result<Vec<Recorded>, LogError> {
        self.reader.read_within(after, limit, bytes).await
    }

    /// The events of up to `span` positions (10,000 at most) after `after` whose types are not among `without`: for readers
    /// that nearly all of the log is nothing to.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn read_without(&self, after: i64, span: i64, without: &[&str]) -> Result<Stretch, LogError> {
        self.reader.read_without(after, span, without).await
    }

    /// Every event of every stream of a kind (such as `project`), in the order of the log. For kinds of few events.
    ///
    /// # Errors
    /// The database or the archive cannot be read.
    pub async fn read_kind(&self, kind: &str) -> Result<Vec<Recorded>, LogError> {
        self.reader.read_kind(kind).await
    }

    /// The event with this id.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn event_by_id(&self, event_id: Uuid) -> Result<Option<Recorded>, LogError> {
        self.reader.event_by_id(event_id).await
    }

    /// Where the events with these ids stand; ids that are not in the log are left out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn positions_of(&self, ids: &[Uuid]) -> Result<HashMap<Uuid, i64>, LogError> {
        self.reader.positions_of(ids).await
    }

    /// The version of a stream's last event; 0 where it has none.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn stream_version(&self, stream: &StreamKey) -> Result<i64, LogError> {
        self.reader.stream_version(stream).await
    }

    /// The committed head, as the database has it now.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn head(&self) -> Result<Head, LogError> {
        let mut connection = self.reader.pool().acquire().await?;
        Ok(database::head(&mut connection).await?.into())
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
    /// The database cannot be read or written, or what is in it does not fit.
    pub async fn checkpoint(&self) -> Result<Option<Checkpoint>, LogError> {
        self.checkpointer.now(self.head().await?).await
    }

    /// The proof that the event at a position is in the log. Signs a checkpoint first where none covers it yet.
    ///
    /// # Errors
    /// There is no such position, the database cannot be read, or what is in it does not fit.
    pub async fn proof(&self, position: i64) -> Result<Proof, LogError> {
        let head = self.head().await?;
        if position < 1 || position > head.position {
            return Err(LogError::NoSuchPosition(position));
        }
        if let Some(proof) = self.checkpointer.proof(position).await? {
            return Ok(proof);
        }
        self.checkpointer.now(head).await?;
        self.checkpointer.proof(position).await?.ok_or(LogError::NoSuchPosition(position))
    }

    /// The public half of the key that signs this process's checkpoints.
    pub fn public_key(&self) -> [u8; 32] {
        self.checkpointer.public_key()
    }

    /// A pool of connections that may read the log.
    pub fn pool(&self) -> &PgPool {
        self.reader.pool()
    }
}

/// Looks the head up again and again, to see what other processes appended.
async fn poll_head(reader: Reader, seen: Arc<watch::Sender<i64>>, every: Duration) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = seen.closed() => return,
        }
        // A database that does not answer is the appender's to report.
        if let Ok(position) =
            sqlx::query_scalar::<_, i64>("select position from log_head").fetch_one(reader.pool()).await
        {
            seen.send_if_modified(|known| {
                let newer = position > *known;
                if newer {
                    *known = position;
                }
                newer
            });
        }
    }
}
