//! What `/proc` tells of processes: enough to kill our own after a crash, and nobody else's.

use std::fs;

use serde::{Deserialize, Serialize};

/// One process for all time: its id together with the moment it began, since ids are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process id, which is its group's id too.
    pub pid: i32,
    /// When it began, in clock ticks since boot.
    pub start_ticks: u64,
}

impl ProcessId {
    /// Looks up when a process began.
    pub fn of(pid: i32) -> Option<Self> {
        Some(Self { pid, start_ticks: Stat::read(pid)?.start_ticks })
    }

    /// Whether this very process still exists.
    pub fn exists(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

/// The fields of `/proc/<pid>/stat` that matter here.
struct Stat {
    group: i32,
    start_ticks: u64,
    zombie: bool,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name stands in parentheses and may hold anything, parentheses included.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Self {
            zombie: *fields.first()? == "Z",
            group: fields.get(2)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
        })
    }
}

fn all_pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a living process is in this group.
pub(super) fn group_lives(group: i32) -> bool {
    all_pids().into_iter().filter_map(Stat::read).any(|stat| stat.group == group && !stat.zombie)
}

/// The processes that were started with this line in their environment, whichever group they are in now.
pub fn with_marker(name: &str, value: &str) -> Vec<i32> {
    let wanted = format!("{name}={value}");
    let marked = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.split(|&b| b == 0).any(|line| line == wanted.as_bytes()))
    };
    all_pids().into_iter().filter(marked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 1 42 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10";
        let stat = Stat::parse(stat).unwrap();
        assert_eq!((stat.group, stat.start_ticks, stat.zombie), (42, 98_765, false));
    }

    #[test]
    fn a_process_is_known_again_by_its_start() {
        let me = ProcessId::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(me.exists());
        assert!(!ProcessId { start_ticks: me.start_ticks + 1, ..me }.exists());
    }
}
