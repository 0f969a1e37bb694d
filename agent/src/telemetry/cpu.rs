//! CPU utilization per socket, from `/proc/stat` and the topology in `/sys`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use events::telemetry::{CpuSample, TelemetrySample};

use super::Source;

/// Which socket each logical CPU sits on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology(BTreeMap<u32, u32>);

impl Topology {
    /// Reads the host's topology. Where it says nothing, every CPU counts as socket 0.
    pub fn read() -> Self {
        let mut sockets = BTreeMap::new();
        for entry in fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(cpu) = name.to_str().and_then(|n| n.strip_prefix("cpu")).and_then(|n| n.parse().ok())
            else {
                continue;
            };
            let package = fs::read_to_string(entry.path().join("topology/physical_package_id"));
            let socket = package.ok().and_then(|text| text.trim().parse::<i64>().ok());
            // Some virtual machines say -1.
            sockets.insert(cpu, socket.and_then(|s| u32::try_from(s).ok()).unwrap_or(0));
        }
        Self(sockets)
    }

    /// The number of CPU sockets.
    pub fn sockets(&self) -> u32 {
        let distinct: BTreeSet<u32> = self.0.values().copied().collect();
        u32::try_from(distinct.len()).unwrap_or(u32::MAX).max(1)
    }

    fn socket(&self, cpu: u32) -> u32 {
        self.0.get(&cpu).copied().unwrap_or(0)
    }
}

/// Ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Ticks {
    busy: u64,
    total: u64,
}

/// The CPU source. Utilization is over the time since the reading before, so the first reading has none.
pub(super) struct Cpu {
    topology: Topology,
    before: Option<BTreeMap<u32, Ticks>>,
}

impl Cpu {
    pub(super) fn new() -> Self {
        Self { topology: Topology::read(), before: None }
    }
}

impl Source for Cpu {
    fn read(&mut self, sample: &mut TelemetrySample) {
        let Ok(text) = fs::read_to_string("/proc/stat") else {
            self.before = None;
            return;
        };
        let now = per_socket(&text, &self.topology);
        if let Some(before) = self.before.replace(now.clone()) {
            sample.cpus = utilization(&before, &now);
        }
    }
}

/// Sums the ticks of each socket's CPUs.
fn per_socket(proc_stat: &str, topology: &Topology) -> BTreeMap<u32, Ticks> {
    let mut sockets: BTreeMap<u32, Ticks> = BTreeMap::new();
    // The CPUs come first; the long line of interrupts after them is not looked at.
    for line in proc_stat.lines().take_while(|line| line.starts_with("cpu")) {
        let mut fields = line.split_ascii_whitespace();
        let name = fields.next().unwrap_or_default();
        let Some(cpu) = name.strip_prefix("cpu").and_then(|n| n.parse::<u32>().ok()) else { continue };
        // user nice system idle iowait irq softirq steal; guest time is inside user already.
        let ticks: Vec<u64> = fields.take(8).map_while(|f| f.parse().ok()).collect();
        if ticks.len() < 4 {
            continue;
        }
        let total: u64 = ticks.iter().sum();
        let idle = ticks[3] + ticks.get(4).copied().unwrap_or(0);
        let socket = sockets.entry(topology.socket(cpu)).or_default();
        socket.total += total;
        socket.busy += total - idle;
    }
    sockets
}

fn utilization(before: &BTreeMap<u32, Ticks>, now: &BTreeMap<u32, Ticks>) -> Vec<CpuSample> {
    let mut samples = Vec::new();
    for (&socket, ticks) in now {
        let Some(earlier) = before.get(&socket) else { continue };
        let total = ticks.total.saturating_sub(earlier.total);
        // No tick passed: nothing is known, which is not the same as idle.
        if total == 0 {
            continue;
        }
        let busy = ticks.busy.saturating_sub(earlier.busy);
        samples.push(CpuSample { socket, utilization: (busy as f64 / total as f64).clamp(0.0, 1.0) });
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilization_is_the_busy_share_of_each_sockets_ticks() {
        let before = "cpu 9 9 9 9\ncpu0 10 0 0 90 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\n\
                      cpu2 0 0 0 100 0\ncpu3 0 0 0 100 0\nintr 5";
        let now = "cpu 9 9 9 9\ncpu0 60 0 0 140 0 0 0 0 0 0\ncpu1 0 0 0 200 0 0 0 0 0 0\n\
                   cpu2 50 0 25 110 15\ncpu3 75 0 0 125 0\nintr 5";
        let topology = Topology([(0, 0), (1, 0), (2, 1), (3, 1)].into());
        let samples = utilization(&per_socket(before, &topology), &per_socket(now, &topology));
        assert_eq!(samples[0], CpuSample { socket: 0, utilization: 50.0 / 200.0 });
        assert_eq!(samples[1], CpuSample { socket: 1, utilization: 150.0 / 200.0 });
    }

    #[test]
    fn time_spent_for_guests_is_not_counted_twice() {
        let topology = Topology::default();
        let before = "cpu0 0 0 0 0 0 0 0 0 0 0";
        let now = "cpu0 50 0 0 50 0 0 0 0 50 0";
        let samples = utilization(&per_socket(before, &topology), &per_socket(now, &topology));
        assert_eq!(samples[0].utilization, 0.5);
    }

    #[test]
    fn without_a_passed_tick_there_is_no_utilization() {
        let stat = per_socket("cpu0 5 0 0 5 0", &Topology::default());
        assert!(utilization(&stat, &stat).is_empty());
    }
}
