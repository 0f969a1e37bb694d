//! Runs: one execution of a workload across its scenarios, on a chosen server.

use events::Event;
use events::envelope::Recorded;
use events::job::JobPhase;
use events::keys::ServerKey;
use events::run::{RunCancelRequested, RunCreated, RunFinished, RunOutcome, RunReopened};

use super::{Aggregate, LoadError, Refusal, decode, wrong_beginning};

/// A run as its stream's events made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The server its jobs run on.
    pub server: ServerKey,
    /// Its scenarios in order; each is one job.
    pub scenario_codes: Vec<String>,
    /// Whether a person asked to stop it.
    pub cancel_requested: bool,
    /// How it ended, as last said.
    pub finished: Option<RunFinished>,
    /// The version of its stream.
    pub version: i64,
}

/// What a run needs next.
#[derive(Debug, Clone, PartialEq)]
pub enum Advance {
    /// A job of it is on its way.
    Wait,
    /// It is the turn of the job with this place in the run, from 0.
    Queue(usize),
    /// Its last job ended, or the counts changed since it was said to be finished: append this.
    Finish(RunFinished),
    /// It is finished, and nothing changed.
    Done,
}

impl Aggregate for Run {
    fn begin(first: &Recorded) -> Result<Self, LoadError> {
        let Event::RunCreated(created) = decode(first)? else {
            return Err(wrong_beginning(first, "run", "run.created"));
        };
        Ok(Self::created(&created))
    }

    fn follow(&mut self, recorded: &Recorded) -> Result<(), LoadError> {
        self.evolve(&decode(recorded)?);
        Ok(())
    }
}

impl Run {
    /// The run as its creation made it.
    pub fn created(event: &RunCreated) -> Self {
        Self {
            server: event.server.clone(),
            scenario_codes: event.scenario_codes.clone(),
            cancel_requested: false,
            finished: None,
            version: 1,
        }
    }

    /// What an event makes of the run.
    pub fn evolve(&mut self, event: &Event) {
        self.version += 1;
        match event {
            Event::RunCancelRequested(_) => self.cancel_requested = true,
            Event::RunFinished(finished) => self.finished = Some(finished.clone()),
            Event::RunReopened(_) => {
                self.finished = None;
                self.cancel_requested = false;
            }
            _ => {}
        }
    }

    /// A person asks to stop the run. Nothing to append when that was asked before.
    ///
    /// # Errors
    /// `run_finished`.
    pub fn cancel(&self) -> Result<Vec<Event>, Refusal> {
        if let Some(finished) = &self.finished {
            return Err(Refusal::conflict(
                "run_finished",
                format!("the run is {} already", finished.outcome.as_str()),
            ));
        }
        let events = vec![Event::RunCancelRequested(RunCancelRequested {})];
        Ok(if self.cancel_requested { vec![] } else { events })
    }

    /// One of its failed jobs is tried again. Nothing to append while the run goes on.
    pub fn reopen(&self) -> Vec<Event> {
        if self.finished.is_some() { vec![Event::RunReopened(RunReopened {})] } else { vec![] }
    }

    /// What the run needs next, from where its jobs stand, in order. Jobs go one after another; a failed one does not
    /// stop the later ones; the run fails if any of its jobs did. A late completion that turns a lost job into a
    /// completed one finishes the run anew.
    pub fn advance(&self, jobs: &[JobPhase]) -> Advance {
        if jobs.iter().any(|phase| !phase.is_terminal() && *phase != JobPhase::Pending) {
            return Advance::Wait;
        }
        if let Some(next) = jobs.iter().position(|phase| *phase == JobPhase::Pending) {
            return Advance::Queue(next);
        }
        let count = |wanted: &[JobPhase]| {
            u32::try_from(jobs.iter().filter(|phase| wanted.contains(phase)).count()).unwrap_or(u32::MAX)
        };
        let failed = count(&[JobPhase::Failed, JobPhase::Lost]);
        let cancelled = count(&[JobPhase::Cancelled]);
        let outcome = match (failed, cancelled) {
            (1.., _) => RunOutcome::Failed,
            (0, 1..) => RunOutcome::Cancelled,
            (0, 0) => RunOutcome::Completed,
        };
        let finished = RunFinished { outcome, completed: count(&[JobPhase::Completed]), failed, cancelled };
        if self.finished.as_ref() == Some(&finished) { Advance::Done } else { Advance::Finish(finished) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use JobPhase::{Cancelled, Completed, Failed, Lost, Pending, Queued, Running};

    fn run() -> Run {
        Run::created(&RunCreated {
            server: ServerKey { org: "acme".into(), config: "local-cpu".into(), hostname: "gpu-1".into() },
            scenario_codes: vec!["c1".into(), "c2".into()],
            rerun_of: None,
        })
    }

    #[test]
    fn jobs_go_one_after_another() {
        assert_eq!(run().advance(&[Running, Pending]), Advance::Wait);
        assert_eq!(run().advance(&[Queued, Pending]), Advance::Wait);
        assert_eq!(run().advance(&[Completed, Pending]), Advance::Queue(1));
    }

    #[test]
    fn a_failed_job_does_not_stop_the_later_ones_but_fails_the_run() {
        assert_eq!(run().advance(&[Failed, Pending]), Advance::Queue(1));
        let Advance::Finish(finished) = run().advance(&[Failed, Completed]) else { panic!("not finished") };
        assert_eq!(
            finished,
            RunFinished { outcome: RunOutcome::Failed, completed: 1, failed: 1, cancelled: 0 }
        );
    }

    #[test]
    fn a_run_finishes_once_for_the_same_counts() {
        let mut run = run();
        let Advance::Finish(finished) = run.advance(&[Completed, Completed]) else { panic!("not finished") };
        assert_eq!(finished.outcome, RunOutcome::Completed);
        run.evolve(&Event::RunFinished(finished));
        assert_eq!(run.advance(&[Completed, Completed]), Advance::Done);
    }

    #[test]
    fn a_late_completion_finishes_a_failed_run_anew() {
        let mut run = run();
        let Advance::Finish(failed) = run.advance(&[Completed, Lost]) else { panic!("not finished") };
        assert_eq!(failed.outcome, RunOutcome::Failed);
        run.evolve(&Event::RunFinished(failed));
        let Advance::Finish(completed) = run.advance(&[Completed, Completed]) else { panic!("not finished") };
        assert_eq!(completed.outcome, RunOutcome::Completed);
    }

    #[test]
    fn a_cancelled_job_makes_a_cancelled_run_unless_another_failed() {
        let outcome = |jobs: &[JobPhase]| match run().advance(jobs) {
            Advance::Finish(finished) => finished.outcome,
            other => panic!("{other:?}"),
        };
        assert_eq!(outcome(&[Completed, Cancelled]), RunOutcome::Cancelled);
        assert_eq!(outcome(&[Failed, Cancelled]), RunOutcome::Failed);
    }

    #[test]
    fn a_finished_run_is_reopened_for_a_job_that_is_tried_again_and_finishes_anew() {
        let mut run = run();
        assert_eq!(run.reopen(), [], "it goes on anyway");
        let Advance::Finish(failed) = run.advance(&[Completed, Failed]) else { panic!("not finished") };
        run.evolve(&Event::RunFinished(failed.clone()));
        let reopened = run.reopen();
        run.evolve(&reopened[0]);
        assert_eq!(run.advance(&[Completed, Pending]), Advance::Queue(1));
        // The same counts again are another end.
        assert_eq!(run.advance(&[Completed, Failed]), Advance::Finish(failed));
    }

    #[test]
    fn asking_twice_to_cancel_is_one_event() {
        let mut run = run();
        let events = run.cancel().unwrap();
        run.evolve(&events[0]);
        assert_eq!(run.cancel(), Ok(vec![]));
    }
}
