//! Every error of the API as JSON: `{code, message, details, hint}` with a fitting status. Never a bare text.

use axum::Json;
use axum::response::{IntoResponse, Response};
use events::api::ApiError;
use http::{HeaderValue, StatusCode, header};

use crate::auth::oidc::OidcError;
use crate::auth::{AuthError, Denied};
use crate::log::LogError;

/// The longest message and the longest hint, characters.
const LONGEST: usize = 1000;

/// A request that was not answered as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status.
    pub status: StatusCode,
    /// What is said.
    pub error: ApiError,
    /// Seconds after which trying again makes sense.
    pub retry_after_s: Option<u64>,
}

impl Failure {
    /// A failure with a short stable word, what happened, and what to do.
    pub fn new(status: StatusCode, code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let error = ApiError {
            code: code.to_owned(),
            message: message.into(),
            details: None,
            hint: Some(hint.into()),
        };
        Self { status, error, retry_after_s: None }
    }

    /// Adds particulars.
    #[must_use]
    pub fn details(mut self, details: impl Into<String>) -> Self {
        self.error.details = Some(details.into());
        self
    }

    /// 400: the request is not understood.
    pub fn bad_request(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message, hint)
    }

    /// 422: the request is understood, and a value in it is not acceptable.
    pub fn unprocessable(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message, hint)
    }

    /// 404.
    pub fn not_found(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message, hint)
    }

    /// 503: something passing. The cause goes to the server's log, not to the client.
    pub fn unavailable(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "a request could not be finished");
        let mut failure = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "the control plane could not finish this",
            "try again in a moment; the server's log has the cause",
        );
        failure.retry_after_s = Some(1);
        failure
    }
}

impl IntoResponse for Failure {
    fn into_response(mut self) -> Response {
        // What was sent may be quoted, but is not sent back at any length.
        let ApiError { message, hint, .. } = &mut self.error;
        for text in std::iter::once(message).chain(hint) {
            if let Some((end, _)) = text.char_indices().nth(LONGEST) {
                text.truncate(end);
                text.push('…');
            }
        }
        let mut response = (self.status, Json(&self.error)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"benchtrail\""));
        }
        response
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        Self { status: denied.status(), error: denied.api_error(), retry_after_s: None }
    }
}

impl From<AuthError> for Failure {
    fn from(error: AuthError) -> Self {
        if error.status().is_server_error() {
            tracing::error!(%error, "an access request could not be finished");
        }
        let retry_after_s = match &error {
            AuthError::Throttled { retry_after_s } => Some(*retry_after_s),
            _ => None,
        };
        Self { status: error.status(), error: error.api_error(), retry_after_s }
    }
}

impl From<OidcError> for Failure {
    fn from(error: OidcError) -> Self {
        let (status, hint) = match error {
            OidcError::Auth(error) => return error.into(),
            OidcError::Invitation(error) => return error.into(),
            OidcError::Off => (StatusCode::NOT_FOUND, "sign in with e-mail and password"),
            OidcError::BadReturn(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "name a path, for example /projects")
            }
            OidcError::NotBegun => (StatusCode::BAD_REQUEST, "begin the sign-in once more"),
            OidcError::NoAccount => (StatusCode::FORBIDDEN, "ask an administrator for an invitation"),
            OidcError::Refused(_) | OidcError::Provider(_) => {
                tracing::error!(%error, "the OpenID provider cannot be used");
                (StatusCode::BAD_GATEWAY, "try again in a moment; the server's log has the cause")
            }
        };
        Self::new(status, error.code(), error.to_string(), hint)
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::unavailable(&error)
    }
}

/// A panic in a handler: 500, and the rest of the server goes on.
pub fn panicked(panic: Box<dyn std::any::Any + Send + 'static>) -> Response {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    tracing::error!(panic = %what, "a request handler panicked; this is a defect");
    Failure::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "defect",
        "the control plane has a defect in this request",
        "report it with the x-request-id of this answer",
    )
    .into_response()
}

/// No such path.
pub fn no_such_path(path: &str) -> Failure {
    let path: String = path.chars().take(200).collect();
    Failure::not_found(
        "no_such_path",
        format!("there is nothing at {path}"),
        "see docs/API.md for every path",
    )
}

/// A path that exists, asked with another method.
pub async fn wrong_method(method: http::Method) -> Failure {
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "wrong_method",
        format!("{method} is not possible here"),
        "reads are GET, commands are POST; the Allow header names what is possible",
    )
}
