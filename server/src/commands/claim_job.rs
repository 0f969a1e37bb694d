//! `claim`: an agent takes the job that has waited longest for its server.

use events::Event;
use events::keys::{JobKey, ServerKey};
use events::report::{AssignedJob, ClaimRequest, SignedJob};
use events::timestamp::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::append::{Maker, NotAppended, append, event_id_of};
use super::{CommandError, RequestMeta, leases, load};
use crate::auth::{AgentIdentity, Principal};
use crate::domain::{Aggregate, Job, decode};
use crate::log::{Expected, StreamWrite};
use crate::state::AppState;

/// The next job for this agent's server, signed; nothing where none waits or the agent holds one. The same claim id
/// gets the same answer.
///
/// # Errors
/// The log or the database does not answer.
pub async fn claim_job(
    state: &AppState,
    agent: &AgentIdentity,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Option<SignedJob>, CommandError> {
    let claim_id = request.claim_id.to_string();
    let id = event_id_of(&["claim", agent.org(), &agent.agent, &claim_id]);
    if let Some(earlier) = state.log.event_by_id(id).await? {
        return answer_again(state, &JobKey::from_stream(&earlier.stream)?, id).await;
    }
    // One claim a server at a time, whichever control plane it reaches: two different claims must not give one server
    // two jobs. The lock goes with the transaction, also when this process dies.
    let mut lock = state.pool.begin().await?;
    sqlx::query("select pg_advisory_xact_lock(hashtextextended($1, 0))")
        .bind(agent.server.stream().as_str())
        .execute(&mut *lock)
        .await?;
    state.work.catch_up().await?;
    let claimed = claim_next(state, &mut lock, agent, id, now).await;
    lock.commit().await?;
    claimed
}

async fn claim_next(
    state: &AppState,
    connection: &mut PgConnection,
    agent: &AgentIdentity,
    id: Uuid,
    now: Timestamp,
) -> Result<Option<SignedJob>, CommandError> {
    let lease_s = state.config.timing.lease_s;
    let (held, waiting) =
        state.work.read(|index| (index.held(Some(&agent.server)), index.queued_for(&agent.server)));
    if !held.is_empty() || state.work.read(|index| index.in_maintenance(&agent.server)) {
        return Ok(None);
    }
    // Its work waits until it was bootstrapped again.
    let oldest = state.config.timing.silence.oldest_agent;
    if load::server(&state.log, &agent.server).await?.is_some_and(|server| server.is_too_old(oldest)) {
        return Ok(None);
    }
    let principal = Principal::Agent { server: agent.server.clone(), agent: agent.agent.clone() };
    let meta = RequestMeta { correlation_id: Uuid::now_v7(), idempotency_key: None, now };
    let maker = Maker::of(&principal, "claim", &meta);
    for key in waiting {
        let mut job = load::job(&state.log, &key).await?;
        // Cancelled since the map saw it: the next one.
        let Ok(events) = job.claim(&agent.agent, lease_s) else { continue };
        let Some(event) = events.into_iter().next() else { continue };
        let stream = key.stream();
        let new = maker.event(&stream, &event, id)?;
        let write = StreamWrite { stream, expected: Expected::Exact(job.version), events: vec![new] };
        match append(&state.log, vec![write]).await {
            Ok(_) => {
                job.evolve(&event, now);
                leases::grant(connection, &key, job.attempt(), &agent.agent, lease_s).await?;
                return Ok(Some(sign(state, &key, &job, job.attempt())?));
            }
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// The answer that this claim got before, byte for byte.
async fn answer_again(state: &AppState, key: &JobKey, id: Uuid) -> Result<Option<SignedJob>, CommandError> {
    let events = load::stream(&state.log, &key.stream()).await?;
    let Some(job) = Job::load(&events)? else { return Ok(None) };
    let Some(recorded) = events.iter().find(|recorded| recorded.event_id == id) else { return Ok(None) };
    let Event::JobClaimed(claimed) = decode(recorded)? else { return Ok(None) };
    // An attempt that is over or replaced is not begun again.
    if job.attempt() != claimed.attempt || !job.is_held() {
        return Ok(None);
    }
    Ok(Some(sign(state, key, &job, claimed.attempt)?))
}

fn sign(state: &AppState, key: &JobKey, job: &Job, number: u32) -> Result<SignedJob, CommandError> {
    let attempt = job.attempt_numbered(number).ok_or_else(|| {
        CommandError::unavailable(&format!("{key} has no attempt {number} after its claim"))
    })?;
    let assigned = AssignedJob {
        job: key.clone(),
        attempt: number,
        server: job.server.clone(),
        claimed_at: attempt.claimed_at,
        expires_at: attempt.claimed_at.plus_micros(i64::from(attempt.lease_s) * 1_000_000),
        workload: job.workload.clone(),
        scenario: job.scenario.clone(),
        commands: job.commands.clone(),
        sample_interval_ms: state.config.timing.sample_interval_ms,
    };
    let payload = serde_json::to_string(&assigned).map_err(|error| CommandError::unavailable(&error))?;
    let signature = state.keys.sign_job(&payload);
    Ok(SignedJob { payload, signature })
}

/// Whether a job waits for this server: for the heartbeat's answer.
pub fn work_waits_for(state: &AppState, server: &ServerKey) -> bool {
    state.work.read(|index| index.work_waits_for(server))
}
