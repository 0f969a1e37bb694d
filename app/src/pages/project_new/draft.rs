//! A workload as it is typed: plain data, and what it asks of the API.

use std::collections::{BTreeMap, BTreeSet};

use events::api::{ScenarioMatrix, WorkloadInput};
use events::tools::{ToolCode, image_size};
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
    /// The named preset of engine arguments; empty for none.
    pub engine_args_set: String,
    /// Engine arguments, one `key=value` a line.
    pub engine_args: String,
    /// Tool arguments, by key.
    pub tool_args: BTreeMap<String, Value>,
    /// The source of the inputs; empty for what the tool makes up.
    pub prompt_source: String,
    /// Requests in flight.
    pub concurrency: BTreeSet<u32>,
    /// Prompt lengths.
    pub isl: BTreeSet<u32>,
    /// Answer lengths.
    pub osl: BTreeSet<u32>,
    /// Turns of a conversation.
    pub rounds: BTreeSet<u32>,
    /// Images in a request.
    pub images: BTreeSet<u32>,
    /// Sizes of generated images.
    pub image_sizes: BTreeSet<String>,
    /// Fidelity of images that are sent.
    pub image_details: BTreeSet<String>,
    /// Requests a scenario; empty for the default.
    pub requests: String,
    /// Whether answers are streamed.
    pub streaming: bool,
    /// The build of the framework version; empty for the one that the server's hardware needs.
    pub build_profile: String,
    /// Keep one model server for all jobs of a run.
    pub keep_server: bool,
    /// The server that it is checked for and executed on, by its stream; empty until one is known.
    pub server: String,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            model: String::new(),
            framework: String::new(),
            version: String::new(),
            quantization: String::new(),
            tool: ToolCode::MetrumbenchLlm.as_str().into(),
            endpoint: String::new(),
            engine_args_set: String::new(),
            engine_args: String::new(),
            tool_args: BTreeMap::new(),
            prompt_source: String::new(),
            concurrency: BTreeSet::from([1, 2, 4]),
            isl: BTreeSet::from([128]),
            osl: BTreeSet::from([64]),
            rounds: BTreeSet::new(),
            images: BTreeSet::new(),
            image_sizes: BTreeSet::new(),
            image_details: BTreeSet::new(),
            requests: String::new(),
            streaming: true,
            build_profile: String::new(),
            keep_server: false,
            server: String::new(),
        }
    }
}

/// One argument a line: `ctx_size=4096`. A value is JSON, or else a word; null takes the set's argument away.
fn arguments(text: &str) -> Result<BTreeMap<String, Value>, String> {
    let mut arguments = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (key, value) = line
            .split_once(['=', ' '])
            .map(|(k, v)| (k.trim().trim_start_matches('-'), v.trim()))
            .unwrap_or((line.trim_start_matches('-'), "true"));
        if key.is_empty() {
            return Err(format!("“{line}” names no argument: write key=value."));
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        arguments.insert(key.replace('-', "_"), value);
    }
    Ok(arguments)
}

/// Arguments as they are typed: what [`arguments`] reads back as the same values.
fn typed(arguments: &BTreeMap<String, Value>) -> String {
    let line = |(key, value): (&String, &Value)| format!("{key}={}", written(value));
    arguments.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A value as it is typed: a word as it is, unless it would be read as something else.
pub fn written(value: &Value) -> String {
    match value.as_str() {
        Some(word) if word.trim() == word && !word.contains('\n') && !word.is_empty() => {
            if serde_json::from_str::<Value>(word).is_ok() {
                value.to_string()
            } else {
                word.to_owned()
            }
        }
        _ => value.to_string(),
    }
}

impl Draft {
    /// The tool.
    pub fn tool(&self) -> ToolCode {
        ToolCode::of(&self.tool).unwrap_or(ToolCode::MetrumbenchLlm)
    }

    /// Another tool: what belonged to the one before goes.
    pub fn change_tool(&mut self, tool: ToolCode) {
        // Questions are asked once; a load is usually stepped through.
        if (tool == ToolCode::Kyai) != (self.tool() == ToolCode::Kyai) {
            self.concurrency = match tool {
                ToolCode::Kyai => BTreeSet::from([1]),
                _ => Self::default().concurrency,
            };
        }
        self.tool = tool.as_str().to_owned();
        self.tool_args.clear();
        self.prompt_source.clear();
        self.requests.clear();
    }

    /// Sets a tool argument, or takes it out.
    pub fn set_tool_arg(&mut self, key: &str, value: Option<Value>) {
        match value {
            Some(value) => self.tool_args.insert(key.to_owned(), value),
            None => self.tool_args.remove(key),
        };
    }

    /// The engine arguments of one's own that can be read.
    pub fn own_engine_args(&self) -> BTreeMap<String, Value> {
        arguments(&self.engine_args).unwrap_or_default()
    }

    /// Writes an engine argument down, with a value to begin from, unless it is there.
    pub fn add_engine_arg(&mut self, key: &str, value: &Value) {
        if self.own_engine_args().contains_key(key) {
            return;
        }
        if !self.engine_args.is_empty() && !self.engine_args.ends_with('\n') {
            self.engine_args.push('\n');
        }
        self.engine_args.push_str(&format!("{key}={}", written(value)));
    }

    /// Requests of a scenario where none are set, from the fewest to the most among the concurrencies.
    pub fn default_requests(&self) -> Option<(u32, u32)> {
        let of = |c: &u32| self.tool().default_num_requests(*c);
        Some((self.concurrency.iter().map(of).min()?, self.concurrency.iter().map(of).max()?))
    }

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
            text => match text.replace([' ', '\u{202f}'], "").parse::<u32>() {
                Ok(n) if n > 0 => Some(n),
                _ => {
                    missing.push("Requests per scenario is a whole number, or empty for as many as the concurrency needs.".to_owned());
                    None
                }
            },
        };
        let engine_args = arguments(&self.engine_args).unwrap_or_else(|error| {
            missing.push(error);
            BTreeMap::new()
        });
        if let Some(odd) = self.image_sizes.iter().find(|size| image_size(size).is_none()) {
            missing.push(format!("“{odd}” is no image size: write WIDTHxHEIGHT, such as 1024x1024."));
        }
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
            p_engine_args_set_code: word(&self.engine_args_set),
            p_engine_args: engine_args,
            p_tool_args: self.tool_args.clone(),
            p_endpoint_url: (self.framework == "openai").then(|| word(&self.endpoint)).flatten(),
            p_prompt_source_code: word(&self.prompt_source),
            p_build_profile: word(&self.build_profile),
            p_keep_server: self.keep_server,
            p_scenarios: self.matrix(requests),
        })
    }

    /// The matrix of the axes that the tool has.
    fn matrix(&self, requests: Option<u32>) -> ScenarioMatrix {
        let axes = self.tool().axes();
        let numbers = |has: bool, set: &BTreeSet<u32>| -> Vec<u32> {
            if has { set.iter().copied().collect() } else { Vec::new() }
        };
        let words = |has: bool, set: &BTreeSet<String>| -> Vec<String> {
            if has { set.iter().cloned().collect() } else { Vec::new() }
        };
        ScenarioMatrix {
            p_concurrency: numbers(true, &self.concurrency),
            p_input_sequence_length: numbers(axes.lengths, &self.isl),
            p_output_sequence_length: numbers(axes.lengths, &self.osl),
            p_num_rounds: numbers(axes.num_rounds, &self.rounds),
            p_num_images_batch: numbers(axes.num_images_batch, &self.images),
            p_image_size: words(axes.image_size, &self.image_sizes),
            p_image_detail: words(axes.image_detail, &self.image_details),
            p_num_requests: requests,
            p_max_tokens: None,
            p_streaming: axes.streaming.then_some(self.streaming),
        }
    }

    /// The draft that asks the API for just this.
    pub fn of_input(input: &WorkloadInput) -> Self {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let scenarios = &input.p_scenarios;
        let set = |values: &[u32]| values.iter().copied().collect();
        let words = |values: &[String]| values.iter().cloned().collect();
        Self {
            model: input.p_model_code.clone(),
            framework: input.p_framework_code.clone(),
            version: input.p_framework_version.clone(),
            quantization: text(&input.p_quantization),
            tool: input.p_tool_code.clone().unwrap_or_else(|| ToolCode::MetrumbenchLlm.as_str().into()),
            endpoint: text(&input.p_endpoint_url),
            engine_args_set: text(&input.p_engine_args_set_code),
            engine_args: typed(&input.p_engine_args),
            tool_args: input.p_tool_args.clone(),
            prompt_source: text(&input.p_prompt_source_code),
            concurrency: set(&scenarios.p_concurrency),
            isl: set(&scenarios.p_input_sequence_length),
            osl: set(&scenarios.p_output_sequence_length),
            rounds: set(&scenarios.p_num_rounds),
            images: set(&scenarios.p_num_images_batch),
            image_sizes: words(&scenarios.p_image_size),
            image_details: words(&scenarios.p_image_detail),
            requests: scenarios.p_num_requests.map_or_else(String::new, |n| n.to_string()),
            streaming: scenarios.p_streaming.unwrap_or(true),
            build_profile: text(&input.p_build_profile),
            keep_server: input.p_keep_server,
            server: String::new(),
        }
    }

    /// Sets a field of what the API is asked for, by its path (`p_engine_args.tensor_parallel_size`), or takes it out.
    /// False where there is no such field or the value does not fit it: nothing is changed then.
    pub fn set(&mut self, path: &str, value: Option<Value>) -> bool {
        let Some(Ok(Value::Object(mut fields))) = self.input().ok().map(serde_json::to_value) else {
            return false;
        };
        let (field, key) = path.split_once('.').map_or((path, None), |(field, key)| (field, Some(key)));
        let place = match key {
            None => &mut fields,
            Some(_) => match fields.entry(field).or_insert_with(|| Value::Object(serde_json::Map::new())) {
                Value::Object(inner) => inner,
                _ => return false,
            },
        };
        match value {
            Some(value) => place.insert(key.unwrap_or(field).to_owned(), value),
            None => place.remove(key.unwrap_or(field)),
        };
        match serde_json::from_value::<WorkloadInput>(Value::Object(fields)) {
            Ok(input) => {
                let server = std::mem::take(&mut self.server);
                *self = Self { server, ..Self::of_input(&input) };
                true
            }
            Err(_) => false,
        }
    }

    /// The draft that would make a workload there is, with its scenarios: to be changed in one thing and run again.
    pub fn of(workload: &Row, scenarios: &[Row]) -> Self {
        let axis = |column: &str| -> BTreeSet<u32> {
            scenarios.iter().filter_map(|s| s.whole(column).and_then(|n| u32::try_from(n).ok())).collect()
        };
        let requests: BTreeSet<i64> = scenarios.iter().filter_map(|s| s.whole("num_requests")).collect();
        let arguments = |column: &str| -> BTreeMap<String, Value> {
            let found = workload.value(column).and_then(Value::as_object);
            found.into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        let words = |column: &str| -> BTreeSet<String> {
            scenarios.iter().filter_map(|s| s.maybe_text(column)).filter(|w| !w.is_empty()).collect()
        };
        Self {
            model: workload.text("model_code"),
            framework: workload.text("framework_code"),
            version: workload.text("framework_version"),
            quantization: workload.text("quantization"),
            tool: workload.text("tool_code"),
            endpoint: workload.text("endpoint_url"),
            engine_args_set: workload.text("engine_args_set_code"),
            engine_args: typed(&arguments("engine_args")),
            tool_args: arguments("tool_args"),
            prompt_source: workload.text("prompt_source_code"),
            concurrency: axis("concurrency"),
            isl: axis("input_sequence_length"),
            osl: axis("output_sequence_length"),
            rounds: axis("num_rounds"),
            images: axis("num_images_batch"),
            image_sizes: words("image_size"),
            image_details: words("image_detail"),
            // Where scenarios have numbers of their own, the default is what made them.
            requests: match requests.len() {
                1 => requests.first().map_or_else(String::new, i64::to_string),
                _ => String::new(),
            },
            streaming: scenarios.first().is_none_or(|s| s.value("streaming").is_none() || s.is("streaming")),
            build_profile: workload.text("build_profile"),
            keep_server: workload.is("keep_server"),
            server: String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
