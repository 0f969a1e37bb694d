//! Projects, workloads, runs and jobs, and the doubts about results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ScenarioMatrix;
use crate::project::ProjectVisibility;

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
    /// Tool arguments beyond the defaults: those of the tool (`v_tools`), and of every tool `job_timeout_seconds`,
    /// `served_model_name` and, where it takes a tokenizer, `tokenizer`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_tool_args: BTreeMap<String, Value>,
    /// The endpoint, for framework `openai`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_endpoint_url: Option<String>,
    /// The source of the inputs; absent means what the tool makes up, where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_prompt_source_code: Option<String>,
    /// Which build of the framework version, by its name in the catalogue's `container_images`; absent means the one for the
    /// server's hardware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_build_profile: Option<String>,
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
    /// Another set of engine arguments, as it stands; empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_engine_args_set_code: Option<String>,
    /// Engine arguments to set beside or instead of those there; null removes one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_engine_args: BTreeMap<String, Value>,
    /// Tool arguments to set beside or instead of those there; null removes one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_tool_args: BTreeMap<String, Value>,
    /// Another source of the inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_prompt_source_code: Option<String>,
    /// Another build of the framework version; empty for the one that the server's hardware needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_build_profile: Option<String>,
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

/// `POST /api/rpc/rename_workload`: the display name; the code stays. Keys in the answer: `workload`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RenameWorkload {
    /// The project.
    pub p_project_code: String,
    /// The workload.
    pub p_workload_code: String,
    /// Its new display name.
    pub p_name: String,
}

/// `POST /api/rpc/archive_workload`: no more runs of it; its results stay. Keys in the answer: `workload`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ArchiveWorkload {
    /// The project.
    pub p_project_code: String,
    /// The workload.
    pub p_workload_code: String,
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
