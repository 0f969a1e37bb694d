//! `GET` and `HEAD /api/<view>`.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, Method};

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
    method: Method,
) -> Result<Response, Failure> {
    let query = query.unwrap_or_default();
    let source =
        queries::view::Source { reader: &state.reader, log: &state.log, projections: &state.projections };
    queries::view::query(source, &principal.visibility(), &name, &query, &headers, &method).await
}
