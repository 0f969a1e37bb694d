//! How many results have a figure within each stretch of values: what a count with a bound on a figure is answered by,
//! but for the results whose value lies in the very stretch that the bound cuts through. Folded by [`super::results`].

use events::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::access;
use super::result::ResultRow;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// How a figure is read from a result.
type Reads = fn(&ResultRow) -> Option<f64>;

/// The figures whose values are counted by stretches, in the order of their numbers: a change here is a new version of the
/// projection. Each has an index of its own in [`ResultRow`], which the results at a bound's edge are counted by.
const FIGURES: [(&str, Reads); 21] = [
    ("output_tokens_per_second", |r| r.figures.output_tokens_per_second),
    ("output_tokens_per_second_per_gpu", |r| r.figures.output_tokens_per_second_per_gpu),
    ("requests_per_second", |r| r.figures.requests_per_second),
    ("total_tokens_per_second", |r| r.figures.total_tokens_per_second),
    ("interactivity_tps", |r| r.figures.interactivity_tps),
    ("ttft_p50_ms", |r| r.figures.ttft_p50_ms),
    ("ttft_p90_ms", |r| r.figures.ttft_p90_ms),
    ("ttft_p95_ms", |r| r.figures.ttft_p95_ms),
    ("ttft_p99_ms", |r| r.figures.ttft_p99_ms),
    ("tpot_avg_ms", |r| r.figures.tpot_avg_ms),
    ("tpot_p50_ms", |r| r.figures.tpot_p50_ms),
    ("tpot_p99_ms", |r| r.figures.tpot_p99_ms),
    ("response_time_p50_ms", |r| r.figures.response_time_p50_ms),
    ("response_time_p99_ms", |r| r.figures.response_time_p99_ms),
    ("error_rate_pct", |r| r.figures.error_rate_pct),
    ("window_s", |r| r.figures.window_s),
    ("gpu_power_avg_w", |r| r.gpu_power_avg_w),
    ("output_tokens_per_joule", |r| r.output_tokens_per_joule),
    ("cost_per_million_output_tokens_usd", |r| r.cost_per_million_output_tokens_usd),
    ("output_tokens_per_usd", |r| r.output_tokens_per_usd),
    ("quality_score", |r| r.quality_score),
];
/// The time whose hours are counted too; its number is the one after the figures'.
const TIME: &str = "finished_at";
/// A stretch of time, microseconds: an hour.
const HOUR_US: i64 = 3_600_000_000;
/// Bits of a number that its stretch leaves out. What stays is sign, exponent and three bits: eight stretches from a value
/// to its double.
const FINER_BITS: u32 = 49;

/// The number of a figure, or of the time, whose values are counted by stretches.
pub fn figure(name: &str) -> Option<i64> {
    let number = FIGURES.iter().position(|(figure, _)| *figure == name);
    number.or_else(|| (name == TIME).then_some(FIGURES.len())).and_then(|number| i64::try_from(number).ok())
}

/// The stretch that holds a number. Zero has one of its own; greater numbers have greater stretches.
pub fn stretch(number: f64) -> i64 {
    if number == 0.0 {
        return 0;
    }
    // PostgreSQL has one NaN, above all numbers.
    let bits = if number.is_nan() { f64::NAN } else { number }.to_bits().cast_signed();
    let stretch = ordered(bits) >> FINER_BITS;
    if number > 0.0 { stretch.max(1) } else { stretch }
}

/// The least number of a stretch; NaN beyond the infinities.
pub fn least(stretch: i64) -> f64 {
    // The numbers above zero have the stretch after its own.
    let bits = if stretch == 1 { 1 } else { stretch << FINER_BITS };
    f64::from_bits(ordered(bits).cast_unsigned())
}

/// A number's bits so that they are in the numbers' order, and back.
fn ordered(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

/// The stretch that holds a time.
pub fn hour(time: Timestamp) -> i64 {
    time.as_micros().div_euclid(HOUR_US)
}

/// When such a stretch begins; `None` outside the years 1 to 9999.
pub fn begins(hour: i64) -> Option<Timestamp> {
    Timestamp::from_micros(hour.checked_mul(HOUR_US)?).ok()
}

/// What results are counted apart by, whatever their figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Group {
    org: String,
    project_code: String,
    model_code: String,
    framework_code: Option<String>,
    status: String,
    simulated: bool,
    imported: bool,
    suspicious: bool,
}

impl Group {
    /// All of it in a number.
    fn number(&self) -> i64 {
        let digest = Sha256::digest(serde_json::json!(self).to_string().as_bytes());
        digest.iter().take(8).fold(0, |number, byte| number << 8 | i64::from(*byte))
    }
}

/// Where a result is counted.
#[derive(Debug, PartialEq)]
pub(super) struct Places {
    group: Group,
    stretches: [Option<i64>; FIGURES.len() + 1],
    visibility: String,
    owner: String,
}

impl Places {
    pub(super) fn of(result: &ResultRow) -> Self {
        let mut stretches = [None; FIGURES.len() + 1];
        for (place, (_, read)) in stretches.iter_mut().zip(FIGURES) {
            *place = read(result).map(stretch);
        }
        stretches[FIGURES.len()] = result.finished_at.map(hour);
        Self {
            group: Group {
                org: result.org.clone(),
                project_code: result.project_code.clone(),
                model_code: result.setup.model_code.clone(),
                framework_code: result.setup.framework_code.clone(),
                status: result.status.clone(),
                simulated: result.figures.simulated,
                imported: result.imported,
                suspicious: result.suspicious,
            },
            stretches,
            visibility: result.visibility.clone(),
            owner: result.owner.clone(),
        }
    }

    /// The rows that count it.
    pub(super) fn rows(self) -> impl Iterator<Item = FigureCountRow> {
        let group_no = self.group.number();
        (0..).zip(self.stretches).filter_map(move |(figure, stretch)| {
            Some(FigureCountRow {
                figure,
                stretch: stretch?,
                group_no,
                group: self.group.clone(),
                n: 0,
                visibility: self.visibility.clone(),
                owner: self.owner.clone(),
            })
        })
    }
}

/// How many results of a group have a figure within a stretch of values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureCountRow {
    figure: i64,
    stretch: i64,
    group_no: i64,
    #[serde(flatten)]
    group: Group,
    n: i64,
    visibility: String,
    owner: String,
}

impl Row for FigureCountRow {
    type Key = (i64, i64, i64);
    const TABLE: &'static str = "result_figure_counts";
    const KEY: &'static [&'static str] = &["figure", "stretch", "group_no"];
    const TALLY: Option<&'static str> = Some("n");

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Text};
        let shown = |kind: Kind, names: &[&str]| -> Vec<Column> {
            names.iter().map(|name| Column::shown(name, kind)).collect()
        };
        let mut columns = shown(Int, &["figure", "stretch", "group_no"]);
        columns.extend(shown(Text, &["org", "project_code", "model_code", "framework_code", "status"]));
        columns.extend(shown(Bool, &["simulated", "imported", "suspicious"]));
        columns.extend(shown(Int, &["n"]));
        columns.extend(access::columns());
        columns
    }
    fn key(&self) -> Self::Key {
        (self.figure, self.stretch, self.group_no)
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.group.org, &self.group.project_code, &mut self.visibility)
    }
    fn tally(&mut self) -> Option<&mut i64> {
        Some(&mut self.n)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_figure_has_an_index_and_a_column() {
        let columns = ResultRow::columns();
        for name in FIGURES.iter().map(|(name, _)| *name).chain([TIME]) {
            assert!(columns.iter().any(|column| column.name == name), "{name}");
            let index = format!("{name} include org, visibility, owner, kind_no");
            assert!(ResultRow::INDEXES.contains(&index.as_str()), "{name}");
        }
    }

    #[test]
    fn zero_is_alone_in_its_stretch() {
        assert_eq!([stretch(0.0), stretch(-0.0)], [0, 0]);
        assert_eq!([stretch(f64::from_bits(1)), stretch(-f64::from_bits(1))], [1, -1]);
        assert_eq!([least(0), least(1)], [0.0, f64::from_bits(1)]);
        assert_eq!(stretch(f64::MIN_POSITIVE), stretch(f64::MIN_POSITIVE * 1.1));
        assert!(stretch(f64::NAN) > stretch(f64::INFINITY));
    }

    #[test]
    fn a_value_and_its_double_are_eight_stretches_apart() {
        assert_eq!(stretch(14.0) - stretch(7.0), 8);
    }

    proptest! {
        #[test]
        fn a_stretch_holds_what_lies_between_its_least_and_the_next(
            number in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO,
            other in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL,
        ) {
            let place = stretch(number);
            prop_assert!(least(place) <= number && number < least(place + 1));
            if number < other {
                prop_assert!(place <= stretch(other));
            }
        }

        #[test]
        fn an_hour_holds_its_times(micros in -60_000_000_000_000_000_i64..200_000_000_000_000_000) {
            let time = Timestamp::from_micros(micros).unwrap();
            prop_assert!(begins(hour(time)).unwrap() <= time);
            prop_assert!(time < begins(hour(time) + 1).unwrap());
        }
    }
}
