//! `GET /api/live`: the live stream.

use axum::extract::State;
use axum::response::sse::Sse;
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;

use super::edge;
use super::error::Failure;
use super::extract::{ApiQuery, RequestContext};
use super::limits::MOST_STREAMS;
use crate::auth::{Principal, Visibility};
use crate::live::{Topics, stream};
use crate::state::AppState;

/// The query parameters.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub struct LiveQuery {
    /// What to follow, see [`Topics`].
    #[serde(default)]
    topics: String,
    /// Events after this position; `Last-Event-ID` wins over it. Absent means from now on.
    after: Option<String>,
}

/// Server-sent events of the topics, as far as the reader may see them.
///
/// # Errors
/// 400 when topics or position are not understood, 429 when the reader has too many streams open.
pub async fn live(
    State(state): State<AppState>,
    principal: Principal,
    context: RequestContext,
    headers: HeaderMap,
    ApiQuery(query): ApiQuery<LiveQuery>,
) -> Result<Response, Failure> {
    let topics = Topics::parse(&query.topics).map_err(|error| {
        let hint = "topics=<path>[:kind+kind],… for example topics=acme/my-project/my-workload/3";
        Failure::bad_request("bad_topics", error.to_string(), hint)
    })?;
    let resumed = headers.get("last-event-id").and_then(|v| v.to_str().ok());
    let head = state.hub.head();
    let after = match resumed.or(query.after.as_deref()) {
        None => head,
        Some(text) => position(text, head)?,
    };
    let Some(place) = state.limits.open_stream(&principal, context.address) else {
        return Err(Failure::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_streams",
            format!("{MOST_STREAMS} live streams are open already"),
            "close some: one stream takes any number of topics",
        ));
    };
    let reader = principal.visibility();
    let still_allowed = match principal {
        Principal::Anonymous => None,
        _ => Some(still_allowed(&state, &headers, &reader)),
    };
    let client = stream::Client {
        hub: state.hub.clone(),
        reader,
        still_allowed,
        topics,
        after,
        too_far: stream::TOO_FAR,
        stop: state.stop.clone(),
    };
    let messages = stream::stream(client).map(move |message| {
        // Held for as long as the stream is.
        let _ = &place;
        message
    });
    let mut response = Sse::new(messages).into_response();
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Looks again whether the reader's session or token is good for what it was: one that was revoked, signed out, or
/// given another role must not go on reading. A database that does not answer decides nothing.
fn still_allowed(state: &AppState, headers: &HeaderMap, reader: &Visibility) -> stream::StillAllowed {
    let (state, headers, reader) = (state.clone(), headers.clone(), reader.clone());
    Box::new(move || {
        let (state, headers, reader) = (state.clone(), headers.clone(), reader.clone());
        Box::pin(async move {
            match edge::principal_of(&state, &Method::GET, &headers).await {
                Ok(principal) => principal.visibility() == reader,
                Err(failure) => failure.status.is_server_error(),
            }
        })
    })
}

fn position(text: &str, head: i64) -> Result<i64, Failure> {
    let hint = "after=<position>: the position of the last event you have, 0 for all";
    let bad = |message: String| Failure::bad_request("bad_position", message, hint);
    let position: i64 = text.parse().map_err(|_| bad(format!("{text:?} is not a position")))?;
    if position < 0 {
        return Err(bad(format!("{position} is before the first position")));
    }
    // Ahead of the head: of another log, or of one that was restored from a backup. Follow from here on.
    Ok(position.min(head))
}
