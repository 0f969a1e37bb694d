//! The tools that are compared, and the server they are compared against.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::child::{self, Usage};

/// The peer's version.
const PEER_VERSION: &str = "1.7.1";

/// A load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `metrumbench-llm`.
    Ours,
    /// `metrum-ai-bench-cli-llm`.
    Peer,
}

/// A load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Requests under way at once.
    pub concurrency: u32,
    /// Requests in all.
    pub requests: u64,
    /// Whether answers are streamed.
    pub streamed: bool,
}

/// What a tool reported.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Requests.
    pub requests: f64,
    /// Those that failed.
    pub failed: f64,
    /// Output tokens.
    pub tokens: f64,
}

fn peer_folder() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/benchtrail");
    std::env::var_os("BENCHTRAIL_CACHE").map_or_else(home, PathBuf::from).join("peers")
}

fn peer_program() -> PathBuf {
    peer_folder().join("bin/metrum-ai-bench-cli-llm")
}

/// The peer, or how to get it.
pub fn peer_description() -> String {
    match peer_program().exists() {
        true => format!("metrum-ai-bench-cli {PEER_VERSION}"),
        false => format!(
            "none. To compare: cargo install metrum-ai-bench-cli --locked --version {PEER_VERSION} --root {}",
            peer_folder().display()
        ),
    }
}

impl Tool {
    /// All that are there: ours first.
    pub fn all() -> Vec<Self> {
        let mut tools = vec![Self::Ours];
        tools.extend(peer_program().exists().then_some(Self::Peer));
        tools
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Peer => "peer",
        }
    }

    /// Where it logs each request.
    pub fn request_log(self) -> &'static str {
        match self {
            Self::Ours => "requests.jsonl",
            Self::Peer => "peer.jsonl",
        }
    }

    /// Runs it to its end.
    pub fn run(self, folder: &Path, server: &Server, load: Load) -> Usage {
        child::run(&mut self.command(folder, server, load, true), |_| {})
    }

    /// Runs it without a request log; `watch` gets its resident memory in MB every so often.
    pub fn run_watched(self, folder: &Path, server: &Server, load: Load, watch: impl FnMut(u64)) -> Usage {
        child::run(&mut self.command(folder, server, load, false), watch)
    }

    fn command(self, folder: &Path, server: &Server, load: Load, log: bool) -> Command {
        for file in ["summary.jsonl", "requests.jsonl", "peer.jsonl"] {
            let _ = std::fs::remove_file(folder.join(file));
        }
        let prompts: String =
            (0..100).map(|n| format!("{{\"prompt\": \"{} number {n}\"}}\n", "word ".repeat(100))).collect();
        std::fs::write(folder.join("prompts.jsonl"), prompts).expect("prompts");
        let (concurrency, requests) = (load.concurrency.to_string(), load.requests.to_string());
        let mut command = match self {
            Self::Ours => Command::new(env!("CARGO_BIN_EXE_metrumbench-llm")),
            Self::Peer => Command::new(peer_program()),
        };
        command
            .current_dir(folder)
            .env_remove("OPENAI_API_KEY")
            .args(["--num-requests", &requests, "--concurrency", &concurrency, "--model", "benchtrail-sim"])
            .args(["--prompts", "prompts.jsonl", "--max-tokens", "64", "--quiet"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match self {
            Self::Ours => {
                command.args(["--url", &server.url, "--skip-ntp-check", "--system-prompt", ""]);
                command.args(["--data-log", "summary.jsonl"]);
                command.arg(if load.streamed { "--streaming" } else { "--no-streaming" });
                if log {
                    command.args(["--request-log", "requests.jsonl"]);
                }
            }
            Self::Peer => {
                command.args(["--url", &format!("{}/v1/chat/completions", server.url), "--api-key", "none"]);
                command.args(["--scenario", "bench", "--mode", "chat", "--data-log", "peer.jsonl"]);
                command.args(load.streamed.then_some("--streaming"));
            }
        }
        command
    }

    /// What it reported of its last run.
    pub fn outcome(self, folder: &Path) -> Outcome {
        let last = |file: &str| -> Value {
            let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
            text.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default()
        };
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        match self {
            Self::Ours => {
                let summary = last("summary.jsonl");
                Outcome {
                    requests: number(&summary["requests"]["attempted"]),
                    failed: number(&summary["requests"]["failed"]),
                    tokens: number(&summary["completion_tokens"]["total"]),
                }
            }
            Self::Peer => {
                // One line a request; its summary's names have changed between versions, its records' less.
                let text = std::fs::read_to_string(folder.join("peer.jsonl")).unwrap_or_default();
                let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                let (mut requests, mut failed, mut tokens) = (0.0, 0.0, 0.0);
                for record in records.filter(|record| record.get("latency_s").is_some()) {
                    requests += 1.0;
                    tokens += record["completion_tokens"].as_f64().unwrap_or(0.0);
                    failed += f64::from(u8::from(record.get("error").is_some_and(|error| !error.is_null())));
                }
                Outcome { requests, failed, tokens }
            }
        }
    }
}

/// `benchtrail-refserver` in a process of its own.
pub struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts it; `truth` has it log what it does.
    pub fn start(folder: &Path, arguments: &[&str], truth: bool) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_benchtrail-refserver"));
        command.args(["--port", "0", "--json"]).args(arguments).stdout(Stdio::piped());
        if truth {
            command.arg("--truth-log").arg(folder.join("truth.jsonl"));
        }
        let mut child = command.spawn().expect("the reference server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("its address");
        let address: Value = serde_json::from_str(&line).expect("its address as JSON");
        Self { child, url: address["url"].as_str().unwrap_or_default().to_owned() }
    }

    /// Empties its log: it appends to the file.
    pub fn forget_truth(&self, folder: &Path) {
        if let Ok(file) = std::fs::OpenOptions::new().write(true).open(folder.join("truth.jsonl")) {
            let _ = file.set_len(0);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
