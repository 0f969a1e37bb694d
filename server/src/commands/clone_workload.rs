//! `clone_workload`: the same workload with its scenarios, under another code or in another project.

use events::access::Role;
use events::api::{CloneWorkload, CommandReply};
use events::keys::{ProjectKey, ScenarioKey, WorkloadKey};
use events::workload::{ScenarioDefined, WorkloadCreated};
use events::{Event, keys::check_code};
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, load, reply};
use crate::auth::Principal;
use crate::domain::project::{check_name, project_not_found};
use crate::domain::{Project, Refusal};
use crate::log::Expected;
use crate::state::AppState;

/// Clones a workload that the caller may see. Keys in the answer: `project_code`, `workload_code`, `scenario_codes`.
///
/// # Errors
/// `project_not_found`, `project_archived`, `workload_not_found`, `bad_code`, `bad_name`, `workload_exists`.
pub async fn clone_workload(
    state: &AppState,
    principal: &Principal,
    args: CloneWorkload,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let from = ProjectKey { org: caller.org.clone(), project: args.p_project_code.clone() };
    let source = Project::load(&load::stream(&state.log, &from.stream()).await?)?
        .filter(|p| principal.visibility().sees(&from.org, p.visibility.as_str(), &p.owner))
        .ok_or_else(|| project_not_found(&from))?;
    drop(source);
    let target_code = args.p_target_project_code.unwrap_or(args.p_project_code);
    let (target, facts) = load::writable_project(&state.log, &caller, &target_code).await?;
    facts.check_open()?;
    let source = WorkloadKey { org: from.org, project: from.project, workload: args.p_workload_code.clone() };
    let workload = load::workload(&state.log, &source).await?;
    check_code("workload code", &args.p_new_workload_code).map_err(Refusal::from)?;
    let name = match args.p_name {
        Some(name) => check_name(&name)?,
        None => workload.name.clone(),
    };
    let key = WorkloadKey {
        org: target.org,
        project: target.project.clone(),
        workload: args.p_new_workload_code.clone(),
    };
    let maker = Maker::of(principal, "clone_workload", &meta);
    let created = Event::WorkloadCreated(WorkloadCreated { name, spec: workload.spec });
    let mut writes = vec![maker.write(key.stream(), Expected::NoStream, &[created], 0)?];
    state.work.catch_up().await?;
    let codes = state.work.read(|index| index.scenarios_of(&source));
    for code in &codes {
        let of = |workload: &WorkloadKey| ScenarioKey {
            org: workload.org.clone(),
            project: workload.project.clone(),
            workload: workload.workload.clone(),
            scenario: code.clone(),
        };
        let spec = load::scenario(&state.log, &of(&source)).await?;
        let defined = Event::ScenarioDefined(ScenarioDefined { spec });
        writes.push(maker.write(of(&key).stream(), Expected::NoStream, &[defined], writes.len())?);
    }
    match append(&state.log, writes).await {
        Ok(position) => Ok(reply(
            position,
            [
                ("project_code", json!(target.project)),
                ("workload_code", json!(key.workload)),
                ("scenario_codes", json!(codes)),
            ],
        )),
        Err(NotAppended::Moved(_)) => {
            let message = format!("the project has a workload {:?} already", key.workload);
            Err(Refusal::conflict("workload_exists", message)
                .hint("choose another p_new_workload_code; codes are never used twice")
                .into())
        }
        Err(NotAppended::Error(error)) => Err(error),
    }
}
