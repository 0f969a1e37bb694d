//! Results: `v_benchmark_results`, one row a job, whatever the tool; and the tools' own outputs ([`super::outputs`]).

use events::envelope::Recorded;
use events::job::{JobCreated, JobPhase};
use events::keys::{JobKey, StreamKey};
use events::summary::{Distribution, Summary};
use events::telemetry::TelemetrySampled;
use events::tool_output::ToolOutputRecorded;
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};

use super::access::{self, rights_table};
use super::energy::{energy_between, longest_step, total_power};
use super::jobs::{Standing, job_of, phase};
use super::outputs::LlmOutputRow;
use super::servers::gpu_summary;
use super::telemetry_series::start_of;
use crate::projections::table::{Access, Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

rights_table!(ResultRights, "result_rights");

/// Microseconds of power samples in one row.
const MINUTE_US: i64 = 60_000_000;
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
    server: String,
    pub(super) config_code: String,
    pub(super) hostname: String,
    pub(super) spec: Measured,
    phase: String,
    attempt: u32,
    flags: Vec<String>,
    pub(super) visibility: String,
    pub(super) owner: String,
}

impl ResultJobRow {
    fn standing(&self) -> Standing {
        Standing { phase: phase(&self.phase), attempt: self.attempt }
    }
}

impl Row for ResultJobRow {
    type Key = String;
    const TABLE: &'static str = "result_jobs";
    const KEY: &'static [&'static str] = &["job"];

    fn columns() -> Vec<Column> {
        use Kind::{Int, Json, Text};
        let mut columns: Vec<Column> =
            ["org", "project_code", "workload_code"].map(|n| Column::shown(n, Text)).to_vec();
        columns.push(Column::shown("run_number", Int));
        columns.extend(
            ["scenario_code", "job", "run", "server", "config_code", "hostname"]
                .map(|n| Column::shown(n, Text)),
        );
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
    server: String,
    gpu_name: Option<String>,
    gpu_count: Option<i64>,
    cost_per_hour_usd: Option<f64>,
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
    job: String,
    attempt: u32,
    minute: Timestamp,
    interval_ms: u32,
    at_us: Vec<i64>,
    watts: Vec<Option<f64>>,
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
        ]
    }
    fn key(&self) -> Self::Key {
        (self.job.clone(), self.attempt, self.minute)
    }
}

/// A result, as `v_benchmark_results` shows it. Old versions are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultRow {
    org: String,
    project_code: String,
    workload_code: String,
    run_number: u32,
    scenario_code: String,
    attempt: u32,
    job: String,
    run: String,
    model_code: String,
    framework_code: String,
    framework_version: String,
    quantization: Option<String>,
    tool_code: String,
    config_code: String,
    hostname: String,
    gpu_name: Option<String>,
    gpu_count: Option<i64>,
    concurrency: u32,
    input_sequence_length: Option<u32>,
    output_sequence_length: Option<u32>,
    streaming: bool,
    status: String,
    output_tokens_per_second: Option<f64>,
    total_tokens_per_second: Option<f64>,
    requests_per_second: Option<f64>,
    output_tokens_per_second_per_gpu: Option<f64>,
    ttft_p50_ms: Option<f64>,
    ttft_p90_ms: Option<f64>,
    ttft_p95_ms: Option<f64>,
    ttft_p99_ms: Option<f64>,
    tpot_avg_ms: Option<f64>,
    tpot_p50_ms: Option<f64>,
    tpot_p99_ms: Option<f64>,
    response_time_p50_ms: Option<f64>,
    response_time_p99_ms: Option<f64>,
    interactivity_tps: Option<f64>,
    requests_succeeded: u64,
    requests_failed: u64,
    error_rate_pct: Option<f64>,
    window_s: Option<f64>,
    completion_tokens_total: Option<u64>,
    gpu_power_avg_w: Option<f64>,
    energy_j: Option<f64>,
    output_tokens_per_joule: Option<f64>,
    cost_per_million_output_tokens_usd: Option<f64>,
    simulated: bool,
    imported: bool,
    flags: Vec<String>,
    suspicious: bool,
    recorded_at: Timestamp,
    finished_at: Option<Timestamp>,
    window_ended_at: Timestamp,
    position: i64,
    valid_from: i64,
    valid_to: Option<i64>,
    visibility: String,
    owner: String,
}

/// `numerator / denominator`; nothing where either is missing or the division has no meaning.
fn ratio(numerator: Option<f64>, denominator: Option<f64>) -> Option<f64> {
    let (numerator, denominator) = (numerator?, denominator?);
    (denominator > 0.0).then(|| numerator / denominator)
}

impl ResultRow {
    fn new(
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
            simulated: *simulated,
            imported: false,
            flags: job.flags.clone(),
            suspicious: !job.flags.is_empty(),
            recorded_at: recorded.recorded_at,
            finished_at: None,
            window_ended_at: recorded.occurred_at,
            position: recorded.position,
            valid_from: recorded.position,
            valid_to: None,
            visibility: job.visibility.clone(),
            owner: job.owner.clone(),
        }
    }

    /// The measurement window, microseconds: it closed when the tool wrote its summary.
    fn window(&self) -> Option<(i64, i64)> {
        let to = self.window_ended_at.as_micros();
        let length = (self.window_s? * 1e6) as i64;
        (length > 0 && length / MINUTE_US <= LONGEST_WINDOW).then_some((to - length, to))
    }

    fn set_energy(&mut self, joules: Option<f64>) {
        self.energy_j = joules;
        self.gpu_power_avg_w = ratio(joules, self.window_s);
        self.output_tokens_per_joule = ratio(self.completion_tokens_total.map(|t| t as f64), joules);
    }
}

impl Row for ResultRow {
    type Key = String;
    const TABLE: &'static str = "benchmark_results";
    const KEY: &'static [&'static str] = &["job"];
    const INDEXES: &'static [&'static str] = &["recorded_at"];
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
            &["gpu_power_avg_w", "energy_j", "output_tokens_per_joule", "cost_per_million_output_tokens_usd"],
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

/// Folds everything a result rests on: the job, its server, its power, the tool's summary, the doubts.
#[derive(Debug, Default)]
pub struct Results {
    rights: Table<ResultRights>,
    jobs: Table<ResultJobRow>,
    servers: Table<ResultServerRow>,
    power: Table<PowerRow>,
    outputs: Table<LlmOutputRow>,
    results: Table<ResultRow>,
}

/// The minutes that hold a window's samples, its neighbours at both ends included.
fn minutes((from, to): (i64, i64)) -> impl Iterator<Item = Timestamp> {
    let first = from.div_euclid(MINUTE_US) - 1;
    let last = to.div_euclid(MINUTE_US) + 1;
    (first..=last).filter_map(|minute| Timestamp::from_micros(minute * MINUTE_US).ok())
}

impl Results {
    fn job_created(&mut self, recorded: &Recorded, created: &JobCreated) -> Result<(), FoldError> {
        let key = JobKey::from_stream(&recorded.stream)?;
        let rights = access::rights(&self.rights, &key.org, &key.project)?;
        let (workload, scenario) = (&created.workload, &created.scenario);
        self.jobs.put(
            ResultJobRow {
                run: key.run_key().stream().to_string(),
                org: key.org,
                project_code: key.project,
                workload_code: key.workload,
                run_number: key.run,
                scenario_code: key.scenario,
                job: recorded.stream.to_string(),
                server: created.server.stream().to_string(),
                config_code: created.server.config.clone(),
                hostname: created.server.hostname.clone(),
                spec: Measured {
                    model_code: workload.model_code.clone(),
                    framework_code: workload.framework_code.clone(),
                    framework_version: workload.framework_version.clone(),
                    quantization: workload.quantization.clone(),
                    tool_code: workload.tool_code.clone(),
                    concurrency: scenario.concurrency,
                    input_sequence_length: scenario.input_sequence_length,
                    output_sequence_length: scenario.output_sequence_length,
                    streaming: scenario.streaming,
                },
                phase: JobPhase::Pending.as_str().to_owned(),
                attempt: 0,
                flags: Vec::new(),
                visibility: rights.visibility,
                owner: rights.owner,
            },
            recorded.position,
        );
        Ok(())
    }

    fn job_event(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let (job, position) = (recorded.stream.to_string(), recorded.position);
        let row =
            self.jobs.get_mut(&job, position).ok_or_else(|| FoldError(format!("{job} is not there")))?;
        let before = row.standing();
        let after = before.after(event);
        row.phase = after.phase.as_str().to_owned();
        row.attempt = after.attempt;
        match event {
            Event::QualityFlagged(e) if !row.flags.contains(&e.rule) => {
                row.flags.push(e.rule.clone());
                row.flags.sort();
            }
            Event::QualityCleared(e) => row.flags.retain(|rule| *rule != e.rule),
            _ => {}
        }
        let row = row.clone();
        match event {
            Event::ToolOutputRecorded(output) if output.attempt == after.attempt => {
                let result = ResultRow::new(&row, self.servers.get(&row.server), output, recorded);
                if output.summary.tool == events::workload::TOOL_METRUMBENCH_LLM {
                    self.outputs.put(LlmOutputRow::new(&row, output, recorded), position);
                }
                self.results.put(result, position);
                self.measure_energy(&job, after.attempt, position);
            }
            // A newer attempt supersedes the result of the one before.
            Event::JobClaimed(_) => {
                self.outputs.close(&job, position);
                self.results.close(&job, position);
            }
            _ => {
                let doubts = matches!(event, Event::QualityFlagged(_) | Event::QualityCleared(_));
                if after.phase == before.phase && !doubts {
                    return Ok(());
                }
                if let Some(result) = self.results.get_mut(&job, position) {
                    result.status = after.phase.status().to_owned();
                    result.suspicious = !row.flags.is_empty();
                    result.flags = row.flags;
                    result.position = position;
                    if after.phase != before.phase {
                        result.finished_at = after.phase.is_terminal().then_some(recorded.occurred_at);
                        self.measure_energy(&job, after.attempt, position);
                    }
                }
            }
        }
        Ok(())
    }

    /// Works out the energy over the measurement window from the samples that are there.
    fn measure_energy(&mut self, job: &str, attempt: u32, position: i64) {
        let Some(window) = self.results.get(&job.to_owned()).and_then(ResultRow::window) else { return };
        let mut samples: Vec<(i64, Option<f64>)> = Vec::new();
        let mut interval_ms = 0;
        for minute in minutes(window) {
            if let Some(row) = self.power.get(&(job.to_owned(), attempt, minute)) {
                samples.extend(row.at_us.iter().copied().zip(row.watts.iter().copied()));
                interval_ms = row.interval_ms;
            }
        }
        let joules = energy_between(&samples, window.0, window.1, longest_step(interval_ms));
        let known = self.results.get(&job.to_owned()).and_then(|r| r.energy_j);
        if joules != known
            && let Some(result) = self.results.get_mut(&job.to_owned(), position)
        {
            result.set_energy(joules);
            result.position = position;
        }
    }

    fn sampled(
        &mut self,
        stream: &StreamKey,
        sampled: &TelemetrySampled,
        position: i64,
    ) -> Result<(), FoldError> {
        let (_, job, attempt) = job_of(stream)?;
        for sample in &sampled.samples {
            let (at, watts) = (sample.at.as_micros(), total_power(sample));
            let minute = start_of(sample.at, MINUTE_US);
            let key = (job.clone(), attempt, minute);
            if let Some(row) = self.power.get_mut(&key, position) {
                let place = row.at_us.partition_point(|t| *t <= at);
                row.at_us.insert(place, at);
                row.watts.insert(place, watts);
                row.interval_ms = sampled.interval_ms;
            } else if watts.is_some() {
                let row = PowerRow {
                    job: job.clone(),
                    attempt,
                    minute,
                    interval_ms: sampled.interval_ms,
                    at_us: vec![at],
                    watts: vec![watts],
                };
                self.power.put(row, position);
            }
        }
        // Samples that come after the result complete its energy.
        if let Some(result) = self.results.get(&job)
            && result.attempt == attempt
            && result.energy_j.is_none()
            && result.window().is_some_and(|(from, to)| {
                sampled.samples.iter().any(|s| (from..=to).contains(&s.at.as_micros()))
            })
        {
            self.measure_energy(&job, attempt, position);
        }
        Ok(())
    }

    fn want_power(&mut self, job: &str, attempt: u32, window: Option<(i64, i64)>) {
        for minute in window.into_iter().flat_map(minutes) {
            self.power.want((job.to_owned(), attempt, minute));
        }
    }
}

impl Projection for Results {
    fn name(&self) -> &'static str {
        "results"
    }
    fn version(&self) -> i32 {
        1
    }
    fn interests(&self) -> &'static [&'static str] {
        &[
            access::PROJECT_CREATED,
            access::VISIBILITY_CHANGED,
            "job.created",
            "job.queued",
            "job.claimed",
            "job.serving",
            "job.running",
            "job.completed",
            "job.failed",
            "job.cancelled",
            "job.lost",
            "tool_output.recorded",
            "telemetry.sampled",
            "quality.flagged",
            "quality.cleared",
            "server.registered",
            "server.capabilities_reported",
        ]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![
            &mut self.rights,
            &mut self.jobs,
            &mut self.servers,
            &mut self.power,
            &mut self.outputs,
            &mut self.results,
        ]
    }

    fn wants(&mut self, recorded: &Recorded, event: &Event) {
        access::wants(&mut self.rights, recorded, event);
        match recorded.stream.kind() {
            "server" => self.servers.want(recorded.stream.to_string()),
            "telemetry" => {
                let Event::TelemetrySampled(sampled) = event else { return };
                let Ok((_, job, attempt)) = job_of(&recorded.stream) else { return };
                for sample in &sampled.samples {
                    self.power.want((job.clone(), attempt, start_of(sample.at, MINUTE_US)));
                }
                self.results.want(job.clone());
                let waits = self.results.loaded(&job).filter(|r| r.energy_j.is_none());
                let window = waits.and_then(ResultRow::window);
                self.want_power(&job, attempt, window);
            }
            "job" => {
                let Ok((key, job, _)) = job_of(&recorded.stream) else { return };
                access::want(&mut self.rights, &key.org, &key.project);
                if let Some((attempt, server)) = self.jobs.loaded(&job).map(|j| (j.attempt, j.server.clone()))
                {
                    self.servers.want(server);
                    let window = self.results.loaded(&job).and_then(ResultRow::window);
                    self.want_power(&job, attempt, window);
                }
                match event {
                    // Its server is looked at when the result comes, maybe in this very batch.
                    Event::JobCreated(created) => self.servers.want(created.server.stream().to_string()),
                    Event::ToolOutputRecorded(output) => {
                        let to = recorded.occurred_at.as_micros();
                        let length = output.summary.figures.window_s.map_or(0, |s| (s * 1e6) as i64);
                        if length > 0 && length / MINUTE_US <= LONGEST_WINDOW {
                            self.want_power(&job, output.attempt, Some((to - length, to)));
                        }
                    }
                    _ => {}
                }
                self.jobs.want(job.clone());
                self.outputs.want(job.clone());
                self.results.want(job);
            }
            _ => {}
        }
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        if let Some((project, visibility)) = access::fold(&mut self.rights, recorded, event)? {
            let (org, code) = (&project.org, &project.project);
            self.jobs.set_visibility(org, code, &visibility);
            self.outputs.set_visibility(org, code, &visibility);
            self.results.set_visibility(org, code, &visibility);
            return Ok(());
        }
        let position = recorded.position;
        match event {
            Event::ProjectCreated(_) => Ok(()),
            Event::JobCreated(created) => self.job_created(recorded, created),
            Event::TelemetrySampled(sampled) => self.sampled(&recorded.stream, sampled, position),
            Event::ServerRegistered(registered) => {
                self.servers.put(
                    ResultServerRow {
                        server: recorded.stream.to_string(),
                        gpu_name: None,
                        gpu_count: None,
                        cost_per_hour_usd: registered.cost_per_hour_usd,
                    },
                    position,
                );
                Ok(())
            }
            Event::ServerCapabilitiesReported(reported) => {
                let server = recorded.stream.to_string();
                let row = self
                    .servers
                    .get_mut(&server, position)
                    .ok_or_else(|| FoldError(format!("{server} is not there")))?;
                let (name, count, _) = gpu_summary(&reported.capabilities);
                (row.gpu_name, row.gpu_count) = (name, Some(count));
                Ok(())
            }
            _ => self.job_event(recorded, event),
        }
    }
}
