//! Access: organisations, accounts, tokens and sign-ins. Ids and fingerprints only; names and secrets live in the vault.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

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

/// An administrator gave an organisation another display name. Stream: `org/<org>`. The code stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrgRenamed {
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

/// An administrator invited somebody. Stream: `org/<org>`. Whoever has the link, which is in no event, may accept once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvitationCreated {
    /// The invitation's id, not its link.
    pub invitation: String,
    /// The role it gives.
    pub role: Role,
    /// Until when it can be accepted.
    pub expires_at: Timestamp,
}

/// An account accepted an invitation. Stream: `org/<org>`. Its role is set in the same append.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvitationAccepted {
    /// The invitation's id.
    pub invitation: String,
    /// The account's id.
    pub user: String,
}

/// An administrator withdrew an invitation. Stream: `org/<org>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvitationRevoked {
    /// The invitation's id.
    pub invitation: String,
}

/// Somebody signed in. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignedIn {
    /// How: `password`, `oidc`, `invitation` (a new account's first), or `switch` from another organisation.
    pub method: String,
}

/// A sign-in was refused for a known account. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignInRefused {
    /// `wrong_password` or `throttled`; for a change of password also `wrong_current_password`.
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

/// Sessions were ended by their owner, or because the password changed. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignedOut {
    /// The sessions' ids, at most 100 of them.
    pub sessions: Vec<String>,
    /// How many sessions ended.
    pub count: u64,
    /// Whether these were all there were.
    pub everywhere: bool,
}

/// An account got another password. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PasswordChanged {
    /// `owner`, who knew the one before, or `operator`, on the control plane's host.
    pub by: String,
}

/// An account got another name. Stream: `access/<org>/<user id>`. The name is in the vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileChanged {
    /// Which fields: `name`.
    pub fields: Vec<String>,
}

/// A one-time token for a server's agent was made. Stream: `access/<org>/<user id>` of who made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnrolTokenCreated {
    /// The server's stream key.
    pub server: String,
    /// Until when it can be used.
    pub expires_at: Timestamp,
}

/// Somebody took the rows of a view away as a file. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exported {
    /// The view.
    pub view: String,
    /// The media type, for example `text/csv`.
    pub format: String,
}

/// An account was recognised by an OpenID provider for the first time, by its verified e-mail or an invitation.
/// Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IdentityLinked {
    /// The provider.
    pub issuer: String,
}

/// Whose secret it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SecretScope {
    /// An account's own: for the runs it starts.
    User,
    /// An organisation's: for the runs of everybody in it who has none of their own.
    Organization,
}

/// Somebody stored a secret, in the place of an earlier one if there was one. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecretStored {
    /// The secret's id, not the secret.
    pub secret: String,
    /// The environment variable it is released as, for example `HF_TOKEN`.
    pub name: String,
    /// Whose it is.
    pub scope: SecretScope,
    /// The beginning of its SHA-256, hexadecimal.
    pub fingerprint: String,
}

/// Somebody removed a secret. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecretRemoved {
    /// The secret's id.
    pub secret: String,
    /// The environment variable it was released as.
    pub name: String,
    /// Whose it was.
    pub scope: SecretScope,
}

/// A secret was given to the agent that carries out a job. Stream: `access/<org>/<user id>` of who started the run. The
/// event that caused it is the job's claim: the job is named to those who may see it, and to nobody else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecretReleased {
    /// The secret's id.
    pub secret: String,
    /// The environment variable.
    pub name: String,
    /// Whose it is.
    pub scope: SecretScope,
    /// The server whose agent got it, a stream key.
    pub server: String,
}

/// Somebody said which e-mails they want in an organisation. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotificationPreferencesSet {
    /// Of which runs that completed: `off`, `own`, `all` that they may see.
    pub run_completed: String,
    /// Of which runs that failed.
    pub run_failed: String,
    /// The week's doings.
    pub weekly_summary: bool,
    /// For administrators: a quota is nearly used up.
    pub quota: bool,
}

/// Somebody added a receiver of webhooks. Stream: `access/<org>/<user id>`. Its address and secret are in the vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookCreated {
    /// The webhook's id.
    pub webhook: String,
    /// What it is sent.
    pub kinds: Vec<String>,
    /// Of which runs: `own` or `all` that its owner may see.
    pub runs: String,
}

/// A receiver of webhooks gets nothing any more. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookRemoved {
    /// The webhook's id.
    pub webhook: String,
    /// `removed` by its owner, or `gone`: it answered so itself.
    pub reason: String,
}

/// A notification reached its receiver's server. Stream: `access/<org>/<user id>`. Caused by the event it is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotificationSent {
    /// The message's id.
    pub notification: String,
    /// `run_completed`, `run_failed`, `weekly_summary`, `quota`, `test`.
    pub kind: String,
    /// `email`, or `webhook` and its id.
    pub channel: String,
    /// The id of the event it is about, or the week.
    pub source: String,
    /// Tries it took.
    pub attempts: u32,
}

/// A notification was given up. Stream: `access/<org>/<user id>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotificationAbandoned {
    /// The message's id.
    pub notification: String,
    /// As in `notification.sent`.
    pub kind: String,
    /// As in `notification.sent`.
    pub channel: String,
    /// As in `notification.sent`.
    pub source: String,
    /// Tries that were made.
    pub attempts: u32,
    /// Why the last one failed.
    pub reason: String,
}
