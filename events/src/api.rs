//! Request and answer types shared by the control plane, the agent and the page.

mod people;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::Role;
use crate::job::ResolvedCommands;
use crate::project::ProjectVisibility;
use crate::timestamp::Timestamp;
use crate::workload::ScenarioSpec;

pub use crate::api_tools::{ContentFormat, CreatePromptSource, ImportResults, IngestInferencexResults};
pub use crate::matrix::ScenarioMatrix;
pub use people::*;

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
    /// What the button for signing in by the OpenID provider says; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc: Option<String>,
    /// The control plane's version.
    pub version: String,
}

/// One workload of `create_project`, or `create_workload`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkloadInput {
    /// The workload's code; absent means made from the model, framework and quantization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_workload_code: Option<String>,
    /// The display name; absent means the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_name: Option<String>,
    /// The model's code.
    pub p_model_code: String,
    /// The framework's code.
    pub p_framework_code: String,
    /// The framework's version.
    pub p_framework_version: String,
    /// The tool's code; absent means the tool of the model's modality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_tool_code: Option<String>,
    /// The numeric format of the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_quantization: Option<String>,
    /// The named preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_engine_args_set_code: Option<String>,
    /// Flags beyond the preset.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_engine_args: BTreeMap<String, Value>,
    /// Tool arguments beyond the defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_tool_args: BTreeMap<String, Value>,
    /// The endpoint, for framework `openai`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_endpoint_url: Option<String>,
    /// The source of the inputs; absent means what the tool makes up, where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_prompt_source_code: Option<String>,
    /// Keep one model server for all jobs of a run.
    #[serde(default)]
    pub p_keep_server: bool,
    /// The matrix that multiplies out into scenarios.
    pub p_scenarios: ScenarioMatrix,
}

/// `POST /api/rpc/create_project`. Keys in the answer: `project_code`, `workload_codes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateProject {
    /// The project's code; absent means made from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_project_code: Option<String>,
    /// The display name.
    pub p_name: String,
    /// Who may see it.
    #[serde(default)]
    pub p_visibility: ProjectVisibility,
    /// Its workloads.
    #[serde(default)]
    pub p_workloads: Vec<WorkloadInput>,
    /// Execute the one workload at once; absent saves the project as a draft, whose workloads are executed one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_execute: Option<ExecuteOn>,
}

/// Where to execute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExecuteOn {
    /// The server's configuration.
    pub p_config_code: String,
    /// The server's host name.
    pub p_hostname: String,
}

/// `POST /api/rpc/clone_workload`: the same workload again with its scenarios, as a draft. Keys in the answer:
/// `project_code`, `workload_code`, `scenario_codes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CloneWorkload {
    /// The project it is in.
    pub p_project_code: String,
    /// The workload.
    pub p_workload_code: String,
    /// The project that gets it; absent means the workload's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_target_project_code: Option<String>,
    /// The new workload's code.
    pub p_new_workload_code: String,
    /// Its display name; absent means the workload's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_name: Option<String>,
    /// Another framework version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_framework_version: Option<String>,
    /// Another numeric format of the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_quantization: Option<String>,
    /// Engine arguments to set beside or instead of those there; null removes one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_engine_args: BTreeMap<String, Value>,
    /// Tool arguments to set beside or instead of those there; null removes one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_tool_args: BTreeMap<String, Value>,
    /// Another source of the inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_prompt_source_code: Option<String>,
}

/// `POST /api/rpc/create_workload`. Keys in the answer: `workload_code`, `scenario_codes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateWorkload {
    /// The project.
    pub p_project_code: String,
    /// The workload.
    pub p_workload: WorkloadInput,
}

/// `POST /api/rpc/rename_project`: the display name; the code stays. Keys in the answer: `project`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RenameProject {
    /// The project.
    pub p_project_code: String,
    /// Its new display name.
    pub p_name: String,
}

/// `POST /api/rpc/set_project_visibility`. Keys in the answer: `project`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetProjectVisibility {
    /// The project.
    pub p_project_code: String,
    /// Who may see it from now on, with all its results.
    pub p_visibility: ProjectVisibility,
}

/// `POST /api/rpc/archive_project`: it takes no more work; its results stay. Keys in the answer: `project`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ArchiveProject {
    /// The project.
    pub p_project_code: String,
}

/// `POST /api/rpc/start_run`. Keys in the answer: `run` (stream key), `run_number`, `job_keys`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// The project.
    pub p_project_code: String,
    /// The workload.
    pub p_workload_code: String,
    /// The server's configuration.
    pub p_config_code: String,
    /// The server's host name.
    pub p_hostname: String,
    /// The scenarios to execute; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_scenario_codes: Option<Vec<String>>,
}

/// `POST /api/rpc/cancel_run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CancelRun {
    /// The project.
    pub p_project_code: String,
    /// The workload.
    pub p_workload_code: String,
    /// The run's number.
    pub p_run_number: u32,
}

/// `POST /api/rpc/cancel_job`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CancelJob {
    /// The project.
    pub p_project_code: String,
    /// The workload.
    pub p_workload_code: String,
    /// The run's number.
    pub p_run_number: u32,
    /// The scenario.
    pub p_scenario_code: String,
}

/// `POST /api/rpc/retry_job`: a failed job is tried again in its run. Keys in the answer: `run`, `job`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RetryJob {
    /// The project.
    pub p_project_code: String,
    /// The workload.
    pub p_workload_code: String,
    /// The run's number.
    pub p_run_number: u32,
    /// The scenario.
    pub p_scenario_code: String,
}

/// `POST /api/rpc/rerun`: an earlier run once more, as a run of its own. Keys in the answer: those of `start_run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rerun {
    /// The project.
    pub p_project_code: String,
    /// The workload.
    pub p_workload_code: String,
    /// The earlier run's number.
    pub p_run_number: u32,
    /// The server's configuration; absent means that of the earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_config_code: Option<String>,
    /// The server's host name; absent means that of the earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_hostname: Option<String>,
    /// Only the scenarios whose jobs failed.
    #[serde(default)]
    pub p_only_failed: bool,
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

/// `POST /api/rpc/cancel_stale_jobs`: stops the runs that wait for servers which are stale, offline or removed.
/// Keys in the answer: `runs` (stream keys).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CancelStaleJobs {
    /// Only those of servers with this configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_config_code: Option<String>,
    /// Only those of servers with this host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_hostname: Option<String>,
}

/// `POST /api/rpc/flag_result`: a person doubts a job's result. Keys in the answer: `job`, `rule`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FlagResult {
    /// The project.
    pub p_project_code: String,
    /// The workload.
    pub p_workload_code: String,
    /// The run's number.
    pub p_run_number: u32,
    /// The scenario.
    pub p_scenario_code: String,
    /// A short stable word; absent means `doubted_by_person`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_rule: Option<String>,
    /// What is odd.
    pub p_message: String,
}

/// `POST /api/rpc/clear_flag`: a person looked at a doubt and clears it. Keys in the answer: `job`, `rule`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClearFlag {
    /// The project.
    pub p_project_code: String,
    /// The workload.
    pub p_workload_code: String,
    /// The run's number.
    pub p_run_number: u32,
    /// The scenario.
    pub p_scenario_code: String,
    /// The flag's rule.
    pub p_rule: String,
    /// Why the result can be trusted.
    pub p_reason: String,
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

/// `POST /api/rpc/check_readiness` and `POST /api/rpc/preview_commands`: a workload that need not be saved, on a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckReadiness {
    /// The workload.
    pub p_workload: WorkloadInput,
    /// The server's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_config_code: Option<String>,
    /// The server's host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_hostname: Option<String>,
}

/// One way out of a finding, so that the page can offer it as a button.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cure {
    /// Set a field of the workload, for example `p_engine_args.tensor_parallel_size`.
    Set {
        /// The field: the path in the arguments of `check_readiness`' `p_workload`.
        field: String,
        /// Its new value; null takes an argument of the set away.
        value: Value,
        /// The cure as a sentence.
        label: String,
    },
    /// Take a field of the workload out.
    Unset {
        /// The field.
        field: String,
        /// The cure as a sentence.
        label: String,
    },
    /// Go to a page.
    Link {
        /// Where: a path of the page.
        href: String,
        /// The cure as a sentence.
        label: String,
    },
    /// Send a command.
    Command {
        /// The command.
        command: String,
        /// Its arguments.
        args: Value,
        /// The role it needs.
        role: Role,
        /// The cure as a sentence.
        label: String,
    },
    /// Do something on the host by hand.
    Host {
        /// A line to run there, or to write into `agent.toml`.
        line: String,
        /// The cure as a sentence.
        label: String,
    },
    /// Decide something that no button can.
    Advice {
        /// The cure as a sentence.
        label: String,
    },
}

impl Cure {
    /// The cure as a sentence.
    pub fn label(&self) -> &str {
        match self {
            Self::Set { label, .. }
            | Self::Unset { label, .. }
            | Self::Link { label, .. }
            | Self::Command { label, .. }
            | Self::Host { label, .. }
            | Self::Advice { label } => label,
        }
    }
}

/// One readiness rule's finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadinessCheck {
    /// A short stable word, for example `server_online`.
    pub rule: String,
    /// What is checked, for people.
    pub title: String,
    /// `ok`, `warning`, `fails` or `unknown` (the facts are missing).
    pub result: String,
    /// The finding with its numbers.
    pub message: String,
    /// What would cure it, each a sentence.
    #[serde(default)]
    pub cures: Vec<String>,
    /// The same cures, for programs.
    #[serde(default)]
    pub cure: Vec<Cure>,
}

/// The answer of `check_readiness`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Readiness {
    /// True when no rule fails.
    pub ready: bool,
    /// Every rule's finding.
    pub checks: Vec<ReadinessCheck>,
    /// The scenarios as they roll out.
    pub scenarios: Vec<ScenarioSpec>,
    /// The commands for the first scenario; absent where they cannot be resolved (a check says why).
    #[serde(default)]
    pub commands: Option<ResolvedCommands>,
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

/// One event as history and the live stream show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventView {
    /// Its place in the log.
    pub position: i64,
    /// Its stream.
    pub stream: String,
    /// Its place in the stream, from 1.
    pub version: i64,
    /// Its id.
    pub event_id: String,
    /// Its type, for example `job.claimed`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The payload's version.
    pub schema_version: u16,
    /// When it happened, as its sender says.
    pub occurred_at: Timestamp,
    /// When the control plane recorded it.
    pub recorded_at: Timestamp,
    /// Who: `user`, `agent`, `system`, `anonymous`.
    pub actor_kind: String,
    /// Their id.
    pub actor_id: String,
    /// Their name, where the vault still has one and the reader may see it.
    #[serde(default)]
    pub actor_name: Option<String>,
    /// The event that caused it.
    #[serde(default)]
    pub causation_id: Option<String>,
    /// The chain of work it belongs to.
    #[serde(default)]
    pub correlation_id: Option<String>,
    /// SHA-256 of the canonical envelope, hexadecimal.
    pub leaf: String,
    /// SHA-256 of the previous hash and the leaf, hexadecimal.
    pub hash: String,
    /// What happened.
    pub payload: Value,
}

/// One link of the provenance chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainLink {
    /// `project`, `workload`, `scenario`, `run`, `job`, `invocation`, `metrics`.
    pub link: String,
    /// Its natural key, or the tool and version, or the summary's id.
    pub key: String,
    /// The position of the event that made it.
    pub position: i64,
    /// That event's hash, hexadecimal.
    pub hash: String,
    /// When it was recorded.
    pub recorded_at: Timestamp,
}

/// `GET /api/history?stream=<key>` and `GET /api/history?result=<job key>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct History {
    /// For a result: project → … → metrics. Empty for a stream.
    #[serde(default)]
    pub chain: Vec<ChainLink>,
    /// The events, in order of position.
    pub events: Vec<EventView>,
    /// Set when there are more: the position to go on after.
    #[serde(default)]
    pub next_after: Option<i64>,
}

/// `data:` of an SSE message `event: event`; its `id:` is the position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveEvent {
    /// The position of the previous event that matched this client's topics, 0 for none:
    /// a client that holds another number has lost something.
    pub previous: i64,
    /// The event. The payload of joined telemetry carries every sample.
    #[serde(flatten)]
    pub event: EventView,
}

/// `data:` of an SSE message `event: head`, every 15 seconds and at the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveHead {
    /// The log's last position.
    pub position: i64,
    /// The position of the last event that matched this client's topics, 0 for none.
    pub previous: i64,
}
