//! The group-commit appender: one task that takes whatever requests are waiting and appends them in one round trip.
//!
//! No timer holds a batch back: while one batch commits, the next one gathers by itself. Each request is judged on
//! its own. The common case, in which everything is as remembered, is one call of `log_append`, and up to
//! [`flight::MOST`] of these are under way at once, each on a connection of its own and prepared as if those before it
//! were committed; the database lets them commit in that order only. Whatever does not fit, and whatever was prepared
//! on something that did not happen, is looked up and judged again, one batch after another, so that a wrong memory
//! costs round trips and never a wrong answer.

mod attempt;
mod flight;
mod waiting;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::{mpsc, watch};

use self::attempt::Done;
use self::flight::InFlight;
use self::waiting::Gathered;
pub(super) use self::waiting::Waiting;
use super::database::{self, HeadState, Meaning};
use super::plan::StreamCache;
use super::request::{AppendOutcome, Placed};
use super::rows::RowType;
use super::{LogConfig, LogError};

/// Misses after which the head's lock is taken before the batch is prepared.
const OPTIMISTIC_TRIES: u32 = 2;
/// Positions of one partition; `log_ensure_partitions` has the same number.
pub(super) const PARTITION: i64 = 1_000_000;
/// Longest wait for one answer of the database before the connection is given up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Leaves that were committed, from a position on.
#[derive(Debug)]
pub(super) struct Committed {
    pub first: i64,
    pub leaves: Vec<[u8; 32]>,
}

/// How an attempt to append a batch ended, where it did not fail.
enum Attempt {
    /// The requests that fitted are committed and answered; those that did not are still in the batch.
    Committed,
    /// The head was not where it was thought to be. Nothing was written.
    Overtaken,
}

pub(super) struct Appender {
    config: LogConfig,
    waiting: mpsc::Receiver<Waiting>,
    /// Connections that are in the middle of nothing.
    idle: Vec<PgConnection>,
    row_type: RowType,
    /// The end of the log as it is once everything under way is committed; `None` where it must be read.
    head: Option<HeadState>,
    /// The streams as they are then.
    streams: StreamCache,
    seen: Arc<watch::Sender<i64>>,
    committed: mpsc::UnboundedSender<Committed>,
    /// Since when the database has not answered.
    lost_since: Option<Instant>,
}

impl Appender {
    pub fn new(
        config: LogConfig,
        waiting: mpsc::Receiver<Waiting>,
        seen: Arc<watch::Sender<i64>>,
        committed: mpsc::UnboundedSender<Committed>,
    ) -> Self {
        let streams = StreamCache::default();
        let row_type = RowType::default();
        let idle = Vec::new();
        Self { config, waiting, idle, row_type, head: None, streams, seen, committed, lost_since: None }
    }

    /// Runs until every handle on the log is gone and what they asked for is settled.
    pub async fn run(mut self) {
        let mut gathered = Gathered::default();
        let mut in_flight = InFlight::default();
        // Batches that did not go through as prepared. Nothing is sent before they are settled.
        let mut unsettled: Vec<Vec<Waiting>> = Vec::new();
        let mut open = true;
        while open || !gathered.is_empty() || !in_flight.is_empty() || !unsettled.is_empty() {
            if in_flight.is_empty() {
                if !unsettled.is_empty() {
                    // What is remembered may rest on what did not happen.
                    self.head = None;
                    for batch in unsettled.drain(..) {
                        self.settle(batch, 1).await;
                    }
                }
                if gathered.is_empty() {
                    open = gathered.receive(&mut self.waiting).await;
                }
            } else {
                tokio::select! {
                    biased;
                    landed = in_flight.next() => self.landed(landed, &mut unsettled),
                    received = gathered.receive(&mut self.waiting), if open && gathered.has_room() => open = received,
                }
            }
            if !unsettled.is_empty() || gathered.is_empty() {
                continue;
            }
            // Lets callers that are ready to run put their requests in before the batch is closed.
            tokio::task::yield_now().await;
            gathered.receive_ready(&mut self.waiting);
            while unsettled.is_empty()
                && !gathered.is_empty()
                && let Some(most) = in_flight.room(&gathered)
            {
                let batch = gathered.batch(most);
                if let Err(batch) = self.launch(batch, &mut in_flight).await {
                    unsettled.push(batch);
                }
            }
        }
        for connection in self.idle {
            let _ = connection.close().await;
        }
    }

    /// Opens a connection where none is idle, and reads the head where it is not known.
    pub async fn connect(&mut self) -> Result<(), LogError> {
        if self.idle.is_empty() {
            let connection = self.open_connection().await?;
            self.idle.push(connection);
        }
        if self.head.is_none() {
            let connection = self.idle.last_mut().expect("one was just put there");
            let head = answered(database::head(connection)).await?;
            answered(ensure_partitions(connection, head.position + 1)).await?;
            self.head = Some(head);
            self.see(head.position);
        }
        Ok(())
    }

    async fn open_connection(&mut self) -> Result<PgConnection, LogError> {
        let options = database::connect_options(&self.config, "benchtrail-appender")?.options([
            // With these the generic plan of the UNNEST joins keeps to the indexes.
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("enable_seqscan", "off"),
            ("plan_cache_mode", "force_generic_plan"),
            ("jit", "off"),
            database::FLUSH_AS_WRITTEN,
            ("lock_timeout", "5s"),
            ("statement_timeout", "15s"),
            ("idle_in_transaction_session_timeout", "15s"),
        ]);
        let mut connection = answered(async { Ok(options.connect().await?) })
            .await
            .map_err(|error| LogError::Unavailable(error.to_string()))?;
        self.row_type = answered(RowType::look_up(&mut connection)).await?;
        Ok(connection)
    }

    fn see(&self, position: i64) {
        self.seen.send_if_modified(|seen| {
            let newer = position > *seen;
            if newer {
                *seen = position;
            }
            newer
        });
    }

    /// Appends or refuses every request of a batch, with nothing else under way.
    async fn settle(&mut self, mut batch: Vec<Waiting>, mut misses: u32) {
        while !batch.is_empty() {
            let error = match self.attempt(&mut batch, misses).await {
                Ok(Attempt::Committed) => {
                    self.lost_since = None;
                    // Whatever is left did not fit what was remembered: look everything up.
                    misses = misses.max(1);
                    continue;
                }
                Ok(Attempt::Overtaken) => {
                    misses += 1;
                    continue;
                }
                Err(error) => error,
            };
            match database::meaning(&error) {
                Meaning::Stale => misses += 1,
                // A partition that is missing is made on connecting.
                Meaning::Lost | Meaning::Passing | Meaning::NoPartition => {
                    tracing::warn!(%error, "the append did not go through; trying again");
                    self.start_anew();
                    batch = self.patience(batch, &error, misses).await;
                    misses += 1;
                }
                Meaning::Content if batch.len() > 1 => {
                    // One of the requests is at fault. Alone, each gets its own answer.
                    for waiting in batch {
                        Box::pin(self.settle(vec![waiting], 1)).await;
                    }
                    return;
                }
                Meaning::Content => {
                    self.start_anew();
                    for waiting in batch.drain(..) {
                        let reason = format!("the database refused the event: {error}");
                        waiting.answer(AppendOutcome::Rejected { reason });
                    }
                }
            }
        }
    }

    /// Starts anew with the next try: fresh connections, and the head and the streams as the database has them. A batch
    /// that was under way when its connection was lost may never be committed, and with it the streams that it made,
    /// whose numbers then go to others.
    fn start_anew(&mut self) {
        self.idle.clear();
        self.head = None;
        self.streams = StreamCache::default();
    }

    /// Waits a little before the next try; once the database has been gone for too long, tells the callers.
    async fn patience(&mut self, batch: Vec<Waiting>, error: &LogError, misses: u32) -> Vec<Waiting> {
        let since = *self.lost_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.config.give_up_after {
            for waiting in batch {
                waiting.fail(LogError::Unavailable(error.to_string()));
            }
            return Vec::new();
        }
        tokio::time::sleep(Duration::from_millis((20 << misses.min(6)).min(1000))).await;
        batch
    }

    /// One try: with the first, what is remembered is trusted; after a miss everything is looked up; after two, the
    /// head is locked before.
    async fn attempt(&mut self, batch: &mut Vec<Waiting>, misses: u32) -> Result<Attempt, LogError> {
        self.connect().await?;
        let mut connection = self.idle.pop().expect("connected above");
        let result = if misses >= OPTIMISTIC_TRIES {
            self.attempt_locked(&mut connection, batch).await
        } else {
            self.attempt_optimistic(&mut connection, batch, misses > 0).await
        };
        // A connection that was left in the middle of something is not used again: it may have the turn to write.
        if result.is_ok() {
            self.idle.push(connection);
        }
        result
    }

    /// Takes up what a batch leaves behind once it is committed, for those that follow it.
    fn advance(&mut self, done: &Done) {
        self.head = Some(done.new);
        for (key, state) in &done.streams {
            self.streams.insert(key.clone(), *state);
        }
    }

    /// Takes note of a commit and answers the requests that it appended, leaving the others in the batch.
    fn committed(&mut self, batch: &mut Vec<Waiting>, done: Done) {
        let first = done.old.position + 1;
        self.lost_since = None;
        self.see(done.new.position);
        let _ = self.committed.send(Committed { first, leaves: done.leaves });

        let mut accepted: HashMap<usize, Vec<Placed>> = done.accepted.into_iter().collect();
        for (index, waiting) in std::mem::take(batch).into_iter().enumerate() {
            match accepted.remove(&index) {
                Some(events) => waiting.answer(appended(events)),
                None => batch.push(waiting),
            }
        }
        if first / PARTITION != (done.new.position + 1) / PARTITION {
            self.make_partitions_ahead(done.new.position + 1);
        }
    }

    /// Makes the partition after the present one, beside the appends and long before it is needed.
    fn make_partitions_ahead(&self, position: i64) {
        let config = self.config.clone();
        tokio::spawn(async move {
            let made = async {
                let mut connection =
                    database::connect_options(&config, "benchtrail-partitions")?.connect().await?;
                ensure_partitions(&mut connection, position).await?;
                connection.close().await?;
                Ok::<(), LogError>(())
            };
            if let Err(error) = made.await {
                tracing::error!(%error, position, "the next partition of the event log could not be made");
            }
        });
    }
}

fn appended(events: Vec<Placed>) -> AppendOutcome {
    // A request without events never gets here.
    let first = events.first().map_or(0, |placed| placed.position);
    let last = events.last().map_or(0, |placed| placed.position);
    AppendOutcome::Appended { first, last, events }
}

/// Waits for the database, but not for ever: a connection that went silent counts as lost.
async fn answered<T>(answer: impl Future<Output = Result<T, LogError>>) -> Result<T, LogError> {
    match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(LogError::Database(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))),
    }
}

async fn ensure_partitions(connection: &mut PgConnection, position: i64) -> Result<(), LogError> {
    sqlx::query("select log_ensure_partitions($1)").bind(position).execute(connection).await?;
    Ok(())
}
