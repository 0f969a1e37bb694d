//! `start_run`: readiness, then every job's commands, then the run with all its jobs in one append.

use events::Event;
use events::access::Role;
use events::api::{CommandReply, Readiness, StartRun};
use events::job::{JobCreated, JobQueued};
use events::keys::{RunKey, ScenarioKey, ServerKey, WorkloadKey};
use events::quota::Resource;
use events::run::RunCreated;
use events::workload::{ScenarioSpec, WorkloadSpec};
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, approvals, catalogue, check_readiness, load, nudge, quotas, reply};
use crate::auth::{Caller, Principal};
use crate::domain::Refusal;
use crate::log::{Expected, StreamWrite};
use crate::resolve::container_image;
use crate::state::AppState;

/// How often the next run number is tried when others start runs of the same workload at the same moment.
const TRIES: u32 = 100;

/// Starts a run. Keys in the answer: `run` (stream key), `run_number`, `job_keys`.
///
/// # Errors
/// `project_not_found`, `workload_not_found`, `workload_archived`, `unknown_scenario`, `server_not_found`, `not_ready`,
/// `dangerous_flags`, `quota_reached`, and whatever cannot be resolved.
pub async fn start_run(
    state: &AppState,
    principal: &Principal,
    args: StartRun,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    start(state, principal, args, None, &Maker::of(principal, "start_run", &meta)).await
}

/// Starts a run, maybe as the repetition of an earlier one.
pub(super) async fn start(
    state: &AppState,
    principal: &Principal,
    args: StartRun,
    rerun_of: Option<u32>,
    maker: &Maker,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    if maker.recognises_resends()
        && let Some(first) = state.log.event_by_id(maker.id("run", 0)).await?
    {
        return resent(state, &RunKey::from_stream(&first.stream)?, first.position).await;
    }
    let (project, facts) = load::writable_project(&state.log, &caller, &args.p_project_code).await?;
    facts.check_open()?;
    let workload_key =
        WorkloadKey { org: project.org, project: project.project, workload: args.p_workload_code.clone() };
    let workload = load::workload(&state.log, &workload_key).await?;
    workload.check_open()?;
    let scenarios = scenarios_of(state, &workload_key, args.p_scenario_codes.as_deref()).await?;
    let server = ServerKey {
        org: caller.org.clone(),
        config: args.p_config_code.clone(),
        hostname: args.p_hostname.clone(),
    };
    let jobs = ready_jobs(state, &caller, &workload.spec, &scenarios, &server).await?;
    let _allowed = quotas::ask(state, &caller.org, &needs(jobs.len())).await?;

    let mut number = state.work.read(|index| index.last_run_of(&workload_key)) + 1;
    for _ in 0..TRIES {
        let run = RunKey {
            org: workload_key.org.clone(),
            project: workload_key.project.clone(),
            workload: workload_key.workload.clone(),
            run: number,
        };
        match append(&state.log, writes(maker, &run, &server, rerun_of, &jobs)?).await {
            Ok(position) => {
                nudge::work_available(state, &server).await;
                let keys = jobs.iter().map(|(code, _)| run.job(code).stream());
                return Ok(started(&run, keys.map(|key| key.to_string()).collect(), position));
            }
            // Somebody else's run took the number.
            Err(NotAppended::Moved(_)) => number += 1,
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&workload_key))
}

/// What a run of so many jobs needs of its organisation's quotas: the jobs, and room for what they will leave.
pub(super) fn needs(jobs: usize) -> [(Resource, u64); 2] {
    [(Resource::OpenJobs, jobs as u64), (Resource::StoredBytes, 1)]
}

/// The jobs of a run that nothing stands in the way of, each with its commands.
///
/// # Errors
/// `server_not_found`, `not_ready`, `dangerous_flags`, and whatever cannot be resolved.
pub(super) async fn ready_jobs(
    state: &AppState,
    caller: &Caller,
    spec: &WorkloadSpec,
    scenarios: &[(String, ScenarioSpec)],
    server: &ServerKey,
) -> Result<Vec<(String, JobCreated)>, CommandError> {
    let specs: Vec<ScenarioSpec> = scenarios.iter().map(|(_, spec)| spec.clone()).collect();
    load::registered_server(&state.log, server).await?;
    let catalogue = catalogue::catalogue(state, &caller.org, spec).await?;
    let place = check_readiness::place_of(state, server).await?;
    let readiness = check_readiness::judge(state, caller, &catalogue, spec, &specs, &place).await?;
    if !readiness.ready {
        return Err(not_ready(&readiness).into());
    }
    let accelerator = place.accelerator.as_ref();
    let image = container_image(&catalogue.framework, spec.build_profile.as_deref(), accelerator);
    let mut jobs = Vec::new();
    for (ordinal, (code, scenario)) in (0u32..).zip(scenarios) {
        let resolved = catalogue.resolve(spec, scenario, &specs, place.gpus())?;
        // Of every scenario: readiness looked at the first.
        approvals::require(state, &caller.org, &spec.model_code, &resolved.dangerous).await?;
        let created = JobCreated {
            server: server.clone(),
            ordinal,
            workload: spec.clone(),
            scenario: scenario.clone(),
            commands: resolved.commands,
            container_image: image.clone(),
        };
        jobs.push((code.clone(), created));
    }
    Ok(jobs)
}

/// The writes of a run with its jobs, the first of which is queued.
pub(super) fn writes(
    maker: &Maker,
    run: &RunKey,
    server: &ServerKey,
    rerun_of: Option<u32>,
    jobs: &[(String, JobCreated)],
) -> Result<Vec<StreamWrite>, CommandError> {
    let codes = jobs.iter().map(|(code, _)| code.clone()).collect();
    let created = Event::RunCreated(RunCreated { server: server.clone(), scenario_codes: codes, rerun_of });
    let mut writes = vec![maker.write(run.stream(), Expected::NoStream, &[created], 0)?];
    for (index, (code, created)) in jobs.iter().enumerate() {
        let mut events = vec![Event::JobCreated(Box::new(created.clone()))];
        if index == 0 {
            events.push(Event::JobQueued(JobQueued { requeued: false }));
        }
        // Two numbers a job, so that the ids of a resend are the same whatever is queued.
        writes.push(maker.write(run.job(code).stream(), Expected::NoStream, &events, 2 * index)?);
    }
    Ok(writes)
}

fn started(run: &RunKey, job_keys: Vec<String>, position: i64) -> CommandReply {
    reply(
        position,
        [("run", json!(run.stream())), ("run_number", json!(run.run)), ("job_keys", json!(job_keys))],
    )
}

/// The answer to a request that was carried out before.
async fn resent(state: &AppState, key: &RunKey, position: i64) -> Result<CommandReply, CommandError> {
    let run = load::run(&state.log, key).await?;
    let jobs = run.scenario_codes.iter().map(|code| key.job(code).stream().to_string()).collect();
    // The run and its jobs stand next to one another.
    let last = position + i64::try_from(run.scenario_codes.len()).unwrap_or(0) + 1;
    Ok(started(key, jobs, last))
}

/// The scenarios to execute, in the order in which they were defined.
async fn scenarios_of(
    state: &AppState,
    workload: &WorkloadKey,
    wanted: Option<&[String]>,
) -> Result<Vec<(String, ScenarioSpec)>, CommandError> {
    state.work.catch_up().await?;
    let known = state.work.read(|index| index.scenarios_of(workload));
    if let Some(unknown) = wanted.unwrap_or_default().iter().find(|code| !known.contains(code)) {
        let shown: String = unknown.chars().take(100).collect();
        return Err(Refusal::invalid("unknown_scenario", format!("the workload has no scenario {shown:?}"))
            .hint(format!("it has {}", known.join(", ")))
            .into());
    }
    let mut scenarios = Vec::new();
    for code in known {
        if wanted.is_some_and(|wanted| !wanted.contains(&code)) {
            continue;
        }
        let key = ScenarioKey {
            org: workload.org.clone(),
            project: workload.project.clone(),
            workload: workload.workload.clone(),
            scenario: code.clone(),
        };
        scenarios.push((code, load::scenario(&state.log, &key).await?));
    }
    if scenarios.is_empty() {
        return Err(Refusal::invalid("no_scenarios", "there is no scenario to execute")
            .hint("leave p_scenario_codes out to execute all")
            .into());
    }
    Ok(scenarios)
}

fn not_ready(readiness: &Readiness) -> Refusal {
    let failing: Vec<_> = readiness.checks.iter().filter(|check| check.result == "fails").collect();
    let messages: Vec<&str> = failing.iter().map(|check| check.message.as_str()).collect();
    let cures: Vec<&str> = failing.iter().flat_map(|check| check.cures.iter().map(String::as_str)).collect();
    let rules: Vec<&str> = failing.iter().map(|check| check.rule.as_str()).collect();
    Refusal::unready("not_ready", messages.join(" "))
        .because(format!("failing: {}", rules.join(", ")))
        .hint(cures.join(" "))
}
