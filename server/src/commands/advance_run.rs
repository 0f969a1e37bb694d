//! What follows when a job has ended: its result is checked, and the run goes on or finishes.
//!
//! Idempotent, and safe in several processes at once: every append names the version it was decided on, so that of two
//! that decide the same only one appends. Called after a job's end, at the start, and by the watch.

use events::Event;
use events::envelope::Recorded;
use events::job::JobPhase;
use events::keys::{JobKey, RunKey};
use events::telemetry::TelemetrySampled;
use events::timestamp::Timestamp;
use uuid::Uuid;

use super::append::{Maker, NotAppended, append, event_id_of};
use super::{CommandError, calibration, leases, load, nudge};
use crate::domain::run::Advance;
use crate::domain::{Aggregate, Job, Run, decode};
use crate::log::{Expected, StreamWrite};
use crate::quality::{self, TelemetryFacts};
use crate::state::AppState;

const TRIES: u32 = 16;

/// A job has ended: checks its result, lets go of its leases, and advances its run. Call it after every report that
/// ended a job; calling it again, or too early, does no harm.
///
/// # Errors
/// The log or the database does not answer.
pub async fn job_ended(
    state: &AppState,
    key: &JobKey,
    causation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<(), CommandError> {
    // Before the run can finish: a run that is not finished is looked at again after a crash.
    check_quality(state, key, now).await?;
    calibration::record(state, key, now).await?;
    // A superseded attempt ends too, while a newer one is held: that one keeps its lease.
    if load::job(&state.log, key).await?.phase.is_terminal() {
        leases::release(&state.pool, key).await?;
    }
    advance_run(state, &key.run_key(), causation_id, now).await?;
    Ok(())
}

/// Queues the run's next job, or finishes the run. The position of what was appended last; nothing where there was
/// nothing to do.
///
/// # Errors
/// The log does not answer, or there is no such run.
pub async fn advance_run(
    state: &AppState,
    key: &RunKey,
    causation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<Option<i64>, CommandError> {
    for _ in 0..TRIES {
        let run = load::run(&state.log, key).await?;
        let jobs = jobs_of(state, key, &run).await?;
        let phases: Vec<JobPhase> = jobs.iter().map(|(_, job)| job.phase).collect();
        let maker = Maker::system(causation_id, now);
        let (stream, expected, event, id) = match run.advance(&phases) {
            Advance::Wait | Advance::Done => return Ok(None),
            Advance::Queue(next) => {
                let (job_key, job) = &jobs[next];
                let Some(event) = job.queue()?.into_iter().next() else { return Ok(None) };
                let stream = job_key.stream();
                // Its turn may come again: once for every version of the job in which it is pending.
                let id = event_id_of(&[stream.as_str(), "queued", &job.version.to_string()]);
                (stream, Expected::Exact(job.version), event, id)
            }
            Advance::Finish(finished) => {
                let stream = key.stream();
                let id = event_id_of(&[stream.as_str(), "finished", &run.version.to_string()]);
                (stream, Expected::Exact(run.version), Event::RunFinished(finished), id)
            }
        };
        let event = maker.event(&stream, &event, id)?;
        match append(&state.log, vec![StreamWrite { stream: stream.clone(), expected, events: vec![event] }])
            .await
        {
            Ok(position) => {
                if stream.kind() == "job" {
                    nudge::work_available(state, &run.server).await;
                }
                return Ok(Some(position));
            }
            // Somebody did the same, or a job moved: look again.
            Err(NotAppended::Moved(_)) => {}
            // Another process used the same id at another moment: the same fact, appended already.
            Err(NotAppended::Error(error)) => {
                if state.log.event_by_id(id).await?.is_none() {
                    return Err(error);
                }
            }
        }
    }
    Err(CommandError::contended(key))
}

async fn jobs_of(state: &AppState, key: &RunKey, run: &Run) -> Result<Vec<(JobKey, Job)>, CommandError> {
    let mut jobs = Vec::new();
    for code in &run.scenario_codes {
        let job_key = key.job(code);
        let job = load::job(&state.log, &job_key).await?;
        jobs.push((job_key, job));
    }
    Ok(jobs)
}

/// Flags what is odd about a job's result, each doubt once.
///
/// # Errors
/// The log does not answer.
pub async fn check_quality(state: &AppState, key: &JobKey, now: Timestamp) -> Result<(), CommandError> {
    for _ in 0..TRIES {
        let events = load::stream(&state.log, &key.stream()).await?;
        let Some(job) = Job::load(&events)? else { return Ok(()) };
        let Some(attempt) = job.result_attempt else { return Ok(()) };
        let Some((output, read_at)) = output_of(&events, attempt)? else { return Ok(()) };
        let telemetry = telemetry_of(state, key, &job, attempt).await?;
        let (from, to) = match &output {
            Event::ToolOutputRecorded(output) => {
                (output.summary.window_started_at, output.summary.window_ended_at.or(Some(read_at)))
            }
            _ => (None, Some(read_at)),
        };
        let telemetry = telemetry.over(from, to, gpus_of(state, &job).await?);
        let maker = Maker::system(None, now);
        let stream = key.stream();
        let mut flagged = Vec::new();
        let doubts = match &output {
            Event::ToolOutputRecorded(output) => quality::check(&job, output, &telemetry),
            Event::ExternalOutputRecorded(output) => quality::check_external(&job, output, &telemetry),
            _ => Vec::new(),
        };
        for flag in doubts {
            for event in job.flag(&flag.rule, &flag.message)? {
                let id = event_id_of(&[stream.as_str(), "flagged", &attempt.to_string(), &flag.rule]);
                flagged.push(maker.event(&stream, &event, id)?);
            }
        }
        let Some(first) = flagged.first().map(|event| event.event_id) else { return Ok(()) };
        let write =
            StreamWrite { stream: stream.clone(), expected: Expected::Exact(job.version), events: flagged };
        match append(&state.log, vec![write]).await {
            Ok(_) => return Ok(()),
            Err(NotAppended::Moved(_)) => {}
            // Somebody flagged the same at another moment: look again, and find nothing left to say.
            Err(NotAppended::Error(error)) => {
                if state.log.event_by_id(first).await?.is_none() {
                    return Err(error);
                }
            }
        }
    }
    Err(CommandError::contended(key))
}

/// The GPUs that the agent of a job's server sees.
async fn gpus_of(state: &AppState, job: &Job) -> Result<u32, CommandError> {
    let server = load::server(&state.log, &job.server).await?;
    let seen = server.and_then(|server| server.capabilities).map_or(0, |host| host.gpus.len());
    Ok(u32::try_from(seen).unwrap_or(u32::MAX))
}

/// What an attempt's tool measured, and when the agent read it.
pub(super) fn output_of(
    events: &[Recorded],
    attempt: u32,
) -> Result<Option<(Event, Timestamp)>, CommandError> {
    for recorded in events.iter().rev().filter(|recorded| recorded.event_type.starts_with("tool_output.")) {
        let event = decode(recorded)?;
        let of = match &event {
            Event::ToolOutputRecorded(output) => output.attempt,
            Event::ExternalOutputRecorded(output) => output.attempt,
            _ => continue,
        };
        if of == attempt {
            return Ok(Some((event, recorded.occurred_at)));
        }
    }
    Ok(None)
}

async fn telemetry_of(
    state: &AppState,
    key: &JobKey,
    job: &Job,
    attempt: u32,
) -> Result<TelemetryFacts, CommandError> {
    let mut sampled: Vec<TelemetrySampled> = Vec::new();
    for recorded in load::stream(&state.log, &key.telemetry_stream(attempt)).await? {
        if let Event::TelemetrySampled(event) = decode(&recorded)? {
            sampled.push(event);
        }
    }
    let taken = job.attempt_numbered(attempt).and_then(|attempt| attempt.telemetry_samples);
    Ok(TelemetryFacts::of(&sampled, taken))
}
