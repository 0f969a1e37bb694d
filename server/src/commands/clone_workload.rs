//! `clone_workload`: the same workload again with its scenarios, as a draft, changed in what a comparison is about.

use std::collections::BTreeMap;

use events::access::Role;
use events::api::{CloneWorkload, CommandReply};
use events::keys::{ProjectKey, ScenarioKey, WorkloadKey};
use events::workload::{ScenarioSpec, WorkloadSpec};
use serde_json::{Value, json};

use super::append::{Maker, NotAppended, append};
use super::create_project::write_workload;
use super::{CommandError, RequestMeta, addresses, catalogue, load, reply};
use crate::auth::Principal;
use crate::domain::project::project_not_found;
use crate::domain::{Project, Refusal, Workload};
use crate::state::AppState;

/// Clones the workload. Keys in the answer: `project_code`, `workload_code`, `scenario_codes`.
///
/// # Errors
/// `project_not_found`, `project_archived`, `workload_not_found`, `workload_exists`, `set_archived`, and whatever is wrong with the
/// changed workload.
pub async fn clone_workload(
    state: &AppState,
    principal: &Principal,
    args: CloneWorkload,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let from = ProjectKey { org: caller.org.clone(), project: args.p_project_code.clone() };
    let facts: Option<Project> = load::state(&state.log, &from.stream()).await?;
    // Reading is enough of the project it is taken from.
    let seen = facts.filter(|project| {
        principal.visibility().sees(&from.org, project.visibility.as_str(), &project.owner)
    });
    if seen.is_none() {
        return Err(project_not_found(&from).into());
    }
    let to_code = args.p_target_project_code.as_deref().unwrap_or(&args.p_project_code);
    let (to, project) = load::writable_project(&state.log, &caller, to_code).await?;
    project.check_open()?;

    let key = WorkloadKey { org: from.org, project: from.project, workload: args.p_workload_code.clone() };
    let workload = load::workload(&state.log, &key).await?;
    state.work.catch_up().await?;
    let mut scenarios: Vec<ScenarioSpec> = Vec::new();
    for code in state.work.read(|index| index.scenarios_of(&key)) {
        let scenario = ScenarioKey {
            org: key.org.clone(),
            project: key.project.clone(),
            workload: key.workload.clone(),
            scenario: code,
        };
        scenarios.push(load::scenario(&state.log, &scenario).await?);
    }
    let mut spec = changed(workload.spec, &args);
    let catalogue = catalogue::catalogue(state, &caller.org, &spec).await?;
    catalogue.check_set_open()?;
    spec.engine_args_set_version = catalogue.set.as_ref().map(|set| set.version);
    for scenario in &scenarios {
        catalogue.resolve(&spec, scenario, &scenarios, None)?;
    }
    addresses::check(state, &spec, catalogue.set.as_ref()).await?;
    let name = args.p_name.as_deref().unwrap_or(&workload.name);
    let new = Workload::copy(&key, &args.p_new_workload_code, name, spec, &scenarios)?;
    let codes: Vec<String> = new.scenarios.iter().map(|(code, ..)| code.clone()).collect();
    let mut writes = Vec::new();
    write_workload(&Maker::of(principal, "clone_workload", &meta), &to, &new, &mut writes)?;
    match append(&state.log, writes).await {
        Ok(position) => Ok(reply(
            position,
            [
                ("project_code", json!(to.project)),
                ("workload_code", json!(new.code)),
                ("scenario_codes", json!(codes)),
            ],
        )),
        Err(NotAppended::Moved(_)) => {
            let message = format!("the project has a workload {:?} already", new.code);
            Err(Refusal::conflict("workload_exists", message)
                .hint("choose another p_new_workload_code; codes are never used twice")
                .into())
        }
        Err(NotAppended::Error(error)) => Err(error),
    }
}

/// What the clone measures.
fn changed(mut spec: WorkloadSpec, args: &CloneWorkload) -> WorkloadSpec {
    if let Some(version) = &args.p_framework_version {
        spec.framework_version.clone_from(version);
    }
    if args.p_quantization.is_some() {
        spec.quantization.clone_from(&args.p_quantization);
    }
    if args.p_prompt_source_code.is_some() {
        spec.prompt_source_code.clone_from(&args.p_prompt_source_code);
    }
    if let Some(code) = &args.p_engine_args_set_code {
        // In the version that it has now.
        spec.engine_args_set_code = Some(code.clone()).filter(|code| !code.is_empty());
        spec.engine_args_set_version = None;
    }
    if let Some(profile) = &args.p_build_profile {
        spec.build_profile = Some(profile.clone()).filter(|profile| !profile.is_empty());
    }
    merge(&mut spec.engine_args, &args.p_engine_args);
    merge(&mut spec.tool_args, &args.p_tool_args);
    spec
}

fn merge(into: &mut BTreeMap<String, Value>, changes: &BTreeMap<String, Value>) {
    for (key, value) in changes {
        match value {
            Value::Null => drop(into.remove(key)),
            value => drop(into.insert(key.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_set_replaced_or_removed() {
        let mut args: BTreeMap<String, Value> =
            [("a".to_owned(), json!(1)), ("b".to_owned(), json!(2))].into();
        let changes = [("a", json!(null)), ("b", json!(3)), ("c", json!(4))];
        merge(&mut args, &changes.map(|(key, value)| (key.to_owned(), value)).into());
        assert_eq!(args, [("b".to_owned(), json!(3)), ("c".to_owned(), json!(4))].into());
    }
}
