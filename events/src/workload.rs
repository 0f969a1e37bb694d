//! Workloads and their scenarios: what is measured, and under which traffic.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The code of the tool for text models; all tools are in [`crate::tools`].
pub const TOOL_METRUMBENCH_LLM: &str = crate::tools::ToolCode::MetrumbenchLlm.as_str();

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
    /// Which build of the framework version serves the model, by the catalogue's name of it (`nvidia`, `amd`); absent means
    /// the one for the server's hardware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_profile: Option<String>,
    /// Keep one model server for all jobs of a run instead of starting it afresh for each.
    #[serde(default)]
    pub keep_server: bool,
}

impl WorkloadSpec {
    /// The addresses that people named in it: the field of each, and the address as it stands.
    pub fn addresses(&self) -> Vec<(String, &str)> {
        let endpoint = self.endpoint_url.iter().map(|url| ("p_endpoint_url".to_owned(), url.as_str()));
        let named = [("p_tool_args", &self.tool_args), ("p_engine_args", &self.engine_args)];
        let named = named.into_iter().flat_map(|(field, args)| addresses_in(field, args));
        endpoint.chain(named).collect()
    }
}

/// The addresses among arguments: the place of each, and the address as it stands.
pub fn addresses_in<'a>(field: &str, args: &'a BTreeMap<String, Value>) -> Vec<(String, &'a str)> {
    let of = |(key, value): (&String, &'a Value)| {
        let found = texts(value).into_iter().filter(|text| is_remote(text));
        found.map(|text| (format!("{field}.{key}"), text)).collect::<Vec<_>>()
    };
    args.iter().flat_map(of).collect()
}

/// Whether a reference leads to another service rather than to a file.
pub fn is_remote(reference: &str) -> bool {
    let begins =
        |scheme: &str| reference.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    begins("http://") || begins("https://")
}

/// The texts in a value, however deep.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text.trim()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// A person defined a workload. Stream: the workload's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadCreated {
    /// The display name.
    pub name: String,
    /// What is measured.
    pub spec: WorkloadSpec,
    /// The workload (its stream key) that this one was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloned_from: Option<String>,
}

/// A person renamed a workload. The code stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRenamed {
    /// The new display name.
    pub name: String,
}

/// A person archived a workload: no more runs of it, results kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadArchived {}

/// One traffic shape. Unset axes belong to other tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// Whether answers are consumed as a stream of server-sent events; absent for tools that have no choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// Turns of each conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_rounds: Option<u32>,
    /// Images in each request, or asked for in each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_images_batch: Option<u32>,
    /// Size of generated images, `WIDTHxHEIGHT` in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_size: Option<String>,
    /// Fidelity of the images that are sent: `low` or `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_detail: Option<String>,
}

impl ScenarioSpec {
    /// The scenario's code: `c8` and then the axes in one order, for example `c8-isl512-osl256`, `c4-isl2048-osl256-r25`,
    /// `c2-n2-1024x1024`, `c8-isl256-osl128-high-nostream`. The default of an optional axis (streaming on, one image)
    /// is left out.
    pub fn code(&self) -> String {
        let mut code = format!("c{}", self.concurrency);
        if let Some(isl) = self.input_sequence_length {
            code.push_str(&format!("-isl{isl}"));
        }
        if let Some(osl) = self.output_sequence_length {
            code.push_str(&format!("-osl{osl}"));
        }
        if let Some(rounds) = self.num_rounds {
            code.push_str(&format!("-r{rounds}"));
        }
        if let Some(images) = self.num_images_batch.filter(|images| *images != 1) {
            code.push_str(&format!("-n{images}"));
        }
        for word in [&self.image_size, &self.image_detail].into_iter().flatten() {
            code.push_str(&format!("-{word}"));
        }
        if self.streaming == Some(false) {
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
            streaming: Some(true),
            ..ScenarioSpec::default()
        };
        assert_eq!(spec.code(), "c8-isl512-osl256");
        spec.streaming = Some(false);
        assert_eq!(spec.code(), "c8-isl512-osl256-nostream");
        (spec.num_rounds, spec.num_images_batch) = (Some(25), Some(2));
        (spec.image_size, spec.image_detail) = (Some("1024x1024".into()), Some("high".into()));
        assert_eq!(spec.code(), "c8-isl512-osl256-r25-n2-1024x1024-high-nostream");
    }

    #[test]
    fn the_addresses_in_a_workload_are_found_wherever_they_stand() {
        let spec: WorkloadSpec = serde_json::from_value(serde_json::json!({
            "model_code": "m", "framework_code": "openai", "framework_version": "v1", "tool_code": "kyai",
            "endpoint_url": "ftp://h", "tool_args": {"judge_url": " HTTPS://judge.example/v1", "disk": "nvme0n1"},
            "engine_args": {"otlp": ["http://10.0.0.1:4317"], "deep": {"at": "http://x/"}, "n": 3},
        }))
        .unwrap();
        let found = spec.addresses();
        let found: Vec<(&str, &str)> = found.iter().map(|(field, url)| (field.as_str(), *url)).collect();
        assert_eq!(
            found,
            [
                // Whatever it is: an endpoint is one by its place.
                ("p_endpoint_url", "ftp://h"),
                ("p_tool_args.judge_url", "HTTPS://judge.example/v1"),
                ("p_engine_args.deep", "http://x/"),
                ("p_engine_args.otlp", "http://10.0.0.1:4317"),
            ]
        );
    }

    #[test]
    fn one_image_and_what_a_tool_has_no_use_for_are_left_out() {
        let spec = ScenarioSpec {
            concurrency: 4,
            num_images_batch: Some(1),
            image_size: Some("512x512".into()),
            ..ScenarioSpec::default()
        };
        assert_eq!(spec.code(), "c4-512x512");
        assert_eq!(ScenarioSpec { concurrency: 4, ..ScenarioSpec::default() }.code(), "c4");
    }
}
