//! Our own load generators' JSONL: a summary a line.

use super::{ForeignError, ForeignFigures, ForeignResult, Load, Spread};
use crate::summary::{Distribution, IMAGEGEN_SUMMARY_SCHEMA, SUMMARY_SCHEMA, Summary};
use crate::tools::ToolCode;

/// Reads every line that is not blank.
pub(super) fn read(text: &str) -> Result<Vec<ForeignResult>, ForeignError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| read_line(line).map_err(|why| at_line(index + 1, why))).collect()
}

/// What is wrong with each line that cannot be read.
pub(super) fn faults(text: &str) -> Vec<ForeignError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.filter_map(|(index, line)| read_line(line).err().map(|why| at_line(index + 1, why))).collect()
}

fn at_line(line: usize, why: String) -> ForeignError {
    ForeignError::new(format!("line {line}"), why)
}

fn read_line(line: &str) -> Result<ForeignResult, String> {
    let summary: Summary =
        serde_json::from_str(line).map_err(|error| format!("no summary of ours: {error}"))?;
    if ![SUMMARY_SCHEMA, IMAGEGEN_SUMMARY_SCHEMA].contains(&summary.schema.as_str()) {
        return Err(format!("the schema {:?} is not known here", shown(&summary.schema)));
    }
    let tool = ToolCode::of(&summary.tool)
        .ok_or_else(|| format!("the tool {:?} is not ours", shown(&summary.tool)))?;
    let figures = &summary.figures;
    if figures.requests.succeeded == 0 {
        return Err("no request was answered: there is nothing to compare".to_owned());
    }
    for (name, value) in crate::summary_columns::columns_of(tool, figures) {
        let may_be_negative = name.contains("schedule_delay");
        if value.is_some_and(|value| !value.is_finite() || (value < 0.0 && !may_be_negative)) {
            return Err(format!("{name} is out of bounds: it must be at least 0"));
        }
    }
    let spread = |d: &Option<Distribution>| d.as_ref().map(Spread::from);
    let throughput = &figures.throughput;
    let config = |name: &str| summary.config.get(name).and_then(serde_json::Value::as_u64);
    let axis = |name: &str| config(name).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    let model = summary.config.get("model").and_then(serde_json::Value::as_str);
    Ok(ForeignResult {
        tool_code: tool.as_str().to_owned(),
        load: Load {
            tool_version: Some(shown(&summary.tool_version)),
            model_id: model.map(shown),
            date: Some(shown(&summary.timestamp)),
            concurrency: axis("concurrency"),
            request_rate: summary.config.get("request_rate").and_then(serde_json::Value::as_f64),
            input_sequence_length: axis("input_sequence_length"),
            output_sequence_length: axis("output_sequence_length"),
        },
        figures: ForeignFigures {
            requests_succeeded: Some(figures.requests.succeeded),
            requests_failed: Some(figures.requests.failed),
            window_s: figures.window_s,
            window_ended_at: summary.window_ended_at,
            requests_per_second: throughput.requests_per_second,
            prompt_tokens_per_second: throughput.prompt_tokens_per_second,
            completion_tokens_per_second: throughput.completion_tokens_per_second,
            total_tokens_per_second: throughput.total_tokens_per_second,
            prompt_tokens_total: figures.prompt_tokens.as_ref().map(|c| c.total),
            completion_tokens_total: figures.completion_tokens.as_ref().map(|c| c.total),
            goodput_requests_per_second: figures.goodput.as_ref().and_then(|g| g.requests_per_second),
            ttft_ms: spread(&figures.ttft_ms),
            tpot_ms: spread(&figures.tpot_ms),
            tpot_excl_first_ms: spread(&figures.tpot_excl_first_ms),
            inter_chunk_ms: spread(&figures.inter_chunk_ms),
            response_time_ms: spread(&figures.response_time_ms),
            audio_seconds_per_second: figures.asr.audio_seconds_per_second,
            rtf: spread(&figures.asr.rtf),
            wer: spread(&figures.asr.wer),
            cer: spread(&figures.asr.cer),
            success_rate: figures.imagegen.success_rate,
            images_per_second: figures.imagegen.images_per_second,
            megapixels_per_second: figures.imagegen.megapixels_per_second,
            simulated: summary.simulated,
        },
        inferencex: None,
        per_gpu: None,
    })
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}
