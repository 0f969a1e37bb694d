//! Readiness: what stands in the way of a run, found before the first job, each finding with its cure.
//!
//! Every rule is a small pure function. It answers `unknown` where the facts are missing; only `fails` stops a run. A cure
//! is a sentence and, where a program could carry it out, the field, link or command for it.

mod cache;
mod cures;
mod engine;
mod fit;
mod hardware;
mod load;
mod place;

use std::collections::BTreeMap;

use events::api::{Cure, Readiness, ReadinessCheck};
use events::catalogue::{
    AcceleratorRegistered, FrameworkRegistered, ModelRegistered, ServerConfigRegistered, ToolRegistered,
};
use events::keys::ServerKey;
use events::server_host::{GpuInfo, HostCapabilities};
use events::workload::{ScenarioSpec, WorkloadSpec, addresses_in};
use serde_json::Value;

use crate::domain::{Refusal, Server};
use crate::resolve::{DangerousArg, FRAMEWORK_OPENAI, Resolved, SetInForce, agents_see, tensor_parallel};

/// What the rules look at.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The server that was chosen, if one was.
    pub server_key: Option<&'a ServerKey>,
    /// That server, if it is registered.
    pub server: Option<&'a Server>,
    /// Its configuration in the catalogue.
    pub config: Option<&'a ServerConfigRegistered>,
    /// The configuration's accelerator type in the catalogue.
    pub accelerator: Option<&'a AcceleratorRegistered>,
    /// The model in the catalogue.
    pub model: &'a ModelRegistered,
    /// The framework's version in the catalogue.
    pub framework: &'a FrameworkRegistered,
    /// The tool in the catalogue.
    pub tool: &'a ToolRegistered,
    /// The set of engine arguments that the workload names.
    pub set: Option<&'a SetInForce>,
    /// What is measured.
    pub workload: &'a WorkloadSpec,
    /// The scenarios to execute.
    pub scenarios: &'a [ScenarioSpec],
    /// The commands of the first scenario, or why there are none.
    pub resolved: Option<&'a Result<Resolved, Refusal>>,
    /// Whether a Hugging Face token is stored that the caller's job would be given.
    pub stored_token: bool,
    /// The arguments among them that load code or read paths and are not approved.
    pub unapproved: &'a [DangerousArg],
    /// What is wrong with an address that the workload names, where the policy refuses one.
    pub address_fault: Option<&'a str>,
    /// Whether the endpoint that is to run already answered the control plane, or why not; nothing where it was not asked.
    pub endpoint_answer: Option<Result<u16, &'a str>>,
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
        let names = ["{agent.model}", "{model_code}", "{model}"];
        self.framework.serve_argv.iter().any(|element| names.iter().any(|name| element.contains(name)))
    }

    /// The accelerators: their number and the memory of the smallest in bytes, as the agent found them, or as the
    /// catalogue's configuration says: before an agent reported, and of kinds that agents do not list.
    fn gpus(&self) -> Option<(u32, Option<u64>)> {
        let seen = self.accelerator.is_none_or(agents_see);
        if let Some(capabilities) = self.capabilities().filter(|host| seen || !host.gpus.is_empty()) {
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

    /// The smallest compute capability of the host's GPUs, as the agent found it or as the catalogue says.
    fn compute_capability(&self) -> Option<&str> {
        let reported = self.capabilities().map(|host| host.gpus.as_slice()).unwrap_or_default();
        let found = reported.iter().filter_map(|gpu| gpu.compute_capability.as_deref());
        let smallest = found.min_by(|a, b| hardware::numbers(a).cmp(&hardware::numbers(b)));
        smallest
            .or_else(|| self.accelerator.and_then(|accelerator| accelerator.compute_capability.as_deref()))
    }

    /// The engine arguments in force: as resolved, or what is named where they could not be.
    fn engine_args(&self) -> BTreeMap<String, Value> {
        match self.resolved {
            Some(Ok(resolved)) => resolved.commands.engine_args.clone(),
            _ => {
                let mut args = self.set.map(SetInForce::args).unwrap_or_default();
                args.extend(self.workload.engine_args.clone());
                args
            }
        }
    }

    /// Whether neither the workload nor its set names an address.
    fn names_no_address(&self) -> bool {
        self.workload.addresses().is_empty() && addresses_in("", &self.engine_args()).is_empty()
    }

    /// The first of these engine arguments that is in force.
    fn arg(&self, keys: &[&str]) -> Option<Value> {
        let args = self.engine_args();
        keys.iter().find_map(|key| args.get(*key)).cloned()
    }

    /// A whole number among the engine arguments in force.
    fn engine_arg(&self, keys: &[&str]) -> Option<u64> {
        self.arg(keys).as_ref().and_then(Value::as_u64)
    }

    /// Which of these engine arguments the framework's version has.
    fn known_key<'k>(&self, keys: &[&'k str]) -> Option<&'k str> {
        keys.iter().find(|key| self.framework.engine_args.contains_key(**key)).copied()
    }

    /// How many accelerators share every layer of the model; 1 unless the arguments say otherwise.
    fn tensor_parallel(&self) -> u64 {
        tensor_parallel(&self.engine_args(), &self.framework.engine_args).unwrap_or(1).max(1)
    }

    /// How many groups of layers the model is divided into.
    fn pipeline_parallel(&self) -> u64 {
        self.engine_arg(&["pipeline_parallel_size", "pp_size"]).unwrap_or(1).max(1)
    }

    /// The precision that the weights are served in. A file has one, whatever is said of it.
    fn precision(&self) -> Option<&str> {
        let of_file = self.model_file().and_then(fit::precision_of_file);
        let of_set = self.set.and_then(|set| set.facts.precision.as_deref());
        let said = of_file.or(self.workload.quantization.as_deref()).or(of_set);
        said.or(self.model.default_precision.as_deref())
    }

    /// The host's file of the model, where the framework is given one.
    fn model_file(&self) -> Option<&str> {
        let files =
            self.capabilities().filter(|_| place::reads_model_file(self)).map(|host| &host.model_files)?;
        files.get(&self.workload.model_code).map(String::as_str)
    }

    /// The most tokens a request of a scenario needs: input and output.
    fn most_tokens(&self) -> Option<(u64, String)> {
        let tokens = |scenario: &ScenarioSpec| {
            let answer = scenario.max_tokens.or(scenario.output_sequence_length)?;
            Some(u64::from(scenario.input_sequence_length?) + u64::from(answer))
        };
        self.scenarios.iter().filter_map(|scenario| Some((tokens(scenario)?, scenario.code()))).max()
    }

    /// The most requests in flight at once.
    fn most_concurrency(&self) -> u64 {
        self.scenarios.iter().map(|scenario| u64::from(scenario.concurrency)).max().unwrap_or(1)
    }

    /// How many model servers there will be.
    fn replicas(&self) -> u64 {
        match self.resolved {
            Some(Ok(resolved)) => u64::from(resolved.commands.replicas),
            _ => 1,
        }
    }
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq)]
enum Finding {
    /// Nothing stands in the way.
    Ok(String),
    /// The run can start, but its numbers may disappoint. With cures.
    Warning(String, Vec<Cure>),
    /// The run would fail. With cures.
    Fails(String, Vec<Cure>),
    /// The facts are missing.
    Unknown(String),
    /// The rule has nothing to say about this workload.
    DoesNotApply,
}

impl Finding {
    fn fails(message: impl Into<String>, cure: Cure) -> Self {
        Self::Fails(message.into(), vec![cure])
    }

    fn warning(message: impl Into<String>, cure: Cure) -> Self {
        Self::Warning(message.into(), vec![cure])
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
    ("clock_in_step", "The server's clock is in step", place::clock_in_step),
    ("endpoint_url", "The endpoint is an address", place::endpoint_url),
    ("endpoint_answers", "The endpoint answers", place::endpoint_answers),
    ("addresses_allowed", "The addresses may be asked", place::addresses_allowed),
    ("framework_available", "The framework is installed", place::framework_available),
    ("tool_available", "The benchmark tool is installed", place::tool_available),
    ("snapshot_present", "The snapshot of inputs is on the server", place::snapshot_present),
    ("model_present", "The model is on the server", place::model_present),
    ("token_present", "The model's access token is there", place::token_present),
    ("framework_serves", "The framework serves models of this kind", hardware::framework_serves),
    ("hardware_supported", "The framework version supports the hardware", hardware::hardware_supported),
    ("build_fits", "The build is for the hardware", hardware::build_fits),
    ("precision_supported", "The hardware computes in the precision", hardware::precision_supported),
    ("quantization_applies", "The quantization is what is served", fit::quantization_applies),
    ("set_fits", "The engine args set fits", engine::set_fits),
    ("tier_fits", "The tier is what is served", engine::tier_fits),
    ("model_fits_memory", "The model fits the memory", fit::model_fits_memory),
    ("tensor_parallel_divides", "Tensor parallelism divides", hardware::tensor_parallel_divides),
    ("replicas", "Replicas use the whole server", hardware::replicas),
    ("context_covers", "The context covers input and output", cache::context_covers),
    ("kv_cache_fits", "The KV cache holds the requests", cache::kv_cache_fits),
    ("reasoning_apart", "Thinking is kept apart from the answer", engine::reasoning_apart),
    ("memory_headroom", "The GPU memory has headroom", engine::memory_headroom),
    ("host_memory_fits", "The offloaded cache fits the host's memory", cache::host_memory_fits),
    ("images_a_request", "The pipeline makes several images a request", load::images_a_request),
    ("load_is_sound", "Requests and concurrency are sound", load::load_is_sound),
    ("environment_allowed", "The agent passes the environment on", engine::environment_allowed),
    ("dangerous_args_approved", "Arguments that load code are approved", engine::dangerous_args_approved),
    ("commands_resolve", "The commands resolve", load::commands_resolve),
];

/// Applies every rule.
pub fn check(facts: &Facts<'_>) -> Readiness {
    let checks: Vec<ReadinessCheck> =
        RULES.iter().filter_map(|(rule, title, find)| shown(rule, title, find(facts))).collect();
    let commands = match facts.resolved {
        Some(Ok(resolved)) => Some(resolved.commands.clone()),
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
        cures: cures.iter().map(|cure| cure.label().to_owned()).collect(),
        cure: cures,
    })
}

#[cfg(test)]
mod tests;
