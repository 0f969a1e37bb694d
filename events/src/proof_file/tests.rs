use super::*;
use crate::envelope::Recorded;
use crate::merkle::{self, ProofNode};
use crate::tool_output::ToolOutputRecorded;
use serde_json::json;

const RESULT: &str = "job/o/p/w/1/c1";

fn golden() -> String {
    let golden = include_str!("../../tests/golden/tool_output.recorded.v2.json");
    serde_json::from_str::<serde_json::Value>(golden).expect("JSON").to_string()
}

fn event(position: i64, stream: &str, event_type: &str, schema_version: i32, payload: &str) -> Recorded {
    let mut event: Recorded = serde_json::from_value(json!({
        "position": position, "stream": stream, "version": 1, "event_id": format!("00000000-0000-7000-8000-00000000000{position}"),
        "event_type": event_type, "schema_version": schema_version, "org": "o", "actor": {"kind": "system", "id": "x"},
        "causation_id": null, "correlation_id": null, "occurred_at": "2026-11-29T20:41:07.409Z",
        "recorded_at": "2026-11-29T20:41:07.500Z", "payload": payload, "leaf": "0".repeat(64), "hash": format!("{position:064x}")
    }))
    .expect("an event");
    event.leaf = event.computed_leaf();
    event
}

/// The file about these events, of which each but the last stands for the link of the same place.
fn of(events: Vec<Recorded>, links: &[&str]) -> ProofFile {
    let leaves: Vec<[u8; 32]> = events.iter().map(|e| e.leaf).collect();
    let checkpoint: merkle::Checkpoint = serde_json::from_value(json!({
        "position": events.len(), "hash": "0".repeat(64), "previous_position": 0,
        "root": hexadecimal::encode(&merkle::root(&leaves)), "public_key": "ab".repeat(32), "signature": "0".repeat(128)
    }))
    .expect("a checkpoint");
    let chain = links.iter().zip(&events).map(|(link, event)| ChainLink {
        link: (*link).to_owned(),
        key: event.stream.to_string(),
        position: event.position,
        hash: hexadecimal::encode(&event.hash),
        recorded_at: event.recorded_at,
    });
    let chain = chain.collect();
    let proofs = events.into_iter().enumerate().map(|(place, event)| {
        let path = merkle::path(&leaves, place).expect("a path").into_iter().map(ProofNode).collect();
        Proof { event, path, checkpoint: checkpoint.clone() }
    });
    let output: ToolOutputRecorded = serde_json::from_str(&golden()).expect("an output");
    ProofFile {
        format: FORMAT.into(),
        result: RESULT.into(),
        metric: "ttft_p50_ms".into(),
        value: output.summary.figures.ttft_ms.and_then(|ttft| ttft.p50),
        unit: "ms".into(),
        calculation: None,
        command: output.invocation.argv,
        chain,
        proofs: proofs.collect(),
        samples: None,
        line: None,
    }
}

const LINKS: [&str; 6] = ["project", "workload", "scenario", "run", "job", "metrics"];

fn events() -> Vec<Recorded> {
    vec![
        event(1, "project/o/p", "project.created", 1, "{}"),
        event(2, "workload/o/p/w", "workload.created", 1, "{}"),
        event(3, "scenario/o/p/w/c1", "scenario.defined", 1, "{}"),
        event(4, "run/o/p/w/1", "run.created", 1, "{}"),
        event(5, RESULT, "job.created", 1, "{}"),
        event(6, RESULT, "tool_output.recorded", 2, &golden()),
    ]
}

fn file() -> ProofFile {
    of(events(), &LINKS)
}

#[test]
fn a_proof_holds_also_after_it_was_copied() {
    let text = serde_json::to_string(&file()).expect("text");
    let read: ProofFile = serde_json::from_str(&text).expect("a proof");
    assert_eq!(read, file());
    let held = Held { events: 6, checkpoint: 6, key: "ab".repeat(32), figures_at: 6, value_checked: true };
    assert_eq!(read.check(), Ok(held));
}

#[test]
fn a_changed_payload_is_found_at_its_position() {
    let mut file = file();
    file.proofs[1].event.payload = "{\"a\":1}".into();
    assert_eq!(file.check(), Err(Doubt::Event { position: 2, error: ProofError::Leaf }));
}

#[test]
fn a_chain_that_names_another_event_is_found() {
    let mut file = file();
    file.chain[1].hash = "f".repeat(64);
    assert!(matches!(file.check(), Err(Doubt::Chain { position: 2, .. })));
    let mut file = self::file();
    file.chain[1].key = "workload/o/p/other".into();
    assert!(matches!(file.check(), Err(Doubt::Link { .. })));
    let file = ProofFile { result: "job/o/p/w/2/c1".into(), ..self::file() };
    assert!(matches!(file.check(), Err(Doubt::Link { .. })), "the events are of another run");
}

#[test]
fn a_proof_without_events_proves_nothing() {
    assert_eq!(ProofFile { chain: Vec::new(), proofs: Vec::new(), ..file() }.check(), Err(Doubt::Empty));
}

#[test]
fn a_proof_without_the_event_of_its_figures_does_not_hold() {
    let without = of(events().into_iter().take(5).collect(), &LINKS[..5]);
    assert_eq!(without.check(), Err(Doubt::NoFigures(RESULT.into())));
    let mut elsewhere = file();
    elsewhere.chain[5].position = 5;
    elsewhere.chain[5].hash = format!("{:064x}", 5);
    assert_eq!(elsewhere.check(), Err(Doubt::NoFigures(RESULT.into())));
    let mut short = file();
    short.chain.remove(3);
    assert!(matches!(short.check(), Err(Doubt::Missing { link, .. }) if link == "run"));
}

#[test]
fn a_figure_a_unit_or_a_command_line_that_is_not_the_events_is_found() {
    let doubled = ProofFile { value: file().value.map(|value| value * 2.0), ..file() };
    assert!(matches!(doubled.check(), Err(Doubt::Value { position: 6, .. })));
    let in_seconds = ProofFile { unit: "s".into(), ..file() };
    assert!(matches!(in_seconds.check(), Err(Doubt::Unit { .. })));
    let otherwise = ProofFile { command: vec!["metrumbench-llm".into(), "--cheat".into()], ..file() };
    assert_eq!(otherwise.check(), Err(Doubt::Command { position: 6 }));
}

#[test]
fn a_figure_that_takes_more_than_the_summary_is_not_called_checked() {
    let metric = "cost_per_million_output_tokens_usd";
    let unit = metrics::metric(metric).expect("a metric").unit.to_owned();
    let cost = ProofFile { metric: metric.into(), value: Some(0.01), unit, ..file() };
    assert!(matches!(cost.check(), Ok(Held { value_checked: false, .. })));
}

#[test]
fn another_form_of_file_is_named() {
    let other = ProofFile { format: "benchtrail.proof.v2".into(), ..file() };
    assert_eq!(other.check(), Err(Doubt::Format("benchtrail.proof.v2".into())));
}

/// The same with another last event; leaves and paths are left as they are.
fn file_of(stream: &str, event_type: &str, payload: serde_json::Value) -> ProofFile {
    let mut file = file();
    let event = &mut file.proofs[5].event;
    event.event_type = event_type.into();
    event.stream = stream.parse().expect("a stream");
    event.payload = payload.to_string();
    (file.result, file.command) = (stream.into(), Vec::new());
    file
}

#[test]
fn a_point_of_a_chart_is_the_mean_of_its_samples() {
    let sample = |second: u32, power: f64| json!({"at": format!("2026-11-29T20:41:{second:02}Z"), "gpus": [{"gpu": 1, "power_w": power}], "system": {}});
    let payload = json!({"seq": 1, "interval_ms": 1000, "samples": [sample(1, 100.0), sample(2, 200.0), sample(3, 600.0)]});
    let mut file = file_of("telemetry/o/p/w/1/c1/1", "telemetry.sampled", payload);
    let at = |second: u32| format!("2026-11-29T20:41:{second:02}Z").parse().expect("a time");
    let samples = |from: u32, to: u32, count: usize| Samples {
        source: "gpu1".into(),
        metric: "power_w".into(),
        from: at(from),
        to: at(to),
        count,
    };
    (file.metric, file.unit, file.value) = ("power_w".into(), "W".into(), Some(150.0));
    assert_eq!(file.check_samples(&samples(1, 2, 2)), Ok(true));
    // Another stretch, a sample left out, another source.
    assert!(matches!(
        file.check_samples(&samples(2, 3, 2)),
        Err(Doubt::Samples { found: Some(400.0), there: 2, .. })
    ));
    assert!(matches!(file.check_samples(&samples(1, 2, 3)), Err(Doubt::Samples { there: 2, .. })));
    let other = Samples { source: "gpu0".into(), ..samples(1, 2, 2) };
    assert!(matches!(file.check_samples(&other), Err(Doubt::Samples { there: 0, found: None, .. })));
    // Events of another attempt do not count.
    file.result = "telemetry/o/p/w/1/c1/2".into();
    assert!(matches!(file.check_samples(&samples(1, 2, 2)), Err(Doubt::Samples { there: 0, .. })));
}

#[test]
fn a_request_is_a_line_of_the_file_that_an_event_names() {
    use sha2::{Digest, Sha256};
    let content = "{\"response_time_ms\":7.5}\n{\"response_time_ms\":9.25}\n";
    let sha256 = hexadecimal::encode(&Sha256::digest(content));
    let job = "job/o/p/w/1/c1";
    let stored = json!({"sha256": sha256, "size": content.len(), "media_type": "application/x-ndjson", "purpose": "request_log", "job": job});
    let mut file = file_of(job, "blob.stored", stored);
    (file.metric, file.value) = ("response_time_ms".into(), Some(9.25));
    let line = FileLine {
        sha256: sha256.clone(),
        number: 2,
        text: content.lines().nth(1).unwrap_or_default().into(),
        content: Some(content.into()),
    };
    assert_eq!(file.check_line(&line, None), Ok(true));
    let apart = FileLine { content: None, ..line.clone() };
    assert_eq!(file.check_line(&apart, None), Ok(false));
    assert_eq!(file.check_line(&apart, Some(content.as_bytes())), Ok(true));
    let other_file = file.check_line(&apart, Some(b"{}"));
    assert!(matches!(other_file, Err(Doubt::Line(LineDoubt::OtherFile { .. }))), "{other_file:?}");
    let moved = FileLine { number: 1, ..line.clone() };
    assert_eq!(file.check_line(&moved, None), Err(Doubt::Line(LineDoubt::OtherLine(1))));
    for number in [0, 9] {
        let none = FileLine { number, ..line.clone() };
        assert_eq!(file.check_line(&none, None), Err(Doubt::Line(LineDoubt::OtherLine(number))));
    }
    file.value = Some(9.0);
    assert!(matches!(file.check_line(&line, None), Err(Doubt::LineValue { found: Some(9.25), .. })));
    file.result = "job/o/p/w/1/c2".into();
    assert_eq!(file.check_line(&line, None), Err(Doubt::Line(LineDoubt::Unnamed(sha256))));
}
