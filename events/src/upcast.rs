//! Old payloads become new ones, one pure step (n → n + 1) at a time. Nothing in the log is ever rewritten.

use serde_json::Value;

/// One step: what an older payload would say had it been written in the next version.
pub type Step = fn(Value) -> Value;

/// Every step there is: type, the version it starts from, the step. A type's newest version is one more than its
/// last step's. Steps are kept for good: logs hold every version ever shipped.
const STEPS: &[(&str, u16, Step)] = &[("tool_output.recorded", 1, without_window_times)];

/// The first summaries did not say when their window opened and closed.
fn without_window_times(mut payload: Value) -> Value {
    if let Some(summary) = payload.get_mut("summary").and_then(Value::as_object_mut) {
        for name in ["window_started_at", "window_ended_at"] {
            summary.entry(name).or_insert(Value::Null);
        }
    }
    payload
}

/// The version payloads of this type are written in today, from 1.
pub fn current_schema_version(event_type: &str) -> u16 {
    newest(STEPS, event_type)
}

/// Lifts a payload of an older version to today's.
pub fn upcast(event_type: &str, from_version: u16, payload: Value) -> Value {
    lift(STEPS, event_type, from_version, payload)
}

fn newest(steps: &[(&str, u16, Step)], event_type: &str) -> u16 {
    1 + steps.iter().filter(|(t, _, _)| *t == event_type).map(|(_, from, _)| *from).max().unwrap_or(0)
}

fn lift(steps: &[(&str, u16, Step)], event_type: &str, from_version: u16, payload: Value) -> Value {
    (from_version..newest(steps, event_type)).fold(payload, |payload, version| {
        match steps.iter().find(|(t, from, _)| *t == event_type && *from == version) {
            Some((_, _, step)) => step(payload),
            None => payload,
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A renamed field, then a unit that became explicit.
    const TWO_STEPS: &[(&str, u16, Step)] = &[
        ("job.teleported", 1, |mut p| {
            p["to"] = p["target"].take();
            p.as_object_mut().map(|o| o.remove("target"));
            p
        }),
        ("job.teleported", 2, |mut p| {
            p["distance_m"] = json!(p["distance_km"].as_f64().map(|km| km * 1000.0));
            p.as_object_mut().map(|o| o.remove("distance_km"));
            p
        }),
    ];

    #[test]
    fn a_payload_climbs_every_step_to_todays_version() {
        assert_eq!(newest(TWO_STEPS, "job.teleported"), 3);
        let oldest = json!({"target": "h100x8", "distance_km": 1.5});
        let today = json!({"to": "h100x8", "distance_m": 1500.0});
        assert_eq!(lift(TWO_STEPS, "job.teleported", 1, oldest), today);
        assert_eq!(lift(TWO_STEPS, "job.teleported", 2, json!({"to": "h100x8", "distance_km": 1.5})), today);
    }

    #[test]
    fn todays_payload_and_other_types_are_left_alone() {
        let payload = json!({"target": "stays"});
        assert_eq!(lift(TWO_STEPS, "job.teleported", 3, payload.clone()), payload);
        assert_eq!(lift(TWO_STEPS, "job.queued", 1, payload.clone()), payload);
        assert_eq!(newest(TWO_STEPS, "job.queued"), 1);
    }
}
