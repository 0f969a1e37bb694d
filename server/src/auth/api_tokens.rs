//! Personal API tokens: random, prefixed, stored hashed, scoped, expiring, shown once.

use events::access::{Role, TokenCreated, TokenRevoked};
use events::api::{CreateApiToken, RevokeApiToken};
use events::envelope::Actor;
use events::timestamp::Timestamp;
use events::{Event, StreamKey};
use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::record::record;
use super::{AuthError, Principal, Scopes, accounts};
use crate::log::{Expected, Log};
use crate::secrets::{Secret, SecretKind, sha256};

/// The longest a token may live, days.
pub const LONGEST_DAYS: u32 = 365;

/// A token that was just made.
#[derive(Debug)]
pub struct NewApiToken {
    /// Its id.
    pub id: Uuid,
    /// The token itself, to be shown once.
    pub secret: Secret,
    /// The position of the event.
    pub position: i64,
}

/// Whose token it will be.
#[derive(Debug, Clone)]
pub struct Owner {
    /// The account.
    pub user: Uuid,
    /// The organisation the token works in.
    pub org: String,
    /// The most it may be able to do.
    pub role: Role,
}

/// Makes a token.
///
/// # Errors
/// [`AuthError::Invalid`] names the argument that is not acceptable.
pub async fn create(
    log: &Log,
    pool: &PgPool,
    owner: &Owner,
    args: &CreateApiToken,
    actor: Actor,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<NewApiToken, AuthError> {
    let invalid = |code, message: String, hint| Err(AuthError::Invalid { code, message, hint });
    let name = args.p_name.trim();
    if name.is_empty() || name.chars().count() > 100 || name.chars().any(char::is_control) {
        return invalid(
            "bad_name",
            "the token's name is empty or too long".into(),
            "use 1 to 100 characters",
        );
    }
    if args.p_expires_in_days == 0 || args.p_expires_in_days > LONGEST_DAYS {
        let message = format!("a token lives 1 to {LONGEST_DAYS} days, not {}", args.p_expires_in_days);
        return invalid("bad_expiry", message, "make a new one before it expires");
    }
    let Some(scopes) = Scopes::parse(&args.p_scopes) else {
        let message = format!("{:?} are not scopes", args.p_scopes);
        return invalid("bad_scopes", message, "use one or more of read, write, admin");
    };
    if scopes.role().is_some_and(|role| role > owner.role) {
        let message = format!("a token cannot do more than you can: your role is {}", owner.role.as_str());
        return invalid("scopes_too_wide", message, "leave out the wider scopes");
    }
    let id = Uuid::now_v7();
    let secret = Secret::new(SecretKind::User);
    let expires_at = now.plus_micros(i64::from(args.p_expires_in_days) * 86_400_000_000);
    let stream = StreamKey::new("access", &[&owner.org, &owner.user.to_string()]);
    let event = Event::TokenCreated(TokenCreated { token: id.to_string(), scopes: args.p_scopes.clone() });
    // The event first: a token that works is never missing from the audit trail.
    let position = record(log, stream, Expected::Any, &event, actor, correlation_id, now).await?;
    sqlx::query(
        "insert into vault.api_tokens (id, user_id, org, name, scopes, sha256, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(id)
    .bind(owner.user)
    .bind(&owner.org)
    .bind(name)
    .bind(&args.p_scopes)
    .bind(secret.sha256().as_slice())
    .bind(OffsetDateTime::from(now))
    .bind(OffsetDateTime::from(expires_at))
    .execute(pool)
    .await?;
    Ok(NewApiToken { id, secret, position })
}

/// Revokes a token of the caller, or, for an administrator, of anybody in the organisation. Gives the position.
///
/// # Errors
/// [`AuthError::NotFound`] also when it is somebody else's.
pub async fn revoke(
    log: &Log,
    pool: &PgPool,
    principal: &Principal,
    args: &RevokeApiToken,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<i64, AuthError> {
    let caller = principal.require(Role::Viewer)?;
    let id: Uuid = args.p_token_id.parse().map_err(|_| AuthError::NotFound("token"))?;
    let row: Option<(Uuid, String)> = sqlx::query_as(
        "update vault.api_tokens set revoked_at = coalesce(revoked_at, $4)
         where id = $1 and org = $2 and (user_id::text = $3 or $5) returning user_id, org",
    )
    .bind(id)
    .bind(&caller.org)
    .bind(&caller.user)
    .bind(OffsetDateTime::from(now))
    .bind(caller.role == Role::Admin)
    .fetch_optional(pool)
    .await?;
    let (user, org) = row.ok_or(AuthError::NotFound("token"))?;
    let stream = StreamKey::new("access", &[&org, &user.to_string()]);
    let event = Event::TokenRevoked(TokenRevoked { token: id.to_string() });
    record(log, stream, Expected::Any, &event, principal.actor(), correlation_id, now).await
}

/// The principal behind a token; `None` when it is unknown, expired or revoked, or its owner lost the membership.
pub async fn principal_of(
    pool: &PgPool,
    token: &str,
    now: Timestamp,
) -> Result<Option<Principal>, AuthError> {
    let now = OffsetDateTime::from(now);
    let row: Option<(Uuid, Uuid, String, String, Vec<String>, bool)> = sqlx::query_as(
        "select t.id, t.user_id, t.org, m.role, t.scopes,
                t.last_used_at is null or t.last_used_at < $2 - interval '1 minute'
         from vault.api_tokens t
         join vault.users u on u.id = t.user_id and u.disabled_at is null
         join vault.memberships m on m.user_id = t.user_id and m.org = t.org
         where t.sha256 = $1 and t.revoked_at is null and t.expires_at > $2",
    )
    .bind(sha256(token).as_slice())
    .bind(now)
    .fetch_optional(pool)
    .await?;
    let Some((id, user, org, role, scopes, stale)) = row else { return Ok(None) };
    if stale {
        sqlx::query("update vault.api_tokens set last_used_at = $2 where id = $1")
            .bind(id)
            .bind(now)
            .execute(pool)
            .await?;
    }
    let (Some(role), Some(scopes)) = (accounts::role_of(&role), Scopes::parse(&scopes)) else {
        return Ok(None);
    };
    Ok(Some(Principal::Token { token: id.to_string(), user: user.to_string(), org, role, scopes }))
}
