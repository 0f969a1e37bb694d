//! Judging one report: what it becomes and in which stream, or why it is refused.

use events::canonical::CanonicalJson;
use events::envelope::{MAX_PAYLOAD_BYTES, NewEvent};
use events::keys::JobKey;
use events::report::{ReportBody, ReportItem};
use events::server_host::ServerCapabilitiesReported;
use events::timestamp::Timestamp;
use events::{Event, StreamKey};
use uuid::Uuid;

use super::jobs::LoadedJob;
use super::{Refused, bounds};
use crate::auth::AgentIdentity;
use crate::domain::Refusal;
use crate::domain::job::JobReport;

/// A report that was judged good.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    /// Where it goes.
    pub stream: StreamKey,
    /// Whether the stream's version matters: it does for the job's own stream, on which decisions are made.
    pub decides: bool,
    /// What it becomes.
    pub event: Event,
}

/// Whose job, which attempt.
pub(super) struct About<'a> {
    pub key: &'a JobKey,
    pub attempt: u32,
    pub loaded: Option<&'a LoadedJob>,
}

/// Judges a report about a job. Pure.
///
/// # Errors
/// [`Refused`]: not this agent's job or attempt, outside its window, or out of bounds.
pub(super) fn judge(
    identity: &AgentIdentity,
    item: &ReportItem,
    about: &About<'_>,
    now: Timestamp,
) -> Result<Judged, Refused> {
    let About { key, attempt, loaded } = *about;
    if key.org != identity.org() {
        return Err(not_your_job());
    }
    let job = &loaded.ok_or_else(no_such_job)?.job;
    if let Some(report) = JobReport::from_body(&item.body) {
        let mut events = job.report(&identity.agent, &report, item.at, now)?;
        // A report is one claim and becomes one event.
        let event = events.pop().filter(|_| events.is_empty()).ok_or_else(no_such_job)?;
        return Ok(Judged { stream: key.stream(), decides: true, event });
    }
    let admit = |at: Timestamp| job.admit(&identity.agent, attempt, at, now).map_err(Refused::from);
    admit(item.at)?;
    match &item.body {
        ReportBody::Telemetry { telemetry, .. } => {
            telemetry.samples.iter().try_for_each(|sample| admit(sample.at))?;
        }
        ReportBody::Blob { blob, .. }
            if blob.job.as_deref().is_some_and(|job| job != key.stream().as_str()) =>
        {
            return Err(Refused::new(
                "not_your_job",
                "the blob names another job than the report",
                "name the report's own job, or none",
            ));
        }
        _ => {}
    }
    let (stream, event) = natural(identity, &item.body);
    Ok(Judged { stream, decides: false, event })
}

/// What a report becomes when nothing speaks against it, and in which stream.
pub(super) fn natural(identity: &AgentIdentity, body: &ReportBody) -> (StreamKey, Event) {
    match body {
        ReportBody::Capabilities { capabilities } => (
            identity.server.stream(),
            Event::ServerCapabilitiesReported(ServerCapabilitiesReported {
                capabilities: capabilities.clone(),
            }),
        ),
        ReportBody::Serving { job, serving } => (job.stream(), Event::JobServing(serving.clone())),
        ReportBody::Running { job, running } => (job.stream(), Event::JobRunning(running.clone())),
        ReportBody::ToolOutput { job, output } => (job.stream(), Event::ToolOutputRecorded(output.clone())),
        ReportBody::ExternalOutput { job, output } => {
            (job.stream(), Event::ExternalOutputRecorded(output.clone()))
        }
        ReportBody::Completed { job, completed } => (job.stream(), Event::JobCompleted(completed.clone())),
        ReportBody::Failed { job, failed } => (job.stream(), Event::JobFailed(failed.clone())),
        ReportBody::Cancelled { job, cancelled } => (job.stream(), Event::JobCancelled(cancelled.clone())),
        ReportBody::Telemetry { job, attempt, telemetry } => {
            (job.telemetry_stream(*attempt), Event::TelemetrySampled(telemetry.clone()))
        }
        ReportBody::Progress { job, attempt, progress } => {
            (job.progress_stream(*attempt), Event::ProgressReported(progress.clone()))
        }
        ReportBody::Log { job, attempt, log } => (job.logs_stream(*attempt), Event::LogLines(log.clone())),
        ReportBody::Blob { blob, .. } => {
            (StreamKey::new("blob", &[identity.org(), &blob.sha256]), Event::BlobStored(blob.clone()))
        }
    }
}

// What is refused is recorded in the server's stream, which more people read than the job's: a job is not named.

fn no_such_job() -> Refused {
    Refusal::not_found("job_not_found", "there is no job of the report's key")
        .hint("drop the report; report only about jobs that a claim answered with")
        .into()
}

fn not_your_job() -> Refused {
    Refusal::forbidden("not_your_job", "the report's job is not one of this agent's")
        .hint("an agent reports only about attempts that it claimed")
        .into()
}

/// The event of a report, in its envelope.
///
/// # Errors
/// [`Refused`]: it is too large, or holds what the log cannot.
pub(super) fn envelope(
    identity: &AgentIdentity,
    item: &ReportItem,
    judged: &Judged,
    causation_id: Option<Uuid>,
    correlation_id: Option<Uuid>,
) -> Result<NewEvent, Refused> {
    let refused = |error: String| {
        Refused::new("bad_value", error, "replace the character or the number before sending")
    };
    let value = judged.event.payload().map_err(|error| refused(error.to_string()))?;
    let payload = CanonicalJson::of(&value).map_err(|error| refused(error.to_string()))?;
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(Refused::new(
            "event_too_large",
            format!("the report is {} bytes, an event is at most {MAX_PAYLOAD_BYTES}", payload.len()),
            "send less in one report; bulky content goes to a blob",
        ));
    }
    Ok(NewEvent {
        event_id: item.event_id,
        event_type: judged.event.event_type().to_owned(),
        schema_version: judged.event.schema_version(),
        org: identity.org().to_owned(),
        actor: identity.actor(),
        causation_id,
        correlation_id,
        occurred_at: item.at,
        payload,
    })
}

/// Checks what is the same for every report.
///
/// # Errors
/// [`Refused`] names what is out of bounds.
pub(super) fn check_item(item: &ReportItem, max_blob_bytes: u64) -> Result<(), Refused> {
    // Ids that follow time keep what finds a resend small and near; the nil id is no version at all.
    if item.event_id.get_version_num() != 7 {
        return Err(Refused::new(
            "bad_event_id",
            format!("event_id {} is no uuid v7", item.event_id),
            "make a uuid v7 for each report",
        ));
    }
    bounds::check(&item.body, max_blob_bytes)
}
