//! `vllm bench serve --save-result`: one JSON object; the Rust `vllm-bench` writes the same. With `--append-result` a file
//! holds several, a line each.

use serde_json::Value;

use super::fields::Fields;
use super::{
    ForeignError, ForeignFigures, ForeignResult, Format, Load, Spread, agree, moment, not_json, per_second,
};

/// Reads the results of a file.
pub(super) fn read(text: &str) -> Result<Vec<ForeignResult>, ForeignError> {
    let values: Vec<Value> =
        serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().map_err(not_json)?;
    if values.is_empty() {
        // The error says where the file ends.
        serde_json::from_str::<Value>(text).map_err(not_json)?;
    }
    if let [value] = values.as_slice() {
        return Ok(vec![read_one(value, "")?]);
    }
    values.iter().enumerate().map(|(nth, value)| read_one(value, &format!("result {}", nth + 1))).collect()
}

fn read_one(value: &Value, place: &str) -> Result<ForeignResult, ForeignError> {
    let file = Fields::of(value, place)?;
    let (load, figures) = serving(&file)?;
    let tool_code = Format::VllmBenchServe.tool_code().to_owned();
    Ok(ForeignResult { tool_code, load, figures, ..ForeignResult::default() })
}

/// What `vllm bench serve` and InferenceX's `benchmark_serving.py`, which descends from it, both write.
pub(super) fn serving(file: &Fields<'_>) -> Result<(Load, ForeignFigures), ForeignError> {
    let window_s = file.required("duration", file.number("duration")?)?;
    if window_s <= 0.0 {
        return Err(file.wrong("duration", "0 seconds are no measurement"));
    }
    let succeeded = file.required("completed", file.count("completed")?)?;
    if succeeded == 0 {
        return Err(file.wrong("completed", "no request was answered: there is nothing to compare"));
    }
    let sent = file.count("num_prompts")?;
    // Older versions do not count failures: each only lowers `completed`.
    let failed = match file.count("failed")? {
        Some(failed) => Some(failed),
        None => match sent.map(|sent| sent.checked_sub(succeeded)) {
            Some(None) => return Err(file.wrong("completed", "more requests were answered than were sent")),
            Some(failed) => failed,
            None => None,
        },
    };
    // Zero is what it writes where answers are no text.
    let counted = |count: Option<u64>| count.filter(|count| *count > 0);
    let (input, output) =
        (counted(file.count("total_input_tokens")?), counted(file.count("total_output_tokens")?));
    let guessed = file.is_null("tokenizer_id") && output == Some(succeeded);
    let output = output.filter(|_| !guessed);
    let rate = |rate: Option<f64>| rate.filter(|rate| *rate > 0.0 && !guessed);
    let figures = ForeignFigures {
        requests_succeeded: Some(succeeded),
        requests_failed: failed,
        window_s: Some(window_s),
        window_ended_at: moment(file.number("benchmark_end_time_unix")?),
        requests_per_second: file.number("request_throughput")?,
        prompt_tokens_per_second: per_second(input, Some(window_s)),
        // Without a tokenizer it counts an answer whose usage the server did not say as one token.
        completion_tokens_per_second: rate(file.number("output_throughput")?),
        total_tokens_per_second: rate(file.number("total_token_throughput")?),
        prompt_tokens_total: input,
        completion_tokens_total: output,
        // The colon is part of the key in versions that share InferenceX's ancestor.
        goodput_requests_per_second: match file.number("request_goodput")? {
            Some(goodput) => Some(goodput),
            None => file.number("request_goodput:")?,
        },
        ttft_ms: spread(file, "ttft")?,
        tpot_excl_first_ms: spread(file, "tpot")?,
        inter_chunk_ms: spread(file, "itl")?,
        response_time_ms: spread(file, "e2el")?,
        audio_seconds_per_second: file.number("rtfx")?.filter(|rtfx| *rtfx > 0.0),
        ..ForeignFigures::default()
    };
    agree("request_throughput", figures.requests_per_second, per_second(Some(succeeded), Some(window_s)))?;
    agree("output_throughput", figures.completion_tokens_per_second, per_second(output, Some(window_s)))?;
    let all = input.zip(output).map(|(input, output)| input + output);
    agree("total_token_throughput", figures.total_tokens_per_second, per_second(all, Some(window_s)))?;
    let load = Load {
        tool_version: None,
        model_id: file.text("model_id")?,
        date: file.text("date")?,
        concurrency: file.axis("max_concurrency")?,
        request_rate: request_rate(file)?,
        input_sequence_length: file.same("input_lens"),
        output_sequence_length: file.same("output_lens"),
    };
    Ok((load, figures))
}

/// Requests a second; nothing for `inf`, which is a closed loop.
fn request_rate(file: &Fields<'_>) -> Result<Option<f64>, ForeignError> {
    match file.get("request_rate") {
        Some(Value::String(text)) if text == "inf" => Ok(None),
        _ => file.number("request_rate"),
    }
}

/// `mean_ttft_ms`, `median_ttft_ms`, `std_ttft_ms`, `p99_ttft_ms`, `p99.9_ttft_ms`, …
fn spread(file: &Fields<'_>, metric: &str) -> Result<Option<Spread>, ForeignError> {
    let of = |statistic: &str| file.number(&format!("{statistic}_{metric}_ms"));
    let median = match of("median")? {
        Some(median) => Some(median),
        None => of("p50")?,
    };
    let spread = Spread {
        avg: of("mean")?,
        std: of("std")?,
        p50: median,
        p90: of("p90")?,
        p95: of("p95")?,
        p99: of("p99")?,
        p99_9: of("p99.9")?,
        p1: of("p1")?,
        p5: of("p5")?,
        p10: of("p10")?,
        p25: of("p25")?,
        p75: of("p75")?,
        ..Spread::default()
    };
    // Zero everywhere is what it writes for what it did not measure.
    Ok(spread.measured())
}
