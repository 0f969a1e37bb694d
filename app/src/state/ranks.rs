//! The intervals of a ranking on one scale.

use crate::format::significant;
use crate::row::Row;

/// From where to where the intervals of a ranking reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
}

/// Where an interval stands on its scale, 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// Its lower end.
    pub low: f64,
    /// Its mean.
    pub mean: f64,
    /// Its upper end.
    pub high: f64,
}

impl Scale {
    /// The scale that all entries fit on; nothing where none has a value.
    pub fn of(entries: &[Row]) -> Option<Self> {
        let ends = entries.iter().filter_map(|row| {
            let (value, half) = (row.number("value")?, row.number("interval_half").unwrap_or(0.0));
            Some((value - half, value + half))
        });
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (from, to)| {
            (low.min(from), high.max(to))
        });
        if !low.is_finite() {
            return None;
        }
        // Room at both ends, also where all are alike; figures are never negative.
        let room = ((high - low) * 0.05).max(high.abs() * 0.005);
        let low = if low >= 0.0 { (low - room).max(0.0) } else { low - room };
        Some(Self { low, high: high + room })
    }

    /// Its ends in words.
    pub fn words(self) -> String {
        format!("{} to {}", significant(self.low), significant(self.high))
    }

    /// Where a value with half its interval stands.
    pub fn place(self, value: f64, half: f64) -> Place {
        let span = self.high - self.low;
        let at = |value: f64| {
            let share = if span > 0.0 { (value - self.low) / span } else { 0.5 };
            (share.clamp(0.0, 1.0) * 1000.0).round() / 10.0
        };
        Place { low: at(value - half), mean: at(value), high: at(value + half) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn entry(value: f64, half: Option<f64>) -> Row {
        serde_json::from_value(json!({"value": value, "interval_half": half})).expect("a row")
    }

    #[test]
    fn intervals_stand_on_one_scale() {
        let scale = Scale::of(&[entry(200.0, Some(10.0)), entry(110.0, None)]).expect("a scale");
        assert_eq!(scale.words(), "105 to 215");
        assert_eq!(scale.place(160.0, 11.0), Place { low: 40.0, mean: 50.0, high: 60.0 });
        assert_eq!(Scale::of(&[]), None);
    }

    proptest! {
        #[test]
        fn every_interval_fits(values in proptest::collection::vec((0.0f64..1e6, proptest::option::of(0.0f64..1e3)), 1..20)) {
            let entries: Vec<Row> = values.iter().map(|(value, half)| entry(*value, *half)).collect();
            let scale = Scale::of(&entries).expect("a scale");
            for (value, half) in values {
                let place = scale.place(value, half.unwrap_or(0.0));
                prop_assert!(0.0 <= place.low && place.low <= place.mean && place.mean <= place.high && place.high <= 100.0);
            }
        }
    }
}
