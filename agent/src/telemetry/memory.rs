//! Host memory, from `/proc/meminfo`.

use std::fs;

use events::telemetry::TelemetrySample;

use super::Source;

/// Host memory at one moment, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Memory in all.
    pub total: u64,
    /// Total less available: what programs hold and the kernel could not give back at once.
    pub used: u64,
}

/// Reads the host's memory; nothing where it cannot be read.
pub fn read_memory() -> Option<MemoryInfo> {
    parse(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse(meminfo: &str) -> Option<MemoryInfo> {
    let kib = |key: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let total = kib("MemTotal")? * 1024;
    let available = kib("MemAvailable")? * 1024;
    Some(MemoryInfo { total, used: total.saturating_sub(available) })
}

/// The memory source.
pub(super) struct Memory;

impl Source for Memory {
    fn read(&mut self, sample: &mut TelemetrySample) {
        if let Some(memory) = read_memory() {
            sample.system.ram_total_bytes = Some(memory.total);
            sample.system.ram_used_bytes = Some(memory.used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_use_is_total_less_available_in_bytes() {
        let text = "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    6000 kB\n";
        assert_eq!(parse(text), Some(MemoryInfo { total: 16_384_000, used: 10_240_000 }));
    }

    #[test]
    fn memory_that_cannot_be_read_is_absent() {
        assert_eq!(parse("MemTotal: 16000 kB\n"), None);
        assert_eq!(parse("MemTotal: many\nMemAvailable: 5 kB"), None);
    }
}
