//! Command templates and typed arguments become argv vectors. Never a shell string, never word splitting.
//!
//! A template is a list of argv elements with named placeholders; a placeholder is filled inside its own element.
//! Engine arguments follow, each checked against its type, range and choices, in the framework's flag style. A closed
//! list of `{agent.…}` placeholders stays open: it is signed unresolved and filled by the agent, inside its element.

mod arguments;
mod derived;
mod nearest;
mod template;

use std::collections::BTreeMap;

use events::catalogue::{FrameworkRegistered, ToolRegistered};
use events::job::ResolvedCommands;
use events::workload::{ScenarioSpec, WorkloadSpec};
use serde_json::Value;
use url::Url;

use crate::domain::Refusal;

pub use arguments::FlagStyle;
pub use derived::{context_per_request, derived_engine_args, quantization_arg};
pub use nearest::nearest;
pub use template::{AGENT_PLACEHOLDERS, check_template};

use arguments::{Emitted, emit};
use template::Values;

/// The framework that stands for an endpoint that already runs: nothing is started.
pub const FRAMEWORK_OPENAI: &str = "openai";

/// Hard wall-clock limit of a job that sets none, seconds.
pub const DEFAULT_JOB_TIMEOUT_S: u32 = 4 * 3600;

/// Tool arguments that the control plane uses itself instead of passing them on.
const JOB_TIMEOUT: &str = "job_timeout_seconds";
const SERVED_MODEL: &str = "served_model_name";

/// Tool arguments that a scenario sets and a workload may not: the scenario's code would otherwise name another load.
const SCENARIO_AXES: &[&str] = &[
    "concurrency",
    "num_requests",
    "input_sequence_length",
    "output_sequence_length",
    "max_tokens",
    "streaming",
];

/// Everything a job's commands are made of.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// What is measured.
    pub workload: &'a WorkloadSpec,
    /// The job's scenario.
    pub scenario: &'a ScenarioSpec,
    /// Every scenario of the run, for a server that all its jobs share.
    pub run_scenarios: &'a [ScenarioSpec],
    /// The framework's version in the catalogue.
    pub framework: &'a FrameworkRegistered,
    /// The tool in the catalogue.
    pub tool: &'a ToolRegistered,
}

/// The commands of a job.
///
/// # Errors
/// A [`Refusal`] that names the argument, the placeholder or the endpoint that is at fault.
pub fn resolve(inputs: &Inputs<'_>) -> Result<ResolvedCommands, Refusal> {
    let Inputs { workload, scenario, framework, tool, .. } = *inputs;
    let external = workload.framework_code == FRAMEWORK_OPENAI;
    let endpoint_url = endpoint(workload, external)?;
    if let Some(set) = &workload.engine_args_set_code {
        return Err(Refusal::invalid(
            "unknown_engine_args_set",
            format!("there is no engine args set {set:?}"),
        )
        .hint("set the flags in p_engine_args"));
    }
    let served_model = served_model_name(workload)?;
    let values = values(scenario, workload, &served_model);

    let engine = engine_args(inputs)?;
    let (serve_argv, dangerous_flags) = if external {
        (Vec::new(), Vec::new())
    } else {
        let mut argv = template::fill("the framework's command", &framework.serve_argv, &values)?;
        let flags = emit(
            "engine argument",
            &engine,
            &framework.engine_args,
            FlagStyle::parse(&framework.flag_style)?,
        )?;
        argv.extend(flags.argv);
        (argv, flags.dangerous)
    };

    let mut tool_argv = template::fill("the tool's command", &tool.argv, &values)?;
    let flags = tool_flags(inputs)?;
    tool_argv.extend(flags.argv);

    let templates = [
        (!external).then(|| format!("{}/{}/serve", workload.framework_code, workload.framework_version)),
        Some(format!("{}/run", workload.tool_code)),
    ];
    Ok(ResolvedCommands {
        serve_argv,
        tool_argv,
        serve_env: BTreeMap::new(),
        readiness_path: framework.readiness_path.clone(),
        readiness_timeout_s: framework.readiness_timeout_s,
        job_timeout_s: job_timeout(workload)?,
        endpoint_url,
        templates: templates.into_iter().flatten().collect(),
        dangerous_flags: dangerous_flags.into_iter().chain(flags.dangerous).collect(),
    })
}

/// The engine arguments in force: what the scenario asks for, and over it what the workload sets.
///
/// # Errors
/// `engine_args_without_engine` when there is no engine to give them to.
pub fn engine_args(inputs: &Inputs<'_>) -> Result<BTreeMap<String, Value>, Refusal> {
    let workload = inputs.workload;
    if workload.framework_code == FRAMEWORK_OPENAI {
        if let Some(key) = workload.engine_args.keys().next() {
            return Err(Refusal::invalid(
                "engine_args_without_engine",
                format!("engine argument {key:?} is set, but framework openai starts no server"),
            )
            .hint("remove p_engine_args; the endpoint runs with its own settings"));
        }
        return Ok(BTreeMap::new());
    }
    let mut args = derived_engine_args(inputs);
    args.extend(workload.engine_args.clone());
    Ok(args)
}

fn tool_flags(inputs: &Inputs<'_>) -> Result<Emitted, Refusal> {
    let Inputs { workload, scenario, tool, .. } = *inputs;
    if let Some(axis) = workload.tool_args.keys().find(|key| SCENARIO_AXES.contains(&key.as_str())) {
        return Err(Refusal::invalid(
            "scenario_axis",
            format!("{axis} belongs to the scenario, not to the tool's arguments"),
        )
        .hint("set it in p_scenarios, so that the scenario's code names the load that is sent"));
    }
    let mut args: BTreeMap<String, Value> = workload
        .tool_args
        .iter()
        .filter(|(key, _)| ![JOB_TIMEOUT, SERVED_MODEL].contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let axes = [
        ("input_sequence_length", scenario.input_sequence_length),
        ("output_sequence_length", scenario.output_sequence_length),
        ("max_tokens", scenario.max_tokens.or(scenario.output_sequence_length)),
    ];
    for (key, value) in axes {
        if let Some(value) = value.filter(|_| tool.args.contains_key(key)) {
            args.insert(key.to_owned(), Value::from(value));
        }
    }
    emit("tool argument", &args, &tool.args, FlagStyle::Equals)
}

fn values(scenario: &ScenarioSpec, workload: &WorkloadSpec, served_model: &str) -> Values {
    let mut values = Values::default();
    values.own("concurrency", scenario.concurrency);
    values.own("num_requests", scenario.num_requests);
    values.own("scenario_code", scenario.code());
    values.own("streaming_flag", if scenario.streaming { "--streaming" } else { "--no-streaming" });
    values.user("model_code", &workload.model_code);
    values.user("served_model_name", served_model);
    values
}

/// The name requests ask for: the tool argument `served_model_name`, or else the model's code.
fn served_model_name(workload: &WorkloadSpec) -> Result<String, Refusal> {
    match workload.tool_args.get(SERVED_MODEL) {
        None => Ok(workload.model_code.clone()),
        Some(Value::String(name)) if !name.is_empty() => Ok(name.clone()),
        Some(other) => {
            Err(Refusal::invalid("bad_argument", format!("{SERVED_MODEL} is {other}, not a name")))
        }
    }
}

fn job_timeout(workload: &WorkloadSpec) -> Result<u32, Refusal> {
    let Some(value) = workload.tool_args.get(JOB_TIMEOUT) else { return Ok(DEFAULT_JOB_TIMEOUT_S) };
    match value.as_u64().and_then(|seconds| u32::try_from(seconds).ok()) {
        Some(seconds @ 1..=604_800) => Ok(seconds),
        _ => Err(Refusal::invalid(
            "bad_argument",
            format!("{JOB_TIMEOUT} is {value}; it must be 1 to 604800 seconds"),
        )),
    }
}

/// The endpoint of framework `openai`; nothing for frameworks that are started.
///
/// # Errors
/// `endpoint_missing`, `bad_endpoint`, `endpoint_without_use`.
pub fn endpoint(workload: &WorkloadSpec, external: bool) -> Result<Option<String>, Refusal> {
    let Some(text) = &workload.endpoint_url else {
        if external {
            return Err(Refusal::invalid(
                "endpoint_missing",
                "framework openai needs the endpoint that already runs",
            )
            .hint("set p_endpoint_url, for example http://10.0.0.7:8000/v1"));
        }
        return Ok(None);
    };
    if !external {
        let message =
            format!("an endpoint is set, but framework {} is started by the agent", workload.framework_code);
        return Err(Refusal::invalid("endpoint_without_use", message)
            .hint("choose framework openai, or remove p_endpoint_url"));
    }
    let bad = |why: &str| {
        Refusal::invalid("bad_endpoint", format!("{text:?} is not an endpoint: {why}"))
            .hint("give an address such as https://host:8000/v1; keys are kept on the agent's host, not in the address")
    };
    if text.len() > 2000 || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(bad("too long, or with blanks"));
    }
    let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("only http and https are possible"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(bad("it names no host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("it holds credentials"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it has a query or a fragment"));
    }
    Ok(Some(text.clone()))
}

#[cfg(test)]
mod tests;
