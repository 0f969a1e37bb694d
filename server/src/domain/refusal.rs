//! A decision's no: what happened, why, and what to do.

use events::api::ApiError;

/// What kind of no, and thereby the HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalClass {
    /// The request itself is at fault: 400.
    Invalid,
    /// The caller has no right to it: 403.
    Forbidden,
    /// There is no such thing, or the caller may not see it: 404.
    NotFound,
    /// It contradicts what is there: 409.
    Conflict,
    /// It is well formed, but the world is not ready for it: 422.
    Unready,
}

impl RefusalClass {
    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Unready => 422,
        }
    }

    /// What to do where the refusal itself does not say.
    fn hint(self) -> &'static str {
        match self {
            Self::Invalid => "correct the value the message names, then send it again",
            Self::Forbidden => "ask an administrator of the organisation",
            Self::NotFound => "check its code; you may also lack the right to see it",
            Self::Conflict => "look at it again, then decide anew",
            Self::Unready => "remove what stands in the way, then try again",
        }
    }
}

/// A decision's no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// A short stable word, for example `project_exists`.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// Why, with particulars.
    pub details: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// What kind of no.
    pub class: RefusalClass,
}

impl Refusal {
    fn new(class: RefusalClass, code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None, hint: None, class }
    }

    /// The request itself is at fault.
    pub fn invalid(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(RefusalClass::Invalid, code, message)
    }

    /// The caller has no right to it.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(RefusalClass::Forbidden, code, message)
    }

    /// There is no such thing, or the caller may not see it.
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(RefusalClass::NotFound, code, message)
    }

    /// It contradicts what is there.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(RefusalClass::Conflict, code, message)
    }

    /// It is well formed, but the world is not ready for it.
    pub fn unready(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(RefusalClass::Unready, code, message)
    }

    /// Says why, with particulars.
    #[must_use]
    pub fn because(mut self, details: impl Into<String>) -> Self {
        self.details = Some(details.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The error as the API shows it.
    pub fn to_api(&self) -> ApiError {
        ApiError {
            code: self.code.to_owned(),
            message: self.message.clone(),
            details: self.details.clone(),
            hint: Some(self.hint.clone().unwrap_or_else(|| self.class.hint().to_owned())),
        }
    }
}

impl From<events::keys::KeyError> for Refusal {
    fn from(error: events::keys::KeyError) -> Self {
        Self::invalid("bad_code", error.to_string())
    }
}
