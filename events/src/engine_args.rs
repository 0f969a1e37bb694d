//! Engine arguments: what a framework's version has, named sets of values, and what was approved of those that load code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One flag a framework version accepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineArgTemplate {
    /// The flag on the command line, for example `--ctx-size`.
    pub cli_flag: String,
    /// `int`, `float`, `string`, `bool` (a switch), `choice` or `json` (one element).
    #[serde(rename = "type")]
    pub arg_type: String,
    /// The default.
    #[serde(default)]
    pub default: Value,
    /// Smallest value, for numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest value, for numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Allowed values, for choices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Words that a number may be instead, for example `auto`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// For switches that are on by default: the flag that switches them off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_flag: Option<String>,
    /// Whether it is an environment variable: `cli_flag` is then its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub env: bool,
    /// Whether it is among those that are set most.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commonly_used: bool,
    /// Whether the flag loads code or reads paths: needs an administrator's approval and the agent's own policy.
    #[serde(default)]
    pub dangerous: bool,
    /// What it does.
    #[serde(default)]
    pub meaning: String,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where these facts come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// The arguments of a sidecar that a set of engine arguments needs beside the model server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CompanionArgs {
    /// The sidecar's framework code, for example `lmcache-server`.
    pub framework_code: String,
    /// Its version.
    pub framework_version: String,
    /// Its arguments: key → typed value.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
}

/// A named set of engine arguments came to be or changed; it says all of the set. A workload keeps the version of the
/// set that it was made with. Stream: `engine_args_set/<org or _>/<set_code>`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineArgsSetRegistered {
    /// The display name; absent means the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The framework.
    pub framework_code: String,
    /// The version whose templates its values were checked against.
    pub framework_version: String,
    /// The oldest version it is said to work with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_framework_version: Option<String>,
    /// The kind of work: `llm`, `vlm`, `asr`, `imagegen`, `kv-offload`; absent means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_scope: Option<String>,
    /// The model in the catalogue it is for; absent means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_code: Option<String>,
    /// How that model was found: the exact id, or the same model at another precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_link: Option<String>,
    /// The id of the weights it was written for, for example those in another precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// The model family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_family: Option<String>,
    /// Which of the recipe's variants it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The precision of the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    /// The accelerators it is for; empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accelerator_codes: Vec<String>,
    /// Accelerators of one model server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// Hosts of one model server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Memory it is said to need at least, gigabytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vram_minimum_gb: Option<f64>,
    /// The arguments: key → typed value.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// Environment variables of the model server. The agent's policy has the last word.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Flags of its source that the framework's version does not know: it cannot be used there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported_flags: Vec<String>,
    /// Sidecars that it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<CompanionArgs>,
    /// Whether every value was read from the source it names. Nobody says that it was run.
    #[serde(default)]
    pub verified: bool,
    /// Whether it is one of the recipes' main variants.
    #[serde(default)]
    pub curated: bool,
    /// Whether the user guide names it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named_in_seeds: bool,
    /// What the source says of the hardware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_status: Option<String>,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// What to look at before it is used, as stable words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cautions: Vec<String>,
    /// How the values were made from the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derivation: Option<String>,
    /// What the flags were looked up in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The page it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_url: Option<String>,
    /// The file it comes from, with its commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The set it was cloned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloned_from: Option<String>,
}

/// A person archived a set: no new workload may name it; those that do keep theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineArgsSetArchived {}

/// An administrator approved exact values of arguments that load code or read paths, for one program and one model.
/// Stream: `approval/<org>/<framework or tool code>/<model_code>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalGranted {
    /// The arguments: key → the value that is approved, no other.
    pub args: BTreeMap<String, Value>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An administrator took approvals back. Runs that were started go on. Stream: the approval's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalRevoked {
    /// The arguments' keys.
    pub keys: Vec<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
