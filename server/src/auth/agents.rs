//! Agents: a one-time registration token becomes a long-lived agent token; the control plane keeps hashes only.

use std::str::FromStr;

use events::envelope::{Actor, ActorKind};
use events::keys::ServerKey;
use events::report::{EnrolReply, EnrolRequest};
use events::server_host::ServerEnrolled;
use events::timestamp::Timestamp;
use events::{Event, StreamKey};
use sqlx::PgPool;
use time::OffsetDateTime;

use super::record::record;
use super::{AuthError, Principal};
use crate::log::Expected;
use crate::secrets::{Secret, SecretKind, sha256};
use crate::state::AppState;

/// Seconds a registration token is good for.
pub const ENROL_TOKEN_S: i64 = 24 * 3600;

/// An authenticated agent: by its token over HTTPS, by its subject over NATS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentIdentity {
    /// The server it stands for.
    pub server: ServerKey,
    /// Its name, see [`ServerKey::agent`].
    pub agent: String,
}

impl AgentIdentity {
    /// The agent of a server.
    pub fn of(server: ServerKey) -> Self {
        Self { agent: server.agent(), server }
    }

    /// Its organisation.
    pub fn org(&self) -> &str {
        &self.server.org
    }

    /// Who stands in the envelope of what it reports.
    pub fn actor(&self) -> Actor {
        Actor { kind: ActorKind::Agent, id: self.agent.clone() }
    }
}

/// Makes a one-time registration token for a server that is registered.
pub async fn create_enrol_token(
    pool: &PgPool,
    server: &ServerKey,
    created_by: &str,
    now: Timestamp,
) -> Result<Secret, sqlx::Error> {
    let secret = Secret::new(SecretKind::Enrol);
    sqlx::query(
        "insert into vault.enrol_tokens (sha256, org, server, created_by, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind(secret.sha256().as_slice())
    .bind(&server.org)
    .bind(server.stream().as_str())
    .bind(created_by)
    .bind(OffsetDateTime::from(now))
    .bind(OffsetDateTime::from(now.plus_micros(ENROL_TOKEN_S * 1_000_000)))
    .execute(pool)
    .await?;
    Ok(secret)
}

/// Turns a one-time token into an agent token. An agent that enrols again replaces its earlier token.
///
/// # Errors
/// [`AuthError::BadToken`] when the token is unknown, used or expired; [`AuthError::Invalid`] for a bad key.
pub async fn enrol(
    state: &AppState,
    request: &EnrolRequest,
    now: Timestamp,
) -> Result<EnrolReply, AuthError> {
    let key_is_fine = nkeys::KeyPair::from_public_key(&request.nats_public_key)
        .is_ok_and(|key| matches!(key.key_pair_type(), nkeys::KeyPairType::User));
    if !key_is_fine {
        return Err(AuthError::Invalid {
            code: "bad_nats_key",
            message: "nats_public_key is not a NATS user public key".to_owned(),
            hint: "send the public half of a user nkey: 56 characters that start with U",
        });
    }
    if request.agent_version.is_empty() || request.agent_version.len() > 100 {
        return Err(AuthError::Invalid {
            code: "bad_agent_version",
            message: "agent_version is empty or longer than 100 bytes".to_owned(),
            hint: "send what `benchtrail-agent --version` prints",
        });
    }
    let bad_token = || AuthError::BadToken {
        what: "registration token",
        hint: "make a new one: `benchtrail token enrol`, or Servers → Add in the page",
    };
    let secret = Secret::new(SecretKind::Agent);
    let mut tx = state.pool.begin().await?;
    let server: Option<String> = sqlx::query_scalar(
        "update vault.enrol_tokens set used_at = $2
         where sha256 = $1 and used_at is null and expires_at > $2 returning server",
    )
    .bind(sha256(&request.token).as_slice())
    .bind(OffsetDateTime::from(now))
    .fetch_optional(&mut *tx)
    .await?;
    let server = server.ok_or_else(bad_token)?;
    let server = StreamKey::from_str(&server)
        .and_then(|stream| ServerKey::from_stream(&stream))
        .map_err(|error| AuthError::Refused(error.to_string()))?;
    let identity = AgentIdentity::of(server.clone());
    sqlx::query(
        "insert into vault.agents (org, agent, server, token_sha256, nats_public_key, enrolled_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (org, agent) do update set token_sha256 = excluded.token_sha256,
            nats_public_key = excluded.nats_public_key, enrolled_at = excluded.enrolled_at, revoked_at = null",
    )
    .bind(identity.org())
    .bind(&identity.agent)
    .bind(server.stream().as_str())
    .bind(secret.sha256().as_slice())
    .bind(&request.nats_public_key)
    .bind(OffsetDateTime::from(now))
    .execute(&mut *tx)
    .await?;
    // Inside the transaction: were the event refused, the token would stay good.
    let event = Event::ServerEnrolled(ServerEnrolled {
        agent: identity.agent.clone(),
        agent_version: request.agent_version.clone(),
        nats_public_key: request.nats_public_key.clone(),
    });
    record(&state.log, server.stream(), Expected::Any, &event, identity.actor(), None, now).await?;
    tx.commit().await?;
    Ok(EnrolReply {
        org: identity.org().to_owned(),
        agent: identity.agent,
        server,
        agent_token: secret.reveal().to_owned(),
        job_signing_key: state.keys.job_signing_public_key(),
    })
}

/// The agent behind a token; `None` when it is unknown or revoked.
pub async fn principal_of(pool: &PgPool, token: &str) -> Result<Option<Principal>, AuthError> {
    let server: Option<String> =
        sqlx::query_scalar("select server from vault.agents where token_sha256 = $1 and revoked_at is null")
            .bind(sha256(token).as_slice())
            .fetch_optional(pool)
            .await?;
    let Some(server) = server else { return Ok(None) };
    let server = StreamKey::from_str(&server)
        .and_then(|stream| ServerKey::from_stream(&stream))
        .map_err(|error| AuthError::Refused(error.to_string()))?;
    Ok(Some(Principal::Agent { agent: server.agent(), server }))
}

/// Lets a server's agent in no more, nor one that would enrol with a token made before.
///
/// # Errors
/// The database does not answer.
pub async fn revoke(pool: &PgPool, server: &ServerKey, now: Timestamp) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    sqlx::query(
        "update vault.agents set revoked_at = $3 where org = $1 and server = $2 and revoked_at is null",
    )
    .bind(&server.org)
    .bind(server.stream().as_str())
    .bind(OffsetDateTime::from(now))
    .execute(&mut *tx)
    .await?;
    sqlx::query("delete from vault.enrol_tokens where org = $1 and server = $2 and used_at is null")
        .bind(&server.org)
        .bind(server.stream().as_str())
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

/// Whether an agent that NATS let in may still report: its credentials outlive a revocation by minutes.
pub async fn is_enrolled(pool: &PgPool, org: &str, agent: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "select exists (select from vault.agents where org = $1 and agent = $2 and revoked_at is null)",
    )
    .bind(org)
    .bind(agent)
    .fetch_one(pool)
    .await
}

/// The public NATS key an agent enrolled with.
pub async fn nats_public_key(pool: &PgPool, identity: &AgentIdentity) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar(
        "select nats_public_key from vault.agents where org = $1 and agent = $2 and revoked_at is null",
    )
    .bind(identity.org())
    .bind(&identity.agent)
    .fetch_optional(pool)
    .await
}
