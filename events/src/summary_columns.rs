//! The summary line flattened into columns: the one place that says which columns there are.
//!
//! A path becomes a name: `ttft_ms.p99` → `ttft_p99_ms`, `requests.succeeded` → `requests_succeeded`,
//! `throughput.completion_tokens_per_second` → `completion_tokens_per_second`.

use crate::summary::{CountStats, Distribution, Figures};

/// The statistics of a distribution, in column order.
pub const DISTRIBUTION_STATS: &[&str] = &["min", "max", "avg", "std", "p50", "p90", "p95", "p99", "p99_9"];

/// The statistics of a count, in column order.
pub const COUNT_STATS: &[&str] = &["total", "min", "max", "avg", "p50", "p95", "per_second"];

/// Durations of which a run has a distribution: the column's stem; the unit comes last.
pub const DURATION_STEMS: &[&str] = &[
    "response_time",
    "ttft",
    "first_token",
    "first_reasoning",
    "tpot",
    "tpot_excl_first",
    "inter_chunk",
    "schedule_delay",
    "response_time_from_schedule",
];

/// Counts a request: the column's stem.
pub const COUNT_STEMS: &[&str] = &[
    "prompt_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cached_prompt_tokens",
    "prompt_words",
    "completion_words",
];

/// One figure of a summary under its column's name. Absent means null, never 0.
pub type Column = (String, Option<f64>);

/// The figures of a text run in column order. Every summary yields the same names in the same order.
pub fn columns(figures: &Figures) -> Vec<Column> {
    let mut out: Vec<Column> = Vec::with_capacity(160);
    let mut put = |name: &str, value: Option<f64>| out.push((name.to_owned(), value));

    let r = &figures.requests;
    put("requests_attempted", Some(r.attempted as f64));
    put("requests_succeeded", Some(r.succeeded as f64));
    put("requests_failed", Some(r.failed as f64));
    put("requests_incomplete", Some(r.incomplete as f64));
    put("requests_empty", Some(r.empty as f64));
    put("requests_warmup", Some(r.warmup as f64));
    put("requests_ramp_up", Some(r.ramp_up as f64));
    put("window_s", figures.window_s);

    let t = &figures.throughput;
    put("requests_per_second", t.requests_per_second);
    put("prompt_tokens_per_second", t.prompt_tokens_per_second);
    put("completion_tokens_per_second", t.completion_tokens_per_second);
    put("total_tokens_per_second", t.total_tokens_per_second);

    put("error_count", Some(figures.errors.count as f64));
    put("error_rate_pct", figures.errors.rate_pct);
    put("goodput_requests_per_second", figures.goodput.as_ref().and_then(|g| g.requests_per_second));
    put("goodput_fraction", figures.goodput.as_ref().and_then(|g| g.fraction));

    for stem in DURATION_STEMS {
        let distribution = duration(figures, stem);
        for stat in DISTRIBUTION_STATS {
            put(&format!("{stem}_{stat}_ms"), distribution.and_then(|d| statistic(d, stat)));
        }
        put(&format!("{stem}_n"), distribution.map(|d| d.n as f64));
    }
    for stem in COUNT_STEMS {
        let counts = count(figures, stem);
        for stat in COUNT_STATS {
            let name = format!("{stem}_{stat}");
            // The throughput object already holds these two; one column, one value.
            if matches!(name.as_str(), "prompt_tokens_per_second" | "completion_tokens_per_second") {
                continue;
            }
            put(&name, counts.and_then(|c| count_statistic(c, stat)));
        }
    }
    out
}

/// The column of a path into a summary: `["ttft_ms", "p99"]` is `ttft_p99_ms`. The unit comes last; a number of samples
/// has none.
pub fn column_of(path: &[&str]) -> String {
    let mut parts: Vec<&str> = path.to_vec();
    match parts.first() {
        Some(&"throughput") => drop(parts.remove(0)),
        Some(&"errors") => parts[0] = "error",
        _ => {}
    }
    let last = parts.len().saturating_sub(1);
    let Some(at) = parts.iter().position(|part| part.ends_with("_ms")).filter(|at| *at < last) else {
        return parts.join("_");
    };
    parts[at] = parts[at].trim_end_matches("_ms");
    let joined = parts.join("_");
    if parts[last] == "n" { joined } else { format!("{joined}_ms") }
}

/// The names [`columns`] yields, in order.
pub fn column_names() -> Vec<String> {
    columns(&Figures::default()).into_iter().map(|(name, _)| name).collect()
}

fn duration<'a>(figures: &'a Figures, stem: &str) -> Option<&'a Distribution> {
    match stem {
        "response_time" => figures.response_time_ms.as_ref(),
        "ttft" => figures.ttft_ms.as_ref(),
        "first_token" => figures.first_token_ms.as_ref(),
        "first_reasoning" => figures.first_reasoning_ms.as_ref(),
        "tpot" => figures.tpot_ms.as_ref(),
        "tpot_excl_first" => figures.tpot_excl_first_ms.as_ref(),
        "inter_chunk" => figures.inter_chunk_ms.as_ref(),
        "schedule_delay" => figures.schedule_delay_ms.as_ref(),
        "response_time_from_schedule" => figures.response_time_from_schedule_ms.as_ref(),
        _ => None,
    }
}

fn count<'a>(figures: &'a Figures, stem: &str) -> Option<&'a CountStats> {
    match stem {
        "prompt_tokens" => figures.prompt_tokens.as_ref(),
        "completion_tokens" => figures.completion_tokens.as_ref(),
        "reasoning_tokens" => figures.reasoning_tokens.as_ref(),
        "cached_prompt_tokens" => figures.cached_prompt_tokens.as_ref(),
        "prompt_words" => figures.prompt_words.as_ref(),
        "completion_words" => figures.completion_words.as_ref(),
        _ => None,
    }
}

fn statistic(d: &Distribution, stat: &str) -> Option<f64> {
    match stat {
        "min" => d.min,
        "max" => d.max,
        "avg" => d.avg,
        "std" => d.std,
        "p50" => d.p50,
        "p90" => d.p90,
        "p95" => d.p95,
        "p99" => d.p99,
        "p99_9" => d.p99_9,
        _ => None,
    }
}

fn count_statistic(c: &CountStats, stat: &str) -> Option<f64> {
    match stat {
        "total" => Some(c.total as f64),
        "min" => c.min.map(|v| v as f64),
        "max" => c.max.map(|v| v as f64),
        "avg" => c.avg,
        "p50" => c.p50.map(|v| v as f64),
        "p95" => c.p95.map(|v| v as f64),
        "per_second" => c.per_second,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metrics::metric;

    #[test]
    fn a_path_becomes_its_column() {
        let figures = Figures {
            ttft_ms: Some(Distribution { n: 1, p99: Some(402.0), ..Distribution::default() }),
            ..Figures::default()
        };
        let columns = columns(&figures);
        let value =
            |name: &str| columns.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{name}")).1;
        assert_eq!(value("ttft_p99_ms"), Some(402.0));
        assert_eq!(value("ttft_p99_9_ms"), None);
        assert_eq!(value("tpot_avg_ms"), None, "what was not measured is null");
    }

    #[test]
    fn any_path_has_a_column() {
        for (path, column) in [
            (&["ttft_ms", "p99"][..], "ttft_p99_ms"),
            (&["ttft_ms", "n"], "ttft_n"),
            (&["requests", "succeeded"], "requests_succeeded"),
            (&["throughput", "requests_per_second"], "requests_per_second"),
            (&["errors", "rate_pct"], "error_rate_pct"),
            (&["client", "loop_lag_ms", "p50"], "client_loop_lag_p50_ms"),
            (&["host", "clock_offset_ms"], "host_clock_offset_ms"),
            (&["wer", "p50"], "wer_p50"),
        ] {
            assert_eq!(column_of(path), column);
        }
    }

    #[test]
    fn no_column_is_named_twice() {
        let names = column_names();
        let unique: BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }

    #[test]
    fn every_column_is_in_the_metric_catalogue() {
        let missing: Vec<String> = column_names().into_iter().filter(|name| metric(name).is_none()).collect();
        assert_eq!(missing, Vec::<String>::new());
    }
}
