//! Quotas: what an organisation may still have, asked before anything new is begun, and how near to its limits it is.
//!
//! What was measured is never refused: a quota stops new projects, runs and uploads, not the reports and files of jobs
//! that are under way.

use std::collections::BTreeMap;

use events::StreamKey;
use events::api::CommandReply;
use events::quota::Resource;
use events::timestamp::Timestamp;
use serde_json::json;
use sqlx::{Postgres, Transaction};

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, load, organizations, reply};
use crate::auth::{AuthError, Principal};
use crate::domain::Quota;
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;

/// What was allowed. Until it is dropped nobody else of the organisation is allowed anything, so that what two ask for at
/// the same moment is counted once each.
#[must_use = "it holds the organisation's turn until what it allows is appended"]
pub(super) struct Allowed(
    #[allow(dead_code, reason = "held, not read")] Option<Transaction<'static, Postgres>>,
);

fn stream_of(org: &str) -> StreamKey {
    StreamKey::new("quota", &[org])
}

/// Asks for more of these resources. An organisation without quotas costs nothing; a quota counts from the moment at
/// which this process has read of it.
///
/// # Errors
/// `quota_reached`.
pub(super) async fn ask(
    state: &AppState,
    org: &str,
    more: &[(Resource, u64)],
) -> Result<Allowed, CommandError> {
    let limited = |quota: &Quota| more.iter().any(|(resource, _)| quota.limits.contains_key(resource));
    if !state.work.read(|index| index.quota(org).is_some_and(limited)) {
        return Ok(Allowed(None));
    }
    let mut turn = state.pool.begin().await?;
    sqlx::query("select pg_advisory_xact_lock(hashtextextended($1, 0))")
        .bind(stream_of(org).to_string())
        .execute(&mut *turn)
        .await?;
    state.work.catch_up().await?;
    state.work.read(|index| {
        let (quota, usage) = (index.quota(org).cloned().unwrap_or_default(), index.usage(org));
        more.iter().try_for_each(|(resource, more)| quota.check(*resource, &usage, *more))
    })?;
    Ok(Allowed(Some(turn)))
}

/// How many bytes the organisation may still store, of which so many are announced; nothing where there is no limit.
///
/// # Errors
/// `quota_reached`: none, or fewer than are announced.
pub fn room(state: &AppState, org: &str, announced: Option<u64>) -> Result<Option<u64>, CommandError> {
    state.work.read(|index| {
        let Some(quota) = index.quota(org) else { return Ok(None) };
        let usage = index.usage(org);
        quota.check(Resource::StoredBytes, &usage, announced.unwrap_or(1).max(1))?;
        let used = usage.get(&Resource::StoredBytes).copied().unwrap_or(0);
        Ok(quota.limits.get(&Resource::StoredBytes).map(|limit| limit - used))
    })
}

/// The operator sets quotas of an organisation; null lifts one. Keys in the answer: `quota`.
///
/// # Errors
/// There is no such organisation.
pub async fn set_quotas(
    state: &AppState,
    operator: &Principal,
    org: &str,
    quotas: &BTreeMap<Resource, Option<u64>>,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    if state.log.stream_version(&organizations::stream_of(org)).await? == 0 {
        return Err(AuthError::NotFound("organisation").into());
    }
    let stream = stream_of(org);
    let maker = Maker::of(operator, "set_quotas", &meta);
    for _ in 0..TRIES {
        let recorded = load::stream(&state.log, &stream).await?;
        let quota = Quota::load(&recorded)?;
        let events = quota.set(quotas);
        if events.is_empty() {
            let position = recorded.last().map_or(0, |last| last.position);
            return Ok(reply(position, [("quota", json!(stream))]));
        }
        match append(&state.log, vec![maker.write(stream.clone(), at(&quota), &events, 0)?]).await {
            Ok(position) => return Ok(reply(position, [("quota", json!(stream))])),
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&stream))
}

fn at(quota: &Quota) -> Expected {
    if quota.version == 0 { Expected::NoStream } else { Expected::Exact(quota.version) }
}

/// Looks how near to their quotas the organisations are. Of two control planes that see the same, one appends.
pub(super) async fn look(state: &AppState, now: Timestamp) -> Result<(), CommandError> {
    for org in state.work.read(|index| index.near_a_level()) {
        let stream = stream_of(&org);
        let quota = Quota::load(&load::stream(&state.log, &stream).await?)?;
        let events = quota.observe(&state.work.read(|index| index.usage(&org)));
        if events.is_empty() {
            continue;
        }
        match append(&state.log, vec![Maker::system(None, now).write(stream, at(&quota), &events, 0)?]).await
        {
            Ok(_) | Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Ok(())
}
