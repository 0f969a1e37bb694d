//! Signing in and out, and the session behind a cookie.

use std::net::IpAddr;

use events::access::{SignInRefused, SignedIn};
use events::api::{Session, SignIn};
use events::envelope::{Actor, ActorKind};
use events::timestamp::Timestamp;
use events::{Event, StreamKey};
use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::accounts::{self, Found};
use super::password::{self, Verdict};
use super::record::record;
use super::throttle::Throttle;
use super::{AuthError, Principal};
use crate::log::Expected;
use crate::secrets::{Secret, SecretKind, sha256};
use crate::state::AppState;

/// The cookie that holds a session.
pub const COOKIE: &str = "benchtrail_session";

/// The limits on guessing.
#[derive(Debug)]
pub struct SignInThrottle {
    per_account: Throttle<Vec<u8>>,
    per_address: Throttle<IpAddr>,
}

impl Default for SignInThrottle {
    /// 10 failures an account and 30 an address in 15 minutes.
    fn default() -> Self {
        Self { per_account: Throttle::new(10, 900), per_address: Throttle::new(30, 900) }
    }
}

/// A session that was just made.
#[derive(Debug)]
pub struct NewSession {
    /// What goes into the cookie.
    pub secret: Secret,
    /// Seconds it lasts.
    pub max_age_s: i64,
    /// Who signed in.
    pub session: Session,
}

/// Signs in with e-mail and password. Takes the same time and gives the same answer whether or not the account exists.
///
/// # Errors
/// [`AuthError::WrongCredentials`], [`AuthError::Throttled`], [`AuthError::NoMembership`].
pub async fn sign_in(
    state: &AppState,
    args: SignIn,
    address: IpAddr,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<NewSession, AuthError> {
    let vault = state.keys.vault();
    let account = vault.lookups(&args.p_email).swap_remove(0);
    let throttle = &state.sign_ins;
    let wait =
        throttle.per_account.check(&account, now).and_then(|()| throttle.per_address.check(&address, now));
    if let Err(retry_after_s) = wait {
        return Err(AuthError::Throttled { retry_after_s });
    }

    // Nobody's password is longer; what is longer is not hashed at full length.
    let password: String = args.p_password.chars().take(password::LONGEST + 1).collect();
    let found = accounts::find(&state.pool, vault, &args.p_email).await?;
    let stored = found.as_ref().and_then(|found| found.password_hash.clone());
    let verdict = password::verify(password, stored).await;
    let (found, new_hash) = match (found, verdict) {
        (Some(found), Verdict::Right) => (found, None),
        (Some(found), Verdict::RightWithNewHash(hash)) => (found, Some(hash)),
        (found, _) => {
            throttle.per_address.count(address, now);
            let throttled = throttle.per_account.count(account, now);
            if let Some(found) = found {
                note_refusal(state, &found, throttled, correlation_id, now);
            }
            return Err(AuthError::WrongCredentials);
        }
    };
    throttle.per_account.forgive(&account);

    let (org, role) = found.memberships.first().cloned().ok_or(AuthError::NoMembership)?;
    if let Some(hash) = new_hash {
        sqlx::query("update vault.users set password_hash = $2 where id = $1")
            .bind(found.id)
            .bind(hash)
            .execute(&state.pool)
            .await?;
    }
    let secret = Secret::new(SecretKind::Session);
    let max_age_s = i64::from(state.config.session_days) * 86_400;
    sqlx::query(
        "insert into vault.sessions (sha256, user_id, org, created_at, expires_at) values ($1, $2, $3, $4, $5)",
    )
    .bind(secret.sha256().as_slice())
    .bind(found.id)
    .bind(&org)
    .bind(OffsetDateTime::from(now))
    .bind(OffsetDateTime::from(now.plus_micros(max_age_s * 1_000_000)))
    .execute(&state.pool)
    .await?;
    let event = Event::SignedIn(SignedIn { method: "password".to_owned() });
    let stream = StreamKey::new("access", &[&org, &found.id.to_string()]);
    record(&state.log, stream, Expected::Any, &event, actor(found.id), correlation_id, now).await?;
    let principal = Principal::User { id: found.id.to_string(), org, role };
    Ok(NewSession { secret, max_age_s, session: describe(state, &principal).await? })
}

fn actor(user: Uuid) -> Actor {
    Actor { kind: ActorKind::User, id: user.to_string() }
}

/// Notes a failed sign-in of a known account, beside the answer: waiting for it would tell that the account exists.
fn note_refusal(
    state: &AppState,
    found: &Found,
    throttled: bool,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) {
    let org = found.memberships.first().map_or(events::keys::PLATFORM_ORG, |(org, _)| org);
    let stream = StreamKey::new("access", &[org, &found.id.to_string()]);
    let reason = if throttled { "throttled" } else { "wrong_password" };
    let event = Event::SignInRefused(SignInRefused { reason: reason.to_owned() });
    let log = state.log.clone();
    // Who tried is not known: it need not have been the account's owner.
    let nobody = Actor { kind: ActorKind::Anonymous, id: "anonymous".to_owned() };
    tokio::spawn(async move {
        let recorded = record(&log, stream, Expected::Any, &event, nobody, correlation_id, now).await;
        if let Err(error) = recorded {
            tracing::warn!(%error, "a refused sign-in could not be recorded");
        }
    });
}

/// Ends the session in the cookie. Doing it twice is fine.
pub async fn sign_out(pool: &PgPool, cookie: &str) -> Result<(), AuthError> {
    sqlx::query("delete from vault.sessions where sha256 = $1")
        .bind(sha256(cookie).as_slice())
        .execute(pool)
        .await?;
    Ok(())
}

/// The principal behind a session cookie; `None` when it is unknown, expired, or its owner lost the membership.
pub async fn principal_of(
    pool: &PgPool,
    cookie: &str,
    now: Timestamp,
) -> Result<Option<Principal>, AuthError> {
    let row: Option<(Uuid, String, String)> = sqlx::query_as(
        "select s.user_id, s.org, m.role from vault.sessions s
         join vault.users u on u.id = s.user_id and u.disabled_at is null
         join vault.memberships m on m.user_id = s.user_id and m.org = s.org
         where s.sha256 = $1 and s.expires_at > $2",
    )
    .bind(sha256(cookie).as_slice())
    .bind(OffsetDateTime::from(now))
    .fetch_optional(pool)
    .await?;
    Ok(row.and_then(|(user, org, role)| {
        Some(Principal::User { id: user.to_string(), org, role: accounts::role_of(&role)? })
    }))
}

/// Who is asking, as `GET /api/session` says it.
pub async fn describe(state: &AppState, principal: &Principal) -> Result<Session, AuthError> {
    let user = principal.user().map(str::to_owned);
    let name = match (&user, principal.org()) {
        (Some(user), Some(org)) => {
            accounts::names(&state.pool, state.keys.vault(), org, std::slice::from_ref(user))
                .await?
                .remove(user)
        }
        _ => None,
    };
    let org = user.as_ref().and(principal.org()).map(str::to_owned);
    Ok(Session { user, name, org, role: principal.role(), version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// Removes sessions and stored answers that are of no more use.
pub async fn clean_up(pool: &PgPool, now: Timestamp) -> Result<(), AuthError> {
    sqlx::query("delete from vault.sessions where expires_at < $1")
        .bind(OffsetDateTime::from(now))
        .execute(pool)
        .await?;
    sqlx::query("delete from vault.idempotency_keys where created_at < $1")
        .bind(OffsetDateTime::from(now.plus_micros(-86_400_000_000)))
        .execute(pool)
        .await?;
    Ok(())
}
