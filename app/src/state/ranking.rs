//! The leaderboard's order: the best scenario of each workload and server, by the mean of its runs; ranks are shared where
//! the intervals overlap, because then nobody knows who is better.

use events::ranking::{Interval, places};

use crate::row::Row;

/// A place on the leaderboard.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// From 1; shared by those who cannot be told apart.
    pub rank: usize,
    /// Whether somebody shares it.
    pub shared: bool,
    /// The newest run of the scenario: its figure is the one that is proved.
    pub row: Row,
    /// The mean of the scenario's runs.
    pub value: f64,
    /// The 95 % interval over its runs; nothing where it ran once.
    pub interval: Option<Interval>,
}

/// Ranks results by a metric. `lower` says that less is better.
pub fn ranking(rows: &[Row], metric: &str, lower: bool) -> Vec<Place> {
    let key = |row: &Row, keys: &[&str]| keys.iter().map(|k| row.text(k)).collect::<Vec<_>>().join("/");
    let setup = |row: &Row| key(row, &["org", "project_code", "workload_code", "config_code", "hostname"]);
    let better = |a: f64, b: f64| if lower { a < b } else { a > b };

    // The runs of each scenario on each server.
    let mut scenarios: Vec<(String, String, Vec<&Row>)> = Vec::new();
    for row in rows.iter().filter(|row| row.number(metric).is_some()) {
        let (setup, scenario) = (setup(row), row.text("scenario_code"));
        match scenarios.iter_mut().find(|(s, c, _)| *s == setup && *c == scenario) {
            Some((_, _, runs)) => runs.push(row),
            None => scenarios.push((setup, scenario, vec![row])),
        }
    }
    // The best scenario of each.
    let mut best: Vec<(String, Place)> = Vec::new();
    for (setup, _, runs) in scenarios {
        let values: Vec<f64> = runs.iter().filter_map(|row| row.number(metric)).collect();
        let value = values.iter().sum::<f64>() / values.len() as f64;
        let newest = runs
            .iter()
            .max_by_key(|row| row.whole("run_number").unwrap_or(0))
            .copied()
            .cloned()
            .unwrap_or_default();
        let place = Place { rank: 0, shared: false, row: newest, value, interval: Interval::of(&values) };
        match best.iter_mut().find(|(s, _)| *s == setup) {
            Some((_, old)) if better(value, old.value) => *old = place,
            Some(_) => {}
            None => best.push((setup, place)),
        }
    }
    let mut ranked: Vec<Place> = best.into_iter().map(|(_, place)| place).collect();
    ranked.sort_by(|a, b| if lower { a.value.total_cmp(&b.value) } else { b.value.total_cmp(&a.value) });
    let standings: Vec<(f64, Option<f64>)> =
        ranked.iter().map(|p| (p.value, p.interval.map(|i| i.half))).collect();
    for (place, found) in ranked.iter_mut().zip(places(&standings)) {
        (place.rank, place.shared) = (found.rank, found.shared);
    }
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn row(workload: &str, scenario: &str, run: u32, value: f64) -> Row {
        serde_json::from_value(
            json!({"org": "o", "project_code": "p", "workload_code": workload, "scenario_code": scenario,
            "config_code": "c", "hostname": "h", "run_number": run, "v": value}),
        )
        .expect("a row")
    }

    #[test]
    fn those_whose_intervals_overlap_share_a_rank() {
        let rows = [
            row("a", "c8", 1, 900.0),
            row("b", "c8", 1, 500.0),
            row("b", "c8", 2, 510.0),
            row("c", "c8", 1, 490.0),
            row("d", "c8", 1, 100.0),
        ];
        let ranks: Vec<(usize, bool)> =
            ranking(&rows, "v", false).iter().map(|p| (p.rank, p.shared)).collect();
        assert_eq!(ranks, [(1, false), (2, true), (2, true), (4, false)]);
    }

    #[test]
    fn a_workload_stands_with_its_best_scenario_and_the_mean_of_its_runs() {
        let rows = [row("a", "c1", 1, 10.0), row("a", "c8", 1, 90.0), row("a", "c8", 2, 110.0)];
        let places = ranking(&rows, "v", false);
        assert_eq!((places.len(), places[0].value, places[0].row.whole("run_number")), (1, 100.0, Some(2)));
        assert_eq!(ranking(&rows, "v", true)[0].value, 10.0);
    }

    #[test]
    fn what_was_not_measured_has_no_rank() {
        assert!(ranking(&[Row::default()], "v", false).is_empty());
    }

    proptest! {
        #[test]
        fn ranks_never_go_down_the_list_and_the_first_is_first(values in proptest::collection::vec((0u8..6, 1u32..100), 1..30), lower: bool) {
            let rows: Vec<Row> = values.iter().enumerate().map(|(n, (w, v))| row(&format!("w{w}"), "c1", n as u32, f64::from(*v))).collect();
            let places = ranking(&rows, "v", lower);
            prop_assert_eq!(places[0].rank, 1);
            prop_assert!(places.windows(2).all(|pair| pair[0].rank <= pair[1].rank));
            prop_assert!(places.iter().enumerate().all(|(n, p)| p.rank <= n + 1));
        }
    }
}
