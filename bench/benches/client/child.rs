//! One child process: what it cost.

use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::libc;

/// What a process used, all of its threads together.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Processor time, in the kernel and outside.
    pub cpu: Duration,
    /// The most memory that was resident.
    pub max_rss_mb: u64,
    /// From start to end.
    pub wall: Duration,
    /// When it was started.
    pub started_unix_ns: u64,
}

/// How often the memory of a child is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `command` to its end. `watch` gets its resident memory in MB every so often.
#[expect(clippy::zombie_processes, reason = "it is waited for by wait4, which says what it used")]
pub fn run(command: &mut Command, mut watch: impl FnMut(u64)) -> Usage {
    let started_unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let began = Instant::now();
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // What wait4 says of memory includes what this process had when the child was made from it.
    let mut max_rss_mb = 0;
    while !has_ended(&child) {
        let megabytes = |name| kilobytes(&child, name).map(|kilobytes| kilobytes / 1024);
        max_rss_mb = max_rss_mb.max(megabytes("VmHWM:").unwrap_or(0));
        megabytes("VmRSS:").into_iter().for_each(&mut watch);
        std::thread::sleep(LOOK);
    }
    let usage = wait(&child);
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Usage {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        max_rss_mb,
        wall: began.elapsed(),
        started_unix_ns,
    }
}

/// True once it has ended, without collecting it.
fn has_ended(child: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with(['Z', 'X']) || rest.is_empty())
}

fn kilobytes(child: &Child, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Waits for this child and no other, and says what it used.
fn wait(child: &Child) -> libc::rusage {
    let mut status = 0;
    // SAFETY: all fields of the structure are numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to local variables that live throughout the call.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    assert_eq!(waited, child.id() as i32, "the child is ours to wait for");
    usage
}
