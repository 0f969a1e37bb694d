//! The control plane, NATS, PostgreSQL and the agent are each killed with SIGKILL in the middle of a run, one at a time.
//! Afterwards positions are gapless, what the agent sampled is in the log exactly once, the job ended in a correct
//! state, and nothing acknowledged is lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use events::Timestamp;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use support::agent::Agent;
use support::api::Api;
use support::control_plane::ControlPlane;
use support::database::{self, Stored};
use support::live::Live;
use support::{eventually, workloads};

/// A run that is well under way: the load generator runs and telemetry comes in.
struct MidRun {
    plane: ControlPlane,
    agent: Agent,
    admin: Api,
    /// The run's path: `<org>/<project>/<workload>/<n>`.
    path: String,
}

impl MidRun {
    async fn start(project: &str) -> Self {
        let plane = ControlPlane::start().await;
        let admin = plane.admin().await;
        let agent = Agent::start(&plane, &admin, "fault-host").await;
        let mut server = Live::open(&admin, "main:server", 0).await;
        server.until("the server online", |e| e.payload["state"] == "online").await;
        // Two jobs of about eight seconds each.
        let (run, _) = agent.execute(&admin, project, workloads::slow_refserver(&[1, 2], 30)).await;
        let path = run.trim_start_matches("run/").to_owned();
        let mut live = Live::open(&admin, &path, 0).await;
        live.until("the load generator at work", |e| {
            e.event_type == "progress.reported" && e.payload["done"].as_u64() > Some(2)
        })
        .await;
        live.until("telemetry", |e| e.event_type == "telemetry.sampled").await;
        Self { plane, agent, admin, path }
    }

    /// Waits for the end of the run and checks the log.
    async fn finish(self, outcome: &str) -> BTreeMap<String, Vec<Stored>> {
        let row = eventually("the end of the run", || async {
            let path = format!("/api/v_runs?run=eq.run/{}", self.path);
            let answer = self.admin.get(&path).await;
            let rows: Vec<Value> = answer.status.is_success().then(|| answer.json())?;
            let row = rows.into_iter().next()?;
            matches!(row["status"].as_str(), Some("completed" | "failed" | "cancelled")).then_some(row)
        })
        .await;
        assert_eq!(row["status"], outcome, "{row}");

        let pool = database::open(&self.plane.database_url()).await;
        database::assert_gapless(&pool).await;
        let mut streams: BTreeMap<String, Vec<Stored>> = BTreeMap::new();
        for event in database::events_like(&pool, &format!("%/{}%", self.path)).await {
            streams.entry(event.stream.clone()).or_default().push(event);
        }
        for (stream, events) in &streams {
            if stream.starts_with("telemetry/") {
                let seqs: Vec<u64> = events.iter().filter_map(|e| e.payload["seq"].as_u64()).collect();
                assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{stream}");
            }
        }
        for (stream, events) in streams.iter().filter(|(s, _)| s.starts_with("job/")) {
            for end in events.iter().filter(|e| e.payload.get("telemetry_samples").is_some()) {
                let attempt = end.payload["attempt"].as_u64().expect("an attempt");
                let key = format!("telemetry/{}/{attempt}", stream.trim_start_matches("job/"));
                let logged: usize = streams.get(&key).map_or(0, |events| {
                    events.iter().map(|e| e.payload["samples"].as_array().map_or(0, Vec::len)).sum()
                });
                assert_eq!(
                    end.payload["telemetry_samples"].as_u64(),
                    Some(logged as u64),
                    "{key}: {}",
                    end.payload
                );
            }
        }
        let (status, text) = self.plane.command(&["verify"]).await;
        assert!(status.success(), "verify: {text}");
        drop(self.agent);
        streams
    }
}

fn types(streams: &BTreeMap<String, Vec<Stored>>, path: &str, scenario: &str) -> Vec<String> {
    streams[&format!("job/{path}/{scenario}")]
        .iter()
        .map(|e| e.event_type.clone())
        .filter(|t| !t.starts_with("quality."))
        .collect()
}

const UNDISTURBED: [&str; 7] = [
    "job.created",
    "job.queued",
    "job.claimed",
    "job.serving",
    "job.running",
    "tool_output.recorded",
    "job.completed",
];

fn assert_undisturbed(streams: &BTreeMap<String, Vec<Stored>>, path: &str) {
    for scenario in ["c1-isl64-osl8", "c2-isl64-osl8"] {
        assert_eq!(types(streams, path, scenario), UNDISTURBED, "{scenario}");
    }
}

#[tokio::test]
async fn the_control_plane_is_killed_and_the_run_completes() {
    let mut run = MidRun::start("server-killed").await;
    run.plane.kill();
    run.plane.start_again().await;
    let path = run.path.clone();
    let streams = run.finish("completed").await;
    assert_undisturbed(&streams, &path);
}

#[tokio::test]
async fn nats_is_killed_and_the_run_completes() {
    let run = MidRun::start("nats-killed").await;
    kill(Pid::from_raw(run.plane.nats_pid()), Signal::SIGKILL).expect("nats-server was running");
    let path = run.path.clone();
    let streams = run.finish("completed").await;
    assert_undisturbed(&streams, &path);
}

#[tokio::test]
async fn postgres_is_killed_and_the_run_completes() {
    let run = MidRun::start("postgres-killed").await;
    kill(Pid::from_raw(run.plane.postgres_pid()), Signal::SIGKILL).expect("postgres was running");
    let path = run.path.clone();
    let streams = run.finish("completed").await;
    assert_undisturbed(&streams, &path);
}

#[tokio::test]
async fn the_agent_is_killed_and_its_job_ends_in_a_correct_state() {
    let mut run = MidRun::start("agent-killed").await;
    run.agent.kill();
    run.agent.start_again();
    let path = run.path.clone();
    // The interrupted attempt fails, the job after it still runs.
    let streams = run.finish("failed").await;
    let first = types(&streams, &path, "c1-isl64-osl8");
    assert_eq!(first.last().map(String::as_str), Some("job.failed"), "{first:?}");
    let failed = streams[&format!("job/{path}/c1-isl64-osl8")]
        .iter()
        .find(|e| e.event_type == "job.failed")
        .expect("failed");
    assert_eq!(failed.payload["code"], "agent_restarted");
    assert_eq!(types(&streams, &path, "c2-isl64-osl8"), UNDISTURBED);
}

/// Seconds that the agent sleeps on after the load has ended: more than any rounding.
const ASLEEP: Duration = Duration::from_secs(3);

#[tokio::test]
async fn an_agent_that_reads_the_summary_late_reports_the_window_of_its_load() {
    let run = MidRun::start("agent-asleep").await;
    run.agent.freeze();
    let written = eventually("the summary of the load", || async {
        files_named("summary.jsonl", run.agent.state_dir())
            .into_iter()
            .find_map(|path| path.metadata().ok().filter(|meta| meta.len() > 0)?.modified().ok())
    })
    .await;
    eventually("some time after it", || async { (written.elapsed().ok()? > ASLEEP).then_some(()) }).await;
    run.agent.thaw();
    let row = eventually("the result", || async {
        let path = format!("/api/v_benchmark_results?run=eq.run/{}&scenario_code=eq.c1-isl64-osl8", run.path);
        let answer = run.admin.get(&path).await;
        let rows: Vec<Value> = answer.status.is_success().then(|| answer.json())?;
        rows.into_iter().next()
    })
    .await;
    let path = run.path.clone();
    let streams = run.finish("completed").await;
    let output = streams[&format!("job/{path}/c1-isl64-osl8")]
        .iter()
        .find(|event| event.event_type == "tool_output.recorded")
        .expect("a summary");
    let moment =
        |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok()).expect("a time");
    let ended = moment(&output.payload["summary"]["window_ended_at"]);
    assert_eq!(moment(&row["window_ended_at"]), ended);
    let late = output.occurred_at.unix_timestamp_nanos() / 1000 - i128::from(ended.as_micros());
    assert!(late > ASLEEP.as_micros() as i128, "read {late} µs after the window");
    let opened = moment(&output.payload["summary"]["window_started_at"]);
    let length = output.payload["summary"]["window_s"].as_f64().expect("a window");
    assert!(
        (ended.micros_since(opened) as f64 / 1e6 - length).abs() < 1e-3,
        "{opened} to {ended}: {length} s"
    );
}

/// Files of this name below a folder.
fn files_named(name: &str, folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let found = entries.flat_map(|path| match path.is_dir() {
        true => files_named(name, &path),
        false => vec![path],
    });
    found.filter(|path| path.file_name().is_some_and(|file| file == name)).collect()
}
