//! What a result says in the terms that all tools share, whatever wrote it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use events::external_columns;
use events::foreign::{ForeignFigures, PerGpu, Spread};
use events::summary::{Distribution, Summary};
use events::tool_output::InferencexOutput;
use serde::{Deserialize, Serialize};

use crate::projections::text::{Column, Kind};

/// Figures that only some tools have: their columns in `v_benchmark_results`, in order. InferenceX's follow.
const OWN: &[&str] = &[
    "ttft_avg_ms",
    "tpot_p90_ms",
    "tpot_p95_ms",
    "tpot_excl_first_avg_ms",
    "tpot_excl_first_p50_ms",
    "tpot_excl_first_p90_ms",
    "tpot_excl_first_p95_ms",
    "tpot_excl_first_p99_ms",
    "response_time_avg_ms",
    "response_time_p90_ms",
    "response_time_p95_ms",
    "audio_seconds_per_second",
    "rtf_avg",
    "rtf_p50",
    "rtf_p99",
    "wer_avg",
    "cer_avg",
    "images_per_second",
    "megapixels_per_second",
    "success_rate",
    "kyai_score",
];

/// The names of all figures that only some tools have.
pub(super) fn more_names() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let inferencex = external_columns::inferencex(&ForeignFigures::default(), &PerGpu::default());
        OWN.iter().map(|name| (*name).to_owned()).chain(external_columns::names(&inferencex)).collect()
    });
    &NAMES
}

/// The figures of a result. What a tool does not measure is null, never 0.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ResultFigures {
    pub(super) output_tokens_per_second: Option<f64>,
    pub(super) total_tokens_per_second: Option<f64>,
    pub(super) requests_per_second: Option<f64>,
    pub(super) output_tokens_per_second_per_gpu: Option<f64>,
    pub(super) ttft_p50_ms: Option<f64>,
    pub(super) ttft_p90_ms: Option<f64>,
    pub(super) ttft_p95_ms: Option<f64>,
    pub(super) ttft_p99_ms: Option<f64>,
    pub(super) tpot_avg_ms: Option<f64>,
    pub(super) tpot_p50_ms: Option<f64>,
    pub(super) tpot_p99_ms: Option<f64>,
    pub(super) response_time_p50_ms: Option<f64>,
    pub(super) response_time_p99_ms: Option<f64>,
    pub(super) interactivity_tps: Option<f64>,
    pub(super) requests_succeeded: Option<u64>,
    pub(super) requests_failed: Option<u64>,
    pub(super) error_rate_pct: Option<f64>,
    pub(super) window_s: Option<f64>,
    pub(super) completion_tokens_total: Option<u64>,
    pub(super) simulated: bool,
    /// Those of [`more_names`], each there.
    #[serde(flatten)]
    pub(super) more: BTreeMap<String, Option<f64>>,
}

/// `numerator / denominator`; nothing where either is missing or the division has no meaning.
pub(super) fn ratio(numerator: Option<f64>, denominator: Option<f64>) -> Option<f64> {
    let (numerator, denominator) = (numerator?, denominator?);
    (denominator > 0.0).then(|| numerator / denominator)
}

impl ResultFigures {
    /// Those of a summary of our own tools.
    pub(super) fn of_summary(summary: &Summary, gpu_count: Option<i64>) -> Self {
        let figures = &summary.figures;
        let throughput = &figures.throughput;
        let of = |d: &Option<Distribution>, pick: fn(&Distribution) -> Option<f64>| d.as_ref().and_then(pick);
        let (ttft, tpot, response) = (&figures.ttft_ms, &figures.tpot_ms, &figures.response_time_ms);
        let (usual, asr, images) = (&figures.tpot_excl_first_ms, &figures.asr, &figures.imagegen);
        let more = [
            ("ttft_avg_ms", of(ttft, |d| d.avg)),
            ("tpot_p90_ms", of(tpot, |d| d.p90)),
            ("tpot_p95_ms", of(tpot, |d| d.p95)),
            ("tpot_excl_first_avg_ms", of(usual, |d| d.avg)),
            ("tpot_excl_first_p50_ms", of(usual, |d| d.p50)),
            ("tpot_excl_first_p90_ms", of(usual, |d| d.p90)),
            ("tpot_excl_first_p95_ms", of(usual, |d| d.p95)),
            ("tpot_excl_first_p99_ms", of(usual, |d| d.p99)),
            ("response_time_avg_ms", of(response, |d| d.avg)),
            ("response_time_p90_ms", of(response, |d| d.p90)),
            ("response_time_p95_ms", of(response, |d| d.p95)),
            ("audio_seconds_per_second", asr.audio_seconds_per_second),
            ("rtf_avg", of(&asr.rtf, |d| d.avg)),
            ("rtf_p50", of(&asr.rtf, |d| d.p50)),
            ("rtf_p99", of(&asr.rtf, |d| d.p99)),
            ("wer_avg", of(&asr.wer, |d| d.avg)),
            ("cer_avg", of(&asr.cer, |d| d.avg)),
            ("images_per_second", images.images_per_second),
            ("megapixels_per_second", images.megapixels_per_second),
            ("success_rate", images.success_rate),
        ];
        Self {
            output_tokens_per_second: throughput.completion_tokens_per_second,
            total_tokens_per_second: throughput.total_tokens_per_second,
            requests_per_second: throughput.requests_per_second,
            output_tokens_per_second_per_gpu: ratio(
                throughput.completion_tokens_per_second,
                gpu_count.map(|n| n as f64),
            ),
            ttft_p50_ms: of(ttft, |d| d.p50),
            ttft_p90_ms: of(ttft, |d| d.p90),
            ttft_p95_ms: of(ttft, |d| d.p95),
            ttft_p99_ms: of(ttft, |d| d.p99),
            tpot_avg_ms: of(tpot, |d| d.avg),
            tpot_p50_ms: of(tpot, |d| d.p50),
            tpot_p99_ms: of(tpot, |d| d.p99),
            response_time_p50_ms: of(response, |d| d.p50),
            response_time_p99_ms: of(response, |d| d.p99),
            interactivity_tps: ratio(Some(1000.0), of(tpot, |d| d.avg)),
            requests_succeeded: Some(figures.requests.succeeded),
            requests_failed: Some(figures.requests.failed),
            error_rate_pct: figures.errors.rate_pct,
            window_s: figures.window_s,
            completion_tokens_total: figures.completion_tokens.as_ref().map(|c| c.total),
            simulated: summary.simulated,
            more: complete(more),
        }
    }

    /// Those of a third-party tool's result. Its time per output token is the usual one, never the methodology's.
    pub(super) fn of_foreign(
        figures: &ForeignFigures,
        inferencex: Option<&InferencexOutput>,
        kyai_score: Option<f64>,
        gpu_count: Option<i64>,
        simulated: bool,
    ) -> Self {
        let of = |spread: &Option<Spread>, pick: fn(&Spread) -> Option<f64>| spread.as_ref().and_then(pick);
        let (ttft, tpot, response) = (&figures.ttft_ms, &figures.tpot_ms, &figures.response_time_ms);
        let usual = &figures.tpot_excl_first_ms;
        let mut more = complete([
            ("ttft_avg_ms", of(ttft, |s| s.avg)),
            ("tpot_p90_ms", of(tpot, |s| s.p90)),
            ("tpot_p95_ms", of(tpot, |s| s.p95)),
            ("tpot_excl_first_avg_ms", of(usual, |s| s.avg)),
            ("tpot_excl_first_p50_ms", of(usual, |s| s.p50)),
            ("tpot_excl_first_p90_ms", of(usual, |s| s.p90)),
            ("tpot_excl_first_p95_ms", of(usual, |s| s.p95)),
            ("tpot_excl_first_p99_ms", of(usual, |s| s.p99)),
            ("response_time_avg_ms", of(response, |s| s.avg)),
            ("response_time_p90_ms", of(response, |s| s.p90)),
            ("response_time_p95_ms", of(response, |s| s.p95)),
            ("audio_seconds_per_second", figures.audio_seconds_per_second),
            ("rtf_avg", of(&figures.rtf, |s| s.avg)),
            ("rtf_p50", of(&figures.rtf, |s| s.p50)),
            ("rtf_p99", of(&figures.rtf, |s| s.p99)),
            ("wer_avg", of(&figures.wer, |s| s.avg)),
            ("cer_avg", of(&figures.cer, |s| s.avg)),
            ("success_rate", figures.success_rate),
            ("images_per_second", figures.images_per_second),
            ("megapixels_per_second", figures.megapixels_per_second),
            ("kyai_score", kyai_score),
        ]);
        let per_gpu = inferencex.map(|output| output.per_gpu);
        if let Some(output) = inferencex {
            more.extend(external_columns::inferencex(figures, &output.per_gpu));
        }
        Self {
            output_tokens_per_second: figures.completion_tokens_per_second,
            total_tokens_per_second: figures.total_tokens_per_second,
            requests_per_second: figures.requests_per_second,
            output_tokens_per_second_per_gpu: per_gpu
                .and_then(|each| each.output_tokens_per_second)
                .or_else(|| ratio(figures.completion_tokens_per_second, gpu_count.map(|n| n as f64))),
            ttft_p50_ms: of(ttft, |s| s.p50),
            ttft_p90_ms: of(ttft, |s| s.p90),
            ttft_p95_ms: of(ttft, |s| s.p95),
            ttft_p99_ms: of(ttft, |s| s.p99),
            tpot_avg_ms: of(tpot, |s| s.avg),
            tpot_p50_ms: of(tpot, |s| s.p50),
            tpot_p99_ms: of(tpot, |s| s.p99),
            response_time_p50_ms: of(response, |s| s.p50),
            response_time_p99_ms: of(response, |s| s.p99),
            interactivity_tps: ratio(Some(1000.0), of(tpot, |s| s.avg)),
            requests_succeeded: figures.requests_succeeded,
            requests_failed: figures.requests_failed,
            error_rate_pct: external_columns::error_rate_pct(figures),
            window_s: figures.window_s,
            completion_tokens_total: figures.completion_tokens_total,
            simulated: simulated || figures.simulated,
            more,
        }
    }

    /// What the leaderboard ranks by as quality.
    pub(super) fn kyai_score(&self) -> Option<f64> {
        self.more.get("kyai_score").copied().flatten()
    }

    /// The columns, in the order of the fields.
    pub(super) fn columns() -> Vec<Column> {
        use Kind::{Bool, Float, Int};
        let of = |kind: Kind, names: &[&str]| -> Vec<Column> {
            names.iter().map(|name| Column::shown(name, kind)).collect()
        };
        let mut columns = of(
            Float,
            &[
                "output_tokens_per_second",
                "total_tokens_per_second",
                "requests_per_second",
                "output_tokens_per_second_per_gpu",
                "ttft_p50_ms",
                "ttft_p90_ms",
                "ttft_p95_ms",
                "ttft_p99_ms",
                "tpot_avg_ms",
                "tpot_p50_ms",
                "tpot_p99_ms",
                "response_time_p50_ms",
                "response_time_p99_ms",
                "interactivity_tps",
            ],
        );
        columns.extend(of(Int, &["requests_succeeded", "requests_failed"]));
        columns.extend(of(Float, &["error_rate_pct", "window_s"]));
        columns.extend(of(Int, &["completion_tokens_total"]));
        columns.extend(of(Bool, &["simulated"]));
        columns.extend(more_names().iter().map(|name| Column::shown(name, Float)));
        columns
    }
}

/// Every figure of [`more_names`], null where it is not among these.
pub(super) fn complete<'a>(
    known: impl IntoIterator<Item = (&'a str, Option<f64>)>,
) -> BTreeMap<String, Option<f64>> {
    let mut more: BTreeMap<String, Option<f64>> =
        more_names().iter().map(|name| (name.clone(), None)).collect();
    for (name, value) in known {
        debug_assert!(more.contains_key(name), "{name} is no column");
        more.insert(name.to_owned(), value);
    }
    more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_further_figure_is_in_the_metric_catalogue() {
        let missing: Vec<&String> =
            more_names().iter().filter(|name| events::metrics::metric(name).is_none()).collect();
        assert_eq!(missing, Vec::<&String>::new());
    }

    #[test]
    fn a_summarys_figures_are_all_there_and_null_where_not_measured() {
        let summary = crate::quality::testing::output(1).summary;
        let figures = ResultFigures::of_summary(&summary, None);
        assert_eq!(figures.more.len(), more_names().len());
        assert_eq!(figures.more["images_per_second"], None);
        assert_eq!(figures.requests_succeeded, Some(200));
    }
}
