//! From a verified job and this host's policy to what will be started, or to the reason why nothing will.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use events::networks::{NETWORKS_ENV, Networks};
use events::report::AssignedJob;
use events::tools::{DEFAULT_IMAGE_SIZE, ToolCode, WorkloadKind};

use super::place::Place;
use super::placeholders::{self, Values};
use super::sources::Sources;
use crate::policy::Policy;
use crate::serving::{Endpoint, MARKER_ENV, Probe, ProcessSpec};
use crate::tools::{self, Tool};

/// Where programs are looked for when the policy passes no `PATH` on. Model servers start helpers by name.
const PLAIN_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The variables that say which GPUs a process sees: CUDA's, and ROCm's.
const VISIBLE_DEVICES: &[&str] = &["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"];
/// The variable that holds the key of an endpoint that already runs.
const API_KEY_ENV: &str = "OPENAI_API_KEY";

/// Why this host will not carry out a job. The message says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// What will be started.
pub(super) struct Plan {
    /// The model servers, one a replica; none where the endpoint already runs.
    pub(super) serve: Vec<ProcessSpec>,
    /// The GPUs of each replica, where they are pinned.
    pub(super) gpu_sets: Vec<String>,
    /// Processes beside the model servers, and where each says that it is ready, within which time.
    pub(super) companions: Vec<(ProcessSpec, Option<(String, Duration)>)>,
    /// What fetches the model into each replica's server, where these do not load it by themselves.
    pub(super) fetch: Vec<ProcessSpec>,
    pub(super) tool: ProcessSpec,
    pub(super) adapter: Box<dyn Tool>,
    /// Where each replica is asked whether it is ready.
    pub(super) endpoints: Vec<Endpoint>,
    /// The port of the first model server of our own; the others follow it.
    pub(super) port: u16,
    /// The addresses as the load generator is told them.
    pub(super) base_urls: Vec<String>,
    pub(super) ready_within: Duration,
}

/// What a plan is made of.
pub(super) struct Given<'a> {
    pub(super) job: &'a AssignedJob,
    pub(super) policy: &'a Policy,
    pub(super) place: &'a Place,
    pub(super) port: u16,
    pub(super) gpus: u32,
    pub(super) marker: &'a str,
    /// What the control plane released for the model server, by environment variable.
    pub(super) released: &'a BTreeMap<String, String>,
    /// Where the job's inputs lie, where they have a source.
    pub(super) sources: Option<&'a Sources>,
}

/// Makes the plan.
pub(super) fn plan(given: &Given<'_>) -> Result<Plan, Refusal> {
    let Given { job, policy, place, .. } = given;
    let commands = &job.commands;
    if !commands.dangerous_flags.is_empty() && !policy.accept_dangerous {
        return Err(Refusal(format!(
            "the job uses flags that load code or read paths ({}), which this host does not accept: remove them, or set accept_dangerous = true in agent.toml",
            commands.dangerous_flags.join(", ")
        )));
    }
    let adapter = tools::find(&job.workload.tool_code).ok_or_else(|| {
        Refusal(format!("this agent does not know the tool {:?}: update the agent", job.workload.tool_code))
    })?;
    let serves = !commands.serve_argv.is_empty();
    let replicas = if serves { commands.replicas.max(1) } else { 1 };
    let base_urls = match (serves, &commands.endpoint_url) {
        (true, _) => (0..replicas)
            .map(|index| Ok(format!("http://127.0.0.1:{}", port_of(given.port, index)?)))
            .collect::<Result<Vec<_>, Refusal>>()?,
        (false, Some(url)) => vec![url.trim_end_matches('/').to_owned()],
        (false, None) => {
            return Err(Refusal(
                "the job starts no model server and names no endpoint: set endpoint_url".into(),
            ));
        }
    };
    let base_url = base_urls.first().cloned().unwrap_or_default();
    let model = model(policy, &job.workload.model_code);
    let all = values(given, &base_url, model.clone(), given.port, None);

    let gpu_sets = if serves { gpu_sets(given, replicas)? } else { Vec::new() };
    let (mut serve, mut fetch) = (Vec::new(), Vec::new());
    for index in 0..if serves { replicas } else { 0 } {
        let gpus = gpu_sets.get(index as usize);
        let own = base_urls.get(index as usize).unwrap_or(&base_url);
        let values = values(given, own, model.clone(), port_of(given.port, index)?, gpus.map(String::as_str));
        let mut env = server_environment(given, &values)?;
        if let Some(gpus) = gpus {
            for name in VISIBLE_DEVICES {
                env.insert((*name).into(), gpus.clone());
            }
        }
        if !commands.fetch_argv.is_empty() {
            let argv = command(&commands.fetch_argv, &values, policy)?;
            let (env, work_dir) = (env.clone(), place.work_dir.clone());
            fetch.push(ProcessSpec { name: "model fetch", argv, env, work_dir });
        }
        let argv = command(&commands.serve_argv, &values, policy)?;
        serve.push(ProcessSpec { name: "model server", argv, env, work_dir: place.work_dir.clone() });
    }
    let mut companions = Vec::new();
    for companion in commands.companions.iter().filter(|_| serves) {
        let argv = command(&companion.argv, &all, policy)?;
        let env = server_environment(given, &all)?;
        let within = Duration::from_secs(companion.readiness_timeout_s.unwrap_or(1).max(1).into());
        let ready = companion.readiness_url.clone().map(|url| (url, within));
        let work_dir = place.work_dir.clone();
        companions.push((ProcessSpec { name: "companion", argv, env, work_dir }, ready));
    }
    let argv = adapter.argv(command(&commands.tool_argv, &all, policy)?, &place.tool_files());
    let mut env = environment(policy, given.marker);
    env.insert(NETWORKS_ENV.into(), networks(given, replicas, serves)?.to_string());
    let tool = ProcessSpec { name: "tool", argv, env, work_dir: place.work_dir.clone() };

    let wanted = adapter.model(&tool.argv);
    let endpoint = |url: &String| Endpoint {
        base_url: Endpoint::base_of(url),
        readiness_path: if serves { commands.readiness_path.clone() } else { String::new() },
        // A server of our own asks for no key, and a foreign one must not get ours by accident.
        api_key: if serves {
            None
        } else {
            std::env::var(API_KEY_ENV).ok().filter(|_| policy.allows_env(API_KEY_ENV))
        },
        model: wanted.clone(),
        probe: probe(job, serves),
    };
    let endpoints = base_urls.iter().map(endpoint).collect();
    let ready_within = Duration::from_secs(u64::from(commands.readiness_timeout_s.max(1)));
    Ok(Plan {
        serve,
        gpu_sets,
        companions,
        fetch,
        tool,
        adapter,
        endpoints,
        port: given.port,
        base_urls,
        ready_within,
    })
}

/// What the endpoint must have answered: a request of the kind that the tool sends.
fn probe(job: &AssignedJob, serves: bool) -> Probe {
    match ToolCode::of(&job.workload.tool_code).map(ToolCode::kind) {
        Some(WorkloadKind::SpeechToText) => Probe::Transcription,
        Some(WorkloadKind::ImageGeneration) if serves => {
            let size = job.scenario.image_size.clone();
            Probe::Image { size: size.unwrap_or_else(|| DEFAULT_IMAGE_SIZE.to_owned()) }
        }
        Some(WorkloadKind::ImageGeneration) => Probe::Listed,
        _ => Probe::Text,
    }
}

/// Where the tool may connect to: the policy's networks, and the model servers of this host's own.
fn networks(given: &Given<'_>, replicas: u32, serves: bool) -> Result<Networks, Refusal> {
    let mut networks = given.policy.allowed_networks.clone();
    for index in 0..if serves { replicas } else { 0 } {
        networks = networks.with_service((Ipv4Addr::LOCALHOST, port_of(given.port, index)?).into());
    }
    Ok(networks)
}

/// A replica's port: the first one's and its index.
fn port_of(base: u16, index: u32) -> Result<u16, Refusal> {
    let port = u16::try_from(index).ok().and_then(|index| base.checked_add(index));
    port.ok_or_else(|| Refusal(format!("there is no port {index} above {base} for a replica")))
}

/// The GPUs of each replica, none of them in two; empty where nothing is pinned.
fn gpu_sets(given: &Given<'_>, replicas: u32) -> Result<Vec<String>, Refusal> {
    let Some(each) = given.job.commands.gpus_per_replica.filter(|each| *each > 0) else {
        return match replicas {
            1 => Ok(Vec::new()),
            _ => Err(Refusal("the job has several replicas and does not say how many GPUs each has".into())),
        };
    };
    let pool = visible_gpus(given);
    if pool.is_empty() && replicas == 1 {
        return Ok(Vec::new());
    }
    let needed = u64::from(replicas) * u64::from(each);
    if needed > pool.len() as u64 {
        return Err(Refusal(format!(
            "the job has {replicas} replicas of {each} GPUs, this host has {}: start the run again, so that it is resolved for this host",
            pool.len()
        )));
    }
    Ok(pool.chunks(each as usize).take(replicas as usize).map(|gpus| gpus.join(",")).collect())
}

/// The GPUs that may be used: those that the agent's own environment names, where it does, or all.
fn visible_gpus(given: &Given<'_>) -> Vec<String> {
    let named = environment(given.policy, given.marker);
    match VISIBLE_DEVICES.iter().find_map(|name| named.get(*name)) {
        Some(list) => {
            list.split(',').map(|gpu| gpu.trim().to_owned()).filter(|gpu| !gpu.is_empty()).collect()
        }
        None => (0..given.gpus).map(|gpu| gpu.to_string()).collect(),
    }
}

/// The environment of a model server: what the policy passes on, and what the job sets and the policy allows.
fn server_environment(given: &Given<'_>, values: &Values) -> Result<BTreeMap<String, String>, Refusal> {
    let policy = given.policy;
    let mut env = environment(policy, given.marker);
    for (name, value) in given.released {
        // This host's own word goes first, and what it does not pass on at all is not passed on from elsewhere.
        if policy.allows_env(name) {
            env.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    for (name, value) in &given.job.commands.serve_env {
        if !policy.allows_env(name) {
            return Err(Refusal(format!(
                "the job sets the environment variable {name}, which this host does not allow: add it to `env` in agent.toml"
            )));
        }
        let filled =
            placeholders::fill(std::slice::from_ref(value), values).map_err(|e| Refusal(e.to_string()))?;
        env.insert(name.clone(), filled.concat());
    }
    Ok(env)
}

/// Fills a command's placeholders and replaces its program by the path that the policy allows.
fn command(signed: &[String], values: &Values, policy: &Policy) -> Result<Vec<String>, Refusal> {
    let mut argv = placeholders::fill(signed, values).map_err(|e| Refusal(e.to_string()))?;
    let program = argv.first_mut().ok_or_else(|| Refusal("the command is empty".into()))?;
    let path = policy.executable(program).map_err(|e| Refusal(e.to_string()))?;
    *program = path.display().to_string();
    Ok(argv)
}

fn values(
    given: &Given<'_>,
    base_url: &str,
    model: Result<String, String>,
    port: u16,
    gpus: Option<&str>,
) -> Values {
    let path = |path: &Path| Ok(path.display().to_string());
    let files = given.place.tool_files();
    let python = given.policy.executable("python3").map(|path| path.display().to_string());
    let gpus = gpus.map_or_else(|| visible_gpus(given).join(","), str::to_owned);
    [
        ("agent.log_dir", path(&given.place.log_dir)),
        ("agent.work_dir", path(&given.place.work_dir)),
        ("agent.python", python.map_err(|e| e.to_string())),
        ("agent.port", Ok(port.to_string())),
        ("agent.gpus", Ok(gpus)),
        ("agent.model", model),
        ("agent.base_url", Ok(base_url.to_owned())),
        ("agent.progress", path(&files.progress)),
        ("agent.data_log", path(&files.data_log)),
        ("agent.request_log", path(&files.request_log)),
        ("agent.endpoints", path(&given.place.endpoints_file())),
        ("agent.prompts", input(given.sources.map(|sources| &sources.prompts))),
        ("agent.ground_truth", input(given.sources.and_then(|sources| sources.ground_truth.as_ref()))),
    ]
    .into()
}

fn input(path: Option<&PathBuf>) -> Result<String, String> {
    path.map(|path| path.display().to_string())
        .ok_or_else(|| "the job names no source of its inputs".to_owned())
}

/// What `{agent.model}` stands for: the policy's word for it, or the code itself for frameworks that load by id.
fn model(policy: &Policy, code: &str) -> Result<String, String> {
    let Some(value) = policy.models.get(code) else { return Ok(code.to_owned()) };
    if value.starts_with('/') && !Path::new(value).exists() {
        return Err(format!(
            "the model {code} should lie at {value} but does not: correct [models] in agent.toml"
        ));
    }
    Ok(value.clone())
}

/// The environment of a started process: what the policy passes on, and a marker to know it again.
fn environment(policy: &Policy, marker: &str) -> BTreeMap<String, String> {
    let names = policy.env.iter().chain(&policy.secret_env);
    let mut env: BTreeMap<String, String> =
        names.filter_map(|name| Some((name.clone(), std::env::var(name).ok()?))).collect();
    env.entry("PATH".into()).or_insert_with(|| PLAIN_PATH.into());
    env.insert(MARKER_ENV.into(), marker.into());
    env
}

#[cfg(test)]
mod tests;
