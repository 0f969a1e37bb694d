//! The metric catalogue: what every figure is called, its unit, which direction is better, and its definition.
//!
//! Charts, tables, exports, the leaderboard and the documentation all read it; nothing else names a unit.

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better (↑).
    Higher,
    /// Less is better (↓).
    Lower,
    /// Neither: a fact, not a merit.
    Neutral,
}

impl Direction {
    /// The arrow shown in a column's header.
    pub fn arrow(self) -> &'static str {
        match self {
            Self::Higher => "↑",
            Self::Lower => "↓",
            Self::Neutral => "",
        }
    }
}

/// One metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// The column's name in SQL, the API and exports.
    pub column: String,
    /// The label shown to people.
    pub label: String,
    /// The unit, for example `ms`, `tok/s`, `W`; empty for plain counts.
    pub unit: &'static str,
    /// Which way is better.
    pub direction: Direction,
    /// The definition.
    pub definition: String,
}

use Direction::{Higher, Lower, Neutral};

use crate::metrics_external::EXTERNAL;
use crate::metrics_stems::{COUNTS, DURATIONS, OTHER_DURATIONS, RATIOS};
use crate::metrics_table::{Entry, SINGLE};

fn of(column: &str, label: String, unit: &'static str, direction: Direction, definition: String) -> Metric {
    Metric { column: column.to_owned(), label, unit, direction, definition }
}

/// Looks a column up.
pub fn metric(column: &str) -> Option<Metric> {
    if let Some(e) = SINGLE.iter().chain(EXTERNAL).find(|e| e.0 == column) {
        return Some(of(column, e.1.to_owned(), e.2, e.3, e.4.to_owned()));
    }
    // Longest stem first: `tpot_excl_first_avg_ms` is not a statistic of `tpot`.
    let mut stems: Vec<(&Entry, Kind)> = durations().map(|e| (e, Kind::Duration)).collect();
    stems.extend(RATIOS.iter().map(|e| (e, Kind::Ratio)));
    stems.extend(COUNTS.iter().map(|e| (e, Kind::Count)));
    stems.sort_by_key(|(e, _)| std::cmp::Reverse(e.0.len()));
    stems.into_iter().find_map(|(e, kind)| {
        let statistic = column.strip_prefix(e.0).and_then(|rest| rest.strip_prefix('_'))?;
        of_statistic(column, e, kind, statistic)
    })
}

/// What a stem names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A distribution of milliseconds.
    Duration,
    /// A distribution of something else.
    Ratio,
    /// A count a request.
    Count,
}

fn durations() -> impl Iterator<Item = &'static Entry> {
    DURATIONS.iter().chain(OTHER_DURATIONS)
}

fn of_statistic(column: &str, e: &Entry, kind: Kind, statistic: &str) -> Option<Metric> {
    if statistic == "n" {
        let definition = format!("Number of samples. {}", e.4);
        return Some(of(column, format!("{} samples", e.1), "", Neutral, definition));
    }
    if kind == Kind::Count && statistic == "per_second" {
        let (label, definition) = (format!("{} per second", e.1), format!("Total ÷ window. {}", e.4));
        let direction = if e.2 == "B" { Neutral } else { Higher };
        return Some(of(column, label, per_second(e.2), direction, definition));
    }
    if kind == Kind::Count && statistic == "total" {
        let definition = format!("Sum over succeeded requests. {}", e.4);
        return Some(of(column, format!("{}, total", e.1), e.2, Neutral, definition));
    }
    let statistic = if kind == Kind::Duration { statistic.strip_suffix("_ms")? } else { statistic };
    let label = format!("{} {}", e.1, statistic_label(statistic)?);
    let direction = match (kind, statistic) {
        (Kind::Count, _) => Neutral,
        (_, "std") => Lower,
        _ => e.3,
    };
    Some(of(column, label, e.2, direction, format!("{} {}", statistic_definition(statistic), e.4)))
}

fn per_second(unit: &str) -> &'static str {
    match unit {
        "tok" => "tok/s",
        "B" => "B/s",
        _ => "words/s",
    }
}

fn statistic_label(stat: &str) -> Option<&'static str> {
    Some(match stat {
        "min" => "min",
        "max" => "max",
        "avg" => "mean",
        "std" => "std",
        "p1" => "p1",
        "p5" => "p5",
        "p10" => "p10",
        "p25" => "p25",
        "p50" => "p50",
        "p75" => "p75",
        "p90" => "p90",
        "p95" => "p95",
        "p99" => "p99",
        "p99_9" => "p99.9",
        _ => return None,
    })
}

fn statistic_definition(stat: &str) -> &'static str {
    match stat {
        "min" => "The smallest over succeeded requests.",
        "max" => "The largest over succeeded requests.",
        "avg" => "Arithmetic mean over succeeded requests.",
        "std" => "Population standard deviation over succeeded requests.",
        _ => "Nearest-rank percentile over succeeded requests: sorted[⌈p·n/100⌉ − 1].",
    }
}

/// Every column with a definition, for documentation and the API.
pub fn all() -> Vec<Metric> {
    let mut columns: Vec<String> = SINGLE.iter().chain(EXTERNAL).map(|e| e.0.to_owned()).collect();
    columns.extend(crate::summary_columns::column_names());
    let statistics = |e: &Entry, unit: &str| {
        let stem = e.0;
        let each = crate::summary_columns::DISTRIBUTION_STATS.iter();
        each.map(|stat| format!("{stem}_{stat}{unit}")).chain([format!("{stem}_n")]).collect::<Vec<_>>()
    };
    columns.extend(OTHER_DURATIONS.iter().flat_map(|e| statistics(e, "_ms")));
    columns.extend(RATIOS.iter().flat_map(|e| statistics(e, "")));
    for e in COUNTS {
        let each = crate::summary_columns::COUNT_STATS.iter();
        columns.extend(each.map(|stat| format!("{}_{stat}", e.0)));
    }
    let genai_perf = crate::external_columns::genai_perf(&crate::foreign::ForeignFigures::default());
    columns.extend(crate::external_columns::names(&genai_perf));
    let mut seen = std::collections::BTreeSet::new();
    columns.retain(|column| seen.insert(column.clone()));
    columns.iter().filter_map(|c| metric(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_has_unit_direction_and_definition() {
        let m = metric("ttft_p99_ms").expect("known");
        assert_eq!((m.label.as_str(), m.unit, m.direction), ("TTFT p99", "ms", Lower));
        assert!(m.definition.contains("first non-empty visible content"));
    }

    #[test]
    fn a_longer_stem_wins() {
        assert_eq!(metric("tpot_excl_first_avg_ms").expect("known").label, "TPOT without the first mean");
    }

    #[test]
    fn a_rate_is_no_statistic_of_the_count_it_contains() {
        assert_eq!(metric("bytes_sent_per_second").expect("known").unit, "B/s");
        assert_eq!(metric("words_per_second_p50").expect("known").unit, "words/s");
        assert_eq!(metric("wer_p95").expect("known").direction, Lower);
    }

    #[test]
    fn every_metric_has_a_label_and_a_definition_and_is_there_once() {
        let all = all();
        assert!(all.iter().all(|m| !m.label.is_empty() && m.definition.ends_with('.')));
        let names: std::collections::BTreeSet<&str> = all.iter().map(|m| m.column.as_str()).collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn an_unknown_column_has_no_definition() {
        assert_eq!(metric("nonsense"), None);
    }
}
