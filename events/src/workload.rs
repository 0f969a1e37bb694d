//! Workloads and their scenarios: what is measured, and under which traffic.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The benchmark clients a workload can name (`tool_code`).
pub const TOOL_METRUMBENCH_LLM: &str = "metrumbench-llm";

/// What is measured: one model, served by one framework version, driven by one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadSpec {
    /// The model's code in the catalogue.
    pub model_code: String,
    /// The serving framework's code, for example `vllm`, `llama-cpp`, `openai`.
    pub framework_code: String,
    /// The framework's version.
    pub framework_version: String,
    /// The benchmark client's code.
    pub tool_code: String,
    /// The numeric format of the weights, where it differs from the model as published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantization: Option<String>,
    /// The named preset of framework flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_args_set_code: Option<String>,
    /// The version of that set's stream when the workload was made: what it runs with, whatever becomes of the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_args_set_version: Option<i64>,
    /// Framework flags set on this workload beyond the preset: flag key → typed value; null takes a
    /// flag of the preset away; `<sidecar>.<key>` is a sidecar's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub engine_args: BTreeMap<String, Value>,
    /// Tool arguments set on this workload beyond the defaults: argument key → typed value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_args: BTreeMap<String, Value>,
    /// For framework `openai`: the endpoint that already runs. No server is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_url: Option<String>,
    /// The prompt source's code; absent means the tool's built-in synthetic English prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_source_code: Option<String>,
    /// Keep one model server for all jobs of a run instead of starting it afresh for each.
    #[serde(default)]
    pub keep_server: bool,
}

/// A person defined a workload. Stream: the workload's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadCreated {
    /// The display name.
    pub name: String,
    /// What is measured.
    pub spec: WorkloadSpec,
}

/// One traffic shape. Unset axes belong to other tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScenarioSpec {
    /// Requests in flight at once.
    pub concurrency: u32,
    /// Target prompt length, tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_sequence_length: Option<u32>,
    /// Target answer length, tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_sequence_length: Option<u32>,
    /// Requests sent in the scenario.
    pub num_requests: u32,
    /// Hard cap on generated tokens a request; absent means `output_sequence_length`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Whether answers are consumed as a stream of server-sent events.
    pub streaming: bool,
}

impl ScenarioSpec {
    /// The scenario's code: `c8-isl512-osl256`; the default of an optional axis (streaming on) is left out.
    pub fn code(&self) -> String {
        let mut code = format!("c{}", self.concurrency);
        if let Some(isl) = self.input_sequence_length {
            code.push_str(&format!("-isl{isl}"));
        }
        if let Some(osl) = self.output_sequence_length {
            code.push_str(&format!("-osl{osl}"));
        }
        if !self.streaming {
            code.push_str("-nostream");
        }
        code
    }
}

/// A person defined a scenario of a workload. Stream: the scenario's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScenarioDefined {
    /// The traffic shape.
    pub spec: ScenarioSpec,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_code_names_its_axes_in_one_order() {
        let mut spec = ScenarioSpec {
            concurrency: 8,
            input_sequence_length: Some(512),
            output_sequence_length: Some(256),
            num_requests: 200,
            max_tokens: None,
            streaming: true,
        };
        assert_eq!(spec.code(), "c8-isl512-osl256");
        spec.streaming = false;
        assert_eq!(spec.code(), "c8-isl512-osl256-nostream");
    }
}
