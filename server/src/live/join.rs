//! Joining for slow clients: telemetry and progress that piled up become fewer messages. No sample is dropped.

use std::sync::Arc;

use events::api::EventView;
use serde_json::Value;

/// From this many waiting events on, telemetry is joined.
const PILED_UP: usize = 200;

/// The most samples in one joined message.
const MOST_SAMPLES: usize = 120;

/// Joins runs of telemetry of one stream where many events wait, and keeps everything else as it is, in order.
///
/// A joined event stands at the position of its last part and carries every sample; `seq` is its last part's, and
/// `joined` says how many parts it has.
pub fn join(waiting: Vec<Arc<EventView>>) -> Vec<Arc<EventView>> {
    if waiting.len() < PILED_UP {
        return waiting;
    }
    let mut out: Vec<Arc<EventView>> = Vec::with_capacity(waiting.len());
    for event in waiting {
        if let Some(last) = out.last_mut()
            && joinable(last, &event)
        {
            *last = Arc::new(joined(last, &event));
            continue;
        }
        out.push(event);
    }
    out
}

fn samples(event: &EventView) -> Option<&Vec<Value>> {
    event.payload.get("samples").and_then(Value::as_array)
}

fn joinable(last: &EventView, next: &EventView) -> bool {
    last.event_type == "telemetry.sampled"
        && next.event_type == last.event_type
        && next.stream == last.stream
        && samples(last).is_some_and(|s| s.len() < MOST_SAMPLES)
        && samples(next).is_some()
}

fn joined(last: &EventView, next: &EventView) -> EventView {
    let mut event = next.clone();
    let all: Vec<Value> = samples(last).into_iter().chain(samples(next)).flatten().cloned().collect();
    let parts = last.payload.get("joined").and_then(Value::as_u64).unwrap_or(1) + 1;
    event.payload["samples"] = Value::Array(all);
    event.payload["joined"] = Value::from(parts);
    event
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::live::testing;

    fn event(position: i64, stream: &str, event_type: &str) -> Arc<EventView> {
        Arc::new(EventView {
            payload: json!({"seq": position, "samples": [position]}),
            ..testing::view(position, stream, event_type)
        })
    }

    #[test]
    fn every_sample_survives_and_states_are_never_joined() {
        let mut waiting: Vec<_> =
            (1..=300).map(|p| event(p, "telemetry/a/b/c/1/d/1", "telemetry.sampled")).collect();
        waiting.insert(150, event(1000, "job/a/b/c/1/d", "job.completed"));
        let out = join(waiting);
        assert!(out.len() < 10, "{}", out.len());
        let all: Vec<i64> = out
            .iter()
            .filter(|e| e.event_type == "telemetry.sampled")
            .flat_map(|e| samples(e).cloned().unwrap_or_default())
            .filter_map(|s| s.as_i64())
            .collect();
        assert_eq!(all, (1..=300).collect::<Vec<_>>());
        assert_eq!(out.iter().filter(|e| e.event_type == "job.completed").count(), 1);
    }

    #[test]
    fn few_waiting_events_are_left_alone() {
        let waiting: Vec<_> =
            (1..=50).map(|p| event(p, "telemetry/a/b/c/1/d/1", "telemetry.sampled")).collect();
        assert_eq!(join(waiting.clone()), waiting);
    }
}
