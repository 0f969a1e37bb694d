//! Reading requests: every way to be malformed has its own answer.

use axum::extract::{FromRequest, FromRequestParts, OptionalFromRequestParts, Path, Query, Request};
use events::timestamp::Timestamp;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;
use uuid::Uuid;

use super::error::Failure;
use crate::auth::{AgentIdentity, Denied, Principal};
use crate::state::AppState;

/// Largest body of a command, bytes.
pub const COMMAND_BODY: usize = 1 << 20;
/// Largest batch of reports, bytes: 500 items of events of at most 64 KiB would be more, agents send less at once.
pub const REPORT_BODY: usize = 8 << 20;

/// What every request carries: made once, at the edge.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext {
    /// Stands in spans, in the answer's `x-request-id`, and in the events the request causes.
    pub correlation_id: Uuid,
    /// When it arrived.
    pub now: Timestamp,
    /// Who sent it, by network address.
    pub address: IpAddr,
}

impl<S: Send + Sync> FromRequestParts<S> for RequestContext {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        parts
            .extensions
            .get::<Self>()
            .copied()
            .ok_or_else(|| Failure::unavailable(&"a route without the edge's middleware"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Principal {
    type Rejection = Infallible;

    /// What the authentication middleware found; a route without it knows nobody.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or(Self::Anonymous))
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for AgentIdentity {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(match parts.extensions.get::<Principal>() {
            Some(Principal::Agent { server, agent }) => {
                Some(Self { server: server.clone(), agent: agent.clone() })
            }
            _ => None,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for AgentIdentity {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        <Self as OptionalFromRequestParts<S>>::from_request_parts(parts, state)
            .await
            .unwrap_or_default()
            .ok_or_else(|| Denied::OnlyAgents.into())
    }
}

/// A JSON body of at most [`COMMAND_BODY`] bytes.
#[derive(Debug)]
pub struct ApiJson<T>(pub T);

impl<T: DeserializeOwned> FromRequest<AppState> for ApiJson<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &AppState) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        require_json(&parts.headers)?;
        let bytes = read_body(body, COMMAND_BODY).await?;
        parse_json(&bytes).map(Self)
    }
}

/// Path parameters, with an error in JSON.
#[derive(Debug)]
pub struct ApiPath<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiPath<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match <Path<T> as FromRequestParts<S>>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(rejection) => {
                Err(Failure::bad_request("bad_path", rejection.body_text(), "percent-encode UTF-8 text"))
            }
        }
    }
}

/// Query parameters, with an error in JSON.
#[derive(Debug)]
pub struct ApiQuery<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(Failure::bad_request(
                "bad_query",
                rejection.body_text(),
                "check the names of the parameters, each at most once, and percent-encode their values",
            )),
        }
    }
}

/// 415 unless the body says that it is JSON.
pub fn require_json(headers: &HeaderMap) -> Result<(), Failure> {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media_type == "application/json" {
        return Ok(());
    }
    Err(Failure::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "not_json",
        if said.is_empty() {
            "the body has no content type".to_owned()
        } else {
            format!("the body is {said:?}")
        },
        "send JSON with `Content-Type: application/json`",
    ))
}

/// How much of a body that is too long is read and thrown away, so that its sender comes to read the answer.
const DRAIN: usize = 32 << 20;

/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(60);

/// Reads a whole body; 413 when it is longer than `limit` bytes, 408 when it does not come.
pub async fn read_body(body: axum::body::Body, limit: usize) -> Result<bytes::Bytes, Failure> {
    tokio::time::timeout(BODY_WITHIN, read_to_end(body, limit)).await.unwrap_or_else(|_| {
        Err(Failure::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_too_slow",
            format!("the body did not arrive within {} s", BODY_WITHIN.as_secs()),
            "send it again, in smaller parts where the line is slow",
        ))
    })
}

async fn read_to_end(body: axum::body::Body, limit: usize) -> Result<bytes::Bytes, Failure> {
    use futures::StreamExt as _;
    let mut chunks = body.into_data_stream();
    let mut whole = bytes::BytesMut::new();
    let mut length = 0_usize;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| {
            Failure::bad_request("body_broken_off", "the body could not be read to its end", "send it again")
        })?;
        length += chunk.len();
        if length <= limit {
            whole.extend_from_slice(&chunk);
        } else if length > limit.saturating_add(DRAIN) {
            break;
        }
    }
    if length > limit {
        return Err(Failure::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("the body is longer than {limit} bytes"),
            "send less at once; bulky content goes to `PUT /api/agent/blobs/<sha256>`",
        ));
    }
    Ok(whole.freeze())
}

/// Parses JSON: 400 when it is not JSON, 422 when it is and does not fit.
pub fn parse_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Failure> {
    if bytes.is_empty() {
        return Err(Failure::bad_request(
            "empty_body",
            "the body is empty",
            "send a JSON object; {} for no arguments",
        ));
    }
    // Taken by their places, arguments would mean what the order of our fields is.
    if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{')
        && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
    {
        return Err(Failure::unprocessable(
            "bad_arguments",
            "the body is JSON, but not an object",
            "send a JSON object with the arguments by their names; {} for none",
        ));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        // The first thing that does not fit may stand before the place where it stops being JSON.
        match serde_json::from_slice::<IgnoredAny>(bytes) {
            Ok(_) => Failure::unprocessable(
                "bad_arguments",
                error.to_string(),
                "check the names and types of the arguments; unknown names are refused",
            ),
            Err(malformed) => Failure::bad_request(
                "malformed_json",
                format!("the body is not JSON: {malformed}"),
                "check the JSON at that line and column",
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::api::CancelRun;

    fn code<T: DeserializeOwned>(text: &str) -> (u16, String) {
        let failure = parse_json::<T>(text.as_bytes()).err().expect("it is refused");
        (failure.status.as_u16(), failure.error.code)
    }

    #[test]
    fn arguments_have_names() {
        for text in ["[]", " [\"x\", \"y\", 1]", "null", "1", "\"x\""] {
            assert_eq!(code::<CancelRun>(text), (422, "bad_arguments".into()), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_json_is_malformed() {
        for text in ["{", "{\"a\":}", "nope", "{\"p_project_code\":\"x\"", "\u{0}"] {
            assert_eq!(code::<CancelRun>(text), (400, "malformed_json".into()), "{text:?}");
        }
    }

    #[test]
    fn json_that_does_not_fit_is_unprocessable() {
        for text in [
            "[]",
            "{}",
            "\"x\"",
            r#"{"p_project_code":1,"p_workload_code":"w","p_run_number":1}"#,
            r#"{"p_project_code":"p","p_workload_code":"w","p_run_number":-1}"#,
            r#"{"p_project_code":"p","p_workload_code":"w","p_run_number":1,"p_extra":1}"#,
            r#"{"p_project_code":"p","p_project_code":"q","p_workload_code":"w","p_run_number":1}"#,
        ] {
            assert_eq!(code::<CancelRun>(text), (422, "bad_arguments".into()), "{text}");
        }
    }

    #[test]
    fn json_nested_without_end_is_refused_and_does_not_overflow() {
        assert_eq!(code::<serde_json::Value>(&"[".repeat(100_000)), (400, "malformed_json".into()));
    }
}
