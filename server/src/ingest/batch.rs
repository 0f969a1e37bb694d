//! Reading a batch off the wire: an item that cannot be read is refused alone, so that it never blocks those behind it.

use events::report::{ReportBatch, ReportItem, ReportReply};
use events::timestamp::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::accept::{accept, check_batch, refuse_batch};
use super::{Refused, rejections};
use crate::api::Failure;
use crate::api::extract::parse_json;
use crate::auth::AgentIdentity;
use crate::state::AppState;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBatch<'a> {
    org: String,
    agent: String,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

/// Reads a batch and accepts what can be read of it.
///
/// # Errors
/// The batch itself is not JSON, or not of the shape of one.
pub async fn accept_bytes(
    state: &AppState,
    identity: &AgentIdentity,
    bytes: &[u8],
    now: Timestamp,
) -> Result<ReportReply, Failure> {
    let raw: RawBatch<'_> = parse_json(bytes)?;
    if let Err(refused) = check_batch(identity, &raw.org, &raw.agent, raw.items.len()) {
        return Ok(refuse_batch(state, identity, raw.items.len(), refused, now).await);
    }
    let mut items = Vec::with_capacity(raw.items.len());
    let mut unread: Vec<(usize, Uuid, String, Refused)> = Vec::new();
    for (index, text) in raw.items.iter().enumerate() {
        match serde_json::from_str::<ReportItem>(text.get()) {
            Ok(item) => items.push(item),
            Err(error) => {
                let (event_id, kind) = name_of(text.get());
                unread.push((index, event_id, kind, malformed(&error)));
            }
        }
    }
    let batch = ReportBatch { org: raw.org, agent: raw.agent, items };
    let mut reply = accept(state, identity, batch, now).await;
    if reply.error.is_some() || unread.is_empty() {
        return Ok(reply);
    }
    let about: Vec<rejections::About<'_>> = unread
        .iter()
        .map(|(_, event_id, kind, refused)| rejections::About { event_id: *event_id, kind, refused })
        .collect();
    rejections::record(state, identity, &about, now).await;
    state.metrics.count_reports("rejected", unread.len() as u64);
    // In the order of the batch: each index is that of the whole, those before it are in place already.
    for (index, _, _, refused) in unread {
        reply.results.insert(index, refused.outcome());
    }
    Ok(reply)
}

fn malformed(error: &serde_json::Error) -> Refused {
    Refused::new(
        "malformed_item",
        format!("the report cannot be read: {error}"),
        "agent and control plane may differ in version: upgrade the older one",
    )
}

/// What can still be read of an item that cannot: its id and its kind.
fn name_of(text: &str) -> (Uuid, String) {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let id = value["event_id"].as_str().and_then(|id| id.parse().ok()).unwrap_or_default();
    let kind = value["body"]["kind"].as_str().unwrap_or("unknown");
    (id, kind.chars().take(50).collect())
}
