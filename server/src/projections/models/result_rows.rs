//! The rows behind results: the job and its server as the fold keeps them, the power samples, the result itself.

use events::Timestamp;
use events::envelope::Recorded;
use events::summary::{Distribution, Summary};
use events::tool_output::ToolOutputRecorded;
use serde::{Deserialize, Serialize};

use super::access;
use super::jobs::{Standing, phase};
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
    pub(super) streaming: bool,
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

/// A result, as `v_benchmark_results` shows it. Old versions are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultRow {
    pub(super) org: String,
    pub(super) project_code: String,
    pub(super) workload_code: String,
    pub(super) run_number: u32,
    pub(super) scenario_code: String,
    pub(super) attempt: u32,
    pub(super) job: String,
    pub(super) run: String,
    pub(super) model_code: String,
    pub(super) framework_code: String,
    pub(super) framework_version: String,
    pub(super) quantization: Option<String>,
    pub(super) tool_code: String,
    pub(super) config_code: String,
    pub(super) hostname: String,
    pub(super) gpu_name: Option<String>,
    pub(super) gpu_count: Option<i64>,
    pub(super) concurrency: u32,
    pub(super) input_sequence_length: Option<u32>,
    pub(super) output_sequence_length: Option<u32>,
    pub(super) streaming: bool,
    pub(super) status: String,
    pub(super) output_tokens_per_second: Option<f64>,
    pub(super) total_tokens_per_second: Option<f64>,
    pub(super) requests_per_second: Option<f64>,
    pub(super) output_tokens_per_second_per_gpu: Option<f64>,
    ttft_p50_ms: Option<f64>,
    ttft_p90_ms: Option<f64>,
    ttft_p95_ms: Option<f64>,
    ttft_p99_ms: Option<f64>,
    pub(super) tpot_avg_ms: Option<f64>,
    tpot_p50_ms: Option<f64>,
    tpot_p99_ms: Option<f64>,
    response_time_p50_ms: Option<f64>,
    response_time_p99_ms: Option<f64>,
    pub(super) interactivity_tps: Option<f64>,
    pub(super) requests_succeeded: u64,
    pub(super) requests_failed: u64,
    pub(super) error_rate_pct: Option<f64>,
    pub(super) window_s: Option<f64>,
    pub(super) completion_tokens_total: Option<u64>,
    pub(super) gpu_power_avg_w: Option<f64>,
    pub(super) energy_j: Option<f64>,
    pub(super) output_tokens_per_joule: Option<f64>,
    pub(super) cost_per_million_output_tokens_usd: Option<f64>,
    pub(super) output_tokens_per_usd: Option<f64>,
    pub(super) quality_score: Option<f64>,
    pub(super) simulated: bool,
    pub(super) imported: bool,
    pub(super) flags: Vec<String>,
    pub(super) suspicious: bool,
    pub(super) recorded_at: Timestamp,
    pub(super) finished_at: Option<Timestamp>,
    pub(super) window_ended_at: Timestamp,
    pub(super) position: i64,
    pub(super) valid_from: i64,
    pub(super) valid_to: Option<i64>,
    pub(super) visibility: String,
    pub(super) owner: String,
}

/// `numerator / denominator`; nothing where either is missing or the division has no meaning.
fn ratio(numerator: Option<f64>, denominator: Option<f64>) -> Option<f64> {
    let (numerator, denominator) = (numerator?, denominator?);
    (denominator > 0.0).then(|| numerator / denominator)
}

/// When the measurement window closed: as the tool says, or, where it does not, when the agent read its summary. The
/// summary cannot have been read before; a tool that says so had its clock set meanwhile.
pub(super) fn window_end(output: &ToolOutputRecorded, recorded: &Recorded) -> Timestamp {
    let told = output.summary.window_ended_at.filter(|at| *at <= recorded.occurred_at);
    told.unwrap_or(recorded.occurred_at)
}

/// A measurement window in microseconds; nothing where there was none, or none that energy is worked out for.
pub(super) fn window(seconds: Option<f64>, ended_at: Timestamp) -> Option<(i64, i64)> {
    let (to, length) = (ended_at.as_micros(), (seconds? * 1e6) as i64);
    (length > 0 && length / MINUTE_US <= LONGEST_WINDOW).then_some((to - length, to))
}

impl ResultRow {
    pub(super) fn new(
        job: &ResultJobRow,
        server: Option<&ResultServerRow>,
        output: &ToolOutputRecorded,
        recorded: &Recorded,
    ) -> Self {
        let Summary { figures, simulated, .. } = &output.summary;
        let throughput = &figures.throughput;
        let of = |d: &Option<Distribution>, pick: fn(&Distribution) -> Option<f64>| d.as_ref().and_then(pick);
        let tokens = figures.completion_tokens.as_ref().map(|c| c.total);
        let gpu_count = server.and_then(|s| s.gpu_count);
        let cost_per_second = server.and_then(|s| s.cost_per_hour_usd).map(|usd| usd / 3600.0);
        let cost = ratio(cost_per_second.zip(figures.window_s).map(|(c, s)| c * s), tokens.map(|t| t as f64));
        Self {
            org: job.org.clone(),
            project_code: job.project_code.clone(),
            workload_code: job.workload_code.clone(),
            run_number: job.run_number,
            scenario_code: job.scenario_code.clone(),
            attempt: output.attempt,
            job: job.job.clone(),
            run: job.run.clone(),
            model_code: job.spec.model_code.clone(),
            framework_code: job.spec.framework_code.clone(),
            framework_version: job.spec.framework_version.clone(),
            quantization: job.spec.quantization.clone(),
            tool_code: job.spec.tool_code.clone(),
            config_code: job.config_code.clone(),
            hostname: job.hostname.clone(),
            gpu_name: server.and_then(|s| s.gpu_name.clone()),
            gpu_count,
            concurrency: job.spec.concurrency,
            input_sequence_length: job.spec.input_sequence_length,
            output_sequence_length: job.spec.output_sequence_length,
            streaming: job.spec.streaming,
            status: phase(&job.phase).status().to_owned(),
            output_tokens_per_second: throughput.completion_tokens_per_second,
            total_tokens_per_second: throughput.total_tokens_per_second,
            requests_per_second: throughput.requests_per_second,
            output_tokens_per_second_per_gpu: ratio(
                throughput.completion_tokens_per_second,
                gpu_count.map(|n| n as f64),
            ),
            ttft_p50_ms: of(&figures.ttft_ms, |d| d.p50),
            ttft_p90_ms: of(&figures.ttft_ms, |d| d.p90),
            ttft_p95_ms: of(&figures.ttft_ms, |d| d.p95),
            ttft_p99_ms: of(&figures.ttft_ms, |d| d.p99),
            tpot_avg_ms: of(&figures.tpot_ms, |d| d.avg),
            tpot_p50_ms: of(&figures.tpot_ms, |d| d.p50),
            tpot_p99_ms: of(&figures.tpot_ms, |d| d.p99),
            response_time_p50_ms: of(&figures.response_time_ms, |d| d.p50),
            response_time_p99_ms: of(&figures.response_time_ms, |d| d.p99),
            interactivity_tps: ratio(Some(1000.0), of(&figures.tpot_ms, |d| d.avg)),
            requests_succeeded: figures.requests.succeeded,
            requests_failed: figures.requests.failed,
            error_rate_pct: figures.errors.rate_pct,
            window_s: figures.window_s,
            completion_tokens_total: tokens,
            gpu_power_avg_w: None,
            energy_j: None,
            output_tokens_per_joule: None,
            cost_per_million_output_tokens_usd: cost.map(|usd| usd * 1e6),
            output_tokens_per_usd: ratio(Some(1.0), cost),
            quality_score: None,
            simulated: *simulated,
            imported: false,
            flags: job.flags.clone(),
            suspicious: !job.flags.is_empty(),
            recorded_at: recorded.recorded_at,
            finished_at: None,
            window_ended_at: window_end(output, recorded),
            position: recorded.position,
            valid_from: recorded.position,
            valid_to: None,
            visibility: job.visibility.clone(),
            owner: job.owner.clone(),
        }
    }

    /// The measurement window, microseconds.
    pub(super) fn window(&self) -> Option<(i64, i64)> {
        window(self.window_s, self.window_ended_at)
    }

    pub(super) fn set_energy(&mut self, joules: Option<f64>) {
        self.energy_j = joules;
        self.gpu_power_avg_w = ratio(joules, self.window_s);
        self.output_tokens_per_joule = ratio(self.completion_tokens_total.map(|t| t as f64), joules);
    }
}

impl Row for ResultRow {
    type Key = String;
    const TABLE: &'static str = "benchmark_results";
    const KEY: &'static [&'static str] = &["job"];
    // The reporting page's usual orders, each from the better end, and what its usual filters are counted by.
    const INDEXES: &'static [&'static str] = &[
        "recorded_at",
        "output_tokens_per_second desc nulls last",
        "ttft_p99_ms",
        "output_tokens_per_joule desc nulls last",
        "cost_per_million_output_tokens_usd",
        "model_code, framework_code, concurrency, status, simulated, suspicious, org, visibility, owner",
    ];
    const VERSIONED: bool = true;

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Float, Int, Json, Text, Time};
        let of =
            |kind: Kind, names: &[&str]| names.iter().map(|n| Column::shown(n, kind)).collect::<Vec<_>>();
        let mut columns = of(Text, &["org", "project_code", "workload_code"]);
        columns.extend(of(Int, &["run_number"]));
        columns.extend(of(Text, &["scenario_code"]));
        columns.extend(of(Int, &["attempt"]));
        columns.extend(of(
            Text,
            &[
                "job",
                "run",
                "model_code",
                "framework_code",
                "framework_version",
                "quantization",
                "tool_code",
                "config_code",
                "hostname",
                "gpu_name",
            ],
        ));
        columns.extend(of(
            Int,
            &["gpu_count", "concurrency", "input_sequence_length", "output_sequence_length"],
        ));
        columns.extend(of(Bool, &["streaming"]));
        columns.extend(of(Text, &["status"]));
        columns.extend(of(
            Float,
            &[
                "output_tokens_per_second",
                "total_tokens_per_second",
                "requests_per_second",
                "output_tokens_per_second_per_gpu",
                "ttft_p50_ms",
                "ttft_p90_ms",
                "ttft_p95_ms",
                "ttft_p99_ms",
                "tpot_avg_ms",
                "tpot_p50_ms",
                "tpot_p99_ms",
                "response_time_p50_ms",
                "response_time_p99_ms",
                "interactivity_tps",
            ],
        ));
        columns.extend(of(Int, &["requests_succeeded", "requests_failed"]));
        columns.extend(of(Float, &["error_rate_pct", "window_s"]));
        columns.extend(of(Int, &["completion_tokens_total"]));
        columns.extend(of(
            Float,
            &[
                "gpu_power_avg_w",
                "energy_j",
                "output_tokens_per_joule",
                "cost_per_million_output_tokens_usd",
                "output_tokens_per_usd",
                "quality_score",
            ],
        ));
        columns.extend(of(Bool, &["simulated", "imported"]));
        columns.extend(of(Json, &["flags"]));
        columns.extend(of(Bool, &["suspicious"]));
        columns.extend(of(Time, &["recorded_at", "finished_at", "window_ended_at"]));
        columns.extend(of(Int, &["position", "valid_from", "valid_to"]));
        columns.extend(access::columns());
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
