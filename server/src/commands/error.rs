//! Why a command was not carried out, and the status that fits.

use events::api::ApiError;

use crate::api::Failure;
use crate::auth::{AuthError, Denied};
use crate::domain::{LoadError, Refusal};
use crate::log::LogError;

/// A command that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", error.code, error.message)]
pub struct CommandError {
    /// The HTTP status.
    pub status: u16,
    /// What is said.
    pub error: ApiError,
}

impl CommandError {
    /// Something passing, or a defect: the cause goes to the server's log, not to the caller.
    pub fn unavailable(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "a command could not be finished");
        let error = ApiError {
            code: "unavailable".to_owned(),
            message: "the control plane could not finish this".to_owned(),
            details: None,
            hint: Some("try again in a moment; the server's log has the cause".to_owned()),
        };
        Self { status: 503, error }
    }

    /// Somebody else changed the same thing at the same time, again and again.
    pub fn contended(stream: &dyn std::fmt::Display) -> Self {
        let error = ApiError {
            code: "conflict".to_owned(),
            message: format!("{stream} was changed at the same time"),
            details: None,
            hint: Some("look at it again, then decide anew".to_owned()),
        };
        Self { status: 409, error }
    }
}

/// What a stream that cannot be read is refused with.
const UNREADABLE: &str = "unreadable";

impl CommandError {
    /// What the log holds about something cannot be read by this version: an event of a newer one, or damage. Asking again
    /// does not help, and nothing else is touched by it.
    fn unreadable(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "a stream of the log cannot be read");
        let error = ApiError {
            code: UNREADABLE.to_owned(),
            message: "the control plane cannot read what its log holds about this".to_owned(),
            details: None,
            hint: Some(
                "an event of a newer version is read by that version; otherwise run `benchtrail verify`. The server's log \
                 has the cause"
                    .to_owned(),
            ),
        };
        Self { status: 503, error }
    }

    /// Whether it is about one thing whose events cannot be read, while everything else goes on.
    pub fn is_unreadable(&self) -> bool {
        self.error.code == UNREADABLE
    }
}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        Self { status: refusal.class.status(), error: refusal.to_api() }
    }
}

impl From<Denied> for CommandError {
    fn from(denied: Denied) -> Self {
        Self { status: denied.status().as_u16(), error: denied.api_error() }
    }
}

impl From<AuthError> for CommandError {
    fn from(error: AuthError) -> Self {
        Self { status: error.status().as_u16(), error: error.api_error() }
    }
}

impl From<LogError> for CommandError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Damaged { .. } => Self::unreadable(&error),
            _ => Self::unavailable(&error),
        }
    }
}

impl From<LoadError> for CommandError {
    fn from(error: LoadError) -> Self {
        Self::unreadable(&error)
    }
}

impl From<sqlx::Error> for CommandError {
    fn from(error: sqlx::Error) -> Self {
        Self::unavailable(&error)
    }
}

impl From<events::keys::KeyError> for CommandError {
    fn from(error: events::keys::KeyError) -> Self {
        Refusal::from(error).into()
    }
}

impl From<CommandError> for Failure {
    fn from(command: CommandError) -> Self {
        let status =
            http::StatusCode::from_u16(command.status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after_s = (command.status == 503).then_some(1);
        Self { status, error: command.error, retry_after_s }
    }
}
