//! The agents' endpoints over HTTPS: enrolment and credentials here, reports in `ingest::http`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use events::report::{AgentCredentials, EnrolReply, EnrolRequest, SecretsReply, SecretsRequest};

use super::error::Failure;
use super::extract::{ApiJson, RequestContext};
use crate::auth::{AgentIdentity, agents};
use crate::commands::hf_token;
use crate::plant;
use crate::state::AppState;

/// Seconds an agent's NATS credentials are good for.
const CREDENTIALS_S: u64 = 3600;

/// `POST /api/agent/enrol`: the one-time token becomes an agent token.
pub async fn enrol(
    State(state): State<AppState>,
    context: RequestContext,
    ApiJson(request): ApiJson<EnrolRequest>,
) -> Result<Json<EnrolReply>, Failure> {
    Ok(Json(agents::enrol(&state, &request, context.now).await?))
}

/// `POST /api/agent/secrets`: what the job that this agent holds needs and must not stand in its command.
pub async fn secrets(
    State(state): State<AppState>,
    context: RequestContext,
    identity: AgentIdentity,
    ApiJson(request): ApiJson<SecretsRequest>,
) -> Result<Json<SecretsReply>, Failure> {
    Ok(Json(hf_token::release_secrets(&state, &identity, &request, context.now).await?))
}

/// `POST /api/agent/credentials`: NATS credentials for the agent's own subjects. Without a NATS that this control
/// plane can issue credentials for, the agent stays on HTTPS.
pub async fn credentials(
    State(state): State<AppState>,
    context: RequestContext,
    identity: AgentIdentity,
) -> Result<Json<AgentCredentials>, Failure> {
    let lifetime = Duration::from_secs(CREDENTIALS_S);
    let expires_at = context.now.plus_micros(lifetime.as_micros() as i64);
    let Some(account) = &state.nats_endpoints.account else {
        return Ok(Json(AgentCredentials { nats_url: None, jwt: None, expires_at }));
    };
    let key = agents::nats_public_key(&state.pool, &identity).await?.ok_or_else(|| {
        Failure::not_found("agent_not_enrolled", "this agent is not enrolled", "run `benchtrail-agent enrol`")
    })?;
    let jwt = plant::issue_agent_user(account, identity.org(), &identity.agent, &key, lifetime)
        .map_err(|error| Failure::unavailable(&error))?;
    let url = state.config.nats_public_url.clone().unwrap_or_else(|| state.nats_endpoints.url.clone());
    Ok(Json(AgentCredentials { nats_url: Some(url), jwt: Some(jwt), expires_at }))
}
