//! Energy from power samples: trapezoids, and nothing where a sample is missing. A wrong number is worse than none.

use events::telemetry::TelemetrySample;
use serde::{Deserialize, Serialize};

/// Samples further apart than this many nominal intervals have a gap between them.
const GAP_INTERVALS: f64 = 2.5;

/// The longest distance between neighbouring samples that is not a gap, microseconds.
pub fn longest_step(interval_ms: u32) -> i64 {
    (f64::from(interval_ms.max(100)) * 1000.0 * GAP_INTERVALS) as i64
}

/// The power of all GPUs together, watts; nothing when one of them could not be read, or there is none.
pub fn total_power(sample: &TelemetrySample) -> Option<f64> {
    if sample.gpus.is_empty() {
        return None;
    }
    sample.gpus.iter().map(|gpu| gpu.power_w).sum()
}

/// Whether all samples are of the same number of GPUs. Where one is left out, the sum of the others is not the power of all.
pub fn same_gpus(counts: impl IntoIterator<Item = i64>) -> bool {
    let mut counts = counts.into_iter();
    let first = counts.next();
    counts.all(|count| Some(count) == first)
}

fn trapezoid((at, watts): (i64, f64), (next_at, next_watts): (i64, f64)) -> f64 {
    (next_at - at) as f64 / 1e6 * (watts + next_watts) / 2.0
}

/// Joules between two moments (microseconds), from samples (moment, watts) in order of time.
///
/// At the window's edges the power is interpolated where there is a sample on the far side, and held otherwise.
/// Nothing when a power is missing, or neighbours, edges included, are further apart than `longest_step`.
pub fn energy_between(samples: &[(i64, Option<f64>)], from: i64, to: i64, longest_step: i64) -> Option<f64> {
    if to <= from {
        return None;
    }
    let inside: Vec<usize> =
        (0..samples.len()).filter(|&n| samples[n].0 >= from && samples[n].0 <= to).collect();
    let (&first, &last) = (inside.first()?, inside.last()?);
    let mut points: Vec<(i64, f64)> = Vec::with_capacity(inside.len() + 2);
    let known = |n: usize| samples[n].1.map(|watts| (samples[n].0, watts));
    let first_point = known(first)?;
    if first_point.0 > from {
        let before = first.checked_sub(1).and_then(known).filter(|b| first_point.0 - b.0 <= longest_step);
        points.push((from, before.map_or(first_point.1, |b| between(b, first_point, from))));
    }
    for n in first..=last {
        points.push(known(n)?);
    }
    let last_point = *points.last()?;
    if last_point.0 < to {
        let after = (last + 1 < samples.len()).then(|| known(last + 1)).flatten();
        let after = after.filter(|a| a.0 - last_point.0 <= longest_step);
        points.push((to, after.map_or(last_point.1, |a| between(last_point, a, to))));
    }
    let mut joules = 0.0;
    for pair in points.windows(2) {
        if pair[1].0 - pair[0].0 > longest_step {
            return None;
        }
        joules += trapezoid(pair[0], pair[1]);
    }
    Some(joules)
}

fn between((at, watts): (i64, f64), (next_at, next_watts): (i64, f64), moment: i64) -> f64 {
    if next_at <= at {
        return watts;
    }
    watts + (next_watts - watts) * (moment - at) as f64 / (next_at - at) as f64
}

/// Energy as the samples come in, from a start that is known to an end that is not yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meter {
    from: i64,
    last: Option<(i64, f64)>,
    joules: f64,
    broken: bool,
}

impl Meter {
    /// Starts at a moment, microseconds.
    pub fn new(from: i64) -> Self {
        Self { from, last: None, joules: 0.0, broken: false }
    }

    /// Takes the next sample. One without power, out of order or after a gap breaks the meter.
    pub fn take(&mut self, at: i64, watts: Option<f64>, longest_step: i64) {
        let Some(watts) = watts else {
            self.broken = true;
            return;
        };
        let previous = self.last.unwrap_or((self.from, watts));
        if at < previous.0 || at - previous.0 > longest_step {
            self.broken = true;
        }
        self.joules += trapezoid(previous, (at, watts));
        self.last = Some((at, watts));
    }

    /// Joules until the end, the last power held; nothing where samples are missing.
    pub fn until(&self, end: i64, longest_step: i64) -> Option<f64> {
        let (at, watts) = self.last?;
        if self.broken || end < at || end - at > longest_step {
            return None;
        }
        Some(self.joules + trapezoid((at, watts), (end, watts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const STEP: i64 = 2_500_000;

    fn at_1_hz(watts: &[Option<f64>]) -> Vec<(i64, Option<f64>)> {
        watts.iter().enumerate().map(|(n, w)| (n as i64 * SECOND, *w)).collect()
    }

    #[test]
    fn constant_power_times_time_is_the_energy() {
        let samples = at_1_hz(&[Some(100.0); 11]);
        assert_eq!(energy_between(&samples, 0, 10 * SECOND, STEP), Some(1000.0));
        assert_eq!(energy_between(&samples, SECOND / 2, 9 * SECOND + SECOND / 2, STEP), Some(900.0));
    }

    #[test]
    fn a_ramp_is_its_trapezoid_also_inside_a_step() {
        let samples = at_1_hz(&[Some(0.0), Some(100.0), Some(200.0)]);
        assert_eq!(energy_between(&samples, SECOND / 2, 3 * SECOND / 2, STEP), Some(100.0));
    }

    #[test]
    fn a_missing_power_gives_no_energy() {
        let samples = at_1_hz(&[Some(100.0), None, Some(100.0)]);
        assert_eq!(energy_between(&samples, 0, 2 * SECOND, STEP), None);
    }

    #[test]
    fn a_gap_gives_no_energy() {
        let samples = [(0, Some(100.0)), (SECOND, Some(100.0)), (5 * SECOND, Some(100.0))];
        assert_eq!(energy_between(&samples, 0, 5 * SECOND, STEP), None);
        assert_eq!(energy_between(&samples, 0, 9 * SECOND, STEP), None);
    }

    #[test]
    fn an_empty_window_has_no_energy() {
        assert_eq!(energy_between(&at_1_hz(&[Some(1.0)]), 5, 5, STEP), None);
        assert_eq!(energy_between(&[], 0, SECOND, STEP), None);
    }

    #[test]
    fn the_meter_agrees_with_the_window() {
        let samples = at_1_hz(&[Some(90.0), Some(110.0), Some(130.0), Some(110.0)]);
        let mut meter = Meter::new(0);
        for (at, watts) in &samples {
            meter.take(*at, *watts, STEP);
        }
        let end = 3 * SECOND + SECOND / 2;
        assert_eq!(meter.until(end, STEP), energy_between(&samples, 0, end, STEP));
        assert_eq!(meter.until(9 * SECOND, STEP), None);
    }

    #[test]
    fn a_late_first_sample_breaks_the_meter() {
        let mut meter = Meter::new(0);
        meter.take(5 * SECOND, Some(100.0), STEP);
        assert_eq!(meter.until(6 * SECOND, STEP), None);
    }
}
