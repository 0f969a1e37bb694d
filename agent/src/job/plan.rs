//! From a verified job and this host's policy to what will be started, or to the reason why nothing will.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use events::report::AssignedJob;

use super::place::Place;
use super::placeholders::{self, Values};
use crate::policy::Policy;
use crate::serving::{Endpoint, MARKER_ENV, ProcessSpec};
use crate::tools::{self, Tool};

/// Where programs are looked for when the policy passes no `PATH` on. Model servers start helpers by name.
const PLAIN_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The variable that holds the key of an endpoint that already runs.
const API_KEY_ENV: &str = "OPENAI_API_KEY";

/// Why this host will not carry out a job. The message says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// What will be started.
pub(super) struct Plan {
    /// The model server; nothing where the endpoint already runs.
    pub(super) serve: Option<ProcessSpec>,
    pub(super) tool: ProcessSpec,
    pub(super) adapter: Box<dyn Tool>,
    pub(super) endpoint: Endpoint,
    /// The port a model server of our own listens on.
    pub(super) port: u16,
    /// The address as the load generator is told it.
    pub(super) base_url: String,
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
    let base_url = match (serves, &commands.endpoint_url) {
        (true, _) => format!("http://127.0.0.1:{}", given.port),
        (false, Some(url)) => url.trim_end_matches('/').to_owned(),
        (false, None) => {
            return Err(Refusal(
                "the job starts no model server and names no endpoint: set endpoint_url".into(),
            ));
        }
    };
    let model = model(policy, &job.workload.model_code);
    let values = values(given, &base_url, model);

    let serve = if serves {
        let mut env = environment(policy, given.marker);
        for (name, value) in &commands.serve_env {
            if !policy.allows_env(name) {
                return Err(Refusal(format!(
                    "the job sets the environment variable {name}, which this host does not allow: add it to `env` in agent.toml"
                )));
            }
            env.insert(name.clone(), value.clone());
        }
        let argv = command(&commands.serve_argv, &values, policy)?;
        Some(ProcessSpec { name: "model server", argv, env, work_dir: place.work_dir.clone() })
    } else {
        None
    };
    let argv = adapter.argv(command(&commands.tool_argv, &values, policy)?, &place.tool_files());
    let env = environment(policy, given.marker);
    let tool = ProcessSpec { name: "tool", argv, env, work_dir: place.work_dir.clone() };

    let endpoint = Endpoint {
        base_url: Endpoint::base_of(&base_url),
        readiness_path: if serves { commands.readiness_path.clone() } else { String::new() },
        // A server of our own asks for no key, and a foreign one must not get ours by accident.
        api_key: if serves {
            None
        } else {
            std::env::var(API_KEY_ENV).ok().filter(|_| policy.allows_env(API_KEY_ENV))
        },
        model: adapter.model(&tool.argv),
    };
    let ready_within = Duration::from_secs(u64::from(commands.readiness_timeout_s.max(1)));
    Ok(Plan { serve, tool, adapter, endpoint, port: given.port, base_url, ready_within })
}

/// Fills a command's placeholders and replaces its program by the path that the policy allows.
fn command(signed: &[String], values: &Values, policy: &Policy) -> Result<Vec<String>, Refusal> {
    let mut argv = placeholders::fill(signed, values).map_err(|e| Refusal(e.to_string()))?;
    let program = argv.first_mut().ok_or_else(|| Refusal("the command is empty".into()))?;
    let path = policy.executable(program).map_err(|e| Refusal(e.to_string()))?;
    *program = path.display().to_string();
    Ok(argv)
}

fn values(given: &Given<'_>, base_url: &str, model: Result<String, String>) -> Values {
    let path = |path: &Path| Ok(path.display().to_string());
    let files = given.place.tool_files();
    let python = given.policy.executable("python3").map(|path| path.display().to_string());
    let gpus: Vec<String> = (0..given.gpus).map(|gpu| gpu.to_string()).collect();
    [
        ("agent.log_dir", path(&given.place.log_dir)),
        ("agent.work_dir", path(&given.place.work_dir)),
        ("agent.python", python.map_err(|e| e.to_string())),
        ("agent.port", Ok(given.port.to_string())),
        ("agent.gpus", Ok(gpus.join(","))),
        ("agent.model", model),
        ("agent.base_url", Ok(base_url.to_owned())),
        ("agent.progress", path(&files.progress)),
        ("agent.data_log", path(&files.data_log)),
        ("agent.request_log", path(&files.request_log)),
    ]
    .into()
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
