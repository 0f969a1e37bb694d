//! The views can be thrown away and made again from the log, byte for byte, while reads go on; and the log shows tampering.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
