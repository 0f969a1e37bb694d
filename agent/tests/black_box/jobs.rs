//! Whole attempts: the real agent program, a stand-in for the control plane, scripts in the place of server and tool.

use crate::support::agent::Agent;
use crate::support::control_plane::{ControlPlane, Kept};
use crate::support::jobs::{endpoint_job, server_job, summary_line, tool};
use events::keys::JobKey;
use events::report::{HeldAttempt, ReportBody, ReportItem};
use events::tool_output::LogSource;

const QUICK: &str = "progress 1; echo 'a line of the tool'; echo one >> \"$requests\"; progress 3; summary";
/// Runs until it is stopped.
const ENDLESS: &str = "progress 1; while :; do echo on; sleep 0.2; done";

fn held(scenario: &str) -> HeldAttempt {
    let job = JobKey {
        org: "acme".into(),
        project: "p".into(),
        workload: "w".into(),
        run: 1,
        scenario: scenario.into(),
    };
    HeldAttempt { job, attempt: 1 }
}

async fn failed(plane: &ControlPlane) -> events::job::JobFailed {
    match plane.until_reported("failed").await.body {
        ReportBody::Failed { failed, .. } => failed,
        other => panic!("{other:?}"),
    }
}

/// Checks that no telemetry report is missing and gives the number of samples in them.
fn samples_without_a_gap(kept: &Kept) -> u64 {
    let seqs = kept.telemetry_seqs();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let samples = |item: &ReportItem| match &item.body {
        ReportBody::Telemetry { telemetry, .. } => telemetry.samples.len() as u64,
        _ => 0,
    };
    kept.accepted.iter().map(samples).sum()
}

#[tokio::test]
async fn a_job_is_carried_out_and_everything_about_it_is_reported() {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool(QUICK), "").await;
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    let completed = match plane.until_reported("completed").await.body {
        ReportBody::Completed { completed, .. } => completed,
        other => panic!("{other:?}"),
    };
    let kept = plane.kept();
    let all = |kind: &str| {
        kept.accepted.iter().filter(|item| item.body.kind() == kind).cloned().collect::<Vec<_>>()
    };

    let ReportBody::Running { running, .. } = &all("running")[0].body else { panic!() };
    assert_eq!(running.tool_version, "metrumbench-llm 9.9.9");
    assert_eq!(running.served_models, ["test-model"]);
    assert!(running.tool_argv[0].ends_with("/bin/metrumbench-llm"));
    assert_eq!(running.tool_argv[1], format!("--url={}", plane.url));

    let ReportBody::ToolOutput { output, .. } = &all("tool_output")[0].body else { panic!() };
    assert_eq!(
        serde_json::to_value(&output.summary).unwrap(),
        serde_json::from_str::<serde_json::Value>(&summary_line()).unwrap()
    );
    assert_eq!(output.invocation.exit_code, Some(0));
    assert_eq!(kept.blobs[&output.invocation.summary_sha256], summary_line().as_bytes());

    let done: Vec<u64> = all("progress")
        .iter()
        .map(|item| match &item.body {
            ReportBody::Progress { progress, .. } => progress.done,
            _ => 0,
        })
        .collect();
    assert_eq!(done, [1, 3]);

    assert_eq!(kept.lines(LogSource::Tool), ["a line of the tool"]);
    let agent_lines = kept.lines(LogSource::Agent);
    assert!(agent_lines.last().unwrap().ends_with(" completed"), "{agent_lines:?}");
    assert_eq!(completed.log_lines, 1 + agent_lines.len() as u64);
    assert_eq!(completed.telemetry_samples, samples_without_a_gap(&kept));

    let purposes: Vec<String> = all("blob")
        .into_iter()
        .map(|item| match item.body {
            ReportBody::Blob { blob, .. } => blob.purpose,
            _ => String::new(),
        })
        .collect();
    for purpose in ["tool_summary", "request_log", "tool_log"] {
        assert!(purposes.iter().any(|p| p == purpose), "{purposes:?}");
    }
    let times: Vec<_> = all("telemetry").iter().map(|item| item.at).collect();
    assert!(times.is_sorted() && times.last() <= kept.accepted.last().map(|item| &item.at));
}

#[tokio::test]
async fn a_control_plane_that_is_away_costs_no_report() {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool("progress 1; sleep 2; progress 3; summary"), "").await;
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    plane.until_reported("running").await;
    plane.swallow_answers(true);
    plane.until("a resend", |kept| kept.times_sent.values().any(|&times| times > 1).then_some(())).await;
    plane.go_down();
    plane.swallow_answers(false);
    plane.come_back();
    let completed = plane.until_reported("completed").await;
    let ReportBody::Completed { completed, .. } = completed.body else { panic!() };
    assert_eq!(samples_without_a_gap(&plane.kept()), completed.telemetry_samples);
}

#[tokio::test]
async fn a_host_whose_clock_is_too_far_off_takes_no_job_until_it_is_right() {
    let plane = ControlPlane::start().await;
    plane.set_clock_off(6_000_000);
    let mut agent = Agent::enrolled(&plane, &tool(QUICK), "").await;
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    let offset_told = |kept: &Kept| {
        let mut told = kept.accepted.iter().filter_map(|item| match &item.body {
            ReportBody::Capabilities { capabilities } => capabilities.clock_offset_ms,
            _ => None,
        });
        told.next_back()
    };
    let off = plane.until("the offset", |kept| offset_told(kept)).await;
    assert!((-6_500.0..=-5_500.0).contains(&off), "{off}");
    // Each of these heartbeats is answered with "work waits".
    plane.until("heartbeats", |kept| (kept.heartbeats >= 4).then_some(())).await;
    assert_eq!(plane.kept().claims(), 0);

    plane.set_clock_off(0);
    plane.until_reported("completed").await;
    let off = plane.until("the offset", |kept| offset_told(kept).filter(|off| off.abs() < 500.0)).await;
    assert!(plane.kept().claims() > 0, "{off}");
}

#[tokio::test]
async fn a_cancelled_job_is_stopped_with_everything_it_started() {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool(ENDLESS), "").await;
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    plane.until_reported("progress").await;
    plane.stop(held("c1"));
    plane.until_reported("cancelled").await;
    assert!(processes_below(agent.folder()).is_empty());
    assert!(!agent.state().join("attempt.json").exists());
}

#[tokio::test]
async fn a_killed_agents_successor_ends_what_was_left_and_reports_the_attempt() {
    let plane = ControlPlane::start().await;
    // The tool has left its process group and ignores what is asked of it: only its marker tells whose it is.
    let stray = format!("setsid sh -c 'trap \"\" TERM; while :; do sleep 0.2; done' & {ENDLESS}");
    let mut agent = Agent::enrolled(&plane, &tool(&stray), "").await;
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    plane.until_reported("progress").await;
    plane.until("a few samples", |kept| (kept.telemetry_seqs().len() > 3).then_some(())).await;
    agent.kill();
    agent.run();
    let failed = failed(&plane).await;
    assert_eq!(failed.code, "agent_restarted");
    assert!(processes_below(agent.folder()).is_empty());
    let kept = plane.kept();
    assert_eq!(failed.telemetry_samples, samples_without_a_gap(&kept));
    let lines: u64 = [LogSource::Tool, LogSource::Agent].iter().map(|s| kept.lines(*s).len() as u64).sum();
    assert!(failed.log_lines >= lines, "{} lines were counted, {lines} reported", failed.log_lines);
}

#[tokio::test]
async fn an_ending_agent_stops_its_job_and_says_so() {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool(ENDLESS), "").await;
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    plane.until_reported("progress").await;
    let status = agent.terminate().await;
    assert_eq!(failed(&plane).await.code, "agent_stopped");
    assert!(status.success());
    assert!(processes_below(agent.folder()).is_empty());
}

#[tokio::test]
async fn a_model_server_that_ends_is_a_failure_with_its_last_words() {
    let plane = ControlPlane::start().await;
    let server = "#!/bin/sh\necho 'CUDA error: out of memory' >&2\nexit 7\n";
    let mut agent = Agent::enrolled(&plane, &tool(QUICK), server).await;
    plane.queue(&server_job("c1", 60));
    agent.run();
    let failed = failed(&plane).await;
    assert_eq!(failed.code, "server_exited");
    assert!(failed.message.contains("exit code 7"), "{}", failed.message);
    assert!(failed.message.contains("CUDA error: out of memory"), "{}", failed.message);
}

#[tokio::test]
async fn a_model_server_that_never_answers_is_not_ready() {
    let plane = ControlPlane::start().await;
    let server = "#!/bin/sh\necho loading\nwhile :; do sleep 0.2; done\n";
    let mut agent = Agent::enrolled(&plane, &tool(QUICK), server).await;
    plane.queue(&server_job("c1", 1));
    agent.run();
    let failed = failed(&plane).await;
    assert_eq!(failed.code, "server_not_ready");
    assert!(
        failed.message.contains("/health does not answer") && failed.message.contains("loading"),
        "{}",
        failed.message
    );
    assert!(processes_below(agent.folder()).is_empty());
}

#[tokio::test]
async fn a_forged_job_is_refused_and_nothing_is_started() {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool(ENDLESS), "").await;
    plane.queue_forged(&endpoint_job(&plane, "c1"));
    agent.run();
    let failed = failed(&plane).await;
    assert_eq!(failed.code, "refused");
    assert!(!plane.kinds().contains(&"running"));
}

#[tokio::test]
async fn a_program_that_the_policy_does_not_name_is_refused() {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool(QUICK), "").await;
    let canary = agent.folder().join("canary");
    let mut job = endpoint_job(&plane, "c1");
    job["commands"]["tool_argv"] = serde_json::json!(["sh", "-c", format!("touch {}", canary.display())]);
    plane.queue(&job);
    agent.run();
    let failed = failed(&plane).await;
    assert_eq!(failed.code, "refused");
    assert!(failed.message.contains("agent.toml"), "{}", failed.message);
    assert!(!canary.exists());
}

#[tokio::test]
async fn an_endpoint_out_of_the_hosts_networks_is_refused_and_not_asked() {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool(QUICK), "").await;
    let path = agent.state().join("agent.toml");
    let policy = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, policy.replace("[\"127.0.0.0/8\"]", "[\"10.20.0.0/16\"]")).unwrap();
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    let failed = failed(&plane).await;
    assert_eq!(failed.code, "refused");
    assert!(failed.message.contains("127.0.0.1, which is not public"), "{}", failed.message);
    assert!(failed.message.contains("allowed_networks in agent.toml"), "{}", failed.message);
    assert!(!plane.kinds().contains(&"serving") && !plane.kinds().contains(&"running"));
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_is_named_and_not_to_be_waited_for_longer() {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool(QUICK), "").await;
    let mut job = endpoint_job(&plane, "c1");
    // Bound and let go: nothing listens there.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    job["commands"]["endpoint_url"] = serde_json::json!(format!("http://{closed}/v1"));
    job["commands"]["readiness_timeout_s"] = serde_json::json!(1);
    plane.queue(&job);
    agent.run();
    let failed = failed(&plane).await;
    assert_eq!(failed.code, "server_not_ready");
    assert!(failed.message.contains("Check that the endpoint runs"), "{}", failed.message);
    assert!(!failed.message.contains("Raise the readiness"), "{}", failed.message);
}

#[tokio::test]
async fn a_tool_without_a_summary_is_a_failure() {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool("echo 'went wrong' >&2; exit 2"), "").await;
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    let failed = failed(&plane).await;
    assert_eq!(failed.code, "tool_failed");
    assert!(
        failed.message.contains("exit code 2") && failed.message.contains("went wrong"),
        "{}",
        failed.message
    );
}

#[tokio::test]
async fn a_rejected_report_is_set_aside_and_holds_up_nothing() {
    let plane = ControlPlane::start().await;
    plane.reject("progress");
    let mut agent = Agent::enrolled(&plane, &tool(QUICK), "").await;
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    plane.until_reported("completed").await;
    let aside = std::fs::read_to_string(agent.state().join("spool/rejected.jsonl")).unwrap();
    assert_eq!(aside.lines().count(), 2);
}

#[tokio::test]
async fn a_rejected_report_that_cannot_be_set_aside_stays_and_is_sent_again() {
    let plane = ControlPlane::start().await;
    plane.reject("progress");
    let mut agent = Agent::enrolled(&plane, &tool(QUICK), "").await;
    // In the place of a disk that takes nothing.
    let aside = agent.state().join("spool/rejected.jsonl");
    std::fs::create_dir_all(&aside).unwrap();
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    let twice = |kept: &Kept| kept.times_sent.values().any(|times| *times >= 2).then_some(());
    plane.until("a report sent again", twice).await;
    std::fs::remove_dir(&aside).unwrap();
    // Heartbeats have this looked at every second.
    let both = |_: &Kept| {
        let kept = std::fs::read_to_string(&aside).unwrap_or_default();
        (kept.lines().count() == 2).then_some(())
    };
    plane.until("both reports are set aside", both).await;
    plane.until_reported("completed").await;
}

#[tokio::test]
async fn a_secret_of_this_host_leaves_it_nowhere() {
    let plane = ControlPlane::start().await;
    let leak = "echo \"token $HF_TOKEN\"; printf '%s' \"$HF_TOKEN\" >> \"$requests\"; \
                echo \"{\\\"phase\\\":\\\"$HF_TOKEN\\\",\\\"done\\\":1,\\\"elapsed_s\\\":1}\" >> \"$progress\"; summary";
    let mut agent = Agent::enrolled(&plane, &tool(leak), "").await;
    agent.set_env("HF_TOKEN", "hf_do-not-tell-anybody");
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    plane.until_reported("completed").await;
    let kept = plane.kept();
    assert_eq!(kept.lines(LogSource::Tool), ["token [redacted]"]);
    let everything = serde_json::to_string(&kept.accepted).unwrap();
    assert!(!everything.contains("do-not-tell"));
    assert!(kept.blobs.values().all(|blob| !String::from_utf8_lossy(blob).contains("do-not-tell")));
}

#[tokio::test]
async fn beyond_the_live_limit_lines_are_in_the_uploaded_log_only() {
    let plane = ControlPlane::start().await;
    let flood = "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo \"line $i\"; done; summary";
    let mut agent = Agent::enrolled(&plane, &tool(flood), "").await;
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    plane.until_reported("completed").await;
    let kept = plane.kept();
    assert_eq!(kept.lines(LogSource::Tool).len(), 300);
    assert!(kept.lines(LogSource::Agent).iter().any(|line| line.contains("700 of the 1000 lines")));
    assert!(kept.blobs.values().any(|blob| String::from_utf8_lossy(blob).ends_with("line 1000\n")));
}

/// Processes whose command line names this folder.
fn processes_below(folder: &std::path::Path) -> Vec<String> {
    let folder = folder.join("bin");
    let folder = folder.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(folder))
        .collect()
}
