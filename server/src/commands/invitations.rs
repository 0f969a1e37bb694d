//! `create_invitation`, `revoke_invitation`, `describe_invitation`, `accept_invitation`: how people come to an
//! organisation. What an invitation gives and whether it was used is decided on the organisation's stream; the vault
//! knows the link.

use std::net::IpAddr;

use events::access::Role;
use events::api::{
    AcceptInvitation, CommandReply, CreateInvitation, DescribeInvitation, InvitationShown, RevokeInvitation,
};
use events::envelope::{Actor, ActorKind};
use events::timestamp::Timestamp;
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::append::Maker;
use super::organizations::{change, change_with, stream_of};
use super::{CommandError, RequestMeta, load, reply};
use crate::auth::accounts::{self, Person};
use crate::auth::sessions::{self, NewSession};
use crate::auth::{AuthError, Principal};
use crate::domain::org::invitation_not_valid;
use crate::domain::{Org, Refusal};
use crate::secrets::{Secret, SecretKind, sha256};
use crate::state::AppState;

/// Invites somebody. Keys in the answer: `invitation_id`, `link` (shown once), `expires_at`.
///
/// # Errors
/// `bad_expiry`, `bad_email`, `too_many_invitations`.
pub async fn create_invitation(
    state: &AppState,
    principal: &Principal,
    args: CreateInvitation,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Admin)?;
    let lookup = match &args.p_email {
        Some(email) => {
            accounts::check_email(email.trim())?;
            Some(state.keys.vault().lookups(email).swap_remove(0))
        }
        None => None,
    };
    let id = Uuid::now_v7();
    let secret = Secret::new(SecretKind::Invitation);
    // The link first: one that no event stands behind opens nothing.
    sqlx::query(
        "insert into vault.invitations (id, org, sha256, email_lookup, created_at) values ($1, $2, $3, $4, $5)",
    )
    .bind(id)
    .bind(&caller.org)
    .bind(secret.sha256().as_slice())
    .bind(lookup)
    .bind(OffsetDateTime::from(meta.now))
    .execute(&state.pool)
    .await?;
    let decide = |org: &Org| org.invite(&id.to_string(), args.p_role, args.p_expires_in_days, meta.now);
    let position = change(state, principal, &caller, "create_invitation", &meta, decide).await?;
    let expires_at = meta.now.plus_micros(i64::from(args.p_expires_in_days) * 86_400_000_000);
    // Behind the '#', the secret reaches no server's log and no other site's.
    let url = state.config.public_url.as_str().trim_end_matches('/');
    let link = format!("{url}/invitation#{}", secret.reveal());
    Ok(reply(
        position,
        [("invitation_id", json!(id)), ("link", json!(link)), ("expires_at", json!(expires_at))],
    ))
}

/// Withdraws an invitation. Keys in the answer: `invitation_id`.
///
/// # Errors
/// `invitation_not_found`.
pub async fn revoke_invitation(
    state: &AppState,
    principal: &Principal,
    args: RevokeInvitation,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Admin)?;
    let decide = |org: &Org| org.revoke_invitation(&args.p_invitation_id);
    let position = change(state, principal, &caller, "revoke_invitation", &meta, decide).await?;
    Ok(reply(position, [("invitation_id", json!(args.p_invitation_id))]))
}

/// An invitation that can be accepted.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub id: String,
    pub org: String,
    pub role: Role,
    org_name: String,
    expires_at: Timestamp,
    email_lookup: Option<Vec<u8>>,
}

impl Open {
    /// Whether the account with this e-mail may accept it.
    pub(crate) fn is_for(&self, state: &AppState, email: &str) -> Result<(), CommandError> {
        match &self.email_lookup {
            Some(lookup) if !state.keys.vault().lookups(email).contains(lookup) => {
                let message = "the invitation is for another e-mail address";
                Err(Refusal::forbidden("invitation_for_another", message)
                    .hint("use the account with the address that was invited")
                    .into())
            }
            _ => Ok(()),
        }
    }
}

/// The invitation behind a link.
///
/// # Errors
/// `invitation_not_valid`.
pub(crate) async fn open(state: &AppState, token: &str, now: Timestamp) -> Result<Open, CommandError> {
    let row: Option<(Uuid, String, Option<Vec<u8>>)> =
        sqlx::query_as("select id, org, email_lookup from vault.invitations where sha256 = $1")
            .bind(sha256(token).as_slice())
            .fetch_optional(&state.pool)
            .await?;
    let (id, code, email_lookup) = row.ok_or_else(invitation_not_valid)?;
    let org =
        Org::load(&load::stream(&state.log, &stream_of(&code)).await?)?.ok_or_else(invitation_not_valid)?;
    let id = id.to_string();
    let invitation = org.open_invitation(&id, now)?.clone();
    let (role, expires_at) = (invitation.role, invitation.expires_at);
    Ok(Open { id, org: code, role, org_name: org.name, expires_at, email_lookup })
}

/// What a link leads to.
///
/// # Errors
/// `invitation_not_valid`.
pub async fn describe_invitation(
    state: &AppState,
    args: DescribeInvitation,
    meta: RequestMeta,
) -> Result<InvitationShown, CommandError> {
    let Open { org, org_name, role, expires_at, .. } = open(state, &args.p_token, meta.now).await?;
    Ok(InvitationShown { org, org_name, role, expires_at })
}

/// What came of accepting an invitation.
#[derive(Debug)]
pub enum Accepted {
    /// The caller's own account joined.
    Joined(CommandReply),
    /// An account joined, or came to be, and a session of it began.
    SignedIn(Box<NewSession>),
}

/// Accepts an invitation.
///
/// # Errors
/// `invitation_not_valid`, `invitation_for_another`, `wrong_credentials`, `throttled`, `bad_email`, `bad_name`,
/// `bad_password`, `credentials_missing`.
pub async fn accept_invitation(
    state: &AppState,
    principal: &Principal,
    args: AcceptInvitation,
    address: IpAddr,
    meta: RequestMeta,
) -> Result<Accepted, CommandError> {
    let invitation = open(state, &args.p_token, meta.now).await?;
    if principal.user().is_some() {
        let caller = principal.require(Role::Viewer)?;
        if principal.is_read_only_token() {
            principal.require(Role::Member)?;
        }
        if invitation.email_lookup.is_some() {
            let id = caller.user.parse().map_err(|_| AuthError::NotFound("account"))?;
            let [email, _] = accounts::known(&state.pool, state.keys.vault(), id).await?;
            invitation.is_for(state, &email)?;
        }
        let position = join(state, &invitation, &caller.user, &meta).await?;
        return Ok(Accepted::Joined(reply(position, [("org", json!(stream_of(&invitation.org)))])));
    }
    let (Some(email), Some(password)) = (args.p_email, args.p_password) else {
        return Err(Refusal::invalid("credentials_missing", "nobody is signed in, and no account is named")
            .hint("send p_email and p_password of your account or of the one to be made, or sign in first")
            .into());
    };
    invitation.is_for(state, &email)?;
    let vault = state.keys.vault();
    let correlation = Some(meta.correlation_id);
    let existing = accounts::find(&state.pool, vault, &email).await?;
    let (user, made) = match existing {
        // Whether the e-mail has an account is told to nobody who does not know its password.
        Some(_) => {
            let found =
                sessions::check_password(state, &email, password, address, correlation, meta.now).await?;
            (found.id, false)
        }
        None => {
            let first_part = email.split('@').next().unwrap_or_default().to_owned();
            let person = Person { name: args.p_name.unwrap_or(first_part), email, password: Some(password) };
            let nobody = Actor { kind: ActorKind::Anonymous, id: "anonymous".to_owned() };
            (accounts::create_person(&state.log, &state.pool, vault, person, nobody, meta.now).await?, true)
        }
    };
    if let Err(error) = join(state, &invitation, &user.to_string(), &meta).await {
        if made {
            accounts::forget(&state.pool, user).await?;
        }
        return Err(error);
    }
    let method = if made { "invitation" } else { "password" };
    let role = role_in(state, &invitation, user).await?;
    let new = sessions::begin(state, user, &invitation.org, role, method, correlation, meta.now).await?;
    Ok(Accepted::SignedIn(Box::new(new)))
}

/// The role an account has where it was invited to: its earlier one, where that is higher.
pub(crate) async fn role_in(state: &AppState, invitation: &Open, user: Uuid) -> Result<Role, CommandError> {
    let role: Option<String> =
        sqlx::query_scalar("select role from vault.memberships where org = $1 and user_id = $2")
            .bind(&invitation.org)
            .bind(user)
            .fetch_optional(&state.pool)
            .await?;
    Ok(role.and_then(|role| accounts::role_of(&role)).unwrap_or(invitation.role))
}

/// The account joins, once and for all.
pub(crate) async fn join(
    state: &AppState,
    invitation: &Open,
    user: &str,
    meta: &RequestMeta,
) -> Result<i64, CommandError> {
    let joining = Principal::User { id: user.to_owned(), org: invitation.org.clone(), role: invitation.role };
    let maker = Maker::of(&joining, "accept_invitation", meta);
    let position =
        change_with(state, &maker, &invitation.org, |org| org.accept(&invitation.id, user, meta.now)).await?;
    accounts::fold_memberships(&state.log, &state.pool, &invitation.org).await?;
    Ok(position)
}
