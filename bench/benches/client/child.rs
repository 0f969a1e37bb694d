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

/// Runs `command` to its end. `watch` gets its resident memory in MB every so often.
#[expect(clippy::zombie_processes, reason = "it is waited for by wait4, which says what it used")]
pub fn run(command: &mut Command, every: Option<Duration>, mut watch: impl FnMut(u64)) -> Usage {
    let started_unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let began = Instant::now();
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    if let Some(every) = every {
        while !has_ended(&child) {
            if let Some(rss) = resident_mb(&child) {
                watch(rss);
            }
            std::thread::sleep(every);
        }
    }
    let usage = wait(&child);
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Usage {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        max_rss_mb: usage.ru_maxrss as u64 / 1024,
        wall: began.elapsed(),
        started_unix_ns,
    }
}

/// True once it has ended, without collecting it.
fn has_ended(child: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with(['Z', 'X']) || rest.is_empty())
}

fn resident_mb(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes / 1024)
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
