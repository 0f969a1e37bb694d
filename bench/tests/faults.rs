//! `metrumbench-llm` against every fault: what is no complete answer enters no success figure.

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use bench::refserver::Options;
use support::{Bench, quick};

fn shaped(shape: &str) -> Bench {
    Bench::new(Options { shape: shape.parse().unwrap(), ..quick() })
}

/// All requests fail with this type, the summary is there and holds no success figure, and the exit code says so.
fn assert_fails_as(shape: &str, kind: &str, arguments: &[&str]) {
    let bench = shaped(shape);
    let run = bench.run(&[&["-n", "3", "-c", "2"], arguments].concat());
    let summary = run.summary();
    assert_eq!(summary.figures.errors.by_type.get(kind), Some(&3), "{shape}: {:?}", summary.figures.errors);
    assert_eq!(run.code, Some(3), "{shape}");
    assert_eq!(summary.figures.requests.succeeded, 0);
    for figure in ["response_time_ms", "ttft_ms", "tpot_ms", "completion_tokens", "completion_words"] {
        assert!(run.line[figure].is_null(), "{shape}: {figure} is {}", run.line[figure]);
    }
}

#[test]
fn a_cut_stream_is_a_failure() {
    assert_fails_as("cut", "stream_cut", &[]);
}

#[test]
fn a_cut_whole_answer_is_a_failure() {
    assert_fails_as("cut", "body", &["--no-streaming"]);
}

#[test]
fn a_stream_without_finish_reason_is_a_failure_with_and_without_done() {
    assert_fails_as("missing-finish", "missing_finish", &[]);
    assert_fails_as("missing-finish-and-done", "missing_finish", &[]);
    assert_fails_as("missing-finish", "missing_finish", &["--no-streaming"]);
}

#[test]
fn an_error_inside_an_answer_is_a_failure() {
    assert_fails_as("in-band-error", "in_band_error", &[]);
    assert_fails_as("error-event", "in_band_error", &[]);
    assert_fails_as("in-band-error", "in_band_error", &["--no-streaming"]);
}

#[test]
fn a_page_instead_of_an_answer_is_a_failure() {
    assert_fails_as("html", "wrong_content_type", &[]);
    assert_fails_as("html", "wrong_content_type", &["--no-streaming"]);
    assert_fails_as("json-for-stream", "wrong_content_type", &[]);
}

#[test]
fn an_event_that_is_no_json_is_a_failure() {
    assert_fails_as("bad-json", "decode", &[]);
}

#[test]
fn statuses_are_classified() {
    assert_fails_as("status-429", "rate_limit", &[]);
    assert_fails_as("status-401", "authentication", &[]);
    assert_fails_as("status-400", "bad_request", &[]);
    assert_fails_as("status-503", "server_error", &[]);
    assert_fails_as("status-404", "http_error", &[]);
    assert_fails_as("status-307", "redirect", &[]);
}

#[test]
fn a_stalled_stream_times_out() {
    assert_fails_as("stall", "timeout", &["--request-timeout", "0.4"]);
    assert_fails_as("stall-before-head", "timeout", &["--request-timeout", "0.3"]);
}

#[test]
fn a_fresh_connection_that_dies_is_an_error() {
    assert_fails_as("refuse", "connection", &[]);
}

#[test]
fn memory_running_out_is_noticed() {
    let run = shaped("oom").run(&["-n", "1"]);
    assert!(run.summary().figures.errors.oom_detected);
}

#[test]
fn nobody_listening_is_a_connection_error_with_a_summary() {
    let bench = Bench::new(quick());
    let run = bench.run(&["--url", "http://127.0.0.1:1", "--model", "m", "-n", "2"]);
    assert_eq!(run.summary().figures.errors.by_type.get("connection"), Some(&2));
    assert_eq!(run.code, Some(3));
}

#[test]
fn complete_answers_without_done_are_successes() {
    for shape in ["no-done", "no-done-open", "open-after-done"] {
        let bench = shaped(shape);
        let run = bench.run(&["-n", "3"]);
        assert_eq!(run.summary().figures.requests.succeeded, 3, "{shape}: {}", run.stdout);
        // The silence that ends an answer is not part of its response time.
        assert!(run.line["response_time_ms"]["max"].as_f64().unwrap() < 400.0, "{shape}");
    }
}

#[test]
fn an_empty_answer_is_a_success_without_first_token() {
    let run = shaped("empty").run(&["-n", "2"]);
    assert_eq!((run.summary().figures.requests.succeeded, run.summary().figures.requests.empty), (2, 2));
    assert!(run.line["ttft_ms"].is_null());
}

#[test]
fn a_server_that_closes_after_each_stream_fails_no_request() {
    let bench = Bench::new(Options { close_after_stream: true, itl: Duration::ZERO, ..quick() });
    let run = bench.run(&["-n", "60", "-c", "6"]);
    assert_eq!(run.summary().figures.requests.succeeded, 60, "{}", run.stdout);
}

#[test]
fn a_reused_connection_that_dies_is_tried_again_once() {
    let bench = Bench::new(Options { close_on_reuse: true, itl: Duration::ZERO, ..quick() });
    let run = bench.run(&["-n", "6", "--no-streaming"]);
    assert_eq!(run.summary().figures.requests.succeeded, 6, "{}", run.stdout);
    assert_eq!(run.summary().client.retried, 5);
}

#[test]
fn some_failures_give_an_exit_code_of_their_own() {
    let good = Bench::new(quick());
    let bad = shaped("status-500");
    let file = good.file("endpoints.json");
    std::fs::write(&file, format!(r#"[{{"url":"{}"}},{{"url":"{}"}}]"#, good.server.url(), bad.server.url()))
        .unwrap();
    let arguments = ["-n", "4", "--endpoints-file", "endpoints.json"];
    assert_eq!(good.run(&arguments).code, Some(1));
    assert_eq!(good.run(&[&arguments[..], &["--max-error-rate", "50"]].concat()).code, Some(0));
}

#[test]
fn bad_usage_has_its_exit_code() {
    let bench = Bench::new(quick());
    for arguments in [
        &["--concurrency", "0"][..],
        &["--url", "ftp://x"],
        &["--slo", "speed=1"],
        &["--prompts", "no-such-file"],
        &["--extra-body", "[1]"],
        &["--data-log", "/no/such/folder/x"],
        &["--max-concurrency", "3"],
    ] {
        assert_eq!(bench.run(arguments).code, Some(2), "{arguments:?}");
    }
}

#[test]
fn secrets_are_shown_nowhere() {
    let bench = shaped("status-401");
    let mut command = bench.command(&["-n", "1", "--header", "X-Api-Token: hunter2secret"]);
    command.env("OPENAI_API_KEY", "sk-verysecretkey123");
    let with_password = bench.server.url().replace("http://", "http://me:pa55word@");
    command.args(["--url", &with_password]);
    let run = bench.finished(command.output().unwrap());
    let log = std::fs::read_to_string(bench.file("requests.jsonl")).unwrap();
    let summary = run.line.to_string();
    for secret in ["verysecretkey123", "hunter2secret", "pa55word"] {
        for (place, text) in
            [("summary", &summary), ("log", &log), ("stdout", &run.stdout), ("stderr", &run.stderr)]
        {
            assert!(!text.contains(secret), "{secret} in {place}");
        }
    }
    assert_eq!(run.line["config"]["api_key"], "[redacted]");
}

#[test]
fn too_low_an_open_file_limit_is_refused_with_the_number_needed() {
    let bench = Bench::new(quick());
    let inner = format!(
        "ulimit -n 100 && exec {} --url {} --skip-ntp-check -c 500 -m x",
        env!("CARGO_BIN_EXE_metrumbench-llm"),
        bench.server.url()
    );
    let output = Command::new("sh").current_dir(bench.folder.path()).args(["-c", &inner]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("564"), "{output:?}");
}

#[test]
fn proxy_variables_are_ignored() {
    let bench = Bench::new(quick());
    let mut command = bench.command(&["-n", "1"]);
    command.envs([
        ("http_proxy", "http://127.0.0.1:1"),
        ("HTTP_PROXY", "http://127.0.0.1:1"),
        ("ALL_PROXY", "http://127.0.0.1:1"),
    ]);
    assert_eq!(bench.finished(command.output().unwrap()).code, Some(0));
}

#[test]
fn an_interrupt_leaves_a_partial_summary_and_ends_in_seconds() {
    for signal in [nix::sys::signal::Signal::SIGINT, nix::sys::signal::Signal::SIGTERM] {
        let bench = Bench::new(Options { ttft: Duration::from_millis(20), ..shaped_options("stall") });
        let child = bench
            .command(&["-n", "50", "-c", "2", "-m", "x", "--progress-file", "progress.jsonl"])
            .spawn()
            .unwrap();
        wait_until_under_way(&bench);
        let began = Instant::now();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
        let run = bench.finished(child.wait_with_output().unwrap());
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        assert_eq!(run.code, Some(130));
        let summary = run.summary();
        assert!(summary.cancelled && summary.partial);
        assert_eq!(summary.figures.requests.incomplete, 2);
    }
}

#[test]
fn a_second_interrupt_exits_at_once() {
    let bench = Bench::new(shaped_options("stall"));
    let child = bench.command(&["-n", "50", "-m", "x", "--progress-file", "progress.jsonl"]).spawn().unwrap();
    wait_until_under_way(&bench);
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    // Two signals of one kind may be delivered as one: SIGTERM is the second.
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(bench.finished(child.wait_with_output().unwrap()).code, Some(130));
}

fn shaped_options(shape: &str) -> Options {
    Options { shape: shape.parse().unwrap(), ..quick() }
}

/// Waits until the progress file shows a request under way.
fn wait_until_under_way(bench: &Bench) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        let text = std::fs::read_to_string(bench.file("progress.jsonl")).unwrap_or_default();
        if text.contains("\"in_flight\":1") || text.contains("\"in_flight\":2") {
            return;
        }
        std::thread::yield_now();
    }
    panic!("no request got under way");
}
