//! Leases: until when an agent holds an attempt. Mutable, outside the log; that an attempt was lost is an event.
//!
//! Times are the database's, so that several control planes agree on them. A claim without a row (the process died
//! between the two) counts from the claim itself.

use events::keys::JobKey;
use events::report::HeldAttempt;
use sqlx::{PgConnection, PgPool};

use super::CommandError;
use crate::auth::AgentIdentity;
use crate::domain::Job;
use crate::state::AppState;

/// An agent took an attempt.
pub(super) async fn grant(
    connection: &mut PgConnection,
    job: &JobKey,
    attempt: u32,
    agent: &str,
    lease_s: u32,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into leases (job_key, attempt, agent, expires_at)
         values ($1, $2, $3, now() + make_interval(secs => $4))
         on conflict (job_key, attempt) do nothing",
    )
    .bind(job.stream().as_str())
    .bind(attempt.cast_signed())
    .bind(agent)
    .bind(f64::from(lease_s))
    .execute(connection)
    .await?;
    Ok(())
}

/// An agent says which attempts it works on: their leases begin anew. Says which of them it must stop.
///
/// # Errors
/// The database or the log does not answer.
pub async fn renew(
    state: &AppState,
    agent: &AgentIdentity,
    holding: &[HeldAttempt],
) -> Result<Vec<HeldAttempt>, CommandError> {
    let lease_s = state.config.timing.lease_s;
    let mut stop = Vec::new();
    for held in holding {
        // The map may be behind, and forgets finished runs: the stream decides before anybody is stopped.
        let mapped =
            state.work.read(|index| index.open_job(&held.job).map(|job| judge(job, agent, held.attempt)));
        let (must_stop, holds) = match mapped {
            Some((false, holds)) => (false, holds),
            _ => match super::load::job(&state.log, &held.job).await {
                Ok(job) => judge(&job, agent, held.attempt),
                Err(error) if error.status == 404 => (true, false),
                Err(error) => return Err(error),
            },
        };
        if must_stop {
            stop.push(held.clone());
        }
        // One that is asked to stop still holds its attempt until it has stopped.
        if !holds {
            continue;
        }
        // Also where the row is missing: the process that took the claim may have died before it wrote it.
        sqlx::query(
            "insert into leases as l (job_key, attempt, agent, expires_at)
             values ($1, $2, $3, now() + make_interval(secs => $4))
             on conflict (job_key, attempt) do update set expires_at = greatest(l.expires_at, excluded.expires_at)",
        )
        .bind(held.job.stream().as_str())
        .bind(held.attempt.cast_signed())
        .bind(&agent.agent)
        .bind(f64::from(lease_s))
        .execute(&state.pool)
        .await?;
    }
    Ok(stop)
}

/// Whether the agent must stop this attempt, and whether it holds it.
fn judge(job: &Job, agent: &AgentIdentity, attempt: u32) -> (bool, bool) {
    let own = job.server == agent.server;
    (!own || job.must_stop(attempt), own && job.is_held() && job.attempt() == attempt)
}

/// A control plane started: while it was away nobody could renew, so every lease begins anew once.
///
/// # Errors
/// The database does not answer.
pub async fn renew_all(pool: &PgPool, lease_s: u32) -> Result<(), sqlx::Error> {
    sqlx::query("update leases set expires_at = greatest(expires_at, now() + make_interval(secs => $1))")
        .bind(f64::from(lease_s))
        .execute(pool)
        .await?;
    Ok(())
}

/// Whether the lease of an attempt ran out; `missing_means_expired` where there is no row.
pub(super) async fn has_expired(
    pool: &PgPool,
    job: &JobKey,
    attempt: u32,
    missing_means_expired: bool,
) -> Result<bool, sqlx::Error> {
    let expired: Option<bool> =
        sqlx::query_scalar("select expires_at < now() from leases where job_key = $1 and attempt = $2")
            .bind(job.stream().as_str())
            .bind(attempt.cast_signed())
            .fetch_optional(pool)
            .await?;
    Ok(expired.unwrap_or(missing_means_expired))
}

/// The attempt ended: its lease has no further use.
pub(super) async fn release(pool: &PgPool, job: &JobKey) -> Result<(), sqlx::Error> {
    sqlx::query("delete from leases where job_key = $1").bind(job.stream().as_str()).execute(pool).await?;
    Ok(())
}
