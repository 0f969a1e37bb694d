//! Readiness: what stands in the way of a run, found before the first job, each finding with its cure.
//!
//! Every rule is a small pure function. It answers `unknown` where the facts are missing; only `fails` stops a run.

mod fit;
mod load;
mod place;

use events::api::{Readiness, ReadinessCheck};
use events::catalogue::{FrameworkRegistered, ModelRegistered, ServerConfigRegistered, ToolRegistered};
use events::job::ResolvedCommands;
use events::keys::ServerKey;
use events::server_host::{GpuInfo, HostCapabilities};
use events::workload::{ScenarioSpec, WorkloadSpec};
use serde_json::Value;

use crate::domain::{Refusal, Server};
use crate::resolve::FRAMEWORK_OPENAI;

/// What the rules look at.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The server that was chosen, if one was.
    pub server_key: Option<&'a ServerKey>,
    /// That server, if it is registered.
    pub server: Option<&'a Server>,
    /// Its configuration in the catalogue.
    pub config: Option<&'a ServerConfigRegistered>,
    /// The model in the catalogue.
    pub model: &'a ModelRegistered,
    /// The framework's version in the catalogue.
    pub framework: &'a FrameworkRegistered,
    /// The tool in the catalogue.
    pub tool: &'a ToolRegistered,
    /// What is measured.
    pub workload: &'a WorkloadSpec,
    /// The scenarios to execute.
    pub scenarios: &'a [ScenarioSpec],
    /// The commands of the first scenario, or why there are none.
    pub commands: Option<&'a Result<ResolvedCommands, Refusal>>,
}

impl Facts<'_> {
    /// What the server's agent said its host is and has.
    fn capabilities(&self) -> Option<&HostCapabilities> {
        self.server.and_then(|server| server.capabilities.as_ref())
    }

    /// Whether nothing is started: the endpoint runs already.
    fn is_external(&self) -> bool {
        self.workload.framework_code == FRAMEWORK_OPENAI
    }

    /// Whether the framework's command names the model's weights: an endpoint and the reference server have none.
    fn loads_model(&self) -> bool {
        let names = |element: &String| element.contains("{agent.model}") || element.contains("{model_code}");
        self.framework.serve_argv.iter().any(names)
    }

    /// The accelerators: their number and the memory of the smallest in bytes, as the agent found them, or as the
    /// catalogue's configuration says.
    fn gpus(&self) -> Option<(u32, Option<u64>)> {
        if let Some(capabilities) = self.capabilities() {
            let count = u32::try_from(capabilities.gpus.len()).unwrap_or(u32::MAX);
            let memory = |gpu: &GpuInfo| gpu.memory_total_bytes;
            let all: Option<Vec<u64>> = capabilities.gpus.iter().map(memory).collect();
            return Some((count, all.and_then(|all| all.into_iter().min())));
        }
        self.config.map(|config| {
            let bytes = config.gpu_memory_gb.map(|gigabytes| (gigabytes * 1e9) as u64);
            (config.gpu_count, bytes)
        })
    }

    /// A whole number among the engine arguments that the workload sets.
    fn engine_arg(&self, keys: &[&str]) -> Option<u64> {
        keys.iter().find_map(|key| self.workload.engine_args.get(*key)).and_then(Value::as_u64)
    }

    /// How many accelerators share every layer of the model; 1 unless the workload says otherwise.
    fn tensor_parallel(&self) -> u64 {
        self.engine_arg(&["tensor_parallel_size", "tp_size"]).unwrap_or(1)
    }

    /// The most tokens a request of a scenario needs: input and output.
    fn most_tokens(&self) -> Option<(u64, String)> {
        let tokens = |scenario: &ScenarioSpec| {
            let answer = scenario.max_tokens.or(scenario.output_sequence_length)?;
            Some(u64::from(scenario.input_sequence_length?) + u64::from(answer))
        };
        self.scenarios.iter().filter_map(|scenario| Some((tokens(scenario)?, scenario.code()))).max()
    }
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    /// Nothing stands in the way.
    Ok(String),
    /// The run can start, but its numbers may disappoint. With cures.
    Warning(String, Vec<String>),
    /// The run would fail. With cures.
    Fails(String, Vec<String>),
    /// The facts are missing.
    Unknown(String),
    /// The rule has nothing to say about this workload.
    DoesNotApply,
}

impl Finding {
    fn fails(message: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::Fails(message.into(), vec![cure.into()])
    }

    fn warning(message: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::Warning(message.into(), vec![cure.into()])
    }

    fn ok(message: impl Into<String>) -> Self {
        Self::Ok(message.into())
    }

    fn unknown(message: impl Into<String>) -> Self {
        Self::Unknown(message.into())
    }
}

/// A rule: its word, its title, and what it finds.
type Rule = (&'static str, &'static str, fn(&Facts<'_>) -> Finding);

const RULES: &[Rule] = &[
    ("server_online", "The server is online", place::server_online),
    ("endpoint_url", "The endpoint is an address", place::endpoint_url),
    ("framework_available", "The framework is installed", place::framework_available),
    ("tool_available", "The benchmark tool is installed", place::tool_available),
    ("model_present", "The model is on the server", place::model_present),
    ("token_present", "The model's access token is there", place::token_present),
    ("quantization_applies", "The quantization is what is served", fit::quantization_applies),
    ("model_fits_memory", "The model fits the memory", fit::model_fits_memory),
    ("tensor_parallel_divides", "Tensor parallelism divides", fit::tensor_parallel_divides),
    ("context_covers", "The context covers input and output", fit::context_covers),
    ("load_is_sound", "Requests and concurrency are sound", load::load_is_sound),
    ("commands_resolve", "The commands resolve", load::commands_resolve),
];

/// Applies every rule.
pub fn check(facts: &Facts<'_>) -> Readiness {
    let checks: Vec<ReadinessCheck> =
        RULES.iter().filter_map(|(rule, title, find)| shown(rule, title, find(facts))).collect();
    let commands = match facts.commands {
        Some(Ok(commands)) => Some(commands.clone()),
        _ => None,
    };
    Readiness {
        ready: checks.iter().all(|check| check.result != "fails"),
        checks,
        scenarios: facts.scenarios.to_vec(),
        commands,
    }
}

fn shown(rule: &str, title: &str, finding: Finding) -> Option<ReadinessCheck> {
    let (result, message, cures) = match finding {
        Finding::Ok(message) => ("ok", message, vec![]),
        Finding::Warning(message, cures) => ("warning", message, cures),
        Finding::Fails(message, cures) => ("fails", message, cures),
        Finding::Unknown(message) => ("unknown", message, vec![]),
        Finding::DoesNotApply => return None,
    };
    Some(ReadinessCheck {
        rule: rule.to_owned(),
        title: title.to_owned(),
        result: result.to_owned(),
        message,
        cures,
    })
}

#[cfg(test)]
mod tests;
