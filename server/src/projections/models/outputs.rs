//! What `metrumbench-llm` measured, every figure a column: `v_metrumbench_llm_outputs`. Folded by [`super::results`].

use std::collections::BTreeMap;

use events::Timestamp;
use events::envelope::Recorded;
use events::summary_columns;
use events::tool_output::ToolOutputRecorded;
use serde::{Deserialize, Serialize};

use super::access;
use super::result_rows::ResultJobRow;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// One job's summary, flattened. Old versions are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LlmOutputRow {
    org: String,
    project_code: String,
    workload_code: String,
    run_number: u32,
    scenario_code: String,
    job: String,
    run: String,
    attempt: u32,
    model_code: String,
    framework_code: String,
    framework_version: String,
    quantization: Option<String>,
    tool_code: String,
    tool_version: String,
    config_code: String,
    hostname: String,
    concurrency: u32,
    input_sequence_length: Option<u32>,
    output_sequence_length: Option<u32>,
    streaming: bool,
    summary_id: String,
    readable_id: String,
    simulated: bool,
    partial: bool,
    cancelled: bool,
    summary_flags: Vec<String>,
    client_limited: bool,
    summary_sha256: String,
    recorded_at: Timestamp,
    position: i64,
    valid_from: i64,
    valid_to: Option<i64>,
    visibility: String,
    owner: String,
    #[serde(flatten)]
    figures: BTreeMap<String, Option<f64>>,
}

impl LlmOutputRow {
    pub(super) fn new(job: &ResultJobRow, output: &ToolOutputRecorded, recorded: &Recorded) -> Self {
        let summary = &output.summary;
        Self {
            org: job.org.clone(),
            project_code: job.project_code.clone(),
            workload_code: job.workload_code.clone(),
            run_number: job.run_number,
            scenario_code: job.scenario_code.clone(),
            job: job.job.clone(),
            run: job.run.clone(),
            attempt: output.attempt,
            model_code: job.spec.model_code.clone(),
            framework_code: job.spec.framework_code.clone(),
            framework_version: job.spec.framework_version.clone(),
            quantization: job.spec.quantization.clone(),
            tool_code: job.spec.tool_code.clone(),
            tool_version: output.invocation.tool_version.clone(),
            config_code: job.config_code.clone(),
            hostname: job.hostname.clone(),
            concurrency: job.spec.concurrency,
            input_sequence_length: job.spec.input_sequence_length,
            output_sequence_length: job.spec.output_sequence_length,
            streaming: job.spec.streaming,
            summary_id: summary.id.to_string(),
            readable_id: summary.readable_id.clone(),
            simulated: summary.simulated,
            partial: summary.partial,
            cancelled: summary.cancelled,
            summary_flags: summary.flags.clone(),
            client_limited: summary.client.limited,
            summary_sha256: output.invocation.summary_sha256.clone(),
            recorded_at: recorded.recorded_at,
            position: recorded.position,
            valid_from: recorded.position,
            valid_to: None,
            visibility: job.visibility.clone(),
            owner: job.owner.clone(),
            figures: summary_columns::columns(&summary.figures).into_iter().collect(),
        }
    }
}

impl Row for LlmOutputRow {
    type Key = String;
    const TABLE: &'static str = "metrumbench_llm_outputs";
    const KEY: &'static [&'static str] = &["job"];
    const VERSIONED: bool = true;

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Float, Int, Json, Text, Time};
        let mut columns = access::job_columns();
        columns.extend([
            Column::shown("run", Text),
            Column::shown("attempt", Int),
            Column::shown("model_code", Text),
            Column::shown("framework_code", Text),
            Column::shown("framework_version", Text),
            Column::shown("quantization", Text),
            Column::shown("tool_code", Text),
            Column::shown("tool_version", Text),
            Column::shown("config_code", Text),
            Column::shown("hostname", Text),
            Column::shown("concurrency", Int),
            Column::shown("input_sequence_length", Int),
            Column::shown("output_sequence_length", Int),
            Column::shown("streaming", Bool),
            Column::shown("summary_id", Text),
            Column::shown("readable_id", Text),
            Column::shown("simulated", Bool),
            Column::shown("partial", Bool),
            Column::shown("cancelled", Bool),
            Column::shown("summary_flags", Json),
            Column::shown("client_limited", Bool),
            Column::shown("summary_sha256", Text),
            Column::shown("recorded_at", Time),
            Column::shown("position", Int),
            Column::shown("valid_from", Int),
            Column::shown("valid_to", Int),
        ]);
        columns.extend(access::columns());
        columns.extend(summary_columns::column_names().iter().map(|name| Column::shown(name, Float)));
        columns
    }
    fn key(&self) -> Self::Key {
        self.job.clone()
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
    fn validity(&mut self) -> Option<(&mut i64, &mut Option<i64>)> {
        Some((&mut self.valid_from, &mut self.valid_to))
    }
}
