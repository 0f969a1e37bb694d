//! What happens to every request before a handler sees it: an id and a span, who is asking, and the headers that keep
//! a browser safe.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tracing::Instrument;
use uuid::Uuid;

use super::error::Failure;
use super::extract::RequestContext;
use super::limits;
use crate::auth::{AuthError, Principal, agents, api_tokens, sessions};
use crate::secrets::SecretKind;
use crate::state::AppState;

/// The header a browser page sends with every state-changing request; another origin cannot.
pub const CSRF_HEADER: &str = "x-benchtrail-csrf";

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Gives the request an id, a span and a line in the metrics.
pub async fn observe(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let given = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let correlation_id = given.and_then(|text| text.parse().ok()).unwrap_or_else(Uuid::now_v7);
    let context = RequestContext {
        correlation_id,
        now: crate::clock::now(),
        address: address_of(&request, state.config.behind_proxy),
    };
    request.extensions_mut().insert(context);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let span = tracing::info_span!(
        "request", %method, path = %request.uri().path(), request_id = %correlation_id
    );
    let mut response = next.run(request).instrument(span.clone()).await;
    let status = response.status();
    state.metrics.count_request(&method, route.as_deref().unwrap_or("page"), status, began.elapsed());
    span.in_scope(|| {
        tracing::debug!(status = status.as_u16(), micros = began.elapsed().as_micros() as u64, "answered")
    });
    if let Ok(value) = HeaderValue::from_str(&correlation_id.to_string()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// The client's address; behind a proxy the last one that the proxy itself saw.
fn address_of(request: &Request, behind_proxy: bool) -> IpAddr {
    let direct = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let forwarded = behind_proxy
        .then(|| {
            // A proxy that adds a line of its own leaves the client's before it.
            let last = request.headers().get_all("x-forwarded-for").iter().next_back()?;
            last.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
        })
        .flatten();
    forwarded.or(direct).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// Finds out who is asking, and refuses what a foreign page could have sent with the reader's cookie. Who names a token that
/// is none is nobody, and counts with the address.
pub async fn authenticate(
    State(state): State<AppState>,
    context: RequestContext,
    mut request: Request,
    next: Next,
) -> Response {
    if request.headers().contains_key(header::AUTHORIZATION)
        && let Some(seconds) = state.limits.wait_of(context.address)
    {
        return limits::too_many(seconds);
    }
    let found = principal_of(&state, request.method(), request.headers()).await;
    match found {
        Ok(principal) => {
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        Err(failure) if failure.status == StatusCode::UNAUTHORIZED => {
            match state.limits.take(&Principal::Anonymous, context.address) {
                Ok(()) => failure.into_response(),
                Err(seconds) => limits::too_many(seconds),
            }
        }
        Err(failure) => failure.into_response(),
    }
}

/// Who sends these headers, as the sessions and tokens stand now.
pub(super) async fn principal_of(
    state: &AppState,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Principal, Failure> {
    let now = crate::clock::now();
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        return by_token(state, value, now).await;
    }
    let Some(cookie) = cookie(headers, sessions::COOKIE) else { return Ok(Principal::Anonymous) };
    let Some(principal) = sessions::principal_of(&state.pool, &cookie, now).await? else {
        return Ok(Principal::Anonymous);
    };
    let changes = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let foreign = headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    if changes && (foreign || headers.get(CSRF_HEADER).is_none_or(|value| value != "1")) {
        return Err(Failure::new(
            StatusCode::FORBIDDEN,
            "csrf_header_missing",
            "a change asked for with a session cookie must come from this page itself",
            format!("send the header `{CSRF_HEADER}: 1`, or use an API token instead of the cookie"),
        ));
    }
    Ok(principal)
}

async fn by_token(
    state: &AppState,
    value: &HeaderValue,
    now: events::Timestamp,
) -> Result<Principal, Failure> {
    let text = value.to_str().unwrap_or_default();
    let token = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let Some((_, token)) = token else {
        return Err(Failure::new(
            StatusCode::UNAUTHORIZED,
            "bad_authorization",
            "the Authorization header is not a bearer token",
            "send `Authorization: Bearer bt_u_…`",
        ));
    };
    let token = token.trim();
    let (found, what, hint) = match SecretKind::of(token) {
        Some(SecretKind::User) => (
            api_tokens::principal_of(&state.pool, token, now).await?,
            "API token",
            "make a new one: `benchtrail token create`, or Account → Tokens in the page",
        ),
        Some(SecretKind::Agent) => (
            agents::principal_of(&state.pool, token).await?,
            "agent token",
            "enrol the agent again: `benchtrail token enrol`, then `benchtrail-agent enrol`",
        ),
        Some(SecretKind::Enrol) => (
            None,
            "registration token (it is for the body of POST /api/agent/enrol)",
            "`benchtrail-agent enrol` uses it",
        ),
        Some(SecretKind::Session | SecretKind::Invitation) | None => {
            (None, "token", "send a token that starts with bt_u_ or bt_a_")
        }
    };
    found.ok_or_else(|| AuthError::BadToken { what, hint }.into())
}

/// The value of a cookie.
pub fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(key, value)| *key == name && !value.is_empty())
        .map(|(_, value)| value.to_owned())
}

/// Headers that a browser obeys. A handler that set one itself (the page its policy, a file its caching) keeps it.
pub async fn secure(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let api = request.uri().path().starts_with("/api/");
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(header::REFERRER_POLICY, "same-origin");
    set(header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    if api {
        set(header::CACHE_CONTROL, "no-store");
    }
    if state.config.secure() {
        set(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=1; benchtrail_session=bt_s_x; b=2"));
        assert_eq!(cookie(&headers, "benchtrail_session").as_deref(), Some("bt_s_x"));
        assert_eq!(cookie(&headers, "session"), None);
    }
}
