//! The closed list of events: stable type names, schema versions, and which streams they live in.
//!
//! Adding an event: its payload beside its subject, one line in the table here,
//! a golden file under `events/tests/golden/`, the decision that appends it, the projections that read it;
//! then `UPDATE_DOCS=1 cargo test -p benchtrail-events` writes `docs/EVENTS.md`.

use serde::de::DeserializeOwned;

use crate::upcast::upcast;
use crate::{
    access, catalogue, job, project, prompt_source, quality, quota, run, saved_view, server_host, system,
    telemetry, tool_args, tool_output, workload,
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

/// Makes of one line an event: the variant, its payload, and the stable name of its type.
macro_rules! events {
    ($($variant:ident($payload:ty) = $name:literal,)*) => {
        /// Every event there is.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $(
                #[doc = concat!("`", $name, "`, whose payload says more.")]
                $variant($payload),
            )*
        }

        /// The type names of every event, in the order of the catalogue.
        pub const EVENT_TYPES: &[&str] = &[$($name),*];

        impl Event {
            /// The stable dotted name, independent of Rust paths.
            pub fn event_type(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// The payload as a JSON value.
            ///
            /// # Errors
            /// When the payload holds something JSON cannot say.
            pub fn payload(&self) -> Result<serde_json::Value, serde_json::Error> {
                match self {
                    $(Self::$variant(payload) => serde_json::to_value(payload),)*
                }
            }

            /// Reads a payload of a type that is known; nothing for any other.
            fn read(read: &Reader<'_>) -> Result<Option<Self>, DecodeError> {
                Ok(Some(match read.event_type {
                    $($name => Self::$variant(read.payload()?),)*
                    _ => return Ok(None),
                }))
            }
        }
    };
}

events! {
    ProjectCreated(project::ProjectCreated) = "project.created",
    ProjectRenamed(project::ProjectRenamed) = "project.renamed",
    ProjectVisibilityChanged(project::ProjectVisibilityChanged) = "project.visibility_changed",
    ProjectArchived(project::ProjectArchived) = "project.archived",
    WorkloadCreated(workload::WorkloadCreated) = "workload.created",
    WorkloadRenamed(workload::WorkloadRenamed) = "workload.renamed",
    WorkloadArchived(workload::WorkloadArchived) = "workload.archived",
    ScenarioDefined(workload::ScenarioDefined) = "scenario.defined",
    RunCreated(run::RunCreated) = "run.created",
    RunCancelRequested(run::RunCancelRequested) = "run.cancel_requested",
    RunFinished(run::RunFinished) = "run.finished",
    RunReopened(run::RunReopened) = "run.reopened",
    JobCreated(Box<job::JobCreated>) = "job.created",
    JobQueued(job::JobQueued) = "job.queued",
    JobClaimed(job::JobClaimed) = "job.claimed",
    JobServing(job::JobServing) = "job.serving",
    JobRunning(job::JobRunning) = "job.running",
    JobCompleted(job::JobCompleted) = "job.completed",
    JobFailed(job::JobFailed) = "job.failed",
    JobCancelRequested(job::JobCancelRequested) = "job.cancel_requested",
    JobCancelled(job::JobCancelled) = "job.cancelled",
    JobLost(job::JobLost) = "job.lost",
    JobRetried(job::JobRetried) = "job.retried",
    ToolOutputRecorded(Box<tool_output::ToolOutputRecorded>) = "tool_output.recorded",
    ExternalOutputRecorded(Box<tool_output::ExternalOutputRecorded>) = "tool_output.external",
    ToolOutputImported(Box<tool_output::ToolOutputImported>) = "tool_output.imported",
    TelemetrySampled(telemetry::TelemetrySampled) = "telemetry.sampled",
    ProgressReported(tool_output::ProgressReported) = "progress.reported",
    LogLines(tool_output::LogLines) = "log.lines",
    QualityFlagged(quality::QualityFlagged) = "quality.flagged",
    QualityCleared(quality::QualityCleared) = "quality.cleared",
    ServerRegistered(server_host::ServerRegistered) = "server.registered",
    ServerEnrolled(server_host::ServerEnrolled) = "server.enrolled",
    ServerCapabilitiesReported(server_host::ServerCapabilitiesReported) = "server.capabilities_reported",
    ServerStateChanged(server_host::ServerStateChanged) = "server.state_changed",
    ServerRemoved(server_host::ServerRemoved) = "server.removed",
    ServerMaintenanceStarted(server_host::ServerMaintenanceStarted) = "server.maintenance_started",
    ServerMaintenanceEnded(server_host::ServerMaintenanceEnded) = "server.maintenance_ended",
    ModelRegistered(Box<catalogue::ModelRegistered>) = "model.registered",
    FrameworkRegistered(Box<catalogue::FrameworkRegistered>) = "framework.registered",
    ServerConfigRegistered(catalogue::ServerConfigRegistered) = "config.registered",
    ToolRegistered(catalogue::ToolRegistered) = "tool.registered",
    AcceleratorRegistered(Box<catalogue::AcceleratorRegistered>) = "accelerator.registered",
    EngineArgsSetRegistered(Box<catalogue::EngineArgsSetRegistered>) = "engine_args_set.registered",
    EngineArgsSetArchived(catalogue::EngineArgsSetArchived) = "engine_args_set.archived",
    ToolArgsSetSaved(tool_args::ToolArgsSetSaved) = "tool_args_set.saved",
    ToolArgsSetRemoved(tool_args::ToolArgsSetRemoved) = "tool_args_set.removed",
    ApprovalGranted(catalogue::ApprovalGranted) = "approval.granted",
    ApprovalRevoked(catalogue::ApprovalRevoked) = "approval.revoked",
    PromptSourceCreated(Box<prompt_source::PromptSourceCreated>) = "prompt_source.created",
    PromptSourceCalibrated(prompt_source::PromptSourceCalibrated) = "prompt_source.calibrated",
    OrgCreated(access::OrgCreated) = "org.created",
    OrgRenamed(access::OrgRenamed) = "org.renamed",
    MemberRoleSet(access::MemberRoleSet) = "org.member_role_set",
    InvitationCreated(access::InvitationCreated) = "org.invitation_created",
    InvitationAccepted(access::InvitationAccepted) = "org.invitation_accepted",
    InvitationRevoked(access::InvitationRevoked) = "org.invitation_revoked",
    QuotaSet(quota::QuotaSet) = "quota.set",
    QuotaLevelChanged(quota::QuotaLevelChanged) = "quota.level_changed",
    UserCreated(access::UserCreated) = "user.created",
    SignedIn(access::SignedIn) = "access.signed_in",
    SignInRefused(access::SignInRefused) = "access.sign_in_refused",
    TokenCreated(access::TokenCreated) = "access.token_created",
    TokenRevoked(access::TokenRevoked) = "access.token_revoked",
    ViewSaved(saved_view::ViewSaved) = "saved_view.saved",
    ViewRemoved(saved_view::ViewRemoved) = "saved_view.removed",
    SignedOut(access::SignedOut) = "access.signed_out",
    PasswordChanged(access::PasswordChanged) = "access.password_changed",
    ProfileChanged(access::ProfileChanged) = "access.profile_changed",
    IdentityLinked(access::IdentityLinked) = "access.identity_linked",
    EnrolTokenCreated(access::EnrolTokenCreated) = "access.enrol_token_created",
    Exported(access::Exported) = "access.exported",
    SecretStored(access::SecretStored) = "secret.stored",
    SecretRemoved(access::SecretRemoved) = "secret.removed",
    SecretReleased(access::SecretReleased) = "secret.released",
    NotificationPreferencesSet(access::NotificationPreferencesSet) = "notification.preferences_set",
    WebhookCreated(access::WebhookCreated) = "notification.webhook_created",
    WebhookRemoved(access::WebhookRemoved) = "notification.webhook_removed",
    NotificationSent(access::NotificationSent) = "notification.sent",
    NotificationAbandoned(access::NotificationAbandoned) = "notification.abandoned",
    BlobStored(system::BlobStored) = "blob.stored",
    BlobErased(system::BlobErased) = "blob.erased",
    ReportRejected(system::ReportRejected) = "report.rejected",
    ControlPlaneStarted(system::ControlPlaneStarted) = "control_plane.started",
}

impl Event {
    /// The version its payload is written in today.
    pub fn schema_version(&self) -> u16 {
        current_schema_version(self.event_type())
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
        Self::read(&Reader { event_type, schema_version, payload, old })?
            .ok_or_else(|| DecodeError::UnknownType { event_type: event_type.to_owned() })
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
        "tool_args_set" => "tool_args_set",
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
