//! Jobs: `v_jobs`, and the state machine as the folds follow it. Folded by [`super::runs`].

use events::envelope::Recorded;
use events::job::{JobCreated, JobPhase};
use events::keys::{JobKey, StreamKey};
use events::tool_output::ProgressReported;
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::access::{self, Rights};
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

pub use crate::domain::job::Standing;

/// Reads a phase back from its column.
pub fn phase(word: &str) -> JobPhase {
    use JobPhase::{Cancelled, Claimed, Completed, Failed, Lost, Pending, Queued, Running, Serving};
    [Pending, Queued, Claimed, Serving, Running, Completed, Failed, Cancelled, Lost]
        .into_iter()
        .find(|p| p.as_str() == word)
        .unwrap_or(Pending)
}

/// A job, as `v_jobs` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobRow {
    pub(super) org: String,
    pub(super) project_code: String,
    workload_code: String,
    run_number: u32,
    pub(super) scenario_code: String,
    job: String,
    run: String,
    server: String,
    ordinal: u32,
    pub(super) status: String,
    phase: String,
    attempt: u32,
    pub(super) config_code: String,
    pub(super) hostname: String,
    pub(super) model_code: String,
    pub(super) framework_code: String,
    pub(super) framework_version: String,
    pub(super) quantization: Option<String>,
    container_image: Option<String>,
    engine_args_set_code: Option<String>,
    engine_args_set_version: Option<i64>,
    engine_args: Value,
    serve_env: Value,
    weights: Option<String>,
    weights_revision: Option<String>,
    weights_sha256: Option<String>,
    replicas: u32,
    gpus_per_replica: Option<u32>,
    gpu_sets: Option<Vec<String>>,
    pub(super) tool_code: String,
    tool_version: Option<String>,
    pub(super) concurrency: u32,
    pub(super) input_sequence_length: Option<u32>,
    pub(super) output_sequence_length: Option<u32>,
    num_requests: u32,
    pub(super) streaming: Option<bool>,
    progress_done: Option<u64>,
    progress_total: Option<u64>,
    progress_failed: Option<u64>,
    progress_in_flight: Option<u64>,
    progress_phase: Option<String>,
    progress_tokens_per_second: Option<f64>,
    progress_elapsed_s: Option<f64>,
    serve_argv: Option<Vec<String>>,
    further_argv: Option<Vec<Vec<String>>>,
    kept_from: Option<String>,
    tool_argv: Option<Vec<String>>,
    resolved_serve_argv: Vec<String>,
    resolved_tool_argv: Vec<String>,
    endpoint_urls: Option<Vec<String>>,
    served_models: Option<Vec<String>>,
    ready_after_s: Option<f64>,
    telemetry_samples: Option<u64>,
    log_lines: Option<u64>,
    cancel_requested: bool,
    error_code: Option<String>,
    error_message: Option<String>,
    created_at: Timestamp,
    queued_at: Option<Timestamp>,
    claimed_at: Option<Timestamp>,
    serving_at: Option<Timestamp>,
    running_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    flags: Vec<String>,
    pub(super) simulated: Option<bool>,
    progress_seq: u64,
    first_position: i64,
    position: i64,
    pub(super) visibility: String,
    pub(super) owner: String,
}

impl JobRow {
    pub(super) fn new(key: JobKey, created: &JobCreated, recorded: &Recorded, rights: Rights) -> Self {
        let (workload, scenario, commands) = (&created.workload, &created.scenario, &created.commands);
        Self {
            job: recorded.stream.to_string(),
            run: key.run_key().stream().to_string(),
            server: created.server.stream().to_string(),
            org: key.org,
            project_code: key.project,
            workload_code: key.workload,
            run_number: key.run,
            scenario_code: key.scenario,
            ordinal: created.ordinal,
            status: JobPhase::Pending.status().to_owned(),
            phase: JobPhase::Pending.as_str().to_owned(),
            attempt: 0,
            config_code: created.server.config.clone(),
            hostname: created.server.hostname.clone(),
            model_code: workload.model_code.clone(),
            framework_code: workload.framework_code.clone(),
            framework_version: workload.framework_version.clone(),
            quantization: workload.quantization.clone(),
            container_image: created.container_image.clone(),
            engine_args_set_code: commands.engine_args_set.as_ref().map(|set| set.set_code.clone()),
            engine_args_set_version: commands.engine_args_set.as_ref().map(|set| set.version),
            engine_args: serde_json::json!(commands.engine_args),
            serve_env: serde_json::json!(commands.serve_env),
            weights: commands.weights.clone(),
            weights_revision: None,
            weights_sha256: None,
            replicas: commands.replicas,
            gpus_per_replica: commands.gpus_per_replica,
            gpu_sets: None,
            tool_code: workload.tool_code.clone(),
            tool_version: None,
            concurrency: scenario.concurrency,
            input_sequence_length: scenario.input_sequence_length,
            output_sequence_length: scenario.output_sequence_length,
            num_requests: scenario.num_requests,
            streaming: scenario.streaming,
            progress_done: None,
            progress_total: None,
            progress_failed: None,
            progress_in_flight: None,
            progress_phase: None,
            progress_tokens_per_second: None,
            progress_elapsed_s: None,
            serve_argv: None,
            further_argv: None,
            kept_from: None,
            tool_argv: None,
            resolved_serve_argv: commands.serve_argv.clone(),
            resolved_tool_argv: commands.tool_argv.clone(),
            endpoint_urls: None,
            served_models: None,
            ready_after_s: None,
            telemetry_samples: None,
            log_lines: None,
            cancel_requested: false,
            error_code: None,
            error_message: None,
            created_at: recorded.occurred_at,
            queued_at: None,
            claimed_at: None,
            serving_at: None,
            running_at: None,
            finished_at: None,
            flags: Vec::new(),
            simulated: None,
            progress_seq: 0,
            first_position: recorded.position,
            position: recorded.position,
            visibility: rights.visibility,
            owner: rights.owner,
        }
    }

    /// Where the job stands.
    pub(super) fn standing(&self) -> Standing {
        Standing { phase: phase(&self.phase), attempt: self.attempt }
    }

    /// Folds an event of the job's stream in. Reports of a superseded attempt change nothing.
    pub(super) fn fold(&mut self, event: &Event, recorded: &Recorded) {
        let (before, at) = (self.standing(), recorded.occurred_at);
        let after = before.after(event);
        let counts = |attempt: u32| attempt == after.attempt;
        match event {
            Event::JobQueued(_) => self.queued_at = Some(at),
            Event::JobClaimed(_) => self.begin_attempt(at),
            Event::JobServing(e) if counts(e.attempt) => {
                self.serve_argv = Some(e.serve_argv.clone());
                self.endpoint_urls = Some(e.endpoint_urls.clone());
                self.further_argv = Some(e.further_argv.clone());
                self.kept_from.clone_from(&e.kept_from);
                self.gpu_sets = Some(e.gpu_sets.clone());
                self.serving_at = Some(at);
            }
            Event::JobRunning(e) if counts(e.attempt) => {
                self.tool_argv = Some(e.tool_argv.clone());
                self.tool_version = Some(e.tool_version.clone());
                self.served_models = Some(e.served_models.clone());
                self.ready_after_s = Some(e.ready_after_s);
                self.weights_revision.clone_from(&e.weights_revision);
                self.weights_sha256.clone_from(&e.weights_sha256);
                self.running_at = Some(at);
            }
            Event::ToolOutputRecorded(e) if counts(e.attempt) => self.simulated = Some(e.summary.simulated),
            Event::ExternalOutputRecorded(e) if counts(e.attempt) => {
                self.simulated = Some(e.simulated_on(&self.framework_code));
            }
            Event::JobCompleted(e) if after.phase == JobPhase::Completed && counts(e.attempt) => {
                self.telemetry_samples = Some(e.telemetry_samples);
                self.log_lines = Some(e.log_lines);
                self.error_code = None;
                self.error_message = None;
            }
            Event::JobFailed(e) if after.phase == JobPhase::Failed && counts(e.attempt) => {
                self.telemetry_samples = Some(e.telemetry_samples);
                self.log_lines = Some(e.log_lines);
                self.error_code = Some(e.code.clone());
                self.error_message = Some(e.message.clone());
            }
            Event::JobLost(_) if after.phase == JobPhase::Lost => {
                self.error_code = Some("lost".to_owned());
                self.error_message = Some(
                    "the agent was silent past its lease; look at the server and its agent's log".to_owned(),
                );
            }
            Event::JobCancelRequested(_) => self.cancel_requested = true,
            Event::JobRetried(_) => {
                self.cancel_requested = false;
                self.error_code = None;
                self.error_message = None;
            }
            Event::QualityFlagged(e) if !self.flags.contains(&e.rule) => {
                self.flags.push(e.rule.clone());
                self.flags.sort();
            }
            Event::QualityCleared(e) => self.flags.retain(|rule| *rule != e.rule),
            _ => {}
        }
        if after.phase != before.phase {
            self.finished_at = after.phase.is_terminal().then_some(at);
        }
        self.phase = after.phase.as_str().to_owned();
        self.status = after.phase.status().to_owned();
        self.attempt = after.attempt;
        self.position = recorded.position;
    }

    fn begin_attempt(&mut self, at: Timestamp) {
        self.claimed_at = Some(at);
        self.serving_at = None;
        self.running_at = None;
        self.serve_argv = None;
        self.further_argv = None;
        self.kept_from = None;
        self.gpu_sets = None;
        self.weights_revision = None;
        self.weights_sha256 = None;
        self.tool_argv = None;
        self.tool_version = None;
        self.endpoint_urls = None;
        self.served_models = None;
        self.ready_after_s = None;
        self.telemetry_samples = None;
        self.log_lines = None;
        self.error_code = None;
        self.error_message = None;
        self.simulated = None;
        self.progress_done = None;
        self.progress_total = None;
        self.progress_failed = None;
        self.progress_in_flight = None;
        self.progress_phase = None;
        self.progress_tokens_per_second = None;
        self.progress_elapsed_s = None;
        self.progress_seq = 0;
    }

    /// Folds a progress line in; one that is older than the last changes nothing.
    pub(super) fn progress(&mut self, attempt: u32, progress: &ProgressReported, position: i64) {
        if attempt != self.attempt || progress.seq <= self.progress_seq {
            return;
        }
        self.progress_seq = progress.seq;
        self.progress_done = Some(progress.done);
        self.progress_total = progress.total;
        self.progress_failed = Some(progress.failed);
        self.progress_in_flight = Some(progress.in_flight);
        self.progress_phase = Some(progress.phase.clone());
        self.progress_tokens_per_second = progress.completion_tokens_per_second;
        self.progress_elapsed_s = Some(progress.elapsed_s);
        self.position = position;
    }
}

impl Row for JobRow {
    type Key = String;
    const TABLE: &'static str = "jobs";
    const KEY: &'static [&'static str] = &["job"];
    // What is under way, what ended last, and the jobs of a run; none of a column that progress changes.
    const INDEXES: &'static [&'static str] =
        &["server, status", "status, claimed_at", "finished_at", "workload_code, run_number"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Float, Int, Json, Text, Time};
        let mut columns = access::job_columns();
        columns.extend([
            Column::shown("run", Text),
            Column::shown("server", Text),
            Column::shown("ordinal", Int),
            Column::shown("status", Text),
            Column::shown("phase", Text),
            Column::shown("attempt", Int),
            Column::shown("config_code", Text),
            Column::shown("hostname", Text),
        ]);
        columns.extend(access::measured_columns());
        columns.extend([
            Column::shown("container_image", Text),
            Column::shown("engine_args_set_code", Text),
            Column::shown("engine_args_set_version", Int),
            Column::shown("engine_args", Json),
            Column::shown("serve_env", Json),
            Column::shown("weights", Text),
            Column::shown("weights_revision", Text),
            Column::shown("weights_sha256", Text),
            Column::shown("replicas", Int),
            Column::shown("gpus_per_replica", Int),
            Column::shown("gpu_sets", Json),
            Column::shown("tool_code", Text),
            Column::shown("tool_version", Text),
            Column::shown("concurrency", Int),
            Column::shown("input_sequence_length", Int),
            Column::shown("output_sequence_length", Int),
            Column::shown("num_requests", Int),
            Column::shown("streaming", Bool),
            Column::shown("progress_done", Int),
            Column::shown("progress_total", Int),
            Column::shown("progress_failed", Int),
            Column::shown("progress_in_flight", Int),
            Column::shown("progress_phase", Text),
            Column::shown("progress_tokens_per_second", Float),
            Column::shown("progress_elapsed_s", Float),
            Column::shown("serve_argv", Json),
            Column::shown("further_argv", Json),
            Column::shown("kept_from", Text),
            Column::shown("tool_argv", Json),
            Column::shown("resolved_serve_argv", Json),
            Column::shown("resolved_tool_argv", Json),
            Column::shown("endpoint_urls", Json),
            Column::shown("served_models", Json),
            Column::shown("ready_after_s", Float),
            Column::shown("telemetry_samples", Int),
            Column::shown("log_lines", Int),
            Column::shown("cancel_requested", Bool),
            Column::shown("error_code", Text),
            Column::shown("error_message", Text),
            Column::shown("created_at", Time),
            Column::shown("queued_at", Time),
            Column::shown("claimed_at", Time),
            Column::shown("serving_at", Time),
            Column::shown("running_at", Time),
            Column::shown("finished_at", Time),
            Column::shown("flags", Json),
            Column::shown("simulated", Bool),
            Column::hidden("progress_seq", Int),
            Column::hidden("first_position", Int),
            Column::shown("position", Int),
        ]);
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

/// The job a stream belongs to, as its own stream's text, and the attempt: for telemetry, progress and logs too.
pub fn job_of(stream: &StreamKey) -> Result<(JobKey, String, u32), events::keys::KeyError> {
    let (key, attempt) = JobKey::with_attempt(stream)?;
    let text = match stream.kind() {
        "job" => stream.to_string(),
        // The stream's text is the job's with another kind and the attempt behind it.
        _ => format!("job/{}", stream.path().rsplit_once('/').map_or("", |(path, _)| path)),
    };
    Ok((key, text, attempt.unwrap_or(0)))
}
