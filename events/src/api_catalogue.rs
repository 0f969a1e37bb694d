//! Arguments and answers of the commands about the catalogue and about engine arguments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::{AcceleratorRegistered, FrameworkRegistered, ModelRegistered, ServerConfigRegistered};

/// `POST /api/rpc/register_model`: an entry of the caller's organisation, in full; sent again it is changed. It stands
/// before the platform's entry of the same code. Keys in the answer: `stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RegisterModel {
    /// The model's code, for example `acme/finetuned-llama`.
    pub p_model_code: String,
    /// Its facts.
    pub p_facts: ModelRegistered,
}

/// `POST /api/rpc/register_framework_version`. Keys in the answer: `stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RegisterFrameworkVersion {
    /// The framework's code.
    pub p_framework_code: String,
    /// Its version.
    pub p_framework_version: String,
    /// Its facts, templates included.
    pub p_facts: FrameworkRegistered,
}

/// `POST /api/rpc/register_accelerator`. Keys in the answer: `stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RegisterAccelerator {
    /// The accelerator type's code.
    pub p_accelerator_code: String,
    /// Its facts.
    pub p_facts: AcceleratorRegistered,
}

/// `POST /api/rpc/register_server_config`. Keys in the answer: `stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RegisterServerConfig {
    /// The configuration's code.
    pub p_config_code: String,
    /// Its facts.
    pub p_facts: ServerConfigRegistered,
}

/// `POST /api/rpc/create_engine_args_set`: a set of the caller's organisation. Keys in the answer: `set_code`, `version`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateEngineArgsSet {
    /// Its code, for example `vllm-llama33-70b-h100-tp4-long`.
    pub p_set_code: String,
    /// The display name; absent means the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_display_name: Option<String>,
    /// The framework.
    pub p_framework_code: String,
    /// The version whose templates the values are checked against.
    pub p_framework_version: String,
    /// The arguments: key → typed value.
    pub p_values: BTreeMap<String, Value>,
    /// The model it is for; absent means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_model_code: Option<String>,
    /// The precision it is for; absent means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_precision: Option<String>,
    /// The accelerators it is for; empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p_accelerator_codes: Vec<String>,
    /// Where the values come from, and what else is to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_notes: Option<String>,
}

/// `POST /api/rpc/clone_engine_args_set`: a new set of the organisation, like another but for some values.
/// Keys in the answer: `set_code`, `version`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CloneEngineArgsSet {
    /// The set to clone: the platform's or one of the organisation's.
    pub p_from_set_code: String,
    /// The new code.
    pub p_set_code: String,
    /// The new display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_display_name: Option<String>,
    /// Values that differ; null leaves one out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_values: BTreeMap<String, Value>,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_notes: Option<String>,
}

/// `POST /api/rpc/update_engine_args_set`: what is given replaces what was. Workloads keep the version they were made
/// with. Keys in the answer: `set_code`, `version`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateEngineArgsSet {
    /// The set.
    pub p_set_code: String,
    /// All its values from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_values: Option<BTreeMap<String, Value>>,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_display_name: Option<String>,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_notes: Option<String>,
}

/// `POST /api/rpc/archive_engine_args_set`. Keys in the answer: `set_code`, `version`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ArchiveEngineArgsSet {
    /// The set.
    pub p_set_code: String,
}

/// `POST /api/rpc/diff_engine_args_sets`: how two sets differ, or one from the framework's defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DiffEngineArgsSets {
    /// The set that is looked at.
    pub p_set_code: String,
    /// The set it is compared with; absent means the framework version's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_base_set_code: Option<String>,
}

/// One argument in which two sets differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineArgDifference {
    /// The argument's key; `env.<NAME>` for an environment variable, `<sidecar>.<key>` for a sidecar's.
    pub key: String,
    /// `added`, `removed` or `changed`, from the base to the set.
    pub change: String,
    /// The value in the base; null where it has none.
    pub base: Value,
    /// The value in the set; null where it has none.
    pub value: Value,
    /// Whether it loads code or reads paths.
    pub dangerous: bool,
    /// What the argument does, where the templates say.
    pub meaning: Option<String>,
}

/// The answer of `diff_engine_args_sets`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineArgsSetsDiff {
    /// The set that is looked at.
    pub set_code: String,
    /// The set it is compared with; absent for the defaults.
    pub base_set_code: Option<String>,
    /// Its framework.
    pub framework_code: String,
    /// Its framework's version.
    pub framework_version: String,
    /// What differs, by key.
    pub differences: Vec<EngineArgDifference>,
}

/// `POST /api/rpc/approve_dangerous_args`: exact values of arguments that load code or read paths, for one program and
/// one model, may be used by the organisation's members. Keys in the answer: `stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApproveDangerousArgs {
    /// The framework's, sidecar's or tool's code.
    pub p_program_code: String,
    /// The model's code.
    pub p_model_code: String,
    /// The arguments: key → the value that is approved.
    pub p_args: BTreeMap<String, Value>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_reason: Option<String>,
}

/// `POST /api/rpc/revoke_dangerous_args`. Keys in the answer: `stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RevokeDangerousArgs {
    /// The framework's, sidecar's or tool's code.
    pub p_program_code: String,
    /// The model's code.
    pub p_model_code: String,
    /// The arguments' keys.
    pub p_keys: Vec<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_reason: Option<String>,
}
