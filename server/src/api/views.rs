//! `GET` and `HEAD /api/<view>`.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use events::Event;
use events::access::Exported;
use http::{HeaderMap, Method, header};

use super::{ApiPath, Failure, RequestContext};
use crate::auth::record::record;
use crate::auth::sessions::access_stream;
use crate::auth::{Principal, accounts};
use crate::log::Expected;
use crate::projections::views::{ViewDef, served};
use crate::queries;
use crate::state::AppState;

/// The rows of a view that the caller may see, in PostgREST's dialect.
pub async fn view(
    State(state): State<AppState>,
    principal: Principal,
    context: RequestContext,
    ApiPath(name): ApiPath<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    method: Method,
) -> Result<Response, Failure> {
    let query = query.unwrap_or_default();
    let mut visibility = principal.visibility();
    if visibility.org.is_some() && served(&name).is_some_and(ViewDef::names_people) {
        let people = accounts::people(&state.pool, state.keys.vault(), &principal).await?;
        visibility = visibility.with_people(&people);
    }
    let source =
        queries::view::Source { reader: &state.reader, log: &state.log, projections: &state.projections };
    let answer = queries::view::query(source, &visibility, &name, &query, &headers, &method).await?;
    if let Some(format) = file_format(&answer) {
        note_export(&state, &principal, &name, format, context).await?;
    }
    Ok(answer)
}

/// The media type of an answer that is a file of rows: every form but the page's own JSON.
fn file_format(answer: &Response) -> Option<String> {
    let said = answer.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
    let format = said.split(';').next().unwrap_or_default();
    let pages_own = matches!(format, "application/json" | "application/vnd.pgrst.object+json");
    (answer.status().is_success() && !pages_own).then(|| format.to_owned())
}

/// Notes in the audit trail that somebody takes rows away as a file, before the first row leaves. What is taken without
/// signing in is everybody's to read.
async fn note_export(
    state: &AppState,
    principal: &Principal,
    view: &str,
    format: String,
    context: RequestContext,
) -> Result<(), Failure> {
    let (Some(org), Some(user)) = (principal.org(), principal.user()) else { return Ok(()) };
    let event = Event::Exported(Exported { view: view.to_owned(), format });
    let stream = access_stream(org, user);
    let correlation = Some(context.correlation_id);
    record(&state.log, stream, Expected::Any, &event, principal.actor(), correlation, context.now).await?;
    Ok(())
}
