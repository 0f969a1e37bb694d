//! Why a report is refused.

use events::api::ApiError;
use events::report::ItemOutcome;

use crate::domain::Refusal;

/// A report that will never be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refused {
    /// A short stable word.
    pub code: String,
    /// What happened and why.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl Refused {
    /// A refusal.
    pub fn new(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), hint: hint.into() }
    }

    /// As the outcome of an item.
    pub fn outcome(self) -> ItemOutcome {
        ItemOutcome::Rejected { code: self.code, message: self.message, hint: self.hint }
    }

    /// As the error of a whole request.
    pub fn api_error(self) -> ApiError {
        ApiError { code: self.code, message: self.message, details: None, hint: Some(self.hint) }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let message = match refusal.details {
            Some(details) => format!("{}: {details}", refusal.message),
            None => refusal.message,
        };
        let hint = refusal.hint.unwrap_or_else(|| "drop the report and read the agent's log".to_owned());
        Self { code: refusal.code.to_owned(), message, hint }
    }
}
