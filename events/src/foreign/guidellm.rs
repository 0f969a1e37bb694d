//! GuideLLM's `benchmarks.json`: a report of several benchmarks, one a strategy.

use serde_json::Value;

use super::fields::{Fields, kind};
use super::{ForeignError, ForeignFigures, ForeignResult, Format, Load, Spread};

/// Reads a report: a result a benchmark.
pub(super) fn read(value: &Value) -> Result<Vec<ForeignResult>, ForeignError> {
    let file = Fields::of(value, "")?;
    let version = match file.object("metadata")? {
        Some(metadata) => metadata.text("guidellm_version")?,
        None => None,
    };
    let benchmarks = match file.get("benchmarks") {
        Some(Value::Array(benchmarks)) => benchmarks,
        Some(other) => return Err(file.wrong("benchmarks", format!("must be a list, not {}", kind(other)))),
        None => return Err(file.wrong("benchmarks", "is missing")),
    };
    benchmarks
        .iter()
        .enumerate()
        .map(|(index, benchmark)| {
            read_benchmark(&Fields::of(benchmark, &format!("benchmarks[{index}]"))?, version.clone())
        })
        .collect()
}

fn read_benchmark(
    benchmark: &Fields<'_>,
    tool_version: Option<String>,
) -> Result<ForeignResult, ForeignError> {
    let metrics = benchmark.required("metrics", benchmark.object("metrics")?)?;
    let totals = metrics.required("request_totals", metrics.object("request_totals")?)?;
    let succeeded = totals.required("successful", totals.count("successful")?)?;
    if succeeded == 0 {
        return Err(totals.wrong("successful", "no request was answered: there is nothing to compare"));
    }
    let output = successful(&metrics, "output_token_count")?;
    let input = successful(&metrics, "prompt_token_count")?;
    let sum = |tokens: &Option<Fields<'_>>| match tokens {
        Some(tokens) => tokens.count("total_sum"),
        None => Ok(None),
    };
    let figures = ForeignFigures {
        requests_succeeded: Some(succeeded),
        requests_failed: totals.count("errored")?,
        window_s: benchmark.number("duration")?,
        window_ended_at: super::moment(benchmark.number("end_time")?),
        // Only what succeeded: failures would make a rate of nothing.
        requests_per_second: mean(&metrics, "requests_per_second")?,
        prompt_tokens_per_second: mean(&metrics, "prompt_tokens_per_second")?,
        completion_tokens_per_second: mean(&metrics, "output_tokens_per_second")?,
        total_tokens_per_second: mean(&metrics, "tokens_per_second")?,
        prompt_tokens_total: sum(&input)?,
        completion_tokens_total: sum(&output)?,
        goodput_requests_per_second: mean(&metrics, "request_goodput")?,
        ttft_ms: spread(&metrics, "time_to_first_token_ms")?,
        // Its own time_per_output_token counts the first token too and is nobody else's.
        tpot_excl_first_ms: spread(&metrics, "inter_token_latency_ms")?,
        // Seconds, as its name does not say.
        response_time_ms: spread(&metrics, "request_latency")?.map(|spread| spread.scaled(1000.0)),
        ..ForeignFigures::default()
    };
    metrics.required("request_latency.successful", figures.response_time_ms.as_ref())?;
    let load = Load { tool_version, ..load(benchmark)? };
    let tool_code = Format::Guidellm.tool_code().to_owned();
    Ok(ForeignResult { tool_code, load, figures, ..ForeignResult::default() })
}

fn load(benchmark: &Fields<'_>) -> Result<Load, ForeignError> {
    let Some(config) = benchmark.object("config")? else { return Ok(Load::default()) };
    let strategy = config.object("strategy")?;
    let (concurrency, request_rate) = match &strategy {
        Some(strategy) => match strategy.text("type_")?.as_deref() {
            Some("synchronous") => (Some(1), None),
            Some("concurrent") => (strategy.axis("streams")?, None),
            Some("constant" | "poisson" | "async") => (None, strategy.number("rate")?),
            _ => (None, None),
        },
        None => (None, None),
    };
    let model_id = match config.object("backend")? {
        Some(backend) => backend.text("model")?,
        None => None,
    };
    let date = super::moment(benchmark.number("start_time")?).map(|at| at.to_string());
    Ok(Load { model_id, date, concurrency, request_rate, ..Load::default() })
}

/// A metric over the requests that succeeded; nothing where it has no sample, for its numbers are then all 0.
fn successful<'a>(metrics: &Fields<'a>, name: &str) -> Result<Option<Fields<'a>>, ForeignError> {
    let Some(metric) = metrics.object(name)? else { return Ok(None) };
    let Some(successful) = metric.object("successful")? else { return Ok(None) };
    Ok((successful.count("count")? != Some(0)).then_some(successful))
}

fn mean(metrics: &Fields<'_>, name: &str) -> Result<Option<f64>, ForeignError> {
    match successful(metrics, name)? {
        Some(metric) => metric.number("mean"),
        None => Ok(None),
    }
}

fn spread(metrics: &Fields<'_>, name: &str) -> Result<Option<Spread>, ForeignError> {
    let Some(metric) = successful(metrics, name)? else { return Ok(None) };
    let percentiles = metric.object("percentiles")?;
    let percentile = |name: &str| match &percentiles {
        Some(percentiles) => percentiles.number(name),
        None => Ok(None),
    };
    let spread = Spread {
        min: metric.number("min")?,
        max: metric.number("max")?,
        avg: metric.number("mean")?,
        std: metric.number("std_dev")?,
        p1: percentile("p01")?,
        p5: percentile("p05")?,
        p10: percentile("p10")?,
        p25: percentile("p25")?,
        p50: metric.number("median")?,
        p75: percentile("p75")?,
        p90: percentile("p90")?,
        p95: percentile("p95")?,
        p99: percentile("p99")?,
        p99_9: percentile("p999")?,
    };
    Ok(spread.measured())
}
