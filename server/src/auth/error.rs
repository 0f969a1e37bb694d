//! Why somebody may not do something, or could not be let in.

use events::access::Role;
use events::api::ApiError;
use http::StatusCode;

use crate::log::LogError;
use crate::secrets::SecretsError;

/// A refusal for want of rights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Nobody is signed in.
    #[error("this needs a sign-in")]
    SignIn,
    /// The role is too low.
    #[error("this needs the role {}, yours is {}", needed.as_str(), has.as_str())]
    Role {
        /// The role that is needed.
        needed: Role,
        /// The caller's role.
        has: Role,
    },
    /// The token's scopes do not cover it.
    #[error("the API token lacks the scope {}", scope_of(*needed))]
    Scope {
        /// The role that is needed.
        needed: Role,
    },
    /// Agents only report, claim and upload.
    #[error("an agent's token cannot be used here")]
    AgentsMayNot,
    /// A token cannot do what concerns the account it belongs to.
    #[error("this needs a session, not an API token")]
    OnlySessions,
    /// Only agents may.
    #[error("this needs an agent's token")]
    OnlyAgents,
}

/// The scope that stands for a role.
pub(super) fn scope_of(role: Role) -> &'static str {
    match role {
        Role::Viewer => "read",
        Role::Member => "write",
        Role::Admin => "admin",
    }
}

impl Denied {
    /// 401 when nobody is known, 403 when the known one may not.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::SignIn | Self::OnlyAgents => StatusCode::UNAUTHORIZED,
            Self::Role { .. } | Self::Scope { .. } | Self::AgentsMayNot | Self::OnlySessions => {
                StatusCode::FORBIDDEN
            }
        }
    }

    /// The refusal as the API says it.
    pub fn api_error(&self) -> ApiError {
        let (code, hint) = match self {
            Self::SignIn => {
                ("sign_in_required", "sign in, or send a token as `Authorization: Bearer bt_u_…`".to_owned())
            }
            Self::Role { needed, .. } => (
                "role_too_low",
                format!("ask an administrator of your organisation for the role {}", needed.as_str()),
            ),
            Self::Scope { needed } => {
                ("scope_missing", format!("make a token with the scope {}", scope_of(*needed)))
            }
            Self::AgentsMayNot => (
                "agents_may_not",
                "use a person's session or API token; agents only report, claim and upload".to_owned(),
            ),
            Self::OnlySessions => (
                "session_required",
                "sign in and send the session's cookie; a token cannot change the account it belongs to"
                    .to_owned(),
            ),
            Self::OnlyAgents => (
                "agent_token_required",
                "enrol the agent and send its token as `Authorization: Bearer bt_a_…`".to_owned(),
            ),
        };
        ApiError { code: code.to_owned(), message: self.to_string(), details: None, hint: Some(hint) }
    }
}

/// Why a sign-in, a token or an account was refused.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The caller lacks the right.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The e-mail or the password is wrong; which one is never said.
    #[error("the e-mail or the password is wrong")]
    WrongCredentials,
    /// Too many failures.
    #[error("too many failed sign-ins")]
    Throttled {
        /// Seconds to wait.
        retry_after_s: u64,
    },
    /// The account is in no organisation.
    #[error("this account belongs to no organisation")]
    NoMembership,
    /// The token is unknown, expired, revoked or used.
    #[error("the {what} is not valid: it is unknown, expired, revoked or was used before")]
    BadToken {
        /// What kind of token.
        what: &'static str,
        /// How to get a good one.
        hint: &'static str,
    },
    /// A value is not acceptable.
    #[error("{message}")]
    Invalid {
        /// A short stable word.
        code: &'static str,
        /// What is wrong with it.
        message: String,
        /// What to do.
        hint: &'static str,
    },
    /// There is no such thing, or not for this caller.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// It exists already.
    #[error("{0} exists already")]
    Exists(&'static str),
    /// The database failed.
    #[error("the vault's database: {0}")]
    Database(#[from] sqlx::Error),
    /// The log failed or refused.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log refused the event.
    #[error("the log refused the event: {0}")]
    Refused(String),
    /// A sealed value does not open.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
}

impl AuthError {
    /// The status that fits.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Denied(denied) => denied.status(),
            Self::WrongCredentials | Self::BadToken { .. } => StatusCode::UNAUTHORIZED,
            Self::Throttled { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::NoMembership => StatusCode::FORBIDDEN,
            Self::Invalid { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Exists(_) => StatusCode::CONFLICT,
            Self::Database(_) | Self::Log(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Refused(_) | Self::Secrets(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The error as the API says it. Nothing of the inside is shown.
    pub fn api_error(&self) -> ApiError {
        let say = |code: &str, hint: &str| ApiError {
            code: code.to_owned(),
            message: self.to_string(),
            details: None,
            hint: Some(hint.to_owned()),
        };
        match self {
            Self::Denied(denied) => denied.api_error(),
            Self::WrongCredentials => say(
                "wrong_credentials",
                "check both (the first account's are in first-sign-in.txt, in the data folder); `benchtrail user \
                     create` makes an account",
            ),
            Self::Throttled { retry_after_s } => {
                say("throttled", &format!("wait {retry_after_s} seconds, then try once more"))
            }
            Self::NoMembership => {
                say("no_membership", "ask an administrator to give the account a role in an organisation")
            }
            Self::BadToken { hint, .. } => say("bad_token", hint),
            Self::Invalid { code, hint, .. } => say(code, hint),
            Self::NotFound(_) => say("not_found", "check its name; you may also lack the right to see it"),
            Self::Exists(_) => say("exists_already", "use another name, or the one that exists"),
            Self::Database(_) | Self::Log(_) | Self::Refused(_) | Self::Secrets(_) => ApiError {
                code: "unavailable".to_owned(),
                message: "the control plane could not finish this".to_owned(),
                details: None,
                hint: Some("try again in a moment; the server's log has the cause".to_owned()),
            },
        }
    }
}
