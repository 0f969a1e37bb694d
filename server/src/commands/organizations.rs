//! `create_organization`, `rename_organization`, `set_member_role`, `remove_member`: who works where, as what.

use events::access::Role;
use events::api::{CommandReply, CreateOrganization, RemoveMember, RenameOrganization, SetMemberRole};
use events::{Event, StreamKey};
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, load, reply};
use crate::auth::{AuthError, Caller, Principal, accounts, sessions};
use crate::domain::{Org, Refusal};
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;

/// Makes an organisation; the caller becomes its first administrator. Keys in the answer: `org`.
///
/// # Errors
/// `bad_code`, `bad_name`, `organization_exists`.
pub async fn create_organization(
    state: &AppState,
    principal: &Principal,
    args: CreateOrganization,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Admin)?;
    let events = Org::create(&args.p_org_code, &args.p_name, &caller.user)?;
    let stream = stream_of(&args.p_org_code);
    let maker = Maker::of(principal, "create_organization", &meta);
    let write = maker.write(stream.clone(), Expected::NoStream, &events, 0)?;
    let position = append(&state.log, vec![write]).await.map_err(|not| match not {
        NotAppended::Moved(_) => {
            let message = format!("there is an organisation {:?} already", args.p_org_code);
            Refusal::conflict("organization_exists", message).hint("choose another code").into()
        }
        NotAppended::Error(error) => error,
    })?;
    accounts::fold_memberships(&state.log, &state.pool, &args.p_org_code).await?;
    Ok(reply(position, [("org", json!(stream))]))
}

/// Gives the organisation worked in another display name. Keys in the answer: `org`.
///
/// # Errors
/// `bad_name`.
pub async fn rename_organization(
    state: &AppState,
    principal: &Principal,
    args: RenameOrganization,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Admin)?;
    let position =
        change(state, principal, &caller, "rename_organization", &meta, |org| org.rename(&args.p_name))
            .await?;
    Ok(reply(position, [("org", json!(stream_of(&caller.org)))]))
}

/// Gives a member another role, from the next request on. Keys in the answer: `user`.
///
/// # Errors
/// `member_not_found`, `last_admin`.
pub async fn set_member_role(
    state: &AppState,
    principal: &Principal,
    args: SetMemberRole,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Admin)?;
    let decide = |org: &Org| org.change_member(&args.p_user_id, Some(args.p_role));
    let position = change(state, principal, &caller, "set_member_role", &meta, decide).await?;
    accounts::fold_memberships(&state.log, &state.pool, &caller.org).await?;
    Ok(reply(position, [("user", json!(args.p_user_id))]))
}

/// Ends a membership: an administrator's doing, or a member's own wish. Sessions and tokens that work in the
/// organisation end with it. Keys in the answer: `user`.
///
/// # Errors
/// `member_not_found`, `last_admin`.
pub async fn remove_member(
    state: &AppState,
    principal: &Principal,
    args: RemoveMember,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let mut caller = principal.require(Role::Viewer)?;
    if caller.user != args.p_user_id || principal.is_read_only_token() {
        caller = principal.require(Role::Admin)?;
    }
    let decide = |org: &Org| org.change_member(&args.p_user_id, None);
    let position = change(state, principal, &caller, "remove_member", &meta, decide).await?;
    accounts::fold_memberships(&state.log, &state.pool, &caller.org).await?;
    sessions::end_in(&state.pool, &caller.org, &args.p_user_id, meta.now).await?;
    Ok(reply(position, [("user", json!(args.p_user_id))]))
}

/// The stream of an organisation.
pub(super) fn stream_of(org: &str) -> StreamKey {
    StreamKey::new("org", &[org])
}

/// Decides on the organisation as it stands and appends. Where there is nothing to change, the answer names the last
/// event.
pub(super) async fn change(
    state: &AppState,
    principal: &Principal,
    caller: &Caller,
    command: &str,
    meta: &RequestMeta,
    decide: impl Fn(&Org) -> Result<Vec<Event>, Refusal>,
) -> Result<i64, CommandError> {
    let maker = Maker::of(principal, command, meta);
    change_with(state, &maker, &caller.org, decide).await
}

pub(super) async fn change_with(
    state: &AppState,
    maker: &Maker,
    org: &str,
    decide: impl Fn(&Org) -> Result<Vec<Event>, Refusal>,
) -> Result<i64, CommandError> {
    let stream = stream_of(org);
    for _ in 0..TRIES {
        let recorded = load::stream(&state.log, &stream).await?;
        let org = Org::load(&recorded)?.ok_or(AuthError::NotFound("organisation"))?;
        let events = decide(&org)?;
        if events.is_empty() {
            return Ok(recorded.last().map_or(0, |last| last.position));
        }
        let write = maker.write(stream.clone(), Expected::Exact(org.version), &events, 0)?;
        match append(&state.log, vec![write]).await {
            Ok(position) => return Ok(position),
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&stream))
}
