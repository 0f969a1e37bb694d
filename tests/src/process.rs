//! Child processes in groups of their own, ended with everything they started.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// A child with its own process group and its output in a file.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` in a new process group, its output appended to `log`.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Self {
        let file = std::fs::File::options().create(true).append(true).open(log).expect("the log file opens");
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a second handle"))
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|e| panic!("{name} does not start: {e}"));
        Self { name: name.to_owned(), child, log: log.to_owned() }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it printed so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Fails the test when the process has ended.
    pub fn assert_running(&mut self) {
        if let Some(status) = self.child.try_wait().expect("waitable") {
            panic!("{} ended early ({status}):\n{}", self.name, tail(&self.output()));
        }
    }

    /// SIGKILL to this one process, and nothing else.
    pub fn kill(&mut self) {
        let _ = kill(self.group(), Signal::SIGKILL);
        let _ = self.child.wait();
    }

    /// Any signal, to this one process.
    pub fn signal(&self, signal: Signal) {
        kill(self.group(), signal).expect("it runs");
    }

    /// SIGTERM, then waits for the exit status.
    pub fn terminate(&mut self) -> ExitStatus {
        let _ = kill(self.group(), Signal::SIGTERM);
        self.child.wait().expect("waitable")
    }

    fn group(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // Gently first: a control plane stops its plant, an agent its model server.
            let _ = kill(self.group(), Signal::SIGTERM);
            for _ in 0..200 {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        }
        let _ = killpg(self.group(), Signal::SIGKILL);
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("---- last output of {} ----\n{}", self.name, tail(&self.output()));
        }
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
