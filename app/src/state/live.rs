//! What the live stream means for the rows on the page: events folded into rows of `v_jobs`, `v_runs` and `v_servers`.
//!
//! The fold shows a change at once; the page reads the row again a moment later, so that the view has the last word.

use events::api::EventView;
use serde_json::Value;

use crate::row::Row;

/// What kind of thing an event is about, by its stream: `job`, `run`, `server`, `telemetry`, `progress`, `logs`, …
pub fn kind(event: &EventView) -> &str {
    event.stream.split('/').next().unwrap_or_default()
}

/// The stream of the job that an event of a job, or of one of its attempts' streams, belongs to.
pub fn job_of(event: &EventView) -> Option<String> {
    let (kind, path) = event.stream.split_once('/')?;
    match kind {
        "job" => Some(event.stream.clone()),
        "telemetry" | "progress" | "logs" => {
            path.rsplit_once('/').map(|(job, _attempt)| format!("job/{job}"))
        }
        _ => None,
    }
}

/// The attempt of a telemetry, progress or logs stream.
pub fn attempt_of(event: &EventView) -> Option<i64> {
    event.stream.rsplit('/').next()?.parse().ok()
}

/// Whether a view's rows may have changed by this event, beyond what the fold does: read them again.
pub fn changes_rows(event: &EventView) -> bool {
    !matches!(kind(event), "telemetry" | "progress" | "logs")
}

/// Folds an event into the row of its job. True when the row changed.
pub fn fold_job(row: &mut Row, event: &EventView) -> bool {
    if job_of(event).as_deref() != Some(row.text("job").as_str()) {
        return false;
    }
    let payload = &event.payload;
    let attempt = payload.get("attempt").and_then(Value::as_i64).or_else(|| attempt_of(event));
    if let (Some(attempt), Some(current)) = (attempt, row.whole("attempt"))
        && attempt > 0
        && attempt < current
    {
        return false; // A superseded attempt changes nothing.
    }
    let at = || Value::String(event.occurred_at.to_string());
    match event.event_type.as_str() {
        "job.queued" => phase(row, "queued", "queued"),
        "job.claimed" => {
            phase(row, "running", "claimed");
            row.set("attempt", attempt);
            row.set("claimed_at", at());
            for column in ["progress_done", "progress_total", "progress_failed", "progress_phase"] {
                row.set(column, Value::Null);
            }
        }
        "job.serving" => {
            phase(row, "running", "serving");
            row.set("serving_at", at());
        }
        "job.running" => {
            phase(row, "running", "running");
            row.set("running_at", at());
        }
        "job.completed" => ended(row, "completed", "completed", at()),
        "job.failed" => {
            ended(row, "failed", "failed", at());
            row.set("error_code", payload.get("code").cloned().unwrap_or_default());
            row.set("error_message", payload.get("message").cloned().unwrap_or_default());
        }
        "job.cancelled" => ended(row, "cancelled", "cancelled", at()),
        "job.lost" => match payload.get("requeue").and_then(Value::as_bool) {
            Some(true) => phase(row, "queued", "queued"),
            _ => ended(row, "failed", "lost", at()),
        },
        "progress.reported" => {
            for (column, field) in [
                ("progress_done", "done"),
                ("progress_total", "total"),
                ("progress_failed", "failed"),
                ("progress_phase", "phase"),
                ("progress_tokens_per_second", "completion_tokens_per_second"),
            ] {
                row.set(column, payload.get(field).cloned().unwrap_or_default());
            }
        }
        _ => return false,
    }
    true
}

fn phase(row: &mut Row, status: &str, phase: &str) {
    row.set("status", status);
    row.set("phase", phase);
}

fn ended(row: &mut Row, status: &str, word: &str, at: Value) {
    phase(row, status, word);
    row.set("finished_at", at);
}

/// Folds an event into the row of its run. True when the row changed.
pub fn fold_run(row: &mut Row, event: &EventView) -> bool {
    if event.stream != row.text("run") {
        return false;
    }
    match event.event_type.as_str() {
        "run.finished" => {
            row.set("status", event.payload.get("outcome").cloned().unwrap_or_default());
            row.set("finished_at", event.occurred_at.to_string());
            true
        }
        _ => false,
    }
}

/// Folds an event into the row of its server. True when the row changed.
pub fn fold_server(row: &mut Row, event: &EventView) -> bool {
    if event.stream != row.text("server") {
        return false;
    }
    match event.event_type.as_str() {
        "server.state_changed" => {
            row.set("state", event.payload.get("state").cloned().unwrap_or_default());
            true
        }
        "server.enrolled" => {
            row.set("agent_version", event.payload.get("agent_version").cloned().unwrap_or_default());
            true
        }
        _ => false,
    }
}

/// The share of a job that is done, 0 to 1; nothing when it cannot be told.
pub fn share_done(row: &Row) -> Option<f64> {
    match row.text("status").as_str() {
        "completed" => return Some(1.0),
        "pending" | "queued" => return Some(0.0),
        _ => {}
    }
    let total = row.number("progress_total").or_else(|| row.number("num_requests"))?;
    let done = row.number("progress_done")?;
    (total > 0.0).then(|| (done / total).clamp(0.0, 1.0))
}

/// The words beside a job's mark: `running 64 %`, `serving`, `failed: tool_failed`, `flagged: few_requests`.
pub fn status_words(row: &Row) -> String {
    let status = row.text("status");
    match (row.mark(), row.text("phase").as_str()) {
        ("running", "running") => match share_done(row) {
            Some(share) => format!("running {:.0}\u{202f}%", (share * 100.0).floor()),
            None => "running".to_owned(),
        },
        ("running", phase) if !phase.is_empty() => phase.to_owned(),
        ("failed", phase) => match row.maybe_text("error_code") {
            Some(code) if !code.is_empty() => format!("failed: {code}"),
            _ if phase == "lost" => "failed: agent silent".to_owned(),
            _ => status,
        },
        ("flagged", _) => match row.list("flags").first() {
            Some(rule) => format!("flagged: {}", rule.replace('_', " ")),
            None => "flagged".to_owned(),
        },
        (mark @ ("simulated" | "imported"), _) => mark.to_owned(),
        _ => status,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    pub(crate) fn event(stream: &str, event_type: &str, payload: Value) -> EventView {
        event_at(7, stream, event_type, payload)
    }

    pub(crate) fn event_at(position: i64, stream: &str, event_type: &str, payload: Value) -> EventView {
        serde_json::from_value(json!({
            "position": position, "stream": stream, "version": 1, "event_id": "e", "type": event_type, "schema_version": 1,
            "occurred_at": "2026-11-29T20:41:07.409Z", "recorded_at": "2026-11-29T20:41:07.500Z", "actor_kind": "agent",
            "actor_id": "a", "leaf": "", "hash": "", "payload": payload
        }))
        .expect("an event")
    }

    fn job() -> Row {
        serde_json::from_value(
            json!({"job": "job/o/p/w/1/c8", "status": "pending", "phase": "pending", "num_requests": 200}),
        )
        .expect("a row")
    }

    #[test]
    fn a_job_moves_from_pending_to_completed() {
        let mut row = job();
        let mut seen = Vec::new();
        for (event_type, payload) in [
            ("job.queued", json!({})),
            ("job.claimed", json!({"attempt": 1, "agent": "a", "lease_s": 60})),
            ("job.serving", json!({"attempt": 1})),
            ("job.running", json!({"attempt": 1})),
            ("job.completed", json!({"attempt": 1})),
        ] {
            assert!(fold_job(&mut row, &event("job/o/p/w/1/c8", event_type, payload)));
            seen.push(row.text("phase"));
        }
        assert_eq!(seen, ["queued", "claimed", "serving", "running", "completed"]);
        assert_eq!(row.text("status"), "completed");
    }

    #[test]
    fn progress_is_shown_in_per_cent_and_never_rounded_up_to_done() {
        let mut row = job();
        fold_job(&mut row, &event("job/o/p/w/1/c8", "job.claimed", json!({"attempt": 1})));
        fold_job(&mut row, &event("job/o/p/w/1/c8", "job.running", json!({"attempt": 1})));
        fold_job(
            &mut row,
            &event("progress/o/p/w/1/c8/1", "progress.reported", json!({"done": 199, "total": 200})),
        );
        assert_eq!(status_words(&row), "running 99\u{202f}%");
    }

    #[test]
    fn a_superseded_attempt_changes_nothing() {
        let mut row = job();
        fold_job(&mut row, &event("job/o/p/w/1/c8", "job.claimed", json!({"attempt": 2})));
        assert!(!fold_job(
            &mut row,
            &event("job/o/p/w/1/c8", "job.failed", json!({"attempt": 1, "code": "x"}))
        ));
        assert_eq!(row.text("phase"), "claimed");
    }

    #[test]
    fn another_jobs_event_changes_nothing() {
        assert!(!fold_job(&mut job(), &event("job/o/p/w/1/c16", "job.completed", json!({"attempt": 1}))));
    }
}
