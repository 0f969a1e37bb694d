//! One process that the agent started, with everything that it started in turn.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::proc_fs::{ProcessId, group_lives};
use crate::logs::{LogHandle, LogSwitch, Secrets, pump};

/// The environment variable by which a crashed agent's successor knows our processes again.
pub const MARKER_ENV: &str = "BENCHTRAIL_ATTEMPT_MARKER";
/// How often it is looked whether a group is gone.
const POLL: Duration = Duration::from_millis(20);
/// How long a killed group has to vanish.
const AFTER_KILL: Duration = Duration::from_secs(5);
/// How long output is read after the process ended; a stray that kept its output open must not hold us up.
const AFTER_EXIT: Duration = Duration::from_secs(2);

/// A process to be started. There is no shell anywhere: `argv` reaches the program as it is.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// What it is, for messages: `model server`, `tool`.
    pub name: &'static str,
    /// The program and its arguments; the first is an absolute path.
    pub argv: Vec<String>,
    /// Its whole environment; nothing of the agent's own is passed on beside it.
    pub env: BTreeMap<String, String>,
    /// The folder it works in.
    pub work_dir: PathBuf,
}

/// A process that could not be started.
#[derive(Debug, thiserror::Error)]
#[error(
    "the {name} {program} could not be started: {source}. Check that it exists, is executable and is built for this machine"
)]
pub struct SpawnError {
    /// What it is.
    pub name: &'static str,
    /// The program.
    pub program: String,
    /// Why.
    pub source: std::io::Error,
}

/// A process in a group of its own. When the agent dies, the kernel kills it.
pub struct Process {
    name: &'static str,
    id: ProcessId,
    child: Child,
    pumps: Vec<JoinHandle<()>>,
    log: LogSwitch,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts it. Its output goes to `log`, redacted.
    ///
    /// Call this on a thread that lives as long as the runtime (any task does): the kernel ties the child's life to
    /// the thread that started it.
    ///
    /// # Errors
    /// [`SpawnError`].
    pub fn start(spec: &ProcessSpec, secrets: &Secrets, log: &LogHandle) -> Result<Self, SpawnError> {
        let error = |source| SpawnError {
            name: spec.name,
            program: spec.argv.first().cloned().unwrap_or_default(),
            source,
        };
        let (program, arguments) =
            spec.argv.split_first().ok_or_else(|| error(std::io::ErrorKind::InvalidInput.into()))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(&spec.env)
            .current_dir(&spec.work_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        // SAFETY: prctl and getppid are system calls that may be made between fork and exec.
        unsafe {
            let parent = nix::unistd::getpid();
            command.pre_exec(move || {
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
                // The agent may have died in between, and then no signal comes any more.
                if nix::unistd::getppid() == parent { Ok(()) } else { Err(Errno::ESRCH.into()) }
            });
        }
        let mut child = command.spawn().map_err(error)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
        let id = ProcessId::of(pid).unwrap_or(ProcessId { pid, start_ticks: 0 });
        let log = LogSwitch::to(log);
        let mut pumps = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            pumps.push(tokio::spawn(pump(stdout, secrets.clone(), log.clone())));
        }
        if let Some(stderr) = child.stderr.take() {
            pumps.push(tokio::spawn(pump(stderr, secrets.clone(), log.clone())));
        }
        Ok(Self { name: spec.name, id, child, pumps, log, status: None })
    }

    /// Its identity, to be written down before anything else happens.
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// From now on its output goes to another log, or nowhere.
    pub fn log_to(&self, log: Option<&LogHandle>) {
        self.log.turn(log);
    }

    /// Whether it has ended already.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Waits until it ends. May be called again, and may be dropped while it waits.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let status = self.child.wait().await?;
        self.status = Some(status);
        Ok(status)
    }

    /// Asks its group to end, makes it end when `grace` is over, and reads its output to the end.
    pub async fn stop(mut self, grace: Duration) -> Option<ExitStatus> {
        if self.status.is_some() {
            // The leader is reaped; what it left behind is still in its group.
            end_group(self.id.pid, grace, None).await;
        } else {
            end_group(self.id.pid, grace, Some(&mut self.child)).await;
        }
        let status = match tokio::time::timeout(AFTER_KILL, self.wait()).await {
            Ok(Ok(status)) => Some(status),
            _ => {
                tracing::error!(name = self.name, pid = self.id.pid, "a process cannot be killed");
                None
            }
        };
        self.read_rest().await;
        status
    }

    /// Reads what an ended process said last: it may still be on its way through the pipe.
    pub async fn read_rest(&mut self) {
        for pump in self.pumps.drain(..) {
            let abort = pump.abort_handle();
            if tokio::time::timeout(AFTER_EXIT, pump).await.is_err() {
                abort.abort();
            }
        }
    }

    /// Sends a signal to it alone, not to its group.
    pub fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            // It may just have ended.
            let _ = nix::sys::signal::kill(Pid::from_raw(self.id.pid), signal);
        }
    }
}

/// Ends a group: SIGTERM, then SIGKILL to whoever is left after `grace`. Reaps the leader meanwhile.
async fn end_group(group: i32, grace: Duration, leader: Option<&mut Child>) {
    let signal = |signal| killpg(Pid::from_raw(group), signal);
    if signal(Signal::SIGTERM).is_err() {
        return;
    }
    let gone = async {
        if let Some(leader) = leader {
            // Whatever it says: it is looked at again below.
            let _ = leader.wait().await;
        }
        while group_lives(group) {
            tokio::time::sleep(POLL).await;
        }
    };
    if tokio::time::timeout(grace, gone).await.is_ok() {
        return;
    }
    tracing::warn!(group, "a process group did not end by itself and is killed");
    let _ = signal(Signal::SIGKILL);
    let gone = async {
        while group_lives(group) {
            tokio::time::sleep(POLL).await;
        }
    };
    if tokio::time::timeout(AFTER_KILL, gone).await.is_err() {
        tracing::error!(group, "a process group outlives SIGKILL");
    }
}

/// Ends a process group that a crashed agent left behind.
pub async fn kill_group(group: i32, grace: Duration) {
    end_group(group, grace, None).await;
}

#[cfg(test)]
mod tests;
