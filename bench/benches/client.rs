//! What the load generator costs and how true its times are, measured against the reference server's own log.
//!
//! `cargo bench -p benchtrail-bench --bench client` prints one line a figure. Ratios and drifts mean something on a
//! busy machine too; absolute rates only on a quiet one.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench::openai::Answer;
use bench::refserver::truth;
use bench::sse::Parser;
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

fn main() {
    parser();
    let folder = tempfile::tempdir().expect("a temporary folder");
    println!("\n{:<34}{:>9}{:>12}{:>14}{:>12}", "run", "ok", "req/s", "cpu s/1k tok", "RSS MB");
    let paced = ["--ttft-ms", "200", "--itl-ms", "10", "--tokens", "64"];
    let instant = ["--ttft-ms", "0", "--itl-ms", "0", "--tokens", "64"];
    let mut drifts = Vec::new();
    for (concurrency, requests) in [(1, 10), (64, 640), (512, 2048)] {
        let server = Server::start(folder.path(), &paced);
        let arguments = ["-c", &concurrency.to_string(), "-n", &requests.to_string()].map(str::to_owned);
        cost(&format!("200 ms + 64 × 10 ms, c {concurrency}"), folder.path(), &server, &arguments);
        drifts.push((concurrency, drift(folder.path())));
    }
    let server = Server::start(folder.path(), &instant);
    let arguments = ["-c", "64", "-n", "20000"].map(str::to_owned);
    cost("no delay, streamed, c 64", folder.path(), &server, &arguments);
    let arguments = ["-c", "64", "-n", "50000", "--no-streaming"].map(str::to_owned);
    cost("no delay, not streamed, c 64", folder.path(), &server, &arguments);
    println!("\nreported minus true, ms            mean       p50       p99       max");
    for (concurrency, (ttft, gaps)) in drifts {
        row(&format!("TTFT, c {concurrency}"), ttft);
        row(&format!("last - first chunk, c {concurrency}"), gaps);
    }
}

/// Events a second of the parser alone, and with the JSON of each event read too.
fn parser() {
    let event = b"data: {\"id\":\"chatcmpl-8e000a6f6d2b5cd5\",\"object\":\"chat.completion.chunk\",\"created\":1795980885,\"model\":\"tiny-llama\",\
\"choices\":[{\"index\":0,\"delta\":{\"content\":\" ack\"},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n";
    let many = event.repeat(64 * 1024 / event.len());
    for (name, read) in [("one event a read", &event[..]), ("64 KiB a read", &many[..])] {
        for json in [false, true] {
            let (mut parser, mut events, mut bytes) = (Parser::new(), 0u64, 0usize);
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(700) {
                for _ in 0..if read.len() > 1000 { 4 } else { 1000 } {
                    parser.feed(std::hint::black_box(read), |event| {
                        events += 1;
                        if json {
                            let answer: Answer =
                                serde_json::from_slice(event.data).expect("the event is JSON");
                            bytes += answer.choices.len();
                        } else {
                            bytes += event.data.len();
                        }
                    });
                }
            }
            let rate = events as f64 / began.elapsed().as_secs_f64();
            std::hint::black_box(bytes);
            println!(
                "event parser, {name}{:<12} {:>12.0} events/s",
                if json { ", with JSON" } else { "" },
                rate
            );
        }
    }
}

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let _ = std::fs::remove_file(folder.join("truth.jsonl"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_benchtrail-refserver"))
            .args(["--port", "0", "--json", "--truth-log"])
            .arg(folder.join("truth.jsonl"))
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the reference server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("its address");
        let address: Value = serde_json::from_str(&line).expect("its address as JSON");
        Self { child, url: address["url"].as_str().unwrap_or_default().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Not waited for: its processor time must not be counted with the clients'.
        let _ = self.child.kill();
    }
}

fn cost(name: &str, folder: &Path, server: &Server, arguments: &[String]) {
    for file in ["summary.jsonl", "requests.jsonl", "truth.jsonl"] {
        if let Ok(file) = std::fs::OpenOptions::new().write(true).open(folder.join(file)) {
            let _ = file.set_len(0);
        }
    }
    let cpu = |usage: nix::sys::resource::Usage| {
        let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        seconds(usage.user_time()) + seconds(usage.system_time())
    };
    let children = || getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage of children");
    let before = cpu(children());
    let status = Command::new(env!("CARGO_BIN_EXE_metrumbench-llm"))
        .current_dir(folder)
        .args(["--url", &server.url, "--skip-ntp-check", "--quiet", "-m", "benchtrail-sim"])
        .args(["--data-log", "summary.jsonl", "--request-log", "requests.jsonl"])
        .args(arguments)
        .status()
        .expect("the tool runs");
    let spent = cpu(children()) - before;
    let text = std::fs::read_to_string(folder.join("summary.jsonl")).unwrap_or_default();
    let summary: Value =
        text.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    let tokens = summary["completion_tokens"]["total"].as_f64().unwrap_or(f64::NAN);
    println!(
        "{name:<34}{:>9}{:>12.1}{:>14.4}{:>12}   exit {}",
        summary["requests"]["succeeded"],
        summary["throughput"]["requests_per_second"].as_f64().unwrap_or(f64::NAN),
        spent / tokens * 1e3,
        children().max_rss() / 1024,
        status.code().unwrap_or(-1),
    );
}

/// For each request: reported TTFT minus the true one, and the same for the time from first to last chunk, in milliseconds.
fn drift(folder: &Path) -> (Vec<f64>, Vec<f64>) {
    let truth: HashMap<String, truth::Truth> = truth::read(&folder.join("truth.jsonl"))
        .expect("the truth")
        .into_iter()
        .map(|truth| (truth.request_id.clone(), truth))
        .collect();
    let text = std::fs::read_to_string(folder.join("requests.jsonl")).expect("the request log");
    let (mut ttft, mut spans) = (Vec::new(), Vec::new());
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let Some(truth) = line["request_id"].as_str().and_then(|id| truth.get(id)) else { continue };
        let (Some(&first), Some(&last)) = (truth.chunks_unix_ns.first(), truth.chunks_unix_ns.last()) else {
            continue;
        };
        let ns = |name: &str| line[name].as_f64().unwrap_or(f64::NAN);
        ttft.push(ns("ttft_ms") - (first - truth.received_unix_ns) as f64 / 1e6);
        spans.push((ns("last_output_unix_ns") - ns("first_output_unix_ns") - (last - first) as f64) / 1e6);
    }
    (ttft, spans)
}

fn row(name: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let at = |p: f64| values[((p * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1];
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    println!("{name:<30}{mean:>9.3}{:>10.3}{:>10.3}{:>10.3}", at(0.5), at(0.99), at(1.0));
}
