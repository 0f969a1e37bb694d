//! Arguments of the commands about tools' results and prompt sources.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::foreign::Format;
use crate::prompt_source::PromptSourceType;

/// `POST /api/rpc/ingest_inferencex_results`: completes a job of InferenceX with its result. Keys in the answer: `job`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IngestInferencexResults {
    /// The project.
    pub p_project_code: String,
    /// The workload.
    pub p_workload_code: String,
    /// The run's number.
    pub p_run_number: u32,
    /// The scenario.
    pub p_scenario_code: String,
    /// What `process_result.py` made, or what `benchmark_serving.py` wrote: one JSON object.
    pub p_results: Value,
    /// The tool's version; absent means unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_tool_version: Option<String>,
}

/// `POST /api/rpc/import_results`: brings results of tools that ran elsewhere into a project. Keys in the answer:
/// `import_code`, `results` (stream keys), `file_sha256`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ImportResults {
    /// The project.
    pub p_project_code: String,
    /// The file's format.
    pub p_format: Format,
    /// The file's text; or else `p_upload_sha256`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_content: Option<String>,
    /// The SHA-256 of a file that was uploaded before: `PUT /api/uploads/<sha256>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_upload_sha256: Option<String>,
    /// The import's code; absent means made of the format and the file's hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_import_code: Option<String>,
    /// The model's code in the catalogue.
    pub p_model_code: String,
    /// The serving framework's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_framework_code: Option<String>,
    /// The framework's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_framework_version: Option<String>,
    /// The numeric format of the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_quantization: Option<String>,
    /// The accelerators' name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_gpu_name: Option<String>,
    /// How many served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_gpu_count: Option<u32>,
    /// What an hour of the server costs, US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_cost_per_hour_usd: Option<f64>,
    /// Requests in flight, where the file does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_concurrency: Option<u32>,
    /// Input length, tokens, where the file does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_input_sequence_length: Option<u32>,
    /// Output length, tokens, where the file does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_output_sequence_length: Option<u32>,
}

/// How rows are written in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ContentFormat {
    /// A JSON object a line.
    #[default]
    Jsonl,
    /// Comma-separated values with a header; for KYAI datasets.
    Csv,
}

/// `POST /api/rpc/create_prompt_source`: uploads inputs under a code. Keys in the answer: `prompt_source_code`, `rows`,
/// `sha256`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreatePromptSource {
    /// Its code; what it stands for never changes.
    pub p_prompt_source_code: String,
    /// The display name; absent means the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_name: Option<String>,
    /// What kind of input.
    pub p_type: PromptSourceType,
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_description: Option<String>,
    /// The file's text; or else `p_upload_sha256`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_content: Option<String>,
    /// The SHA-256 of a file that was uploaded before: `PUT /api/uploads/<sha256>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_upload_sha256: Option<String>,
    /// How its rows are written; absent means JSONL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_content_format: Option<ContentFormat>,
    /// Reference transcripts, JSONL with id and transcript, for audio; or else `p_ground_truth_upload_sha256`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_ground_truth_content: Option<String>,
    /// The SHA-256 of transcripts that were uploaded before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_ground_truth_upload_sha256: Option<String>,
}

/// `POST /api/rpc/save_tool_args_set`: keeps arguments of a tool under a name for the whole organisation, or puts others in
/// their place. Keys in the answer: `tool_args_set` (its stream), `set_code`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SaveToolArgsSet {
    /// The tool.
    pub p_tool_code: String,
    /// The display name.
    pub p_name: String,
    /// The set's code; made of the name where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_set_code: Option<String>,
    /// The arguments: key → typed value.
    pub p_values: BTreeMap<String, Value>,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_notes: Option<String>,
}

/// `POST /api/rpc/remove_tool_args_set`: workloads that were made from the set keep their values. Keys in the answer:
/// `tool_args_set` (its stream), `set_code`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveToolArgsSet {
    /// The tool.
    pub p_tool_code: String,
    /// The set's code.
    pub p_set_code: String,
}
