//! The line of a request log: what a load generator noted of one request, beside the summary of the run.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use serde_json::Value;

/// The `schema` of a line of `metrumbench-imagegen`'s data log.
pub const IMAGEGEN_REQUEST_SCHEMA: &str = "metrumbench-imagegen.request.v1";

/// One request. Moments are nanoseconds since 1970, durations milliseconds. What was not measured is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestLine<'a, M> {
    /// As sent in `x-request-id`.
    pub request_id: &'a str,
    /// Its number within its phase, from 0.
    pub index: u64,
    /// `warmup`, `ramp_up` or `measured`: only the last is in the figures.
    pub phase: &'a str,
    /// The endpoint's name.
    pub endpoint: &'a str,
    /// `success`, `failed`, or `incomplete`: still under way when the run was cancelled.
    pub outcome: &'a str,
    /// Open loop: when it should have been sent.
    pub scheduled_unix_ns: Option<u64>,
    /// Just before it was sent, or before a connection was opened for it.
    pub started_unix_ns: u64,
    /// When its answer was complete, or it failed.
    pub ended_unix_ns: u64,
    /// First output of any kind; null where the answer is no text.
    pub first_output_unix_ns: Option<u64>,
    /// Last output of any kind.
    pub last_output_unix_ns: Option<u64>,
    /// From its start to its end.
    pub response_time_ms: f64,
    /// Start to first visible output; not streamed: the response time.
    pub ttft_ms: Option<f64>,
    /// Start to first output of any kind.
    pub first_token_ms: Option<f64>,
    /// (response time - TTFT) / completion tokens.
    pub tpot_ms: Option<f64>,
    /// (last output - first output) / (completion tokens - 1).
    pub tpot_excl_first_ms: Option<f64>,
    /// Open loop: how long after its scheduled moment it was sent.
    pub schedule_delay_ms: Option<f64>,
    /// How long after it could have been sent it was.
    pub send_skew_ms: f64,
    /// Whether the answer was to be streamed.
    pub streamed: bool,
    /// Streamed chunks with output; null where the answer was not to be streamed.
    pub chunks: Option<u64>,
    /// The server's token counts.
    pub usage: Option<Usage>,
    /// Words of the prompt, split at white space.
    pub prompt_words: Option<u64>,
    /// Words of the answer; null where it is no text.
    pub completion_words: Option<u64>,
    /// Why the model stopped.
    pub finish_reason: Option<&'a str>,
    /// HTTP status.
    pub status: Option<u16>,
    /// Sent on a connection that had served a request before; null where no answer came.
    pub connection_reused: Option<bool>,
    /// Sent a second time, because a reused connection had died.
    pub retried: Option<bool>,
    /// The type of its failure, as in `errors.by_type` of the summary.
    pub error_type: Option<&'a str>,
    /// What was said, credentials redacted.
    pub error: Option<String>,
    /// What only some load generators note.
    #[serde(flatten)]
    pub modality: M,
}

/// The server's own token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Input tokens.
    #[serde(default)]
    pub prompt_tokens: Option<u64>,
    /// Output tokens.
    #[serde(default)]
    pub completion_tokens: Option<u64>,
    /// More on the input.
    #[serde(default)]
    pub prompt_tokens_details: Option<PromptDetails>,
    /// More on the output.
    #[serde(default)]
    pub completion_tokens_details: Option<CompletionDetails>,
    /// Where some servers put the reasoning tokens instead.
    #[serde(default)]
    pub reasoning_tokens: Option<u64>,
}

/// More on the input tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptDetails {
    /// Taken from the prefix cache.
    #[serde(default)]
    pub cached_tokens: Option<u64>,
}

/// More on the output tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompletionDetails {
    /// Spent on reasoning.
    #[serde(default)]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Reasoning tokens, never more than there were output tokens (some servers say otherwise).
    pub fn reasoning(&self) -> Option<u64> {
        let said =
            self.completion_tokens_details.and_then(|d| d.reasoning_tokens).or(self.reasoning_tokens)?;
        Some(self.completion_tokens.map_or(said, |all| said.min(all)))
    }

    /// Input tokens from the prefix cache.
    pub fn cached(&self) -> Option<u64> {
        self.prompt_tokens_details.and_then(|details| details.cached_tokens)
    }
}

/// What `metrumbench-imagegen` notes of a request beyond what all do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImagegenRequest<'a> {
    /// [`IMAGEGEN_REQUEST_SCHEMA`].
    pub schema: &'a str,
    /// The prompt.
    pub prompt: &'a str,
    /// The size asked for, `WIDTHxHEIGHT`.
    pub size: &'a str,
    /// Images asked for.
    pub images_requested: u64,
    /// Images in the answer.
    pub images_returned: u64,
    /// Bytes of the whole answer.
    pub response_bytes: u64,
    /// Each image.
    pub artifacts: &'a [Artifact],
    /// Where the raw answer was saved.
    pub raw_path: Option<&'a str>,
    /// Each try, where there may be several (`--retries`).
    pub attempts: &'a [Attempt],
}

/// One generated image.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Artifact {
    /// Position in the answer, from 0.
    pub index: u64,
    /// Where it was saved.
    pub path: Option<String>,
    /// Where the server keeps it, if it answered with a link: without credentials and query.
    pub url: Option<String>,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: Option<String>,
    /// Its bytes.
    pub size_bytes: Option<u64>,
    /// Decoded width in pixels.
    pub width: Option<u32>,
    /// Decoded height in pixels.
    pub height: Option<u32>,
    /// `image/png`, …
    pub mime_type: Option<String>,
    /// Why something of the above is null, where the image was behind a link.
    pub unknown_reason: Option<String>,
}

/// One try of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// How long it took.
    pub latency_ms: f64,
    /// HTTP status.
    pub status: Option<u16>,
    /// Why it failed.
    pub error_type: Option<&'static str>,
}

/// The JSON Schema of a line of `metrumbench-imagegen`'s data log.
#[cfg(feature = "schema")]
pub fn imagegen_json_schema() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut document =
        settings.into_generator().into_root_schema_for::<RequestLine<'static, ImagegenRequest<'static>>>();
    document.insert("title".into(), IMAGEGEN_REQUEST_SCHEMA.into());
    if let Some(named) = document.pointer_mut("/properties/schema") {
        named["const"] = IMAGEGEN_REQUEST_SCHEMA.into();
    }
    document.to_value()
}
