//! The door over HTTPS, for sites that allow only 443, and for tests.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use events::report::{ClaimReply, ClaimRequest, Heartbeat, HeartbeatReply, ReportReply};
use http::{HeaderMap, StatusCode};

use super::batch::accept_bytes;
use super::heartbeat;
use crate::api::Failure;
use crate::api::extract::{ApiJson, REPORT_BODY, RequestContext, read_body, require_json};
use crate::auth::AgentIdentity;
use crate::commands::claim_job;
use crate::state::AppState;

/// `POST /api/agent/reports`.
pub async fn reports(
    State(state): State<AppState>,
    context: RequestContext,
    identity: AgentIdentity,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<ReportReply>, Failure> {
    require_json(&headers)?;
    let bytes = read_body(body, REPORT_BODY).await?;
    let reply = accept_bytes(&state, &identity, &bytes, context.now).await?;
    match reply.error {
        None => Ok(Json(reply)),
        Some(error) => {
            let status = match error.code.as_str() {
                "identity_mismatch" => StatusCode::FORBIDDEN,
                "too_many_items" => StatusCode::PAYLOAD_TOO_LARGE,
                _ => StatusCode::UNPROCESSABLE_ENTITY,
            };
            Err(Failure { status, error, retry_after_s: None })
        }
    }
}

/// `POST /api/agent/heartbeat`.
pub async fn heartbeat(
    State(state): State<AppState>,
    context: RequestContext,
    identity: AgentIdentity,
    ApiJson(beat): ApiJson<Heartbeat>,
) -> Json<HeartbeatReply> {
    Json(heartbeat::heartbeat(&state, &identity, beat, context.now).await)
}

/// `POST /api/agent/claim`.
pub async fn claim(
    State(state): State<AppState>,
    context: RequestContext,
    identity: AgentIdentity,
    ApiJson(request): ApiJson<ClaimRequest>,
) -> Result<Json<ClaimReply>, Failure> {
    let job = claim_job::claim_job(&state, &identity, &request, context.now).await?;
    Ok(Json(ClaimReply { job, error: None }))
}
