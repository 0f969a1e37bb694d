//! The catalogue: models, frameworks and their versions, server configurations, tools. Seeded from data files and changed by events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A model joined the catalogue or its facts changed. Stream: `model/_/<model_code>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Where these facts come from.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// One flag a framework version accepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Whether the flag loads code or reads paths: needs an administrator's approval and the agent's own policy.
    #[serde(default)]
    pub dangerous: bool,
    /// What it does.
    #[serde(default)]
    pub meaning: String,
}

/// A framework version joined the catalogue or changed. Stream: `framework/_/<framework_code>/<version>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// The container image, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_image: Option<String>,
    /// Where these facts come from.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// A server configuration joined the catalogue or changed. Stream: `config/_/<config_code>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
}
