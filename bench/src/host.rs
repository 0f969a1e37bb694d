//! The machine the load comes from, and the processor time it costs.

use std::collections::HashMap;
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
#[derive(Clone, Debug)]
pub struct CpuTime {
    process: Duration,
    thread: Duration,
    /// Of each other thread, by its id: what the system tells of them is coarse (hundredths of a second).
    others: HashMap<String, Duration>,
}

impl CpuTime {
    /// Of this process and of each of its threads.
    pub fn now() -> Self {
        let of = |who| getrusage(who).map(total).unwrap_or_default();
        let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let others = threads.filter_map(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).ok()?;
            Some((thread.file_name().to_string_lossy().into_owned(), thread_time(&stat)?))
        });
        Self {
            process: of(UsageWho::RUSAGE_SELF),
            thread: of(UsageWho::RUSAGE_THREAD),
            others: others.collect(),
        }
    }

    /// Spent since `earlier`: by the process, and by its busiest thread.
    pub fn since(&self, earlier: &CpuTime) -> (Duration, Duration) {
        let own = self.thread.saturating_sub(earlier.thread);
        let before = |thread| earlier.others.get(thread).copied().unwrap_or_default();
        let others = self.others.iter().map(|(thread, time)| time.saturating_sub(before(thread)));
        (self.process.saturating_sub(earlier.process), others.max().unwrap_or_default().max(own))
    }
}

/// Processor time in a line of `/proc/…/stat`: its 14th and 15th field, in ticks of a hundredth of a second.
fn thread_time(stat: &str) -> Option<Duration> {
    let mut after_name = stat.rsplit(") ").next()?.split(' ').skip(11);
    let (user, system): (u64, u64) = (after_name.next()?.parse().ok()?, after_name.next()?.parse().ok()?);
    Some(Duration::from_millis((user + system) * 10))
}

fn total(usage: Usage) -> Duration {
    let of = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec().max(0) as u64, (time.tv_usec().max(0) as u32) * 1000)
    };
    of(usage.user_time()) + of(usage.system_time())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_time_is_found_whatever_its_name() {
        let stat = "12 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0 1 0";
        assert_eq!(thread_time(stat), Some(Duration::from_millis(1750)));
    }
}
