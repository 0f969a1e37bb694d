//! The evidence behind a result: the events' hashes, what served it, how complete telemetry and logs are.

use events::api::{EventView, History};
use leptos::prelude::*;

use super::proof::{event_href, once};
use crate::browser::remote::use_rows;
use crate::format::{count, counted, maybe_count, short_hash};
use crate::row::Row;
use crate::state::filters::percent;
use crate::state::result_key::stream_of;

/// The evidence behind a result: who made it, with what, and how complete what was recorded is.
pub(super) fn facts(history: &History, job: &str, row: &Row) -> AnyView {
    // Of several attempts the last one counts.
    let last = |wanted: &dyn Fn(&str) -> bool| history.events.iter().rev().find(|e| wanted(&e.event_type));
    let output = last(&|kind| kind.starts_with("tool_output."));
    let completed = last(&|kind| kind == "job.completed");
    let of = |event: Option<&EventView>, field: &str| {
        event.and_then(|e| e.payload.get(field)).and_then(serde_json::Value::as_str).map(str::to_owned)
    };
    let text = |path: &str| {
        output
            .and_then(|e| e.payload.pointer(path))
            .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
    };
    let mut pairs: Vec<(&str, AnyView)> = Vec::new();
    if let Some(event) = output {
        pairs.push(("Result", view! { <a class="link" href=event_href(event.position) data-noscroll="">{event.event_type.clone()}</a> }.into_any()));
        pairs.push((
            "Hash",
            view! { <span class="key" title=event.hash.clone()>{short_hash(&event.hash)}</span> }.into_any(),
        ));
        pairs.push(("Recorded", event.recorded_at.to_string().into_any()));
    }
    if let Some(sha) = text("/file_sha256") {
        let form = text("/format").unwrap_or_default().replace('_', " ");
        let file = format!("/api/blobs/{}/{sha}", row.text("org"));
        pairs.push(("File", view! { <a class="key link" href=file rel="external" title=sha.clone()>{short_hash(&sha)}</a>" "{form} }.into_any()));
    }
    if let Some(tool) = text("/tool_code") {
        pairs.push((
            "Tool",
            once(&format!("{tool} {}", text("/load/tool_version").unwrap_or_default())).into_any(),
        ));
    }
    if let Some(tool) = text("/invocation/tool_code") {
        pairs.push((
            "Tool",
            once(&format!("{tool} {}", text("/invocation/tool_version").unwrap_or_default())).into_any(),
        ));
    }
    if let Some(sha) = text("/invocation/summary_sha256") {
        pairs.push((
            "Summary",
            view! { <span class="key" title=sha.clone()>{short_hash(&sha)}</span> }.into_any(),
        ));
    }
    if let Some(framework) = row.maybe_text("framework_code") {
        let version = row.maybe_text("framework_version").unwrap_or_default();
        let image = of(last(&|kind| kind == "job.created"), "container_image");
        let image =
            image.map(|image| view! { <span class="key quiet wrap-any">{format!(" {image}")}</span> });
        pairs.push((
            "Served by",
            view! { {format!("{framework} {version}").trim().to_owned()}{image} }.into_any(),
        ));
    }
    if let Some(revision) = of(last(&|kind| kind == "job.running"), "weights_revision") {
        pairs.push((
            "Weights",
            view! { <span class="key" title=revision.clone()>{short_hash(&revision)}</span> }.into_any(),
        ));
    }
    let number =
        |field: &str| completed.and_then(|e| e.payload.get(field)).and_then(serde_json::Value::as_i64);
    if let Some(taken) = number("telemetry_samples") {
        pairs.push(("Telemetry", view! { <Telemetry job=job.to_owned() taken/> }.into_any()));
    }
    if let Some(lines) = number("log_lines") {
        let logs = format!("/projects/{job}#logs");
        let words = format!("{} read by the agent", counted(lines, "line"));
        pairs.push(("Logs", view! { <a class="link" href=logs>{words}</a> }.into_any()));
    }
    if let Some(offset) = text("/summary/host/clock_offset_ms").filter(|o| o != "null") {
        pairs.push(("Clock", format!("{offset} ms from NTP").into_any()));
    } else if completed.is_some() {
        pairs.push(("Clock", "not known: the summary holds no offset".into_any()));
    }
    // A file of another tool may not say: then nothing is said, not 0.
    let requests = ["requests_succeeded", "requests_failed"].map(|key| row.whole(key));
    if requests.iter().any(Option::is_some) {
        let [succeeded, failed] = requests.map(maybe_count);
        pairs.push(("Requests", format!("{succeeded} succeeded, {failed} failed").into_any()));
    }
    pairs.into_iter().map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> }).collect_view().into_any()
}

/// How many samples of how many there are, and whether one is missing.
#[component]
fn Telemetry(job: String, taken: i64) -> impl IntoView {
    let request = format!(
        "/api/v_telemetry_job_summary?job=eq.{}&order=attempt.desc&limit=1&select=sample_count,complete,gaps",
        percent(&stream_of(&job))
    );
    let rows = use_rows(move || Some(request.clone()));
    move || words(rows.first().as_ref(), taken)
}

/// The samples in words: those in the window of measurement, all that the agent took, and what is missing.
fn words(summary: Option<&Row>, taken: i64) -> String {
    let taken = format!("{} taken by the agent", counted(taken, "sample"));
    let Some(summary) = summary else { return taken };
    let within = summary.whole("sample_count").map(|n| format!("{} of them while it was measured", count(n)));
    let missing = match (summary.is("complete"), summary.whole("gaps")) {
        (true, _) => "all in the log".to_owned(),
        (false, Some(gaps)) if gaps > 0 => format!("incomplete: {}", counted(gaps, "gap")),
        (false, _) => "incomplete".to_owned(),
    };
    [Some(taken), within, Some(missing)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn missing_samples_are_named() {
        let row = |value| serde_json::from_value::<Row>(value).expect("a row");
        let whole = row(json!({"sample_count": 20, "complete": true, "gaps": 0}));
        assert_eq!(
            words(Some(&whole), 24),
            "24 samples taken by the agent, 20 of them while it was measured, all in the log"
        );
        let gap = row(json!({"sample_count": 20, "complete": false, "gaps": 1}));
        assert!(words(Some(&gap), 24).ends_with("incomplete: 1 gap"), "{}", words(Some(&gap), 24));
        assert_eq!(words(None, 1), "1 sample taken by the agent");
    }
}
