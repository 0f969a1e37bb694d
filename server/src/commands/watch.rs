//! The watch: leases that ran out, servers that fell silent, runs that stand still, quotas that are
//! nearly used up.
//!
//! Every control plane watches; of two that see the same, one appends. What it misses in one look it finds in the next.

use std::collections::HashMap;
use std::time::Duration;

use events::keys::{JobKey, ServerKey};
use events::server_host::ServerState;
use events::timestamp::Timestamp;
use sqlx::Row;
use time::OffsetDateTime;

use super::advance_run::{check_quality, job_ended};
use super::append::{Maker, NotAppended, append};
use super::{CommandError, advance_run, leases, load, nudge, quotas};
use crate::clock;
use crate::domain::Job;
use crate::log::Expected;
use crate::state::AppState;

/// Every how many looks the open runs are looked through for one that stands still.
const IDLE_RUNS_EVERY: u64 = 10;

/// Watches until the control plane stops. Renews every lease once (again after an outage of the database), checks what a crash may have left unchecked, then
/// looks at leases and servers every tick.
pub async fn watch(state: AppState) {
    let started_at = clock::now();
    let tick = Duration::from_millis(state.config.timing.tick_ms.max(10));
    let mut prepared = false;
    let mut looks: u64 = 0;
    loop {
        let result = if prepared {
            look(&state, started_at, looks.is_multiple_of(IDLE_RUNS_EVERY)).await
        } else {
            prepare(&state).await
        };
        match result {
            Ok(()) => {
                prepared = true;
                looks += 1;
            }
            Err(error) => {
                tracing::warn!(%error, "the watch could not finish a look; it will look again");
                // While the database was away no agent could renew: that silence is not theirs.
                prepared = false;
            }
        }
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = tokio::time::sleep(tick) => {}
        }
    }
}

/// What is done once, at the start.
async fn prepare(state: &AppState) -> Result<(), CommandError> {
    state.work.catch_up().await?;
    leases::renew_all(&state.pool, state.config.timing.lease_s).await?;
    let completed = state.work.read(|index| index.completed_jobs(None));
    for job in completed {
        readable(check_quality(state, &job, clock::now()).await)?;
    }
    Ok(())
}

/// Passes over what is about one thing alone whose events cannot be read: the others are looked at all the same. (The
/// server's log has been told.)
fn readable(looked: Result<(), CommandError>) -> Result<(), CommandError> {
    match looked {
        Err(error) if error.is_unreadable() => Ok(()),
        other => other,
    }
}

/// One look.
///
/// # Errors
/// The log or the database does not answer.
pub async fn look(state: &AppState, started_at: Timestamp, with_idle_runs: bool) -> Result<(), CommandError> {
    state.work.catch_up().await?;
    let now = clock::now();
    let held = state.work.read(|index| index.held(None));
    for (key, job) in held {
        readable(look_at_lease(state, &key, &job, started_at, now).await)?;
    }
    look_at_servers(state, started_at, now).await?;
    quotas::look(state, now).await?;
    if with_idle_runs {
        for run in state.work.read(|index| index.idle_runs()) {
            for job in state.work.read(|index| index.completed_jobs(Some(&run))) {
                readable(check_quality(state, &job, now).await)?;
            }
            readable(advance_run::advance_run(state, &run, None, now).await.map(|_| ()))?;
        }
    }
    Ok(())
}

async fn look_at_lease(
    state: &AppState,
    key: &JobKey,
    seen: &Job,
    started_at: Timestamp,
    now: Timestamp,
) -> Result<(), CommandError> {
    let Some(attempt) = seen.attempts.last() else { return Ok(()) };
    // A claim without a lease row: its process died in between. It counts from the claim, or from our own start.
    let since = now.micros_since(attempt.claimed_at.max(started_at));
    let unleased_expired = since > i64::from(attempt.lease_s) * 1_000_000;
    if !leases::has_expired(&state.pool, key, attempt.number, unleased_expired).await? {
        return Ok(());
    }
    let number = attempt.number;
    let job = load::job(&state.log, key).await?;
    let events = job.lease_expired(number);
    if events.is_empty() {
        return Ok(());
    }
    let write = Maker::system(None, now).write(key.stream(), Expected::Exact(job.version), &events, 0)?;
    match append(&state.log, vec![write]).await {
        Ok(position) => {
            tracing::warn!(job = %key, attempt = number, position, "the agent was silent past its lease")
        }
        // Its agent spoke, or another control plane was quicker.
        Err(NotAppended::Moved(_)) => return Ok(()),
        Err(NotAppended::Error(error)) => return Err(error),
    }
    if events.len() > 1 {
        nudge::work_available(state, &job.server).await;
        return Ok(());
    }
    job_ended(state, key, None, now).await
}

async fn look_at_servers(
    state: &AppState,
    started_at: Timestamp,
    now: Timestamp,
) -> Result<(), CommandError> {
    let last_seen = last_seen(state).await?;
    let silence = state.config.timing.silence;
    for (key, seen) in state.work.read(|index| index.servers()) {
        // Nobody could be heard while the control plane was away: an online server's silence counts from its start.
        let heard = last_seen
            .get(&key)
            .map(|&heard| if seen.state == ServerState::Online { heard.max(started_at) } else { heard });
        if !seen.observe(heard, now, silence).is_empty() {
            readable(observe(state, &key, heard, now).await)?;
        }
    }
    Ok(())
}

/// Says what a server's silence means, or that it is heard again.
async fn observe(
    state: &AppState,
    key: &ServerKey,
    heard: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), CommandError> {
    let Some(server) = load::server(&state.log, key).await? else { return Ok(()) };
    let events = server.observe(heard, now, state.config.timing.silence);
    if events.is_empty() {
        return Ok(());
    }
    let write = Maker::system(None, now).write(key.stream(), Expected::Exact(server.version), &events, 0)?;
    match append(&state.log, vec![write]).await {
        Ok(_) | Err(NotAppended::Moved(_)) => Ok(()),
        Err(NotAppended::Error(error)) => Err(error),
    }
}

async fn last_seen(state: &AppState) -> Result<HashMap<ServerKey, Timestamp>, CommandError> {
    let rows = sqlx::query("select agent_org, agent, last_seen from presence").fetch_all(&state.pool).await?;
    let mut heard = HashMap::new();
    for row in rows {
        let (org, agent): (String, String) = (row.try_get("agent_org")?, row.try_get("agent")?);
        let at: OffsetDateTime = row.try_get("last_seen")?;
        if let (Some(key), Ok(at)) = (ServerKey::from_agent(&org, &agent), Timestamp::try_from(at)) {
            heard.insert(key, at);
        }
    }
    Ok(heard)
}
