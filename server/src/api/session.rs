//! `GET /api/session`: who is asking.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use events::api::Session;

use super::edge;
use super::error::Failure;
use crate::auth::{Principal, sessions};
use crate::state::AppState;

/// The handler. Anonymous readers get an answer too: one without a user.
pub async fn session(
    State(state): State<AppState>,
    principal: Principal,
    headers: HeaderMap,
) -> Result<Json<Session>, Failure> {
    let mut session = sessions::describe(&state, &principal).await?;
    // Where a token asks, a cookie beside it says nothing.
    if let (Principal::User { id, .. }, Some(cookie)) = (&principal, edge::cookie(&headers, sessions::COOKIE))
    {
        let own = sessions::with_cookie(&state.pool, id, &cookie).await?;
        session.session_id = own.map(|id| id.to_string());
    }
    Ok(Json(session))
}
