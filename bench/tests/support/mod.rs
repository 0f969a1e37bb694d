//! What the integration tests share: a reference server in a thread, the real binary, its summary.
#![allow(dead_code)] // each test binary uses a part of it

pub mod network;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use bench::refserver::truth::{self, Truth, TruthLog};
use bench::refserver::{Background, Options};
use events::summary::Summary;
use serde_json::Value;

/// A server, a folder, and the truth it logs there.
pub struct Bench {
    pub server: Background,
    pub folder: tempfile::TempDir,
}

/// A finished run of the tool.
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub summary: Option<Summary>,
    pub line: Value,
}

impl Bench {
    pub fn new(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let truth = TruthLog::open(&folder.path().join("truth.jsonl")).unwrap();
        Self { server: Background::start(options, Some(truth)).unwrap(), folder }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn truth(&self) -> Vec<Truth> {
        truth::read(&self.file("truth.jsonl")).unwrap()
    }

    pub fn request_log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file("requests.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The tool, aimed at the server, writing its logs into the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_metrumbench-llm"), arguments)
    }

    pub fn command_of(&self, tool: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(tool);
        command
            .current_dir(self.folder.path())
            .env_clear()
            .arg("--url")
            .arg(self.server.url())
            .args(["--skip-ntp-check", "--data-log", "summary.jsonl", "--request-log", "requests.jsonl"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Finished {
        self.finished(self.command(arguments).output().unwrap())
    }

    pub fn run_tool(&self, tool: &str, arguments: &[&str]) -> Finished {
        self.finished(self.command_of(tool, arguments).output().unwrap())
    }

    pub fn finished(&self, output: Output) -> Finished {
        let text = std::fs::read_to_string(self.file("summary.jsonl")).unwrap_or_default();
        let last = text.lines().last();
        Finished {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            summary: last.map(|line| serde_json::from_str(line).unwrap()),
            line: last.map_or(Value::Null, |line| serde_json::from_str(line).unwrap()),
        }
    }
}

impl Finished {
    pub fn summary(&self) -> &Summary {
        self.summary.as_ref().unwrap_or_else(|| panic!("no summary; standard error: {}", self.stderr))
    }
}

/// A server quick enough for tests.
pub fn quick() -> Options {
    Options {
        ttft: std::time::Duration::from_millis(20),
        itl: std::time::Duration::from_millis(5),
        tokens: Some(8),
        ..Options::default()
    }
}
