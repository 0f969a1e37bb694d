//! What may happen to a job.

use events::Event;
use events::job::{
    JobCancelRequested, JobCancelled, JobClaimed, JobCompleted, JobFailed, JobLost, JobPhase, JobQueued,
    JobRetried, JobRunning, JobServing,
};
use events::quality::{QualityCleared, QualityFlagged};
use events::report::ReportBody;
use events::timestamp::Timestamp;
use events::tool_output::{ExternalOutputRecorded, ToolOutputRecorded};

use super::{AttemptEnd, CLOCK_TOLERANCE_MICROS, Job, MAX_ATTEMPTS};
use crate::domain::Refusal;

/// A report about an attempt that goes into the job's own stream.
#[derive(Debug, Clone, PartialEq)]
pub enum JobReport {
    /// The model server was started.
    Serving(JobServing),
    /// The load generator was started.
    Running(JobRunning),
    /// The tool's summary.
    Output(Box<ToolOutputRecorded>),
    /// A third-party tool's result.
    External(Box<ExternalOutputRecorded>),
    /// The attempt ended with a result.
    Completed(JobCompleted),
    /// The attempt ended without one.
    Failed(JobFailed),
    /// The attempt was stopped as asked.
    Cancelled(JobCancelled),
}

impl JobReport {
    /// The report of an agent's report item; nothing for those that go into other streams (capabilities, telemetry,
    /// progress, logs, blobs).
    pub fn from_body(body: &ReportBody) -> Option<Self> {
        Some(match body {
            ReportBody::Serving { serving, .. } => Self::Serving(serving.clone()),
            ReportBody::Running { running, .. } => Self::Running(running.clone()),
            ReportBody::ToolOutput { output, .. } => Self::Output(output.clone()),
            ReportBody::ExternalOutput { output, .. } => Self::External(output.clone()),
            ReportBody::Completed { completed, .. } => Self::Completed(completed.clone()),
            ReportBody::Failed { failed, .. } => Self::Failed(failed.clone()),
            ReportBody::Cancelled { cancelled, .. } => Self::Cancelled(cancelled.clone()),
            ReportBody::Capabilities { .. }
            | ReportBody::Telemetry { .. }
            | ReportBody::Progress { .. }
            | ReportBody::Log { .. }
            | ReportBody::Blob { .. } => return None,
        })
    }

    /// The attempt it is about.
    pub fn attempt(&self) -> u32 {
        match self {
            Self::Serving(report) => report.attempt,
            Self::Running(report) => report.attempt,
            Self::Output(report) => report.attempt,
            Self::External(report) => report.attempt,
            Self::Completed(report) => report.attempt,
            Self::Failed(report) => report.attempt,
            Self::Cancelled(report) => report.attempt,
        }
    }
}

impl Job {
    /// It is this job's turn in its run.
    ///
    /// # Errors
    /// `job_not_pending`.
    pub fn queue(&self) -> Result<Vec<Event>, Refusal> {
        if self.phase != JobPhase::Pending {
            return Err(Refusal::conflict("job_not_pending", format!("the job is {}", self.phase.as_str())));
        }
        Ok(vec![Event::JobQueued(JobQueued { requeued: false })])
    }

    /// An agent takes the job for `lease_s` seconds.
    ///
    /// # Errors
    /// `job_not_queued`, or `not_your_job` for the agent of another server.
    pub fn claim(&self, agent: &str, lease_s: u32) -> Result<Vec<Event>, Refusal> {
        if agent != self.server.agent() {
            return Err(not_your_job(agent));
        }
        if self.phase != JobPhase::Queued {
            return Err(Refusal::conflict("job_not_queued", format!("the job is {}", self.phase.as_str()))
                .hint("ask again for the next job"));
        }
        Ok(vec![Event::JobClaimed(JobClaimed {
            attempt: self.attempt() + 1,
            agent: agent.to_owned(),
            lease_s,
        })])
    }

    /// Whether a report with this time may be about this attempt of this agent: the rule for every report, telemetry,
    /// progress and log lines included, however late it arrives.
    ///
    /// # Errors
    /// `unknown_attempt`, `not_your_job`, `outside_window`.
    pub fn admit(&self, agent: &str, attempt: u32, at: Timestamp, now: Timestamp) -> Result<(), Refusal> {
        let Some(claimed) = self.attempt_numbered(attempt) else {
            return Err(Refusal::conflict("unknown_attempt", format!("the job has no attempt {attempt}"))
                .because(format!("its newest attempt is {}", self.attempt()))
                .hint("report only about attempts that a claim answered with"));
        };
        if claimed.agent != agent {
            return Err(not_your_job(agent));
        }
        let (from, until) = self.window(attempt).unwrap_or((claimed.claimed_at, None));
        let latest = until.map_or(now, |until| until.min(now));
        if from.micros_since(at) > CLOCK_TOLERANCE_MICROS || at.micros_since(latest) > CLOCK_TOLERANCE_MICROS
        {
            let end = until.map_or_else(|| format!("now, {now}"), |until| until.to_string());
            return Err(Refusal::conflict("outside_window", format!("{at} lies outside attempt {attempt}"))
                .because(format!("the attempt's window is {from} to {end}, with 5 s of tolerance"))
                .hint(
                    "check the host's clock (timedatectl status): it must agree with the control plane's",
                ));
        }
        Ok(())
    }

    /// What a report of `agent`, that happened `at`, becomes in the job's stream. A superseded attempt's reports are
    /// kept; [`Job::evolve`] sees to it that they change nothing.
    ///
    /// # Errors
    /// As [`Job::admit`]; `attempt_ended` after the agent itself ended the attempt; `already_reported` for a step of it that
    /// is in the log; `cancel_not_requested` when nobody asked to stop it.
    pub fn report(
        &self,
        agent: &str,
        report: &JobReport,
        at: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<Event>, Refusal> {
        let number = report.attempt();
        self.admit(agent, number, at, now)?;
        let Some(attempt) = self.attempt_numbered(number) else { return Ok(Vec::new()) };
        if attempt.end == Some(AttemptEnd::Reported) {
            return Err(Refusal::conflict("attempt_ended", format!("attempt {number} has ended already"))
                .hint("send what happened in the attempt before its end"));
        }
        let again = match report {
            JobReport::Serving(_) if attempt.serving => "its model server was started",
            JobReport::Running(_) if attempt.running => "its load generator was started",
            JobReport::Output(_) | JobReport::External(_) if attempt.has_output => "it has a result",
            _ => "",
        };
        if !again.is_empty() {
            return Err(Refusal::conflict("already_reported", format!("attempt {number}: {again} already"))
                .because("it is in the log under another event_id")
                .hint(
                    "report each step of an attempt once, and send it again under the event_id that it had",
                ));
        }
        Ok(vec![match report {
            JobReport::Serving(serving) => Event::JobServing(serving.clone()),
            JobReport::Running(running) => Event::JobRunning(running.clone()),
            JobReport::Output(output) => Event::ToolOutputRecorded(output.clone()),
            JobReport::External(output) => Event::ExternalOutputRecorded(output.clone()),
            JobReport::Completed(completed) if !attempt.has_output => Event::JobFailed(JobFailed {
                attempt: number,
                code: "no_summary".to_owned(),
                message: "The attempt was reported as completed, but the tool's summary is not in the log. \
                          Read the tool's log, then run the scenario again."
                    .to_owned(),
                telemetry_samples: completed.telemetry_samples,
                log_lines: completed.log_lines,
            }),
            JobReport::Completed(completed) => Event::JobCompleted(completed.clone()),
            JobReport::Failed(failed) => Event::JobFailed(failed.clone()),
            JobReport::Cancelled(cancelled) => {
                if !self.must_stop(number) {
                    return Err(Refusal::conflict(
                        "cancel_not_requested",
                        "nobody asked to stop this attempt",
                    )
                    .hint("report it as failed, with code agent_error"));
                }
                Event::JobCancelled(cancelled.clone())
            }
        }])
    }

    /// A person hands in the result of the newest attempt of a third-party tool, where its agent could not: the job is
    /// completed by it.
    ///
    /// # Errors
    /// `wrong_tool`, `job_not_running`, `result_exists`.
    pub fn hand_in(&self, output: ExternalOutputRecorded) -> Result<Vec<Event>, Refusal> {
        let tool = &output.invocation.tool_code;
        if self.workload.tool_code != *tool {
            let message = format!("the job is one of {}, not of {tool}", self.workload.tool_code);
            return Err(Refusal::invalid("wrong_tool", message).hint("name a job of that tool"));
        }
        if !self.is_held() && self.phase != JobPhase::Lost {
            let message = format!("the job is {}: no attempt of it waits for a result", self.phase.as_str());
            return Err(Refusal::conflict("job_not_running", message)
                .hint("hand in a result while its attempt runs, or run the scenario again"));
        }
        if self.attempts.last().is_some_and(|attempt| attempt.has_output) {
            return Err(Refusal::conflict("result_exists", "the attempt's result is in the log already")
                .hint("a result is never replaced; run the scenario again for another"));
        }
        let attempt = self.attempt();
        let output = ExternalOutputRecorded { attempt, ..output };
        Ok(vec![
            Event::ExternalOutputRecorded(Box::new(output)),
            // What the agent counted is not known here: nothing is claimed to be in the log.
            Event::JobCompleted(JobCompleted { attempt, telemetry_samples: 0, log_lines: 0 }),
        ])
    }

    /// A person stops the job: at once where no agent holds it, else as a request that its agent answers.
    /// Nothing to append when that was asked before.
    ///
    /// # Errors
    /// `job_ended`.
    pub fn cancel(&self) -> Result<Vec<Event>, Refusal> {
        if self.phase.is_terminal() {
            return Err(Refusal::conflict(
                "job_ended",
                format!("the job is {} already", self.phase.as_str()),
            ));
        }
        if self.is_held() {
            let events = if self.cancel_requested {
                vec![]
            } else {
                vec![Event::JobCancelRequested(JobCancelRequested {})]
            };
            return Ok(events);
        }
        Ok(vec![Event::JobCancelled(JobCancelled { attempt: self.attempt() })])
    }

    /// The lease of an attempt ran out. Nothing to append when that attempt is not held any more. A job that a person
    /// asked to stop ends as cancelled; the first loss puts the job back into the queue.
    pub fn lease_expired(&self, attempt: u32) -> Vec<Event> {
        if !self.is_held() || self.attempt() != attempt {
            return Vec::new();
        }
        if self.cancel_requested {
            return vec![Event::JobCancelled(JobCancelled { attempt })];
        }
        let requeue = attempt - self.retried_after.min(attempt) < MAX_ATTEMPTS;
        let mut events = vec![Event::JobLost(JobLost { attempt, requeue })];
        if requeue {
            events.push(Event::JobQueued(JobQueued { requeued: true }));
        }
        events
    }

    /// A person has a failed job tried again: it waits for its turn in its run.
    ///
    /// # Errors
    /// `job_not_failed`.
    pub fn retry(&self) -> Result<Vec<Event>, Refusal> {
        if !matches!(self.phase, JobPhase::Failed | JobPhase::Lost) {
            let message = format!("the job is {}, not failed", self.phase.as_str());
            return Err(Refusal::conflict("job_not_failed", message)
                .hint("a job that failed can be tried again; for anything else use rerun"));
        }
        Ok(vec![Event::JobRetried(JobRetried { attempt: self.attempt() })])
    }

    /// A result is doubted. Nothing to append when the rule has flagged it already, cleared or not.
    ///
    /// # Errors
    /// `no_result`.
    pub fn flag(&self, rule: &str, message: &str) -> Result<Vec<Event>, Refusal> {
        let Some(attempt) = self.result_attempt else {
            return Err(Refusal::conflict("no_result", "the job has no result to doubt")
                .because(format!("the job is {}", self.phase.as_str())));
        };
        if self.flags.contains_key(rule) {
            return Ok(Vec::new());
        }
        let flagged = QualityFlagged { attempt, rule: rule.to_owned(), message: message.to_owned() };
        Ok(vec![Event::QualityFlagged(flagged)])
    }

    /// A person clears a doubt, with a reason.
    ///
    /// # Errors
    /// `reason_missing`, `flag_not_found`.
    pub fn clear_flag(&self, rule: &str, reason: &str) -> Result<Vec<Event>, Refusal> {
        if reason.trim().is_empty() {
            return Err(Refusal::invalid("reason_missing", "a flag is cleared with a reason")
                .hint("say why the result can be trusted"));
        }
        match self.flags.get(rule) {
            Some(flag) if !flag.cleared => Ok(vec![Event::QualityCleared(QualityCleared {
                rule: rule.to_owned(),
                reason: reason.trim().to_owned(),
            })]),
            _ => Err(Refusal::not_found("flag_not_found", format!("the job has no open flag {rule:?}"))),
        }
    }
}

fn not_your_job(agent: &str) -> Refusal {
    Refusal::forbidden("not_your_job", format!("the job does not belong to agent {agent:?}"))
        .hint("an agent reports only about attempts that it claimed")
}
