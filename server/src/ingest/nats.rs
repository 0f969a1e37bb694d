//! The door over NATS: requests on `ingest.<org>.<agent>.<kind>`, answered after the commit.
//!
//! The NATS server lets an agent publish on its own subjects only, so the subject says who it is. The servers of a
//! control plane share the work through one queue group.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Message;
use events::api::ApiError;
use events::keys::ServerKey;
use events::report::{ClaimReply, ClaimRequest, Heartbeat, HeartbeatReply, ReportReply};
use events::subjects::{INGEST_WILDCARD, IngestKind, inbox_prefix, parse_ingest_subject};
use futures::StreamExt as _;
use serde::Serialize;
use tokio::sync::Semaphore;

use super::batch::accept_bytes;
use super::{Refused, heartbeat};
use crate::api::extract::parse_json;
use crate::auth::{AgentIdentity, agents};
use crate::clock;
use crate::commands::claim_job;
use crate::state::AppState;

const QUEUE_GROUP: &str = "control-plane";
/// Requests worked on at once. Some more wait in this process (the subscription's capacity); what comes beyond those is
/// dropped by the client, and the agent, which is not answered, sends it again.
const AT_ONCE: usize = 64;

/// Answers agents until the control plane stops.
pub async fn listen(state: AppState, client: async_nats::Client) {
    loop {
        let ended = tokio::select! {
            () = state.stop.cancelled() => return,
            ended = subscribed(&state, &client) => ended,
        };
        if let Err(error) = ended {
            tracing::warn!(%error, "cannot listen to agents on NATS; trying again (agents use HTTPS meanwhile)");
        }
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}

async fn subscribed(state: &AppState, client: &async_nats::Client) -> Result<(), async_nats::SubscribeError> {
    let mut requests = client.queue_subscribe(INGEST_WILDCARD, QUEUE_GROUP.to_owned()).await?;
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(message) = requests.next().await {
        let Ok(permit) = permits.clone().acquire_owned().await else { return Ok(()) };
        let (state, client) = (state.clone(), client.clone());
        tokio::spawn(async move {
            answer(&state, &client, message).await;
            drop(permit);
        });
    }
    Ok(())
}

async fn answer(state: &AppState, client: &async_nats::Client, message: Message) {
    let Some(reply_to) = message.reply.clone() else {
        tracing::debug!(subject = %message.subject, "a report without a reply subject is not taken");
        return;
    };
    // Our own connection may publish anywhere: an answer goes to the asker's inbox and nowhere else.
    let own_inbox = parse_ingest_subject(message.subject.as_str())
        .map(|(org, agent, _)| format!("{}.", inbox_prefix(&org, &agent)));
    if own_inbox.is_none_or(|inbox| !reply_to.as_str().starts_with(&inbox)) {
        tracing::warn!(subject = %message.subject, %reply_to, "a request asks for its answer elsewhere than in its own inbox and is not taken");
        return;
    }
    let payload = match reply_of(state, &message).await {
        Ok(payload) => payload,
        Err(error) => {
            tracing::error!(%error, "an answer to an agent cannot be written");
            return;
        }
    };
    if let Err(error) = client.publish(reply_to, payload.into()).await {
        tracing::warn!(%error, "an agent was not answered; it will send it again");
    }
}

async fn reply_of(state: &AppState, message: &Message) -> Result<Vec<u8>, serde_json::Error> {
    let Some((org, agent, kind)) = parse_ingest_subject(message.subject.as_str()) else {
        let refused =
            Refused::new("bad_subject", "there is no such subject", "use ingest.<org>.<agent>.<kind>");
        return serde_json::to_vec(&ReportReply { results: Vec::new(), error: Some(refused.api_error()) });
    };
    let identity = identify(state, &org, &agent).await;
    let now = clock::now();
    match kind {
        IngestKind::Reports => {
            let reply = match identity {
                Ok(identity) => accept_bytes(state, &identity, &message.payload, now)
                    .await
                    .unwrap_or_else(|failure| refused_batch(failure.error)),
                Err(error) => refused_batch(error),
            };
            json(&reply)
        }
        IngestKind::Heartbeat => {
            let refused =
                |error| HeartbeatReply { at: now, stop: vec![], work_waiting: false, error: Some(error) };
            let beat = parse_json::<Heartbeat>(&message.payload).map_err(|failure| failure.error);
            let reply = match (identity, beat) {
                (Ok(identity), Ok(beat)) => heartbeat::heartbeat(state, &identity, beat, now).await,
                (Err(error), _) | (_, Err(error)) => refused(error),
            };
            json(&reply)
        }
        IngestKind::Claim => {
            let request = parse_json::<ClaimRequest>(&message.payload).map_err(|failure| failure.error);
            let reply = match (identity, request) {
                (Ok(identity), Ok(request)) => {
                    match claim_job::claim_job(state, &identity, &request, now).await {
                        Ok(job) => ClaimReply { job, error: None },
                        Err(error) => ClaimReply { job: None, error: Some(error.error) },
                    }
                }
                (Err(error), _) | (_, Err(error)) => ClaimReply { job: None, error: Some(error) },
            };
            json(&reply)
        }
    }
}

fn json<T: Serialize>(reply: &T) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(reply)
}

fn refused_batch(error: ApiError) -> ReportReply {
    ReportReply { results: Vec::new(), error: Some(error) }
}

/// Who a subject stands for. Credentials outlive a revocation by up to an hour, so it is looked up.
async fn identify(state: &AppState, org: &str, agent: &str) -> Result<AgentIdentity, ApiError> {
    let not_enrolled = || {
        Refused::new(
            "agent_not_enrolled",
            format!("agent {agent:?} of {org:?} is not enrolled, or was revoked"),
            "enrol it again: `benchtrail token enrol`, then `benchtrail-agent enrol`",
        )
        .api_error()
    };
    match agents::is_enrolled(&state.pool, org, agent).await {
        Ok(true) => ServerKey::from_agent(org, agent).map(AgentIdentity::of).ok_or_else(not_enrolled),
        Ok(false) => Err(not_enrolled()),
        Err(error) => {
            tracing::error!(%error, "an agent could not be looked up");
            Err(Refused::new("unavailable", "the control plane could not look the agent up", "send it again")
                .api_error())
        }
    }
}
