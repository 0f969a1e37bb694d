//! What was measured, by what, where and under which load: the columns that results, the outputs of tools, the counts by
//! kind and the leaderboard share, flattened into each of their rows.

use events::tool_output::ToolOutputImported;
use serde::{Deserialize, Serialize};

use super::result_rows::{ResultJobRow, ResultServerRow};
use crate::projections::text::{Column, Kind};

/// A part of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    pub(super) model_code: String,
    pub(super) framework_code: Option<String>,
    pub(super) framework_version: Option<String>,
    pub(super) quantization: Option<String>,
    pub(super) tool_code: String,
    pub(super) config_code: Option<String>,
    pub(super) hostname: Option<String>,
    pub(super) gpu_name: Option<String>,
    pub(super) gpu_count: Option<i64>,
    pub(super) concurrency: Option<u32>,
    pub(super) input_sequence_length: Option<u32>,
    pub(super) output_sequence_length: Option<u32>,
    pub(super) streaming: Option<bool>,
}

impl Setup {
    /// That of a job on its server.
    pub(super) fn of_job(job: &ResultJobRow, server: Option<&ResultServerRow>) -> Self {
        let spec = &job.spec;
        Self {
            model_code: spec.model_code.clone(),
            framework_code: Some(spec.framework_code.clone()),
            framework_version: Some(spec.framework_version.clone()),
            quantization: spec.quantization.clone(),
            tool_code: spec.tool_code.clone(),
            config_code: Some(job.config_code.clone()),
            hostname: Some(job.hostname.clone()),
            gpu_name: server.and_then(|s| s.gpu_name.clone()),
            gpu_count: server.and_then(|s| s.gpu_count),
            concurrency: Some(spec.concurrency),
            input_sequence_length: spec.input_sequence_length,
            output_sequence_length: spec.output_sequence_length,
            streaming: spec.streaming,
        }
    }

    /// That of a result which was measured elsewhere, as far as it is told.
    pub(super) fn of_import(output: &ToolOutputImported) -> Self {
        Self {
            model_code: output.model_code.clone(),
            framework_code: output.framework_code.clone(),
            framework_version: output.framework_version.clone(),
            quantization: output.quantization.clone(),
            tool_code: output.tool_code.clone(),
            config_code: None,
            hostname: None,
            gpu_name: output.gpu_name.clone(),
            gpu_count: output.gpu_count.map(i64::from),
            concurrency: output.load.concurrency,
            input_sequence_length: output.load.input_sequence_length,
            output_sequence_length: output.load.output_sequence_length,
            streaming: output.figures.ttft_ms.is_some().then_some(true),
        }
    }

    /// Its columns, in the order of its fields.
    pub(super) fn columns() -> Vec<Column> {
        let of = |kind: Kind, names: &[&str]| -> Vec<Column> {
            names.iter().map(|name| Column::shown(name, kind)).collect()
        };
        let mut columns = super::access::measured_columns();
        columns.extend(of(Kind::Text, &["tool_code", "config_code", "hostname", "gpu_name"]));
        columns.extend(of(
            Kind::Int,
            &["gpu_count", "concurrency", "input_sequence_length", "output_sequence_length"],
        ));
        columns.extend(of(Kind::Bool, &["streaming"]));
        columns
    }
}
