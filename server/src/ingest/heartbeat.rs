//! Heartbeats: not events. They renew leases and last-seen; only a change of the server's state becomes an event.

use events::StreamKey;
use events::envelope::{Actor, ActorKind};
use events::report::{Heartbeat, HeartbeatReply};
use events::server_host::ServerState;
use events::timestamp::Timestamp;
use time::OffsetDateTime;

use super::jobs::LoadedServer;
use super::{Retry, jobs};
use crate::auth::record::record;
use crate::auth::{AgentIdentity, AuthError};
use crate::commands::{self, leases};
use crate::log::Expected;
use crate::state::AppState;

/// Most attempts one agent can hold.
const MOST_HELD: usize = 64;

/// Takes a heartbeat. What could not be done is done with the next one, five seconds later.
pub async fn heartbeat(
    state: &AppState,
    identity: &AgentIdentity,
    beat: Heartbeat,
    now: Timestamp,
) -> HeartbeatReply {
    let mut reply = HeartbeatReply { at: now, stop: Vec::new(), work_waiting: false, error: None };
    if beat.holding.len() > MOST_HELD {
        let refused = super::Refused::new(
            "too_many_attempts",
            format!("{} attempts are held, an agent holds at most {MOST_HELD}", beat.holding.len()),
            "an agent works on one job at a time",
        );
        reply.error = Some(refused.api_error());
        return reply;
    }
    if let Err(Retry(message)) = note(state, identity, &beat, now).await {
        reply.error =
            Some(super::Refused::new("unavailable", message, "go on; send the next heartbeat").api_error());
        return reply;
    }
    match leases::renew(state, identity, &beat.holding).await {
        Ok(stop) => reply.stop = stop,
        Err(error) => {
            reply.error = Some(error.error);
            return reply;
        }
    }
    reply.work_waiting = commands::claim_job::work_waits_for(state, &identity.server);
    reply
}

async fn note(
    state: &AppState,
    identity: &AgentIdentity,
    beat: &Heartbeat,
    now: Timestamp,
) -> Result<(), Retry> {
    sqlx::query(
        "insert into presence as p (agent_org, agent, last_seen, state, spooled, clock_offset_ms)
         values ($1, $2, $3, 'online', $4, $5)
         on conflict (agent_org, agent) do update set last_seen = greatest(p.last_seen, excluded.last_seen),
            state = excluded.state, spooled = excluded.spooled, clock_offset_ms = excluded.clock_offset_ms",
    )
    .bind(identity.org())
    .bind(&identity.agent)
    .bind(OffsetDateTime::from(now))
    .bind(i64::try_from(beat.spooled).unwrap_or(i64::MAX))
    .bind(beat.at.micros_since(now) as f64 / 1000.0)
    .execute(&state.pool)
    .await?;
    // The map may be behind: then the stream is looked at once more for nothing.
    let online = state.work.read(|index| {
        index.server(&identity.server).is_some_and(|server| server.state == ServerState::Online)
    });
    if online { Ok(()) } else { say_online(state, identity, now).await }
}

/// Appends that the server is online, unless its stream says so already.
async fn say_online(state: &AppState, identity: &AgentIdentity, now: Timestamp) -> Result<(), Retry> {
    let Some(LoadedServer { server, .. }) = jobs::server(&state.log, &identity.server).await? else {
        return Ok(());
    };
    let Some(event) = server.observe(Some(now), now, state.config.timing.silence).pop() else {
        return Ok(());
    };
    let actor = Actor { kind: ActorKind::System, id: "control-plane".to_owned() };
    let stream: StreamKey = identity.server.stream();
    match record(&state.log, stream, Expected::Exact(server.version), &event, actor, None, now).await {
        // Somebody else was quicker; if it was not about this, the next heartbeat says it.
        Ok(_) | Err(AuthError::Exists(_)) => Ok(()),
        Err(error) => Err(Retry::because(&error)),
    }
}
