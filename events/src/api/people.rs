//! Arguments of the commands about people: organisations, invitations, accounts, sessions.

use serde::{Deserialize, Serialize};

use crate::access::{Role, SecretScope};
use crate::timestamp::Timestamp;

/// `POST /api/rpc/create_organization`: the caller becomes its first administrator. Keys in the answer: `org`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateOrganization {
    /// Its code, which never changes.
    pub p_org_code: String,
    /// The display name.
    pub p_name: String,
}

/// `POST /api/rpc/rename_organization`: the organisation worked in. Keys in the answer: `org`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RenameOrganization {
    /// The new display name.
    pub p_name: String,
}

/// `POST /api/rpc/switch_organization`: the session goes on in another organisation of its owner's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SwitchOrganization {
    /// Its code.
    pub p_org_code: String,
}

/// `POST /api/rpc/set_member_role`. Keys in the answer: `user`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetMemberRole {
    /// The account's id, as `v_members` shows it.
    pub p_user_id: String,
    /// The role from now on.
    pub p_role: Role,
}

/// `POST /api/rpc/remove_member`: an administrator removes a member, or a member leaves. Keys in the answer: `user`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveMember {
    /// The account's id.
    pub p_user_id: String,
}

/// `POST /api/rpc/create_invitation`. Keys in the answer: `invitation_id`, `link` (shown once), `expires_at`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateInvitation {
    /// The role it gives.
    pub p_role: Role,
    /// Days until it expires, 1 to 30.
    #[serde(default = "a_week")]
    pub p_expires_in_days: u32,
    /// Only the account with this e-mail may accept it; absent means whoever has the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_email: Option<String>,
}

fn a_week() -> u32 {
    7
}

/// `POST /api/rpc/revoke_invitation`. Keys in the answer: `invitation_id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RevokeInvitation {
    /// Its id.
    pub p_invitation_id: String,
}

/// `POST /api/rpc/describe_invitation`: what a link leads to. In a body, so that the link's secret is in no log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DescribeInvitation {
    /// The secret in the link, `bt_i_…`.
    pub p_token: String,
}

/// The answer of `describe_invitation`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InvitationShown {
    /// The organisation's code.
    pub org: String,
    /// Its display name.
    pub org_name: String,
    /// The role it gives.
    pub role: Role,
    /// Until when it can be accepted.
    pub expires_at: Timestamp,
}

/// `POST /api/rpc/accept_invitation`: with the caller's account, or with the e-mail and password of one that exists or
/// comes to be. Without a session it starts one; the answer is then that of `sign_in`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AcceptInvitation {
    /// The secret in the link, `bt_i_…`.
    pub p_token: String,
    /// The e-mail, where nobody is signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_email: Option<String>,
    /// The password, where nobody is signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_password: Option<String>,
    /// The name shown to others, for a new account; absent means the e-mail's first part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_name: Option<String>,
}

/// `POST /api/rpc/start_oidc_sign_in`: the browser goes to the address in the answer and comes back signed in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StartOidcSignIn {
    /// The path of this page to go on at.
    #[serde(default = "the_start")]
    pub p_return_to: String,
    /// The secret in an invitation's link, to be accepted with the account that signs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_invitation: Option<String>,
}

fn the_start() -> String {
    "/".to_owned()
}

/// The answer of `start_oidc_sign_in`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OidcStarted {
    /// Where the browser goes.
    pub authorization_url: String,
}

/// `POST /api/rpc/set_hf_token`: stores a Hugging Face token, sealed; it is never shown again. Keys in the answer:
/// `secret_id`, `fingerprint`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetHfToken {
    /// The token, `hf_…`.
    pub p_token: String,
    /// Whose it is; an organisation's is for its administrators to set.
    #[serde(default = "own")]
    pub p_scope: SecretScope,
}

impl std::fmt::Debug for SetHfToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetHfToken").field("p_scope", &self.p_scope).finish_non_exhaustive()
    }
}

fn own() -> SecretScope {
    SecretScope::User
}

/// `POST /api/rpc/remove_hf_token`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveHfToken {
    /// Whose it is.
    #[serde(default = "own")]
    pub p_scope: SecretScope,
}

/// Of which runs somebody is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunsTold {
    /// Of none.
    Off,
    /// Of those they started.
    Own,
    /// Of all that they may see.
    All,
}

impl RunsTold {
    /// The word used in SQL and the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Own => "own",
            Self::All => "all",
        }
    }
}

/// `POST /api/rpc/set_notification_preferences`: the caller's own, in the organisation worked in. What is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetNotificationPreferences {
    /// An e-mail when a run completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_run_completed: Option<RunsTold>,
    /// An e-mail when a run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_run_failed: Option<RunsTold>,
    /// An e-mail on Mondays about the week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_weekly_summary: Option<bool>,
    /// For administrators: an e-mail when a quota is nearly used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_quota: Option<bool>,
}

/// Of which runs a webhook is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WebhookRuns {
    /// Those its owner started.
    #[default]
    Own,
    /// All that its owner may see.
    All,
}

impl WebhookRuns {
    /// The word used in SQL and the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::All => "all",
        }
    }
}

/// `POST /api/rpc/create_webhook`. Keys in the answer: `webhook_id`, `secret` (`whsec_…`, shown once).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateWebhook {
    /// Where messages are posted to. It may hold a secret, and is not shown again.
    pub p_url: String,
    /// `run_completed`, `run_failed`, `quota`.
    pub p_kinds: Vec<String>,
    /// Of which runs.
    #[serde(default)]
    pub p_runs: WebhookRuns,
}

impl std::fmt::Debug for CreateWebhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateWebhook").field("p_kinds", &self.p_kinds).finish_non_exhaustive()
    }
}

/// `POST /api/rpc/remove_webhook`. Keys in the answer: `webhook_id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveWebhook {
    /// Its id.
    pub p_webhook_id: String,
}

/// `POST /api/rpc/test_notification`: a message to see whether it arrives. Keys in the answer: `channel`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TestNotification {
    /// To this webhook; absent means by e-mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_webhook_id: Option<String>,
}

/// `POST /api/rpc/change_password`: every other session of the account ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangePassword {
    /// The password as it is.
    pub p_current_password: String,
    /// The password as it shall be: 10 to 256 characters, and none that is easily guessed.
    pub p_new_password: String,
}

/// `POST /api/rpc/change_name`: the caller's own name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeName {
    /// The name shown to others.
    pub p_name: String,
}

/// `POST /api/rpc/revoke_session`: one of the caller's own. Keys in the answer: `session_id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RevokeSession {
    /// Its id, as `v_sessions` shows it.
    pub p_session_id: String,
}
