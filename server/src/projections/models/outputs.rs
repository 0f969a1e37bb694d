//! What our own tools measured, every figure a column: `v_metrumbench_llm_outputs` and the same for vlm, asr and
//! imagegen. Folded by [`super::results`].

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::marker::PhantomData;

use events::Timestamp;
use events::envelope::Recorded;
use events::summary::Summary;
use events::summary_columns;
use events::tool_output::ToolOutputRecorded;
use events::tools::ToolCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::access;
use super::result_rows::{ResultJobRow, ResultServerRow};
use super::setup::Setup;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// A tool of ours, and where its outputs are kept.
pub trait OutputTool: Clone + Debug + Default + Send + Sync + 'static {
    /// Which tool.
    const TOOL: ToolCode;
    /// The table.
    const TABLE: &'static str;
}

macro_rules! output_tool {
    ($name:ident, $tool:ident, $table:literal) => {
        #[doc = concat!("`", $table, "`.")]
        #[derive(Debug, Clone, Default)]
        pub struct $name;
        impl OutputTool for $name {
            const TOOL: ToolCode = ToolCode::$tool;
            const TABLE: &'static str = $table;
        }
    };
}
output_tool!(Llm, MetrumbenchLlm, "metrumbench_llm_outputs");
output_tool!(Vlm, MetrumbenchVlm, "metrumbench_vlm_outputs");
output_tool!(Asr, MetrumbenchAsr, "metrumbench_asr_outputs");
output_tool!(Imagegen, MetrumbenchImagegen, "metrumbench_imagegen_outputs");

/// What is no number in a tool's summary: name and kind.
fn details(tool: ToolCode) -> &'static [(&'static str, Kind)] {
    use Kind::{Bool, Int, Json, Text};
    match tool {
        ToolCode::MetrumbenchVlm => &[
            ("num_images_batch", Int),
            ("image_detail", Text),
            ("image_dimensions", Json),
            ("errors_by_type", Json),
            ("error_by_status", Json),
            ("error_oom_detected", Bool),
            ("endpoints", Json),
        ],
        ToolCode::MetrumbenchAsr => &[
            ("inference_time_source", Text),
            ("response_format", Text),
            ("formats", Json),
            ("errors_by_type", Json),
            ("error_by_status", Json),
            ("error_oom_detected", Bool),
            ("endpoints", Json),
        ],
        ToolCode::MetrumbenchImagegen => &[
            ("num_images_batch", Int),
            ("image_size", Text),
            ("response_format", Text),
            ("errors_by_type", Json),
            ("error_by_status", Json),
            ("error_oom_detected", Bool),
            ("endpoints", Json),
        ],
        _ => &[
            ("errors_by_type", Json),
            ("error_by_status", Json),
            ("error_oom_detected", Bool),
            ("endpoints", Json),
        ],
    }
}

fn detail(name: &str, job: &ResultJobRow, summary: &Summary) -> Value {
    let figures = &summary.figures;
    match name {
        "num_images_batch" => json!(job.spec.num_images_batch),
        "image_detail" => json!(job.spec.image_detail),
        "image_size" => json!(job.spec.image_size),
        "image_dimensions" => json!(figures.vlm.image_dimensions),
        "inference_time_source" => json!(figures.asr.inference_time_source),
        "formats" => json!(figures.asr.formats),
        "response_format" => summary.config.get("response_format").cloned().unwrap_or(Value::Null),
        "errors_by_type" => json!(figures.errors.by_type),
        "error_by_status" => json!(figures.errors.by_status),
        "error_oom_detected" => json!(figures.errors.oom_detected),
        "endpoints" => json!(summary.endpoints),
        _ => Value::Null,
    }
}

/// One job's summary, flattened. Old versions are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct OutputRow<T: OutputTool> {
    org: String,
    project_code: String,
    workload_code: String,
    run_number: u32,
    scenario_code: String,
    job: String,
    run: String,
    attempt: u32,
    #[serde(flatten)]
    setup: Setup,
    tool_version: String,
    summary_id: String,
    readable_id: String,
    simulated: bool,
    partial: bool,
    cancelled: bool,
    summary_flags: Vec<String>,
    client_limited: bool,
    summary_sha256: String,
    recorded_at: Timestamp,
    output_position: i64,
    output_hash: String,
    position: i64,
    valid_from: i64,
    valid_to: Option<i64>,
    visibility: String,
    owner: String,
    #[serde(flatten)]
    figures: BTreeMap<String, Value>,
    #[serde(skip)]
    tool: PhantomData<T>,
}

impl<T: OutputTool> OutputRow<T> {
    pub(super) fn new(
        job: &ResultJobRow,
        server: Option<&ResultServerRow>,
        output: &ToolOutputRecorded,
        recorded: &Recorded,
    ) -> Self {
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
            setup: Setup::of_job(job, server),
            tool_version: output.invocation.tool_version.clone(),
            summary_id: summary.id.to_string(),
            readable_id: summary.readable_id.clone(),
            simulated: summary.simulated,
            partial: summary.partial,
            cancelled: summary.cancelled,
            summary_flags: summary.flags.clone(),
            client_limited: summary.client.limited,
            summary_sha256: output.invocation.summary_sha256.clone(),
            recorded_at: recorded.recorded_at,
            output_position: recorded.position,
            output_hash: hex::encode(recorded.hash),
            position: recorded.position,
            valid_from: recorded.position,
            valid_to: None,
            visibility: job.visibility.clone(),
            owner: job.owner.clone(),
            figures: figures::<T>(job, summary),
            tool: PhantomData,
        }
    }
}

fn figures<T: OutputTool>(job: &ResultJobRow, summary: &Summary) -> BTreeMap<String, Value> {
    let numbers = summary_columns::columns_of(T::TOOL, &summary.figures);
    let numbers = numbers.into_iter().map(|(name, value)| (name, json!(value)));
    let others = details(T::TOOL).iter().map(|(name, _)| ((*name).to_owned(), detail(name, job, summary)));
    numbers.chain(others).collect()
}

impl<T: OutputTool> Row for OutputRow<T> {
    type Key = String;
    const TABLE: &'static str = T::TABLE;
    const KEY: &'static [&'static str] = &["job"];
    const VERSIONED: bool = true;

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Float, Int, Json, Text, Time};
        let mut columns = access::job_columns();
        columns.extend([Column::shown("run", Text), Column::shown("attempt", Int)]);
        columns.extend(Setup::columns());
        columns.extend([
            Column::shown("tool_version", Text),
            Column::shown("summary_id", Text),
            Column::shown("readable_id", Text),
            Column::shown("simulated", Bool),
            Column::shown("partial", Bool),
            Column::shown("cancelled", Bool),
            Column::shown("summary_flags", Json),
            Column::shown("client_limited", Bool),
            Column::shown("summary_sha256", Text),
            Column::shown("recorded_at", Time),
            Column::shown("output_position", Int),
            Column::shown("output_hash", Text),
            Column::shown("position", Int),
            Column::shown("valid_from", Int),
            Column::shown("valid_to", Int),
        ]);
        columns.extend(access::columns());
        let names = summary_columns::column_names_of(T::TOOL);
        columns.extend(names.iter().map(|name| Column::shown(name, Float)));
        columns.extend(details(T::TOOL).iter().map(|(name, kind)| Column::shown(name, *kind)));
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
