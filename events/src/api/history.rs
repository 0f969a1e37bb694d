//! Events as the API shows them: the audit trail, the chain behind a result, the live stream.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::timestamp::Timestamp;

/// One event as history and the live stream show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventView {
    /// Its place in the log.
    pub position: i64,
    /// Its stream.
    pub stream: String,
    /// Its place in the stream, from 1.
    pub version: i64,
    /// Its id.
    pub event_id: String,
    /// Its type, for example `job.claimed`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The payload's version.
    pub schema_version: u16,
    /// When it happened, as its sender says.
    pub occurred_at: Timestamp,
    /// When the control plane recorded it.
    pub recorded_at: Timestamp,
    /// Who: `user`, `agent`, `system`, `anonymous`.
    pub actor_kind: String,
    /// Their id.
    pub actor_id: String,
    /// Their name, where the vault still has one and the reader may see it.
    #[serde(default)]
    pub actor_name: Option<String>,
    /// The event that caused it.
    #[serde(default)]
    pub causation_id: Option<String>,
    /// The chain of work it belongs to.
    #[serde(default)]
    pub correlation_id: Option<String>,
    /// SHA-256 of the canonical envelope, hexadecimal.
    pub leaf: String,
    /// SHA-256 of the previous hash and the leaf, hexadecimal.
    pub hash: String,
    /// What happened.
    pub payload: Value,
}

/// One link of the provenance chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainLink {
    /// `project`, `workload`, `scenario`, `run`, `job`, `invocation`, `metrics`.
    pub link: String,
    /// Its natural key, or the tool and version, or the summary's id.
    pub key: String,
    /// The position of the event that made it.
    pub position: i64,
    /// That event's hash, hexadecimal.
    pub hash: String,
    /// When it was recorded.
    pub recorded_at: Timestamp,
}

/// `GET /api/history?stream=<key>` and `GET /api/history?result=<job key>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct History {
    /// For a result: project → … → metrics. Empty for a stream.
    #[serde(default)]
    pub chain: Vec<ChainLink>,
    /// The events, in order of position.
    pub events: Vec<EventView>,
    /// Set when there are more: the position to go on after.
    #[serde(default)]
    pub next_after: Option<i64>,
}

/// `data:` of an SSE message `event: event`; its `id:` is the position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveEvent {
    /// The position of the previous event that matched this client's topics, 0 for none:
    /// a client that holds another number has lost something.
    pub previous: i64,
    /// The event. The payload of joined telemetry carries every sample.
    #[serde(flatten)]
    pub event: EventView,
}

/// `data:` of an SSE message `event: head`, every 15 seconds and at the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveHead {
    /// The log's last position.
    pub position: i64,
    /// The position of the last event that matched this client's topics, 0 for none.
    pub previous: i64,
}
