//! `GET /api/report/<run>`: the provenance report, as a page of its own or as JSON.

mod page;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use schemars::JsonSchema;
use serde::Deserialize;

use super::extract::{ApiPath, ApiQuery};
use super::html::content_policy;
use super::{Failure, RequestContext};
use crate::auth::Principal;
use crate::queries::report::{report, run_key};
use crate::queries::view::Source;
use crate::state::AppState;

/// The query parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportQuery {
    /// `html` or `json`; absent means what the client accepts, a page for browsers.
    #[serde(default)]
    format: Option<ReportFormat>,
}

/// How the report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReportFormat {
    /// A page that holds everything itself.
    Html,
    /// JSON.
    Json,
}

/// Everything about a run in one piece.
pub async fn get(
    State(state): State<AppState>,
    principal: Principal,
    context: RequestContext,
    ApiPath(run): ApiPath<String>,
    ApiQuery(query): ApiQuery<ReportQuery>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let key = run_key(&run)?;
    let source = Source { reader: &state.reader, log: &state.log, projections: &state.projections };
    let access = state.hub.access();
    let url = state.config.public_url.as_str();
    let report = report(source, access, &principal.visibility(), url, &key).await?;
    let accepts_html = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"));
    let vary = (header::VARY, HeaderValue::from_static("accept, authorization, cookie"));
    if query.format == Some(ReportFormat::Json) || (query.format.is_none() && !accepts_html) {
        return Ok(([vary], Json(report)).into_response());
    }
    let headers: [(HeaderName, HeaderValue); 3] = [
        vary,
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, content_policy()),
    ];
    Ok((headers, page::page(&report, context.now).into_string()).into_response())
}
