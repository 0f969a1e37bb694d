//! Loading what decisions are made on, from the streams themselves.

use events::catalogue::{FrameworkRegistered, ModelRegistered, ServerConfigRegistered, ToolRegistered};
use events::envelope::Recorded;
use events::job::ResolvedCommands;
use events::keys::{JobKey, PLATFORM_ORG, ProjectKey, RunKey, ScenarioKey, ServerKey, WorkloadKey};
use events::workload::{ScenarioSpec, TOOL_METRUMBENCH_LLM, WorkloadSpec};
use events::{Event, StreamKey};

use super::{CommandError, WorkIndex};
use crate::auth::Caller;
use crate::domain::project::project_not_found;
use crate::domain::{Job, Project, Refusal, Run, Scenario, Server, Workload, decode};
use crate::log::Log;
use crate::resolve::{Inputs, nearest, resolve};
use crate::state::AppState;

const PAGE: i64 = 500;

/// Every event of a stream.
pub(super) async fn stream(log: &Log, key: &StreamKey) -> Result<Vec<Recorded>, CommandError> {
    let mut events: Vec<Recorded> = Vec::new();
    loop {
        let from = events.last().map_or(1, |last| last.version + 1);
        let page = log.read_stream(key, from, PAGE).await?;
        let full = page.len() as i64 == PAGE;
        events.extend(page);
        if !full {
            return Ok(events);
        }
    }
}

/// A project of the caller's organisation that the caller may change.
pub(super) async fn writable_project(
    log: &Log,
    caller: &Caller,
    code: &str,
) -> Result<(ProjectKey, Project), CommandError> {
    let key = ProjectKey { org: caller.org.clone(), project: code.to_owned() };
    let project =
        Project::load(&stream(log, &key.stream()).await?)?.ok_or_else(|| project_not_found(&key))?;
    project.check_writable(&key, &caller.user, caller.role)?;
    Ok((key, project))
}

/// A workload.
pub(super) async fn workload(log: &Log, key: &WorkloadKey) -> Result<Workload, CommandError> {
    let events = stream(log, &key.stream()).await?;
    let workload = Workload::load(&events)?.ok_or_else(|| {
        Refusal::not_found(
            "workload_not_found",
            format!("there is no workload {:?} in {:?}", key.workload, key.project),
        )
        .hint("GET /api/v_workloads lists the workloads you may see")
    })?;
    Ok(workload)
}

/// A scenario's traffic shape.
pub(super) async fn scenario(log: &Log, key: &ScenarioKey) -> Result<ScenarioSpec, CommandError> {
    let events = stream(log, &key.stream()).await?;
    let scenario = Scenario::load(&events)?.ok_or_else(|| {
        Refusal::not_found(
            "scenario_not_found",
            format!("there is no scenario {:?} in {:?}", key.scenario, key.workload),
        )
        .hint("GET /api/v_scenarios lists the scenarios you may see")
    })?;
    Ok(scenario.spec)
}

/// A run.
pub(super) async fn run(log: &Log, key: &RunKey) -> Result<Run, CommandError> {
    let events = stream(log, &key.stream()).await?;
    let run = Run::load(&events)?.ok_or_else(|| {
        Refusal::not_found("run_not_found", format!("there is no run {} of {:?}", key.run, key.workload))
            .hint("GET /api/v_runs lists the runs you may see")
    })?;
    Ok(run)
}

/// A job.
pub(super) async fn job(log: &Log, key: &JobKey) -> Result<Job, CommandError> {
    let events = stream(log, &key.stream()).await?;
    let job = Job::load(&events)?.ok_or_else(|| {
        Refusal::not_found("job_not_found", format!("there is no job {:?} in run {}", key.scenario, key.run))
            .hint("GET /api/v_jobs lists the jobs you may see")
    })?;
    Ok(job)
}

/// A registered server; nothing where it never was or was removed.
pub(super) async fn server(log: &Log, key: &ServerKey) -> Result<Option<Server>, CommandError> {
    let events = stream(log, &key.stream()).await?;
    Ok(Server::load(&events)?.filter(|server| !server.removed))
}

/// A server that work can be given to, or that can be removed.
pub(super) async fn registered_server(log: &Log, key: &ServerKey) -> Result<Server, CommandError> {
    let server = server(log, key).await?.ok_or_else(|| {
        Refusal::not_found("server_not_found", format!("there is no server {}/{}", key.config, key.hostname))
            .hint("GET /api/v_servers lists the servers; create_server_config_instance adds one")
    })?;
    Ok(server)
}

async fn last_of(log: &Log, key: &StreamKey) -> Result<Option<Event>, CommandError> {
    let events = stream(log, key).await?;
    Ok(events.last().map(decode).transpose()?)
}

/// A model in the catalogue.
pub(super) async fn model(log: &Log, index: &WorkIndex, code: &str) -> Result<ModelRegistered, CommandError> {
    match last_of(log, &StreamKey::new("model", &[PLATFORM_ORG, code])).await? {
        Some(Event::ModelRegistered(model)) => Ok(model),
        _ => Err(unknown("model", code, index.read(|index| index.models())).into()),
    }
}

/// A framework version in the catalogue.
pub(super) async fn framework(
    log: &Log,
    index: &WorkIndex,
    code: &str,
    version: &str,
) -> Result<FrameworkRegistered, CommandError> {
    if let Some(Event::FrameworkRegistered(framework)) =
        last_of(log, &StreamKey::new("framework", &[PLATFORM_ORG, code, version])).await?
    {
        return Ok(framework);
    }
    let versions = index.read(|index| index.framework_versions(code));
    if versions.is_empty() {
        return Err(unknown("framework", code, index.read(|index| index.frameworks())).into());
    }
    let message = format!("framework {code} has no version {version:?} in the catalogue");
    Err(Refusal::invalid("unknown_framework_version", message)
        .hint(format!("it has {}", versions.join(", ")))
        .into())
}

/// A tool in the catalogue.
pub(super) async fn tool(log: &Log, index: &WorkIndex, code: &str) -> Result<ToolRegistered, CommandError> {
    match last_of(log, &StreamKey::new("tool", &[PLATFORM_ORG, code])).await? {
        Some(Event::ToolRegistered(tool)) => Ok(tool),
        _ => Err(unknown("tool", code, index.read(|index| index.tools())).into()),
    }
}

/// A server configuration in the catalogue.
pub(super) async fn server_config(
    log: &Log,
    index: &WorkIndex,
    code: &str,
) -> Result<ServerConfigRegistered, CommandError> {
    match last_of(log, &StreamKey::new("config", &[PLATFORM_ORG, code])).await? {
        Some(Event::ServerConfigRegistered(config)) => Ok(config),
        _ => Err(unknown("server configuration", code, index.read(|index| index.configs())).into()),
    }
}

fn unknown(what: &str, code: &str, known: Vec<String>) -> Refusal {
    let shown: String = code.chars().take(100).collect();
    let word = match what {
        "model" => "unknown_model",
        "framework" => "unknown_framework",
        "tool" => "unknown_tool",
        _ => "unknown_server_config",
    };
    let refusal = Refusal::invalid(word, format!("there is no {what} {shown:?} in the catalogue"));
    match nearest(code, known.iter().map(String::as_str)) {
        Some(near) => refusal.hint(format!("did you mean {near:?}?")),
        None => refusal.hint("choose one that the catalogue lists"),
    }
}

/// What the catalogue says about a workload.
pub(super) struct Catalogue {
    pub(super) model: ModelRegistered,
    pub(super) framework: FrameworkRegistered,
    pub(super) tool: ToolRegistered,
}

/// What the catalogue says about a workload.
pub(super) async fn catalogue(state: &AppState, spec: &WorkloadSpec) -> Result<Catalogue, CommandError> {
    let (log, index) = (&state.log, &state.work);
    let model = model(log, index, &spec.model_code).await?;
    let framework = framework(log, index, &spec.framework_code, &spec.framework_version).await?;
    let tool = tool(log, index, &spec.tool_code).await?;
    if tool.modality != model.modality {
        let message = format!(
            "{} measures {} models; {} is {}",
            spec.tool_code, tool.modality, spec.model_code, model.modality
        );
        return Err(Refusal::invalid("wrong_tool", message)
            .hint("leave p_tool_code out: the tool follows from the model")
            .into());
    }
    Ok(Catalogue { model, framework, tool })
}

impl Catalogue {
    /// What a scenario's commands are made of.
    pub(super) fn inputs<'a>(
        &'a self,
        workload: &'a WorkloadSpec,
        scenario: &'a ScenarioSpec,
        run_scenarios: &'a [ScenarioSpec],
    ) -> Inputs<'a> {
        Inputs { workload, scenario, run_scenarios, framework: &self.framework, tool: &self.tool }
    }

    /// A scenario's commands.
    pub(super) fn resolve(
        &self,
        workload: &WorkloadSpec,
        scenario: &ScenarioSpec,
        run_scenarios: &[ScenarioSpec],
    ) -> Result<ResolvedCommands, Refusal> {
        resolve(&self.inputs(workload, scenario, run_scenarios))
    }
}

/// The tool for models of a modality.
pub(super) fn default_tool(modality: &str) -> Result<&'static str, Refusal> {
    match modality {
        "llm" => Ok(TOOL_METRUMBENCH_LLM),
        other => Err(Refusal::invalid("no_tool", format!("no benchmark tool measures {other} models yet"))
            .hint("choose a text model")),
    }
}
