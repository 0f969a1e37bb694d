//! `save_view` and `remove_view`: addresses of the page under a name, for the caller or the whole organisation.

use events::Event;
use events::access::Role;
use events::api::{CommandReply, RemoveView, SaveView};
use events::saved_view::{SHARED, stream};
use serde_json::json;

use super::append::Maker;
use super::{CommandError, RequestMeta, kept, reply};
use crate::auth::{Caller, Principal};
use crate::domain::Refusal;
use crate::domain::saved_view::{self, SavedView};
use crate::state::AppState;

/// Saves a view. Keys in the answer: `saved_view`, `view_code`.
///
/// # Errors
/// `bad_name`, `bad_code`, `bad_address`, `view_of_another`; `role_too_low` for viewers who share.
pub async fn save_view(
    state: &AppState,
    principal: &Principal,
    args: SaveView,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let code = saved_view::code(args.p_view_code.as_deref(), &args.p_name)?;
    change(state, principal, "save_view", &code, args.p_shared, meta, |view, caller| {
        view.save(&args.p_name, &args.p_page, &args.p_query, &caller.user, caller.role)
    })
    .await
}

/// Removes a saved view. Keys in the answer: `saved_view`, `view_code`.
///
/// # Errors
/// `view_not_found`, `view_of_another`; `role_too_low` for viewers where it is shared.
pub async fn remove_view(
    state: &AppState,
    principal: &Principal,
    args: RemoveView,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let code = saved_view::code(Some(&args.p_view_code), "")?;
    change(state, principal, "remove_view", &code, args.p_shared, meta, |view, caller| {
        view.remove(&code, &caller.user, caller.role)
    })
    .await
}

/// Decides on the view as it stands and appends. Where there is nothing to change, the answer names the last event.
async fn change(
    state: &AppState,
    principal: &Principal,
    command: &str,
    code: &str,
    shared: bool,
    meta: RequestMeta,
    decide: impl Fn(&SavedView, &Caller) -> Result<Vec<Event>, Refusal>,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(if shared { Role::Member } else { Role::Viewer })?;
    let key = stream(&caller.org, if shared { SHARED } else { &caller.user }, code);
    let maker = Maker::of(principal, command, &meta);
    let position = kept::change(&state.log, &maker, &key, code, |recorded| {
        Ok(decide(&SavedView::load(recorded)?, &caller)?)
    })
    .await?;
    Ok(reply(position, [("saved_view", json!(key)), ("view_code", json!(code))]))
}
