//! Command templates and typed arguments become argv vectors. Never a shell string, never word splitting.
//!
//! A template is a list of argv elements with named placeholders; a placeholder is filled inside its own element.
//! Engine arguments follow, each checked against its type, range and choices, in the framework's flag style. A closed
//! list of `{agent.…}` placeholders stays open: it is signed unresolved and filled by the agent, inside its element.

mod arguments;
mod build;
mod derived;
mod endpoint;
mod engine_args_set;
mod nearest;
mod parallel;
mod source;
mod template;

use std::collections::BTreeMap;

use events::catalogue::{FrameworkRegistered, ToolRegistered};
use events::job::{CompanionCommand, ResolvedCommands};
use events::workload::{ScenarioSpec, WorkloadSpec};
use serde_json::Value;

use crate::domain::Refusal;

pub use arguments::{FlagStyle, check_tool_args, check_values};
pub use build::{agents_see, container_image};
pub use derived::{context_per_request, derived_engine_args, quantization_arg};
pub use endpoint::endpoint;
pub use engine_args_set::{SetInForce, older};
pub use nearest::nearest;
pub use parallel::{Replicas, gpus_per_replica, tensor_parallel};
pub use source::{add_source, check_source, source_ref};
pub use template::{AGENT_PLACEHOLDERS, check_template};

use arguments::{Emitted, emit, flags_of};
use template::Values;

/// The framework that stands for an endpoint that already runs: nothing is started.
pub const FRAMEWORK_OPENAI: &str = "openai";

/// Hard wall-clock limit of a job that sets none, seconds.
pub const DEFAULT_JOB_TIMEOUT_S: u32 = 4 * 3600;

/// Tool arguments that the control plane uses itself instead of passing them on.
const JOB_TIMEOUT: &str = "job_timeout_seconds";
pub(crate) const SERVED_MODEL: &str = "served_model_name";
/// For tools that count tokens themselves: the tokenizer's name; the model's code unless it is set.
const TOKENIZER: &str = "tokenizer";

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
    /// The set of engine arguments that the workload names, in the version it was made with.
    pub set: Option<&'a SetInForce>,
    /// The sidecars that the set needs, by framework code.
    pub sidecars: &'a BTreeMap<String, FrameworkRegistered>,
    /// The host's accelerators; unknown while no server is chosen.
    pub gpus: Option<u32>,
}

/// An argument in force that loads code or reads paths.
#[derive(Debug, Clone, PartialEq)]
pub struct DangerousArg {
    /// The framework's, sidecar's or tool's code.
    pub program: String,
    /// The argument's key.
    pub key: String,
    /// Its flag.
    pub flag: String,
    /// Its value.
    pub value: Value,
}

/// A job's commands, and what about them must have been approved.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The commands.
    pub commands: ResolvedCommands,
    /// The arguments that load code or read paths.
    pub dangerous: Vec<DangerousArg>,
}

/// The commands of a job.
///
/// # Errors
/// A [`Refusal`] that names the argument, the placeholder or the endpoint that is at fault.
pub fn resolve(inputs: &Inputs<'_>) -> Result<ResolvedCommands, Refusal> {
    resolve_all(inputs).map(|resolved| resolved.commands)
}

/// The commands of a job, and the arguments among them that must have been approved.
///
/// # Errors
/// A [`Refusal`] that names the argument, the placeholder or the endpoint that is at fault.
pub fn resolve_all(inputs: &Inputs<'_>) -> Result<Resolved, Refusal> {
    let Inputs { workload, scenario, framework, tool, set, .. } = *inputs;
    let external = workload.framework_code == FRAMEWORK_OPENAI;
    let endpoint_url = endpoint(workload, external)?;
    if framework.sidecar {
        let message = format!("{} only runs beside another framework's server", workload.framework_code);
        return Err(Refusal::invalid("sidecar_only", message).hint(
            "choose the framework that serves the model; a set of engine arguments brings its sidecars",
        ));
    }
    if let Some(set) = set {
        set.check(workload)?;
    }
    let served_model = served_model_name(workload)?;
    let weights = weights(inputs);
    let values = values(scenario, workload, &served_model, weights);

    let engine = engine_args(inputs)?;
    let mut serve = Serve::default();
    if !external {
        serve = serve_commands(inputs, &engine, &values)?;
    }
    let replicas = match external {
        true => Replicas::ONE,
        false => Replicas::of(inputs, &engine),
    };

    let mut tool_argv = template::fill("the tool's command", &tool.argv, &values)?;
    if replicas.count > 1 {
        tool_argv.extend(template::fill("the tool's command", &tool.endpoints_argv, &values)?);
    }
    let flags = tool_flags(inputs)?;
    tool_argv.extend(flags.argv);
    serve.take_dangerous(&workload.tool_code, flags.dangerous);

    let templates = [
        (!external).then(|| format!("{}/{}/serve", workload.framework_code, workload.framework_version)),
        Some(format!("{}/run", workload.tool_code)),
    ];
    let commands = ResolvedCommands {
        serve_argv: serve.argv,
        tool_argv,
        serve_env: serve.env,
        readiness_path: framework.readiness_path.clone(),
        readiness_timeout_s: framework.readiness_timeout_s,
        job_timeout_s: job_timeout(workload)?,
        endpoint_url,
        templates: templates.into_iter().flatten().collect(),
        dangerous_flags: serve.dangerous.iter().map(|arg| arg.flag.clone()).collect(),
        engine_args: engine,
        engine_args_set: set.map(SetInForce::reference),
        weights: (weights != workload.model_code).then(|| weights.to_owned()),
        replicas: replicas.count,
        gpus_per_replica: replicas.gpus_each,
        fetch_argv: serve.fetch_argv,
        companions: serve.companions,
        prompt_source: None,
    };
    Ok(Resolved { commands, dangerous: serve.dangerous })
}

/// What is started to serve the model.
#[derive(Debug, Default)]
struct Serve {
    argv: Vec<String>,
    env: BTreeMap<String, String>,
    fetch_argv: Vec<String>,
    companions: Vec<CompanionCommand>,
    dangerous: Vec<DangerousArg>,
}

impl Serve {
    fn take_dangerous(&mut self, program: &str, args: Vec<(String, String, Value)>) {
        self.dangerous.extend(args.into_iter().map(|(key, flag, value)| DangerousArg {
            program: program.to_owned(),
            key,
            flag,
            value,
        }));
    }
}

fn serve_commands(
    inputs: &Inputs<'_>,
    engine: &BTreeMap<String, Value>,
    values: &Values,
) -> Result<Serve, Refusal> {
    let Inputs { workload, framework, set, .. } = *inputs;
    let mut serve = Serve {
        argv: template::fill("the framework's command", &framework.serve_argv, values)?,
        fetch_argv: template::fill("the command that fetches the model", &framework.fetch_argv, values)?,
        ..Serve::default()
    };
    let (own, of_sidecars): (BTreeMap<_, _>, BTreeMap<_, _>) = engine
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .partition(|(key, _)| !key.contains('.'));
    let style = FlagStyle::parse(&framework.flag_style)?;
    let flags = emit("engine argument", &own, &framework.engine_args, style)?;
    serve.argv.extend(flags.argv);
    for (name, value) in &framework.serve_env {
        let filled = template::fill("the framework's environment", std::slice::from_ref(value), values)?;
        serve.env.extend(filled.into_iter().map(|value| (name.clone(), value)));
    }
    serve.env.extend(set.map(|set| set.facts.env.clone()).unwrap_or_default());
    serve.env.extend(flags.env);
    serve.take_dangerous(&workload.framework_code, flags.dangerous);

    for companion in &framework.companions {
        let argv = template::fill(&format!("the command of {}", companion.name), &companion.argv, values)?;
        serve.companions.push(CompanionCommand::of(&companion.name, argv));
    }
    for companion in set.map(|set| set.facts.companions.as_slice()).unwrap_or_default() {
        let code = &companion.framework_code;
        let sidecar = inputs.sidecars.get(code).ok_or_else(|| {
            Refusal::unready("unknown_sidecar", format!("the set needs {code}, which the catalogue has not"))
        })?;
        let prefix = format!("{code}.");
        let args: BTreeMap<String, Value> = of_sidecars
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?.to_owned(), value.clone())))
            .collect();
        let mut argv = template::fill(&format!("the command of {code}"), &sidecar.serve_argv, values)?;
        let style = FlagStyle::parse(&sidecar.flag_style)?;
        let flags = emit(&format!("argument of {code}"), &args, &sidecar.engine_args, style)?;
        argv.extend(flags.argv);
        serve.companions.push(CompanionCommand {
            readiness_url: readiness_url(sidecar, &args),
            readiness_timeout_s: Some(sidecar.readiness_timeout_s),
            ..CompanionCommand::of(code, argv)
        });
        serve.take_dangerous(code, flags.dangerous);
    }
    Ok(serve)
}

/// Where a sidecar says that it is ready, on the port that its arguments name or that it has without them.
fn readiness_url(sidecar: &FrameworkRegistered, args: &BTreeMap<String, Value>) -> Option<String> {
    let key = sidecar.readiness_port_arg.as_ref()?;
    let default = sidecar.engine_args.get(key).map(|arg| &arg.default);
    let port = args.get(key).or(default)?.as_u64()?;
    Some(format!("http://127.0.0.1:{port}{}", sidecar.readiness_path))
}

/// The weights that the framework loads: those that the set of engine arguments was written for, where it is one for
/// the workload's model, or else those that the model's code names.
fn weights<'a>(inputs: &Inputs<'a>) -> &'a str {
    let model = &inputs.workload.model_code;
    let of_set = inputs.set.filter(|set| set.facts.model_code.as_ref() == Some(model));
    of_set.and_then(|set| set.facts.model_id.as_deref()).unwrap_or(model)
}

/// The engine arguments in force: what the scenario asks for, over it what the set says, and over that what the
/// workload sets; null takes one away.
///
/// # Errors
/// `engine_args_without_engine` when there is no engine to give them to; `unknown_argument` for a sidecar's argument
/// without the sidecar.
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
    args.extend(named_args(inputs)?);
    args.retain(|_, value| !value.is_null());
    Ok(args)
}

/// What the set says, and over it what the workload sets, null included.
fn named_args(inputs: &Inputs<'_>) -> Result<BTreeMap<String, Value>, Refusal> {
    let mut args = inputs.set.map(SetInForce::args).unwrap_or_default();
    for (key, value) in &inputs.workload.engine_args {
        let known = match key.split_once('.') {
            None => value.is_null().then(|| inputs.framework.engine_args.contains_key(key)),
            Some((sidecar, key)) => {
                let needed = inputs.set.is_some_and(|set| set.needs(sidecar));
                Some(needed && inputs.sidecars.get(sidecar).is_some_and(|s| s.engine_args.contains_key(key)))
            }
        };
        if known == Some(false) {
            let message =
                format!("there is no engine argument {:?}", key.chars().take(100).collect::<String>());
            return Err(Refusal::invalid("unknown_argument", message)
                .hint("the catalogue lists the arguments of each framework version; a sidecar's need a set with that sidecar"));
        }
        args.insert(key.clone(), value.clone());
    }
    Ok(args)
}

fn tool_flags(inputs: &Inputs<'_>) -> Result<Emitted, Refusal> {
    let Inputs { workload, scenario, tool, .. } = *inputs;
    let mut args = tool.defaults.clone();
    args.extend(flags_of(&workload.tool_code, &workload.tool_args, tool)?);
    let number = |value: Option<u32>| value.map(Value::from);
    let word = |value: &Option<String>| value.clone().map(Value::from);
    let axes = [
        ("input_sequence_length", number(scenario.input_sequence_length)),
        ("output_sequence_length", number(scenario.output_sequence_length)),
        ("max_tokens", number(scenario.max_tokens.or(scenario.output_sequence_length))),
        ("num_rounds", number(scenario.num_rounds)),
        ("num_images_batch", number(scenario.num_images_batch)),
        ("image_size", word(&scenario.image_size)),
        ("image_detail", word(&scenario.image_detail)),
        ("streaming", scenario.streaming.map(Value::from)),
    ];
    for (key, value) in axes {
        if let Some(value) = value.filter(|_| tool.args.contains_key(key)) {
            args.insert(key.to_owned(), value);
        }
    }
    emit("tool argument", &args, &tool.args, FlagStyle::Equals)
}

fn values(scenario: &ScenarioSpec, workload: &WorkloadSpec, served_model: &str, weights: &str) -> Values {
    let mut values = Values::default();
    values.own("concurrency", scenario.concurrency);
    values.own("num_requests", scenario.num_requests);
    values.own("scenario_code", scenario.code());
    let streams = scenario.streaming != Some(false);
    values.own("streaming_flag", if streams { "--streaming" } else { "--no-streaming" });
    values.user("model_code", &workload.model_code);
    values.user("model", weights);
    values.user("served_model_name", served_model);
    for (name, value) in [
        ("input_sequence_length", scenario.input_sequence_length),
        ("output_sequence_length", scenario.output_sequence_length),
        ("num_rounds", scenario.num_rounds),
    ] {
        if let Some(value) = value {
            values.own(name, value);
        }
    }
    let tokenizer = workload.tool_args.get(TOKENIZER).and_then(Value::as_str);
    values.user("tokenizer", tokenizer.unwrap_or(&workload.model_code));
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

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

#[cfg(test)]
mod tool_tests;
