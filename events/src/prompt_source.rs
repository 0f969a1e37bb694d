//! Prompt sources: the inputs a workload sends, named by a code and proven by a hash. What a code stands for never changes.

use serde::{Deserialize, Serialize};

/// What kind of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PromptSourceType {
    /// Text prompts, one a line.
    PromptLibrary,
    /// Prompts with images.
    MetrumbenchVlmSnapshot,
    /// Audio files, with transcripts or without.
    MetrumbenchAsrSnapshot,
    /// Prompts for images.
    MetrumbenchImagegenSnapshot,
    /// Questions with reference answers.
    KyaiDataset,
}

impl PromptSourceType {
    /// Every type.
    pub const ALL: &[Self] = &[
        Self::PromptLibrary,
        Self::MetrumbenchVlmSnapshot,
        Self::MetrumbenchAsrSnapshot,
        Self::MetrumbenchImagegenSnapshot,
        Self::KyaiDataset,
    ];

    /// The word used in SQL, the API and the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PromptLibrary => "prompt_library",
            Self::MetrumbenchVlmSnapshot => "metrumbench_vlm_snapshot",
            Self::MetrumbenchAsrSnapshot => "metrumbench_asr_snapshot",
            Self::MetrumbenchImagegenSnapshot => "metrumbench_imagegen_snapshot",
            Self::KyaiDataset => "kyai_dataset",
        }
    }
}

/// How many words the prompts have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WordCounts {
    /// All together.
    pub total: u64,
    /// The shortest prompt.
    pub min: u64,
    /// The longest prompt.
    pub max: u64,
}

/// A prompt source came into being. Stream: `prompt_source/<org>/<code>`; its content lies in a blob, or on the hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptSourceCreated {
    /// The display name.
    pub name: String,
    /// What kind of input.
    #[serde(rename = "type")]
    pub source_type: PromptSourceType,
    /// Rows: prompts, audio files or questions; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// SHA-256 of the rows as JSONL, hexadecimal; absent where only the hosts have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Size of that JSONL, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// SHA-256 of the file as it was uploaded, where it was no JSONL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploaded_sha256: Option<String>,
    /// SHA-256 of the reference transcripts, hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ground_truth_sha256: Option<String>,
    /// Whether there are reference transcripts.
    #[serde(default)]
    pub ground_truth: bool,
    /// Whether rows name files of the host's: such a run needs an administrator's approval.
    #[serde(default)]
    pub local_paths: bool,
    /// The prompts' words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<WordCounts>,
    /// Seconds of audio, where every row tells its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_s: Option<f64>,
    /// What it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Where these facts come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// A run with `calibrate` learnt how many words of this source a token of a model is. Stream: the source's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptSourceCalibrated {
    /// The model.
    pub model_code: String,
    /// Words a token.
    pub words_per_token: f64,
    /// Tokens that the chat template adds to each prompt.
    pub overhead_tokens: f64,
    /// Requests it rests on.
    pub requests: u64,
    /// The job that learnt it, as a stream key: only in events of before 1 December 2026. Its project may be one that readers
    /// of this stream do not see, so that it is not said any more (what caused the event is the job's own) and nowhere shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// The source of a job's inputs, as the job was created. Its hash proves what was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptSourceRef {
    /// The organisation it belongs to; `_` for those of the platform.
    pub org: String,
    /// Its code.
    pub code: String,
    /// What kind of input.
    #[serde(rename = "type")]
    pub source_type: PromptSourceType,
    /// SHA-256 of its JSONL; absent where only the host has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// SHA-256 of its transcripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ground_truth_sha256: Option<String>,
}
