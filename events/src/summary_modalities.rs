//! The figures of a summary that only some load generators have.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::summary::{CountStats, Distribution};

/// Figures only `metrumbench-vlm` has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VlmFigures {
    /// Loading, resizing and encoding the images of a request, before its clock starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_processing_ms: Option<Distribution>,
    /// Bytes of the images of a request as sent, before base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_bytes: Option<CountStats>,
    /// How many images had which dimensions (`WIDTHxHEIGHT`, as sent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_dimensions: Option<BTreeMap<String, u64>>,
    /// Images behind addresses whose size or dimensions could not be had, by reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_errors: Option<BTreeMap<String, u64>>,
}

/// Figures only `metrumbench-asr` has. Rates per second of inference are distributions over requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AsrFigures {
    /// Server-side processing time: the answer's `inference_time`, or the response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_time_ms: Option<Distribution>,
    /// `server`, `wall_clock` or `mixed`: which of the two it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_time_source: Option<String>,
    /// Real-time factor: inference time / audio duration; below 1 is faster than real time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtf: Option<Distribution>,
    /// Seconds of audio transcribed per second of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_seconds_per_second: Option<f64>,
    /// Words transcribed per second of the window, over all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript_words_per_second: Option<f64>,
    /// Characters transcribed per second of the window, over all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript_characters_per_second: Option<f64>,
    /// Words transcribed per second of inference time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words_per_second: Option<Distribution>,
    /// Characters transcribed per second of inference time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters_per_second: Option<Distribution>,
    /// Bytes of audio sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_sent: Option<CountStats>,
    /// Bytes of answers received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<CountStats>,
    /// Bytes sent and received per second of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_transferred_per_second: Option<f64>,
    /// Requests by audio format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formats: Option<BTreeMap<String, u64>>,
    /// Word error rate in percent, per sample with a reference: edits / reference words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wer: Option<Distribution>,
    /// Character error rate in percent, per sample with a reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cer: Option<Distribution>,
}

/// Figures only `metrumbench-imagegen` has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImagegenFigures {
    /// Images asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images_requested: Option<u64>,
    /// Images that came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images_returned: Option<u64>,
    /// Images returned / window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images_per_second: Option<f64>,
    /// Decoded pixels returned / 1e6 / window. Null where the dimensions of one of them could not be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub megapixels_per_second: Option<f64>,
    /// Fraction of requests that ended without error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_rate: Option<f64>,
    /// Requests that ran out of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Bytes of each image, as a distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_size_bytes: Option<Distribution>,
    /// Images behind links that could not be described in full, by reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_errors: Option<BTreeMap<String, u64>>,
}
