//! `GET /api/<view>`.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;

use super::{ApiPath, Failure};
use crate::auth::Principal;
use crate::queries;
use crate::state::AppState;

/// The rows of a view that the caller may see, in PostgREST's dialect.
pub async fn view(
    State(state): State<AppState>,
    principal: Principal,
    ApiPath(name): ApiPath<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let query = query.unwrap_or_default();
    let visibility = principal.visibility();
    queries::view::query(&state.reader, &state.log, &state.projections, &visibility, &name, &query, &headers)
        .await
}
