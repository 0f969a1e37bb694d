//! A run's figures against those of the run that is pinned as its baseline: another run of the same workload. Which one is
//! in the address (`baseline`).

use super::compare::Side;
use super::query::Query;
use crate::row::Row;

/// By how much a figure differs from the baseline's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delta {
    /// 0.04 is +4 %.
    pub share: f64,
    /// Whether that is no more than the 95 % interval over repeated runs of the baseline's scenario.
    pub noise: bool,
}

/// The number of the run that is the baseline.
pub fn read(query: &Query) -> Option<i64> {
    query.get("baseline")?.parse().ok().filter(|run| *run > 0)
}

/// Makes a run the baseline, or none.
pub fn write(run: Option<i64>, query: &mut Query) {
    query.set("baseline", run.map(|run| run.to_string()).as_deref());
}

/// The difference of a result's figure to that of the same scenario in the baseline. `results` are those of the workload.
/// Nothing where either did not measure it.
pub fn delta(results: &[Row], run: i64, result: &Row, metric: &str) -> Option<Delta> {
    let scenario = result.text("scenario_code");
    let base = results
        .iter()
        .find(|row| row.whole("run_number") == Some(run) && row.text("scenario_code") == scenario)?;
    let (value, before) = (result.number(metric)?, base.number(metric).filter(|value| *value != 0.0)?);
    let mut side = Side { result: base.clone(), ..Side::default() };
    side.repeats = results.iter().filter(|row| side.is_repeat(row)).cloned().collect();
    let noise = side.interval(metric).is_some_and(|interval| (value - interval.mean).abs() <= interval.half);
    Some(Delta { share: value / before - 1.0, noise })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(run: i64, scenario: &str, output: Option<f64>) -> Row {
        let row = json!({"org": "o", "project_code": "p", "workload_code": "w", "run_number": run, "scenario_code": scenario,
            "config_code": "c", "hostname": "h", "output_tokens_per_second": output});
        serde_json::from_value(row).expect("a row")
    }

    #[test]
    fn a_figure_is_compared_with_its_own_scenario_in_the_baseline() {
        let results = [result(1, "c1", Some(100.0)), result(1, "c8", Some(400.0)), result(2, "c8", None)];
        let of = |row: &Row, run| delta(&results, run, row, "output_tokens_per_second").map(|d| d.share);
        assert_eq!(of(&result(3, "c8", Some(500.0)), 1), Some(0.25));
        assert_eq!(of(&result(3, "c8", Some(500.0)), 2), None, "it measured nothing there");
        assert_eq!(of(&result(3, "c16", Some(500.0)), 1), None);
        assert_eq!(of(&result(3, "c8", None), 1), None);
    }

    #[test]
    fn a_difference_within_the_interval_of_repeated_runs_is_noise() {
        let results =
            [result(1, "c8", Some(100.0)), result(2, "c8", Some(104.0)), result(3, "c8", Some(102.0))];
        let noise = |output| {
            delta(&results, 1, &result(4, "c8", Some(output)), "output_tokens_per_second").map(|d| d.noise)
        };
        assert_eq!(noise(103.0), Some(true));
        assert_eq!(noise(150.0), Some(false));
        // Of a single run no interval is known.
        let once = [result(1, "c8", Some(100.0))];
        let one = delta(&once, 1, &result(4, "c8", Some(100.1)), "output_tokens_per_second");
        assert_eq!(one.map(|d| d.noise), Some(false));
    }

    #[test]
    fn the_baseline_is_in_the_address() {
        let mut query = Query::parse("?drawer=proof");
        write(Some(2), &mut query);
        assert_eq!(read(&Query::parse(&query.write())), Some(2));
        write(None, &mut query);
        assert_eq!(query.write(), "?drawer=proof");
        assert_eq!(read(&Query::parse("?baseline=x")), None);
    }
}
