//! An event as a client gets it, for the tests of what leads there.

use events::api::EventView;
use events::timestamp::Timestamp;
use serde_json::Value;

/// An event at a position, of a stream that has had one at each. Hashes and payload are empty.
pub fn view(position: i64, stream: &str, event_type: &str) -> EventView {
    EventView {
        position,
        stream: stream.to_owned(),
        version: position,
        event_id: String::new(),
        event_type: event_type.to_owned(),
        schema_version: 1,
        occurred_at: Timestamp::EPOCH,
        recorded_at: Timestamp::EPOCH,
        actor_kind: "agent".to_owned(),
        actor_id: String::new(),
        actor_name: None,
        causation_id: None,
        correlation_id: None,
        leaf: String::new(),
        hash: String::new(),
        payload: Value::Null,
    }
}
