//! Request and answer types shared by the control plane, the agent and the page.

mod history;
mod people;
mod readiness;
mod work;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::Role;

pub use crate::api_tools::{
    ContentFormat, CreatePromptSource, ImportResults, IngestInferencexResults, RemoveToolArgsSet,
    SaveToolArgsSet,
};
pub use crate::matrix::ScenarioMatrix;
pub use history::*;
pub use people::*;
pub use readiness::*;
pub use work::*;

/// Every error of the API, in PostgREST's shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApiError {
    /// A short stable word, for example `project_not_found`.
    pub code: String,
    /// What happened.
    pub message: String,
    /// Why, with particulars.
    #[serde(default)]
    pub details: Option<String>,
    /// What to do.
    #[serde(default)]
    pub hint: Option<String>,
}

/// The answer of every command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandReply {
    /// The log position of the command's last event: `Prefer: at-least=<position>` waits for it.
    pub position: i64,
    /// The natural keys the command made or touched, for example `project_code`, `run_number`, `run` (a stream key).
    #[serde(flatten)]
    pub keys: BTreeMap<String, Value>,
}

/// `POST /api/rpc/sign_in`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The account's e-mail.
    pub p_email: String,
    /// The password.
    pub p_password: String,
}

/// `GET /api/session`, and the answer of `sign_in`: who is asking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    /// The account's id; absent for anonymous readers.
    #[serde(default)]
    pub user: Option<String>,
    /// The account's name.
    #[serde(default)]
    pub name: Option<String>,
    /// The organisation worked in.
    #[serde(default)]
    pub org: Option<String>,
    /// The role there.
    #[serde(default)]
    pub role: Option<Role>,
    /// The session that asked, as `v_sessions` lists it; absent where no session did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// A position of the log that was reached by now: whoever reads at least that and follows from there misses nothing.
    #[serde(default)]
    pub position: i64,
    /// What the button for signing in by the OpenID provider says; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc: Option<String>,
    /// The control plane's version.
    pub version: String,
}

/// `POST /api/rpc/set_server_maintenance`: a server in maintenance gets no new job. Keys in the answer: `server`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetServerMaintenance {
    /// Its configuration.
    pub p_config_code: String,
    /// Its host name.
    pub p_hostname: String,
    /// Whether it is in maintenance from now on.
    pub p_on: bool,
    /// Why; needed to begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_reason: Option<String>,
}

/// `POST /api/rpc/create_server_config_instance`: registers a server and makes its one-time token.
/// Keys in the answer: `server`, `enrol_token`, `bootstrap_command`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateServer {
    /// The server configuration's code.
    pub p_config_code: String,
    /// The host name.
    pub p_hostname: String,
    /// The host's IP address: a note for people. Agents connect to the control plane, never it to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_ip_address: Option<String>,
    /// The file that the bootstrap command saves its script to; absent means `agent-bootstrap.sh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_bootstrap_script_filename: Option<String>,
    /// A free comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_comment: Option<String>,
    /// What an hour costs, US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_cost_per_hour_usd: Option<f64>,
}

/// `POST /api/rpc/remove_server`: its agent is let in no more; its results stay. Keys in the answer: `server`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveServer {
    /// Its configuration.
    pub p_config_code: String,
    /// Its host name.
    pub p_hostname: String,
}

/// `POST /api/rpc/save_view`: keeps an address of the page under a name, or puts another in its place. Keys in the
/// answer: `saved_view` (its stream), `view_code`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SaveView {
    /// The display name.
    pub p_name: String,
    /// Its code; made of the name where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_view_code: Option<String>,
    /// The page: `/reporting`.
    pub p_page: String,
    /// What the page is set to: the part of its address after `?`.
    #[serde(default)]
    pub p_query: String,
    /// Whether the whole organisation has it; otherwise the caller alone.
    #[serde(default)]
    pub p_shared: bool,
}

/// `POST /api/rpc/remove_view`. Keys in the answer: `saved_view` (its stream), `view_code`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveView {
    /// Its code.
    pub p_view_code: String,
    /// Whether it is one that the whole organisation has.
    #[serde(default)]
    pub p_shared: bool,
}

/// `POST /api/rpc/create_api_token`. Keys in the answer: `token_id`, `token` (shown once).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateApiToken {
    /// What it is for.
    pub p_name: String,
    /// `read`, `write`, `admin`.
    pub p_scopes: Vec<String>,
    /// Days until it expires, at most 365.
    pub p_expires_in_days: u32,
}

/// `POST /api/rpc/revoke_api_token`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RevokeApiToken {
    /// The token's id.
    pub p_token_id: String,
}
