//! `metrumbench-llm` against the reference server: the figures against the truth.

mod support;

use std::collections::HashMap;
use std::time::Duration;

use bench::refserver::shape::Wire;
use bench::refserver::{Options, UsagePlace};
use support::{Bench, quick};

#[test]
fn figures_agree_with_the_ground_truth() {
    let bench = Bench::new(Options { tokens: Some(12), ..quick() });
    let run = bench.run(&["-n", "24", "-c", "4"]);
    let summary = run.summary();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(summary.figures.requests.succeeded, 24);
    let truth: HashMap<String, _> =
        bench.truth().into_iter().map(|truth| (truth.request_id.clone(), truth)).collect();
    assert_eq!(truth.len(), 24);
    // Each request was the first of its connection, or reused it.
    assert_eq!(summary.client.connections_opened + summary.client.reused, 24);
    let (mut ttft_off, mut arrival_off) = (Vec::new(), Vec::new());
    for line in bench.request_log() {
        let truth = &truth[line["request_id"].as_str().unwrap()];
        assert_eq!(line["usage"]["completion_tokens"], truth.completion_tokens);
        assert_eq!(line["usage"]["prompt_tokens"], truth.prompt_tokens);
        assert_eq!(line["completion_words"], truth.words);
        assert_eq!(line["chunks"], truth.chunks_unix_ns.len() as u64);
        let true_ttft = (truth.chunks_unix_ns[0] - truth.received_unix_ns) as f64 / 1e6;
        ttft_off.push(line["ttft_ms"].as_f64().unwrap() - true_ttft);
        let arrived = line["first_output_unix_ns"].as_f64().unwrap();
        arrival_off.push((arrived - truth.chunks_unix_ns[0] as f64) / 1e6);
        // Never before the server wrote it (both clocks are this machine's; a microsecond of slack for reading two of them).
        assert!(line["first_output_unix_ns"].as_u64().unwrap() + 50_000 >= truth.chunks_unix_ns[0]);
    }
    ttft_off.sort_by(f64::total_cmp);
    arrival_off.sort_by(f64::total_cmp);
    assert!(ttft_off[0] > -0.2, "a TTFT below the truth: {ttft_off:?}");
    // On a busy machine the server reads a request late, and its truth begins late: only the best says what is added
    // here. What the kernel stamps does not depend on when this process ran.
    assert!(ttft_off[0] < 5.0, "every TTFT far above the truth: {ttft_off:?}");
    assert!(
        arrival_off[arrival_off.len() / 2] < 10.0,
        "chunks seen long after they were written: {arrival_off:?}"
    );
}

/// What the summary should say of these samples: nearest ranks, mean and deviation, worked out here anew.
fn assert_distribution(name: &str, found: &serde_json::Value, mut samples: Vec<f64>) {
    samples.sort_by(f64::total_cmp);
    let n = samples.len();
    let mean = samples.iter().sum::<f64>() / n as f64;
    let deviation = (samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
    let rank = |percent: f64| samples[((percent * n as f64 / 100.0).ceil() as usize).clamp(1, n) - 1];
    assert_eq!(found["n"], n as u64, "{name}");
    for (statistic, expected) in [
        ("min", samples[0]),
        ("max", samples[n - 1]),
        ("avg", mean),
        ("std", deviation),
        ("p50", rank(50.0)),
        ("p90", rank(90.0)),
        ("p95", rank(95.0)),
        ("p99", rank(99.0)),
        ("p99_9", rank(99.9)),
    ] {
        let reported = found[statistic].as_f64().unwrap();
        assert!((reported - expected).abs() < 2e-6, "{name}.{statistic}: {reported} is not {expected}");
    }
}

#[test]
fn every_figure_of_the_summary_is_that_of_its_requests() {
    let bench = Bench::new(Options { jitter: 0.3, reasoning_tokens: 2, tokens: None, ..quick() });
    let lines: String = (1..=9)
        .map(|n| {
            format!("{{\"prompt\": \"{}\", \"expected_output_tokens\": {}}}\n", "word ".repeat(n), n + 3)
        })
        .collect();
    std::fs::write(bench.file("prompts.jsonl"), lines).unwrap();
    let run = bench.run(&[
        "-n",
        "45",
        "-c",
        "5",
        "--prompts",
        "prompts.jsonl",
        "--system-prompt",
        "",
        "--slo",
        "ttft=25",
    ]);
    let log = bench.request_log();
    let times = |name: &str| log.iter().filter_map(|line| line[name].as_f64()).collect::<Vec<_>>();
    for name in ["response_time_ms", "ttft_ms", "first_token_ms", "tpot_ms", "tpot_excl_first_ms"] {
        assert_distribution(name, &run.line[name], times(name));
    }
    let skew = &run.line["client"]["send_skew_ms"];
    assert_distribution("send_skew_ms", skew, times("send_skew_ms"));

    // Counts, from what the server says that it did.
    let truth = bench.truth();
    let sum = |of: fn(&bench::refserver::truth::Truth) -> u64| truth.iter().map(of).sum::<u64>();
    let window = run.line["window_s"].as_f64().unwrap();
    for (name, total) in [
        ("completion_tokens", sum(|truth| truth.completion_tokens)),
        ("prompt_tokens", sum(|truth| truth.prompt_tokens)),
        ("completion_words", sum(|truth| truth.words)),
        ("reasoning_tokens", 45 * 2),
    ] {
        let found = &run.line[name];
        assert_eq!((&found["n"], &found["total"]), (&45.into(), &total.into()), "{name}");
        assert!((found["avg"].as_f64().unwrap() - total as f64 / 45.0).abs() < 1e-5, "{name}");
        assert!((found["per_second"].as_f64().unwrap() - total as f64 / window).abs() < 1e-3, "{name}");
    }
    assert_eq!(
        (&run.line["completion_tokens"]["min"], &run.line["completion_tokens"]["max"]),
        (&4.into(), &12.into())
    );
    let chunks: usize = truth.iter().map(|truth| truth.chunks_unix_ns.len()).sum();
    assert_eq!(run.line["inter_chunk_ms"]["n"], (chunks - 45) as u64);

    // The window is from the first request sent to the last one ended, and the goodput that of the requests in time.
    let ns = |name: &str| log.iter().map(|line| line[name].as_u64().unwrap()).collect::<Vec<_>>();
    let last = *ns("ended_unix_ns").iter().max().unwrap();
    let span = (last - ns("started_unix_ns").iter().min().unwrap()) as f64 / 1e9;
    assert!(window >= span && window - span < 0.05, "{window} for {span}");
    let good = times("ttft_ms").iter().filter(|ms| **ms <= 25.0).count();
    assert_eq!(run.line["goodput"]["requests"], good as u64);
    let rate = run.line["throughput"]["requests_per_second"].as_f64().unwrap();
    assert!((rate - 45.0 / window).abs() < 1e-3, "{rate}");
}

#[test]
fn totals_and_rates_follow_from_counts_and_window() {
    let bench = Bench::new(quick());
    let run = bench.run(&["-n", "10", "-c", "2"]);
    let figures = &run.summary().figures;
    let tokens = figures.completion_tokens.as_ref().unwrap();
    assert_eq!((tokens.total, tokens.n, tokens.source.as_deref()), (80, 10, Some("usage")));
    let window = figures.window_s.unwrap();
    let rate = figures.throughput.completion_tokens_per_second.unwrap();
    assert!((rate - 80.0 / window).abs() < 0.01, "{rate} is not 80 / {window}");
    // 5 rounds of 20 + 7 × 5 ms at least.
    assert!(window >= 0.275, "{window}");
}

#[test]
fn tpot_is_as_the_methodology_defines_it() {
    let bench = Bench::new(quick());
    let run = bench.run(&["-n", "4"]);
    for line in bench.request_log() {
        let of = |name: &str| line[name].as_f64().unwrap();
        assert!((of("tpot_ms") - (of("response_time_ms") - of("ttft_ms")) / 8.0).abs() < 1e-3);
    }
    assert_eq!(run.summary().figures.tpot_ms.as_ref().unwrap().n, 4);
}

#[test]
fn not_streamed_ttft_is_the_response_time_and_tpot_is_null() {
    let bench = Bench::new(quick());
    let run = bench.run(&["-n", "3", "--no-streaming"]);
    assert_eq!(run.line["ttft_ms"]["p50"], run.line["response_time_ms"]["p50"]);
    assert!(run.line["tpot_ms"].is_null());
    assert_eq!(run.line["completion_tokens"]["total"], 24);
}

#[test]
fn the_completions_api_works_streamed_and_not() {
    let bench = Bench::new(quick());
    for streaming in ["--streaming=true", "--streaming=false"] {
        let run = bench.run(&["-n", "2", "--mode", "completion", streaming]);
        assert_eq!(run.summary().figures.requests.succeeded, 2, "{}", run.stdout);
    }
}

#[test]
fn every_way_of_writing_a_stream_gives_the_same_counts() {
    let wires = [
        Wire { line_ending: "\r\n", ..Wire::default() },
        Wire { line_ending: "\r", comments: true, ..Wire::default() },
        Wire { comments: true, no_space: true, ..Wire::default() },
        Wire { many_data_lines: true, ..Wire::default() },
        Wire { split_bytes: 7, ..Wire::default() },
        Wire { events_per_write: 3, ..Wire::default() },
        Wire { line_ending: "\r\n", split_bytes: 1, ..Wire::default() },
    ];
    for wire in wires {
        let bench = Bench::new(Options { wire: wire.clone(), itl: Duration::ZERO, ..quick() });
        let run = bench.run(&["-n", "2"]);
        let figures = &run.summary().figures;
        assert_eq!(figures.requests.succeeded, 2, "{wire:?}: {}", run.stdout);
        assert_eq!(figures.completion_words.as_ref().unwrap().total, 16, "{wire:?}");
        assert_eq!(figures.inter_chunk_ms.as_ref().unwrap().n, 14, "{wire:?}");
    }
}

#[test]
fn usage_is_found_wherever_it_sits() {
    for usage in [UsagePlace::Final, UsagePlace::Finish, UsagePlace::Every] {
        let bench = Bench::new(Options { usage, ..quick() });
        let run = bench.run(&["-n", "1"]);
        assert_eq!(run.line["completion_tokens"]["total"], 8, "{usage:?}");
    }
}

#[test]
fn absent_usage_is_null_and_flagged() {
    let bench = Bench::new(Options { usage: UsagePlace::None, ..quick() });
    let run = bench.run(&["-n", "2"]);
    assert!(run.line["completion_tokens"].is_null());
    assert!(run.line["tpot_ms"].is_null());
    assert!(run.line["throughput"]["completion_tokens_per_second"].is_null());
    assert!(run.summary().flags.contains(&"usage_absent".to_owned()));
}

#[test]
fn reasoning_is_told_from_visible_content() {
    let bench = Bench::new(Options { reasoning_tokens: 4, ..quick() });
    let run = bench.run(&["-n", "1"]);
    let p50 = |name: &str| run.line[name]["p50"].as_f64().unwrap();
    assert_eq!(p50("first_token_ms"), p50("first_reasoning_ms"));
    // Four tokens lie between them, as far apart as the server wrote them.
    let chunks = &bench.truth()[0].chunks_unix_ns;
    let apart = (chunks[4] - chunks[0]) as f64 / 1e6;
    let reported = p50("ttft_ms") - p50("first_token_ms");
    assert!((reported - apart).abs() < 2.0, "{reported} ms where the server had {apart} ms");
    assert_eq!(run.line["reasoning_tokens"]["total"], 4);
}

#[test]
fn warm_up_and_ramp_up_are_in_no_figure() {
    let bench = Bench::new(quick());
    let run = bench.run(&["-n", "6", "-c", "3", "--warmup-requests", "5", "--ramp-up-seconds", "0.3"]);
    let requests = &run.summary().figures.requests;
    assert_eq!(requests.warmup, 5);
    assert!(requests.ramp_up > 0);
    assert!(requests.attempted >= 6 && requests.attempted <= 8, "{requests:?}");
    assert_eq!(run.summary().figures.response_time_ms.as_ref().unwrap().n, requests.succeeded);
}

#[test]
fn a_duration_ends_the_run() {
    let bench = Bench::new(quick());
    let run = bench.run(&["--duration", "0.5", "-c", "2"]);
    let window = run.summary().figures.window_s.unwrap();
    assert_eq!(run.code, Some(0));
    assert!(window >= 0.4, "{window}");
    assert!(!run.summary().partial);
}

#[test]
fn an_open_loop_measures_from_the_schedule() {
    let bench = Bench::new(quick());
    let run = bench.run(&["-n", "20", "--request-rate", "100", "--arrival", "constant"]);
    let figures = &run.summary().figures;
    assert_eq!(figures.requests.succeeded, 20);
    assert_eq!(figures.schedule_delay_ms.as_ref().unwrap().n, 20);
    let service = figures.response_time_ms.as_ref().unwrap().avg.unwrap();
    assert!(figures.response_time_from_schedule_ms.as_ref().unwrap().avg.unwrap() >= service);
}

#[test]
fn an_open_loop_held_back_shows_its_wait() {
    let bench = Bench::new(quick());
    let run =
        bench.run(&["-n", "10", "--request-rate", "1000", "--arrival", "constant", "--max-concurrency", "1"]);
    let figures = &run.summary().figures;
    assert_eq!(run.summary().client.max_in_flight, 1);
    // The last of ten waits for nine others of 55 ms each.
    assert!(figures.schedule_delay_ms.as_ref().unwrap().max.unwrap() > 400.0);
}

#[test]
fn goodput_counts_only_requests_that_kept_every_objective() {
    let bench = Bench::new(quick());
    let strict = bench.run(&["-n", "4", "--slo", "ttft=1000,e2e=1"]);
    assert_eq!(strict.summary().figures.goodput.as_ref().unwrap().requests, 0);
    let loose = bench.run(&["-n", "4", "--slo", "ttft=60s", "--slo", "e2e=60s"]);
    assert_eq!(loose.summary().figures.goodput.as_ref().unwrap().fraction, Some(1.0));
}

#[test]
fn requests_spread_over_endpoints_by_weight() {
    let bench = Bench::new(quick());
    let other = Bench::new(quick());
    let file = bench.file("endpoints.yaml");
    let text = format!(
        "- url: {}\n  name: a\n  weight: 3\n- url: {}/v1\n  name: b\n",
        bench.server.url(),
        other.server.url()
    );
    std::fs::write(&file, text).unwrap();
    let run = bench.run(&["-n", "8", "--endpoints-file", "endpoints.yaml"]);
    let endpoints = &run.summary().endpoints;
    let counts: Vec<_> = endpoints.iter().map(|e| (e.name.as_str(), e.figures.requests.succeeded)).collect();
    assert_eq!(counts, [("a", 6), ("b", 2)]);
    assert_eq!(run.summary().figures.requests.succeeded, 8);
}
