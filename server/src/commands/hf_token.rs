//! `set_hf_token`, `remove_hf_token`, and their release to the agent of a job that needs one.
//!
//! A token is sealed as soon as it is here, never shown again, and leaves only for the agent that holds a job whose model
//! is gated: the token of who started the run, else the organisation's. Every step is in the audit trail.

use events::Event;
use events::access::{Role, SecretReleased, SecretRemoved, SecretScope, SecretStored};
use events::api::{CommandReply, RemoveHfToken, SetHfToken};
use events::report::{SecretsReply, SecretsRequest};
use events::timestamp::Timestamp;
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::append::{Maker, append};
use super::{CommandError, RequestMeta, catalogue, load, reply};
use crate::auth::sessions::access_stream;
use crate::auth::{AgentIdentity, Caller, Principal};
use crate::domain::{Aggregate, Job, Refusal};
use crate::log::Expected;
use crate::secrets::sha256;
use crate::state::AppState;

/// The variable that Hugging Face's libraries, and so the model servers, read.
pub const NAME: &str = "HF_TOKEN";

/// Whose secret it is, as the vault keeps it: an organisation's has no owner.
fn owner_of(principal: &Principal, scope: SecretScope) -> Result<(Caller, String), CommandError> {
    let needed = match scope {
        SecretScope::User => Role::Member,
        SecretScope::Organization => Role::Admin,
    };
    let caller = principal.require(needed)?;
    let owner = match scope {
        SecretScope::User => caller.user.clone(),
        SecretScope::Organization => String::new(),
    };
    Ok((caller, owner))
}

fn place(id: Uuid) -> String {
    format!("secrets.value/{id}")
}

fn check(token: &str) -> Result<(), Refusal> {
    let fits = token.strip_prefix("hf_").is_some_and(|rest| {
        (8..=200).contains(&rest.len())
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    if fits {
        return Ok(());
    }
    // What was sent is not repeated: it may be another secret.
    Err(Refusal::invalid("bad_token", "this is no Hugging Face token").hint(
        "it begins with hf_; make one at Hugging Face, under Settings, Access Tokens, with the right to read",
    ))
}

/// Stores a token. Keys in the answer: `secret_id`, `fingerprint`.
///
/// # Errors
/// `bad_token`.
pub async fn set_hf_token(
    state: &AppState,
    principal: &Principal,
    args: SetHfToken,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let (caller, owner) = owner_of(principal, args.p_scope)?;
    let token = args.p_token.trim();
    check(token)?;
    let id = Uuid::now_v7();
    let fingerprint = hex::encode(&sha256(token)[..6]);
    let stored = SecretStored {
        secret: id.to_string(),
        name: NAME.to_owned(),
        scope: args.p_scope,
        fingerprint: fingerprint.clone(),
    };
    // The event first: a secret that works is never missing from the audit trail.
    let stream = access_stream(&caller.org, &caller.user);
    let write = Maker::of(principal, "set_hf_token", &meta).write(
        stream,
        Expected::Any,
        &[Event::SecretStored(stored)],
        0,
    )?;
    let position = append(&state.log, vec![write]).await?;
    sqlx::query(
        "insert into vault.secrets (id, org, owner, name, value_sealed, fingerprint, created_by, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (org, owner, name) do update set id = excluded.id, value_sealed = excluded.value_sealed,
            fingerprint = excluded.fingerprint, created_by = excluded.created_by, created_at = excluded.created_at,
            last_released_at = null",
    )
    .bind(id)
    .bind(&caller.org)
    .bind(&owner)
    .bind(NAME)
    .bind(state.keys.vault().seal(&place(id), token))
    .bind(&fingerprint)
    .bind(&caller.user)
    .bind(OffsetDateTime::from(meta.now))
    .execute(&state.pool)
    .await?;
    Ok(reply(position, [("secret_id", json!(id)), ("fingerprint", json!(fingerprint))]))
}

/// Removes a token. Keys in the answer: `secret_id`.
///
/// # Errors
/// `secret_not_found`.
pub async fn remove_hf_token(
    state: &AppState,
    principal: &Principal,
    args: RemoveHfToken,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let (caller, owner) = owner_of(principal, args.p_scope)?;
    let removed: Option<Uuid> = sqlx::query_scalar(
        "delete from vault.secrets where org = $1 and owner = $2 and name = $3 returning id",
    )
    .bind(&caller.org)
    .bind(&owner)
    .bind(NAME)
    .fetch_optional(&state.pool)
    .await?;
    let id = removed.ok_or_else(|| {
        Refusal::not_found("secret_not_found", "there is no Hugging Face token to remove")
            .hint("GET /api/v_secrets lists what is stored")
    })?;
    let event = SecretRemoved { secret: id.to_string(), name: NAME.to_owned(), scope: args.p_scope };
    let stream = access_stream(&caller.org, &caller.user);
    let write = Maker::of(principal, "remove_hf_token", &meta).write(
        stream,
        Expected::Any,
        &[Event::SecretRemoved(event)],
        0,
    )?;
    let position = append(&state.log, vec![write]).await?;
    Ok(reply(position, [("secret_id", json!(id))]))
}

/// Whether a run that this account starts would be given a token.
///
/// # Errors
/// The database does not answer.
pub async fn is_stored(state: &AppState, org: &str, user: &str) -> Result<bool, CommandError> {
    let stored = sqlx::query_scalar(
        "select exists (select from vault.secrets where org = $1 and name = $2 and owner in ($3, ''))",
    )
    .bind(org)
    .bind(NAME)
    .bind(user)
    .fetch_one(&state.pool)
    .await?;
    Ok(stored)
}

/// What the job that this agent holds needs: for a gated model the token of who started the run, else the
/// organisation's. Nothing where the model is open or nobody stored one.
///
/// # Errors
/// `not_your_job`: another agent's, of another attempt, or over.
pub async fn release_secrets(
    state: &AppState,
    agent: &AgentIdentity,
    request: &SecretsRequest,
    now: Timestamp,
) -> Result<SecretsReply, CommandError> {
    let not_yours = || {
        Refusal::forbidden("not_your_job", "this agent does not hold this attempt of the job")
            .hint("claim a job first; ask while it is carried out")
    };
    if request.job.org != agent.org() {
        return Err(not_yours().into());
    }
    let events = load::stream(&state.log, &request.job.stream()).await?;
    let job = Job::load(&events)?.ok_or_else(not_yours)?;
    if job.server != agent.server || job.attempt() != request.attempt || !job.is_held() {
        return Err(not_yours().into());
    }
    let model = catalogue::model(state, agent.org(), &job.workload.model_code).await?;
    if !model.gated {
        return Ok(SecretsReply::default());
    }
    let run = load::stream(&state.log, &request.job.run_key().stream()).await?;
    let starter = run.first().map(|created| created.actor.id.clone()).unwrap_or_default();
    let found: Option<(Uuid, String, Vec<u8>)> = sqlx::query_as(
        "select id, owner, value_sealed from vault.secrets
         where org = $1 and name = $2 and owner in ($3, '') order by owner desc limit 1",
    )
    .bind(agent.org())
    .bind(NAME)
    .bind(&starter)
    .fetch_optional(&state.pool)
    .await?;
    let Some((id, owner, sealed)) = found else { return Ok(SecretsReply::default()) };
    let value =
        state.keys.vault().open(&place(id), &sealed).map_err(|error| CommandError::unavailable(&error))?;
    let scope = if owner.is_empty() { SecretScope::Organization } else { SecretScope::User };
    let released = Event::SecretReleased(SecretReleased {
        secret: id.to_string(),
        name: NAME.to_owned(),
        scope,
        server: agent.server.stream().to_string(),
    });
    let claim =
        events.iter().rev().find(|event| event.event_type == "job.claimed").map(|event| event.event_id);
    let principal = Principal::Agent { server: agent.server.clone(), agent: agent.agent.clone() };
    // The event first: nothing leaves that the trail does not know of.
    let maker = Maker::caused(&principal, claim, now);
    let write = maker.write(access_stream(agent.org(), &starter), Expected::Any, &[released], 0)?;
    append(&state.log, vec![write]).await?;
    sqlx::query("update vault.secrets set last_released_at = $2 where id = $1")
        .bind(id)
        .bind(OffsetDateTime::from(now))
        .execute(&state.pool)
        .await?;
    Ok(SecretsReply { env: [(NAME.to_owned(), value)].into() })
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn what_is_no_token_is_refused_without_being_repeated() {
        assert!(check("hf_abcdefghijklmnopqrstuvwxyz012345").is_ok());
        for bad in ["", "hf_", "sk-123456789012345", "hf_a b c d e f g h", "hf_ok_but\nwith-a-line"] {
            let refusal = check(bad).unwrap_err();
            assert!(bad.is_empty() || bad == "hf_" || !format!("{refusal:?}").contains(bad), "{refusal:?}");
        }
    }
}
