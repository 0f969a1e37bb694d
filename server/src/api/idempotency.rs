//! `Idempotency-Key`: the same request under the same key is answered again, not done again.

use events::timestamp::Timestamp;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use super::error::Failure;
use crate::auth::Principal;
use crate::state::AppState;

/// The header.
pub const HEADER: &str = "idempotency-key";

/// Seconds after which a request that never came to an end may be tried again under its key.
const ABANDONED_S: i64 = 60;

/// A stored answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    status: u16,
    body: Value,
}

impl Stored {
    /// The answer to be kept.
    pub fn new(status: StatusCode, body: Value) -> Self {
        Self { status: status.as_u16(), body }
    }

    /// Its status and body.
    pub fn into_parts(self) -> (StatusCode, Value) {
        (StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK), self.body)
    }
}

/// A request under a key that is being done for the first time.
#[derive(Debug)]
pub struct Claimed {
    principal: String,
    command: &'static str,
    key: String,
}

/// What is known of a key.
#[derive(Debug)]
pub enum Begun {
    /// No key was sent.
    WithoutKey,
    /// First time: do it, then [`finish`] or [`abandon`].
    First(Claimed),
    /// Done before: this was the answer.
    Again(Stored),
}

/// The key of a request, where it has one.
///
/// # Errors
/// 400 when it is not usable.
pub fn key_of(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    let key = value.to_str().unwrap_or_default();
    if key.is_empty() || key.len() > 200 || !key.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(Failure::bad_request(
            "bad_idempotency_key",
            "the Idempotency-Key is empty, longer than 200 bytes, or holds more than printable ASCII",
            "send a random uuid, made once for each thing you want done",
        ));
    }
    Ok(Some(key.to_owned()))
}

/// Looks a key up and claims it when it is new.
///
/// # Errors
/// 422 when the key was used for another request; 409 while the first one is still at work.
pub async fn begin(
    state: &AppState,
    principal: &Principal,
    command: &'static str,
    key: Option<&str>,
    body: &[u8],
    now: Timestamp,
) -> Result<Begun, Failure> {
    let Some(key) = key else { return Ok(Begun::WithoutKey) };
    let principal = principal.fingerprint();
    let digest = Sha256::digest(body);
    let claimed = sqlx::query(
        "insert into vault.idempotency_keys as k (principal, command, key, body_sha256, created_at)
         values ($1, $2, $3, $4, $5)
         on conflict (principal, command, key) do update set created_at = excluded.created_at
         where k.reply_sealed is null and k.body_sha256 = excluded.body_sha256
           and k.created_at < excluded.created_at - make_interval(secs => $6)",
    )
    .bind(&principal)
    .bind(command)
    .bind(key)
    .bind(digest.as_slice())
    .bind(OffsetDateTime::from(now))
    .bind(ABANDONED_S as f64)
    .execute(&state.pool)
    .await?;
    if claimed.rows_affected() == 1 {
        return Ok(Begun::First(Claimed { principal, command, key: key.to_owned() }));
    }
    let row: Option<(Vec<u8>, Option<Vec<u8>>)> = sqlx::query_as(
        "select body_sha256, reply_sealed from vault.idempotency_keys
         where principal = $1 and command = $2 and key = $3",
    )
    .bind(&principal)
    .bind(command)
    .bind(key)
    .fetch_optional(&state.pool)
    .await?;
    let busy = || {
        let mut failure = Failure::new(
            StatusCode::CONFLICT,
            "still_at_work",
            "the first request under this Idempotency-Key has not been answered yet",
            "ask again in a second",
        );
        failure.retry_after_s = Some(1);
        failure
    };
    let (body_sha256, reply) = row.ok_or_else(busy)?;
    if body_sha256 != digest.as_slice() {
        return Err(Failure::unprocessable(
            "idempotency_key_reused",
            "this Idempotency-Key was used for another request",
            "make a new key for each thing you want done",
        ));
    }
    let sealed = reply.ok_or_else(busy)?;
    let text = state
        .keys
        .vault()
        .open(&place(&principal, command, key), &sealed)
        .map_err(|error| Failure::unavailable(&error))?;
    let stored = serde_json::from_str(&text).map_err(|error| Failure::unavailable(&error))?;
    Ok(Begun::Again(stored))
}

/// Keeps the answer.
///
/// # Errors
/// The database does not answer.
pub async fn finish(state: &AppState, claimed: &Claimed, stored: &Stored) -> Result<(), Failure> {
    let text = serde_json::to_string(stored).map_err(|error| Failure::unavailable(&error))?;
    let place = place(&claimed.principal, claimed.command, &claimed.key);
    sqlx::query(
        "update vault.idempotency_keys set reply_sealed = $4 where principal = $1 and command = $2 and key = $3",
    )
    .bind(&claimed.principal)
    .bind(claimed.command)
    .bind(&claimed.key)
    .bind(state.keys.vault().seal(&place, &text))
    .execute(&state.pool)
    .await?;
    Ok(())
}

/// Frees the key: nothing was done, so the request may be corrected or tried again.
pub async fn abandon(state: &AppState, claimed: &Claimed) {
    let freed =
        sqlx::query("delete from vault.idempotency_keys where principal = $1 and command = $2 and key = $3")
            .bind(&claimed.principal)
            .bind(claimed.command)
            .bind(&claimed.key)
            .execute(&state.pool)
            .await;
    if let Err(error) = freed {
        tracing::warn!(%error, "an idempotency key could not be freed; it is after a minute");
    }
}

fn place(principal: &str, command: &str, key: &str) -> String {
    format!("idempotency_keys.reply/{principal}/{command}/{key}")
}
