//! `rename_project`, `set_project_visibility`, `archive_project`: what changes about a project. Its code never does.

use events::Event;
use events::access::Role;
use events::api::{ArchiveProject, CommandReply, RenameProject, SetProjectVisibility};
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, load, reply};
use crate::auth::Principal;
use crate::domain::{Project, Refusal};
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;

/// Gives a project another display name. Keys in the answer: `project`.
///
/// # Errors
/// `project_not_found`, `project_archived`, `bad_name`.
pub async fn rename_project(
    state: &AppState,
    principal: &Principal,
    args: RenameProject,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let decide = |project: &Project| project.rename(&args.p_name);
    change(state, principal, "rename_project", &args.p_project_code, meta, decide).await
}

/// Changes who may see a project and everything in it. Keys in the answer: `project`.
///
/// # Errors
/// `project_not_found`, `project_archived`.
pub async fn set_project_visibility(
    state: &AppState,
    principal: &Principal,
    args: SetProjectVisibility,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let decide = |project: &Project| project.change_visibility(args.p_visibility);
    change(state, principal, "set_project_visibility", &args.p_project_code, meta, decide).await
}

/// Archives a project: it takes no more work, and what was measured stays. Keys in the answer: `project`.
///
/// # Errors
/// `project_not_found`.
pub async fn archive_project(
    state: &AppState,
    principal: &Principal,
    args: ArchiveProject,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let decide = |project: &Project| Ok(project.archive());
    change(state, principal, "archive_project", &args.p_project_code, meta, decide).await
}

/// Decides on the project as it stands and appends. Where there is nothing to change, the answer names the last event.
async fn change(
    state: &AppState,
    principal: &Principal,
    command: &str,
    code: &str,
    meta: RequestMeta,
    decide: impl Fn(&Project) -> Result<Vec<Event>, Refusal>,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let maker = Maker::of(principal, command, &meta);
    for _ in 0..TRIES {
        let (key, project) = load::writable_project(&state.log, &caller, code).await?;
        let stream = key.stream();
        let events = decide(&project)?;
        if events.is_empty() {
            let recorded = load::stream(&state.log, &stream).await?;
            let position = recorded.last().map_or(0, |last| last.position);
            return Ok(reply(position, [("project", json!(stream))]));
        }
        let write = maker.write(stream.clone(), Expected::Exact(project.version), &events, 0)?;
        match append(&state.log, vec![write]).await {
            Ok(position) => return Ok(reply(position, [("project", json!(stream))])),
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&code))
}
