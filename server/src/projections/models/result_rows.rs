//! The rows behind results: the job and its server as the fold keeps them, and the power samples.

use events::Timestamp;
use events::envelope::Recorded;
use events::job::JobCreated;
use events::tool_output::{ExternalOutputRecorded, ToolOutputRecorded};
use serde::{Deserialize, Serialize};

use super::access;
use super::jobs::{Standing, phase};
use super::layout::Layout;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// Microseconds of power samples in one row.
pub(super) const MINUTE_US: i64 = 60_000_000;
/// The longest window whose energy is worked out, minutes: a day.
const LONGEST_WINDOW: i64 = 24 * 60;

/// What was measured, and how.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    pub(super) model_code: String,
    pub(super) framework_code: String,
    pub(super) framework_version: String,
    pub(super) quantization: Option<String>,
    pub(super) tool_code: String,
    pub(super) concurrency: u32,
    pub(super) input_sequence_length: Option<u32>,
    pub(super) output_sequence_length: Option<u32>,
    pub(super) streaming: Option<bool>,
    pub(super) num_rounds: Option<u32>,
    pub(super) num_images_batch: Option<u32>,
    pub(super) image_size: Option<String>,
    pub(super) image_detail: Option<String>,
    pub(super) engine_args_set_code: Option<String>,
    pub(super) engine_args_set_version: Option<i64>,
    pub(super) layout: Layout,
    /// The container image that the catalogue names for what was started.
    pub(super) container_image: Option<String>,
    #[serde(default)]
    pub(super) prompt_source_code: Option<String>,
    #[serde(default)]
    pub(super) prompt_source_sha256: Option<String>,
}

impl Measured {
    pub(super) fn of(created: &JobCreated) -> Self {
        let (workload, scenario) = (&created.workload, &created.scenario);
        let set = created.commands.engine_args_set.as_ref();
        Self {
            prompt_source_code: workload.prompt_source_code.clone(),
            prompt_source_sha256: created.commands.prompt_source.as_ref().and_then(|s| s.sha256.clone()),
            model_code: workload.model_code.clone(),
            framework_code: workload.framework_code.clone(),
            framework_version: workload.framework_version.clone(),
            quantization: workload.quantization.clone(),
            tool_code: workload.tool_code.clone(),
            concurrency: scenario.concurrency,
            input_sequence_length: scenario.input_sequence_length,
            output_sequence_length: scenario.output_sequence_length,
            streaming: scenario.streaming,
            num_rounds: scenario.num_rounds,
            num_images_batch: scenario.num_images_batch,
            image_size: scenario.image_size.clone(),
            image_detail: scenario.image_detail.clone(),
            engine_args_set_code: set.map(|set| set.set_code.clone()),
            engine_args_set_version: set.map(|set| set.version),
            layout: Layout::of_job(created),
            container_image: created.container_image.clone(),
        }
    }
}

/// A job as this projection keeps it until its result is there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultJobRow {
    pub(super) org: String,
    pub(super) project_code: String,
    pub(super) workload_code: String,
    pub(super) run_number: u32,
    pub(super) scenario_code: String,
    pub(super) job: String,
    pub(super) run: String,
    pub(super) server: String,
    pub(super) config_code: String,
    pub(super) hostname: String,
    pub(super) spec: Measured,
    pub(super) phase: String,
    pub(super) attempt: u32,
    pub(super) flags: Vec<String>,
    pub(super) visibility: String,
    pub(super) owner: String,
}

impl ResultJobRow {
    pub(super) fn standing(&self) -> Standing {
        Standing { phase: phase(&self.phase), attempt: self.attempt }
    }
}

impl Row for ResultJobRow {
    type Key = String;
    const TABLE: &'static str = "result_jobs";
    const KEY: &'static [&'static str] = &["job"];

    fn columns() -> Vec<Column> {
        use Kind::{Int, Json, Text};
        let mut columns = access::job_columns();
        columns.extend(["run", "server", "config_code", "hostname"].map(|n| Column::shown(n, Text)));
        columns.push(Column::hidden("spec", Json));
        columns.push(Column::shown("phase", Text));
        columns.push(Column::shown("attempt", Int));
        columns.push(Column::shown("flags", Json));
        columns.extend(access::columns());
        columns
    }
    fn key(&self) -> Self::Key {
        self.job.clone()
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
}

/// What a result says of the server it was measured on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultServerRow {
    pub(super) server: String,
    pub(super) gpu_name: Option<String>,
    pub(super) gpu_count: Option<i64>,
    pub(super) cost_per_hour_usd: Option<f64>,
}

impl Row for ResultServerRow {
    type Key = String;
    const TABLE: &'static str = "result_servers";
    const KEY: &'static [&'static str] = &["server"];

    fn columns() -> Vec<Column> {
        vec![
            Column::hidden("server", Kind::Text),
            Column::hidden("gpu_name", Kind::Text),
            Column::hidden("gpu_count", Kind::Int),
            Column::hidden("cost_per_hour_usd", Kind::Float),
        ]
    }
    fn key(&self) -> Self::Key {
        self.server.clone()
    }
}

/// The power of all GPUs over one minute of an attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PowerRow {
    pub(super) job: String,
    pub(super) attempt: u32,
    pub(super) minute: Timestamp,
    pub(super) interval_ms: u32,
    pub(super) at_us: Vec<i64>,
    pub(super) watts: Vec<Option<f64>>,
    /// How many GPUs each sample is of.
    pub(super) gpus: Vec<i64>,
}

impl Row for PowerRow {
    type Key = (String, u32, Timestamp);
    const TABLE: &'static str = "result_power";
    const KEY: &'static [&'static str] = &["job", "attempt", "minute"];

    fn columns() -> Vec<Column> {
        vec![
            Column::hidden("job", Kind::Text),
            Column::hidden("attempt", Kind::Int),
            Column::hidden("minute", Kind::Time),
            Column::hidden("interval_ms", Kind::Int),
            Column::hidden("at_us", Kind::Ints),
            Column::hidden("watts", Kind::Floats),
            Column::hidden("gpus", Kind::Ints),
        ]
    }
    fn key(&self) -> Self::Key {
        (self.job.clone(), self.attempt, self.minute)
    }
}

/// When the measurement window closed: as the tool says, or, where it does not, when the agent read its summary. The
/// summary cannot have been read before; a tool that says so had its clock set meanwhile.
pub(super) fn window_end(output: &ToolOutputRecorded, recorded: &Recorded) -> Timestamp {
    let told = output.summary.window_ended_at.filter(|at| *at <= recorded.occurred_at);
    told.unwrap_or(recorded.occurred_at)
}

/// When a third-party tool's load ended, as far as it tells. When the agent read the file says nothing: such tools go on
/// working once the load has ended. What lies after that was said by a clock that was set meanwhile.
pub(super) fn foreign_window_end(output: &ExternalOutputRecorded, recorded: &Recorded) -> Option<Timestamp> {
    output.figures.window_ended_at.filter(|at| *at <= recorded.occurred_at)
}

/// A measurement window in microseconds; nothing where there was none, or none that energy is worked out for.
pub(super) fn window(seconds: Option<f64>, ended_at: Timestamp) -> Option<(i64, i64)> {
    let (to, length) = (ended_at.as_micros(), (seconds? * 1e6) as i64);
    (length > 0 && length / MINUTE_US <= LONGEST_WINDOW).then_some((to - length, to))
}
