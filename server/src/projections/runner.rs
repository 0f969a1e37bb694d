//! The runner: reads the log once for all projections, and moves each of them in a transaction of its own.

mod publish;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use sqlx::{Connection, PgConnection, PgPool};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::publish::{publish, publish_positions};
use super::batch::{Batch, BatchError, Poison, interests};
use super::handle::{Handle, Status};
use super::store::{self, Generation};
use super::{Projection, ProjectionError, StoreError, registry};
use crate::log::Log;

/// Events read at a time.
const BATCH: i64 = 2000;
/// Rows a projection may hold between batches.
const HELD: usize = 20_000;
/// How often the log and the checkpoints are looked at although nothing woke the runner.
const POLL: Duration = Duration::from_secs(1);
/// How often a follower looks at the leader's checkpoints while the log grows.
const FOLLOW: Duration = Duration::from_millis(50);
/// The lock that makes a leader.
const LEADER_LOCK: i64 = 0x6274_0001;

/// Starts the runner in a task of its own.
pub(super) fn start(pool: PgPool, log: Log, stop: CancellationToken) -> Handle {
    let (sender, receiver) = watch::channel(Arc::<Status>::default());
    tokio::spawn(async move {
        let mut patience = Duration::from_millis(100);
        while !stop.is_cancelled() {
            let result = tokio::select! {
                () = stop.cancelled() => return,
                result = lead_or_follow(&pool, &log, &sender, &stop) => result,
            };
            match result {
                Ok(()) => patience = Duration::from_millis(100),
                Err(error) => {
                    tracing::warn!(%error, "projections pause, then go on from their checkpoints");
                    // A database that began anew may have lost the last of what was written to it: nobody counts on a
                    // position before it is read again.
                    sender.send_replace(Arc::default());
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(patience) => {}
                    }
                    patience = (patience * 2).min(Duration::from_secs(5));
                }
            }
        }
    });
    Handle::new(receiver)
}

/// Takes the lead where nobody has it and keeps it until something fails; follows the leader's checkpoints otherwise.
async fn lead_or_follow(
    pool: &PgPool,
    log: &Log,
    status: &watch::Sender<Arc<Status>>,
    stop: &CancellationToken,
) -> Result<(), ProjectionError> {
    let mut lock = pool.acquire().await?.detach();
    let mut seen = log.watch();
    loop {
        let leads: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)")
            .bind(LEADER_LOCK)
            .fetch_one(&mut lock)
            .await?;
        if leads {
            rebuild_outdated(pool, log, stop).await?;
            return lead(pool, log, status, &mut lock).await;
        }
        let since = Instant::now();
        while since.elapsed() < POLL {
            publish(pool, status, false).await?;
            let behind = status.borrow().position() < *seen.borrow_and_update();
            let pause = if behind { FOLLOW } else { POLL };
            let _ = tokio::time::timeout(pause, seen.changed()).await;
        }
    }
}

/// Rebuilds, in a task beside the others' work, what another version of the code filled. Until the views flip, readers
/// see the old tables.
async fn rebuild_outdated(pool: &PgPool, log: &Log, stop: &CancellationToken) -> Result<(), ProjectionError> {
    let versions: HashMap<&str, i32> = registry().iter().map(|p| (p.name(), p.version())).collect();
    let outdated: Vec<String> = store::live(pool)
        .await?
        .into_iter()
        .filter(|(g, _)| versions.get(g.name.as_str()).is_some_and(|version| *version != g.code_version))
        .map(|(g, _)| g.name)
        .collect();
    if outdated.is_empty() {
        return Ok(());
    }
    let (pool, log, stop) = (pool.clone(), log.clone(), stop.clone());
    tokio::spawn(async move {
        for name in outdated {
            tracing::info!(projection = name, "filled by another version; rebuilding beside the live tables");
            if let Err(error) = super::rebuild::rebuild(&pool, &log, Some(&name), &stop).await {
                tracing::error!(projection = name, %error, "not rebuilt; run `benchtrail rebuild`");
            }
        }
    });
    Ok(())
}

/// One projection at work.
struct Member {
    projection: Box<dyn Projection>,
    at: Generation,
    quarantined: bool,
    /// Events folded by this member so far.
    events: i64,
}

/// What a member did with a batch.
enum Step {
    /// It has folded all of it.
    Done,
    /// Its checkpoint is not where it was thought to be: another process moved it, or the views were flipped.
    Overtaken,
}

async fn lead(
    pool: &PgPool,
    log: &Log,
    status: &watch::Sender<Arc<Status>>,
    lock: &mut PgConnection,
) -> Result<(), ProjectionError> {
    let mut seen = log.watch();
    let mut members = load_members(pool).await?;
    // Those of all, also of one that becomes a member later, once it is rebuilt.
    let interests = interests(registry().iter());
    publish(pool, status, true).await?;
    let mut looked = Instant::now();
    loop {
        // A rebuild flips generations, another leader moves checkpoints: either shows in a compare-and-set that fails.
        let mut overtaken = false;
        let mut positions: Vec<i64> = members.iter().map(|m| m.at.position).collect();
        positions.sort_unstable();
        positions.dedup();
        let mut idle = true;
        for position in positions {
            let batch = Batch::read(log, position, BATCH, &interests).await?;
            if batch.last == position {
                continue;
            }
            idle = false;
            overtaken |= move_members(pool, &mut members, &batch, position).await?;
        }
        if overtaken {
            members = load_members(pool).await?;
        }
        publish_positions(status, &members);
        if members.iter().any(|m| m.quarantined) {
            publish(pool, status, true).await?;
            members.iter_mut().for_each(|m| m.quarantined = false);
        }
        if idle {
            let position = members.iter().map(|m| m.at.position).min().unwrap_or(0);
            let _ = tokio::time::timeout(POLL, seen.wait_for(|head| *head > position)).await;
        }
        if looked.elapsed() >= POLL {
            looked = Instant::now();
            lock.ping().await?;
            members = reload_if_changed(pool, members).await?;
            publish(pool, status, true).await?;
        }
    }
}

/// Moves every member that stands at `position` over the batch. True when one was overtaken.
async fn move_members(
    pool: &PgPool,
    members: &mut [Member],
    batch: &Batch,
    position: i64,
) -> Result<bool, ProjectionError> {
    let mut idle: Vec<(String, i32)> = Vec::new();
    let mut work = Vec::new();
    for member in members.iter_mut().filter(|m| m.at.position == position) {
        if batch.concerns(member.projection.as_ref(), position, batch.last) {
            work.push(project(pool, member, batch, batch.last));
        } else {
            idle.push((member.at.name.clone(), member.at.generation));
        }
    }
    let mut overtaken = false;
    let results = join_all(work).await;
    if !idle.is_empty() {
        let moved = store::advance_idle(pool, &idle, position, batch.last).await?;
        overtaken |= moved.len() < idle.len();
        for member in members.iter_mut().filter(|m| moved.contains(&m.at.name)) {
            member.at.position = batch.last;
        }
    }
    for result in results {
        overtaken |= matches!(result?, Step::Overtaken);
    }
    Ok(overtaken)
}

/// Folds the batch into one projection up to `to` and moves its checkpoint, in one transaction. An event that cannot be
/// folded is found, quarantined, and left out.
async fn project(
    pool: &PgPool,
    member: &mut Member,
    batch: &Batch,
    to: i64,
) -> Result<Step, ProjectionError> {
    let mut left_out: BTreeMap<i64, Poison> = BTreeMap::new();
    let mut upto = to;
    while member.at.position < to {
        match attempt(pool, member, batch, upto, &left_out).await {
            Ok(false) => return Ok(Step::Overtaken),
            Ok(true) => {
                member.quarantined |= !left_out.is_empty();
                left_out.clear();
                upto = to;
            }
            Err(BatchError::Poison(poison)) => {
                member.forget();
                tracing::error!(
                    projection = member.at.name,
                    position = poison.position,
                    error = poison.error,
                    "an event cannot be folded and is quarantined"
                );
                left_out.insert(poison.position, poison);
            }
            Err(BatchError::Store(error)) if error.is_refusal() => {
                member.forget();
                if upto - member.at.position > 1 {
                    // Which event it was is found by halving.
                    upto = member.at.position + (upto - member.at.position) / 2;
                    continue;
                }
                let Some(poison) = batch.poison_at(upto, error.to_string()) else { return Err(error.into()) };
                tracing::error!(projection = member.at.name, position = upto, %error,
                    "the database refuses what an event folds to; it is quarantined");
                left_out.insert(upto, poison);
            }
            Err(BatchError::Store(error)) => {
                member.forget();
                return Err(error.into());
            }
        }
    }
    Ok(Step::Done)
}

/// One transaction: checkpoint, rows, quarantine. False when the checkpoint was not where it was thought to be.
async fn attempt(
    pool: &PgPool,
    member: &mut Member,
    batch: &Batch,
    to: i64,
    left_out: &BTreeMap<i64, Poison>,
) -> Result<bool, BatchError> {
    let database = |e: sqlx::Error| BatchError::Store(StoreError::from(e));
    let Member { projection, at, events, .. } = member;
    let mut tx = pool.begin().await.map_err(database)?;
    let folded =
        batch.fold(projection.as_mut(), Some(&mut *tx), at.generation, (at.position, to), left_out).await?;
    // Taken before anything is written: whoever is overtaken writes nothing.
    if !store::advance(&mut tx, at, to, folded).await.map_err(database)? {
        return Ok(false);
    }
    for table in projection.tables() {
        table.flush(&mut tx, at.generation).await?;
    }
    store::quarantine(&mut tx, &at.name, at.generation, left_out.values().filter(|p| p.position <= to))
        .await
        .map_err(database)?;
    tx.commit().await.map_err(database)?;
    at.position = to;
    *events += folded.events;
    for table in projection.tables() {
        if table.held() > HELD {
            table.clear();
        }
    }
    Ok(true)
}

impl Member {
    /// Forgets the rows held: they are loaded again as they are needed.
    fn forget(&mut self) {
        for table in self.projection.tables() {
            table.clear();
        }
    }
}

/// The projections whose live tables this code fills. Those of another code version wait for their rebuild.
async fn load_members(pool: &PgPool) -> Result<Vec<Member>, ProjectionError> {
    let mut live: HashMap<String, Generation> =
        store::live(pool).await?.into_iter().map(|(g, _)| (g.name.clone(), g)).collect();
    let mut members = Vec::new();
    for projection in registry() {
        let Some(at) = live.remove(projection.name()) else { continue };
        if at.code_version == projection.version() {
            members.push(Member { projection, at, quarantined: false, events: 0 });
        }
    }
    Ok(members)
}

async fn reload_if_changed(pool: &PgPool, members: Vec<Member>) -> Result<Vec<Member>, ProjectionError> {
    let live = store::live(pool).await?;
    let same = members.iter().all(|m| live.iter().any(|(g, _)| *g == m.at));
    let all = registry().len() == members.len();
    if same && all { Ok(members) } else { load_members(pool).await }
}

/// Folds one generation of one projection up to exactly `to`, in this task; gives the number of events folded. Used by
/// rebuilds, and by tests.
///
/// # Errors
/// The database or the log cannot be read, or another process folds the same tables.
pub async fn run_to(
    pool: &PgPool,
    log: &Log,
    name: &str,
    generation: i32,
    to: i64,
) -> Result<i64, ProjectionError> {
    let projection = registry().into_iter().find(|p| p.name() == name);
    let Some(projection) = projection else { return Err(unknown(name)) };
    let (code_version, position): (i32, i64) = sqlx::query_as(
        "select code_version, position from read.projections where name = $1 and generation = $2",
    )
    .bind(name)
    .bind(generation)
    .fetch_one(pool)
    .await?;
    let interests = interests(std::iter::once(&projection));
    let at = Generation { name: name.to_owned(), generation, code_version, position };
    let mut member = Member { projection, at, quarantined: false, events: 0 };
    while member.at.position < to {
        let batch =
            Batch::read(log, member.at.position, BATCH.min(to - member.at.position), &interests).await?;
        if batch.last == member.at.position {
            break;
        }
        let last = batch.last;
        if matches!(project(pool, &mut member, &batch, last).await?, Step::Overtaken) {
            return Err(ProjectionError::Busy(name.to_owned()));
        }
    }
    Ok(member.events)
}

pub(super) fn unknown(name: &str) -> ProjectionError {
    let known = registry().iter().map(|p| p.name()).collect::<Vec<_>>().join(", ");
    ProjectionError::Unknown { name: name.to_owned(), known }
}
