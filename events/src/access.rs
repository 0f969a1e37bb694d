//! Access: organisations, accounts, tokens and sign-ins. Ids and fingerprints only; names and secrets live in the vault.

use serde::{Deserialize, Serialize};

/// What a member may do in an organisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads what the organisation may see.
    Viewer,
    /// Also creates projects and executes runs.
    Member,
    /// Also manages servers, members and dangerous flags.
    Admin,
}

impl Role {
    /// The word used in SQL, the API and the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }
}

/// An organisation came to be. Stream: `org/<org>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrgCreated {
    /// The display name.
    pub name: String,
}

/// An account came to be. Stream: `user/_/<user id>`. Name and e-mail are in the vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserCreated {}

/// An account got a role in an organisation. Stream: `org/<org>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberRoleSet {
    /// The account's id.
    pub user: String,
    /// The role; absent means the membership ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

/// Somebody signed in. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignedIn {
    /// How: `password` or `oidc`.
    pub method: String,
}

/// A sign-in was refused for a known account. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignInRefused {
    /// `wrong_password` or `throttled`.
    pub reason: String,
}

/// An API token was made. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenCreated {
    /// The token's id, not the token.
    pub token: String,
    /// What it may do: `read`, `write`, `admin`.
    pub scopes: Vec<String>,
}

/// An API token was revoked. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenRevoked {
    /// The token's id.
    pub token: String,
}
