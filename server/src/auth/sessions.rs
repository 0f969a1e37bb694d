//! Signing in and out, and the session behind a cookie.

use std::net::IpAddr;

use events::access::{Role, SignInRefused, SignedIn, SignedOut};
use events::api::{Session, SignIn};
use events::envelope::{Actor, ActorKind};
use events::timestamp::Timestamp;
use events::{Event, StreamKey};
use http::HeaderValue;
use sqlx::{AssertSqlSafe, PgPool};
use time::OffsetDateTime;
use uuid::Uuid;

use super::accounts::{self, Found};
use super::password::{self, Verdict};
use super::record::record;
use super::throttle::Throttle;
use super::{AuthError, Denied, Principal};
use crate::config::Config;
use crate::log::Expected;
use crate::secrets::{Secret, SecretKind, sha256};
use crate::state::AppState;

/// The cookie that holds a session.
pub const COOKIE: &str = "benchtrail_session";

/// The `Set-Cookie` of a session; an empty one forgets it.
pub(crate) fn set_cookie(config: &Config, value: &str, max_age_s: i64) -> HeaderValue {
    let secure = if config.secure() { "; Secure" } else { "" };
    let text = format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={max_age_s}{secure}");
    HeaderValue::from_str(&text).expect("base64 and ASCII")
}

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
    let found = check_password(state, &args.p_email, args.p_password, address, correlation_id, now).await?;
    let (org, role) = found.memberships.first().cloned().ok_or(AuthError::NoMembership)?;
    begin(state, found.id, &org, role, "password", correlation_id, now).await
}

/// The account whose e-mail and password these are. Failures are counted by account and by address; as many as may fail
/// are let through, also when they come all at once.
pub(crate) async fn check_password(
    state: &AppState,
    email: &str,
    password: String,
    address: IpAddr,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<Found, AuthError> {
    let vault = state.keys.vault();
    let account = vault.lookups(email).swap_remove(0);
    let throttle = &state.sign_ins;
    let throttled = |retry_after_s| AuthError::Throttled { retry_after_s };
    throttle.per_address.take(address, now).map_err(throttled)?;
    let last = match throttle.per_account.take(account.clone(), now) {
        Ok(last) => last,
        Err(retry_after_s) => {
            // It was not even tried.
            throttle.per_address.give_back(&address);
            return Err(throttled(retry_after_s));
        }
    };

    // Nobody's password is longer; what is longer is not hashed at full length.
    let password: String = password.chars().take(password::LONGEST + 1).collect();
    let found = accounts::find(&state.pool, vault, email).await?;
    let stored = found.as_ref().and_then(|found| found.password_hash.clone());
    let verdict = password::verify(password, stored).await;
    let (found, new_hash) = match (found, verdict) {
        (Some(found), Verdict::Right) => (found, None),
        (Some(found), Verdict::RightWithNewHash(hash)) => (found, Some(hash)),
        (found, _) => {
            if let Some(found) = found {
                let reason = if last { "throttled" } else { "wrong_password" };
                note_refusal(state, &found, reason, correlation_id, now);
            }
            return Err(AuthError::WrongCredentials);
        }
    };
    throttle.per_account.forgive(&account);
    throttle.per_address.give_back(&address);
    if let Some(hash) = new_hash {
        sqlx::query("update vault.users set password_hash = $2 where id = $1")
            .bind(found.id)
            .bind(hash)
            .execute(&state.pool)
            .await?;
    }
    Ok(found)
}

/// Begins a session of an account that was found to be who it says.
pub(crate) async fn begin(
    state: &AppState,
    user: Uuid,
    org: &str,
    role: Role,
    method: &str,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<NewSession, AuthError> {
    let (id, secret) = (Uuid::now_v7(), Secret::new(SecretKind::Session));
    let max_age_s = i64::from(state.config.session_days) * 86_400;
    sqlx::query(
        "insert into vault.sessions (id, sha256, user_id, org, method, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(id)
    .bind(secret.sha256().as_slice())
    .bind(user)
    .bind(org)
    .bind(method)
    .bind(OffsetDateTime::from(now))
    .bind(OffsetDateTime::from(now.plus_micros(max_age_s * 1_000_000)))
    .execute(&state.pool)
    .await?;
    let event = Event::SignedIn(SignedIn { method: method.to_owned() });
    record(&state.log, access_stream(org, user), Expected::Any, &event, actor(user), correlation_id, now)
        .await?;
    let principal = Principal::User { id: user.to_string(), org: org.to_owned(), role };
    let session = Session { session_id: Some(id.to_string()), ..describe(state, &principal).await? };
    Ok(NewSession { secret, max_age_s, session })
}

/// The stream of what an account did in an organisation.
pub(crate) fn access_stream(org: &str, user: impl std::fmt::Display) -> StreamKey {
    StreamKey::new("access", &[org, &user.to_string()])
}

fn actor(user: Uuid) -> Actor {
    Actor { kind: ActorKind::User, id: user.to_string() }
}

/// Notes a failed sign-in of a known account, beside the answer: waiting for it would tell that the account exists.
fn note_refusal(
    state: &AppState,
    found: &Found,
    reason: &'static str,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) {
    let org = found.memberships.first().map_or(events::keys::PLATFORM_ORG, |(org, _)| org);
    let stream = access_stream(org, found.id);
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

/// Which of an account's sessions end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The one with this cookie.
    This(String),
    /// The one with this id.
    Id(Uuid),
    /// All but the one with this cookie.
    Others(Option<String>),
    /// All.
    All,
}

/// Ends sessions of an account and says so in the log. Gives their ids; doing it twice is fine.
///
/// # Errors
/// The database or the log does not answer.
pub async fn end(
    state: &AppState,
    principal: &Principal,
    ending: Ending,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<(Vec<Uuid>, i64), AuthError> {
    let (Some(user), Some(org)) = (principal.user(), principal.org()) else { return Ok((Vec::new(), 0)) };
    let condition = match ending {
        Ending::This(_) => "sha256 = $2",
        Ending::Id(_) => "id::text = convert_from($2, 'UTF8')",
        Ending::Others(_) => "sha256 <> $2",
        Ending::All => "$2::bytea is not null",
    };
    let value = match &ending {
        Ending::This(cookie) | Ending::Others(Some(cookie)) => sha256(cookie).to_vec(),
        Ending::Id(id) => id.to_string().into_bytes(),
        Ending::Others(None) | Ending::All => Vec::new(),
    };
    let sql = format!("delete from vault.sessions where user_id::text = $1 and {condition} returning id");
    let ended: Vec<Uuid> =
        sqlx::query_scalar(AssertSqlSafe(sql)).bind(user).bind(value).fetch_all(&state.pool).await?;
    if ended.is_empty() {
        return Ok((ended, state.log.head().await?.position));
    }
    let event = Event::SignedOut(SignedOut {
        sessions: ended.iter().take(100).map(Uuid::to_string).collect(),
        count: ended.len() as u64,
        everywhere: ending == Ending::All,
    });
    let stream = access_stream(org, user);
    let position =
        record(&state.log, stream, Expected::Any, &event, principal.actor(), correlation_id, now).await?;
    Ok((ended, position))
}

/// Ends whatever session has this cookie, without a word in the log: another one took its place.
pub async fn replace(pool: &PgPool, cookie: &str) -> Result<(), AuthError> {
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
    let now = OffsetDateTime::from(now);
    let row: Option<(Uuid, Uuid, String, String, bool)> = sqlx::query_as(
        "select s.id, s.user_id, s.org, m.role,
                s.last_used_at is null or s.last_used_at < $2 - interval '1 minute'
         from vault.sessions s
         join vault.users u on u.id = s.user_id and u.disabled_at is null
         join vault.memberships m on m.user_id = s.user_id and m.org = s.org
         where s.sha256 = $1 and s.expires_at > $2",
    )
    .bind(sha256(cookie).as_slice())
    .bind(now)
    .fetch_optional(pool)
    .await?;
    let Some((id, user, org, role, stale)) = row else { return Ok(None) };
    if stale {
        sqlx::query("update vault.sessions set last_used_at = $2 where id = $1")
            .bind(id)
            .bind(now)
            .execute(pool)
            .await?;
    }
    Ok(accounts::role_of(&role).map(|role| Principal::User { id: user.to_string(), org, role }))
}

/// Lets a session go on in another organisation of its owner's. Gives who is asking from now on.
///
/// # Errors
/// [`AuthError::NotFound`] where the owner has no role there.
pub async fn switch(
    state: &AppState,
    principal: &Principal,
    cookie: &str,
    org: &str,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<Session, AuthError> {
    let user: Uuid =
        principal.user().and_then(|user| user.parse().ok()).ok_or(AuthError::Denied(Denied::SignIn))?;
    let role: Option<String> = sqlx::query_scalar(
        "update vault.sessions s set org = m.org from vault.memberships m
         where s.sha256 = $1 and s.user_id = $2 and m.user_id = s.user_id and m.org = $3 returning m.role",
    )
    .bind(sha256(cookie).as_slice())
    .bind(user)
    .bind(org)
    .fetch_optional(&state.pool)
    .await?;
    let role = role.and_then(|role| accounts::role_of(&role)).ok_or(AuthError::NotFound("organisation"))?;
    let event = Event::SignedIn(SignedIn { method: "switch".to_owned() });
    record(&state.log, access_stream(org, user), Expected::Any, &event, actor(user), correlation_id, now)
        .await?;
    let principal = Principal::User { id: user.to_string(), org: org.to_owned(), role };
    describe(state, &principal).await
}

/// Ends what a former member still holds in an organisation: sessions that work there, tokens, and secrets of
/// their own.
///
/// # Errors
/// The database does not answer.
pub(crate) async fn end_in(pool: &PgPool, org: &str, user: &str, now: Timestamp) -> Result<(), AuthError> {
    sqlx::query("delete from vault.sessions where org = $1 and user_id::text = $2")
        .bind(org)
        .bind(user)
        .execute(pool)
        .await?;
    sqlx::query("delete from vault.secrets where org = $1 and owner = $2")
        .bind(org)
        .bind(user)
        .execute(pool)
        .await?;
    sqlx::query(
        "update vault.api_tokens set revoked_at = $3 where org = $1 and user_id::text = $2 and revoked_at is null",
    )
    .bind(org)
    .bind(user)
    .bind(OffsetDateTime::from(now))
    .execute(pool)
    .await?;
    Ok(())
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
    let oidc = state.config.oidc.as_ref().map(|oidc| oidc.label.clone());
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let position = *state.log.watch().borrow();
    Ok(Session { user, name, org, role: principal.role(), session_id: None, position, oidc, version })
}

/// The session of an account that has this cookie.
///
/// # Errors
/// The database does not answer.
pub async fn with_cookie(pool: &PgPool, user: &str, cookie: &str) -> Result<Option<Uuid>, AuthError> {
    let query = "select id from vault.sessions where sha256 = $1 and user_id::text = $2";
    let found =
        sqlx::query_scalar(query).bind(sha256(cookie).as_slice()).bind(user).fetch_optional(pool).await?;
    Ok(found)
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
