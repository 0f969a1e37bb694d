//! What the benchmark tools report: progress while they run, the summary at the end.

use serde::{Deserialize, Serialize};

use crate::external_figures::{KvCacheFigures, KyaiFigures};
use crate::foreign::{ForeignFigures, Format, InferencexDimensions, Load, PerGpu};
use crate::summary::Summary;
use crate::tools::FRAMEWORK_REFSERVER;

/// The load generator's own progress line. Stream: the attempt's progress stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressReported {
    /// The report's number within the attempt, from 1.
    pub seq: u64,
    /// `warmup`, `ramp_up`, `running`, `drain` or `done`.
    pub phase: String,
    /// Requests answered so far, failures included.
    pub done: u64,
    /// Requests asked for; absent when the run is bounded by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Requests that failed so far.
    #[serde(default)]
    pub failed: u64,
    /// Requests in flight.
    #[serde(default)]
    pub in_flight: u64,
    /// Seconds since the tool started.
    pub elapsed_s: f64,
    /// Answers a second over the last interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<f64>,
    /// Generated tokens a second over the last interval, from the server's usage as answers finish; streamed chunks in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens_per_second: Option<f64>,
    /// Median time to first token so far, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p50_ms: Option<f64>,
}

/// How the tool was run: recorded evidence beside its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolInvocation {
    /// The tool's code.
    pub tool_code: String,
    /// What the tool prints for `--version`.
    pub tool_version: String,
    /// The final command line, secrets redacted.
    pub argv: Vec<String>,
    /// The exit code; absent when a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// SHA-256 of the tool's summary line as it was written, hexadecimal.
    pub summary_sha256: String,
}

/// A load generator of ours wrote its summary (`summary.tool` says which). Stream: the job's. Read by: `v_metrumbench_llm_outputs`, `v_benchmark_results`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolOutputRecorded {
    /// The attempt this belongs to.
    pub attempt: u32,
    /// How the tool was run.
    pub invocation: ToolInvocation,
    /// The summary line, typed.
    pub summary: Summary,
}

/// What InferenceX measured beside the figures that every serving tool has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InferencexOutput {
    /// The run's configuration.
    pub dimensions: InferencexDimensions,
    /// Throughput per GPU.
    pub per_gpu: PerGpu,
}

/// A third-party tool wrote its result (`invocation.tool_code` says which). Stream: the job's. Read by: `v_inferencex_outputs` and the views of the other tools, `v_benchmark_results`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExternalOutputRecorded {
    /// The attempt this belongs to.
    pub attempt: u32,
    /// How the tool was run.
    pub invocation: ToolInvocation,
    /// The load, as the result tells it.
    pub load: Load,
    /// The figures that every serving tool has.
    pub figures: ForeignFigures,
    /// InferenceX alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inferencex: Option<InferencexOutput>,
    /// KV cache offload alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_cache: Option<KvCacheFigures>,
    /// KYAI alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kyai: Option<KyaiFigures>,
}

impl ExternalOutputRecorded {
    /// Whether the reference server answered: as the result says, or by the framework of the job. Such a tool does not know
    /// whom it measured.
    pub fn simulated_on(&self, framework_code: &str) -> bool {
        self.figures.simulated || framework_code == FRAMEWORK_REFSERVER
    }
}

/// A person brought the result of a tool that ran elsewhere. Stream: the import's. Read by: `v_benchmark_results`, where it is marked imported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolOutputImported {
    /// The file's format.
    pub format: Format,
    /// SHA-256 of the file as it was brought, hexadecimal: the blob that holds it.
    pub file_sha256: String,
    /// The result's place in the file, from 1.
    pub number: u32,
    /// The tool that measured.
    pub tool_code: String,
    /// The model's code in the catalogue.
    pub model_code: String,
    /// The serving framework, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework_code: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework_version: Option<String>,
    /// The numeric format of the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantization: Option<String>,
    /// The accelerators' name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_name: Option<String>,
    /// How many served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// What an hour of the server costs, US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_hour_usd: Option<f64>,
    /// The load.
    pub load: Load,
    /// The figures.
    pub figures: ForeignFigures,
    /// InferenceX alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inferencex: Option<InferencexOutput>,
}

/// Which of a job's three log streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LogSource {
    /// The model server's own output.
    Framework,
    /// The benchmark client's output.
    Tool,
    /// The worker agent's lifecycle log.
    Agent,
}

impl LogSource {
    /// The word used in SQL, the API and the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Framework => "framework",
            Self::Tool => "tool",
            Self::Agent => "agent",
        }
    }
}

/// Lines of one of a job's log streams, secrets redacted by the agent. Stream: the attempt's logs stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLines {
    /// Which log.
    pub source: LogSource,
    /// The number of the first line within this source and attempt, from 1.
    pub first_line: u64,
    /// The lines, without their line ends.
    pub lines: Vec<String>,
}
