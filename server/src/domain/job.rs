//! Jobs: the one state machine of a benchmark.
//!
//! ```text
//! pending → queued → claimed → serving → running → completed | failed | cancelled | lost
//! ```
//!
//! A claim is a lease with an attempt number. An agent silent past its lease loses the attempt: the job goes back to
//! the queue once, and is `lost` for good the second time. A person may have a failed or lost job tried again: it is
//! pending anew, and its next claim is one more attempt. Reports of a superseded attempt are kept in the log but
//! change neither state nor result; with no newer attempt, a late completion turns `lost` into `completed`.

mod decide;
mod standing;

use std::collections::BTreeMap;

use events::Event;
use events::envelope::Recorded;
use events::job::{JobCreated, JobPhase, ResolvedCommands};
use events::keys::ServerKey;
use events::timestamp::Timestamp;
use events::workload::{ScenarioSpec, WorkloadSpec};

use super::{Aggregate, LoadError, decode, wrong_beginning};

pub use decide::JobReport;
pub use standing::Standing;

/// How many attempts a job has in all: the first, and one more when the first is lost.
pub const MAX_ATTEMPTS: u32 = 2;

/// How far outside its attempt's window a report's time may lie, in microseconds.
///
/// The window begins when the control plane accepted the claim, by its clock; the report carries its host's clock. An
/// agent claims nothing while the two are further apart than [`events::report::CLOCK_LIMIT_MS`].
pub const CLOCK_TOLERANCE_MICROS: i64 = events::report::CLOCK_TOLERANCE_MS * 1_000;

/// How an attempt ended, if it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// Its agent said so: completed, failed or cancelled.
    Reported,
    /// Its lease ran out. Its agent may still report.
    Lost,
}

/// One claim of a job and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// The agent that claimed it.
    pub agent: String,
    /// When the claim was accepted: the start of its window.
    pub claimed_at: Timestamp,
    /// Seconds of silence after which it is lost.
    pub lease_s: u32,
    /// How it ended.
    pub end: Option<AttemptEnd>,
    /// When its agent says it ended: the end of its window.
    pub ended_at: Option<Timestamp>,
    /// The models that its model server said it serves, once it runs.
    pub served_models: Vec<String>,
    /// Whether its model server was started.
    pub serving: bool,
    /// Whether its load generator was started.
    pub running: bool,
    /// The version that its model server said it is, where it did.
    pub framework_version: Option<String>,
    /// Whether the tool's summary is in the log.
    pub has_output: bool,
    /// Telemetry samples its agent says it took; known once it ended.
    pub telemetry_samples: Option<u64>,
}

/// A doubt about a job's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// The attempt whose result is doubted.
    pub attempt: u32,
    /// What is odd.
    pub message: String,
    /// Whether a person looked at it and cleared it.
    pub cleared: bool,
}

/// A job as its stream's events made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The server it runs on.
    pub server: ServerKey,
    /// Its place in its run, from 0.
    pub ordinal: u32,
    /// The workload as it stood when the run was created.
    pub workload: WorkloadSpec,
    /// The scenario as it stood when the run was created.
    pub scenario: ScenarioSpec,
    /// The commands as resolved for it.
    pub commands: ResolvedCommands,
    /// Where it stands.
    pub phase: JobPhase,
    /// The attempts so far, oldest first.
    pub attempts: Vec<Attempt>,
    /// Whether a person asked to stop it.
    pub cancel_requested: bool,
    /// The newest attempt when a person last asked for another try: losses are counted from there.
    pub retried_after: u32,
    /// The attempt whose result counts.
    pub result_attempt: Option<u32>,
    /// Doubts about its result, by rule.
    pub flags: BTreeMap<String, Flag>,
    /// The version of its stream: what a decision about it expects.
    pub version: i64,
}

impl Aggregate for Job {
    fn begin(first: &Recorded) -> Result<Self, LoadError> {
        let Event::JobCreated(created) = decode(first)? else {
            return Err(wrong_beginning(first, "job", "job.created"));
        };
        Ok(Self::created(&created))
    }

    fn follow(&mut self, recorded: &Recorded) -> Result<(), LoadError> {
        self.evolve(&decode(recorded)?, recorded.occurred_at);
        Ok(())
    }
}

impl Job {
    /// The job as its creation made it.
    pub fn created(event: &JobCreated) -> Self {
        Self {
            server: event.server.clone(),
            ordinal: event.ordinal,
            workload: event.workload.clone(),
            scenario: event.scenario.clone(),
            commands: event.commands.clone(),
            phase: JobPhase::Pending,
            attempts: Vec::new(),
            cancel_requested: false,
            retried_after: 0,
            result_attempt: None,
            flags: BTreeMap::new(),
            version: 1,
        }
    }

    /// What an event makes of the job. `at` is when it occurred, as its sender says.
    pub fn evolve(&mut self, event: &Event, at: Timestamp) {
        self.version += 1;
        let before = self.standing();
        let after = before.after(event);
        match event {
            Event::JobClaimed(claimed) => self.attempts.push(Attempt {
                number: claimed.attempt,
                agent: claimed.agent.clone(),
                claimed_at: at,
                lease_s: claimed.lease_s,
                end: None,
                ended_at: None,
                served_models: Vec::new(),
                serving: false,
                running: false,
                framework_version: None,
                has_output: false,
                telemetry_samples: None,
            }),
            Event::JobServing(serving) => {
                if let Some(attempt) = self.attempt_mut(serving.attempt) {
                    attempt.serving = true;
                }
            }
            Event::JobRunning(running) => {
                if let Some(attempt) = self.attempt_mut(running.attempt) {
                    attempt.running = true;
                    attempt.served_models.clone_from(&running.served_models);
                    attempt.framework_version.clone_from(&running.framework_version);
                }
            }
            Event::ToolOutputRecorded(output) => {
                if let Some(attempt) = self.attempt_mut(output.attempt) {
                    attempt.has_output = true;
                }
            }
            Event::ExternalOutputRecorded(output) => {
                if let Some(attempt) = self.attempt_mut(output.attempt) {
                    attempt.has_output = true;
                }
            }
            Event::JobCompleted(completed) => {
                self.end_attempt(completed.attempt, at, Some(completed.telemetry_samples));
                if after.phase == JobPhase::Completed && before.phase != after.phase {
                    self.result_attempt = Some(completed.attempt);
                }
            }
            Event::JobFailed(failed) => self.end_attempt(failed.attempt, at, Some(failed.telemetry_samples)),
            Event::JobCancelRequested(_) => self.cancel_requested = true,
            Event::JobRetried(retried) => {
                self.cancel_requested = false;
                self.retried_after = retried.attempt;
            }
            // Cancelled while it waits for another attempt: the lost one's agent may still have things to report.
            Event::JobCancelled(_) if matches!(before.phase, JobPhase::Pending | JobPhase::Queued) => {}
            Event::JobCancelled(cancelled) => self.end_attempt(cancelled.attempt, at, None),
            Event::JobLost(lost) => {
                if let Some(attempt) = self.attempt_mut(lost.attempt) {
                    attempt.end.get_or_insert(AttemptEnd::Lost);
                }
            }
            Event::QualityFlagged(flagged) => {
                self.flags.insert(
                    flagged.rule.clone(),
                    Flag { attempt: flagged.attempt, message: flagged.message.clone(), cleared: false },
                );
            }
            Event::QualityCleared(cleared) => {
                if let Some(flag) = self.flags.get_mut(&cleared.rule) {
                    flag.cleared = true;
                }
            }
            // The rest only moves the phase, or lives in other streams.
            _ => {}
        }
        self.phase = after.phase;
    }

    /// Where the job stands.
    pub fn standing(&self) -> Standing {
        Standing { phase: self.phase, attempt: self.attempt() }
    }

    /// The number of the newest attempt; 0 when none has begun.
    pub fn attempt(&self) -> u32 {
        self.attempts.last().map_or(0, |attempt| attempt.number)
    }

    /// An attempt by its number.
    pub fn attempt_numbered(&self, number: u32) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.number == number)
    }

    /// Whether an agent holds the lease of the newest attempt.
    pub fn is_held(&self) -> bool {
        self.standing().is_held()
    }

    /// When an attempt's reports may have happened: from its claim until its agent's own end, or until the next
    /// attempt's claim where its agent never said that it ended. Nothing for an attempt that was never claimed.
    pub fn window(&self, attempt: u32) -> Option<(Timestamp, Option<Timestamp>)> {
        let index = self.attempts.iter().position(|a| a.number == attempt)?;
        let claimed = &self.attempts[index];
        let next_claim = self.attempts.get(index + 1).map(|next| next.claimed_at);
        let end = match (claimed.ended_at, next_claim) {
            (Some(ended), Some(next)) => Some(ended.min(next)),
            (ended, next) => ended.or(next),
        };
        Some((claimed.claimed_at, end))
    }

    /// Whether an agent that works on this attempt must stop: the job ended otherwise, a newer attempt began, or a
    /// person asked for it. A lost attempt without a newer one may go on: its completion still counts.
    pub fn must_stop(&self, attempt: u32) -> bool {
        let ended = matches!(self.phase, JobPhase::Completed | JobPhase::Failed | JobPhase::Cancelled);
        self.attempt() != attempt || self.cancel_requested || ended
    }

    fn attempt_mut(&mut self, number: u32) -> Option<&mut Attempt> {
        self.attempts.iter_mut().find(|attempt| attempt.number == number)
    }

    fn end_attempt(&mut self, number: u32, at: Timestamp, telemetry_samples: Option<u64>) {
        if let Some(attempt) = self.attempt_mut(number)
            && attempt.ended_at.is_none()
        {
            attempt.end = Some(AttemptEnd::Reported);
            attempt.ended_at = Some(at);
            attempt.telemetry_samples = telemetry_samples;
        }
    }
}

#[cfg(test)]
mod tests;
