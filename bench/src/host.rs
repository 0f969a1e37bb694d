//! The machine the load comes from, and the processor time it costs.

use std::time::Duration;

use events::summary::Host;
use nix::sys::resource::{Resource, Usage, UsageWho, getrlimit, getrusage, setrlimit};

/// Files a process needs besides its connections: standard streams, logs, the event loop, the resolver.
const FILES_BESIDES: u64 = 64;

/// The machine as it is now.
pub fn describe(clock_offset_ms: Option<f64>) -> Host {
    let line = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    Host {
        cores: std::thread::available_parallelism().ok().map(|cores| cores.get() as u32),
        kernel: line("/proc/sys/kernel/osrelease"),
        cpu_governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        open_file_limit: getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft),
        clock_offset_ms,
    }
}

/// Connections that are sure to be possible where nothing bounds how many there will be.
const UNBOUNDED_CONNECTIONS: u64 = 1024;

/// Raises the open-file limit as far as `connections` at once need, or as far as it goes where nothing bounds them (none).
/// The error names the number needed.
pub fn allow_open_files(connections: Option<u64>) -> Result<(), String> {
    let least = connections.unwrap_or(UNBOUNDED_CONNECTIONS);
    let needed = least + FILES_BESIDES;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| error.to_string())?;
    // Connections may overlap while one is drained: twice as many, where that is allowed.
    let wanted = connections.map_or(hard, |_| hard.min(needed.saturating_mul(2).max(soft)));
    if wanted > soft {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard);
    }
    let (now, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| error.to_string())?;
    if now >= needed {
        return Ok(());
    }
    let (what, instead) = match connections {
        Some(_) => ("", "lower the concurrency"),
        None => ("up to ", "bound them with --max-concurrency"),
    };
    Err(format!(
        "{what}{least} connections at once need {needed} open files; the limit is {now} and cannot be raised above {hard}. \
         Raise it (ulimit -n {needed}, or LimitNOFILE= in the unit) or {instead}"
    ))
}

/// Processor time so far.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    process: Duration,
    thread: Duration,
}

impl CpuTime {
    /// Of this process and of this thread.
    pub fn now() -> Self {
        let of = |who| getrusage(who).map(total).unwrap_or_default();
        Self { process: of(UsageWho::RUSAGE_SELF), thread: of(UsageWho::RUSAGE_THREAD) }
    }

    /// Spent since `earlier`: by the process, by this thread.
    pub fn since(&self, earlier: &CpuTime) -> (Duration, Duration) {
        (self.process.saturating_sub(earlier.process), self.thread.saturating_sub(earlier.thread))
    }
}

fn total(usage: Usage) -> Duration {
    let of = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec().max(0) as u64, (time.tv_usec().max(0) as u32) * 1000)
    };
    of(usage.user_time()) + of(usage.system_time())
}
