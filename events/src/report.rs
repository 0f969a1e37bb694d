//! What an agent may claim: the contract of the one door, over NATS and over HTTPS alike.
//!
//! A report is a claim by an authenticated worker; an event is a fact the system of record accepted. Every
//! report item carries the id of the event it will become, made once and kept in the agent's spool, so that
//! a resend is recognised: at least once on the wire, exactly once in the log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::job::ResolvedCommands;
use crate::keys::JobKey;
use crate::server_host::HostCapabilities;
use crate::system::BlobStored;
use crate::telemetry::TelemetrySampled;
use crate::timestamp::Timestamp;
use crate::tool_output::{ExternalOutputRecorded, LogLines, ProgressReported, ToolOutputRecorded};
use crate::{job, workload::WorkloadSpec};

/// One claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportItem {
    /// The id of the event this becomes, uuid v7.
    pub event_id: Uuid,
    /// When it happened, by the agent's clock. Judged against the attempt's window, however late it arrives.
    pub at: Timestamp,
    /// What happened.
    pub body: ReportBody,
}

/// What an agent can report. `job` names whose attempt it is; the door checks that the attempt was this agent's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ReportBody {
    /// The host's capabilities, at start and when they change.
    Capabilities {
        /// The host.
        capabilities: HostCapabilities,
    },
    /// The model server was started.
    Serving {
        /// The job.
        job: JobKey,
        /// What happened.
        serving: job::JobServing,
    },
    /// The load generator was started.
    Running {
        /// The job.
        job: JobKey,
        /// What happened.
        running: job::JobRunning,
    },
    /// Telemetry samples.
    Telemetry {
        /// The job.
        job: JobKey,
        /// The attempt.
        attempt: u32,
        /// The samples.
        telemetry: TelemetrySampled,
    },
    /// The load generator's progress.
    Progress {
        /// The job.
        job: JobKey,
        /// The attempt.
        attempt: u32,
        /// The progress line.
        progress: ProgressReported,
    },
    /// Log lines.
    Log {
        /// The job.
        job: JobKey,
        /// The attempt.
        attempt: u32,
        /// The lines.
        log: LogLines,
    },
    /// The tool's summary.
    ToolOutput {
        /// The job.
        job: JobKey,
        /// The summary and how it came to be.
        output: Box<ToolOutputRecorded>,
    },
    /// The result of a third-party tool.
    ExternalOutput {
        /// The job.
        job: JobKey,
        /// The result and how it came to be.
        output: Box<ExternalOutputRecorded>,
    },
    /// A blob that was uploaded before.
    Blob {
        /// The job.
        job: JobKey,
        /// The attempt.
        attempt: u32,
        /// The blob.
        blob: BlobStored,
    },
    /// The attempt ended with a result.
    Completed {
        /// The job.
        job: JobKey,
        /// What happened.
        completed: job::JobCompleted,
    },
    /// The attempt ended without a result.
    Failed {
        /// The job.
        job: JobKey,
        /// What happened.
        failed: job::JobFailed,
    },
    /// The attempt was stopped as asked.
    Cancelled {
        /// The job.
        job: JobKey,
        /// What happened.
        cancelled: job::JobCancelled,
    },
}

impl ReportBody {
    /// The job this is about, with its attempt; nothing for reports about the host.
    pub fn job(&self) -> Option<(&JobKey, u32)> {
        Some(match self {
            Self::Capabilities { .. } => return None,
            Self::Serving { job, serving } => (job, serving.attempt),
            Self::Running { job, running } => (job, running.attempt),
            Self::Telemetry { job, attempt, .. }
            | Self::Progress { job, attempt, .. }
            | Self::Log { job, attempt, .. }
            | Self::Blob { job, attempt, .. } => (job, *attempt),
            Self::ToolOutput { job, output } => (job, output.attempt),
            Self::ExternalOutput { job, output } => (job, output.attempt),
            Self::Completed { job, completed } => (job, completed.attempt),
            Self::Failed { job, failed } => (job, failed.attempt),
            Self::Cancelled { job, cancelled } => (job, cancelled.attempt),
        })
    }

    /// The word for this kind of report, as in its JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Capabilities { .. } => "capabilities",
            Self::Serving { .. } => "serving",
            Self::Running { .. } => "running",
            Self::Telemetry { .. } => "telemetry",
            Self::Progress { .. } => "progress",
            Self::Log { .. } => "log",
            Self::ToolOutput { .. } => "tool_output",
            Self::ExternalOutput { .. } => "external_output",
            Self::Blob { .. } => "blob",
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
        }
    }
}

/// `POST /api/agent/secrets`: the agent asks for what the job it holds needs and must not stand in its command. HTTPS
/// only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SecretsRequest {
    /// The job.
    pub job: JobKey,
    /// The attempt.
    pub attempt: u32,
}

/// The answer: environment variables of the model server. `Debug` shows their names alone.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretsReply {
    /// By name.
    pub env: BTreeMap<String, String>,
}

impl std::fmt::Debug for SecretsReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.env.keys()).finish()
    }
}

/// How far outside its attempt's window a report's time may lie, in milliseconds.
///
/// The window is told by the control plane's clock, a report's time by its host's clock as it is: nobody corrects one by
/// the other, so that what one host measured lies on one time line.
pub const CLOCK_TOLERANCE_MS: i64 = 5_000;

/// A host whose clock is further off than this, in milliseconds, is given no work by its agent, and is not ready.
///
/// What lies between this and [`CLOCK_TOLERANCE_MS`] is for the error of the estimate (half a round trip) and for what
/// the clock drifts while a job runs: a job that was claimed within it does not lose its reports.
pub const CLOCK_LIMIT_MS: f64 = 4_000.0;

/// The largest number of items in one batch.
pub const MAX_BATCH_ITEMS: usize = 500;

/// Items of one agent, oldest first. `POST /api/agent/reports`, or NATS `ingest.<org>.<agent>.reports`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportBatch {
    /// The agent's organisation; must equal the authenticated one.
    pub org: String,
    /// The agent's name; must equal the authenticated one.
    pub agent: String,
    /// The items, oldest first.
    pub items: Vec<ReportItem>,
}

/// What became of one item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ItemOutcome {
    /// It is in the log, committed.
    Accepted {
        /// Its position.
        position: i64,
    },
    /// It was in the log already.
    Duplicate {
        /// Its position.
        position: i64,
    },
    /// It will never be accepted: drop it from the spool and write it to the agent's log.
    Rejected {
        /// A short stable word, for example `outside_window`, `not_your_job`.
        code: String,
        /// What happened and why.
        message: String,
        /// What to do.
        hint: String,
    },
    /// Something passing went wrong: keep it and send it again.
    Retry {
        /// What went wrong.
        message: String,
    },
}

/// The answer to a batch: one outcome an item, in order. Sent after the commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportReply {
    /// One outcome an item, in order.
    #[serde(default)]
    pub results: Vec<ItemOutcome>,
    /// Set when the whole batch was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::api::ApiError>,
}

/// An attempt an agent holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HeldAttempt {
    /// The job.
    pub job: JobKey,
    /// The attempt.
    pub attempt: u32,
}

/// The agent is alive; not an event. Renews the leases of the attempts it holds. Every 5 seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// The agent's clock.
    pub at: Timestamp,
    /// The attempts it works on.
    #[serde(default)]
    pub holding: Vec<HeldAttempt>,
    /// Reports in its spool that are not acknowledged.
    #[serde(default)]
    pub spooled: u64,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeartbeatReply {
    /// The control plane's clock: the agent estimates its offset from it.
    pub at: Timestamp,
    /// Held attempts that the agent must stop: cancelled, superseded, or over. A lost attempt without a newer one may go
    /// on: its completion still counts.
    #[serde(default)]
    pub stop: Vec<HeldAttempt>,
    /// Whether a job waits for this server.
    #[serde(default)]
    pub work_waiting: bool,
    /// Set when the heartbeat was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::api::ApiError>,
}

/// The agent asks for work. Waits nowhere: no job means an empty answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// Made by the agent for this claim: a resend gets the same answer.
    pub claim_id: Uuid,
}

/// The job as handed to an agent. [`SignedJob`] carries its exact bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssignedJob {
    /// The job.
    pub job: JobKey,
    /// The attempt that this claim began.
    pub attempt: u32,
    /// Its server; the agent refuses another server's job.
    pub server: crate::keys::ServerKey,
    /// When the claim was accepted: the start of the attempt's window.
    pub claimed_at: Timestamp,
    /// After this moment the agent must refuse to start it.
    pub expires_at: Timestamp,
    /// What is measured.
    pub workload: WorkloadSpec,
    /// The traffic.
    pub scenario: crate::workload::ScenarioSpec,
    /// The commands.
    pub commands: ResolvedCommands,
    /// Milliseconds between telemetry samples.
    pub sample_interval_ms: u32,
}

/// A job signed by the control plane. The agent pinned the key when it enrolled and refuses anything else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SignedJob {
    /// The exact JSON of an [`AssignedJob`].
    pub payload: String,
    /// Ed25519 signature over `payload`, hexadecimal.
    pub signature: String,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimReply {
    /// The job, or nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<SignedJob>,
    /// Set when the claim was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::api::ApiError>,
}

/// What the control plane nudges an agent with. A hint only: the agent also asks by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum AgentCommand {
    /// A job waits: claim it.
    WorkAvailable,
    /// Stop this attempt.
    Cancel {
        /// The attempt.
        held: HeldAttempt,
    },
}

/// `POST /api/agent/enrol`: the one-time token becomes an agent token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EnrolRequest {
    /// The one-time registration token.
    pub token: String,
    /// The agent's public user nkey; its seed never leaves the host.
    pub nats_public_key: String,
    /// The agent's version.
    pub agent_version: String,
}

/// The answer to an enrolment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnrolReply {
    /// The agent's organisation.
    pub org: String,
    /// The agent's name.
    pub agent: String,
    /// The server it stands for.
    pub server: crate::keys::ServerKey,
    /// The long-lived agent token (shown once; the control plane keeps its hash).
    pub agent_token: String,
    /// The control plane's Ed25519 public key for signed jobs, hexadecimal: pin it.
    pub job_signing_key: String,
}

/// `POST /api/agent/credentials` (bearer: the agent token): short-lived NATS credentials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentCredentials {
    /// Where NATS listens; absent when this site uses HTTPS only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nats_url: Option<String>,
    /// The user JWT, for the agent's own nkey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt: Option<String>,
    /// When it expires.
    pub expires_at: Timestamp,
}
