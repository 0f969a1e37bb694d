//! `create_project`: a project with its workloads and their scenarios, all in one append.

use events::access::Role;
use events::api::{CommandReply, CreateProject, ExecuteOn, WorkloadInput};
use events::keys::{ProjectKey, RunKey, ScenarioKey, ServerKey, WorkloadKey, code_from_name};
use events::quota::Resource;
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, addresses, catalogue, nudge, quotas, reply, start_run};
use crate::auth::{Caller, Principal};
use crate::domain::workload::NewWorkload;
use crate::domain::{Project, Refusal, Workload};
use crate::log::{Expected, StreamWrite};
use crate::state::AppState;

/// The most workloads one request may bring.
const MAX_WORKLOADS: usize = 20;

/// Creates the project. Keys in the answer: `project_code`, `workload_codes`; where it is executed, `run`, `run_number`.
///
/// # Errors
/// `bad_code`, `bad_name`, `project_exists`, `duplicate_workload`, `one_workload_only`, `quota_reached`, whatever is wrong with a workload,
/// and whatever stands in the way of its run.
pub async fn create_project(
    state: &AppState,
    principal: &Principal,
    args: CreateProject,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let code = args.p_project_code.clone().unwrap_or_else(|| code_from_name(&args.p_name));
    let key = ProjectKey { org: caller.org.clone(), project: code };
    let events = Project::create(&key, &args.p_name, args.p_visibility, &caller.user)?;
    if args.p_workloads.len() > MAX_WORKLOADS {
        let message = format!("at most {MAX_WORKLOADS} workloads can be created at once");
        return Err(Refusal::invalid("too_many_workloads", message)
            .hint("add the others with create_workload")
            .into());
    }
    let maker = Maker::of(principal, "create_project", &meta);
    let mut writes = vec![maker.write(key.stream(), Expected::NoStream, &events, 0)?];
    let mut codes: Vec<String> = Vec::new();
    let mut new: Vec<NewWorkload> = Vec::new();
    for input in &args.p_workloads {
        let workload = new_workload(state, &caller.org, input).await?;
        if codes.contains(&workload.code) {
            let message = format!("the project would hold workload {:?} twice", workload.code);
            return Err(Refusal::conflict("duplicate_workload", message)
                .hint("give one of them another p_workload_code")
                .into());
        }
        codes.push(workload.code.clone());
        write_workload(&maker, &key, &workload, &mut writes)?;
        new.push(workload);
    }
    let mut more = vec![(Resource::Projects, 1)];
    let run = match &args.p_execute {
        Some(place) => {
            more.extend(start_run::needs(new.iter().map(|workload| workload.scenarios.len()).sum()));
            Some(execute(state, &caller, &maker, &key, place, &new, &mut writes).await?)
        }
        None => None,
    };
    let _allowed = quotas::ask(state, &caller.org, &more).await?;
    match append(&state.log, writes).await {
        Ok(position) => {
            let keys = [("project_code", json!(key.project)), ("workload_codes", json!(codes))];
            let mut done = reply(position, keys);
            if let Some((run, server)) = run {
                nudge::work_available(state, &server).await;
                done.keys.insert("run".to_owned(), json!(run.stream()));
                done.keys.insert("run_number".to_owned(), json!(run.run));
            }
            Ok(done)
        }
        Err(NotAppended::Moved(_)) => {
            Err(Refusal::conflict("project_exists", format!("there is a project {:?} already", key.project))
                .hint("choose another p_project_code; codes are never used twice")
                .into())
        }
        Err(NotAppended::Error(error)) => Err(error),
    }
}

/// Adds the run of the one workload to the writes: all is appended together, or nothing.
async fn execute(
    state: &AppState,
    caller: &Caller,
    maker: &Maker,
    project: &ProjectKey,
    place: &ExecuteOn,
    workloads: &[NewWorkload],
    writes: &mut Vec<StreamWrite>,
) -> Result<(RunKey, ServerKey), CommandError> {
    let [workload] = workloads else {
        let message =
            format!("the project has {} workloads; only one can be saved and executed", workloads.len());
        return Err(Refusal::invalid("one_workload_only", message)
            .hint("save the project as a draft, then start_run each workload")
            .into());
    };
    let server = ServerKey {
        org: caller.org.clone(),
        config: place.p_config_code.clone(),
        hostname: place.p_hostname.clone(),
    };
    let scenarios: Vec<_> =
        workload.scenarios.iter().map(|(code, spec, _)| (code.clone(), spec.clone())).collect();
    let jobs = start_run::ready_jobs(state, caller, &workload.spec, &scenarios, &server).await?;
    let run = RunKey {
        org: project.org.clone(),
        project: project.project.clone(),
        workload: workload.code.clone(),
        run: 1,
    };
    writes.extend(start_run::writes(maker, &run, &server, None, &jobs)?);
    Ok((run, server))
}

/// A workload whose model, framework, tool and arguments are known to the catalogue.
pub(super) async fn new_workload(
    state: &AppState,
    org: &str,
    input: &WorkloadInput,
) -> Result<NewWorkload, CommandError> {
    state.work.catch_up().await?;
    let model = catalogue::model(state, org, &input.p_model_code).await?;
    let workload = Workload::create(input, catalogue::default_tool(&model.modality)?)?;
    let catalogue = catalogue::catalogue(state, org, &workload.spec).await?;
    catalogue.check_set_open()?;
    let workload = workload.with_set_version(catalogue.set.as_ref().map(|set| set.version));
    let scenarios: Vec<_> = workload.scenarios.iter().map(|(_, spec, _)| spec.clone()).collect();
    // Afterwards: what is not even an address is told better by what resolves it.
    for scenario in &scenarios {
        catalogue.resolve(&workload.spec, scenario, &scenarios, None)?;
    }
    addresses::check(state, &workload.spec, catalogue.set.as_ref()).await?;
    Ok(workload)
}

/// The writes of a new workload and its scenarios.
pub(super) fn write_workload(
    maker: &Maker,
    project: &ProjectKey,
    workload: &NewWorkload,
    writes: &mut Vec<StreamWrite>,
) -> Result<(), CommandError> {
    let key = WorkloadKey {
        org: project.org.clone(),
        project: project.project.clone(),
        workload: workload.code.clone(),
    };
    writes.push(maker.write(key.stream(), Expected::NoStream, &workload.events, writes.len())?);
    for (code, _, events) in &workload.scenarios {
        let scenario = ScenarioKey {
            org: key.org.clone(),
            project: key.project.clone(),
            workload: key.workload.clone(),
            scenario: code.clone(),
        };
        writes.push(maker.write(scenario.stream(), Expected::NoStream, events, writes.len())?);
    }
    Ok(())
}
