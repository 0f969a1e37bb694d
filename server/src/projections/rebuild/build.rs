//! Filling the next generation from position 0.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use sqlx::{PgConnection, PgPool};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Site;
use crate::log::Log;
use crate::projections::batch::{Batch, BatchError, Folded, Poison, interests};
use crate::projections::runner::run_to;
use crate::projections::store::{self, Generation};
use crate::projections::{AnyTable, Projection, ProjectionError, StoreError, registry, schema};

/// Events read at a time.
const BATCH: i64 = 10_000;
/// Rows a projection holds in memory before they are written and it goes on from the database.
const HELD: usize = 400_000;
/// Batches read ahead of the slowest projection.
const AHEAD: usize = 2;

/// A projection that is built, up to the target.
pub(super) struct Built {
    pub(super) events: i64,
    pub(super) quarantined: i64,
    pub(super) done: Instant,
}

/// One pass over the log, or more: a projection that meets an event it cannot fold begins again without it.
pub(super) async fn all(
    pool: &PgPool,
    log: &Log,
    sites: &[Site],
    target: i64,
    stop: &CancellationToken,
) -> Result<Vec<Built>, ProjectionError> {
    let mut built: Vec<Option<Built>> = sites.iter().map(|_| None).collect();
    let mut left_out: Vec<BTreeMap<i64, Poison>> = sites.iter().map(|_| BTreeMap::new()).collect();
    while built.iter().any(Option::is_none) {
        let mut senders = Vec::new();
        let mut tasks = Vec::new();
        for (nth, site) in sites.iter().enumerate().filter(|(nth, _)| built[*nth].is_none()) {
            let Some(projection) = registry().into_iter().find(|p| p.name() == site.name) else { continue };
            let (sender, receiver) = mpsc::channel(AHEAD);
            senders.push(sender);
            let worker = Worker {
                pool: pool.clone(),
                at: Generation {
                    name: site.name.to_owned(),
                    generation: site.generation,
                    code_version: site.version,
                    position: 0,
                },
                projection,
                complete: true,
                left_out: std::mem::take(&mut left_out[nth]),
                folded: Folded::default(),
            };
            tasks.push((nth, tokio::spawn(worker.run(receiver, target))));
        }
        let fed = feed(log, senders, target, stop).await;
        for (nth, task) in tasks {
            match task
                .await
                .map_err(|e| StoreError::Database(sqlx::Error::Io(std::io::Error::other(e))))??
            {
                Outcome::Built(done) => built[nth] = Some(done),
                Outcome::Again(poison) => left_out[nth] = poison,
                // Rows that the database refuses: event by event, as the live fold finds and quarantines them.
                Outcome::Refused => built[nth] = Some(one_by_one(pool, log, &sites[nth], target).await?),
                Outcome::Unfinished => {}
            }
        }
        fed?;
    }
    Ok(built.into_iter().flatten().collect())
}

/// Builds one projection through the database, the way the live tables are filled.
async fn one_by_one(pool: &PgPool, log: &Log, site: &Site, target: i64) -> Result<Built, ProjectionError> {
    let events = run_to(pool, log, site.name, site.generation, target).await?;
    let quarantined: i64 =
        sqlx::query_scalar("select count(*) from read.quarantine where name = $1 and generation = $2")
            .bind(site.name)
            .bind(site.generation)
            .fetch_one(pool)
            .await?;
    Ok(Built { events, quarantined, done: Instant::now() })
}

/// Reads the log and hands each batch to every worker that still listens.
async fn feed(
    log: &Log,
    mut senders: Vec<mpsc::Sender<Arc<Batch>>>,
    target: i64,
    stop: &CancellationToken,
) -> Result<(), ProjectionError> {
    let all = registry();
    let interests = interests(all.iter());
    let mut after = 0;
    while after < target && !senders.is_empty() {
        if stop.is_cancelled() {
            return Err(ProjectionError::Cancelled);
        }
        let batch = Arc::new(Batch::read(log, after, BATCH.min(target - after), &interests).await?);
        if batch.last == after {
            break;
        }
        after = batch.last;
        let mut listening = Vec::with_capacity(senders.len());
        for sender in senders {
            // One that begins again, or failed, has hung up.
            if sender.send(batch.clone()).await.is_ok() {
                listening.push(sender);
            }
        }
        senders = listening;
    }
    Ok(())
}

enum Outcome {
    Built(Built),
    /// An event cannot be folded: begin again without these.
    Again(BTreeMap<i64, Poison>),
    /// The database refuses a row; the tables are empty again, with their keys and indexes.
    Refused,
    /// The feed ended early.
    Unfinished,
}

struct Worker {
    pool: PgPool,
    at: Generation,
    projection: Box<dyn Projection>,
    /// Whether every row is held in memory, and nothing written yet.
    complete: bool,
    left_out: BTreeMap<i64, Poison>,
    folded: Folded,
}

impl Worker {
    async fn run(
        mut self,
        mut batches: mpsc::Receiver<Arc<Batch>>,
        target: i64,
    ) -> Result<Outcome, ProjectionError> {
        self.projection.tables().iter_mut().for_each(|t| t.set_complete(true));
        let mut position = 0;
        while let Some(batch) = batches.recv().await {
            match self.take(&batch, position).await {
                Ok(()) => position = batch.last,
                Err(BatchError::Poison(poison)) => {
                    tracing::warn!(
                        projection = self.at.name,
                        position = poison.position,
                        error = poison.error,
                        "an event cannot be folded; beginning again without it"
                    );
                    self.left_out.insert(poison.position, poison);
                    self.reset().await?;
                    return Ok(Outcome::Again(self.left_out));
                }
                Err(BatchError::Store(error)) if error.is_refusal() => return self.refused(&error).await,
                Err(BatchError::Store(error)) => return Err(error.into()),
            }
        }
        if position < target {
            return Ok(Outcome::Unfinished);
        }
        match self.finish(position).await {
            Err(ProjectionError::Store(error)) if error.is_refusal() => return self.refused(&error).await,
            finished => finished?,
        }
        Ok(Outcome::Built(Built {
            events: self.folded.events,
            quarantined: self.left_out.len() as i64,
            done: Instant::now(),
        }))
    }

    /// Folds a batch: in memory while everything fits there, through the database afterwards.
    async fn take(&mut self, batch: &Batch, position: i64) -> Result<(), BatchError> {
        let range = (position, batch.last);
        let generation = self.at.generation;
        if self.complete {
            let folded =
                batch.fold(self.projection.as_mut(), None, generation, range, &self.left_out).await?;
            self.folded.events += folded.events;
            self.folded.unknown += folded.unknown;
            let held: usize = self.projection.tables().iter().map(|t| t.held()).sum();
            if held > HELD {
                self.write(batch.last).await?;
            }
            return Ok(());
        }
        if !batch.concerns(self.projection.as_ref(), range.0, range.1) {
            return Ok(());
        }
        let database = |e: sqlx::Error| BatchError::Store(StoreError::from(e));
        let mut tx = self.pool.begin().await.map_err(database)?;
        let folded =
            batch.fold(self.projection.as_mut(), Some(&mut *tx), generation, range, &self.left_out).await?;
        for table in self.projection.tables() {
            table.flush(&mut tx, generation).await?;
            if table.held() > HELD / 4 {
                table.clear();
            }
        }
        tx.commit().await.map_err(database)?;
        self.folded.events += folded.events;
        self.folded.unknown += folded.unknown;
        Ok(())
    }

    /// Writes everything held by COPY, makes the keys, and goes on from the database.
    async fn write(&mut self, position: i64) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        sqlx::query("set local statement_timeout = 0").execute(&mut *tx).await?;
        let generation = self.at.generation;
        for table in self.projection.tables() {
            table.copy(&mut tx, generation).await?;
            schema::create_keys(&mut tx, table, generation).await?;
            analyze(&mut tx, table, generation).await?;
            table.set_complete(false);
            table.clear();
        }
        tx.commit().await?;
        tracing::debug!(projection = self.at.name, position, "rows written");
        self.complete = false;
        Ok(())
    }

    async fn finish(&mut self, position: i64) -> Result<(), ProjectionError> {
        let all_at_once = self.complete;
        if all_at_once {
            self.write(position).await?;
        }
        let mut tx = self.pool.begin().await?;
        sqlx::query("set local statement_timeout = 0").execute(&mut *tx).await?;
        for table in self.projection.tables() {
            schema::create_indexes(&mut tx, table, self.at.generation).await?;
            if !all_at_once {
                analyze(&mut tx, table, self.at.generation).await?;
            }
        }
        store::quarantine(&mut tx, &self.at.name, self.at.generation, self.left_out.values()).await?;
        if !store::advance(&mut tx, &self.at, position, self.folded).await? {
            return Err(ProjectionError::Busy(self.at.name.clone()));
        }
        tx.commit().await?;
        Ok(())
    }

    async fn refused(mut self, error: &StoreError) -> Result<Outcome, ProjectionError> {
        tracing::warn!(projection = self.at.name, %error, "the database refuses a row; beginning again event by event");
        self.reset().await?;
        let mut tx = self.pool.begin().await?;
        for table in self.projection.tables() {
            schema::create_keys(&mut tx, table, self.at.generation).await?;
            schema::create_indexes(&mut tx, table, self.at.generation).await?;
        }
        tx.commit().await?;
        Ok(Outcome::Refused)
    }

    /// Empties the tables, keys and indexes too.
    async fn reset(&mut self) -> Result<(), ProjectionError> {
        let mut tx = self.pool.begin().await?;
        schema::drop_tables(&mut tx, self.projection.as_mut(), self.at.generation).await?;
        for table in self.projection.tables() {
            let table: &dyn AnyTable = table;
            schema::create_table(&mut tx, table, self.at.generation).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}

/// Lets the database know what a table holds.
async fn analyze(conn: &mut PgConnection, table: &dyn AnyTable, generation: i32) -> Result<(), sqlx::Error> {
    let name = crate::projections::relation(table.name(), generation);
    schema::run(conn, vec![format!("analyze {name}")]).await
}
