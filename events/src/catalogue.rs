//! The catalogue: models, accelerators, frameworks and their versions, sets of engine arguments, server configurations,
//! tools. Seeded from data files and changed by events. Streams of the organisation `_` are everybody's; an organisation
//! may have entries of its own, which stand before the platform's of the same code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::engine_args::{
    ApprovalGranted, ApprovalRevoked, CompanionArgs, EngineArgTemplate, EngineArgsSetArchived,
    EngineArgsSetRegistered,
};

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
    /// How a model that the started server does not list yet is fetched: argv elements with named placeholders; empty
    /// where the server loads what its command names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetch_argv: Vec<String>,
    /// The argument that says on which port the readiness path is answered, where that is not the port that the model is
    /// served on: of processes beside a model server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_port_arg: Option<String>,
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
