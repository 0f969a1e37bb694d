//! The control plane with its private plant, as `make run` starts it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::api::Api;
use crate::binaries::{binary, repository};
use crate::eventually;
use crate::process::Process;

/// The organisation that the first start makes.
pub const ORG: &str = "main";

/// A running control plane and its folder.
pub struct ControlPlane {
    /// `./var` of this test, removed at the end.
    dir: tempfile::TempDir,
    process: Process,
    /// What its environment has besides.
    env: Vec<(&'static str, String)>,
    /// Where it serves.
    pub url: String,
}

impl ControlPlane {
    /// Starts everything on free ports in a new folder and waits until it is ready.
    pub async fn start() -> Self {
        Self::start_with(0, Vec::new()).await
    }

    /// As [`ControlPlane::start`], on this port (0 for a free one) and with more in its environment.
    pub async fn start_with(port: u16, env: Vec<(&'static str, String)>) -> Self {
        // Not below a private home: the database runs as its own user and must be able to enter.
        let dir = tempfile::Builder::new().prefix("bt-").tempdir_in("/tmp").expect("a folder");
        make_enterable(dir.path());
        let process = spawn(dir.path(), port, &env);
        let mut plane = Self { dir, process, env, url: String::new() };
        plane.ready().await;
        plane
    }

    /// The folder it keeps everything in.
    pub fn dir(&self) -> PathBuf {
        self.dir.path().join("var")
    }

    /// A free file name for another process's log.
    pub fn log_file(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.log"))
    }

    /// What it printed.
    pub fn output(&self) -> String {
        self.process.output()
    }

    async fn ready(&mut self) {
        let file = self.dir().join("server.json");
        let pid = self.process.pid();
        let process = std::sync::Mutex::new(&mut self.process);
        self.url = eventually("the control plane to be ready", || async {
            process.lock().expect("not poisoned").assert_running();
            let text = std::fs::read(&file).ok()?;
            let found: Value = serde_json::from_slice(&text).ok()?;
            if found["pid"].as_u64()? != u64::from(pid) {
                return None;
            }
            let url = found["url"].as_str()?.to_owned();
            let answer = crate::api::http().get(format!("{url}/readyz")).send().await.ok()?;
            answer.status().is_success().then_some(url)
        })
        .await;
    }

    /// SIGKILL to the control plane (its plant goes down with it).
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on the same folder and the same port.
    pub async fn start_again(&mut self) {
        let port =
            self.url.rsplit(':').next().and_then(|p| p.trim_end_matches('/').parse().ok()).expect("a port");
        self.process = spawn(self.dir.path(), port, &self.env);
        self.ready().await;
    }

    /// Stops it as Ctrl-C does.
    pub fn stop(&mut self) -> std::process::ExitStatus {
        self.process.terminate()
    }

    /// The first account's e-mail and password.
    pub fn first_sign_in(&self) -> (String, String) {
        let text = std::fs::read_to_string(self.dir().join("first-sign-in.txt")).expect("the first sign-in");
        let value = |name: &str| {
            text.lines()
                .find_map(|l| l.strip_prefix(name))
                .map(|v| v.trim_start_matches(':').trim().to_owned())
                .unwrap_or_else(|| panic!("{name} in {text:?}"))
        };
        (value("email"), value("password"))
    }

    /// Signs in as the first account, an administrator.
    pub async fn admin(&self) -> Api {
        let (email, password) = self.first_sign_in();
        Api::sign_in(&self.url, &email, &password).await
    }

    /// Runs a `benchtrail` subcommand on this folder and returns its exit status and output.
    pub async fn command(&self, args: &[&str]) -> (std::process::ExitStatus, String) {
        self.benchtrail(args, None).await
    }

    /// The same on a database of another address.
    pub async fn command_on(&self, url: &str, args: &[&str]) -> (std::process::ExitStatus, String) {
        self.benchtrail(args, Some(url)).await
    }

    async fn benchtrail(
        &self,
        args: &[&str],
        database_url: Option<&str>,
    ) -> (std::process::ExitStatus, String) {
        let mut command = tokio::process::Command::new(binary("benchtrail"));
        command.args(args).arg("--dir").arg(self.dir()).env_remove("DATABASE_URL");
        if let Some(url) = database_url {
            command.env("DATABASE_URL", url);
        }
        let output = command.output().await.expect("benchtrail starts");
        let text = [output.stdout, output.stderr].map(|t| String::from_utf8_lossy(&t).into_owned()).concat();
        (output.status, text)
    }

    /// The owner's address of the private database.
    pub fn database_url(&self) -> String {
        let text = std::fs::read(self.dir().join("server.json")).expect("server.json");
        let found: Value = serde_json::from_slice(&text).expect("JSON");
        found["database_url"].as_str().expect("database_url").to_owned()
    }

    /// The process id of the control plane itself.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The process id of the private PostgreSQL.
    pub fn postgres_pid(&self) -> i32 {
        let file = find(&self.dir(), "postmaster.pid").expect("postmaster.pid");
        let text = std::fs::read_to_string(file).expect("readable");
        text.lines().next().and_then(|l| l.trim().parse().ok()).expect("a pid")
    }

    /// The process id of the private NATS.
    pub fn nats_pid(&self) -> i32 {
        let parent = self.process.pid();
        children_named(parent, "nats-server")
            .into_iter()
            .next()
            .expect("a nats-server below the control plane")
    }
}

fn spawn(dir: &Path, port: u16, env: &[(&'static str, String)]) -> Process {
    let mut command = Command::new(binary("benchtrail"));
    command
        .args(["up", "--dir"])
        .arg(dir.join("var"))
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .arg("--page-dir")
        .arg(page_dir())
        .current_dir(dir)
        .env_remove("DATABASE_URL")
        .env_remove("NATS_URL")
        // Endpoints of the tests are on this machine.
        .env("BENCHTRAIL_ENDPOINT_ALLOW", "127.0.0.0/8")
        .envs(env.iter().map(|(name, value)| (name, value)));
    Process::start("benchtrail up", command, &dir.join("control-plane.log"))
}

/// The built page.
pub fn page_dir() -> PathBuf {
    std::env::var_os("BENCHTRAIL_DIST").map_or_else(|| repository().join("frontend/dist"), PathBuf::from)
}

fn make_enterable(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).expect("permissions");
}

fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    for entry in std::fs::read_dir(dir).ok()?.flatten() {
        let path = entry.path();
        if path.file_name().is_some_and(|n| n == name) {
            return Some(path);
        }
        if path.is_dir()
            && let Some(found) = find(&path, name)
        {
            return Some(found);
        }
    }
    None
}

/// Process ids of descendants of `parent` with this command name.
pub fn children_named(parent: u32, name: &str) -> Vec<i32> {
    let mut table: Vec<(i32, u32, String)> = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let (Some(open), Some(close)) = (stat.find('('), stat.rfind(')')) else { continue };
        let ppid = stat[close + 1..].split_whitespace().nth(1).and_then(|p| p.parse().ok()).unwrap_or(0);
        table.push((pid, ppid, stat[open + 1..close].to_owned()));
    }
    let mut found = Vec::new();
    let mut parents = vec![parent];
    while let Some(parent) = parents.pop() {
        for (pid, ppid, comm) in &table {
            if *ppid == parent {
                if comm == name {
                    found.push(*pid);
                }
                parents.push(u32::try_from(*pid).expect("a pid"));
            }
        }
    }
    found
}
