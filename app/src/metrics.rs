//! The columns the page can show. Units, directions and definitions come from the one catalogue in `events`.

use events::metrics::{Direction, metric as catalogued};

/// How a column's value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A natural key or another exact word.
    Key,
    /// Words.
    Text,
    /// A status with its mark.
    Status,
    /// A measured number, three significant digits, with its proof one click away.
    Metric,
    /// A count: every digit.
    Count,
    /// A time.
    Time,
}

/// One column of a table of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The view's column.
    pub key: &'static str,
    /// The head of the table's column, short.
    pub label: &'static str,
    /// How it is written.
    pub kind: Kind,
}

impl Column {
    /// Its name and unit as an axis says them: `TTFT p99, ms`; the name alone of what has no unit.
    pub fn axis(&self) -> String {
        match self.unit() {
            "" => self.name(),
            unit => format!("{}, {unit}", self.name()),
        }
    }

    /// `Output ↑`: the label with its better direction.
    pub fn head(&self) -> String {
        match self.direction().arrow() {
            "" => self.label.to_owned(),
            arrow => format!("{}\u{a0}{arrow}", self.label),
        }
    }

    /// The unit, for the second line of the head; empty for words.
    pub fn unit(&self) -> &'static str {
        match self.key {
            "finished_at" => "UTC",
            "concurrency" => "in flight",
            key => catalogued(key).map_or("", |m| m.unit),
        }
    }

    /// Which way is better.
    pub fn direction(&self) -> Direction {
        catalogued(self.key).map_or(Direction::Neutral, |m| m.direction)
    }

    /// The full label, for a chart's axis or a sentence.
    pub fn name(&self) -> String {
        catalogued(self.key).map_or_else(|| self.label.to_owned(), |m| m.label)
    }

    /// The full label and definition, for whoever hovers or asks.
    pub fn definition(&self) -> String {
        catalogued(self.key).map_or_else(String::new, |m| format!("{}: {}", m.label, m.definition))
    }

    /// Whether its cells stand right-aligned.
    pub fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Metric | Kind::Count | Kind::Time)
    }
}

/// A measured number.
pub const fn metric(key: &'static str, label: &'static str) -> Column {
    Column { key, label, kind: Kind::Metric }
}

/// Every column of the Reporting table (view `v_benchmark_results`), in the order they stand in.
pub const RESULT_COLUMNS: &[Column] = &[
    Column { key: "project_code", label: "Project", kind: Kind::Key },
    Column { key: "workload_code", label: "Workload / run", kind: Kind::Key },
    Column { key: "scenario_code", label: "Scenario", kind: Kind::Key },
    Column { key: "status", label: "Status", kind: Kind::Status },
    Column { key: "model_code", label: "Model", kind: Kind::Key },
    Column { key: "framework_code", label: "Framework", kind: Kind::Key },
    Column { key: "quantization", label: "Quant", kind: Kind::Key },
    Column { key: "hostname", label: "Server", kind: Kind::Key },
    Column { key: "gpu_name", label: "GPUs", kind: Kind::Text },
    Column { key: "concurrency", label: "Conc.", kind: Kind::Count },
    metric("output_tokens_per_second", "Output"),
    metric("output_tokens_per_second_per_gpu", "Per GPU"),
    metric("total_tokens_per_second", "Total"),
    metric("requests_per_second", "Requests"),
    metric("interactivity_tps", "Interact."),
    metric("ttft_p50_ms", "TTFT p50"),
    metric("ttft_p90_ms", "TTFT p90"),
    metric("ttft_p95_ms", "TTFT p95"),
    metric("ttft_p99_ms", "TTFT p99"),
    metric("tpot_avg_ms", "TPOT"),
    metric("tpot_p50_ms", "TPOT p50"),
    metric("tpot_p99_ms", "TPOT p99"),
    metric("response_time_p50_ms", "Response p50"),
    metric("response_time_p90_ms", "Response p90"),
    metric("response_time_p95_ms", "Response p95"),
    metric("response_time_p99_ms", "Response p99"),
    metric("audio_seconds_per_second", "Audio"),
    metric("rtf_avg", "RTF"),
    metric("rtf_p99", "RTF p99"),
    metric("wer_avg", "WER"),
    metric("cer_avg", "CER"),
    metric("images_per_second", "Images"),
    metric("megapixels_per_second", "Megapixels"),
    metric("success_rate", "Success"),
    metric("ix_tput_per_gpu", "IX per GPU"),
    metric("ix_output_tput_per_gpu", "IX output per GPU"),
    metric("ix_input_tput_per_gpu", "IX input per GPU"),
    metric("ix_e2el_median_s", "IX E2E median"),
    metric("ix_e2el_p99_s", "IX E2E p99"),
    Column { key: "requests_succeeded", label: "Succeeded", kind: Kind::Count },
    Column { key: "requests_failed", label: "Failed", kind: Kind::Count },
    metric("error_rate_pct", "Errors"),
    metric("window_s", "Window"),
    metric("gpu_power_avg_w", "GPU power"),
    metric("output_tokens_per_joule", "Effic."),
    metric("cost_per_million_output_tokens_usd", "Cost"),
    metric("output_tokens_per_usd", "Per dollar"),
    metric("quality_score", "Quality"),
    Column { key: "finished_at", label: "Ended", kind: Kind::Time },
];

/// A column's place among [`RESULT_COLUMNS`].
pub fn place(key: &str) -> Option<usize> {
    RESULT_COLUMNS.iter().position(|column| column.key == key)
}

/// The columns shown until a reader chooses others.
pub const DEFAULT_RESULT_COLUMNS: &[&str] = &[
    "workload_code",
    "scenario_code",
    "status",
    "framework_code",
    "gpu_name",
    "output_tokens_per_second",
    "output_tokens_per_second_per_gpu",
    "interactivity_tps",
    "ttft_p50_ms",
    "ttft_p99_ms",
    "output_tokens_per_joule",
    "cost_per_million_output_tokens_usd",
    "finished_at",
];

/// The figures at the head of a result, in order: what the tool that measured it is used for.
pub fn headline(tool: &str) -> &'static [&'static str] {
    match tool {
        "metrumbench-asr" => &[
            "audio_seconds_per_second",
            "rtf_avg",
            "rtf_p99",
            "wer_avg",
            "cer_avg",
            "response_time_p50_ms",
            "response_time_p99_ms",
            "requests_per_second",
            "error_rate_pct",
        ],
        "metrumbench-imagegen" => &[
            "images_per_second",
            "megapixels_per_second",
            "success_rate",
            "response_time_p50_ms",
            "response_time_p90_ms",
            "response_time_p95_ms",
            "response_time_p99_ms",
            "requests_per_second",
            "gpu_power_avg_w",
        ],
        "inferencex" => &[
            "ix_tput_per_gpu",
            "ix_output_tput_per_gpu",
            "ix_input_tput_per_gpu",
            "output_tokens_per_second",
            "ttft_p50_ms",
            "ttft_p99_ms",
            "interactivity_tps",
            "ix_e2el_median_s",
            "ix_e2el_p99_s",
        ],
        "kyai" => &[
            "quality_score",
            "response_time_p50_ms",
            "response_time_p95_ms",
            "requests_succeeded",
            "requests_failed",
            "window_s",
        ],
        _ => &[
            "output_tokens_per_second",
            "output_tokens_per_second_per_gpu",
            "ttft_p50_ms",
            "ttft_p99_ms",
            "tpot_avg_ms",
            "interactivity_tps",
            "requests_per_second",
            "output_tokens_per_joule",
            "cost_per_million_output_tokens_usd",
        ],
    }
}

/// The column of this key.
pub fn column(key: &str) -> Option<&'static Column> {
    RESULT_COLUMNS.iter().find(|column| column.key == key)
}

/// The calculation of a figure written out with a result's own numbers: `4 096 tok ÷ 12.3 s = 333.0 tok/s`.
/// Nothing for figures that are read, not calculated, or whose parts are missing.
pub fn calculation(key: &str, row: &crate::row::Row) -> Option<String> {
    use crate::format::{full, significant};
    let exact = |value: f64| {
        if value.fract() == 0.0 { crate::format::count(value as i64) } else { format!("{value:.3}") }
    };
    let value = row.number(key)?;
    let over = |top: f64, top_unit: &str, bottom: f64, bottom_unit: &str, unit: &str| {
        Some(format!("{} {top_unit} ÷ {} {bottom_unit} = {value:.2} {unit}", exact(top), exact(bottom)))
    };
    match key {
        "output_tokens_per_second" => {
            over(row.number("completion_tokens_total")?, "tok", row.number("window_s")?, "s", "tok/s")
        }
        "output_tokens_per_second_per_gpu" => over(
            row.number("output_tokens_per_second")?,
            "tok/s",
            // Those that served, where that is known: a job need not use all that its server has.
            row.number("gpus_used").or_else(|| row.number("gpu_count"))?,
            "GPUs",
            "tok/s/GPU",
        ),
        "requests_per_second" => {
            over(row.number("requests_succeeded")?, "requests", row.number("window_s")?, "s", "per s")
        }
        "interactivity_tps" => over(1000.0, "ms", row.number("tpot_avg_ms")?, "ms/tok", "tok/s/user"),
        "output_tokens_per_joule" => {
            over(row.number("completion_tokens_total")?, "tok", row.number("energy_j")?, "J", "tok/J")
        }
        "cost_per_million_output_tokens_usd" => Some(format!(
            "the server's price an hour × {} s ÷ 3\u{202f}600 s ÷ {} tok × 1\u{202f}000\u{202f}000 = {} $/M tok",
            exact(row.number("window_s")?),
            exact(row.number("completion_tokens_total")?),
            significant(value)
        )),
        "output_tokens_per_usd" => over(
            1_000_000.0,
            "tok",
            row.number("cost_per_million_output_tokens_usd")?,
            "$ for a million",
            "tok/$",
        ),
        "error_rate_pct" => {
            let (failed, good) = (row.number("requests_failed")?, row.number("requests_succeeded")?);
            Some(format!(
                "{} failed ÷ {} ended = {} %",
                exact(failed),
                exact(failed + good),
                significant(value)
            ))
        }
        _ => {
            Some(format!("{} {}, as the tool measured it", full(value), column(key).map_or("", Column::unit)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::tools::ToolCode;
    use serde_json::json;

    #[test]
    fn every_default_and_headline_column_exists() {
        let tools = ToolCode::ALL.iter().map(|tool| tool.as_str());
        let heads: Vec<&str> = tools.flat_map(headline).copied().collect();
        for key in DEFAULT_RESULT_COLUMNS.iter().chain(&heads) {
            assert!(column(key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_result_is_headed_by_what_its_tool_measures() {
        assert!(headline("metrumbench-asr").contains(&"wer_avg"));
        assert!(headline("metrumbench-imagegen").contains(&"megapixels_per_second"));
        assert!(headline("inferencex").contains(&"ix_input_tput_per_gpu"));
        for tool in ["metrumbench-asr", "metrumbench-imagegen"] {
            assert!(
                !headline(tool).iter().any(|key| key.contains("tokens") || key.contains("ttft")),
                "{tool}"
            );
        }
        let unit = |key: &str| column(key).map(|c| (c.unit(), c.direction()));
        assert_eq!(unit("audio_seconds_per_second"), Some(("s/s", Direction::Higher)));
        assert_eq!(unit("wer_avg"), Some(("%", Direction::Lower)));
    }

    #[test]
    fn every_metric_has_a_unit_and_a_definition() {
        for column in RESULT_COLUMNS.iter().filter(|c| c.kind == Kind::Metric) {
            assert!(!column.definition().is_empty(), "{}", column.key);
            let of_one = ["rtf_", "success_rate"].iter().any(|ratio| column.key.starts_with(ratio));
            assert_eq!(column.unit().is_empty(), of_one, "{}", column.key);
        }
    }

    #[test]
    fn no_column_is_named_twice() {
        let mut keys: Vec<_> = RESULT_COLUMNS.iter().map(|c| c.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), RESULT_COLUMNS.len());
    }

    #[test]
    fn a_division_is_written_out_with_its_own_numbers() {
        let row = serde_json::from_value(json!({"output_tokens_per_second": 3955.99, "completion_tokens_total": 523520, "window_s": 132.336}))
            .expect("a row");
        assert_eq!(
            calculation("output_tokens_per_second", &row).as_deref(),
            Some("523\u{202f}520 tok ÷ 132.336 s = 3955.99 tok/s")
        );
        assert_eq!(calculation("output_tokens_per_joule", &row), None);
        let row = json!({"output_tokens_per_second": 4000.0, "output_tokens_per_second_per_gpu": 1000.0, "gpu_count": 8, "gpus_used": 4});
        let row = serde_json::from_value(row).expect("a row");
        assert_eq!(
            calculation("output_tokens_per_second_per_gpu", &row).as_deref(),
            Some("4\u{202f}000 tok/s ÷ 4 GPUs = 1000.00 tok/s/GPU")
        );
    }
}
