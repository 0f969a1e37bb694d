//! `metrumbench-llm` against a real model server: llama.cpp with Gemma 3 270M, as `scripts/setup run` installs them.
//!
//! llama.cpp closes each connection after a streamed answer although it had said that it would stay open: a client with a
//! pool of connections meets dead ones all the time.

mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bench::refserver::Options;
use support::Bench;

/// A llama.cpp server of the test's own.
struct LlamaCpp {
    child: Child,
    url: String,
}

impl LlamaCpp {
    fn start(slots: u32) -> Self {
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/benchtrail");
        let cache = std::env::var_os("BENCHTRAIL_CACHE").map_or_else(home, PathBuf::from);
        let model = std::env::var_os("BENCHTRAIL_MODEL_FILE")
            .map_or_else(|| cache.join("models/gemma-3-270m-q4_k_m.gguf"), PathBuf::from);
        assert!(model.exists(), "{} is missing: run scripts/setup run first", model.display());
        // Free a moment ago; nobody else asks for it in between.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/llama-server"))
            .arg("-m")
            .arg(model)
            .args(["--port", &port.to_string(), "-np", &slots.to_string(), "-c", "4096"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "llama-server ended before it listened");
        }
        // What it says later must not find a closed pipe.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Self { child, url: format!("http://127.0.0.1:{port}") }
    }
}

impl Drop for LlamaCpp {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

#[test]
fn a_hundred_requests_eight_at_a_time_all_succeed() {
    let server = LlamaCpp::start(8);
    let bench = Bench::new(Options::default());
    let run = bench.run(&[
        "--url",
        &server.url,
        "-n",
        "100",
        "-c",
        "8",
        "--isl",
        "80",
        "--osl",
        "8",
        "--ignore-eos",
        "--calibrate",
    ]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let summary = run.summary();
    let requests = &summary.figures.requests;
    assert_eq!((requests.succeeded, requests.failed, requests.empty), (100, 0, 0), "{}", run.stdout);
    assert!(!summary.simulated && !summary.partial);
    // Every answer has the length asked for, by the server's own count.
    assert_eq!(run.line["completion_tokens"]["total"], 800);
    // And every prompt about the length asked for, by what calibration learnt.
    let tokens = run.line["prompt_tokens"]["avg"].as_f64().unwrap();
    assert!((tokens - 80.0).abs() <= 6.0, "{tokens} prompt tokens where 80 were asked for");
    for name in ["ttft_ms", "tpot_ms", "response_time_ms"] {
        assert_eq!(run.line[name]["n"], 100, "{name}");
        assert!(run.line[name]["min"].as_f64().unwrap() > 0.0, "{name}");
    }
}
