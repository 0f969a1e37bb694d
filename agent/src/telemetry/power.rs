//! Power of the whole system, where the host can tell.
//!
//! Only the platform domain (`psys`) of RAPL covers the whole system; the package domains cover the processors
//! alone and would be a wrong number here. So a host without `psys` has no system power, and says none.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use events::telemetry::TelemetrySample;

use super::Source;

/// The platform domain's energy counter.
pub(super) struct Rapl {
    domain: Option<Domain>,
    before: Option<(Instant, u64)>,
}

struct Domain {
    energy_uj: PathBuf,
    wraps_at: u64,
}

impl Rapl {
    pub(super) fn find() -> Self {
        Self { domain: find_platform_domain(), before: None }
    }
}

fn find_platform_domain() -> Option<Domain> {
    for entry in fs::read_dir("/sys/class/powercap").ok()?.flatten() {
        let path = entry.path();
        let name = fs::read_to_string(path.join("name")).unwrap_or_default();
        if !name.trim().starts_with("psys") {
            continue;
        }
        let wraps_at = read_number(&path.join("max_energy_range_uj"))?;
        let energy_uj = path.join("energy_uj");
        // Readable by root alone on most hosts.
        read_number(&energy_uj)?;
        return Some(Domain { energy_uj, wraps_at });
    }
    None
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

impl Source for Rapl {
    fn read(&mut self, sample: &mut TelemetrySample) {
        let Some(domain) = &self.domain else { return };
        let Some(energy) = read_number(&domain.energy_uj) else {
            self.before = None;
            return;
        };
        let now = Instant::now();
        if let Some((then, earlier)) = self.before.replace((now, energy)) {
            sample.system.power_w = watts(earlier, energy, domain.wraps_at, (now - then).as_secs_f64());
        }
    }
}

fn watts(earlier: u64, now: u64, wraps_at: u64, seconds: f64) -> Option<f64> {
    let microjoules = if now >= earlier { now - earlier } else { wraps_at.checked_sub(earlier)? + now };
    (seconds > 0.0).then(|| microjoules as f64 / 1e6 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_is_energy_over_time_also_when_the_counter_wraps() {
        assert_eq!(watts(1_000_000, 301_000_000, u64::MAX, 2.0), Some(150.0));
        assert_eq!(watts(900_000, 100_000, 1_000_000, 0.2), Some(1.0));
        assert_eq!(watts(1, 2, 10, 0.0), None);
    }
}
