//! Carries out one attempt, from the claim to its last report.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use events::report::AssignedJob;
use events::tool_output::LogSource;
use tokio::sync::watch;

use super::kept::Served;
use super::steps::describe;
use super::{Kept, Place, Record, Refusal, Reporter, Upload, Uploader};
use crate::clock;
use crate::control::Https;
use crate::logs::{LogHandle, LogLimits, LogWriter, Secrets};
use crate::policy::Policy;
use crate::serving::{Process, SpawnError};
use crate::state_dir::StateDir;
use crate::telemetry::{self, Accelerators, Sampler};

/// How long the end of a job waits for its files to be uploaded.
const UPLOAD_PATIENCE: Duration = Duration::from_secs(15);

/// Why an attempt is to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The control plane says so: it was cancelled, lost or superseded.
    Asked,
    /// The agent is ending.
    AgentEnds,
}

/// What every attempt on this host shares.
pub struct Host {
    /// What this host allows.
    pub policy: Policy,
    /// Where the agent keeps its state.
    pub state: StateDir,
    /// Asks model servers whether they are ready.
    pub http: reqwest::Client,
    /// Asks the control plane for what jobs need besides their commands.
    pub https: Https,
    /// What must not leave this host.
    pub secrets: Secrets,
    /// Takes files.
    pub uploads: Arc<Uploader>,
    /// The model server that the last job left running, if it did.
    pub kept: tokio::sync::Mutex<Option<Kept>>,
    /// Its accelerators, looked up once: asking the driver again would disturb what is measured.
    pub accelerators: Accelerators,
}

impl Host {
    /// Stops the model server that is kept, if there is one: no job asks for it any more.
    pub async fn release_server(&self) {
        if let Some(kept) = self.kept.lock().await.take() {
            tracing::info!(server = kept.served.argv.join(" "), "the kept model server is stopped");
            stop_all(kept.processes, Duration::from_secs(self.policy.stop_grace_s)).await;
            Record::remove(&self.state.kept_server());
        }
    }

    /// Puts a finished file of an attempt on the list of uploads.
    pub fn upload(&self, reporter: &Reporter, file: PathBuf, purpose: &str, media_type: &str) {
        let upload = Upload {
            file,
            purpose: purpose.into(),
            media_type: media_type.into(),
            job: reporter.job().clone(),
            attempt: reporter.attempt(),
            at: clock::now(),
            event_id: uuid::Uuid::now_v7(),
        };
        if let Err(error) = self.uploads.add(&upload) {
            tracing::error!(%error, file = %upload.file.display(), "a file cannot be put on the list of uploads; it stays on this host");
        }
    }
}

/// One attempt, ready to be carried out.
pub struct Attempt {
    /// The verified job.
    pub job: AssignedJob,
    /// Where its reports go.
    pub reporter: Reporter,
}

/// How an attempt ended.
pub(super) enum Outcome {
    Completed,
    Cancelled,
    Failed { code: &'static str, message: String },
}

impl Outcome {
    pub(super) fn failed(code: &'static str, message: impl ToString) -> Self {
        Self::Failed { code, message: message.to_string() }
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        Self::failed("refused", refusal)
    }
}

impl From<SpawnError> for Outcome {
    fn from(error: SpawnError) -> Self {
        Self::failed("spawn_failed", error)
    }
}

/// The processes of an attempt. Whatever interrupts it, these are stopped in order.
#[derive(Default)]
pub(super) struct Processes {
    /// The model servers, one a replica.
    pub(super) servers: Vec<Process>,
    /// What runs beside them.
    pub(super) companions: Vec<Process>,
    /// What the servers were started with, where it was started here or kept from another job.
    pub(super) served: Option<Served>,
    pub(super) tool: Option<Process>,
}

impl Processes {
    /// The model servers and what runs beside them.
    pub(super) fn all(&mut self) -> Vec<&mut Process> {
        self.servers.iter_mut().chain(&mut self.companions).collect()
    }
}

/// Carries out the attempt and reports all of it. Never fails: every trouble is an outcome that is reported.
pub async fn carry_out(host: &Host, attempt: Attempt, stop: watch::Receiver<Option<Stop>>) {
    let Attempt { job, reporter } = attempt;
    let place = Place::of(&host.policy.work_dir, &host.policy.log_dir, &job.job, job.attempt);
    let record = Record::new(reporter.held(), &place);
    let (closing, spool) = (record.clone(), Arc::clone(reporter.spool()));
    let begun = place.create().map_err(|e| e.to_string()).and_then(|()| {
        record.save(&host.state.attempt()).map_err(|e| e.to_string())?;
        Logs::start(host, &place, &reporter).map_err(|e| e.to_string())
    });
    match begun {
        Ok(logs) => {
            let (secrets, released) = (host.secrets.clone(), BTreeMap::new());
            Execution { host, job, reporter, place, record, logs, secrets, released }.run(stop).await;
        }
        Err(why) => reporter.failed("agent_error", format!("the attempt could not be begun: {why}"), 0, 0),
    }
    closing.close(&host.state.attempt(), &spool).await;
}

/// The three logs of an attempt, open.
pub(super) struct Logs {
    pub(super) framework: (LogWriter, LogHandle),
    pub(super) tool: (LogWriter, LogHandle),
    pub(super) agent: (LogWriter, LogHandle),
}

impl Logs {
    fn start(host: &Host, place: &Place, reporter: &Reporter) -> std::io::Result<Self> {
        let limits =
            LogLimits { live_lines: host.policy.live_log_lines, file_bytes: host.policy.max_log_bytes };
        let start = |source, path: PathBuf| {
            let reporter = reporter.clone();
            LogWriter::start(source, &path, limits, move |lines| reporter.log(lines))
        };
        Ok(Self {
            framework: start(LogSource::Framework, place.framework_log())?,
            tool: start(LogSource::Tool, place.tool_log())?,
            agent: start(LogSource::Agent, place.agent_log())?,
        })
    }
}

/// An attempt under way.
pub(super) struct Execution<'a> {
    pub(super) host: &'a Host,
    pub(super) job: AssignedJob,
    pub(super) reporter: Reporter,
    pub(super) place: Place,
    pub(super) record: Record,
    pub(super) logs: Logs,
    /// What must not leave this host, the job's own secrets among it.
    pub(super) secrets: Secrets,
    /// What the control plane released for this job's model server, by environment variable.
    pub(super) released: BTreeMap<String, String>,
}

impl Execution<'_> {
    async fn run(mut self, mut stop: watch::Receiver<Option<Stop>>) {
        let policy = &self.host.policy;
        let interval = policy.sample_interval_ms.unwrap_or(self.job.sample_interval_ms).clamp(100, 60_000);
        self.say(format!("claimed attempt {} of {}", self.job.attempt, self.job.job.stream())).await;
        let for_samples = self.reporter.clone();
        let sampler =
            Sampler::start(telemetry::sources(), Duration::from_millis(u64::from(interval)), move |window| {
                for_samples.telemetry(window)
            });
        if let Err(error) = &sampler {
            self.say(format!("no telemetry: {error}")).await;
        }

        let limit_s = u64::from(self.job.commands.job_timeout_s).min(policy.max_job_duration_s);
        let mut processes = Processes::default();
        let outcome = tokio::select! {
            outcome = self.steps(&mut processes) => outcome,
            why = stopped(&mut stop) => match why {
                Stop::Asked => Outcome::Cancelled,
                Stop::AgentEnds => Outcome::failed("agent_stopped", "the agent on this host was stopped while the job ran: start it and run the job again"),
            },
            () = tokio::time::sleep(Duration::from_secs(limit_s)) => Outcome::failed(
                "timeout",
                format!("the job took longer than its limit of {limit_s} s: raise the job's time limit (or max_job_duration_s in agent.toml), or send fewer requests"),
            ),
        };
        let grace = Duration::from_secs(self.host.policy.stop_grace_s);
        if let Some(tool) = processes.tool.take() {
            tool.stop(grace).await;
        }
        let mut all = std::mem::take(&mut processes.servers);
        let servers = all.len();
        all.append(&mut processes.companions);
        if !all.is_empty() {
            match processes.served.take() {
                Some(served) if self.keeps(&outcome) => self.keep(served, all).await,
                _ => {
                    let statuses = stop_all(all, grace).await;
                    let words: Vec<String> = statuses.into_iter().take(servers).map(describe).collect();
                    let what = if servers > 1 { "model servers were" } else { "model server was" };
                    self.say(format!("the {what} stopped ({})", words.join(", "))).await;
                }
            }
        }
        if let Ok(sampler) = sampler {
            // Waits for a reading that is under way; the runtime must not.
            let _ = tokio::task::spawn_blocking(move || sampler.stop()).await;
        }
        self.finish(outcome).await;
    }

    /// Whether the model server stays for the run's next job: only one that did its work can be trusted with more.
    fn keeps(&self, outcome: &Outcome) -> bool {
        self.job.workload.keep_server && matches!(outcome, Outcome::Completed)
    }

    /// Leaves the model server running. It is written down, so that it does not outlive a crash of the agent.
    async fn keep(&mut self, served: Served, processes: Vec<Process>) {
        let mut record = self.record.clone();
        record.processes = processes.iter().map(Process::id).collect();
        if let Err(error) = record.save(&self.host.state.kept_server()) {
            tracing::error!(%error, "the model server cannot be written down and is not kept");
            stop_all(processes, Duration::from_secs(self.host.policy.stop_grace_s)).await;
            return;
        }
        processes.iter().for_each(|process| process.log_to(None));
        self.say("the model server is kept for the run's next job".into()).await;
        *self.host.kept.lock().await = Some(Kept { served, processes, record });
    }

    /// Ends the logs, hands over the files and reports the end: the last thing said of this attempt.
    async fn finish(self, outcome: Outcome) {
        let word = match &outcome {
            Outcome::Completed => "completed".to_owned(),
            Outcome::Cancelled => "stopped as asked".to_owned(),
            Outcome::Failed { code, message } => {
                format!("failed ({code}): {}", message.lines().next().unwrap_or_default())
            }
        };
        let Self { host, job, reporter, logs, secrets, .. } = self;
        let agent = logs.agent.1;
        let mut log_lines = 0;
        for ((writer, handle), purpose) in [(logs.framework, "framework_log"), (logs.tool, "tool_log")] {
            drop(handle);
            let Some(end) = writer.end().await else { continue };
            log_lines += end.lines;
            let name = end.source.as_str();
            if end.only_in_file > 0 {
                let text = format!(
                    "{} of the {} lines of the {name} log were not reported live: they are in the uploaded {purpose} only",
                    end.only_in_file, end.lines
                );
                agent.lines(vec![stamped(&text)]).await;
            }
            if end.lost > 0 {
                let text = format!("{} lines of the {name} log did not fit into its file", end.lost);
                agent.lines(vec![stamped(&text)]).await;
            }
            if end.lines > 0 {
                host.upload(&reporter, end.file, purpose, "text/plain; charset=utf-8");
            }
        }
        agent.lines(vec![stamped(&word)]).await;
        tracing::info!(job = %job.job.stream(), attempt = job.attempt, "{word}");
        drop(agent);
        if let Some(end) = logs.agent.0.end().await {
            log_lines += end.lines;
        }
        if !host.uploads.finished(UPLOAD_PATIENCE).await {
            tracing::warn!("the job ends before its files are uploaded; they follow");
        }
        match outcome {
            Outcome::Completed => reporter.completed(log_lines),
            Outcome::Cancelled => reporter.cancelled(),
            Outcome::Failed { code, message } => {
                let message = secrets.redact(&message);
                reporter.failed(code, message, reporter.telemetry_samples(), log_lines);
            }
        }
    }

    /// Writes a started process down before anything else happens.
    pub(super) fn remember(&mut self, process: &Process) {
        self.record.processes.push(process.id());
        if let Err(error) = self.record.save(&self.host.state.attempt()) {
            tracing::error!(%error, "a started process could not be written down: it would outlive a crash of the agent");
        }
    }

    /// A line for the attempt's agent log.
    pub(super) async fn say(&self, text: String) {
        tracing::info!(job = %self.job.job.stream(), attempt = self.job.attempt, "{text}");
        self.logs.agent.1.lines(vec![stamped(&self.secrets.redact(&text))]).await;
    }
}

/// Stops processes, all at once; in the order in which they are given.
pub(super) async fn stop_all(processes: Vec<Process>, grace: Duration) -> Vec<Option<ExitStatus>> {
    futures::future::join_all(processes.into_iter().map(|process| process.stop(grace))).await
}

/// Waits until somebody asks for a stop. A daemon that is gone has ended.
async fn stopped(stop: &mut watch::Receiver<Option<Stop>>) -> Stop {
    match stop.wait_for(Option::is_some).await {
        Ok(why) => why.unwrap_or(Stop::AgentEnds),
        Err(_) => Stop::AgentEnds,
    }
}

/// A line of the agent's log, with its time.
pub(crate) fn stamped(text: &str) -> String {
    format!("{} {text}", clock::now())
}
