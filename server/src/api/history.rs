//! `GET /api/history` and `GET /api/proof`.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use events::api::{EventView, History};
use serde::Deserialize;

use super::Failure;
use crate::auth::{Principal, accounts};
use crate::queries::history;
use crate::state::AppState;

/// What to show the history of: exactly one of `stream` and `result`.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    stream: Option<String>,
    result: Option<String>,
    after: Option<i64>,
    limit: Option<i64>,
}

/// Which position to prove.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProofQuery {
    position: i64,
}

fn parameters<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Failure> {
    query.map(|Query(query)| query).map_err(|rejection| {
        Failure::bad_request("bad_query", rejection.body_text(), "see docs/API.md for the parameters")
    })
}

/// The events of a stream, or the chain and the events behind a result.
pub async fn history(
    State(state): State<AppState>,
    principal: Principal,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> Result<Json<History>, Failure> {
    let query = parameters(query)?;
    let (access, visibility) = (state.hub.access(), principal.visibility());
    let (after, limit) = (query.after.unwrap_or(0), query.limit.unwrap_or(500));
    let mut history = match (&query.stream, &query.result) {
        (Some(stream), None) => {
            history::of_stream(&state.log, access, &visibility, stream, after, limit).await?
        }
        (None, Some(job)) => history::of_result(&state.log, access, &visibility, job).await?,
        _ => {
            return Err(Failure::bad_request(
                "bad_query",
                "history wants one of `stream` and `result`",
                "?stream=<stream key> or ?result=<job key>",
            ));
        }
    };
    name_actors(&state, &principal, history.events.iter_mut()).await?;
    Ok(Json(history))
}

/// Adds the names of the people who acted, where they work in the reader's organisation and the vault has them.
async fn name_actors<'a>(
    state: &AppState,
    principal: &Principal,
    events: impl Iterator<Item = &'a mut EventView>,
) -> Result<(), Failure> {
    let visibility = principal.visibility();
    let Some(org) = visibility.org.as_deref() else { return Ok(()) };
    let mut events: Vec<&mut EventView> = events.filter(|event| event.actor_kind == "user").collect();
    let users: BTreeSet<String> = events.iter().map(|event| event.actor_id.clone()).collect();
    let users: Vec<String> = users.into_iter().collect();
    let names = accounts::names(&state.pool, state.keys.vault(), org, &users).await?;
    for event in &mut events {
        event.actor_name = names.get(&event.actor_id).cloned();
    }
    Ok(())
}

/// An event and the proof that it is in the log.
pub async fn proof(
    State(state): State<AppState>,
    principal: Principal,
    query: Result<Query<ProofQuery>, QueryRejection>,
) -> Result<Json<history::Proved>, Failure> {
    let ProofQuery { position } = parameters(query)?;
    let mut proved =
        history::proof(&state.log, state.hub.access(), &principal.visibility(), position).await?;
    name_actors(&state, &principal, std::iter::once(&mut proved.event)).await?;
    Ok(Json(proved))
}
