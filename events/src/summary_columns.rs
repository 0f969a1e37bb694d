//! The summary line flattened into columns: the one place that says which columns there are.
//!
//! A path becomes a name: `ttft_ms.p99` → `ttft_p99_ms`, `requests.succeeded` → `requests_succeeded`,
//! `throughput.completion_tokens_per_second` → `completion_tokens_per_second`.

use crate::summary::{AsrFigures, CountStats, Distribution, Figures, ImagegenFigures};
use crate::tools::ToolCode;

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
    columns_of(ToolCode::MetrumbenchLlm, figures)
}

/// The figures of a run of one of our own tools in column order: those every tool has, then its own.
pub fn columns_of(tool: ToolCode, figures: &Figures) -> Vec<Column> {
    let mut out = Columns(Vec::with_capacity(160));
    let text = tool.counts_tokens();
    out.load(figures, text);
    for stem in DURATION_STEMS {
        if text || *stem == "response_time" || stem.contains("schedule") {
            out.distribution(stem, "_ms", duration(figures, stem));
        }
    }
    if text {
        for stem in COUNT_STEMS {
            out.count(stem, count(figures, stem));
        }
    }
    match tool {
        ToolCode::MetrumbenchVlm => {
            out.distribution("image_processing", "_ms", figures.vlm.image_processing_ms.as_ref());
            out.count("image_bytes", figures.vlm.image_bytes.as_ref());
        }
        ToolCode::MetrumbenchAsr => out.transcription(&figures.asr),
        ToolCode::MetrumbenchImagegen => out.images(&figures.imagegen),
        _ => {}
    }
    out.0
}

struct Columns(Vec<Column>);

impl Columns {
    fn put(&mut self, name: &str, value: Option<f64>) {
        self.0.push((name.to_owned(), value));
    }

    fn load(&mut self, figures: &Figures, text: bool) {
        let r = &figures.requests;
        self.put("requests_attempted", Some(r.attempted as f64));
        self.put("requests_succeeded", Some(r.succeeded as f64));
        self.put("requests_failed", Some(r.failed as f64));
        self.put("requests_incomplete", Some(r.incomplete as f64));
        self.put("requests_empty", Some(r.empty as f64));
        self.put("requests_warmup", Some(r.warmup as f64));
        self.put("requests_ramp_up", Some(r.ramp_up as f64));
        self.put("window_s", figures.window_s);

        let t = &figures.throughput;
        self.put("requests_per_second", t.requests_per_second);
        if text {
            self.put("prompt_tokens_per_second", t.prompt_tokens_per_second);
            self.put("completion_tokens_per_second", t.completion_tokens_per_second);
            self.put("total_tokens_per_second", t.total_tokens_per_second);
        }
        self.put("error_count", Some(figures.errors.count as f64));
        self.put("error_rate_pct", figures.errors.rate_pct);
        self.put("goodput_requests_per_second", figures.goodput.as_ref().and_then(|g| g.requests_per_second));
        self.put("goodput_fraction", figures.goodput.as_ref().and_then(|g| g.fraction));
    }

    fn transcription(&mut self, asr: &AsrFigures) {
        self.distribution("inference_time", "_ms", asr.inference_time_ms.as_ref());
        self.distribution("rtf", "", asr.rtf.as_ref());
        self.put("audio_seconds_per_second", asr.audio_seconds_per_second);
        self.put("transcript_words_per_second", asr.transcript_words_per_second);
        self.put("transcript_characters_per_second", asr.transcript_characters_per_second);
        self.distribution("words_per_second", "", asr.words_per_second.as_ref());
        self.distribution("characters_per_second", "", asr.characters_per_second.as_ref());
        self.count("bytes_sent", asr.bytes_sent.as_ref());
        self.count("bytes_received", asr.bytes_received.as_ref());
        self.put("bytes_transferred_per_second", asr.bytes_transferred_per_second);
        self.distribution("wer", "", asr.wer.as_ref());
        self.distribution("cer", "", asr.cer.as_ref());
    }

    fn images(&mut self, images: &ImagegenFigures) {
        self.put("images_requested", images.images_requested.map(|n| n as f64));
        self.put("images_returned", images.images_returned.map(|n| n as f64));
        self.put("images_per_second", images.images_per_second);
        self.put("megapixels_per_second", images.megapixels_per_second);
        self.put("success_rate", images.success_rate);
        self.put("timeouts", images.timeouts.map(|n| n as f64));
        self.distribution("image_size_bytes", "", images.image_size_bytes.as_ref());
    }

    fn distribution(&mut self, stem: &str, unit: &str, distribution: Option<&Distribution>) {
        for stat in DISTRIBUTION_STATS {
            self.put(&format!("{stem}_{stat}{unit}"), distribution.and_then(|d| statistic(d, stat)));
        }
        self.put(&format!("{stem}_n"), distribution.map(|d| d.n as f64));
    }

    fn count(&mut self, stem: &str, counts: Option<&CountStats>) {
        for stat in COUNT_STATS {
            let name = format!("{stem}_{stat}");
            // The throughput object already holds these two; one column, one value.
            if matches!(name.as_str(), "prompt_tokens_per_second" | "completion_tokens_per_second") {
                continue;
            }
            self.put(&name, counts.and_then(|c| count_statistic(c, stat)));
        }
    }
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
    column_names_of(ToolCode::MetrumbenchLlm)
}

/// The names [`columns_of`] yields, in order.
pub fn column_names_of(tool: ToolCode) -> Vec<String> {
    columns_of(tool, &Figures::default()).into_iter().map(|(name, _)| name).collect()
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

    /// The tools whose summaries have this shape.
    const OURS: [ToolCode; 4] = [
        ToolCode::MetrumbenchLlm,
        ToolCode::MetrumbenchVlm,
        ToolCode::MetrumbenchAsr,
        ToolCode::MetrumbenchImagegen,
    ];

    #[test]
    fn no_column_is_named_twice() {
        for tool in OURS {
            let names = column_names_of(tool);
            let unique: BTreeSet<&String> = names.iter().collect();
            assert_eq!(unique.len(), names.len(), "{tool}");
        }
    }

    #[test]
    fn every_column_is_in_the_metric_catalogue() {
        for tool in OURS {
            let missing: Vec<String> =
                column_names_of(tool).into_iter().filter(|name| metric(name).is_none()).collect();
            assert_eq!(missing, Vec::<String>::new(), "{tool}");
        }
    }

    #[test]
    fn a_transcription_has_error_rates_and_no_tokens() {
        let names = column_names_of(ToolCode::MetrumbenchAsr);
        let has = |name: &str| names.iter().any(|n| n == name);
        assert!(
            has("wer_p95") && has("rtf_p50") && has("inference_time_p99_ms") && has("response_time_avg_ms")
        );
        assert!(!has("ttft_p50_ms") && !has("completion_tokens_total") && !has("total_tokens_per_second"));
    }
}
