//! What the load generator costs and how true its times are, beside the best public peer against the same server in the
//! same run.
//!
//!     cargo bench -p benchtrail-bench --bench client            # all of it, some minutes
//!     cargo bench -p benchtrail-bench --bench client -- parser start paced instant million
//!
//! Ratios and drifts mean something on a busy machine too; absolute rates only on a quiet one. Nothing passes or fails.

mod child;
mod parser;
mod tools;
mod truth;

use std::path::Path;
use std::time::Instant;

use child::Usage;
use tools::{Load, Server, Tool};
use truth::Drift;

/// Paced: what a small model on a fast GPU does.
const PACED: [&str; 6] = ["--ttft-ms", "200", "--itl-ms", "10", "--tokens", "64"];
/// Instant: as fast as the server can.
const INSTANT: [&str; 6] = ["--ttft-ms", "0", "--itl-ms", "0", "--tokens", "64"];

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |part: &str| wanted.is_empty() || wanted.iter().any(|name| name == part);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (folder, tools) = (folder.path(), Tool::all());
    println!("metrumbench-llm {}, peer: {}", env!("CARGO_PKG_VERSION"), tools::peer_description());
    println!(
        "{} cores, load average {}",
        std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim()
    );
    if is_wanted("parser") {
        parser::print();
    }
    if is_wanted("start") {
        start_to_first_request(folder, &tools);
    }
    if is_wanted("paced") {
        paced(folder, &tools);
    }
    if is_wanted("instant") {
        instant(folder, &tools);
    }
    if is_wanted("million") {
        million(folder);
    }
}

/// One run of one tool, and what came of it.
struct Row {
    tool: Tool,
    load: Load,
    usage: Usage,
    outcome: tools::Outcome,
    drift: Option<Drift>,
}

impl Row {
    fn cpu_per_thousand_tokens(&self) -> f64 {
        self.usage.cpu.as_secs_f64() / self.outcome.tokens * 1e3
    }
}

fn run(folder: &Path, server: &Server, tool: Tool, load: Load) -> Row {
    server.forget_truth(folder);
    let usage = tool.run(folder, server, load);
    let outcome = tool.outcome(folder);
    let drift = load.streamed.then(|| truth::drift(folder, tool)).flatten();
    Row { tool, load, usage, outcome, drift }
}

fn paced(folder: &Path, tools: &[Tool]) {
    println!(
        "\nTTFT 200 ms, 10 ms between tokens, 64 tokens an answer; times in ms are reported minus true, each first wave included"
    );
    print_header();
    for (concurrency, requests) in [(1, 20), (64, 640), (512, 2560)] {
        let rows: Vec<Row> = tools
            .iter()
            .map(|tool| {
                let server = Server::start(folder, &PACED, true);
                run(folder, &server, *tool, Load { concurrency, requests, streamed: true })
            })
            .collect();
        print_rows(&rows);
    }
}

fn instant(folder: &Path, tools: &[Tool]) {
    println!("\nno delay, 64 tokens an answer, the server on one thread of its own");
    print_header();
    let loads = [
        Load { concurrency: 64, requests: 20_000, streamed: true },
        Load { concurrency: 64, requests: 60_000, streamed: false },
    ];
    for load in loads {
        let rows: Vec<Row> = tools
            .iter()
            .map(|tool| {
                let server = Server::start(folder, &INSTANT, false);
                run(folder, &server, *tool, load)
            })
            .collect();
        print_rows(&rows);
    }
}

fn print_header() {
    println!(
        "{:<18}{:<12}{:>7}{:>9}{:>13}{:>8} {:>11}{:>9}{:>9} {:>13}",
        "load",
        "tool",
        "failed",
        "req/s",
        "cpu s/1k tok",
        "RSS MB",
        "TTFT mean",
        "p99",
        "max",
        "per gap mean"
    );
}

fn print_rows(rows: &[Row]) {
    for row in rows {
        let Load { concurrency, streamed, .. } = row.load;
        let load = format!("c {concurrency}{}", if streamed { ", streamed" } else { ", whole" });
        let times = row.drift.as_ref().map_or(String::new(), |drift| {
            let gap = drift.gap_mean.map_or("-".into(), |gap| format!("{gap:.4}"));
            format!(" {:>11.3}{:>9.3}{:>9.3} {gap:>13}", drift.ttft_mean, drift.ttft_p99, drift.ttft_max)
        });
        println!(
            "{load:<18}{:<12}{:>7}{:>9.1}{:>13.5}{:>8}{times}",
            row.tool.name(),
            row.outcome.failed,
            row.outcome.requests / row.usage.wall.as_secs_f64(),
            row.cpu_per_thousand_tokens(),
            row.usage.max_rss_mb,
        );
    }
    if let [ours, peer] = rows {
        println!(
            "{:<18}{:<12}{:>7}{:>8.2}×{:>12.2}×{:>7.2}×",
            "",
            "ours / peer",
            "",
            peer.usage.wall.as_secs_f64() / ours.usage.wall.as_secs_f64(),
            ours.cpu_per_thousand_tokens() / peer.cpu_per_thousand_tokens(),
            ours.usage.max_rss_mb as f64 / peer.usage.max_rss_mb.max(1) as f64,
        );
    }
}

fn start_to_first_request(folder: &Path, tools: &[Tool]) {
    println!("\nfrom the start of the process until its first request has arrived, ms (of 11 starts)");
    for tool in tools {
        let server = Server::start(folder, &INSTANT, true);
        let mut times: Vec<f64> = (0..11)
            .filter_map(|_| {
                server.forget_truth(folder);
                let load = Load { concurrency: 1, requests: 1, streamed: true };
                let usage = tool.run(folder, &server, load);
                truth::first_arrival_after(folder, usage.started_unix_ns)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!(
            "{:<18}min {:.1}  median {:.1}  max {:.1}",
            tool.name(),
            times.first().copied().unwrap_or(f64::NAN),
            times.get(times.len() / 2).copied().unwrap_or(f64::NAN),
            times.last().copied().unwrap_or(f64::NAN)
        );
    }
}

/// Resident memory of our tool over a million requests that are not streamed.
fn million(folder: &Path) {
    let server = Server::start(folder, &["--ttft-ms", "0", "--itl-ms", "0", "--tokens", "4"], false);
    let load = Load { concurrency: 64, requests: 1_000_000, streamed: false };
    let began = Instant::now();
    let mut samples: Vec<(f64, u64)> = Vec::new();
    let usage = Tool::Ours.run_watched(folder, &server, load, |rss_mb| {
        samples.push((began.elapsed().as_secs_f64(), rss_mb));
    });
    let total = usage.wall.as_secs_f64();
    println!("\na million requests, not streamed, c 64: {:.0} requests/s", load.requests as f64 / total);
    for share in [0.05, 0.25, 0.5, 0.75, 0.98] {
        if let Some((_, rss)) = samples.iter().rev().find(|(at, _)| *at <= share * total) {
            println!("  resident after {:>3.0} % of it: {rss} MB", share * 100.0);
        }
    }
    println!("  the most: {} MB", usage.max_rss_mb);
}
