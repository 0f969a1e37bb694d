//! What `metrumbench-llm` can be asked for beside a load: prompts, calibration, progress, completions, where results go.

mod support;

use std::time::Duration;

use bench::refserver::{Options, UsagePlace};
use support::{Bench, quick};

#[test]
fn calibration_learns_the_models_words_a_token() {
    let bench = Bench::new(Options { words_per_token: 0.5, ..quick() });
    let run = bench.run(&["-n", "4", "--isl", "300", "--calibrate"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let learnt = run.line["config"]["words_per_token"].as_f64().unwrap();
    assert!((learnt - 0.5).abs() < 0.01, "{learnt}");
    assert_eq!(run.line["config"]["sources"]["words_per_token"], "derived");
    let tokens = run.line["prompt_tokens"]["avg"].as_f64().unwrap();
    assert!((tokens - 300.0).abs() < 6.0, "{tokens} tokens where 300 were asked for");
    // The requests to learn from are in no figure.
    assert_eq!(run.summary().figures.requests.attempted, 4);
}

#[test]
fn calibration_uses_the_prompts_of_the_library() {
    let bench = Bench::new(Options { words_per_token: 0.8, ..quick() });
    let lines: String =
        (1..=60).map(|n| format!("{{\"prompt\": \"{}\"}}\n", "word ".repeat(n * 5))).collect();
    std::fs::write(bench.file("prompts.jsonl"), lines).unwrap();
    let run = bench.run(&["-n", "16", "--isl", "200", "--prompts", "prompts.jsonl", "--calibrate"]);
    let tokens = run.line["prompt_tokens"]["avg"].as_f64().unwrap();
    assert!((tokens - 200.0).abs() < 20.0, "{tokens} tokens where 200 were asked for: {}", run.stderr);
}

#[test]
fn a_server_that_counts_no_tokens_cannot_be_learnt_from() {
    let bench = Bench::new(Options { usage: UsagePlace::None, ..quick() });
    let run = bench.run(&["-n", "1", "--isl", "100", "--calibrate"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("--words-per-token"), "{}", run.stderr);
}

#[test]
fn options_that_no_run_could_keep_are_refused_before_anything_is_sent() {
    let bench = Bench::new(quick());
    let imagegen = env!("CARGO_BIN_EXE_metrumbench-imagegen");
    let llm = env!("CARGO_BIN_EXE_metrumbench-llm");
    for (tool, arguments) in [
        (llm, &["--duration", "0"][..]),
        (llm, &["--request-timeout", "0"]),
        (llm, &["--connect-timeout", "0ms"]),
        (llm, &["--model", ""]),
        (llm, &["--min-tokens", "10", "--max-tokens", "5"]),
        (llm, &["--min-tokens", "129"]),
        (imagegen, &["--steps", "0"]),
        (imagegen, &["--guidance-scale", "nan"]),
        (imagegen, &["--prompt", ""]),
        (imagegen, &["--retry-backoff", "inf"]),
    ] {
        let run = bench.run_tool(tool, arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: "), "{arguments:?}: {}", run.stderr);
    }
    assert!(bench.truth().is_empty());
}

#[test]
fn completions_are_printed_for_each_shell_without_anything_else_being_asked_for() {
    let bench = Bench::new(quick());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = bench.run(&["--completions", shell]);
        assert_eq!(run.code, Some(0), "{shell}: {}", run.stderr);
        assert!(run.stdout.contains("max-error-rate"), "{shell}");
        assert!(run.summary.is_none());
    }
    assert_eq!(bench.run(&["--completions=tcsh"]).code, Some(2));
}

#[test]
fn running_rates_and_medians_are_there_before_the_first_answer_is_complete() {
    // One answer of two seconds: everything before its end comes from the stream itself.
    let options = Options { ttft: Duration::from_millis(50), itl: Duration::from_millis(20), ..quick() };
    let bench = Bench::new(Options { tokens: Some(100), ..options });
    bench.run(&["-n", "1", "--progress-file", "progress.jsonl", "--quiet"]);
    let text = std::fs::read_to_string(bench.file("progress.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let under_way = lines.iter().filter(|line| line["done"] == 0 && !line["ttft_p50_ms"].is_null());
    let rates: Vec<f64> =
        under_way.filter_map(|line| line["completion_tokens_per_second"].as_f64()).collect();
    assert!(rates.iter().any(|rate| (10.0..=100.0).contains(rate)), "fifty tokens a second: {text}");
    let last = lines.last().unwrap();
    assert!(last["ttft_p50_ms"].as_f64().unwrap() >= 49.0);
    assert!(last["tpot_p50_ms"].as_f64().unwrap() >= 19.0);
}

#[test]
fn progress_is_written_while_the_run_goes_on() {
    let bench = Bench::new(quick());
    bench.run(&["-n", "30", "--progress-file", "progress.jsonl", "--quiet"]);
    let text = std::fs::read_to_string(bench.file("progress.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert!(lines.len() >= 3);
    assert_eq!((&last["phase"], &last["done"], &last["total"]), (&"done".into(), &30.into(), &30.into()));
}

#[test]
fn the_summary_can_go_to_standard_output() {
    let bench = Bench::new(quick());
    let run = bench.run(&["-n", "1", "--json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&run.stdout).unwrap()["tool"], "metrumbench-llm");
}

#[test]
fn a_library_of_prompts_is_sent_and_its_output_lengths_kept() {
    let bench = Bench::new(Options { tokens: None, ..quick() });
    let lines: String = (1..=4)
        .map(|n| format!("{{\"prompt\": \"{}\", \"expected_output_tokens\": {n}}}\n", "word ".repeat(n)))
        .collect();
    std::fs::write(bench.file("prompts.jsonl"), lines).unwrap();
    let run = bench.run(&["-n", "8", "--prompts", "prompts.jsonl", "--system-prompt", ""]);
    assert_eq!(run.line["completion_tokens"]["total"], 2 * (1 + 2 + 3 + 4));
    assert_eq!(run.line["prompt_words"]["total"], 2 * (1 + 2 + 3 + 4));
    assert!(run.summary().flags.contains(&"prompts_reused".to_owned()));
}

#[test]
fn the_result_says_that_it_is_simulated_and_what_was_configured() {
    let bench = Bench::new(quick());
    let run = bench.run(&["-n", "1", "--scenario", "smoke", "--seed", "7"]);
    assert!(run.summary().simulated);
    let config = &run.summary().config;
    assert_eq!(config["scenario"], "smoke");
    assert_eq!(config["seed"], 7);
    assert_eq!(config["sources"]["seed"], "command line");
    assert_eq!(config["sources"]["concurrency"], "default");
    assert_eq!(config["model"], "benchtrail-sim");
    assert_eq!(config["sources"]["model"], "derived");
}
