//! Results that other tools wrote, read into one shape: what our agent gets from third-party tools, and what people
//! import. Pure: bytes in, figures or the place that is wrong out.
//!
//! A figure that a file does not have is absent, never 0. A file that says 0 for "not measured" (`vllm bench serve`
//! does, where answers were not streamed) yields nothing either. Time per output token is the usual
//! (response time − TTFT) ÷ (tokens − 1) everywhere here, which is not the methodology's: it never lands in `tpot`.

mod fields;
mod genai_perf;
mod guidellm;
mod inferencex;
mod metrumbench;
mod vllm;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::summary::Distribution;
use crate::timestamp::Timestamp;

pub use inferencex::{Dimensions as InferencexDimensions, PerGpu};

/// The formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// `vllm bench serve --save-result`, and the Rust `vllm-bench`: one JSON object; with `--append-result` one a line.
    VllmBenchServe,
    /// GenAI-Perf: `profile_export_genai_perf.json`.
    GenaiPerf,
    /// AIPerf: `profile_export_aiperf.json`.
    Aiperf,
    /// GuideLLM: `benchmarks.json`, one result a benchmark.
    Guidellm,
    /// InferenceX: the result of `benchmark_serving.py`, one JSON object.
    InferencexResult,
    /// InferenceX: the aggregate of `process_result.py`, one JSON object or a list of them.
    Inferencex,
    /// Our own load generators: JSONL, one summary a line.
    Metrumbench,
}

impl Format {
    /// Every format.
    pub const ALL: &[Self] = &[
        Self::VllmBenchServe,
        Self::GenaiPerf,
        Self::Aiperf,
        Self::Guidellm,
        Self::InferencexResult,
        Self::Inferencex,
        Self::Metrumbench,
    ];

    /// The word for it in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::VllmBenchServe => "vllm_bench_serve",
            Self::GenaiPerf => "genai_perf",
            Self::Aiperf => "aiperf",
            Self::Guidellm => "guidellm",
            Self::InferencexResult => "inferencex_result",
            Self::Inferencex => "inferencex",
            Self::Metrumbench => "metrumbench",
        }
    }

    /// What people call the file.
    pub fn title(self) -> &'static str {
        match self {
            Self::VllmBenchServe => "vllm bench serve --save-result",
            Self::GenaiPerf => "GenAI-Perf, profile_export_genai_perf.json",
            Self::Aiperf => "AIPerf, profile_export_aiperf.json",
            Self::Guidellm => "GuideLLM, benchmarks.json",
            Self::InferencexResult => "InferenceX, a result of benchmark_serving.py",
            Self::Inferencex => "InferenceX, the aggregate of process_result.py",
            Self::Metrumbench => "metrumbench, a summary a line",
        }
    }

    /// The code of the tool that writes it, where the file does not say which.
    pub fn tool_code(self) -> &'static str {
        match self {
            Self::VllmBenchServe => "vllm-bench-serve",
            Self::GenaiPerf => "genai-perf",
            Self::Aiperf => "aiperf",
            Self::Guidellm => "guidellm",
            Self::InferencexResult | Self::Inferencex => "inferencex",
            Self::Metrumbench => "metrumbench-llm",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a file is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ForeignError {
    /// The line, or the path of the field, for example `line 3` or `metrics.request_latency.successful.mean`.
    pub place: String,
    /// What is wrong there.
    pub message: String,
}

impl ForeignError {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

/// A distribution, as far as a file tells. Milliseconds, unless its name says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Spread {
    /// The smallest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// The arithmetic mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avg: Option<f64>,
    /// The standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std: Option<f64>,
    /// The 1st percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p1: Option<f64>,
    /// The 5th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p5: Option<f64>,
    /// The 10th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p10: Option<f64>,
    /// The 25th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p25: Option<f64>,
    /// The median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// The 75th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p75: Option<f64>,
    /// The 90th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90: Option<f64>,
    /// The 95th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
    /// The 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// The 99.9th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_9: Option<f64>,
}

impl Spread {
    fn values(&mut self) -> [&mut Option<f64>; 14] {
        [
            &mut self.min,
            &mut self.max,
            &mut self.avg,
            &mut self.std,
            &mut self.p1,
            &mut self.p5,
            &mut self.p10,
            &mut self.p25,
            &mut self.p50,
            &mut self.p75,
            &mut self.p90,
            &mut self.p95,
            &mut self.p99,
            &mut self.p99_9,
        ]
    }

    /// Itself; nothing where it holds no value above 0: that was not measured.
    fn measured(mut self) -> Option<Self> {
        let measured = self.values().into_iter().flatten().any(|value| *value > 0.0);
        measured.then_some(self)
    }

    /// Every value times `factor`.
    fn scaled(mut self, factor: f64) -> Self {
        self.values().into_iter().flatten().for_each(|value| *value *= factor);
        self
    }
}

impl From<&Distribution> for Spread {
    fn from(d: &Distribution) -> Self {
        Self {
            min: d.min,
            max: d.max,
            avg: d.avg,
            std: d.std,
            p50: d.p50,
            p90: d.p90,
            p95: d.p95,
            p99: d.p99,
            p99_9: d.p99_9,
            ..Self::default()
        }
    }
}

/// The figures of a result, as far as its file tells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ForeignFigures {
    /// Requests that were answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_succeeded: Option<u64>,
    /// Requests that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_failed: Option<u64>,
    /// Seconds that were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// When they ended, by the clock of the host that sent the load. What energy is worked out over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ended_at: Option<Timestamp>,
    /// Answered requests a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<f64>,
    /// Input tokens a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens_per_second: Option<f64>,
    /// Output tokens a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_tokens_per_second: Option<f64>,
    /// Both together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens_per_second: Option<f64>,
    /// Input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens_total: Option<u64>,
    /// Output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_tokens_total: Option<u64>,
    /// Requests a second that kept every objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_requests_per_second: Option<f64>,
    /// Time to first token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<Spread>,
    /// Time per output token as the methodology has it; only our own tools measure it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpot_ms: Option<Spread>,
    /// (response time − TTFT) ÷ (tokens − 1), the usual definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpot_excl_first_ms: Option<Spread>,
    /// Gaps between chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inter_chunk_ms: Option<Spread>,
    /// Response time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time_ms: Option<Spread>,
    /// Seconds of audio transcribed a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_seconds_per_second: Option<f64>,
    /// Response time ÷ audio length, of each request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtf: Option<Spread>,
    /// Word error rate of each transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wer: Option<Spread>,
    /// Character error rate of each transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cer: Option<Spread>,
    /// Part of the requests that gave whole images, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_rate: Option<f64>,
    /// Images generated a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images_per_second: Option<f64>,
    /// Decoded megapixels generated a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub megapixels_per_second: Option<f64>,
    /// Whether a simulation answered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

/// What a file says about the load and the target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Load {
    /// The tool's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
    /// The model as the tool asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// When the tool says it ran, as it wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Requests in flight at once, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Requests a second that were asked for, of an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_rate: Option<f64>,
    /// Input length, tokens, where all requests had the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_sequence_length: Option<u32>,
    /// Output length, tokens, where all requests asked for the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_sequence_length: Option<u32>,
}

/// One result of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignResult {
    /// The tool's code.
    pub tool_code: String,
    /// The load and the target.
    pub load: Load,
    /// The figures.
    pub figures: ForeignFigures,
    /// What only InferenceX records.
    pub inferencex: Option<InferencexDimensions>,
    /// InferenceX's figures per GPU.
    pub per_gpu: Option<PerGpu>,
}

/// The most results one file may hold.
pub const MAX_RESULTS: usize = 1000;

/// Reads a file.
///
/// # Errors
/// [`ForeignError`] names the line or the field.
pub fn read(format: Format, bytes: &[u8]) -> Result<Vec<ForeignResult>, ForeignError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        ForeignError::new(format!("line {line}"), "the file is not UTF-8 text")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let results = match format {
        Format::Metrumbench => metrumbench::read(text)?,
        Format::VllmBenchServe => vllm::read(text)?,
        _ => {
            let value: Value = serde_json::from_str(text).map_err(not_json)?;
            match format {
                Format::GenaiPerf | Format::Aiperf => vec![genai_perf::read(&value, format)?],
                Format::Guidellm => guidellm::read(&value)?,
                Format::InferencexResult => vec![inferencex::read_result(&value)?],
                Format::Inferencex | Format::Metrumbench | Format::VllmBenchServe => {
                    inferencex::read_aggregates(&value)?
                }
            }
        }
    };
    if results.is_empty() {
        return Err(ForeignError::new("the file", "it holds no result"));
    }
    if results.len() > MAX_RESULTS {
        let message = format!("it holds {} results, at most {MAX_RESULTS} are taken", results.len());
        return Err(ForeignError::new("the file", message));
    }
    Ok(results)
}

/// Everything that is wrong with a file that [`read`] refuses: a fault a line where each line is a result of its own,
/// else the first. Empty for a file that is taken.
pub fn faults(format: Format, bytes: &[u8]) -> Vec<ForeignError> {
    let Err(first) = read(format, bytes) else { return Vec::new() };
    let each = match (format, std::str::from_utf8(bytes)) {
        (Format::Metrumbench, Ok(text)) => metrumbench::faults(text.strip_prefix('\u{feff}').unwrap_or(text)),
        _ => Vec::new(),
    };
    if each.is_empty() { vec![first] } else { each }
}

fn not_json(error: serde_json::Error) -> ForeignError {
    let place = format!("line {}, column {}", error.line(), error.column());
    ForeignError::new(place, format!("not JSON: {error}"))
}

/// Refuses two figures of one file that do not fit each other: one of them has another unit than it should.
fn agree(place: &str, said: Option<f64>, worked_out: Option<f64>) -> Result<(), ForeignError> {
    /// Tools round, and divide by times they took at slightly different moments.
    const TOLERANCE: f64 = 0.02;
    match (said, worked_out) {
        (Some(said), Some(expected))
            if (said - expected).abs() > TOLERANCE * expected.abs().max(said.abs()) =>
        {
            let message = format!("{said} does not fit the file's other figures, which make {expected}");
            Err(ForeignError::new(place, message))
        }
        _ => Ok(()),
    }
}

/// A moment that is told in seconds since 1970.
fn moment(seconds: Option<f64>) -> Option<Timestamp> {
    Timestamp::from_micros((seconds.filter(|seconds| *seconds > 0.0)? * 1e6) as i64).ok()
}

fn per_second(count: Option<u64>, seconds: Option<f64>) -> Option<f64> {
    let (count, seconds) = (count? as f64, seconds?);
    (seconds > 0.0).then(|| count / seconds)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod upstream_tests;
