//! GenAI-Perf's `profile_export_genai_perf.json` and AIPerf's `profile_export_aiperf.json`: a metric a field, each with
//! its unit.

use serde_json::Value;

use super::fields::Fields;
use super::{ForeignError, ForeignFigures, ForeignResult, Format, Load, Spread};

/// How far the tokens that were counted may be from those that the server says it sent, as a part of these.
const MOST_APART: f64 = 0.1;

/// Reads a result.
pub(super) fn read(value: &Value, format: Format) -> Result<ForeignResult, ForeignError> {
    let file = Fields::of(value, "")?;
    if format == Format::Aiperf && file.flag("was_cancelled")? == Some(true) {
        return Err(file.wrong("was_cancelled", "the run was cancelled: its figures are of a part of it"));
    }
    if format == Format::Aiperf && file.flag("is_complete")? == Some(false) {
        let why = file.text("incomplete_reason")?.unwrap_or_else(|| "it does not say why".to_owned());
        return Err(file.wrong("is_complete", format!("the run ended before it was whole: {why}")));
    }
    let latency = time(&file, "request_latency")?;
    let response_time_ms = file.required("request_latency", latency)?;
    let requests = |name: &str| total(&file, name, &["requests", "count"]);
    let succeeded = requests("request_count")?;
    // A run without failures does not count them, but counts what ended in either way.
    let failed = match requests("error_request_count")? {
        Some(failed) => Some(failed),
        None => {
            requests("completed_request_count")?.zip(succeeded).and_then(|(all, good)| all.checked_sub(good))
        }
    };
    let figures = ForeignFigures {
        requests_succeeded: succeeded,
        requests_failed: failed,
        window_s: seconds(&file, "benchmark_duration")?,
        requests_per_second: rate(&file, "request_throughput", "requests/sec")?,
        prompt_tokens_per_second: rate(&file, "input_token_throughput", "tokens/sec")?,
        completion_tokens_per_second: rate(&file, "output_token_throughput", "tokens/sec")?,
        total_tokens_per_second: rate(&file, "total_token_throughput", "tokens/sec")?,
        prompt_tokens_total: total(&file, "total_isl", &["tokens"])?,
        completion_tokens_total: total(&file, "total_osl", &["tokens"])?,
        goodput_requests_per_second: match format {
            Format::Aiperf => rate(&file, "goodput", "requests/sec")?,
            _ => rate(&file, "request_goodput", "requests/sec")?,
        },
        ttft_ms: time(&file, "time_to_first_token")?,
        tpot_excl_first_ms: time(&file, "inter_token_latency")?,
        inter_chunk_ms: time(&file, "inter_chunk_latency")?,
        response_time_ms: Some(response_time_ms),
        ..ForeignFigures::default()
    };
    file.required("request_throughput", figures.requests_per_second)?;
    if let Some(served) = total(&file, "total_usage_completion_tokens", &["tokens"])? {
        counted_alike(&file, figures.completion_tokens_total, served)?;
    }
    let tool_code = format.tool_code().to_owned();
    Ok(ForeignResult { tool_code, load: load(&file)?, figures, ..ForeignResult::default() })
}

/// A tokenizer that is not the model's makes every figure of tokens wrong: AIPerf counts with its own unless told otherwise.
fn counted_alike(file: &Fields<'_>, counted: Option<u64>, served: u64) -> Result<(), ForeignError> {
    let Some(counted) = counted else { return Ok(()) };
    if counted.abs_diff(served) as f64 <= served as f64 * MOST_APART {
        return Ok(());
    }
    let what = format!(
        "{counted} tokens were counted where the server says that it sent {served}: measure with --use-server-token-count, or \
         with the model's own tokenizer"
    );
    Err(file.wrong("total_osl", what))
}

/// The configuration has moved about between versions: what is found is used, and what is not is left to the person.
fn load(file: &Fields<'_>) -> Result<Load, ForeignError> {
    let config = file.get("input_config").cloned().unwrap_or(Value::Null);
    let axis = |pointers: &[&str]| {
        pointers
            .iter()
            .find_map(|pointer| config.pointer(pointer).and_then(whole))
            .filter(|number| *number > 0)
    };
    // AIPerf from 0.13 on: phases one after another, of which one is measured, and lengths as distributions.
    let phases = config["phases"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut measured = phases.iter().filter(|phase| phase["kind"] == "profiling");
    let concurrency = match (measured.next(), measured.next()) {
        (Some(phase), None) => whole(&phase["concurrency"]).filter(|number| *number > 0),
        _ => None,
    };
    let length = |of: &str| {
        let length = config.pointer(&format!("/datasets/0/prompts/{of}"))?;
        let fixed = length["stddev"].as_f64().is_none_or(|deviation| deviation == 0.0);
        whole(&length["mean"]).filter(|number| fixed && *number > 0)
    };
    let words = |pointers: &[&str]| {
        let found = pointers.iter().find_map(|pointer| match config.pointer(pointer)? {
            Value::String(text) => Some(text.clone()),
            Value::Array(items) if items.len() == 1 => items[0].as_str().map(str::to_owned),
            _ => None,
        })?;
        let plain = !found.is_empty() && !found.chars().any(char::is_control);
        plain.then(|| found.chars().take(300).collect::<String>())
    };
    Ok(Load {
        tool_version: file.text("aiperf_version")?,
        model_id: words(&["/model_names", "/model", "/endpoint/model_names", "/endpoint/model"]).or_else(
            || config.pointer("/models/items/1").is_none().then(|| words(&["/models/items/0/name"]))?,
        ),
        date: file.text("start_time")?,
        concurrency: axis(&[
            "/perf_analyzer/stimulus/concurrency",
            "/loadgen/concurrency",
            "/concurrency",
            "/profiling/concurrency",
        ])
        .or(concurrency),
        request_rate: None,
        input_sequence_length: axis(&[
            "/input/synthetic_tokens/mean",
            "/input/prompt/input_tokens/mean",
            "/synthetic_input_tokens_mean",
        ])
        .or_else(|| length("isl")),
        output_sequence_length: axis(&[
            "/input/output_tokens/mean",
            "/input/prompt/output_tokens/mean",
            "/output_tokens_mean",
        ])
        .or_else(|| length("osl")),
    })
}

/// A whole number, however it is written.
fn whole(value: &Value) -> Option<u32> {
    value
        .as_f64()
        .filter(|number| number.fract() == 0.0 && (0.0..=4_294_967_295.0).contains(number))
        .map(|n| n as u32)
}

/// A metric with its unit.
fn metric<'a>(file: &Fields<'a>, name: &str) -> Result<Option<(Fields<'a>, String)>, ForeignError> {
    let Some(metric) = file.object(name)? else { return Ok(None) };
    let unit = metric.required("unit", metric.text("unit")?)?;
    Ok(Some((metric, unit)))
}

/// A distribution of durations, in milliseconds whatever its unit.
fn time(file: &Fields<'_>, name: &str) -> Result<Option<Spread>, ForeignError> {
    let Some((metric, unit)) = metric(file, name)? else { return Ok(None) };
    let milliseconds = milliseconds_of(&metric, &unit)?;
    let spread = Spread {
        min: metric.number("min")?,
        max: metric.number("max")?,
        avg: metric.number("avg")?,
        std: metric.number("std")?,
        p1: metric.number("p1")?,
        p5: metric.number("p5")?,
        p10: metric.number("p10")?,
        p25: metric.number("p25")?,
        p50: metric.number("p50")?,
        p75: metric.number("p75")?,
        p90: metric.number("p90")?,
        p95: metric.number("p95")?,
        p99: metric.number("p99")?,
        p99_9: None,
    };
    Ok(spread.measured().map(|spread| if milliseconds == 1.0 { spread } else { spread.scaled(milliseconds) }))
}

fn milliseconds_of(metric: &Fields<'_>, unit: &str) -> Result<f64, ForeignError> {
    match unit {
        "ms" => Ok(1.0),
        "sec" | "s" | "seconds" => Ok(1000.0),
        "us" => Ok(1e-3),
        "ns" => Ok(1e-6),
        other => Err(metric.wrong("unit", format!("{other:?} is no unit of time that is known"))),
    }
}

fn seconds(file: &Fields<'_>, name: &str) -> Result<Option<f64>, ForeignError> {
    let Some((metric, unit)) = metric(file, name)? else { return Ok(None) };
    let milliseconds = milliseconds_of(&metric, &unit)?;
    Ok(metric.number("avg")?.map(|value| value * milliseconds / 1000.0))
}

/// A rate: one number, in the unit it must have.
fn rate(file: &Fields<'_>, name: &str, wanted: &str) -> Result<Option<f64>, ForeignError> {
    let Some((metric, unit)) = metric(file, name)? else { return Ok(None) };
    if unit != wanted {
        return Err(metric.wrong("unit", format!("must be {wanted:?}, not {unit:?}")));
    }
    metric.number("avg")
}

/// A count over the run: one number, in one of the units it may have.
fn total(file: &Fields<'_>, name: &str, wanted: &[&str]) -> Result<Option<u64>, ForeignError> {
    let Some((metric, unit)) = metric(file, name)? else { return Ok(None) };
    if !wanted.contains(&unit.as_str()) {
        return Err(metric.wrong("unit", format!("must be {}, not {unit:?}", wanted.join(" or "))));
    }
    metric.count("avg")
}
