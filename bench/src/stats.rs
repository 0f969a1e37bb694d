//! Distributions: exact while that is cheap, bounded in memory always.

use events::summary::{CountStats, Distribution};

/// Up to so many samples each one is kept; beyond, they go into bins.
pub const EXACT_SAMPLES: usize = 65_536;

/// A bin is at most 1/1024 (0.1 %) wide: 2^10 bins for each power of two.
const SUB_BITS: u32 = 10;
const BINS: usize = (64 - SUB_BITS as usize + 1) << SUB_BITS;

/// Nearest rank: the 1-based position in `n` sorted samples of the percentile `per_mille / 10`,
/// `ceil(p * n / 100)`, never below 1. Whole numbers, so that 99.9 % of 1000 is exactly 999.
pub fn nearest_rank(per_mille: u64, n: u64) -> u64 {
    let rank = (u128::from(per_mille) * u128::from(n)).div_ceil(1000) as u64;
    rank.clamp(1, n.max(1))
}

/// Samples of one quantity as whole numbers (nanoseconds, tokens, …).
#[derive(Clone, Debug, Default)]
pub struct Samples {
    exact: Vec<u64>,
    bins: Option<Box<[u64]>>,
    n: u64,
    min: u64,
    max: u64,
    total: u128,
    mean: f64,
    squares: f64,
}

impl Samples {
    /// Adds one sample.
    pub fn add(&mut self, value: u64) {
        self.n += 1;
        self.min = if self.n == 1 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.total += u128::from(value);
        let away = value as f64 - self.mean;
        self.mean += away / self.n as f64;
        self.squares += away * (value as f64 - self.mean);
        match &mut self.bins {
            Some(bins) => bins[bin_of(value)] += 1,
            None if self.exact.len() < EXACT_SAMPLES => self.exact.push(value),
            None => {
                let mut bins = vec![0; BINS].into_boxed_slice();
                for kept in std::mem::take(&mut self.exact) {
                    bins[bin_of(kept)] += 1;
                }
                bins[bin_of(value)] += 1;
                self.bins = Some(bins);
            }
        }
    }

    /// How many samples.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// True without samples.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The sum of all samples.
    pub fn total(&self) -> u64 {
        u64::try_from(self.total).unwrap_or(u64::MAX)
    }

    /// The mean; null without samples.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.total as f64 / self.n as f64)
    }

    /// The percentiles asked for (in per mille, ascending).
    pub fn percentiles<const N: usize>(&self, per_mille: [u64; N]) -> [Option<u64>; N] {
        if self.n == 0 {
            return [None; N];
        }
        let ranks = per_mille.map(|p| nearest_rank(p, self.n));
        match &self.bins {
            None => {
                let mut sorted = self.exact.clone();
                sorted.sort_unstable();
                ranks.map(|rank| sorted.get(rank as usize - 1).copied())
            }
            Some(bins) => ranks.map(|rank| {
                let mut below = 0;
                let bin = bins.iter().position(|count| {
                    below += count;
                    below >= rank
                })?;
                Some(upper_edge(bin).clamp(self.min, self.max))
            }),
        }
    }

    /// The distribution with every value multiplied by `unit` (1e-6 for nanoseconds shown as milliseconds);
    /// null without samples.
    pub fn distribution(&self, unit: f64) -> Option<Distribution> {
        if self.n == 0 {
            return None;
        }
        let scaled = |value: u64| Some(round(value as f64 * unit));
        let [p50, p90, p95, p99, p99_9] = self.percentiles([500, 900, 950, 990, 999]);
        let needed = [("p50", 2), ("p90", 10), ("p95", 20), ("p99", 100), ("p99_9", 1000)];
        Some(Distribution {
            n: self.n,
            min: scaled(self.min),
            max: scaled(self.max),
            avg: self.mean().map(|mean| round(mean * unit)),
            std: Some(round((self.squares / self.n as f64).max(0.0).sqrt() * unit)),
            p50: p50.and_then(scaled),
            p90: p90.and_then(scaled),
            p95: p95.and_then(scaled),
            p99: p99.and_then(scaled),
            p99_9: p99_9.and_then(scaled),
            unreliable: needed
                .iter()
                .filter(|(_, n)| self.n < *n)
                .map(|(name, _)| (*name).to_owned())
                .collect(),
            binned: self.bins.is_some(),
        })
    }

    /// The samples as counts per request; null without samples.
    pub fn counts(&self, window_s: Option<f64>, source: &str) -> Option<CountStats> {
        if self.n == 0 {
            return None;
        }
        let [p50, p95] = self.percentiles([500, 950]);
        Some(CountStats {
            n: self.n,
            total: self.total(),
            min: Some(self.min),
            max: Some(self.max),
            avg: self.mean().map(round),
            p50,
            p95,
            per_second: per_second(self.total() as f64, window_s),
            source: Some(source.to_owned()),
        })
    }
}

/// `amount / window`, null without a window.
pub fn per_second(amount: f64, window_s: Option<f64>) -> Option<f64> {
    window_s.filter(|window| *window > 0.0).map(|window| round(amount / window))
}

/// Six digits after the point: a nanosecond, shown in milliseconds.
pub fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn bin_of(value: u64) -> usize {
    let octave = (64 - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
    ((octave as usize) << SUB_BITS) + (value >> octave) as usize
}

/// The largest value of a bin.
fn upper_edge(bin: usize) -> u64 {
    let octave = (bin >> SUB_BITS).saturating_sub(1) as u32;
    let within = (bin - ((octave as usize) << SUB_BITS)) as u64;
    ((within + 1) << octave).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Samples {
        let mut samples = Samples::default();
        values.into_iter().for_each(|value| samples.add(value));
        samples
    }

    #[test]
    fn percentiles_agree_with_a_hand_worked_table() {
        // n, then p50, p90, p95, p99, p99.9 of the samples 1..=n.
        let table = [
            (1, [1, 1, 1, 1, 1]),
            (2, [1, 2, 2, 2, 2]),
            (3, [2, 3, 3, 3, 3]),
            (10, [5, 9, 10, 10, 10]),
            (11, [6, 10, 11, 11, 11]),
            (20, [10, 18, 19, 20, 20]),
            (100, [50, 90, 95, 99, 100]),
            (101, [51, 91, 96, 100, 101]),
            (1000, [500, 900, 950, 990, 999]),
            (1001, [501, 901, 951, 991, 1000]),
        ];
        for (n, expected) in table {
            let found = of((1..=n).rev()).percentiles([500, 900, 950, 990, 999]);
            assert_eq!(found, expected.map(Some), "n = {n}");
        }
    }

    #[test]
    fn nothing_measured_is_no_distribution() {
        assert_eq!(Samples::default().distribution(1.0), None);
    }

    #[test]
    fn few_samples_make_high_percentiles_unreliable() {
        assert_eq!(of(1..=50).distribution(1.0).unwrap().unreliable, ["p99", "p99_9"]);
    }

    #[test]
    fn mean_and_deviation_are_those_of_the_population() {
        let found = of([2, 4, 4, 4, 5, 5, 7, 9]).distribution(1.0).unwrap();
        assert_eq!((found.avg, found.std), (Some(5.0), Some(2.0)));
    }

    #[test]
    fn many_samples_stay_within_a_tenth_of_a_percent() {
        let n = 4 * EXACT_SAMPLES as u64;
        let samples = of((1..=n).map(|i| i * 1000));
        for (per_mille, found) in [500, 900, 990].into_iter().zip(samples.percentiles([500, 900, 990])) {
            let exact = (nearest_rank(per_mille, n) * 1000) as f64;
            assert!((found.unwrap() as f64 / exact - 1.0).abs() < 0.001, "{found:?} for {exact}");
        }
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bin(value in any::<u64>()) {
            let bin = bin_of(value);
            prop_assert!(bin < BINS);
            prop_assert!(upper_edge(bin) >= value);
            prop_assert!(bin == 0 || upper_edge(bin - 1) < value);
        }
    }
}
