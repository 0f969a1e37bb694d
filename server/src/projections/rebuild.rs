//! Rebuild: every view again from the log, beside the live tables, and the proof that they are equal.
//!
//! One pass over the log feeds all projections. Each folds in memory into rows that are written by COPY once, and
//! indexed afterwards. Then each catches up, is compared with the live tables at the same position, and the views flip
//! in one transaction. Whoever reads meanwhile reads the old tables until that moment and the new ones from then on.

mod build;
mod proof;

use std::time::{Duration, Instant};

use serde::Serialize;
use sqlx::{Connection, PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use super::runner::{run_to, unknown};
use super::{Projection, ProjectionError, registry, schema};
use crate::log::Log;

/// How often the flip waits for readers of the old views before it gives up.
const FLIP_ATTEMPTS: u32 = 20;
/// How long it waits each time, in PostgreSQL's words: new readers wait behind it for as long.
const FLIP_WAITS: &str = "set local lock_timeout = '500ms'";
/// How long readers are let through in between.
const FLIP_PAUSE: Duration = Duration::from_millis(500);

/// One table, live and rebuilt, at the same position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableProof {
    /// The table, without its generation.
    pub table: String,
    /// Rows in the live table.
    pub rows_live: i64,
    /// Rows in the rebuilt one.
    pub rows_rebuilt: i64,
    /// SHA-256 over all rows of the live table in key order, hexadecimal.
    pub sha256_live: String,
    /// The same of the rebuilt one.
    pub sha256_rebuilt: String,
    /// Whether they are the same, byte for byte.
    pub equal: bool,
}

/// What a rebuild did and found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RebuildReport {
    /// The projection.
    pub projection: String,
    /// The position at which both were compared; the one flipped at where there was nothing to compare with.
    pub position: i64,
    /// Events folded.
    pub events: i64,
    /// Events that could not be folded and are quarantined.
    pub quarantined: i64,
    /// Seconds from position 0 until the new tables were complete and indexed.
    pub fold_s: f64,
    /// The generation that was live.
    pub from_generation: i32,
    /// The generation that was built.
    pub to_generation: i32,
    /// Whether the views point at the rebuilt tables now.
    pub flipped: bool,
    /// Whether they do not because something read them for as long as the flip waits.
    pub being_read: bool,
    /// Every table's proof. Empty where there was nothing of the same code version to compare with.
    pub tables: Vec<TableProof>,
}

impl RebuildReport {
    /// Whether every table came out the same.
    pub fn equal(&self) -> bool {
        self.tables.iter().all(|t| t.equal)
    }
}

/// A projection under construction.
struct Site {
    name: &'static str,
    version: i32,
    from_generation: i32,
    from_version: i32,
    generation: i32,
    /// Keeps another rebuild of the same projection away while this connection lives.
    lock: PgConnection,
}

impl Site {
    /// Lets other rebuilds of the same projection begin. The lock is given back first: a session that is closed keeps it
    /// until its process has ended.
    async fn done(mut self) -> Result<(), sqlx::Error> {
        sqlx::query("select pg_advisory_unlock_all()").execute(&mut self.lock).await?;
        self.lock.close().await
    }
}

/// What becomes of rebuilt rows that differ from the live ones although the same code filled both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Differing {
    /// The views keep showing the live ones, so that somebody can look into it.
    Refused,
    /// The rebuilt ones take their place: the log is the truth.
    Replace,
}

/// Rebuilds one projection, or all of them in one pass over the log. Reads go on all the time; the views flip in one
/// transaction, and only when the rebuilt rows equal the live ones or the code that fills them has another version.
///
/// # Errors
/// The database or the log cannot be read, there is no such projection, views were being read all the while (after every
/// other projection was rebuilt), or `stop` was cancelled.
pub async fn rebuild(
    pool: &PgPool,
    log: &Log,
    only: Option<&str>,
    stop: &CancellationToken,
) -> Result<Vec<RebuildReport>, ProjectionError> {
    let reports = rebuild_with(pool, log, only, Differing::Refused, stop).await?;
    match reports.iter().find(|report| report.being_read) {
        Some(report) => Err(ProjectionError::BeingRead(report.projection.clone())),
        None => Ok(reports),
    }
}

/// The same, with a word on what becomes of rows that differ. A projection whose views are being read all the while keeps
/// none of the others from being rebuilt: its report says so.
///
/// # Errors
/// The database or the log cannot be read, there is no such projection, or `stop` was cancelled.
pub async fn rebuild_with(
    pool: &PgPool,
    log: &Log,
    only: Option<&str>,
    differing: Differing,
    stop: &CancellationToken,
) -> Result<Vec<RebuildReport>, ProjectionError> {
    schema::ensure(pool).await?;
    let chosen: Vec<Box<dyn Projection>> =
        registry().into_iter().filter(|p| only.is_none_or(|name| name == p.name())).collect();
    if let Some(name) = only.filter(|_| chosen.is_empty()) {
        return Err(unknown(name));
    }
    let mut sites = Vec::new();
    for mut projection in chosen {
        sites.push(prepare(pool, projection.as_mut()).await?);
    }
    let begun = Instant::now();
    let target = log.head().await?.position;
    let built = build::all(pool, log, &sites, target, stop).await?;
    let mut reports = Vec::new();
    for (site, built) in sites.into_iter().zip(built) {
        if stop.is_cancelled() {
            return Err(ProjectionError::Cancelled);
        }
        let mut report = RebuildReport {
            projection: site.name.to_owned(),
            position: target,
            events: built.events,
            quarantined: built.quarantined,
            fold_s: built.done.duration_since(begun).as_secs_f64(),
            from_generation: site.from_generation,
            to_generation: site.generation,
            flipped: false,
            being_read: false,
            tables: Vec::new(),
        };
        let comparable = site.from_version == site.version;
        if comparable {
            (report.position, report.tables) = proof::compare(pool, log, &site, target, stop).await?;
        }
        if report.equal() || differing == Differing::Replace {
            match flip(pool, log, &site).await {
                Ok(()) => report.flipped = true,
                Err(ProjectionError::BeingRead(_)) => report.being_read = true,
                Err(error) => return Err(error),
            }
        }
        tracing::info!(
            projection = report.projection,
            position = report.position,
            events = report.events,
            equal = report.equal(),
            flipped = report.flipped,
            "rebuilt"
        );
        site.done().await?;
        reports.push(report);
    }
    Ok(reports)
}

/// Makes the next generation's empty tables; throws away what a rebuild that did not finish left behind.
async fn prepare(pool: &PgPool, projection: &mut dyn Projection) -> Result<Site, ProjectionError> {
    let (name, version) = (projection.name(), projection.version());
    let mut lock = pool.acquire().await?.detach();
    let free: bool = sqlx::query_scalar("select pg_try_advisory_lock(hashtext('benchtrail rebuild ' || $1))")
        .bind(name)
        .fetch_one(&mut lock)
        .await?;
    if !free {
        return Err(ProjectionError::Busy(name.to_owned()));
    }
    let mut tx = pool.begin().await?;
    let unfinished: Vec<i32> = sqlx::query_scalar(
        "delete from read.projections where name = $1 and state = 'building' returning generation",
    )
    .bind(name)
    .fetch_all(&mut *tx)
    .await?;
    for generation in unfinished {
        schema::drop_tables(&mut tx, projection, generation).await?;
        sqlx::query("delete from read.quarantine where name = $1 and generation = $2")
            .bind(name)
            .bind(generation)
            .execute(&mut *tx)
            .await?;
    }
    let (from_generation, from_version): (i32, i32) = sqlx::query_as(
        "select generation, code_version from read.projections where name = $1 and state = 'live'",
    )
    .bind(name)
    .fetch_one(&mut *tx)
    .await?;
    let generation: i32 = sqlx::query_scalar(
        "insert into read.projections (name, generation, code_version, state)
         select $1, max(generation) + 1, $2, 'building' from read.projections where name = $1 returning generation",
    )
    .bind(name)
    .bind(version)
    .fetch_one(&mut *tx)
    .await?;
    for table in projection.tables() {
        schema::create_table(&mut tx, table, generation).await?;
    }
    tx.commit().await?;
    Ok(Site { name, version, from_generation, from_version, generation, lock })
}

/// Points the views at the new generation. The live checkpoint is held meanwhile, so that both stand at the same
/// position when they change places, and no event is folded into the old tables afterwards.
async fn flip(pool: &PgPool, log: &Log, site: &Site) -> Result<(), ProjectionError> {
    for _ in 0..FLIP_ATTEMPTS {
        match try_flip(pool, log, site).await {
            Err(ProjectionError::Database(error)) if waited_too_long(&error) => {
                tracing::info!(projection = site.name, "the views are being read; the flip tries again");
                tokio::time::sleep(FLIP_PAUSE).await;
            }
            other => return other,
        }
    }
    Err(ProjectionError::BeingRead(site.name.to_owned()))
}

/// `lock_not_available`.
fn waited_too_long(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(e) if e.code().as_deref() == Some("55P03"))
}

async fn try_flip(pool: &PgPool, log: &Log, site: &Site) -> Result<(), ProjectionError> {
    // Close to the end first, so that the live checkpoint is held for a moment only.
    let near: i64 = live_position(pool, site).await?;
    run_to(pool, log, site.name, site.generation, near).await?;
    let mut tx = pool.begin().await?;
    sqlx::query(FLIP_WAITS).execute(&mut *tx).await?;
    let position: i64 = sqlx::query_scalar(
        "select position from read.projections where name = $1 and generation = $2 and state = 'live' for update",
    )
    .bind(site.name)
    .bind(site.from_generation)
    .fetch_one(&mut *tx)
    .await?;
    run_to(pool, log, site.name, site.generation, position).await?;
    sqlx::query("update read.projections set state = 'retired' where name = $1 and generation = $2")
        .bind(site.name)
        .bind(site.from_generation)
        .execute(&mut *tx)
        .await?;
    sqlx::query("update read.projections set state = 'live' where name = $1 and generation = $2")
        .bind(site.name)
        .bind(site.generation)
        .execute(&mut *tx)
        .await?;
    schema::refresh_views(&mut tx).await?;
    tx.commit().await?;
    match drop_older(pool, site).await {
        Err(ProjectionError::Database(error)) if waited_too_long(&error) => {
            tracing::info!(
                projection = site.name,
                "tables of before are still being read; the next rebuild drops them"
            );
            Ok(())
        }
        dropped => dropped,
    }
}

/// Keeps the generation that was live until now, and drops those before it.
async fn drop_older(pool: &PgPool, site: &Site) -> Result<(), ProjectionError> {
    let mut tx = pool.begin().await?;
    sqlx::query(FLIP_WAITS).execute(&mut *tx).await?;
    let older: Vec<i32> = sqlx::query_scalar(
        "delete from read.projections where name = $1 and generation < $2 and state = 'retired' returning generation",
    )
    .bind(site.name)
    .bind(site.from_generation)
    .fetch_all(&mut *tx)
    .await?;
    for generation in older {
        for mut projection in registry().into_iter().filter(|p| p.name() == site.name) {
            schema::drop_tables(&mut tx, projection.as_mut(), generation).await?;
        }
        sqlx::query("delete from read.quarantine where name = $1 and generation = $2")
            .bind(site.name)
            .bind(generation)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(())
}

async fn live_position(pool: &PgPool, site: &Site) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("select position from read.projections where name = $1 and generation = $2")
        .bind(site.name)
        .bind(site.from_generation)
        .fetch_one(pool)
        .await
}
