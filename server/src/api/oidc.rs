//! `GET /api/oidc/callback`: a browser comes back from the OpenID provider. Whatever happened, it is sent on to the page.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::edge;
use super::extract::RequestContext;
use crate::auth::oidc::{self, OidcError, Returned};
use crate::auth::sessions;
use crate::config::Config;
use crate::state::AppState;

/// The cookie of a browser that is at the provider; an empty one forgets it.
pub(super) fn set_cookie(config: &Config, value: &str, max_age_s: i64) -> HeaderValue {
    let (name, path) = (oidc::COOKIE, oidc::CALLBACK);
    let secure = if config.secure() { "; Secure" } else { "" };
    // Lax: the provider's redirect is a navigation from another site.
    let text = format!("{name}={value}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={max_age_s}{secure}");
    HeaderValue::from_str(&text).expect("base64 and ASCII")
}

/// The handler.
pub async fn callback(
    State(state): State<AppState>,
    context: RequestContext,
    headers: HeaderMap,
    query: Result<Query<Returned>, QueryRejection>,
) -> Response {
    let cookie = edge::cookie(&headers, oidc::COOKIE);
    let finished = match query {
        Ok(Query(returned)) => {
            let correlation = Some(context.correlation_id);
            oidc::finish(&state, cookie.as_deref(), returned, correlation, context.now).await
        }
        Err(rejection) => Err(OidcError::Provider(rejection.body_text())),
    };
    let (to, session) = match finished {
        Ok((new, path)) => {
            (path, Some(sessions::set_cookie(&state.config, new.secret.reveal(), new.max_age_s)))
        }
        Err(error) => {
            tracing::warn!(%error, "somebody could not be signed in by the OpenID provider");
            (format!("/sign-in?error={}", error.code()), None)
        }
    };
    let location = HeaderValue::from_str(&to).unwrap_or(HeaderValue::from_static("/"));
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response();
    let headers = response.headers_mut();
    headers.append(header::SET_COOKIE, set_cookie(&state.config, "", 0));
    if let Some(session) = session {
        headers.append(header::SET_COOKIE, session);
    }
    response
}
