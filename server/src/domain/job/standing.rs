//! The state machine itself: what each event makes of a job's phase.

use events::Event;
use events::job::JobPhase;

/// Where a job stands: its phase and its newest attempt. Decisions and read models both follow it by [`Standing::after`],
/// so that there is one state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The phase.
    pub phase: JobPhase,
    /// The newest attempt; 0 when none has begun.
    pub attempt: u32,
}

impl Standing {
    /// A job that was just created.
    pub const NEW: Self = Self { phase: JobPhase::Pending, attempt: 0 };

    /// Whether an agent holds the lease of the newest attempt.
    pub fn is_held(self) -> bool {
        matches!(self.phase, JobPhase::Claimed | JobPhase::Serving | JobPhase::Running)
    }

    /// Where the job stands after an event of its stream. What a superseded attempt reports changes nothing; a
    /// completion of the newest attempt counts also when it was lost, or lost and put back into the queue.
    #[must_use]
    pub fn after(self, event: &Event) -> Self {
        use JobPhase::{Cancelled, Claimed, Completed, Failed, Lost, Pending, Queued, Running, Serving};
        let held = self.is_held();
        let to = |phase, counts| Self { phase: if counts { phase } else { self.phase }, ..self };
        match event {
            Event::JobQueued(_) => to(Queued, true),
            Event::JobRetried(_) => to(Pending, matches!(self.phase, Failed | Lost)),
            Event::JobClaimed(claimed) => Self { phase: Claimed, attempt: claimed.attempt },
            Event::JobServing(e) => to(Serving, e.attempt == self.attempt && self.phase == Claimed),
            Event::JobRunning(e) => {
                to(Running, e.attempt == self.attempt && matches!(self.phase, Claimed | Serving))
            }
            Event::JobCompleted(e) => {
                let requeued = matches!(self.phase, Pending | Queued) && self.attempt > 0;
                to(Completed, e.attempt == self.attempt && (held || self.phase == Lost || requeued))
            }
            Event::JobFailed(e) => {
                let unclaimed = e.attempt == 0 && matches!(self.phase, Pending | Queued);
                to(Failed, e.attempt == self.attempt && (held || unclaimed))
            }
            Event::JobCancelled(e) => to(Cancelled, e.attempt == self.attempt && !self.phase.is_terminal()),
            Event::JobLost(e) => to(Lost, e.attempt == self.attempt && held),
            _ => self,
        }
    }
}
