//! The views can be thrown away and made again from the log, byte for byte, while reads go on; and the log shows tampering.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use events::proof_file::{FORMAT, ProofFile};
use serde_json::Value;
use support::agent::Agent;
use support::control_plane::ControlPlane;
use support::live::Live;
use support::log_copy::LogCopy;
use support::workloads;

/// A plant with one finished (simulated) run in its log.
async fn after_a_run() -> (ControlPlane, Agent, support::api::Api) {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let agent = Agent::start(&plane, &admin, "replay-host").await;
    let mut server = Live::open(&admin, "main:server", 0).await;
    server.until("the server online", |e| e.payload["state"] == "online").await;
    let (run, _) = agent.execute(&admin, "replay", workloads::refserver(&[1, 4], 20, 8)).await;
    let mut live = Live::open(&admin, run.trim_start_matches("run/"), 0).await;
    live.until("the end of the run", |e| e.event_type == "run.finished").await;
    (plane, agent, admin)
}

/// The log's newest position. The views follow it one by one, so rows are compared only from here on.
async fn head(admin: &support::api::Api) -> i64 {
    let newest = admin.rows("/api/v_events?select=position&order=position.desc&limit=1").await;
    newest[0]["position"].as_i64().expect("a position")
}

/// Rows as text, in an order of their own: a view without `order` promises none.
fn sorted(rows: Vec<Value>) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
    rows.sort();
    rows
}

#[tokio::test]
async fn rebuilt_views_equal_the_live_ones_while_reads_go_on() {
    let (plane, mut agent, admin) = after_a_run().await;
    agent.stop();
    let views = [
        "v_projects",
        "v_workloads",
        "v_scenarios",
        "v_runs",
        "v_jobs",
        "v_metrumbench_llm_outputs",
        "v_benchmark_results",
        "v_telemetry_job_summary",
        "v_telemetry_per_gpu_summary",
        "v_telemetry_buckets",
        "v_log_lines",
    ];
    let last = head(&admin).await;
    let mut before: Vec<Vec<String>> = Vec::new();
    for view in views {
        before.push(sorted(admin.rows_at_least(&format!("/api/{view}"), last).await));
    }

    // Readers that never stop, and never see fewer rows than before.
    let (stop, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let reader = tokio::spawn({
        let (admin, stop, reads) = (admin.clone(), stop.clone(), reads.clone());
        async move {
            while !stop.load(Ordering::Relaxed) {
                let rows = admin.rows("/api/v_benchmark_results").await;
                assert_eq!(rows.len(), 2, "a reader saw a view without its rows");
                reads.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let (status, text) = plane.command(&["rebuild"]).await;
    stop.store(true, Ordering::Relaxed);
    reader.await.expect("no reader failed");
    assert!(status.success(), "{text}");
    assert!(reads.load(Ordering::Relaxed) > 0, "reads went on");

    for (view, before) in views.iter().zip(before) {
        let after = sorted(admin.rows_at_least(&format!("/api/{view}"), last).await);
        assert_eq!(after, before, "{view} differs after the rebuild");
    }
    let (status, text) = plane.command(&["verify"]).await;
    assert!(status.success(), "{text}");
}

#[tokio::test]
async fn a_flipped_byte_is_found_at_its_position_and_a_rewritten_log_by_a_checkpoint_kept_elsewhere() {
    let (plane, mut agent, admin) = after_a_run().await;
    agent.stop();
    let kept = plane.log_file("kept-checkpoint");
    let checkpoint = admin.post("/api/rpc/create_checkpoint", &serde_json::json!({})).await;
    std::fs::write(&kept, checkpoint.ok::<Value>().to_string()).expect("kept");
    let with_kept = ["verify", "--checkpoint", kept.to_str().expect("UTF-8")];

    let copy = LogCopy::of(&plane).await;
    let (status, text) = plane.command_on(&copy.url, &with_kept).await;
    assert!(status.success(), "the copy fits: {text}");
    // A range that leaves the checkpoint out compares nothing with it, which must not look like a check that passed.
    let (status, text) = plane.command_on(&copy.url, &[&with_kept[..], &["--to", "1"]].concat()).await;
    assert_eq!(status.code(), Some(2), "{text}");
    assert!(text.contains("leaves out"), "{text}");

    // Consistent in itself, with another figure in it.
    let victim = copy.head().await / 2;
    copy.rewrite_from(victim, "{}").await;
    let (status, text) = plane.command_on(&copy.url, &["verify"]).await;
    assert!(status.success(), "on its own the rewritten log is consistent: {text}");
    let (status, text) = plane.command_on(&copy.url, &with_kept).await;
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains("rewritten"), "{text}");

    copy.flip_a_byte(victim).await;
    let (status, text) = plane.command_on(&copy.url, &["verify"]).await;
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains(&format!("position {victim}")), "position {victim} is named: {text}");

    let (status, text) = plane.command(&with_kept).await;
    assert!(status.success(), "the log itself is untouched: {text}");
}

#[tokio::test]
async fn a_figures_proof_holds_without_the_log_and_not_once_it_is_changed() {
    let (plane, mut agent, admin) = after_a_run().await;
    agent.stop();
    let last = head(&admin).await;
    let result =
        admin.rows_at_least("/api/v_benchmark_results?order=concurrency&limit=1", last).await.remove(0);
    let job = result["job"].as_str().expect("a job");
    let history = admin.provenance(job).await;
    let mut proofs = Vec::new();
    for event in &history.events {
        let proved: Value = admin.get(&format!("/api/proof?position={}", event.position)).await.ok();
        proofs.push(serde_json::from_value(proved["proof"].clone()).expect("a proof"));
    }
    let file = ProofFile {
        format: FORMAT.to_owned(),
        result: job.to_owned(),
        metric: "ttft_p50_ms".to_owned(),
        value: result["ttft_p50_ms"].as_f64(),
        unit: "ms".to_owned(),
        calculation: None,
        command: Vec::new(),
        chain: history.chain,
        proofs,
        samples: None,
        line: None,
    };
    let path = plane.log_file("proof");
    let checked = async |file: &ProofFile, more: &[&str]| {
        std::fs::write(&path, serde_json::to_string(file).expect("JSON")).expect("written");
        let args = [&["verify", "--proof", path.to_str().expect("UTF-8")], more].concat();
        // No database at this address: nothing but the file is looked at.
        plane.command_on("postgres://nobody@127.0.0.1:1/none", &args).await
    };
    let (status, text) = checked(&file, &[]).await;
    assert!(status.success(), "{text}");
    assert!(text.contains("The proof holds"), "{text}");

    let faster = ProofFile { value: file.value.map(|value| value / 2.0), ..file.clone() };
    let (status, text) = checked(&faster, &[]).await;
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains("ttft_p50_ms"), "{text}");
    // Without the event that has the figures any figure would do.
    let metrics = file.chain.iter().position(|link| link.link == "metrics").expect("a link");
    let mut without = faster.clone();
    let at = without.chain.remove(metrics).position;
    without.proofs.retain(|proof| proof.event.position != at);
    let (status, text) = checked(&without, &[]).await;
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains("no event here holds figures"), "{text}");
    // What takes more than the summary is never called checked.
    let metric = "cost_per_million_output_tokens_usd";
    let unit = events::metrics::metric(metric).expect("a metric").unit.to_owned();
    let cost = ProofFile { metric: metric.to_owned(), value: Some(0.001), unit, ..file.clone() };
    let (status, text) = checked(&cost, &[]).await;
    assert_eq!(status.code(), Some(4), "{text}");
    assert!(text.contains("NOT CHECKED"), "{text}");
    let mut rewritten = file.clone();
    rewritten.proofs[0].event.actor.id = "somebody else".to_owned();
    assert_eq!(checked(&rewritten, &[]).await.0.code(), Some(3));
    let (status, text) = checked(&file, &["--key", &"ab".repeat(32)]).await;
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains("not trusted"), "{text}");

    // The report of the whole run has the events of every chain.
    let run = job.rsplit_once('/').expect("a job's key").0.replacen("job/", "", 1);
    let mut report: Value = admin.get(&format!("/api/report/{run}")).await.ok();
    std::fs::write(&path, report.to_string()).expect("written");
    let verify = ["verify", "--proof", path.to_str().expect("UTF-8")];
    let (status, text) = plane.command_on("postgres://nobody@127.0.0.1:1/none", &verify).await;
    assert!(status.success() && text.contains("The events of the report of run/"), "{text}");
    report["proofs"][0]["event"]["actor"]["id"] = "somebody else".into();
    std::fs::write(&path, report.to_string()).expect("written");
    let (status, text) = plane.command_on("postgres://nobody@127.0.0.1:1/none", &verify).await;
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains("does not hold"), "{text}");
}
