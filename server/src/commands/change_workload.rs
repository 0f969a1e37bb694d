//! `rename_workload`, `archive_workload`: what changes about a workload. Its code and what it measures never do.

use events::Event;
use events::access::Role;
use events::api::{ArchiveWorkload, CommandReply, RenameWorkload};
use events::keys::WorkloadKey;
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, load, reply};
use crate::auth::Principal;
use crate::domain::{Refusal, Workload};
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;

/// Gives a workload another display name. Keys in the answer: `workload`.
///
/// # Errors
/// `project_not_found`, `project_archived`, `workload_not_found`, `workload_archived`, `bad_name`.
pub async fn rename_workload(
    state: &AppState,
    principal: &Principal,
    args: RenameWorkload,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let place = [&*args.p_project_code, &*args.p_workload_code];
    change(state, principal, "rename_workload", place, &meta, |workload| workload.rename(&args.p_name)).await
}

/// Archives a workload: no more runs of it, and what was measured stays. Keys in the answer: `workload`.
///
/// # Errors
/// `project_not_found`, `project_archived`, `workload_not_found`.
pub async fn archive_workload(
    state: &AppState,
    principal: &Principal,
    args: ArchiveWorkload,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let place = [&*args.p_project_code, &*args.p_workload_code];
    change(state, principal, "archive_workload", place, &meta, |workload| Ok(workload.archive())).await
}

/// Decides on the workload as it stands and appends. Where there is nothing to change, the answer names the last event.
async fn change(
    state: &AppState,
    principal: &Principal,
    command: &str,
    [project, workload]: [&str; 2],
    meta: &RequestMeta,
    decide: impl Fn(&Workload) -> Result<Vec<Event>, Refusal>,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let maker = Maker::of(principal, command, meta);
    for _ in 0..TRIES {
        let (key, facts) = load::writable_project(&state.log, &caller, project).await?;
        facts.check_open()?;
        let key = WorkloadKey { org: key.org, project: key.project, workload: workload.to_owned() };
        let found = load::workload(&state.log, &key).await?;
        let events = decide(&found)?;
        if events.is_empty() {
            let recorded = load::stream(&state.log, &key.stream()).await?;
            let position = recorded.last().map_or(0, |last| last.position);
            return Ok(reply(position, [("workload", json!(key.stream()))]));
        }
        let write = maker.write(key.stream(), Expected::Exact(found.version), &events, 0)?;
        match append(&state.log, vec![write]).await {
            Ok(position) => return Ok(reply(position, [("workload", json!(key.stream()))])),
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&workload))
}
