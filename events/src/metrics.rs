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

struct Entry(&'static str, &'static str, &'static str, Direction, &'static str);

/// Single figures.
const SINGLE: &[Entry] = &[
    Entry(
        "requests_attempted",
        "Requests",
        "",
        Neutral,
        "Measured requests that were sent; warm-up and ramp-up are outside.",
    ),
    Entry(
        "requests_succeeded",
        "Succeeded",
        "",
        Higher,
        "Requests answered completely, as the protocol says a complete answer ends.",
    ),
    Entry("requests_failed", "Failed", "", Lower, "Requests ended by an error of any type."),
    Entry(
        "requests_incomplete",
        "Incomplete",
        "",
        Lower,
        "Requests still under way when the run was cancelled or ran out of time.",
    ),
    Entry(
        "requests_empty",
        "Empty answers",
        "",
        Lower,
        "Succeeded requests whose answer had no output; they have no TTFT.",
    ),
    Entry("requests_warmup", "Warm-up requests", "", Neutral, "Requests of the warm-up, in no other figure."),
    Entry(
        "requests_ramp_up",
        "Ramp-up requests",
        "",
        Neutral,
        "Requests that ended during the ramp-up, in no other figure.",
    ),
    Entry(
        "window_s",
        "Window",
        "s",
        Neutral,
        "The measurement window: from the first measured request sent (or the end of the ramp-up) until the last measured request ended.",
    ),
    Entry("requests_per_second", "Requests", "req/s", Higher, "Succeeded requests ÷ window."),
    Entry(
        "prompt_tokens_per_second",
        "Input throughput",
        "tok/s",
        Higher,
        "Prompt tokens of succeeded requests, from the server's usage ÷ window.",
    ),
    Entry(
        "completion_tokens_per_second",
        "Output throughput",
        "tok/s",
        Higher,
        "Completion tokens of succeeded requests, from the server's usage ÷ window.",
    ),
    Entry(
        "output_tokens_per_second",
        "Output throughput",
        "tok/s",
        Higher,
        "Completion tokens of succeeded requests, from the server's usage ÷ window.",
    ),
    Entry(
        "total_tokens_per_second",
        "Total throughput",
        "tok/s",
        Higher,
        "Prompt and completion tokens of succeeded requests ÷ window.",
    ),
    Entry(
        "output_tokens_per_second_per_gpu",
        "Per GPU",
        "tok/s/GPU",
        Higher,
        "Output throughput ÷ GPUs of the host that the job used.",
    ),
    Entry(
        "interactivity_tps",
        "Interactivity",
        "tok/s/user",
        Higher,
        "1000 ÷ mean TPOT in milliseconds: what one user sees.",
    ),
    Entry("error_count", "Errors", "", Lower, "Failed requests."),
    Entry(
        "error_rate_pct",
        "Error rate",
        "%",
        Lower,
        "Failed requests as a percentage of the requests that ended.",
    ),
    Entry(
        "goodput_requests_per_second",
        "Goodput",
        "req/s",
        Higher,
        "Succeeded requests that kept every objective ÷ window.",
    ),
    Entry(
        "goodput_fraction",
        "Goodput share",
        "",
        Higher,
        "Requests that kept every objective ÷ attempted requests, failures included.",
    ),
    Entry(
        "gpu_power_avg_w",
        "GPU power",
        "W",
        Lower,
        "Mean of the summed power of all GPUs while the load ran.",
    ),
    Entry(
        "energy_j",
        "GPU energy",
        "J",
        Lower,
        "Power of all GPUs integrated over the measurement window; null where telemetry is incomplete.",
    ),
    Entry(
        "output_tokens_per_joule",
        "Efficiency",
        "tok/J",
        Higher,
        "Completion tokens ÷ GPU energy over the same window; null where telemetry is incomplete.",
    ),
    Entry(
        "cost_per_million_output_tokens_usd",
        "Cost",
        "$/M tok",
        Lower,
        "Server price an hour × window ÷ completion tokens × 1,000,000.",
    ),
    Entry(
        "avg_gpu_power_w",
        "Mean GPU power",
        "W",
        Lower,
        "Mean power draw of one GPU over the job's samples.",
    ),
    Entry("max_gpu_power_w", "Peak GPU power", "W", Lower, "Highest power draw of one GPU."),
    Entry("min_gpu_power_w", "Lowest GPU power", "W", Neutral, "Lowest power draw of one GPU."),
    Entry(
        "avg_gpu_utilization",
        "GPU utilization",
        "",
        Higher,
        "Mean fraction of compute cycles in use, 0 to 1.",
    ),
    Entry(
        "max_gpu_utilization",
        "Peak GPU utilization",
        "",
        Neutral,
        "Highest fraction of compute cycles in use, 0 to 1.",
    ),
    Entry(
        "avg_gpu_memory_pct",
        "GPU memory",
        "%",
        Neutral,
        "Mean of memory used ÷ memory in all, over GPUs and samples.",
    ),
    Entry("max_gpu_memory_pct", "Peak GPU memory", "%", Neutral, "Highest memory used ÷ memory in all."),
    Entry(
        "avg_cpu_utilization",
        "CPU utilization",
        "",
        Neutral,
        "Mean fraction of CPU cycles in use over sockets, 0 to 1.",
    ),
    Entry("avg_system_ram_pct", "System RAM", "%", Neutral, "Mean of host memory used ÷ memory in all."),
    Entry(
        "gpu_energy_j",
        "GPU energy",
        "J",
        Lower,
        "Power of all GPUs integrated (trapezoids) over the running phase; null where samples are missing.",
    ),
    Entry("sample_count", "Samples", "", Neutral, "Telemetry samples in the job's window."),
    Entry("duration_s", "Duration", "s", Neutral, "From the first telemetry sample to the last."),
    Entry("gpu_count", "GPUs", "", Neutral, "GPUs seen in the samples."),
];

/// Distributions of durations: stem, label, direction, definition.
const DURATIONS: &[Entry] = &[
    Entry(
        "response_time",
        "Response time",
        "ms",
        Lower,
        "From just before the request is sent until the answer is complete.",
    ),
    Entry(
        "ttft",
        "TTFT",
        "ms",
        Lower,
        "Time to first token: from request start to the first non-empty visible content or tool call. Not streamed: equals the response time.",
    ),
    Entry(
        "first_token",
        "First token of any kind",
        "ms",
        Lower,
        "From request start to the first non-empty output, reasoning included.",
    ),
    Entry(
        "first_reasoning",
        "First reasoning token",
        "ms",
        Lower,
        "From request start to the first non-empty reasoning output.",
    ),
    Entry(
        "tpot",
        "TPOT",
        "ms",
        Lower,
        "Time per output token: (response time − TTFT) ÷ completion tokens. Null when not streamed.",
    ),
    Entry(
        "tpot_excl_first",
        "TPOT without the first",
        "ms",
        Lower,
        "(last output − first output) ÷ (completion tokens − 1). Null when not streamed.",
    ),
    Entry(
        "inter_chunk",
        "Gap between chunks",
        "ms",
        Lower,
        "Gaps between consecutive chunks that carried output, pooled over requests.",
    ),
    Entry(
        "schedule_delay",
        "Schedule delay",
        "ms",
        Lower,
        "Open loop: how long after its scheduled moment a request was sent.",
    ),
    Entry(
        "response_time_from_schedule",
        "Response time from schedule",
        "ms",
        Lower,
        "Open loop: from the scheduled moment until the answer is complete.",
    ),
];

/// Counts a request: stem, label, direction, definition.
const COUNTS: &[Entry] = &[
    Entry("prompt_tokens", "Prompt tokens", "tok", Neutral, "Input tokens, from the server's usage only."),
    Entry(
        "completion_tokens",
        "Completion tokens",
        "tok",
        Neutral,
        "Output tokens, from the server's usage only.",
    ),
    Entry(
        "reasoning_tokens",
        "Reasoning tokens",
        "tok",
        Neutral,
        "Output tokens spent on reasoning, from the server's usage only.",
    ),
    Entry(
        "cached_prompt_tokens",
        "Cached prompt tokens",
        "tok",
        Neutral,
        "Input tokens the server took from its prefix cache, from its usage only.",
    ),
    Entry("prompt_words", "Prompt words", "words", Neutral, "Words in the prompts, split at white space."),
    Entry(
        "completion_words",
        "Completion words",
        "words",
        Neutral,
        "Words in the answers, split at white space.",
    ),
];

fn of(column: &str, label: String, unit: &'static str, direction: Direction, definition: String) -> Metric {
    Metric { column: column.to_owned(), label, unit, direction, definition }
}

/// Looks a column up.
pub fn metric(column: &str) -> Option<Metric> {
    if let Some(e) = SINGLE.iter().find(|e| e.0 == column) {
        return Some(of(column, e.1.to_owned(), e.2, e.3, e.4.to_owned()));
    }
    // Longest stem first: `tpot_excl_first_avg_ms` is not a statistic of `tpot`.
    let mut durations: Vec<&Entry> = DURATIONS.iter().collect();
    durations.sort_by_key(|e| std::cmp::Reverse(e.0.len()));
    for e in durations {
        let Some(rest) = column.strip_prefix(e.0).and_then(|r| r.strip_prefix('_')) else { continue };
        if rest == "n" {
            let definition = format!("Number of samples. {}", e.4);
            return Some(of(column, format!("{} samples", e.1), "", Neutral, definition));
        }
        let Some(stat) = rest.strip_suffix("_ms") else { continue };
        let Some(name) = statistic_label(stat) else { continue };
        let direction = if stat == "std" { Lower } else { e.3 };
        let definition = format!("{} {}", statistic_definition(stat), e.4);
        return Some(of(column, format!("{} {name}", e.1), "ms", direction, definition));
    }
    let mut counts: Vec<&Entry> = COUNTS.iter().collect();
    counts.sort_by_key(|e| std::cmp::Reverse(e.0.len()));
    for e in counts {
        let Some(stat) = column.strip_prefix(e.0).and_then(|r| r.strip_prefix('_')) else { continue };
        return Some(match stat {
            "per_second" => {
                let unit = if e.2 == "tok" { "tok/s" } else { "words/s" };
                of(column, format!("{} per second", e.1), unit, Higher, format!("Total ÷ window. {}", e.4))
            }
            "total" => of(
                column,
                format!("{}, total", e.1),
                e.2,
                Neutral,
                format!("Sum over succeeded requests. {}", e.4),
            ),
            _ => {
                let name = statistic_label(stat)?;
                let definition = format!("{} {}", statistic_definition(stat), e.4);
                of(column, format!("{} {name}", e.1), e.2, Neutral, definition)
            }
        });
    }
    None
}

fn statistic_label(stat: &str) -> Option<&'static str> {
    Some(match stat {
        "min" => "min",
        "max" => "max",
        "avg" => "mean",
        "std" => "std",
        "p50" => "p50",
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
    let mut columns: Vec<String> = SINGLE.iter().map(|e| e.0.to_owned()).collect();
    for name in crate::summary_columns::column_names() {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
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
    fn an_unknown_column_has_no_definition() {
        assert_eq!(metric("nonsense"), None);
    }
}
