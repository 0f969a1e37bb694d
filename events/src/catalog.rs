//! The closed list of events: stable type names, schema versions, and which streams they live in.
//!
//! Adding an event: its payload beside its subject, a line in each `match` here (the compiler reminds you),
//! a golden file under `events/tests/golden/`, the decision that appends it, the projections that read it;
//! then `UPDATE_DOCS=1 cargo test -p benchtrail-events` writes `docs/EVENTS.md`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::upcast::upcast;
use crate::{
    access, catalogue, job, project, prompt_source, quality, quota, run, saved_view, server_host, system,
    telemetry, tool_output, workload,
};

/// Why an event could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The type is not known to this version of Benchtrail: a newer one wrote it.
    #[error(
        "event type {event_type:?} is unknown to this version: upgrade, or rebuild with a version that knows it"
    )]
    UnknownType {
        /// The type.
        event_type: String,
    },
    /// The schema version is newer than this version of Benchtrail.
    #[error("event {event_type} has schema version {found}, this version knows up to {known}: upgrade")]
    UnknownVersion {
        /// The type.
        event_type: String,
        /// The version found.
        found: u16,
        /// The newest version known.
        known: u16,
    },
    /// The payload does not fit its type.
    #[error("the payload of event {event_type} does not fit: {source}")]
    Payload {
        /// The type.
        event_type: String,
        /// What the decoder said.
        source: serde_json::Error,
    },
}

/// Every event there is.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// `project.created`, see [`project::ProjectCreated`].
    ProjectCreated(project::ProjectCreated),
    /// `project.renamed`, see [`project::ProjectRenamed`].
    ProjectRenamed(project::ProjectRenamed),
    /// `project.visibility_changed`, see [`project::ProjectVisibilityChanged`].
    ProjectVisibilityChanged(project::ProjectVisibilityChanged),
    /// `project.archived`, see [`project::ProjectArchived`].
    ProjectArchived(project::ProjectArchived),
    /// `workload.created`, see [`workload::WorkloadCreated`].
    WorkloadCreated(workload::WorkloadCreated),
    /// `workload.renamed`, see [`workload::WorkloadRenamed`].
    WorkloadRenamed(workload::WorkloadRenamed),
    /// `workload.archived`, see [`workload::WorkloadArchived`].
    WorkloadArchived(workload::WorkloadArchived),
    /// `scenario.defined`, see [`workload::ScenarioDefined`].
    ScenarioDefined(workload::ScenarioDefined),
    /// `run.created`, see [`run::RunCreated`].
    RunCreated(run::RunCreated),
    /// `run.cancel_requested`, see [`run::RunCancelRequested`].
    RunCancelRequested(run::RunCancelRequested),
    /// `run.finished`, see [`run::RunFinished`].
    RunFinished(run::RunFinished),
    /// `run.reopened`, see [`run::RunReopened`].
    RunReopened(run::RunReopened),
    /// `job.created`, see [`job::JobCreated`].
    JobCreated(Box<job::JobCreated>),
    /// `job.queued`, see [`job::JobQueued`].
    JobQueued(job::JobQueued),
    /// `job.claimed`, see [`job::JobClaimed`].
    JobClaimed(job::JobClaimed),
    /// `job.serving`, see [`job::JobServing`].
    JobServing(job::JobServing),
    /// `job.running`, see [`job::JobRunning`].
    JobRunning(job::JobRunning),
    /// `job.completed`, see [`job::JobCompleted`].
    JobCompleted(job::JobCompleted),
    /// `job.failed`, see [`job::JobFailed`].
    JobFailed(job::JobFailed),
    /// `job.cancel_requested`, see [`job::JobCancelRequested`].
    JobCancelRequested(job::JobCancelRequested),
    /// `job.cancelled`, see [`job::JobCancelled`].
    JobCancelled(job::JobCancelled),
    /// `job.lost`, see [`job::JobLost`].
    JobLost(job::JobLost),
    /// `job.retried`, see [`job::JobRetried`].
    JobRetried(job::JobRetried),
    /// `tool_output.recorded`, see [`tool_output::ToolOutputRecorded`].
    ToolOutputRecorded(Box<tool_output::ToolOutputRecorded>),
    /// `tool_output.external`, see [`tool_output::ExternalOutputRecorded`].
    ExternalOutputRecorded(Box<tool_output::ExternalOutputRecorded>),
    /// `tool_output.imported`, see [`tool_output::ToolOutputImported`].
    ToolOutputImported(Box<tool_output::ToolOutputImported>),
    /// `telemetry.sampled`, see [`telemetry::TelemetrySampled`].
    TelemetrySampled(telemetry::TelemetrySampled),
    /// `progress.reported`, see [`tool_output::ProgressReported`].
    ProgressReported(tool_output::ProgressReported),
    /// `log.lines`, see [`tool_output::LogLines`].
    LogLines(tool_output::LogLines),
    /// `quality.flagged`, see [`quality::QualityFlagged`].
    QualityFlagged(quality::QualityFlagged),
    /// `quality.cleared`, see [`quality::QualityCleared`].
    QualityCleared(quality::QualityCleared),
    /// `server.registered`, see [`server_host::ServerRegistered`].
    ServerRegistered(server_host::ServerRegistered),
    /// `server.enrolled`, see [`server_host::ServerEnrolled`].
    ServerEnrolled(server_host::ServerEnrolled),
    /// `server.capabilities_reported`, see [`server_host::ServerCapabilitiesReported`].
    ServerCapabilitiesReported(server_host::ServerCapabilitiesReported),
    /// `server.state_changed`, see [`server_host::ServerStateChanged`].
    ServerStateChanged(server_host::ServerStateChanged),
    /// `server.removed`, see [`server_host::ServerRemoved`].
    ServerRemoved(server_host::ServerRemoved),
    /// `server.maintenance_started`, see [`server_host::ServerMaintenanceStarted`].
    ServerMaintenanceStarted(server_host::ServerMaintenanceStarted),
    /// `server.maintenance_ended`, see [`server_host::ServerMaintenanceEnded`].
    ServerMaintenanceEnded(server_host::ServerMaintenanceEnded),
    /// `model.registered`, see [`catalogue::ModelRegistered`].
    ModelRegistered(Box<catalogue::ModelRegistered>),
    /// `framework.registered`, see [`catalogue::FrameworkRegistered`].
    FrameworkRegistered(Box<catalogue::FrameworkRegistered>),
    /// `config.registered`, see [`catalogue::ServerConfigRegistered`].
    ServerConfigRegistered(catalogue::ServerConfigRegistered),
    /// `tool.registered`, see [`catalogue::ToolRegistered`].
    ToolRegistered(catalogue::ToolRegistered),
    /// `accelerator.registered`, see [`catalogue::AcceleratorRegistered`].
    AcceleratorRegistered(Box<catalogue::AcceleratorRegistered>),
    /// `engine_args_set.registered`, see [`catalogue::EngineArgsSetRegistered`].
    EngineArgsSetRegistered(Box<catalogue::EngineArgsSetRegistered>),
    /// `engine_args_set.archived`, see [`catalogue::EngineArgsSetArchived`].
    EngineArgsSetArchived(catalogue::EngineArgsSetArchived),
    /// `approval.granted`, see [`catalogue::ApprovalGranted`].
    ApprovalGranted(catalogue::ApprovalGranted),
    /// `approval.revoked`, see [`catalogue::ApprovalRevoked`].
    ApprovalRevoked(catalogue::ApprovalRevoked),
    /// `prompt_source.created`, see [`prompt_source::PromptSourceCreated`].
    PromptSourceCreated(Box<prompt_source::PromptSourceCreated>),
    /// `prompt_source.calibrated`, see [`prompt_source::PromptSourceCalibrated`].
    PromptSourceCalibrated(prompt_source::PromptSourceCalibrated),
    /// `org.created`, see [`access::OrgCreated`].
    OrgCreated(access::OrgCreated),
    /// `org.renamed`, see [`access::OrgRenamed`].
    OrgRenamed(access::OrgRenamed),
    /// `org.member_role_set`, see [`access::MemberRoleSet`].
    MemberRoleSet(access::MemberRoleSet),
    /// `org.invitation_created`, see [`access::InvitationCreated`].
    InvitationCreated(access::InvitationCreated),
    /// `org.invitation_accepted`, see [`access::InvitationAccepted`].
    InvitationAccepted(access::InvitationAccepted),
    /// `org.invitation_revoked`, see [`access::InvitationRevoked`].
    InvitationRevoked(access::InvitationRevoked),
    /// `quota.set`, see [`quota::QuotaSet`].
    QuotaSet(quota::QuotaSet),
    /// `quota.level_changed`, see [`quota::QuotaLevelChanged`].
    QuotaLevelChanged(quota::QuotaLevelChanged),
    /// `user.created`, see [`access::UserCreated`].
    UserCreated(access::UserCreated),
    /// `access.signed_in`, see [`access::SignedIn`].
    SignedIn(access::SignedIn),
    /// `access.sign_in_refused`, see [`access::SignInRefused`].
    SignInRefused(access::SignInRefused),
    /// `access.token_created`, see [`access::TokenCreated`].
    TokenCreated(access::TokenCreated),
    /// `access.token_revoked`, see [`access::TokenRevoked`].
    TokenRevoked(access::TokenRevoked),
    /// `saved_view.saved`, see [`saved_view::ViewSaved`].
    ViewSaved(saved_view::ViewSaved),
    /// `saved_view.removed`, see [`saved_view::ViewRemoved`].
    ViewRemoved(saved_view::ViewRemoved),
    /// `access.signed_out`, see [`access::SignedOut`].
    SignedOut(access::SignedOut),
    /// `access.password_changed`, see [`access::PasswordChanged`].
    PasswordChanged(access::PasswordChanged),
    /// `access.profile_changed`, see [`access::ProfileChanged`].
    ProfileChanged(access::ProfileChanged),
    /// `access.identity_linked`, see [`access::IdentityLinked`].
    IdentityLinked(access::IdentityLinked),
    /// `access.enrol_token_created`, see [`access::EnrolTokenCreated`].
    EnrolTokenCreated(access::EnrolTokenCreated),
    /// `access.exported`, see [`access::Exported`].
    Exported(access::Exported),
    /// `secret.stored`, see [`access::SecretStored`].
    SecretStored(access::SecretStored),
    /// `secret.removed`, see [`access::SecretRemoved`].
    SecretRemoved(access::SecretRemoved),
    /// `secret.released`, see [`access::SecretReleased`].
    SecretReleased(access::SecretReleased),
    /// `notification.preferences_set`, see [`access::NotificationPreferencesSet`].
    NotificationPreferencesSet(access::NotificationPreferencesSet),
    /// `notification.webhook_created`, see [`access::WebhookCreated`].
    WebhookCreated(access::WebhookCreated),
    /// `notification.webhook_removed`, see [`access::WebhookRemoved`].
    WebhookRemoved(access::WebhookRemoved),
    /// `notification.sent`, see [`access::NotificationSent`].
    NotificationSent(access::NotificationSent),
    /// `notification.abandoned`, see [`access::NotificationAbandoned`].
    NotificationAbandoned(access::NotificationAbandoned),
    /// `blob.stored`, see [`system::BlobStored`].
    BlobStored(system::BlobStored),
    /// `blob.erased`, see [`system::BlobErased`].
    BlobErased(system::BlobErased),
    /// `report.rejected`, see [`system::ReportRejected`].
    ReportRejected(system::ReportRejected),
    /// `control_plane.started`, see [`system::ControlPlaneStarted`].
    ControlPlaneStarted(system::ControlPlaneStarted),
}

/// The type names of every event, in the order of the catalogue.
pub const EVENT_TYPES: &[&str] = &[
    "project.created",
    "project.renamed",
    "project.visibility_changed",
    "project.archived",
    "workload.created",
    "workload.renamed",
    "workload.archived",
    "scenario.defined",
    "run.created",
    "run.cancel_requested",
    "run.finished",
    "run.reopened",
    "job.created",
    "job.queued",
    "job.claimed",
    "job.serving",
    "job.running",
    "job.completed",
    "job.failed",
    "job.cancel_requested",
    "job.cancelled",
    "job.lost",
    "job.retried",
    "tool_output.recorded",
    "tool_output.external",
    "tool_output.imported",
    "telemetry.sampled",
    "progress.reported",
    "log.lines",
    "quality.flagged",
    "quality.cleared",
    "server.registered",
    "server.enrolled",
    "server.capabilities_reported",
    "server.state_changed",
    "server.removed",
    "server.maintenance_started",
    "server.maintenance_ended",
    "model.registered",
    "framework.registered",
    "config.registered",
    "tool.registered",
    "accelerator.registered",
    "engine_args_set.registered",
    "engine_args_set.archived",
    "approval.granted",
    "approval.revoked",
    "prompt_source.created",
    "prompt_source.calibrated",
    "org.created",
    "org.renamed",
    "org.member_role_set",
    "org.invitation_created",
    "org.invitation_accepted",
    "org.invitation_revoked",
    "quota.set",
    "quota.level_changed",
    "user.created",
    "access.signed_in",
    "access.sign_in_refused",
    "access.token_created",
    "access.token_revoked",
    "saved_view.saved",
    "saved_view.removed",
    "access.signed_out",
    "access.password_changed",
    "access.profile_changed",
    "access.identity_linked",
    "access.enrol_token_created",
    "access.exported",
    "secret.stored",
    "secret.removed",
    "secret.released",
    "notification.preferences_set",
    "notification.webhook_created",
    "notification.webhook_removed",
    "notification.sent",
    "notification.abandoned",
    "blob.stored",
    "blob.erased",
    "report.rejected",
    "control_plane.started",
];

impl Event {
    /// The stable dotted name, independent of Rust paths.
    pub fn event_type(&self) -> &'static str {
        match self {
            Self::ProjectCreated(_) => "project.created",
            Self::ProjectRenamed(_) => "project.renamed",
            Self::ProjectVisibilityChanged(_) => "project.visibility_changed",
            Self::ProjectArchived(_) => "project.archived",
            Self::WorkloadCreated(_) => "workload.created",
            Self::WorkloadRenamed(_) => "workload.renamed",
            Self::WorkloadArchived(_) => "workload.archived",
            Self::ScenarioDefined(_) => "scenario.defined",
            Self::RunCreated(_) => "run.created",
            Self::RunCancelRequested(_) => "run.cancel_requested",
            Self::RunFinished(_) => "run.finished",
            Self::RunReopened(_) => "run.reopened",
            Self::JobCreated(_) => "job.created",
            Self::JobQueued(_) => "job.queued",
            Self::JobClaimed(_) => "job.claimed",
            Self::JobServing(_) => "job.serving",
            Self::JobRunning(_) => "job.running",
            Self::JobCompleted(_) => "job.completed",
            Self::JobFailed(_) => "job.failed",
            Self::JobCancelRequested(_) => "job.cancel_requested",
            Self::JobCancelled(_) => "job.cancelled",
            Self::JobLost(_) => "job.lost",
            Self::JobRetried(_) => "job.retried",
            Self::ToolOutputRecorded(_) => "tool_output.recorded",
            Self::ExternalOutputRecorded(_) => "tool_output.external",
            Self::ToolOutputImported(_) => "tool_output.imported",
            Self::TelemetrySampled(_) => "telemetry.sampled",
            Self::ProgressReported(_) => "progress.reported",
            Self::LogLines(_) => "log.lines",
            Self::QualityFlagged(_) => "quality.flagged",
            Self::QualityCleared(_) => "quality.cleared",
            Self::ServerRegistered(_) => "server.registered",
            Self::ServerEnrolled(_) => "server.enrolled",
            Self::ServerCapabilitiesReported(_) => "server.capabilities_reported",
            Self::ServerStateChanged(_) => "server.state_changed",
            Self::ServerRemoved(_) => "server.removed",
            Self::ServerMaintenanceStarted(_) => "server.maintenance_started",
            Self::ServerMaintenanceEnded(_) => "server.maintenance_ended",
            Self::ModelRegistered(_) => "model.registered",
            Self::FrameworkRegistered(_) => "framework.registered",
            Self::ServerConfigRegistered(_) => "config.registered",
            Self::ToolRegistered(_) => "tool.registered",
            Self::AcceleratorRegistered(_) => "accelerator.registered",
            Self::EngineArgsSetRegistered(_) => "engine_args_set.registered",
            Self::EngineArgsSetArchived(_) => "engine_args_set.archived",
            Self::ApprovalGranted(_) => "approval.granted",
            Self::ApprovalRevoked(_) => "approval.revoked",
            Self::PromptSourceCreated(_) => "prompt_source.created",
            Self::PromptSourceCalibrated(_) => "prompt_source.calibrated",
            Self::OrgCreated(_) => "org.created",
            Self::OrgRenamed(_) => "org.renamed",
            Self::MemberRoleSet(_) => "org.member_role_set",
            Self::InvitationCreated(_) => "org.invitation_created",
            Self::InvitationAccepted(_) => "org.invitation_accepted",
            Self::InvitationRevoked(_) => "org.invitation_revoked",
            Self::QuotaSet(_) => "quota.set",
            Self::QuotaLevelChanged(_) => "quota.level_changed",
            Self::UserCreated(_) => "user.created",
            Self::SignedIn(_) => "access.signed_in",
            Self::SignInRefused(_) => "access.sign_in_refused",
            Self::TokenCreated(_) => "access.token_created",
            Self::TokenRevoked(_) => "access.token_revoked",
            Self::ViewSaved(_) => "saved_view.saved",
            Self::ViewRemoved(_) => "saved_view.removed",
            Self::SignedOut(_) => "access.signed_out",
            Self::PasswordChanged(_) => "access.password_changed",
            Self::ProfileChanged(_) => "access.profile_changed",
            Self::IdentityLinked(_) => "access.identity_linked",
            Self::EnrolTokenCreated(_) => "access.enrol_token_created",
            Self::Exported(_) => "access.exported",
            Self::SecretStored(_) => "secret.stored",
            Self::SecretRemoved(_) => "secret.removed",
            Self::SecretReleased(_) => "secret.released",
            Self::NotificationPreferencesSet(_) => "notification.preferences_set",
            Self::WebhookCreated(_) => "notification.webhook_created",
            Self::WebhookRemoved(_) => "notification.webhook_removed",
            Self::NotificationSent(_) => "notification.sent",
            Self::NotificationAbandoned(_) => "notification.abandoned",
            Self::BlobStored(_) => "blob.stored",
            Self::BlobErased(_) => "blob.erased",
            Self::ReportRejected(_) => "report.rejected",
            Self::ControlPlaneStarted(_) => "control_plane.started",
        }
    }

    /// The version its payload is written in today.
    pub fn schema_version(&self) -> u16 {
        current_schema_version(self.event_type())
    }

    /// The payload as a JSON value.
    ///
    /// # Errors
    /// When the payload holds something JSON cannot say.
    pub fn payload(&self) -> Result<serde_json::Value, serde_json::Error> {
        fn json<T: Serialize>(payload: &T) -> Result<serde_json::Value, serde_json::Error> {
            serde_json::to_value(payload)
        }
        match self {
            Self::ProjectCreated(payload) => json(payload),
            Self::ProjectRenamed(payload) => json(payload),
            Self::ProjectVisibilityChanged(payload) => json(payload),
            Self::ProjectArchived(payload) => json(payload),
            Self::WorkloadCreated(payload) => json(payload),
            Self::WorkloadRenamed(payload) => json(payload),
            Self::WorkloadArchived(payload) => json(payload),
            Self::ScenarioDefined(payload) => json(payload),
            Self::RunCreated(payload) => json(payload),
            Self::RunCancelRequested(payload) => json(payload),
            Self::RunFinished(payload) => json(payload),
            Self::RunReopened(payload) => json(payload),
            Self::JobCreated(payload) => json(payload),
            Self::JobQueued(payload) => json(payload),
            Self::JobClaimed(payload) => json(payload),
            Self::JobServing(payload) => json(payload),
            Self::JobRunning(payload) => json(payload),
            Self::JobCompleted(payload) => json(payload),
            Self::JobFailed(payload) => json(payload),
            Self::JobCancelRequested(payload) => json(payload),
            Self::JobCancelled(payload) => json(payload),
            Self::JobLost(payload) => json(payload),
            Self::JobRetried(payload) => json(payload),
            Self::ToolOutputRecorded(payload) => json(payload),
            Self::ExternalOutputRecorded(payload) => json(payload),
            Self::ToolOutputImported(payload) => json(payload),
            Self::TelemetrySampled(payload) => json(payload),
            Self::ProgressReported(payload) => json(payload),
            Self::LogLines(payload) => json(payload),
            Self::QualityFlagged(payload) => json(payload),
            Self::QualityCleared(payload) => json(payload),
            Self::ServerRegistered(payload) => json(payload),
            Self::ServerEnrolled(payload) => json(payload),
            Self::ServerCapabilitiesReported(payload) => json(payload),
            Self::ServerStateChanged(payload) => json(payload),
            Self::ServerRemoved(payload) => json(payload),
            Self::ServerMaintenanceStarted(payload) => json(payload),
            Self::ServerMaintenanceEnded(payload) => json(payload),
            Self::ModelRegistered(payload) => json(payload),
            Self::FrameworkRegistered(payload) => json(payload),
            Self::ServerConfigRegistered(payload) => json(payload),
            Self::ToolRegistered(payload) => json(payload),
            Self::AcceleratorRegistered(payload) => json(payload),
            Self::EngineArgsSetRegistered(payload) => json(payload),
            Self::EngineArgsSetArchived(payload) => json(payload),
            Self::ApprovalGranted(payload) => json(payload),
            Self::ApprovalRevoked(payload) => json(payload),
            Self::PromptSourceCreated(payload) => json(payload),
            Self::PromptSourceCalibrated(payload) => json(payload),
            Self::OrgCreated(payload) => json(payload),
            Self::OrgRenamed(payload) => json(payload),
            Self::MemberRoleSet(payload) => json(payload),
            Self::InvitationCreated(payload) => json(payload),
            Self::InvitationAccepted(payload) => json(payload),
            Self::InvitationRevoked(payload) => json(payload),
            Self::QuotaSet(payload) => json(payload),
            Self::QuotaLevelChanged(payload) => json(payload),
            Self::UserCreated(payload) => json(payload),
            Self::SignedIn(payload) => json(payload),
            Self::SignInRefused(payload) => json(payload),
            Self::TokenCreated(payload) => json(payload),
            Self::TokenRevoked(payload) => json(payload),
            Self::ViewSaved(payload) => json(payload),
            Self::ViewRemoved(payload) => json(payload),
            Self::SignedOut(payload) => json(payload),
            Self::PasswordChanged(payload) => json(payload),
            Self::ProfileChanged(payload) => json(payload),
            Self::IdentityLinked(payload) => json(payload),
            Self::EnrolTokenCreated(payload) => json(payload),
            Self::Exported(payload) => json(payload),
            Self::SecretStored(payload) => json(payload),
            Self::SecretRemoved(payload) => json(payload),
            Self::SecretReleased(payload) => json(payload),
            Self::NotificationPreferencesSet(payload) => json(payload),
            Self::WebhookCreated(payload) => json(payload),
            Self::WebhookRemoved(payload) => json(payload),
            Self::NotificationSent(payload) => json(payload),
            Self::NotificationAbandoned(payload) => json(payload),
            Self::BlobStored(payload) => json(payload),
            Self::BlobErased(payload) => json(payload),
            Self::ReportRejected(payload) => json(payload),
            Self::ControlPlaneStarted(payload) => json(payload),
        }
    }

    /// Reads an event of any version ever shipped.
    ///
    /// # Errors
    /// [`DecodeError`]: unknown type, unknown version, or a payload that does not fit.
    pub fn decode(event_type: &str, schema_version: u16, payload: &str) -> Result<Self, DecodeError> {
        let known = current_schema_version(event_type);
        if schema_version > known && EVENT_TYPES.contains(&event_type) {
            return Err(DecodeError::UnknownVersion {
                event_type: event_type.to_owned(),
                found: schema_version,
                known,
            });
        }
        let old = schema_version < known;
        let read = Reader { event_type, schema_version, payload, old };
        Ok(match event_type {
            "project.created" => Self::ProjectCreated(read.payload()?),
            "project.renamed" => Self::ProjectRenamed(read.payload()?),
            "project.visibility_changed" => Self::ProjectVisibilityChanged(read.payload()?),
            "project.archived" => Self::ProjectArchived(read.payload()?),
            "workload.created" => Self::WorkloadCreated(read.payload()?),
            "workload.renamed" => Self::WorkloadRenamed(read.payload()?),
            "workload.archived" => Self::WorkloadArchived(read.payload()?),
            "scenario.defined" => Self::ScenarioDefined(read.payload()?),
            "run.created" => Self::RunCreated(read.payload()?),
            "run.cancel_requested" => Self::RunCancelRequested(read.payload()?),
            "run.finished" => Self::RunFinished(read.payload()?),
            "run.reopened" => Self::RunReopened(read.payload()?),
            "job.created" => Self::JobCreated(read.payload()?),
            "job.queued" => Self::JobQueued(read.payload()?),
            "job.claimed" => Self::JobClaimed(read.payload()?),
            "job.serving" => Self::JobServing(read.payload()?),
            "job.running" => Self::JobRunning(read.payload()?),
            "job.completed" => Self::JobCompleted(read.payload()?),
            "job.failed" => Self::JobFailed(read.payload()?),
            "job.cancel_requested" => Self::JobCancelRequested(read.payload()?),
            "job.cancelled" => Self::JobCancelled(read.payload()?),
            "job.lost" => Self::JobLost(read.payload()?),
            "job.retried" => Self::JobRetried(read.payload()?),
            "tool_output.recorded" => Self::ToolOutputRecorded(read.payload()?),
            "tool_output.external" => Self::ExternalOutputRecorded(read.payload()?),
            "tool_output.imported" => Self::ToolOutputImported(read.payload()?),
            "telemetry.sampled" => Self::TelemetrySampled(read.payload()?),
            "progress.reported" => Self::ProgressReported(read.payload()?),
            "log.lines" => Self::LogLines(read.payload()?),
            "quality.flagged" => Self::QualityFlagged(read.payload()?),
            "quality.cleared" => Self::QualityCleared(read.payload()?),
            "server.registered" => Self::ServerRegistered(read.payload()?),
            "server.enrolled" => Self::ServerEnrolled(read.payload()?),
            "server.capabilities_reported" => Self::ServerCapabilitiesReported(read.payload()?),
            "server.state_changed" => Self::ServerStateChanged(read.payload()?),
            "server.removed" => Self::ServerRemoved(read.payload()?),
            "server.maintenance_started" => Self::ServerMaintenanceStarted(read.payload()?),
            "server.maintenance_ended" => Self::ServerMaintenanceEnded(read.payload()?),
            "model.registered" => Self::ModelRegistered(read.payload()?),
            "framework.registered" => Self::FrameworkRegistered(read.payload()?),
            "config.registered" => Self::ServerConfigRegistered(read.payload()?),
            "tool.registered" => Self::ToolRegistered(read.payload()?),
            "accelerator.registered" => Self::AcceleratorRegistered(read.payload()?),
            "engine_args_set.registered" => Self::EngineArgsSetRegistered(read.payload()?),
            "engine_args_set.archived" => Self::EngineArgsSetArchived(read.payload()?),
            "approval.granted" => Self::ApprovalGranted(read.payload()?),
            "approval.revoked" => Self::ApprovalRevoked(read.payload()?),
            "prompt_source.created" => Self::PromptSourceCreated(read.payload()?),
            "prompt_source.calibrated" => Self::PromptSourceCalibrated(read.payload()?),
            "org.created" => Self::OrgCreated(read.payload()?),
            "org.renamed" => Self::OrgRenamed(read.payload()?),
            "org.member_role_set" => Self::MemberRoleSet(read.payload()?),
            "org.invitation_created" => Self::InvitationCreated(read.payload()?),
            "org.invitation_accepted" => Self::InvitationAccepted(read.payload()?),
            "org.invitation_revoked" => Self::InvitationRevoked(read.payload()?),
            "quota.set" => Self::QuotaSet(read.payload()?),
            "quota.level_changed" => Self::QuotaLevelChanged(read.payload()?),
            "user.created" => Self::UserCreated(read.payload()?),
            "access.signed_in" => Self::SignedIn(read.payload()?),
            "access.sign_in_refused" => Self::SignInRefused(read.payload()?),
            "access.token_created" => Self::TokenCreated(read.payload()?),
            "access.token_revoked" => Self::TokenRevoked(read.payload()?),
            "saved_view.saved" => Self::ViewSaved(read.payload()?),
            "saved_view.removed" => Self::ViewRemoved(read.payload()?),
            "access.signed_out" => Self::SignedOut(read.payload()?),
            "access.password_changed" => Self::PasswordChanged(read.payload()?),
            "access.profile_changed" => Self::ProfileChanged(read.payload()?),
            "access.identity_linked" => Self::IdentityLinked(read.payload()?),
            "access.enrol_token_created" => Self::EnrolTokenCreated(read.payload()?),
            "access.exported" => Self::Exported(read.payload()?),
            "secret.stored" => Self::SecretStored(read.payload()?),
            "secret.removed" => Self::SecretRemoved(read.payload()?),
            "secret.released" => Self::SecretReleased(read.payload()?),
            "notification.preferences_set" => Self::NotificationPreferencesSet(read.payload()?),
            "notification.webhook_created" => Self::WebhookCreated(read.payload()?),
            "notification.webhook_removed" => Self::WebhookRemoved(read.payload()?),
            "notification.sent" => Self::NotificationSent(read.payload()?),
            "notification.abandoned" => Self::NotificationAbandoned(read.payload()?),
            "blob.stored" => Self::BlobStored(read.payload()?),
            "blob.erased" => Self::BlobErased(read.payload()?),
            "report.rejected" => Self::ReportRejected(read.payload()?),
            "control_plane.started" => Self::ControlPlaneStarted(read.payload()?),
            _ => return Err(DecodeError::UnknownType { event_type: event_type.to_owned() }),
        })
    }
}

struct Reader<'a> {
    event_type: &'a str,
    schema_version: u16,
    payload: &'a str,
    old: bool,
}

impl Reader<'_> {
    fn payload<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        let error = |source| DecodeError::Payload { event_type: self.event_type.to_owned(), source };
        if !self.old {
            return serde_json::from_str(self.payload).map_err(error);
        }
        let value = serde_json::from_str(self.payload).map_err(error)?;
        serde_json::from_value(upcast(self.event_type, self.schema_version, value)).map_err(error)
    }
}

pub use crate::upcast::current_schema_version;

/// The kind of stream events of this type live in, see [`crate::keys::KINDS`].
pub fn stream_kind(event_type: &str) -> Option<&'static str> {
    if event_type == "tool_output.imported" {
        return Some("import");
    }
    Some(match event_type.split('.').next()? {
        "project" => "project",
        "workload" => "workload",
        "scenario" => "scenario",
        "run" => "run",
        "job" => "job",
        "tool_output" => "job",
        "telemetry" => "telemetry",
        "progress" => "progress",
        "log" => "logs",
        "quality" => "job",
        "server" => "server",
        "model" => "model",
        "framework" => "framework",
        "config" => "config",
        "tool" => "tool",
        "accelerator" => "accelerator",
        "engine_args_set" => "engine_args_set",
        "approval" => "approval",
        "prompt_source" => "prompt_source",
        "org" => "org",
        "quota" => "quota",
        "user" => "user",
        "access" => "access",
        "saved_view" => "saved_view",
        "secret" => "access",
        "notification" => "access",
        "blob" => "blob",
        "report" => "server",
        "control_plane" => "system",
        _ => return None,
    })
}
