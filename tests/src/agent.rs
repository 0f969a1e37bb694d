//! A real agent on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::binaries::{binary, cache, gemma, repository};
use crate::control_plane::{ControlPlane, ORG};
use crate::process::Process;

/// The server configuration of this machine.
pub const CONFIG: &str = "local-cpu";

/// An enrolled agent.
pub struct Agent {
    process: Process,
    state: PathBuf,
    log: PathBuf,
    /// The host name it is registered under.
    pub hostname: String,
}

impl Agent {
    /// Registers a server, enrols its agent and starts it.
    pub async fn start(plane: &ControlPlane, admin: &Api, hostname: &str) -> Self {
        Self::start_with(plane, admin, hostname, |policy| policy).await
    }

    /// As [`Agent::start`], on a host that lets jobs read its files.
    pub async fn start_accepting_dangerous(plane: &ControlPlane, admin: &Api, hostname: &str) -> Self {
        Self::start_with(plane, admin, hostname, |policy| {
            policy.replace("accept_dangerous = false", "accept_dangerous = true")
        })
        .await
    }

    /// As [`Agent::start`], with a changed policy.
    pub async fn start_with(
        plane: &ControlPlane,
        admin: &Api,
        hostname: &str,
        change: impl FnOnce(String) -> String,
    ) -> Self {
        let dir = plane.dir();
        let folder = dir.parent().expect("the test's folder");
        Self::start_changed(&plane.url, folder, admin, hostname, change).await
    }

    /// As [`Agent::start`] with a control plane at any address; state and logs go to `folder`.
    pub async fn start_at(url: &str, folder: &Path, admin: &Api, hostname: &str) -> Self {
        Self::start_changed(url, folder, admin, hostname, |policy| policy).await
    }

    async fn start_changed(
        url: &str,
        folder: &Path,
        admin: &Api,
        hostname: &str,
        change: impl FnOnce(String) -> String,
    ) -> Self {
        let args = json!({"p_config_code": CONFIG, "p_hostname": hostname});
        let reply = admin.command("create_server_config_instance", &args).await;
        let token = reply.keys["enrol_token"].as_str().expect("a one-time token").to_owned();
        let state = folder.join(format!("agent-{hostname}"));
        let log = folder.join(format!("agent-{hostname}.log"));

        let mut enrol = Command::new(binary("benchtrail-agent"));
        enrol
            .args(["enrol", "--url", url, "--token", &token, "--state-dir"])
            .arg(&state)
            .arg("--bin-dir")
            .arg(binary("metrumbench-llm").parent().expect("a folder"))
            .arg("--bin-dir")
            .arg(llama_server_dir(folder))
            .args(["--allow-network", "127.0.0.0/8"])
            .arg("--model")
            .arg(format!("google/gemma-3-270m={}", gemma().display()));
        let output = enrol.output().expect("benchtrail-agent starts");
        assert!(output.status.success(), "enrol: {}", String::from_utf8_lossy(&output.stderr));
        let policy = state.join("agent.toml");
        let text = std::fs::read_to_string(&policy).expect("enrolling wrote the policy");
        std::fs::write(&policy, change(text)).expect("the policy is writable");

        let process = spawn(&state, &log);
        Self { process, state, log, hostname: hostname.to_owned() }
    }

    /// SIGKILL to the agent alone; what it started is left to its successor.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on the same state.
    pub fn start_again(&mut self) {
        self.process = spawn(&self.state, &self.log);
    }

    /// SIGSTOP to the agent alone: what it started goes on without it.
    pub fn freeze(&self) {
        self.process.signal(Signal::SIGSTOP);
    }

    /// It goes on where it was.
    pub fn thaw(&self) {
        self.process.signal(Signal::SIGCONT);
    }

    /// Stops it as SIGTERM does.
    pub fn stop(&mut self) -> std::process::ExitStatus {
        self.process.terminate()
    }

    /// What it printed.
    pub fn output(&self) -> String {
        self.process.output()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Its state folder.
    pub fn state_dir(&self) -> &Path {
        &self.state
    }

    /// Creates a project with one workload and executes it on this agent's server. The run's stream key, its last position.
    pub async fn execute(&self, api: &Api, project: &str, workload: Value) -> (String, i64) {
        let code = workload["p_workload_code"].clone();
        let create = json!({"p_project_code": project, "p_name": project, "p_workloads": [workload]});
        api.command("create_project", &create).await;
        let start = json!({
            "p_project_code": project,
            "p_workload_code": code,
            "p_config_code": CONFIG,
            "p_hostname": self.hostname,
        });
        let reply = api.command("start_run", &start).await;
        let run = reply.keys["run"].as_str().expect("the run's key").to_owned();
        assert!(run.starts_with(&format!("run/{ORG}/{project}/")), "{run}");
        (run, reply.position)
    }
}

/// A folder with a `llama-server` in it. The agent clears the environment of what it starts, so this one carries its own.
fn llama_server_dir(folder: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let dir = folder.join("bin");
    std::fs::create_dir_all(&dir).expect("a folder");
    let path = dir.join("llama-server");
    let script = repository().join("scripts/llama-server");
    let text =
        format!("#!/bin/sh\nBENCHTRAIL_CACHE='{}' exec '{}' \"$@\"\n", cache().display(), script.display());
    std::fs::write(&path, text).expect("a script");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    dir
}

fn spawn(state: &Path, log: &Path) -> Process {
    let mut command = Command::new(binary("benchtrail-agent"));
    // There is no way to time servers where tests run, and each job would wait for them.
    command.args(["run", "--state-dir"]).arg(state).env("METRUM_SKIP_NTP_CHECK", "true");
    Process::start("benchtrail-agent", command, log)
}
