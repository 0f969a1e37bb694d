//! `GET /api/session`: who is asking.

use axum::Json;
use axum::extract::State;
use events::api::Session;

use super::error::Failure;
use crate::auth::{Principal, sessions};
use crate::state::AppState;

/// The handler. Anonymous readers get an answer too: one without a user.
pub async fn session(State(state): State<AppState>, principal: Principal) -> Result<Json<Session>, Failure> {
    Ok(Json(sessions::describe(&state, &principal).await?))
}
