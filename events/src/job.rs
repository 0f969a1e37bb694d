//! Jobs: one scenario executing inside a run.
//!
//! pending → queued → claimed → serving → running → completed | failed | cancelled | lost.
//! `phase` is the finer word, `status` the seeds' one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::keys::ServerKey;
use crate::prompt_source::PromptSourceRef;
use crate::workload::{ScenarioSpec, WorkloadSpec};

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum JobPhase {
    /// Waits for the jobs before it in the run.
    Pending,
    /// Ready to be claimed by the server's agent.
    Queued,
    /// An agent holds the lease of an attempt.
    Claimed,
    /// The agent starts the model server and waits until it is ready.
    Serving,
    /// The load generator runs.
    Running,
    /// The result is in.
    Completed,
    /// The attempt ended without a usable result.
    Failed,
    /// A person stopped it.
    Cancelled,
    /// The agent was silent past its lease, and no attempt is left.
    Lost,
}

impl JobPhase {
    /// The finer word, used in the column `phase`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Queued => "queued",
            Self::Claimed => "claimed",
            Self::Serving => "serving",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }

    /// The seeds' word, used in the column `status`: pending, queued, running, completed, failed, cancelled.
    pub fn status(self) -> &'static str {
        match self {
            Self::Claimed | Self::Serving | Self::Running => "running",
            Self::Lost => "failed",
            other => other.as_str(),
        }
    }

    /// Whether nothing more is expected of the job.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Lost)
    }
}

/// Which set of engine arguments, and which version of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineArgsSetRef {
    /// The organisation that owns it; `_` for the platform's.
    pub org: String,
    /// Its code.
    pub set_code: String,
    /// The version of its stream.
    pub version: i64,
}

/// A process that runs beside the model server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompanionCommand {
    /// What it is, for example `lmcache-server`.
    pub name: String,
    /// How it is started.
    pub argv: Vec<String>,
    /// What answers 200 once it is ready, which is awaited before the model server is started; absent where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_url: Option<String>,
    /// Seconds it may take to become ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_timeout_s: Option<u32>,
}

impl CompanionCommand {
    /// A process that is not waited for.
    pub fn of(name: impl Into<String>, argv: Vec<String>) -> Self {
        Self { name: name.into(), argv, readiness_url: None, readiness_timeout_s: None }
    }
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// The commands of a job as the control plane resolved them: argv vectors, never shell strings.
/// Only the closed list of `{agent.*}` placeholders is still open, for the agent to fill inside its own element.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResolvedCommands {
    /// How the model server is started; empty for framework `openai`.
    pub serve_argv: Vec<String>,
    /// How the benchmark tool is started.
    pub tool_argv: Vec<String>,
    /// Names and values of environment variables for the model server. No secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub serve_env: BTreeMap<String, String>,
    /// The path that answers 200 once the model server is ready, for example `/health`.
    pub readiness_path: String,
    /// Seconds the model server may take to become ready.
    pub readiness_timeout_s: u32,
    /// Hard wall-clock limit of the whole job, seconds.
    pub job_timeout_s: u32,
    /// The endpoint, for framework `openai`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_url: Option<String>,
    /// The templates used, for example `llama-cpp/b6000/serve`.
    pub templates: Vec<String>,
    /// The source of its inputs, where it is one with a code: what `{agent.prompts}` stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_source: Option<PromptSourceRef>,
    /// Flags among the arguments that load code or read paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dangerous_flags: Vec<String>,
    /// The engine arguments in force, as typed values: set, overrides and what follows from the scenario.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub engine_args: BTreeMap<String, serde_json::Value>,
    /// The set they come from, where the workload names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_args_set: Option<EngineArgsSetRef>,
    /// The weights that are loaded, where they are others than the model's code names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// Model servers on the host, each on GPUs and a port of its own; the load goes to all of them.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub replicas: u32,
    /// GPUs of each replica: replica n has the GPUs from n × this; absent means all the host has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus_per_replica: Option<u32>,
    /// How the model is fetched where the started server does not list it; empty where it loads what it was started with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetch_argv: Vec<String>,
    /// Processes beside the model servers, started before them and stopped after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<CompanionCommand>,
}

impl ResolvedCommands {
    /// These commands with one model server, ten minutes to become ready and an hour for the whole job, and nothing else
    /// said.
    pub fn of(serve_argv: Vec<String>, tool_argv: Vec<String>) -> Self {
        Self {
            serve_argv,
            tool_argv,
            serve_env: BTreeMap::new(),
            readiness_path: "/health".to_owned(),
            readiness_timeout_s: 600,
            job_timeout_s: 3600,
            endpoint_url: None,
            templates: Vec::new(),
            prompt_source: None,
            dangerous_flags: Vec::new(),
            engine_args: BTreeMap::new(),
            engine_args_set: None,
            weights: None,
            replicas: 1,
            gpus_per_replica: None,
            fetch_argv: Vec::new(),
            companions: Vec::new(),
        }
    }

    /// The GPUs that the model servers use together; nothing where they take all that the host has.
    pub fn gpus(&self) -> Option<u32> {
        Some(self.gpus_per_replica?.saturating_mul(self.replicas))
    }
}

/// A run was created with this job in it. Stream: the job's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobCreated {
    /// The server the job runs on.
    pub server: ServerKey,
    /// The job's place in its run, from 0.
    pub ordinal: u32,
    /// The workload as it stood when the run was created.
    pub workload: WorkloadSpec,
    /// The scenario as it stood when the run was created.
    pub scenario: ScenarioSpec,
    /// The commands as resolved for it.
    pub commands: ResolvedCommands,
    /// The container image that the catalogue names for the framework's version on the server's kind of hardware. The
    /// agent starts the program that lies on its host, which need not be out of this image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_image: Option<String>,
}

/// It is this job's turn. Appended by the control plane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobQueued {
    /// True when a lost attempt put the job back.
    #[serde(default)]
    pub requeued: bool,
}

/// An agent took the job. The lease's time lives in the presence table; the attempt's number is a fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobClaimed {
    /// The attempt, from 1.
    pub attempt: u32,
    /// The agent's name, see [`ServerKey::agent`].
    pub agent: String,
    /// Seconds of silence after which the attempt is lost.
    pub lease_s: u32,
}

/// The agent started the model server with this final argv.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobServing {
    /// The attempt this belongs to.
    pub attempt: u32,
    /// The final command line; empty for framework `openai`.
    pub serve_argv: Vec<String>,
    /// The endpoints the load will be sent to.
    pub endpoint_urls: Vec<String>,
    /// The job (its stream key) that this model server was started for and that left it running, where the workload
    /// asks to keep it; absent where it was started for this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<String>,
    /// The final command lines of the further replicas and of what runs beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_argv: Vec<Vec<String>>,
    /// The GPUs of each replica, where they are pinned, for example `0,1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_sets: Vec<String>,
}

/// The model server is ready and the load generator was started with this final argv.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobRunning {
    /// The attempt this belongs to.
    pub attempt: u32,
    /// The final command line of the tool, secrets redacted.
    pub tool_argv: Vec<String>,
    /// What the tool prints for `--version`.
    pub tool_version: String,
    /// Seconds the model server took to become ready.
    pub ready_after_s: f64,
    /// SHA-256 of the prompt source's rows as they lie on the host, hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_source_sha256: Option<String>,
    /// The model ids the endpoint listed, as evidence of what was served.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub served_models: Vec<String>,
    /// The version that the model server says it is, where its framework says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework_version: Option<String>,
    /// The commit of the weights' repository as it lies on the host, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights_revision: Option<String>,
    /// SHA-256 of the weights, hexadecimal, where they are one file on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights_sha256: Option<String>,
}

/// The attempt ended with a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobCompleted {
    /// The attempt this belongs to.
    pub attempt: u32,
    /// Telemetry samples the agent took in this attempt: what must be in the log.
    pub telemetry_samples: u64,
    /// Log lines the agent read in this attempt: what must be in the log or its blobs.
    pub log_lines: u64,
}

/// The attempt ended without a usable result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobFailed {
    /// The attempt this belongs to; 0 when no agent ever claimed it.
    pub attempt: u32,
    /// A short stable word: `server_not_ready`, `server_exited`, `tool_failed`, `no_summary`, `refused`, `timeout`, `agent_error`, `spawn_failed`.
    pub code: String,
    /// What happened, why, and what to do.
    pub message: String,
    /// Telemetry samples the agent took in this attempt.
    #[serde(default)]
    pub telemetry_samples: u64,
    /// Log lines the agent read in this attempt.
    #[serde(default)]
    pub log_lines: u64,
}

/// A person asked to stop the job. A claimed job ends when its agent says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobCancelRequested {}

/// The job ended by a person's wish.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobCancelled {
    /// The attempt that was stopped; 0 when none had begun.
    pub attempt: u32,
}

/// The agent was silent past its lease. Appended by the control plane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobLost {
    /// The attempt that was lost.
    pub attempt: u32,
    /// Whether the job goes back to the queue (once).
    pub requeue: bool,
}

/// A person asked to try the failed job again: it waits for its turn in its run anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobRetried {
    /// The newest attempt, which failed or was lost; 0 when none had begun.
    pub attempt: u32,
}
