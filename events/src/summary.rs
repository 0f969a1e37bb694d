//! The summary line: what a load generator measured, one JSON object per run.
//!
//! The field names are a contract: the control plane flattens paths into columns, so that `ttft_ms.p99`
//! becomes `ttft_p99_ms`. A value that was not measured is `null`, never 0. Durations carry their unit in
//! their name. Definitions follow the performance methodology; where this file goes further it says so.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::timestamp::Timestamp;

pub use crate::summary_modalities::{AsrFigures, ImagegenFigures, VlmFigures};

/// The `schema` of a summary line written by `metrumbench-llm`, `-vlm` and `-asr`.
pub const SUMMARY_SCHEMA: &str = "metrumbench.summary.v1";

/// The `schema` of a summary written by `metrumbench-imagegen`.
pub const IMAGEGEN_SUMMARY_SCHEMA: &str = "metrumbench-imagegen.summary.v1";

/// The name of the only percentile method: nearest rank, `sorted[ceil(p * n / 100) - 1]`.
pub const PERCENTILE_METHOD: &str = "nearest_rank";

/// One run of one load generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The version of this shape: [`SUMMARY_SCHEMA`] or [`IMAGEGEN_SUMMARY_SCHEMA`].
    pub schema: String,
    /// Identifies the run (version 7, so that it sorts by time).
    pub id: Uuid,
    /// The same run for people, such as `llm-20261129-221947-c8-3f9a`.
    pub readable_id: String,
    /// When the run began: ISO 8601, UTC.
    pub timestamp: String,
    /// When the measurement window opened, by this machine's clock: ISO 8601, UTC. Null when nothing was measured.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub window_started_at: Option<Timestamp>,
    /// When it closed: `window_s` later. Whoever reads this line does so later still.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub window_ended_at: Option<Timestamp>,
    /// The binary that wrote this: `metrumbench-llm`, `metrumbench-vlm`, `metrumbench-asr` or `metrumbench-imagegen`.
    pub tool: String,
    /// The version of the binary.
    pub tool_version: String,
    /// The compiler that built it, as `rustc --version` prints it.
    pub rustc_version: String,
    /// The machine the load came from.
    pub host: Host,
    /// Every setting of the run, secrets redacted. `config.sources` names where each came from
    /// (`command line`, `environment`, `default`, `derived`).
    pub config: Value,
    /// True when `benchtrail-refserver` answered: the figures describe a simulation, not a model.
    pub simulated: bool,
    /// True when the run ended before it had done all it was asked to.
    pub partial: bool,
    /// True when a signal ended the run (then `partial` is true as well).
    pub cancelled: bool,
    /// [`PERCENTILE_METHOD`]. Up to 65,536 samples the percentile is one of the samples; beyond, it is
    /// the upper edge of a bin at most 0.1 % wide, and the distribution says `binned`.
    pub percentile_method: String,
    /// What a reader must know before trusting the figures, as stable words: `usage_absent`,
    /// `usage_partial`, `clock_unverified`, `clock_unchecked`, `no_success`, `few_requests`, `client_limited`,
    /// `no_done_marker`, `prompts_reused`, `clock_stepped` (this machine's clock was set during the run: the window's
    /// times are those of the clock before), `images_unknown` (images behind links could not all be fetched: see
    /// `image_errors` and `artifact_errors`).
    pub flags: Vec<String>,
    /// Every figure over all endpoints together.
    #[serde(flatten)]
    pub figures: Figures,
    /// The same figures for each endpoint, in the order they were given.
    pub endpoints: Vec<EndpointFigures>,
    /// How the load generator itself fared.
    pub client: Client,
}

/// The machine a load generator ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// Logical processors the process may use.
    pub cores: Option<u32>,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// Frequency governor of the first processor, such as `performance`.
    pub cpu_governor: Option<String>,
    /// Open files allowed to the process (the soft limit, after it was raised).
    pub open_file_limit: Option<u64>,
    /// Offset of the clock against NTP in milliseconds (positive: this clock is behind); null when unchecked or unreachable.
    pub clock_offset_ms: Option<f64>,
}

/// The figures of a run, or of one endpoint in it. Only requests that succeeded inside the window enter a
/// distribution, a token count or a throughput.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Counts of requests.
    pub requests: RequestCounts,
    /// Seconds of the measurement window. It opens when the ramp-up ends (without one: when the first measured
    /// request is sent) and closes when the last measured request ends, well or badly, or when the run is
    /// cancelled. Null when nothing was measured.
    pub window_s: Option<f64>,
    /// From just before the request is sent (before connecting, if a connection must be opened) until the
    /// answer is complete.
    pub response_time_ms: Option<Distribution>,
    /// From the same start to the first non-empty visible content or tool call. Not streamed: equals the response time.
    pub ttft_ms: Option<Distribution>,
    /// From the same start to the first non-empty output of any kind, reasoning included.
    pub first_token_ms: Option<Distribution>,
    /// From the same start to the first non-empty reasoning output.
    pub first_reasoning_ms: Option<Distribution>,
    /// Time per output token as the methodology has it: (response time - TTFT) / completion tokens. Null when not streamed.
    pub tpot_ms: Option<Distribution>,
    /// (last output - first output of any kind) / (completion tokens - 1): the usual definition elsewhere. Null when not streamed.
    pub tpot_excl_first_ms: Option<Distribution>,
    /// Gaps between consecutive chunks that carried output, pooled over requests. Chunks are not tokens.
    pub inter_chunk_ms: Option<Distribution>,
    /// Open loop: how long after its scheduled moment a request was sent.
    pub schedule_delay_ms: Option<Distribution>,
    /// Open loop: from the scheduled moment until the answer is complete (free of coordinated omission).
    pub response_time_from_schedule_ms: Option<Distribution>,
    /// Input tokens, from the server's usage only.
    pub prompt_tokens: Option<CountStats>,
    /// Output tokens, from the server's usage only.
    pub completion_tokens: Option<CountStats>,
    /// Output tokens spent on reasoning, from the server's usage only.
    pub reasoning_tokens: Option<CountStats>,
    /// Input tokens the server took from its prefix cache, from its usage only.
    pub cached_prompt_tokens: Option<CountStats>,
    /// Words in the prompts, split at white space.
    pub prompt_words: Option<CountStats>,
    /// Words in the answers, split at white space.
    pub completion_words: Option<CountStats>,
    /// Rates over the window.
    pub throughput: Throughput,
    /// Requests that kept every objective; null when none was set.
    pub goodput: Option<Goodput>,
    /// What failed.
    pub errors: Errors,
    /// Figures only `metrumbench-vlm` has.
    #[serde(flatten)]
    pub vlm: VlmFigures,
    /// Figures only `metrumbench-asr` has.
    #[serde(flatten)]
    pub asr: AsrFigures,
    /// Figures only `metrumbench-imagegen` has.
    #[serde(flatten)]
    pub imagegen: ImagegenFigures,
}

/// Counts of requests. `attempted = succeeded + failed + incomplete`; warm-up and ramp-up are outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestCounts {
    /// Measured requests that were sent.
    pub attempted: u64,
    /// Of these, answered completely as the protocol says a complete answer ends.
    pub succeeded: u64,
    /// Of these, ended by an error of any type.
    pub failed: u64,
    /// Of these, still under way when the run was cancelled or ran out of time.
    pub incomplete: u64,
    /// Of those that succeeded, answers without any output: they have no TTFT.
    pub empty: u64,
    /// Requests of the warm-up, in no other figure.
    pub warmup: u64,
    /// Requests that ended during the ramp-up, in no other figure.
    pub ramp_up: u64,
}

/// A distribution of durations (milliseconds where the field's name ends in `_ms`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// How many samples.
    pub n: u64,
    /// The smallest.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// The arithmetic mean.
    pub avg: Option<f64>,
    /// The population standard deviation.
    pub std: Option<f64>,
    /// The median, by nearest rank as all percentiles here.
    pub p50: Option<f64>,
    /// The 90th percentile.
    pub p90: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The 99.9th percentile.
    pub p99_9: Option<f64>,
    /// Percentiles that rest on too few samples: p needs 100 / (100 - p) of them, p90 ten, p99 a hundred.
    pub unreliable: Vec<String>,
    /// True when there were too many samples to keep each, so that percentiles are exact to 0.1 % only.
    #[serde(default)]
    pub binned: bool,
}

/// A count per request (tokens, words).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountStats {
    /// Over how many requests.
    pub n: u64,
    /// The sum.
    pub total: u64,
    /// The smallest.
    pub min: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
    /// The arithmetic mean.
    pub avg: Option<f64>,
    /// The median.
    pub p50: Option<u64>,
    /// The 95th percentile.
    pub p95: Option<u64>,
    /// `total / window_s`.
    pub per_second: Option<f64>,
    /// Where the counts come from: `usage` (the server said so), `whitespace` (words) or `audio`.
    pub source: Option<String>,
}

/// Rates over the window: successes only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Throughput {
    /// Succeeded requests / window.
    pub requests_per_second: Option<f64>,
    /// Prompt tokens of succeeded requests / window; null without usage.
    pub prompt_tokens_per_second: Option<f64>,
    /// Completion tokens of succeeded requests / window; null without usage.
    pub completion_tokens_per_second: Option<f64>,
    /// Both together.
    pub total_tokens_per_second: Option<f64>,
}

/// Requests that kept every service-level objective.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Goodput {
    /// The objectives in milliseconds, by metric: `ttft`, `tpot`, `e2e`.
    pub slo_ms: BTreeMap<String, f64>,
    /// Succeeded requests that kept all of them.
    pub requests: u64,
    /// `requests` / attempted requests, failures included.
    pub fraction: Option<f64>,
    /// `requests / window_s`.
    pub requests_per_second: Option<f64>,
}

/// What failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Errors {
    /// Failed requests.
    pub count: u64,
    /// Percent of the requests that ended (succeeded + failed); null when none did.
    pub rate_pct: Option<f64>,
    /// By type: `rate_limit`, `authentication`, `bad_request`, `http_error`, `server_error`, `timeout`, `connection`,
    /// `body`, `decode`, `redirect`, `stream_cut`, `missing_finish`, `in_band_error`, `wrong_content_type`;
    /// ImageGen has its own seven.
    pub by_type: BTreeMap<String, u64>,
    /// By HTTP status, as text.
    pub by_status: BTreeMap<String, u64>,
    /// True when a message spoke of memory running out on the server.
    pub oom_detected: bool,
    /// The first few distinct errors, credentials redacted.
    pub samples: Vec<ErrorSample>,
}

/// One distinct error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorSample {
    /// The type, as in [`Errors::by_type`].
    #[serde(rename = "type")]
    pub kind: String,
    /// HTTP status, if there was one.
    pub status: Option<u16>,
    /// What was said, shortened.
    pub message: String,
    /// How many requests failed just so.
    pub count: u64,
}

/// The figures of one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndpointFigures {
    /// Its name: given, or its address.
    pub name: String,
    /// Its address, without credentials.
    pub url: String,
    /// Its share of the traffic relative to the others.
    pub weight: u32,
    /// Its figures, over the window of the whole run.
    #[serde(flatten)]
    pub figures: Figures,
}

/// How the load generator itself fared: whether the figures describe the server or the client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Client {
    /// Processor time of this process / (window × cores it could use).
    pub cpu_share: Option<f64>,
    /// How late the event loop woke up for a timer.
    pub loop_lag_ms: Option<Distribution>,
    /// From the moment a request could be sent (slot free, or scheduled) until its bytes were on the way.
    pub send_skew_ms: Option<Distribution>,
    /// The most requests under way at once.
    pub max_in_flight: u64,
    /// Connections opened.
    pub connections_opened: u64,
    /// Requests sent on a connection that had already served one.
    pub reused: u64,
    /// Requests sent again because a reused connection died before any byte of the answer.
    pub retried: u64,
    /// True when the client, not the server, set the pace.
    pub limited: bool,
    /// Why, when it did.
    pub limited_reason: Option<String>,
    /// How many times this load the client could have driven, judged by its busiest thread; null when unknown.
    pub headroom: Option<f64>,
    /// Where arrival times came from: `kernel` (packet timestamps) or `process`.
    pub clock_source: Option<String>,
}

/// The JSON Schema of a summary line of this `schema`: [`SUMMARY_SCHEMA`] or [`IMAGEGEN_SUMMARY_SCHEMA`].
#[cfg(feature = "schema")]
pub fn json_schema(schema: &str) -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut document = settings.into_generator().into_root_schema_for::<Summary>();
    document.insert("title".into(), schema.into());
    if let Some(named) = document.pointer_mut("/properties/schema") {
        named["const"] = schema.into();
    }
    document.to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minimal() -> Summary {
        Summary {
            schema: SUMMARY_SCHEMA.into(),
            id: Uuid::nil(),
            readable_id: "llm-x".into(),
            timestamp: "2026-11-29T22:00:00Z".into(),
            window_started_at: None,
            window_ended_at: "2026-11-29T22:01:00.5Z".parse().ok(),
            tool: "metrumbench-llm".into(),
            tool_version: "0.1.0".into(),
            rustc_version: "rustc".into(),
            host: Host::default(),
            config: Value::Null,
            simulated: true,
            partial: false,
            cancelled: false,
            percentile_method: PERCENTILE_METHOD.into(),
            flags: vec![],
            figures: Figures::default(),
            endpoints: vec![EndpointFigures::default()],
            client: Client::default(),
        }
    }

    #[test]
    fn a_summary_survives_its_own_json() {
        let summary = minimal();
        let text = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    }

    #[test]
    fn what_was_not_measured_is_null() {
        let value = serde_json::to_value(minimal()).unwrap();
        assert!(value["ttft_ms"].is_null());
        assert!(value["throughput"]["requests_per_second"].is_null());
        assert_eq!(value["requests"]["attempted"], 0);
    }
}
