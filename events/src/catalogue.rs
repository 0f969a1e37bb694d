//! The catalogue: models, accelerators, frameworks and their versions, sets of engine arguments, server configurations,
//! tools. Seeded from data files and changed by events. Streams of the organisation `_` are everybody's; an organisation
//! may have entries of its own, which stand before the platform's of the same code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A model joined the catalogue or its facts changed. Stream: `model/<org or _>/<model_code>`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelRegistered {
    /// The display name.
    pub display_name: String,
    /// `llm`, `vlm`, `asr`, `imagegen`.
    pub modality: String,
    /// The model family, for example `gemma`.
    #[serde(default)]
    pub family: String,
    /// Parameters, billions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params_b_total: Option<f64>,
    /// Parameters that one token uses, billions, where experts are chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params_b_active: Option<f64>,
    /// Layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<u32>,
    /// Width of a layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_size: Option<u32>,
    /// Key and value heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<u32>,
    /// Width of a head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<u32>,
    /// How it attends: `mha`, `gqa`, `mla`, `hybrid` and others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_kind: Option<String>,
    /// Layers that keep keys and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_cache_layers: Option<u32>,
    /// Bytes of keys and values a token in all layers, at 16 bits each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_bytes_per_token_16bit: Option<f64>,
    /// Tokens that layers with a sliding window look back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sliding_window: Option<u32>,
    /// Experts a layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<u32>,
    /// Experts that one token uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts_per_token: Option<u32>,
    /// The precisions it is known to be published in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub precisions: Vec<String>,
    /// The longest context, tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_context: Option<u32>,
    /// Attention heads: tensor parallelism must divide them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_heads: Option<u32>,
    /// The precision it is published in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_precision: Option<String>,
    /// Whether a Hugging Face token is needed.
    #[serde(default)]
    pub gated: bool,
    /// The licence's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// What is to be known about single fields, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub field_notes: BTreeMap<String, String>,
    /// Fields that are recalled and were not found in a source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
    /// Where these facts come from.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// What an hour of an accelerator costs at one vendor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PricePoint {
    /// US dollars an hour, for one accelerator.
    pub usd_per_hour: f64,
    /// Whose price it is.
    pub source: String,
    /// When it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
}

/// An accelerator type joined the catalogue or changed. Stream: `accelerator/<org or _>/<accelerator_code>`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcceleratorRegistered {
    /// The display name.
    pub display_name: String,
    /// Who makes it, for example `NVIDIA`.
    pub vendor: String,
    /// `gpu`, `tpu` or `cpu`.
    #[serde(default)]
    pub kind: String,
    /// Memory, gigabytes (10^9 bytes).
    pub memory_gb: f64,
    /// Memory bandwidth, gigabytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_gb_s: Option<f64>,
    /// Thermal design power, watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tdp_w: Option<f64>,
    /// Precisions beyond 16-bit floats that it computes in: `bf16`, `fp8`, `fp4`.
    #[serde(default)]
    pub precisions: Vec<String>,
    /// How accelerators of a host are joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interconnect: Option<String>,
    /// The year it came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_year: Option<u32>,
    /// Compute capability, for example `9.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// A typical price, US dollars an hour: one vendor's, not an average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour_usd: Option<f64>,
    /// Whose price that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_source: Option<String>,
    /// When it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_date: Option<String>,
    /// Other vendors' prices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_prices: Vec<PricePoint>,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Fields that are recalled and were not found in a source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
    /// Where these facts come from.
    #[serde(default)]
    pub sources: Vec<String>,
}

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

/// A process that is started beside the model server and stopped with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CompanionTemplate {
    /// What it is, for example `frontend`.
    pub name: String,
    /// How it is started: argv elements with named placeholders.
    pub argv: Vec<String>,
}

/// A framework version joined the catalogue or changed. Stream: `framework/<org or _>/<framework_code>/<version>`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrameworkRegistered {
    /// The display name.
    pub display_name: String,
    /// How the model server is started: argv elements with named placeholders; empty for `openai`.
    pub serve_argv: Vec<String>,
    /// `separate` (`--flag`, `value`) or `equals` (`--flag=value`): how the framework takes engine arguments.
    pub flag_style: String,
    /// The path that answers 200 once it is ready.
    pub readiness_path: String,
    /// Seconds it may take to become ready.
    pub readiness_timeout_s: u32,
    /// The flags it accepts, by key.
    #[serde(default)]
    pub engine_args: BTreeMap<String, EngineArgTemplate>,
    /// Environment variables of the model server; values may hold placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub serve_env: BTreeMap<String, String>,
    /// Processes that are started beside the model server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<CompanionTemplate>,
    /// Whether it only ever runs beside another framework's server and cannot be a workload's framework.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sidecar: bool,
    /// The container image, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_image: Option<String>,
    /// The container images by kind of hardware, for example `nvidia`, `amd`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub container_images: BTreeMap<String, String>,
    /// How far it is supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support_level: Option<String>,
    /// The kinds of hardware it runs on, for example `nvidia`, `amd`, `cpu`; empty where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vendors: Vec<String>,
    /// What it serves: `llm`, `vlm`, `asr`, `imagegen`; empty where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modalities: Vec<String>,
    /// The smallest compute capability of an NVIDIA GPU it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_compute_capability: Option<String>,
    /// The path of its metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_path: Option<String>,
    /// The port it listens on unless told otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_port: Option<u32>,
    /// Where these facts come from.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// A server configuration joined the catalogue or changed. Stream: `config/<org or _>/<config_code>`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerConfigRegistered {
    /// The display name.
    pub display_name: String,
    /// The accelerator's code, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator_code: Option<String>,
    /// Accelerators a host.
    #[serde(default)]
    pub gpu_count: u32,
    /// Memory of one accelerator, gigabytes (10^9 bytes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory_gb: Option<f64>,
    /// Where these facts come from.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// A benchmark tool joined the catalogue or changed. Stream: `tool/_/<tool_code>`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolRegistered {
    /// The display name.
    pub display_name: String,
    /// The modality it measures.
    pub modality: String,
    /// How it is started: argv elements with named placeholders.
    pub argv: Vec<String>,
    /// Optional arguments by key: emitted only when a workload or scenario sets them.
    #[serde(default)]
    pub args: BTreeMap<String, EngineArgTemplate>,
    /// Elements that are added where the load goes to several replicas of the model server; empty for tools that know
    /// one endpoint only, for which one replica is started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints_argv: Vec<String>,
    /// Arguments that the control plane sets unless the workload does, where the tool's own default will not do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<String, Value>,
    /// The frameworks whose endpoints it measures; empty for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frameworks: Vec<String>,
    /// How a host gets it, where it is not part of the agent: what readiness says as the cure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// The model families it measures; empty for any of its modality.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<String>,
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
