//! `create_workload`: a workload and its scenarios in an existing project, in one append.

use events::access::Role;
use events::api::{CommandReply, CreateWorkload};
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::create_project::{new_workload, write_workload};
use super::{CommandError, RequestMeta, load, reply};
use crate::auth::Principal;
use crate::domain::Refusal;
use crate::state::AppState;

/// Creates the workload. Keys in the answer: `workload_code`, `scenario_codes`.
///
/// # Errors
/// `project_not_found`, `project_archived`, `workload_exists`, and whatever is wrong with the workload.
pub async fn create_workload(
    state: &AppState,
    principal: &Principal,
    args: CreateWorkload,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let (key, project) = load::writable_project(&state.log, &caller, &args.p_project_code).await?;
    project.check_open()?;
    let workload = new_workload(state, &key.org, &args.p_workload).await?;
    let code = workload.code.clone();
    let scenarios: Vec<String> = workload.scenarios.iter().map(|(code, ..)| code.clone()).collect();
    let mut writes = Vec::new();
    write_workload(&Maker::of(principal, "create_workload", &meta), &key, &workload, &mut writes)?;
    match append(&state.log, writes).await {
        Ok(position) => {
            Ok(reply(position, [("workload_code", json!(code)), ("scenario_codes", json!(scenarios))]))
        }
        Err(NotAppended::Moved(_)) => {
            Err(Refusal::conflict("workload_exists", format!("the project has a workload {code:?} already"))
                .hint("choose another p_workload_code; codes are never used twice")
                .into())
        }
        Err(NotAppended::Error(error)) => Err(error),
    }
}
