//! `save_tool_args_set` and `remove_tool_args_set`: an organisation's named sets of a tool's arguments.

use events::Event;
use events::access::Role;
use events::api::{CommandReply, RemoveToolArgsSet, SaveToolArgsSet};
use events::keys::check_code;
use events::tool_args::stream;
use serde_json::json;

use super::append::Maker;
use super::{CommandError, RequestMeta, catalogue, kept, reply};
use crate::auth::Principal;
use crate::domain::tool_args_set::{ToolArgsSet, Wanted};
use crate::domain::{Refusal, saved_view};
use crate::state::AppState;

/// Saves a set, or puts another in its place. Keys in the answer: `tool_args_set`, `set_code`.
///
/// # Errors
/// `unknown_tool`, `bad_code`, and whatever is wrong with the name or a value.
pub async fn save_tool_args_set(
    state: &AppState,
    principal: &Principal,
    args: SaveToolArgsSet,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let code = saved_view::code(args.p_set_code.as_deref(), &args.p_name)?;
    state.work.catch_up().await?;
    let tool = catalogue::tool(state, &caller.org, &args.p_tool_code).await?;
    let wanted = Wanted { name: &args.p_name, values: &args.p_values, notes: args.p_notes.as_deref() };
    let maker = Maker::of(principal, "save_tool_args_set", &meta);
    change(state, &maker, [&caller.org, &args.p_tool_code, &code], |set| {
        set.save(wanted, &args.p_tool_code, &tool)
    })
    .await
}

/// Removes a set; workloads that were made from it keep their values. Keys in the answer: `tool_args_set`, `set_code`.
///
/// # Errors
/// `set_not_found`.
pub async fn remove_tool_args_set(
    state: &AppState,
    principal: &Principal,
    args: RemoveToolArgsSet,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let code = &args.p_set_code;
    for (what, code) in [("tool code", &args.p_tool_code), ("set code", code)] {
        check_code(what, code).map_err(Refusal::from)?;
    }
    let maker = Maker::of(principal, "remove_tool_args_set", &meta);
    change(state, &maker, [&caller.org, &args.p_tool_code, code], |set| set.remove(code)).await
}

/// Decides on the set as it stands and appends. Where there is nothing to change, the answer names the last event.
async fn change(
    state: &AppState,
    maker: &Maker,
    [org, tool, code]: [&str; 3],
    decide: impl Fn(&ToolArgsSet) -> Result<Vec<Event>, Refusal>,
) -> Result<CommandReply, CommandError> {
    let key = stream(org, tool, code);
    let position =
        kept::change(&state.log, maker, &key, code, |recorded| Ok(decide(&ToolArgsSet::load(recorded)?)?))
            .await?;
    Ok(reply(position, [("tool_args_set", json!(key)), ("set_code", json!(code))]))
}
