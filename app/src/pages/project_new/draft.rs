//! A workload as it is typed: plain data, and what it asks of the API.

use std::collections::{BTreeMap, BTreeSet};

use events::api::{ScenarioMatrix, WorkloadInput};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::row::Row;

/// A workload as it is typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Draft {
    /// The model's code.
    pub model: String,
    /// The framework's code.
    pub framework: String,
    /// The framework's version.
    pub version: String,
    /// The numeric format; empty as published.
    pub quantization: String,
    /// The tool's code.
    pub tool: String,
    /// The endpoint, for framework `openai`.
    pub endpoint: String,
    /// Engine arguments, one `key=value` a line.
    pub engine_args: String,
    /// Requests in flight.
    pub concurrency: BTreeSet<u32>,
    /// Prompt lengths.
    pub isl: BTreeSet<u32>,
    /// Answer lengths.
    pub osl: BTreeSet<u32>,
    /// Requests a scenario; empty for the default.
    pub requests: String,
    /// Whether answers are streamed.
    pub streaming: bool,
    /// Keep one model server for all jobs of a run.
    pub keep_server: bool,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            model: String::new(),
            framework: String::new(),
            version: String::new(),
            quantization: String::new(),
            tool: "metrumbench-llm".into(),
            endpoint: String::new(),
            engine_args: String::new(),
            concurrency: BTreeSet::from([1, 2, 4]),
            isl: BTreeSet::from([128]),
            osl: BTreeSet::from([64]),
            requests: String::new(),
            streaming: true,
            keep_server: false,
        }
    }
}

/// One engine argument a line: `ctx_size=4096`. Values are numbers, booleans or words.
fn engine_args(text: &str) -> Result<BTreeMap<String, Value>, String> {
    let mut arguments = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (key, value) = line
            .split_once(['=', ' '])
            .map(|(k, v)| (k.trim().trim_start_matches('-'), v.trim()))
            .unwrap_or((line.trim_start_matches('-'), "true"));
        if key.is_empty() {
            return Err(format!("“{line}” names no engine argument: write key=value."));
        }
        let value = serde_json::from_str::<Value>(value)
            .ok()
            .filter(|v| v.is_number() || v.is_boolean())
            .unwrap_or_else(|| Value::String(value.to_owned()));
        arguments.insert(key.replace('-', "_"), value);
    }
    Ok(arguments)
}

impl Draft {
    /// What the API is asked for, or what is still missing.
    ///
    /// # Errors
    /// Sentences for the person who types.
    pub fn input(&self) -> Result<WorkloadInput, Vec<String>> {
        let mut missing = Vec::new();
        let word = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        for (value, what) in [
            (&self.model, "a model"),
            (&self.framework, "a framework"),
            (&self.version, "a framework version"),
        ] {
            if value.is_empty() {
                missing.push(format!("Choose {what}."));
            }
        }
        if self.concurrency.is_empty() {
            missing.push("Choose at least one concurrency.".to_owned());
        }
        let requests = match self.requests.trim() {
            "" => None,
            text => {
                match text.replace([' ', '\u{202f}'], "").parse::<u32>() {
                    Ok(n) if n > 0 => Some(n),
                    _ => {
                        missing.push("Requests per scenario is a whole number, or empty for max(200, 10 × concurrency).".to_owned());
                        None
                    }
                }
            }
        };
        let engine_args = engine_args(&self.engine_args).unwrap_or_else(|error| {
            missing.push(error);
            BTreeMap::new()
        });
        if self.framework == "openai" && word(&self.endpoint).is_none() {
            missing.push(
                "Framework openai measures an endpoint that already runs: give its address.".to_owned(),
            );
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        Ok(WorkloadInput {
            p_workload_code: None,
            p_name: None,
            p_model_code: self.model.clone(),
            p_framework_code: self.framework.clone(),
            p_framework_version: self.version.clone(),
            p_tool_code: word(&self.tool),
            p_quantization: word(&self.quantization),
            p_engine_args_set_code: None,
            p_engine_args: engine_args,
            p_tool_args: BTreeMap::new(),
            p_endpoint_url: (self.framework == "openai").then(|| word(&self.endpoint)).flatten(),
            p_prompt_source_code: None,
            p_keep_server: self.keep_server,
            p_scenarios: ScenarioMatrix {
                p_concurrency: self.concurrency.iter().copied().collect(),
                p_input_sequence_length: self.isl.iter().copied().collect(),
                p_output_sequence_length: self.osl.iter().copied().collect(),
                p_num_requests: requests,
                p_streaming: Some(self.streaming),
                ..ScenarioMatrix::default()
            },
        })
    }

    /// The draft that would make a workload there is, with its scenarios: to be changed in one thing and run again.
    pub fn of(workload: &Row, scenarios: &[Row]) -> Self {
        let axis = |column: &str| -> BTreeSet<u32> {
            scenarios.iter().filter_map(|s| s.whole(column).and_then(|n| u32::try_from(n).ok())).collect()
        };
        let requests: BTreeSet<i64> = scenarios.iter().filter_map(|s| s.whole("num_requests")).collect();
        let engine_args = match workload.value("engine_args") {
            Some(Value::Object(arguments)) => arguments
                .iter()
                .map(|(key, value)| {
                    format!("{key}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                })
                .collect::<Vec<_>>()
                .join("\n"),
            _ => String::new(),
        };
        Self {
            model: workload.text("model_code"),
            framework: workload.text("framework_code"),
            version: workload.text("framework_version"),
            quantization: workload.text("quantization"),
            tool: workload.text("tool_code"),
            endpoint: workload.text("endpoint_url"),
            engine_args,
            concurrency: axis("concurrency"),
            isl: axis("input_sequence_length"),
            osl: axis("output_sequence_length"),
            // Where scenarios have numbers of their own, the default is what made them.
            requests: match requests.len() {
                1 => requests.first().map_or_else(String::new, i64::to_string),
                _ => String::new(),
            },
            streaming: scenarios.first().is_none_or(|s| s.is("streaming")),
            keep_server: workload.is("keep_server"),
        }
    }

    /// Chooses what is sensible on a server: a model it has, and a framework it can start.
    pub fn suit(&mut self, server: Option<&Row>, models: &[Row], frameworks: &[Row]) {
        let has = |row: &Row, list: &str, code: &str| row.list(list).iter().any(|c| c == code);
        if self.model.is_empty() {
            let there =
                models.iter().find(|m| server.is_some_and(|s| has(s, "models", &m.text("model_code"))));
            self.model = there.or(models.first()).map(|m| m.text("model_code")).unwrap_or_default();
        }
        if self.framework.is_empty() {
            // The first framework whose program the server has.
            let there = frameworks.iter().find(|f| {
                let program = f.list("serve_argv").into_iter().next();
                program.is_some_and(|p| server.is_some_and(|s| has(s, "executables", &p)))
            });
            self.framework =
                there.or(frameworks.first()).map(|f| f.text("framework_code")).unwrap_or_default();
        }
        let versions = versions(frameworks, &self.framework);
        if !versions.contains(&self.version) {
            self.version = versions.last().cloned().unwrap_or_default();
        }
    }
}

/// The versions of a framework, in the order of the catalogue.
pub fn versions(frameworks: &[Row], code: &str) -> Vec<String> {
    frameworks
        .iter()
        .filter(|f| f.text("framework_code") == code)
        .filter_map(|f| f.maybe_text("framework_version").or_else(|| f.maybe_text("version")))
        .collect()
}

/// Each code once, in the order of the catalogue.
pub fn codes(rows: &[Row], column: &str) -> Vec<String> {
    let mut codes: Vec<String> = Vec::new();
    for row in rows {
        let code = row.text(column);
        if !code.is_empty() && !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(value: Value) -> Row {
        serde_json::from_value(value).expect("a row")
    }

    #[test]
    fn what_is_missing_is_said_in_sentences() {
        let missing = Draft { concurrency: BTreeSet::new(), requests: "many".into(), ..Draft::default() }
            .input()
            .expect_err("missing");
        assert_eq!(missing.len(), 5);
    }

    #[test]
    fn a_fresh_draft_suits_the_server_it_is_for() {
        let server = row(json!({"models": ["google/gemma-3-270m-it"], "executables": ["llama-server"]}));
        let models = [
            row(json!({"model_code": "meta-llama/Llama-3.3-70B"})),
            row(json!({"model_code": "google/gemma-3-270m-it"})),
        ];
        let frameworks = [
            row(
                json!({"framework_code": "vllm", "framework_version": "0.28.0", "serve_argv": ["vllm", "serve"]}),
            ),
            row(
                json!({"framework_code": "llama-cpp", "framework_version": "b6000", "serve_argv": ["llama-server"]}),
            ),
        ];
        let mut draft = Draft::default();
        draft.suit(Some(&server), &models, &frameworks);
        assert_eq!(
            (draft.model.as_str(), draft.framework.as_str(), draft.version.as_str()),
            ("google/gemma-3-270m-it", "llama-cpp", "b6000")
        );
        assert!(draft.input().is_ok());
    }

    #[test]
    fn a_clone_makes_the_same_workload_again() {
        let workload = row(
            json!({"model_code": "google/gemma-3-270m-it", "framework_code": "llama-cpp", "framework_version": "b6000",
            "quantization": "q8_0", "tool_code": "metrumbench-llm", "engine_args": {"ctx_size": 4096, "flash_attn": true}}),
        );
        let scenario = |c: u32| {
            row(
                json!({"concurrency": c, "input_sequence_length": 128, "output_sequence_length": 64, "num_requests": 50, "streaming": true}),
            )
        };
        let input = Draft::of(&workload, &[scenario(1), scenario(8)]).input().expect("complete");
        assert_eq!(
            (input.p_scenarios.p_concurrency, input.p_scenarios.p_num_requests),
            (vec![1, 8], Some(50))
        );
        assert_eq!(input.p_quantization.as_deref(), Some("q8_0"));
        assert_eq!(
            input.p_engine_args,
            BTreeMap::from([("ctx_size".into(), json!(4096)), ("flash_attn".into(), json!(true))])
        );
    }

    #[test]
    fn engine_arguments_keep_their_types() {
        let arguments = engine_args("ctx_size=4096\n--flash-attn\ncache_type_k=q8_0").expect("arguments");
        assert_eq!(arguments["ctx_size"], json!(4096));
        assert_eq!(arguments["flash_attn"], json!(true));
        assert_eq!(arguments["cache_type_k"], json!("q8_0"));
    }
}
