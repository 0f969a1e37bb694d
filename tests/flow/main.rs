//! Runs through the real plant, the real agent and the real llama.cpp. What a run leaves is looked at as a whole, and one of
//! its telemetry samples is followed through the ten verbs in their order:
//! sample → report → accept → decide → append → relay → project → query → stream → draw.

mod tools;
mod verbs;

use std::collections::BTreeMap;

use events::api::EventView;
use serde_json::{Value, json};
use support::agent::Agent;
use support::control_plane::{ControlPlane, ORG, children_named};
use support::live::Live;
use support::model_server::ModelServer;
use support::{database, eventually, workloads};

#[tokio::test]
async fn one_benchmark_from_its_sample_to_the_page() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let agent = Agent::start(&plane, &admin, "flow-host").await;
    let mut server = Live::open(&admin, &format!("{ORG}:server"), 0).await;
    server
        .until("the server online", |e| {
            e.event_type == "server.state_changed" && e.payload["state"] == "online"
        })
        .await;

    // One command, its events in one append.
    let workload = workloads::llama_cpp(&[1, 2], 6, 16);
    let (run, position) = agent.execute(&admin, "flow", workload).await;
    let jobs: Vec<Value> =
        admin.rows_at_least("/api/v_jobs?project_code=eq.flow&order=ordinal", position).await;
    let codes: Vec<&str> = jobs.iter().filter_map(|j| j["scenario_code"].as_str()).collect();
    assert_eq!(codes, ["c1-isl64-osl16", "c2-isl64-osl16"]);

    // Everything of this run, as it happens.
    let path = run.trim_start_matches("run/");
    let mut live = Live::open(&admin, path, 0).await;
    let seen = live.until("the end of the run", |e| e.event_type == "run.finished").await;
    assert_phases(&seen, "c1-isl64-osl16");
    assert_phases(&seen, "c2-isl64-osl16");
    let finished = seen.last().expect("run.finished");
    assert_eq!(finished.payload["outcome"], "completed", "{:?}", failures(&seen));

    // A sample a second, without a gap, every one inside its attempt's window.
    for code in codes {
        assert_samples(&seen, code);
    }
    assert!(
        seen.iter().any(|e| e.event_type == "progress.reported"),
        "the load generator's progress is live"
    );
    for source in ["framework", "tool", "agent"] {
        assert!(
            seen.iter().any(|e| e.event_type == "log.lines" && e.payload["source"] == source),
            "log lines of the {source}"
        );
    }

    // The result, and the telemetry's summary.
    let path = "/api/v_metrumbench_llm_outputs?project_code=eq.flow&order=concurrency";
    let outputs = admin.rows_at_least(path, finished.position).await;
    assert_eq!(outputs.len(), 2);
    for output in &outputs {
        assert_eq!(output["requests_succeeded"].as_f64(), Some(6.0), "{output}");
        assert_eq!(output["requests_failed"].as_f64(), Some(0.0), "{output}");
        assert_eq!(output["simulated"], json!(false));
        let (tokens, window) = (number(output, "completion_tokens_total"), number(output, "window_s"));
        let reported = number(output, "completion_tokens_per_second");
        assert!(
            (reported - tokens / window).abs() <= reported * 1e-6,
            "{tokens} ÷ {window} is not {reported}"
        );
        assert!(
            number(output, "ttft_p50_ms") > 0.0
                && number(output, "ttft_p50_ms") < number(output, "response_time_p50_ms")
        );
    }
    let results = admin.rows("/api/v_benchmark_results?project_code=eq.flow").await;
    assert_eq!(results.len(), 2);
    let telemetry = admin.rows("/api/v_telemetry_job_summary?project_code=eq.flow").await;
    assert_eq!(telemetry.len(), 2);
    for row in &telemetry {
        assert!(number(row, "sample_count") >= 1.0 && row["complete"] == json!(true), "{row}");
        assert!(number(row, "avg_system_ram_pct") > 0.0, "{row}");
    }

    // Provenance: project → … → metrics, each with its position, in order.
    let job = format!("job/{path}/c1-isl64-osl16", path = run.trim_start_matches("run/"));
    let history = admin.provenance(&job).await;
    let links: Vec<&str> = history.chain.iter().map(|l| l.link.as_str()).collect();
    assert_eq!(links, ["project", "workload", "scenario", "run", "job", "invocation", "metrics"]);
    assert!(history.chain.iter().all(|l| l.position > 0 && l.hash.len() == 64));
    assert!(history.events.iter().any(|e| e.event_type == "tool_output.recorded"));

    verbs::walk(&plane, &admin, &seen, job.trim_start_matches("job/")).await;

    // The log is gapless and its chain fits.
    let pool = database::open(&plane.database_url()).await;
    database::assert_gapless(&pool).await;
    let (status, text) = plane.command(&["verify"]).await;
    assert!(status.success(), "verify: {text}");
}

#[tokio::test]
async fn an_endpoint_that_runs_already_is_measured_and_no_server_is_started() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let mut endpoint = ModelServer::start(&plane.log_file("llama-server")).await;
    let agent = Agent::start(&plane, &admin, "flow-host").await;
    let mut server = Live::open(&admin, &format!("{ORG}:server"), 0).await;
    server.until("the server online", |e| e.payload["state"] == "online").await;

    let (run, _) = agent.execute(&admin, "flow", workloads::endpoint(&endpoint.url, &[2], 6, 16)).await;
    let mut live = Live::open(&admin, run.trim_start_matches("run/"), 0).await;
    let seen = live.until("the end of the run", |e| e.event_type == "run.finished").await;
    let finished = seen.last().expect("run.finished");
    assert_eq!(finished.payload["outcome"], "completed", "{:?}", failures(&seen));
    assert_phases(&seen, "c2-isl64-osl16");
    let serving = seen.iter().find(|e| e.event_type == "job.serving").expect("job.serving");
    assert_eq!(serving.payload["serve_argv"], json!([]), "nothing was started");
    assert_eq!(serving.payload["endpoint_urls"], json!([endpoint.url]));
    let path = "/api/v_benchmark_results?project_code=eq.flow";
    let results = admin.rows_at_least(path, finished.position).await;
    assert_eq!(results[0]["requests_succeeded"], json!(6));
    assert_eq!(results[0]["simulated"], json!(false));
    // It was not ours to stop.
    endpoint.assert_running();
}

#[tokio::test]
async fn a_kept_model_server_serves_every_job_of_its_run_and_ends_with_it() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let agent = Agent::start(&plane, &admin, "flow-host").await;
    let mut server = Live::open(&admin, &format!("{ORG}:server"), 0).await;
    server.until("the server online", |e| e.payload["state"] == "online").await;
    let mut workload = workloads::refserver(&[1, 2], 4, 8);
    workload["p_keep_server"] = json!(true);
    let (run, _) = agent.execute(&admin, "flow", workload).await;
    let mut live = Live::open(&admin, run.trim_start_matches("run/"), 0).await;
    let seen = live.until("the end of the run", |e| e.event_type == "run.finished").await;
    assert_eq!(seen.last().expect("run.finished").payload["outcome"], "completed", "{:?}", failures(&seen));
    let serving: Vec<&EventView> = seen.iter().filter(|e| e.event_type == "job.serving").collect();
    assert_eq!(serving[0].payload["kept_from"], Value::Null);
    assert_eq!(serving[1].payload["kept_from"], json!(serving[0].stream));
    for what in ["serve_argv", "endpoint_urls"] {
        assert_eq!(serving[0].payload[what], serving[1].payload[what]);
    }
    eventually("the model server to end with its run", || async {
        children_named(agent.pid(), "benchtrail-refs").is_empty().then_some(())
    })
    .await;

    // Not asked for, every job has its own.
    let (run, _) = agent.execute(&admin, "afresh", workloads::refserver(&[1, 2], 4, 8)).await;
    let mut live = Live::open(&admin, run.trim_start_matches("run/"), 0).await;
    let seen = live.until("the end of the run", |e| e.event_type == "run.finished").await;
    assert!(seen.iter().filter(|e| e.event_type == "job.serving").all(|e| e.payload["kept_from"].is_null()));
}

/// The finer phases, in order, each once.
fn assert_phases(seen: &[EventView], scenario: &str) {
    let of_job = |e: &&EventView| e.stream.starts_with("job/") && e.stream.ends_with(&format!("/{scenario}"));
    let types: Vec<&str> = seen
        .iter()
        .filter(of_job)
        .map(|e| e.event_type.as_str())
        .filter(|t| !t.starts_with("quality."))
        .collect();
    assert_eq!(
        types,
        [
            "job.created",
            "job.queued",
            "job.claimed",
            "job.serving",
            "job.running",
            "tool_output.recorded",
            "job.completed"
        ],
        "{scenario}; {:?}",
        failures(seen)
    );
}

/// What the job's agent took is what the log holds: `seq` is 1..=n and the samples are as many as it says.
fn assert_samples(seen: &[EventView], scenario: &str) {
    let of_job = |kind: &str| {
        let (start, middle) = (format!("{kind}/"), format!("/{scenario}"));
        seen.iter()
            .filter(move |e| e.stream.starts_with(&start) && e.stream.contains(&middle))
            .collect::<Vec<_>>()
    };
    let sampled: Vec<&EventView> = of_job("telemetry");
    let seqs: Vec<u64> = sampled.iter().filter_map(|e| e.payload["seq"].as_u64()).collect();
    assert_eq!(
        seqs,
        (1..=seqs.len() as u64).collect::<Vec<_>>(),
        "{scenario}: a telemetry report is missing"
    );
    let samples: usize = sampled.iter().map(|e| e.payload["samples"].as_array().map_or(0, Vec::len)).sum();
    let completed = of_job("job").into_iter().find(|e| e.event_type == "job.completed").expect("completed");
    assert_eq!(completed.payload["telemetry_samples"].as_u64(), Some(samples as u64), "{scenario}");
    let claimed = of_job("job").into_iter().find(|e| e.event_type == "job.claimed").expect("claimed");
    for event in sampled {
        assert!(
            event.occurred_at >= claimed.recorded_at || event.occurred_at >= claimed.occurred_at,
            "before the window"
        );
        assert!(event.occurred_at <= completed.occurred_at, "after the window");
    }
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for event in of_job("logs") {
        let source = event.payload["source"].as_str().unwrap_or_default().to_owned();
        let next = lines.entry(source.clone()).or_insert(1);
        assert_eq!(
            event.payload["first_line"].as_u64(),
            Some(*next),
            "{scenario}: lines of {source} are missing"
        );
        *next += event.payload["lines"].as_array().map_or(0, Vec::len) as u64;
    }
}

fn failures(seen: &[EventView]) -> Vec<String> {
    seen.iter().filter(|e| e.event_type == "job.failed").map(|e| e.payload.to_string()).collect()
}

fn number(row: &Value, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} is not a number in {row}"))
}
