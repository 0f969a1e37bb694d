//! Loading what decisions are made on, from the streams themselves.

use events::StreamKey;
use events::envelope::Recorded;
use events::keys::{JobKey, ProjectKey, RunKey, ScenarioKey, ServerKey, WorkloadKey};
use events::workload::ScenarioSpec;

use super::CommandError;
use crate::auth::Caller;
use crate::domain::project::project_not_found;
use crate::domain::{Aggregate, Job, Project, Refusal, Run, Scenario, Server, Workload};
use crate::log::Log;

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

/// What a stream's events make; nothing where it has none.
pub(crate) async fn state<S: Aggregate>(log: &Log, key: &StreamKey) -> Result<Option<S>, CommandError> {
    log.fold(key, S::step).await
}

/// A project of the caller's organisation that the caller may change.
pub(super) async fn writable_project(
    log: &Log,
    caller: &Caller,
    code: &str,
) -> Result<(ProjectKey, Project), CommandError> {
    let key = ProjectKey { org: caller.org.clone(), project: code.to_owned() };
    let project: Project = state(log, &key.stream()).await?.ok_or_else(|| project_not_found(&key))?;
    project.check_writable(&key, &caller.user, caller.role)?;
    Ok((key, project))
}

/// A workload.
pub(super) async fn workload(log: &Log, key: &WorkloadKey) -> Result<Workload, CommandError> {
    let workload: Workload = state(log, &key.stream()).await?.ok_or_else(|| {
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
    let scenario: Scenario = state(log, &key.stream()).await?.ok_or_else(|| {
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
    let run: Run = state(log, &key.stream()).await?.ok_or_else(|| {
        Refusal::not_found("run_not_found", format!("there is no run {} of {:?}", key.run, key.workload))
            .hint("GET /api/v_runs lists the runs you may see")
    })?;
    Ok(run)
}

/// A job.
pub(super) async fn job(log: &Log, key: &JobKey) -> Result<Job, CommandError> {
    let job: Job = state(log, &key.stream()).await?.ok_or_else(|| {
        Refusal::not_found("job_not_found", format!("there is no job {:?} in run {}", key.scenario, key.run))
            .hint("GET /api/v_jobs lists the jobs you may see")
    })?;
    Ok(job)
}

/// A registered server; nothing where it never was or was removed.
pub(super) async fn server(log: &Log, key: &ServerKey) -> Result<Option<Server>, CommandError> {
    let server: Option<Server> = state(log, &key.stream()).await?;
    Ok(server.filter(|server| !server.removed))
}

/// A server that work can be given to, or that can be removed.
pub(super) async fn registered_server(log: &Log, key: &ServerKey) -> Result<Server, CommandError> {
    let server = server(log, key).await?.ok_or_else(|| {
        Refusal::not_found("server_not_found", format!("there is no server {}/{}", key.config, key.hostname))
            .hint("GET /api/v_servers lists the servers; create_server_config_instance adds one")
    })?;
    Ok(server)
}
