//! The leaderboard's arithmetic: the interval over repeated runs, and ranks that are shared where intervals overlap,
//! because then nobody knows who is better. The control plane and the page both use it.

/// What repeated runs say: their mean and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % interval.
    pub half: f64,
    /// Of how many runs.
    pub runs: usize,
}

/// Student's t for 95 %, two-sided, by degrees of freedom from 1.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Interval {
    /// Of the values of at least two runs.
    pub fn of(values: &[f64]) -> Option<Self> {
        let runs = values.len();
        if runs < 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / runs as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (runs - 1) as f64;
        let t = T_95.get(runs - 2).copied().unwrap_or(1.96);
        Some(Self { mean, half: t * (variance / runs as f64).sqrt(), runs })
    }
}

/// A place on a leaderboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// From 1; shared by those who cannot be told apart.
    pub rank: usize,
    /// Whether somebody shares it.
    pub shared: bool,
}

/// The places of entries that stand best first, each with its value and half the width of its interval (nothing where it
/// ran once). Whoever overlaps with the first of a rank shares that rank; the next rank counts those before it.
pub fn places(entries: &[(f64, Option<f64>)]) -> Vec<Place> {
    let span = |nth: usize| {
        let (value, half) = entries[nth];
        let half = half.unwrap_or(0.0);
        (value - half, value + half)
    };
    let mut places: Vec<Place> = Vec::with_capacity(entries.len());
    let mut first = 0;
    for nth in 0..entries.len() {
        let ((low, high), (first_low, first_high)) = (span(nth), span(first));
        if low > first_high || high < first_low {
            first = nth;
        }
        let shared = nth != first;
        places.push(Place { rank: first + 1, shared });
        if shared {
            places[first].shared = true;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranks(entries: &[(f64, Option<f64>)]) -> Vec<(usize, bool)> {
        places(entries).iter().map(|place| (place.rank, place.shared)).collect()
    }

    #[test]
    fn those_whose_intervals_overlap_share_a_rank() {
        let entries = [(900.0, None), (505.0, Some(63.5)), (490.0, None), (100.0, None)];
        assert_eq!(ranks(&entries), [(1, false), (2, true), (2, true), (4, false)]);
    }

    #[test]
    fn equal_values_share_a_rank_and_a_chain_of_overlaps_ends_with_its_first() {
        assert_eq!(ranks(&[(5.0, None), (5.0, None)]), [(1, true), (1, true)]);
        // The third overlaps with the second, not with the first.
        let entries = [(10.0, Some(1.0)), (9.0, Some(1.0)), (7.5, Some(1.0))];
        assert_eq!(ranks(&entries), [(1, true), (1, true), (3, false)]);
    }

    #[test]
    fn the_interval_is_students() {
        let interval = Interval::of(&[10.0, 12.0, 14.0]).unwrap();
        assert_eq!((interval.mean, interval.runs), (12.0, 3));
        assert!((interval.half - 4.303 * 2.0 / 3.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Interval::of(&[10.0]), None);
    }

    proptest! {
        #[test]
        fn ranks_never_go_down_the_list(mut values in proptest::collection::vec((0.0..100.0f64, proptest::option::of(0.0..5.0f64)), 1..40)) {
            values.sort_by(|a, b| b.0.total_cmp(&a.0));
            let places = places(&values);
            prop_assert_eq!(places[0].rank, 1);
            prop_assert!(places.windows(2).all(|pair| pair[0].rank <= pair[1].rank));
            for (nth, place) in places.iter().enumerate() {
                prop_assert!(place.rank <= nth + 1);
                let others = places.iter().filter(|other| other.rank == place.rank).count();
                prop_assert_eq!(place.shared, others > 1);
            }
        }
    }
}
