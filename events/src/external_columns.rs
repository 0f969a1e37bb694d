//! Third-party results flattened into columns: the one place that says which there are.

use crate::external_figures::{KV_CACHE_FIGURES, KvCacheFigures};
use crate::foreign::{ForeignFigures, PerGpu, Spread};
pub use crate::summary_columns::Column as Figure;

/// The statistics of a third-party distribution, in column order.
const STATS: &[&str] = &["min", "max", "avg", "std", "p50", "p90", "p95", "p99", "p99_9"];
/// The percentiles that GenAI-Perf gives beside these.
const FURTHER_STATS: &[&str] = &["p1", "p5", "p10", "p25", "p75"];

fn statistic(spread: &Spread, stat: &str) -> Option<f64> {
    match stat {
        "min" => spread.min,
        "max" => spread.max,
        "avg" => spread.avg,
        "std" => spread.std,
        "p1" => spread.p1,
        "p5" => spread.p5,
        "p10" => spread.p10,
        "p25" => spread.p25,
        "p75" => spread.p75,
        "p50" => spread.p50,
        "p90" => spread.p90,
        "p95" => spread.p95,
        "p99" => spread.p99,
        "p99_9" => spread.p99_9,
        _ => None,
    }
}

/// The figures of serving that every third-party tool may have, under the names that our own tools use for the same.
pub fn serving(figures: &ForeignFigures) -> Vec<Figure> {
    let mut out: Vec<Figure> = Vec::with_capacity(60);
    let mut put = |name: &str, value: Option<f64>| out.push((name.to_owned(), value));
    let whole = |count: Option<u64>| count.map(|count| count as f64);
    put("requests_succeeded", whole(figures.requests_succeeded));
    put("requests_failed", whole(figures.requests_failed));
    put("error_rate_pct", error_rate_pct(figures));
    put("window_s", figures.window_s);
    put("requests_per_second", figures.requests_per_second);
    put("prompt_tokens_per_second", figures.prompt_tokens_per_second);
    put("completion_tokens_per_second", figures.completion_tokens_per_second);
    put("total_tokens_per_second", figures.total_tokens_per_second);
    put("prompt_tokens_total", whole(figures.prompt_tokens_total));
    put("completion_tokens_total", whole(figures.completion_tokens_total));
    put("goodput_requests_per_second", figures.goodput_requests_per_second);
    for (stem, spread) in [
        ("ttft", &figures.ttft_ms),
        ("tpot_excl_first", &figures.tpot_excl_first_ms),
        ("inter_chunk", &figures.inter_chunk_ms),
        ("response_time", &figures.response_time_ms),
    ] {
        for stat in STATS {
            put(&format!("{stem}_{stat}_ms"), spread.as_ref().and_then(|spread| statistic(spread, stat)));
        }
    }
    out
}

/// The columns of `v_genai_perf_outputs` that hold figures: those of serving, and the further percentiles.
pub fn genai_perf(figures: &ForeignFigures) -> Vec<Figure> {
    let mut out = serving(figures);
    for (stem, spread) in [
        ("ttft", &figures.ttft_ms),
        ("tpot_excl_first", &figures.tpot_excl_first_ms),
        ("response_time", &figures.response_time_ms),
    ] {
        out.extend(FURTHER_STATS.iter().map(|stat| {
            (format!("{stem}_{stat}_ms"), spread.as_ref().and_then(|spread| statistic(spread, stat)))
        }));
    }
    out
}

/// Failed requests in percent of those that ended; nothing where either number is not known.
pub fn error_rate_pct(figures: &ForeignFigures) -> Option<f64> {
    let (succeeded, failed) = (figures.requests_succeeded? as f64, figures.requests_failed? as f64);
    (succeeded + failed > 0.0).then(|| 100.0 * failed / (succeeded + failed))
}

/// The columns of `v_inferencex_outputs` that hold figures: `ix_…`, with the units of the InferenceX methodology.
pub fn inferencex(figures: &ForeignFigures, per_gpu: &PerGpu) -> Vec<Figure> {
    let of = |spread: &Option<Spread>, pick: fn(&Spread) -> Option<f64>| spread.as_ref().and_then(pick);
    let seconds = |milliseconds: Option<f64>| milliseconds.map(|ms| ms / 1000.0);
    let a_second = |tpot_ms: Option<f64>| tpot_ms.filter(|ms| *ms > 0.0).map(|ms| 1000.0 / ms);
    let (ttft, tpot, e2el) = (&figures.ttft_ms, &figures.tpot_excl_first_ms, &figures.response_time_ms);
    [
        ("ix_tokens_per_second", figures.total_tokens_per_second),
        ("ix_tput_per_gpu", per_gpu.tokens_per_second),
        ("ix_output_tput_per_gpu", per_gpu.output_tokens_per_second),
        ("ix_input_tput_per_gpu", per_gpu.input_tokens_per_second),
        ("ix_time_to_first_token_ms", of(ttft, |s| s.avg)),
        ("ix_ttft_median_ms", of(ttft, |s| s.p50)),
        ("ix_ttft_p90_ms", of(ttft, |s| s.p90)),
        ("ix_ttft_p99_ms", of(ttft, |s| s.p99)),
        ("ix_ttft_p99_9_ms", of(ttft, |s| s.p99_9)),
        ("ix_p99_ttft_s", seconds(of(ttft, |s| s.p99))),
        ("ix_mean_tpot_ms", of(tpot, |s| s.avg)),
        ("ix_tpot_median_ms", of(tpot, |s| s.p50)),
        ("ix_tpot_p90_ms", of(tpot, |s| s.p90)),
        ("ix_tpot_p99_ms", of(tpot, |s| s.p99)),
        ("ix_tpot_p99_9_ms", of(tpot, |s| s.p99_9)),
        ("ix_mean_e2el_s", seconds(of(e2el, |s| s.avg))),
        ("ix_e2el_median_s", seconds(of(e2el, |s| s.p50))),
        ("ix_e2el_p90_s", seconds(of(e2el, |s| s.p90))),
        ("ix_e2el_p99_s", seconds(of(e2el, |s| s.p99))),
        ("ix_e2el_p99_9_s", seconds(of(e2el, |s| s.p99_9))),
        ("ix_mean_interactivity_tps", a_second(of(tpot, |s| s.avg))),
        ("ix_intvty_median_tps", a_second(of(tpot, |s| s.p50))),
        ("ix_intvty_at_p90_tpot_tps", a_second(of(tpot, |s| s.p90))),
        ("ix_intvty_at_p99_tpot_tps", a_second(of(tpot, |s| s.p99))),
        ("ix_intvty_at_p99_9_tpot_tps", a_second(of(tpot, |s| s.p99_9))),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// The columns of KV cache offload beside those of serving.
pub fn kv_cache(figures: &KvCacheFigures) -> Vec<Figure> {
    KV_CACHE_FIGURES.iter().map(|name| ((*name).to_owned(), figures.figures.get(*name).copied())).collect()
}

/// The names of columns, in order.
pub fn names(columns: &[Figure]) -> Vec<String> {
    columns.iter().map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> ForeignFigures {
        ForeignFigures {
            total_tokens_per_second: Some(8000.0),
            ttft_ms: Some(Spread { avg: Some(250.0), p99: Some(500.0), ..Spread::default() }),
            tpot_excl_first_ms: Some(Spread { avg: Some(20.0), p50: Some(0.0), ..Spread::default() }),
            response_time_ms: Some(Spread { avg: Some(20_500.0), ..Spread::default() }),
            ..ForeignFigures::default()
        }
    }

    #[test]
    fn inferencex_columns_have_the_methodologys_units() {
        let columns =
            inferencex(&figures(), &PerGpu { tokens_per_second: Some(1000.0), ..PerGpu::default() });
        let value =
            |name: &str| columns.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{name}")).1;
        assert_eq!(value("ix_tokens_per_second"), Some(8000.0));
        assert_eq!((value("ix_ttft_p99_ms"), value("ix_p99_ttft_s")), (Some(500.0), Some(0.5)));
        assert_eq!(value("ix_mean_e2el_s"), Some(20.5));
        assert_eq!(value("ix_mean_interactivity_tps"), Some(50.0));
        assert_eq!(value("ix_intvty_median_tps"), None, "there is no speed at no time");
        assert_eq!(value("ix_output_tput_per_gpu"), None);
    }

    #[test]
    fn every_column_is_in_the_metric_catalogue() {
        let mut all = inferencex(&ForeignFigures::default(), &PerGpu::default());
        all.extend(genai_perf(&ForeignFigures::default()));
        let missing: Vec<String> =
            names(&all).into_iter().filter(|name| crate::metrics::metric(name).is_none()).collect();
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn an_error_rate_needs_both_numbers() {
        let rate = |succeeded, failed| {
            error_rate_pct(&ForeignFigures {
                requests_succeeded: succeeded,
                requests_failed: failed,
                ..ForeignFigures::default()
            })
        };
        assert_eq!(rate(Some(98), Some(2)), Some(2.0));
        assert_eq!((rate(Some(98), None), rate(None, Some(2)), rate(Some(0), Some(0))), (None, None, None));
    }
}
