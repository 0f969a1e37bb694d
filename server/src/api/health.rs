//! `GET /healthz` and `GET /readyz`: is the process alive, and can it do its work.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;

use crate::projections::Status;
use crate::state::AppState;

/// The answer of `/healthz`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Health {
    /// Always `ok`: a process that cannot answer does not.
    status: &'static str,
    /// The control plane's version.
    version: &'static str,
}

/// The process is alive. Asks nobody.
pub async fn healthz() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// The answer of `/readyz`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Readiness {
    /// `ok`, `degraded` (it works, something needs a look) or `unavailable`.
    status: &'static str,
    /// The log's last position; absent when the database does not answer.
    position: Option<i64>,
    /// `connected`, `disconnected` or `off`.
    nats: &'static str,
    /// How far the read tables are.
    projections: Status,
}

/// Whether requests can be served: 200, or 503 when the log's database does not answer.
pub async fn readyz(State(state): State<AppState>) -> (StatusCode, Json<Readiness>) {
    let position = state.log.head().await.ok().map(|head| head.position);
    let nats = match &state.nats {
        None => "off",
        Some(client) if client.connection_state() == async_nats::connection::State::Connected => "connected",
        Some(_) => "disconnected",
    };
    let projections = (*state.projections.status()).clone();
    let status = match position {
        None => "unavailable",
        Some(_) if projections.degraded() || nats == "disconnected" => "degraded",
        Some(_) => "ok",
    };
    let code = if position.is_some() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(Readiness { status, position, nats, projections }))
}
