//! Leases: until when an agent holds an attempt. Mutable, outside the log; that an attempt was lost is an event.
//!
//! Times are the database's, so that several control planes agree on them. A claim without a row (the process died
//! between the two) counts from the claim itself.

use events::keys::JobKey;
use events::report::HeldAttempt;
use sqlx::{PgConnection, PgPool};

use super::CommandError;
use super::work_index::Index;
use crate::auth::AgentIdentity;
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
        let (known, must_stop) = state.work.read(|index| judge(index, agent, held));
        // The map may be behind, and forgets finished runs: the stream decides before anybody is stopped.
        let must_stop = match (known, must_stop) {
            (true, false) => false,
            _ => match super::load::job(&state.log, &held.job).await {
                Ok(job) => job.server != agent.server || job.must_stop(held.attempt),
                Err(error) if error.status == 404 => true,
                Err(error) => return Err(error),
            },
        };
        if must_stop {
            stop.push(held.clone());
        }
        sqlx::query(
            "update leases set expires_at = greatest(expires_at, now() + make_interval(secs => $4))
             where job_key = $1 and attempt = $2 and agent = $3",
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

fn judge(index: &Index, agent: &AgentIdentity, held: &HeldAttempt) -> (bool, bool) {
    match index.open_job(&held.job) {
        Some(job) => (true, job.server != agent.server || job.must_stop(held.attempt)),
        None => (false, true),
    }
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
