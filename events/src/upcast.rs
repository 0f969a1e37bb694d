//! Old payloads become new ones, one pure step (n → n + 1) at a time. Nothing in the log is ever rewritten.

use serde_json::Value;

use crate::catalog::current_schema_version;

/// Lifts a payload of an older version to today's.
pub fn upcast(event_type: &str, from_version: u16, mut payload: Value) -> Value {
    for version in from_version..current_schema_version(event_type) {
        payload = step(event_type, version, payload);
    }
    payload
}

/// One step: the payload of `version` as `version + 1` would have written it.
fn step(event_type: &str, version: u16, payload: Value) -> Value {
    match (event_type, version) {
        // ("job.claimed", 1) => …: add a step when a payload changes shape; keep it for good.
        _ => payload,
    }
}
