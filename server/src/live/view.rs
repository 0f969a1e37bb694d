//! A recorded event as history and the live stream show it.

use events::Event;
use events::api::EventView;
use events::catalog::DecodeError;
use events::envelope::Recorded;
use serde_json::Value;

/// A field of an event that readers of its stream may not see: it names a job, of any project.
const UNSHOWN: (&str, &str) = ("prompt_source.calibrated", "job");

/// Shows an event. Its payload is shown as it was hashed but for [`UNSHOWN`]; one that is not JSON (tampered with) is shown
/// as text.
pub fn event_view(event: &Recorded) -> EventView {
    let mut payload: Value =
        serde_json::from_str(&event.payload).unwrap_or_else(|_| Value::String(event.payload.clone()));
    if let Some(fields) = payload.as_object_mut().filter(|_| event.event_type == UNSHOWN.0) {
        fields.remove(UNSHOWN.1);
    }
    EventView {
        position: event.position,
        stream: event.stream.to_string(),
        version: event.version,
        event_id: event.event_id.to_string(),
        event_type: event.event_type.clone(),
        schema_version: event.schema_version,
        occurred_at: event.occurred_at,
        recorded_at: event.recorded_at,
        actor_kind: event.actor.kind.as_str().to_owned(),
        actor_id: event.actor.id.clone(),
        actor_name: None,
        causation_id: event.causation_id.map(|id| id.to_string()),
        correlation_id: event.correlation_id.map(|id| id.to_string()),
        leaf: hex::encode(event.leaf),
        hash: hex::encode(event.hash),
        payload,
    }
}

/// Reads a shown event back.
///
/// # Errors
/// [`DecodeError`]: its type or version is not known here, or its payload does not fit.
pub fn decode(view: &EventView) -> Result<Event, DecodeError> {
    Event::decode(&view.event_type, view.schema_version, &view.payload.to_string())
}
