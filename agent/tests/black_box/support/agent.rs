//! The real agent program in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::control_plane::ControlPlane;

/// An enrolled agent. When dropped, it and everything it started is gone.
pub struct Agent {
    folder: tempfile::TempDir,
    process: Option<Child>,
    env: Vec<(String, String)>,
}

impl Agent {
    /// Enrols an agent whose policy allows the scripts of `tool` and `server` as `metrumbench-llm` and `llama-server`.
    pub async fn enrolled(plane: &ControlPlane, tool: &str, server: &str) -> Self {
        let agent = Self { folder: tempfile::tempdir().unwrap(), process: None, env: Vec::new() };
        agent.script("metrumbench-llm", tool);
        agent.script("llama-server", server);
        let bin = agent.folder.path().join("bin");
        let output = agent
            .command(
                &[
                    "enrol",
                    "--url",
                    &plane.url,
                    "--token",
                    "bt_e_good",
                    "--allow-network",
                    "127.0.0.0/8",
                    "--bin-dir",
                ],
                &[&bin],
            )
            .await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut policy = std::fs::read_to_string(agent.state().join("agent.toml")).unwrap();
        // Before the first table.
        policy.insert_str(0, "heartbeat_s = 1\nstop_grace_s = 2\nlive_log_lines = 300\n");
        std::fs::write(agent.state().join("agent.toml"), policy).unwrap();
        agent
    }

    /// A folder for an agent that is not enrolled.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), process: None, env: Vec::new() }
    }

    /// Sets a variable in the agent's own environment.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.env.push((name.into(), value.into()));
    }

    /// Lets jobs set this variable for their model server.
    pub fn allow_env(&self, name: &str) {
        let path = self.state().join("agent.toml");
        let mut policy: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let allowed = policy.entry("env").or_insert_with(|| toml::Value::Array(Vec::new()));
        allowed.as_array_mut().unwrap().push(name.into());
        std::fs::write(path, policy.to_string()).unwrap();
    }

    /// Its state folder.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// A folder beside it, for what scripts leave.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn script(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let bin = self.folder.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let path = bin.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_benchtrail-agent"));
        command.arg("--state-dir").arg(self.state()).args(["--log", "agent=debug"]);
        command.env_remove("HF_TOKEN").envs(self.env.iter().cloned());
        command
    }

    /// Runs a command of the agent to its end.
    pub async fn command(&self, args: &[&str], paths: &[&Path]) -> Output {
        let mut command = self.program();
        command.args(args).args(paths).stdin(Stdio::null());
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// Starts `run`.
    pub fn run(&mut self) {
        let log = std::fs::File::options().create(true).append(true).open(self.log()).unwrap();
        let child = self.program().arg("run").stdin(Stdio::null()).stderr(log).spawn().unwrap();
        self.process = Some(child);
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("agent.err")
    }

    /// What it printed.
    pub fn output(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.process.as_ref().unwrap().id().try_into().unwrap()
    }

    /// SIGKILL, to it alone.
    pub fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// SIGTERM, and waits until it has ended.
    pub async fn terminate(&mut self) -> ExitStatus {
        let mut process = self.process.take().unwrap();
        kill(Pid::from_raw(process.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        tokio::task::spawn_blocking(move || process.wait().unwrap()).await.unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- the agent printed ---\n{}", self.output());
        }
    }
}
