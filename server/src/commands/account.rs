//! `change_password`, `change_name`, `sign_out_everywhere`, `revoke_session`: what people change about their own
//! account. The log says that it happened; names and passwords are in the vault.

use std::net::IpAddr;

use events::access::{PasswordChanged, ProfileChanged, Role};
use events::api::{ChangeName, ChangePassword, CommandReply, RevokeSession};
use events::timestamp::Timestamp;
use events::{Event, StreamKey};
use serde_json::json;
use uuid::Uuid;

use super::append::{Maker, append};
use super::{CommandError, RequestMeta, reply};
use crate::auth::sessions::{self, Ending, access_stream};
use crate::auth::{AuthError, Caller, Denied, Principal, accounts, password};
use crate::domain::Refusal;
use crate::log::Expected;
use crate::state::AppState;

/// A person at their own account, by a session: a token changes no password and ends no session.
fn by_session(principal: &Principal) -> Result<(Caller, Uuid), CommandError> {
    let caller = principal.require(Role::Viewer)?;
    if !matches!(principal, Principal::User { .. }) {
        return Err(Denied::OnlySessions.into());
    }
    let id = caller.user.parse().map_err(|_| AuthError::NotFound("account"))?;
    Ok((caller, id))
}

async fn note(
    state: &AppState,
    principal: &Principal,
    command: &str,
    stream: StreamKey,
    event: Event,
    meta: &RequestMeta,
) -> Result<i64, CommandError> {
    let write = Maker::of(principal, command, meta).write(stream, Expected::Any, &[event], 0)?;
    Ok(append(&state.log, vec![write]).await?)
}

/// Changes the caller's password. Their other sessions end.
///
/// # Errors
/// `wrong_current_password`, `throttled`, `bad_password`, `session_required`.
pub async fn change_password(
    state: &AppState,
    principal: &Principal,
    args: ChangePassword,
    cookie: Option<String>,
    address: IpAddr,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let (caller, id) = by_session(principal)?;
    let vault = state.keys.vault();
    let [email, name] = accounts::known(&state.pool, vault, id).await?;
    password::check(&args.p_new_password, &[&email, &name, &caller.org])?;
    let correlation = Some(meta.correlation_id);
    // Counted like a sign-in: whoever finds a browser unattended must not guess on.
    sessions::check_password(state, &email, args.p_current_password, address, correlation, meta.now)
        .await
        .map_err(|error| match error {
            AuthError::WrongCredentials => {
                Refusal::forbidden("wrong_current_password", "the current password is wrong")
                    .hint(
                        "type it again; an operator can set another one with `benchtrail user set-password`",
                    )
                    .into()
            }
            other => CommandError::from(other),
        })?;
    let stream = access_stream(&caller.org, &caller.user);
    let event = Event::PasswordChanged(PasswordChanged { by: "owner".to_owned() });
    let mut position = note(state, principal, "change_password", stream, event, &meta).await?;
    set_password(state, id, args.p_new_password).await?;
    let (ended, last) =
        sessions::end(state, principal, Ending::Others(cookie), correlation, meta.now).await?;
    if !ended.is_empty() {
        position = position.max(last);
    }
    Ok(reply(position, [("sessions_ended", json!(ended.len()))]))
}

/// Gives an account another password, on an operator's word. All its sessions end.
///
/// # Errors
/// `bad_password`.
pub async fn reset_password(
    state: &AppState,
    org: &str,
    user: Uuid,
    password: String,
    now: Timestamp,
) -> Result<(), CommandError> {
    let [email, name] = accounts::known(&state.pool, state.keys.vault(), user).await?;
    password::check(&password, &[&email, &name, org])?;
    let operator = Principal::operator(org);
    let meta = RequestMeta { correlation_id: Uuid::now_v7(), idempotency_key: None, now };
    let event = Event::PasswordChanged(PasswordChanged { by: "operator".to_owned() });
    note(state, &operator, "set_password", access_stream(org, user), event, &meta).await?;
    set_password(state, user, password).await?;
    sqlx::query("delete from vault.sessions where user_id = $1").bind(user).execute(&state.pool).await?;
    Ok(())
}

async fn set_password(state: &AppState, user: Uuid, password: String) -> Result<(), CommandError> {
    let hash = password::hash(password).await;
    sqlx::query("update vault.users set password_hash = $2 where id = $1")
        .bind(user)
        .bind(hash)
        .execute(&state.pool)
        .await?;
    Ok(())
}

/// Changes the caller's name.
///
/// # Errors
/// `bad_name`, `session_required`.
pub async fn change_name(
    state: &AppState,
    principal: &Principal,
    args: ChangeName,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let (caller, id) = by_session(principal)?;
    accounts::set_name(&state.pool, state.keys.vault(), id, &args.p_name).await?;
    let event = Event::ProfileChanged(ProfileChanged { fields: vec!["name".to_owned()] });
    let stream = access_stream(&caller.org, &caller.user);
    let position = note(state, principal, "change_name", stream, event, &meta).await?;
    Ok(reply(position, []))
}

/// Ends every session of the caller, this one too. Keys in the answer: `sessions_ended`.
///
/// # Errors
/// `session_required`.
pub async fn sign_out_everywhere(
    state: &AppState,
    principal: &Principal,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    by_session(principal)?;
    let correlation = Some(meta.correlation_id);
    let (ended, position) = sessions::end(state, principal, Ending::All, correlation, meta.now).await?;
    Ok(reply(position, [("sessions_ended", json!(ended.len()))]))
}

/// Ends one of the caller's sessions. Keys in the answer: `session_id`.
///
/// # Errors
/// `session_not_found`, `session_required`.
pub async fn revoke_session(
    state: &AppState,
    principal: &Principal,
    args: RevokeSession,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    by_session(principal)?;
    let not_found = || {
        Refusal::not_found("session_not_found", "you have no such session")
            .hint("GET /api/v_sessions lists them")
    };
    let id: Uuid = args.p_session_id.parse().map_err(|_| not_found())?;
    let correlation = Some(meta.correlation_id);
    let (ended, position) = sessions::end(state, principal, Ending::Id(id), correlation, meta.now).await?;
    if ended.is_empty() {
        return Err(not_found().into());
    }
    Ok(reply(position, [("session_id", json!(id))]))
}
