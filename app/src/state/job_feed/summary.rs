//! Telemetry in four numbers a quantity: what it is now, and its mean, peak and lowest over the attempt.

use super::{JobFeed, Point};

/// One quantity of all its sources together.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// What it is called.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The newest value.
    pub now: f64,
    /// The mean over the attempt.
    pub mean: f64,
    /// The highest sample.
    pub peak: f64,
    /// The lowest sample.
    pub low: f64,
    /// How many sources there are.
    pub sources: usize,
}

/// Prefix, metric, name, unit, scale, and whether sources add up.
const QUANTITIES: [(&str, &str, &str, &str, f64, bool); 5] = [
    ("gpu", "power_w", "GPU power, all", "W", 1.0, true),
    ("gpu", "utilization", "GPU utilization", "%", 100.0, false),
    ("gpu", "memory_used_bytes", "GPU memory, all", "GB", 1e-9, true),
    ("cpu", "utilization", "CPU", "%", 100.0, false),
    ("system", "ram_used_bytes", "System RAM", "GB", 1e-9, false),
];

impl JobFeed {
    /// The quantities that were sampled.
    pub fn summaries(&self) -> Vec<Summary> {
        QUANTITIES
            .iter()
            .filter_map(|(prefix, metric, name, unit, scale, sum)| {
                let lines = self.sources(prefix, metric);
                let sources = lines.len();
                let each: Vec<(f64, f64, f64, f64)> =
                    lines.iter().filter_map(|(_, line)| figures(line)).collect();
                if each.is_empty() {
                    return None;
                }
                // Sources that add up: the sum of each. Others: the mean of the sources, the highest and lowest of any.
                let share = if *sum { 1.0 } else { each.len() as f64 };
                let total = |pick: fn(&(f64, f64, f64, f64)) -> f64| {
                    each.iter().map(pick).sum::<f64>() / share * scale
                };
                let (peak, low) = if *sum {
                    (total(|f| f.2), total(|f| f.3))
                } else {
                    let edge = |pick: fn(f64, f64) -> f64, of: fn(&(f64, f64, f64, f64)) -> f64| {
                        each.iter().map(of).reduce(pick).unwrap_or(0.0) * scale
                    };
                    (edge(f64::max, |f| f.2), edge(f64::min, |f| f.3))
                };
                Some(Summary { name, unit, now: total(|f| f.0), mean: total(|f| f.1), peak, low, sources })
            })
            .collect()
    }
}

/// The newest value, the mean, the highest and the lowest of a line.
fn figures(line: &[Point]) -> Option<(f64, f64, f64, f64)> {
    let last = line.last()?;
    let count: f64 = line.iter().map(|p| f64::from(p.count)).sum();
    let sum: f64 = line.iter().map(|p| p.avg * f64::from(p.count)).sum();
    let peak = line.iter().map(|p| p.max).fold(f64::NEG_INFINITY, f64::max);
    let low = line.iter().map(|p| p.min).fold(f64::INFINITY, f64::min);
    Some((last.avg, sum / count.max(1.0), peak, low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed() -> JobFeed {
        let mut feed = JobFeed::default();
        for (source, values) in [("gpu0", [100.0, 300.0]), ("gpu1", [200.0, 400.0])] {
            for metric in ["power_w", "utilization"] {
                let line = feed.lines.entry((source.to_owned(), metric.to_owned())).or_default();
                for (n, value) in values.iter().enumerate() {
                    let value = if metric == "power_w" { *value } else { value / 1000.0 };
                    line.add(n as i64 + 1, n as f64 * 1000.0, value);
                }
            }
        }
        feed
    }

    #[test]
    fn power_adds_up_and_utilization_does_not() {
        let found = feed().summaries();
        let power = &found[0];
        assert_eq!(
            (power.now, power.mean, power.peak, power.low, power.sources),
            (700.0, 500.0, 700.0, 300.0, 2)
        );
        let utilization = &found[1];
        assert_eq!((utilization.now.round(), utilization.mean.round()), (35.0, 25.0));
        assert_eq!((utilization.peak.round(), utilization.low.round()), (40.0, 10.0));
    }

    #[test]
    fn what_was_not_sampled_has_no_summary() {
        assert_eq!(feed().summaries().len(), 2);
        assert!(JobFeed::default().summaries().is_empty());
    }
}
