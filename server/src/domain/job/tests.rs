use events::Event;
use events::job::{
    JobCancelRequested, JobCancelled, JobClaimed, JobCompleted, JobFailed, JobPhase, JobRunning, JobServing,
};
use events::timestamp::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::domain::testing::{at, job_created, recorded, server_key};

const LEASE_S: u32 = 30;

fn agent() -> String {
    server_key().agent()
}

fn serving(attempt: u32) -> JobReport {
    JobReport::Serving(JobServing {
        attempt,
        serve_argv: vec![],
        endpoint_urls: vec![],
        kept_from: None,
        further_argv: vec![],
        gpu_sets: vec![],
    })
}

fn running(attempt: u32) -> JobReport {
    JobReport::Running(JobRunning {
        attempt,
        tool_argv: vec![],
        tool_version: "0.1.0".into(),
        ready_after_s: 1.0,
        prompt_source_sha256: None,
        weights_revision: None,
        weights_sha256: None,
        framework_version: None,
        served_models: vec![],
    })
}

fn completed(attempt: u32) -> JobReport {
    JobReport::Completed(JobCompleted { attempt, telemetry_samples: 10, log_lines: 20 })
}

fn failed(attempt: u32) -> JobReport {
    JobReport::Failed(JobFailed {
        attempt,
        code: "server_exited".into(),
        message: "it exited".into(),
        telemetry_samples: 0,
        log_lines: 0,
    })
}

fn cancelled(attempt: u32) -> JobReport {
    JobReport::Cancelled(JobCancelled { attempt })
}

fn output(attempt: u32) -> JobReport {
    JobReport::Output(Box::new(crate::quality::testing::output(attempt)))
}

/// A job that a test drives, one decision after another.
struct Driven {
    job: Job,
    now: i64,
}

impl Driven {
    fn pending() -> Self {
        Self { job: Job::created(&job_created()), now: 0 }
    }

    fn queued() -> Self {
        let mut driven = Self::pending();
        driven.take(|job| job.queue());
        driven
    }

    fn claimed() -> Self {
        let mut driven = Self::queued();
        driven.claim();
        driven
    }

    fn running() -> Self {
        let mut driven = Self::claimed();
        driven.report(serving(1)).unwrap();
        driven.report(running(1)).unwrap();
        driven
    }

    fn lost_for_good() -> Self {
        let mut driven = Self::claimed();
        driven.lose(1);
        driven.claim();
        driven.lose(2);
        driven
    }

    fn tick(&mut self) -> Timestamp {
        self.now += 10;
        at(self.now)
    }

    fn apply(&mut self, events: Vec<Event>, when: Timestamp) {
        for event in events {
            self.job.evolve(&event, when);
        }
    }

    fn take(&mut self, decide: impl FnOnce(&Job) -> Result<Vec<Event>, crate::domain::Refusal>) {
        let now = self.tick();
        let events = decide(&self.job).expect("the decision is taken");
        self.apply(events, now);
    }

    fn claim(&mut self) {
        self.take(|job| job.claim(&agent(), LEASE_S));
    }

    fn lose(&mut self, attempt: u32) {
        let now = self.tick();
        let events = self.job.lease_expired(attempt);
        self.apply(events, now);
    }

    fn report(&mut self, report: JobReport) -> Result<(), &'static str> {
        let now = self.tick();
        let events = self.job.report(&agent(), &report, now, now).map_err(|refusal| refusal.code)?;
        self.apply(events, now);
        Ok(())
    }

    fn phase(&self) -> JobPhase {
        self.job.phase
    }
}

#[test]
fn a_job_goes_from_pending_to_completed_one_phase_after_another() {
    let mut driven = Driven::pending();
    assert_eq!(driven.phase(), JobPhase::Pending);
    driven.take(|job| job.queue());
    assert_eq!(driven.phase(), JobPhase::Queued);
    driven.claim();
    assert_eq!(driven.phase(), JobPhase::Claimed);
    driven.report(serving(1)).unwrap();
    assert_eq!(driven.phase(), JobPhase::Serving);
    driven.report(running(1)).unwrap();
    assert_eq!(driven.phase(), JobPhase::Running);
    driven.report(output(1)).unwrap();
    assert_eq!(driven.phase(), JobPhase::Running);
    driven.report(completed(1)).unwrap();
    assert_eq!(driven.phase(), JobPhase::Completed);
    assert_eq!(driven.job.result_attempt, Some(1));
}

#[test]
fn a_stream_makes_the_same_job_as_the_decisions_did() {
    let events = [
        Event::JobCreated(Box::new(job_created())),
        Event::JobQueued(events::job::JobQueued { requeued: false }),
        Event::JobClaimed(JobClaimed { attempt: 1, agent: agent(), lease_s: LEASE_S }),
        Event::JobCancelRequested(JobCancelRequested {}),
    ];
    let stream: Vec<_> = events.iter().zip(1..).map(|(event, v)| recorded(event, v, at(v))).collect();
    let job = Job::load(&stream).unwrap().unwrap();
    assert_eq!((job.phase, job.version, job.cancel_requested), (JobPhase::Claimed, 4, true));
    assert_eq!(job.attempts[0].claimed_at, at(3));
    assert_eq!(Job::load(&[]).unwrap(), None);
    assert!(Job::load(&stream[1..]).is_err());
}

#[test]
fn another_servers_agent_cannot_claim_or_report() {
    let driven = Driven::queued();
    assert_eq!(driven.job.claim("local-cpu~gpu-2", LEASE_S).unwrap_err().code, "not_your_job");
    let driven = Driven::running();
    let refusal = driven.job.report("local-cpu~gpu-2", &output(1), at(40), at(40)).unwrap_err();
    assert_eq!((refusal.code, refusal.class.status()), ("not_your_job", 403));
}

#[test]
fn a_claimed_job_cannot_be_claimed_again() {
    assert_eq!(Driven::claimed().job.claim(&agent(), LEASE_S).unwrap_err().code, "job_not_queued");
}

#[test]
fn the_first_loss_goes_back_to_the_queue_and_the_second_is_final() {
    let mut driven = Driven::claimed();
    driven.lose(1);
    assert_eq!(driven.phase(), JobPhase::Queued);
    driven.claim();
    assert_eq!(driven.job.attempt(), 2);
    driven.lose(2);
    assert_eq!(driven.phase(), JobPhase::Lost);
}

#[test]
fn a_late_completion_turns_lost_into_completed() {
    let mut driven = Driven::lost_for_good();
    driven.report(output(2)).unwrap();
    driven.report(completed(2)).unwrap();
    assert_eq!((driven.phase(), driven.job.result_attempt), (JobPhase::Completed, Some(2)));
}

#[test]
fn a_completion_before_the_requeued_job_is_claimed_again_counts() {
    let mut driven = Driven::running();
    driven.lose(1);
    driven.report(output(1)).unwrap();
    driven.report(completed(1)).unwrap();
    assert_eq!((driven.phase(), driven.job.result_attempt), (JobPhase::Completed, Some(1)));
}

#[test]
fn a_superseded_attempts_reports_are_kept_but_change_nothing() {
    let mut driven = Driven::running();
    driven.lose(1);
    driven.claim();
    let claimed_again = driven.job.attempts[1].claimed_at;
    let before = claimed_again.plus_micros(-1_000_000);
    for report in [output(1), completed(1)] {
        let events = driven.job.report(&agent(), &report, before, at(driven.now)).unwrap();
        assert_eq!(events.len(), 1, "kept");
        driven.apply(events, before);
    }
    assert_eq!((driven.phase(), driven.job.result_attempt), (JobPhase::Claimed, None));
    assert_eq!(driven.job.attempt(), 2);
}

#[test]
fn a_late_failure_leaves_a_lost_job_lost() {
    let mut driven = Driven::lost_for_good();
    driven.report(failed(2)).unwrap();
    assert_eq!(driven.phase(), JobPhase::Lost);
}

#[test]
fn a_completion_without_a_summary_is_a_failure() {
    let mut driven = Driven::running();
    driven.report(completed(1)).unwrap();
    assert_eq!((driven.phase(), driven.job.result_attempt), (JobPhase::Failed, None));
}

#[test]
fn nothing_more_is_reported_about_an_attempt_that_its_agent_ended() {
    let mut driven = Driven::running();
    driven.report(failed(1)).unwrap();
    let (now, end) = (at(driven.now), driven.job.window(1).unwrap().1.unwrap());
    let refusal = driven.job.report(&agent(), &output(1), end, now).unwrap_err();
    assert_eq!(refusal.code, "attempt_ended");
}

#[test]
fn each_step_of_an_attempt_is_reported_once() {
    let mut driven = Driven::running();
    assert_eq!(driven.report(running(1)), Err("already_reported"));
    driven.report(output(1)).unwrap();
    assert_eq!(driven.report(output(1)), Err("already_reported"));
    driven.report(completed(1)).unwrap();
    assert_eq!(driven.phase(), JobPhase::Completed);
}

#[test]
fn an_attempt_that_was_never_claimed_is_unknown() {
    assert_eq!(Driven::running().report(running(2)), Err("unknown_attempt"));
    assert_eq!(Driven::queued().report(running(1)), Err("unknown_attempt"));
}

#[test]
fn pending_and_queued_jobs_are_cancelled_at_once() {
    for mut driven in [Driven::pending(), Driven::queued()] {
        driven.take(Job::cancel);
        assert_eq!(driven.phase(), JobPhase::Cancelled);
        assert_eq!(driven.job.cancel().unwrap_err().code, "job_ended");
    }
}

#[test]
fn a_claimed_job_is_cancelled_when_its_agent_says_so() {
    let mut driven = Driven::running();
    assert_eq!(driven.report(cancelled(1)), Err("cancel_not_requested"));
    driven.take(Job::cancel);
    assert_eq!(driven.phase(), JobPhase::Running);
    assert!(driven.job.must_stop(1));
    assert_eq!(driven.job.cancel(), Ok(vec![]), "asked once");
    driven.report(cancelled(1)).unwrap();
    assert_eq!(driven.phase(), JobPhase::Cancelled);
}

#[test]
fn a_result_that_arrives_before_the_agent_could_stop_counts() {
    let mut driven = Driven::running();
    driven.take(Job::cancel);
    driven.report(output(1)).unwrap();
    driven.report(completed(1)).unwrap();
    assert_eq!(driven.phase(), JobPhase::Completed);
}

#[test]
fn a_job_that_was_to_stop_ends_cancelled_when_its_agent_is_silent() {
    let mut driven = Driven::running();
    driven.take(Job::cancel);
    driven.lose(1);
    assert_eq!(driven.phase(), JobPhase::Cancelled);
}

#[test]
fn a_lease_that_was_given_up_before_it_ran_out_changes_nothing() {
    let mut driven = Driven::running();
    driven.report(failed(1)).unwrap();
    assert_eq!(driven.job.lease_expired(1), []);
    assert_eq!(Driven::claimed().job.lease_expired(2), []);
}

#[test]
fn a_window_opens_with_the_claim_and_closes_with_the_agents_own_end() {
    let mut driven = Driven::running();
    let claimed_at = driven.job.attempts[0].claimed_at;
    assert_eq!(driven.job.window(1), Some((claimed_at, None)));
    assert_eq!(driven.job.window(2), None);
    driven.report(failed(1)).unwrap();
    assert_eq!(driven.job.window(1), Some((claimed_at, Some(at(driven.now)))));
}

#[test]
fn a_lost_attempts_window_closes_with_the_next_claim() {
    let mut driven = Driven::claimed();
    driven.lose(1);
    assert_eq!(driven.job.window(1).unwrap().1, None);
    driven.claim();
    assert_eq!(driven.job.window(1).unwrap().1, Some(driven.job.attempts[1].claimed_at));
}

#[test]
fn a_sample_is_judged_by_its_own_time_however_late_it_arrives() {
    let mut driven = Driven::running();
    let (from, _) = driven.job.window(1).unwrap();
    driven.report(failed(1)).unwrap();
    let end = driven.job.window(1).unwrap().1.unwrap();
    let a_day_later = at(86_400);
    let admit =
        |when: Timestamp| driven.job.admit(&agent(), 1, when, a_day_later).map_err(|refusal| refusal.code);
    assert_eq!(admit(from), Ok(()));
    assert_eq!(admit(end.plus_micros(CLOCK_TOLERANCE_MICROS)), Ok(()));
    assert_eq!(admit(from.plus_micros(-CLOCK_TOLERANCE_MICROS)), Ok(()));
    assert_eq!(admit(from.plus_micros(-CLOCK_TOLERANCE_MICROS - 1)), Err("outside_window"));
    assert_eq!(admit(end.plus_micros(CLOCK_TOLERANCE_MICROS + 1)), Err("outside_window"));
}

#[test]
fn a_sample_from_the_future_is_outside_an_open_window() {
    let driven = Driven::running();
    let now = at(driven.now);
    let refusal = driven.job.admit(&agent(), 1, now.plus_micros(60_000_000), now).unwrap_err();
    assert_eq!(refusal.code, "outside_window");
}

#[test]
fn a_lost_attempt_may_go_on_until_a_newer_one_begins() {
    let mut driven = Driven::running();
    driven.lose(1);
    assert!(!driven.job.must_stop(1));
    driven.claim();
    assert!(driven.job.must_stop(1));
    assert!(!driven.job.must_stop(2));
}

#[test]
fn an_attempt_whose_requeued_job_was_cancelled_may_still_say_that_it_stopped() {
    let mut driven = Driven::running();
    driven.lose(1);
    driven.take(Job::cancel);
    assert_eq!(driven.phase(), JobPhase::Cancelled);
    assert!(driven.job.must_stop(1));
    driven.report(cancelled(1)).unwrap();
    assert_eq!(driven.phase(), JobPhase::Cancelled);
}

#[test]
fn only_a_result_can_be_doubted_and_each_rule_once() {
    assert_eq!(Driven::running().job.flag("too_few_requests", "few").unwrap_err().code, "no_result");
    let mut driven = Driven::running();
    driven.report(output(1)).unwrap();
    driven.report(completed(1)).unwrap();
    driven.take(|job| job.flag("too_few_requests", "few"));
    assert_eq!(driven.job.flag("too_few_requests", "few"), Ok(vec![]));
    assert_eq!(driven.job.clear_flag("too_few_requests", "  ").unwrap_err().code, "reason_missing");
    driven.take(|job| job.clear_flag("too_few_requests", "a smoke test"));
    assert_eq!(driven.job.clear_flag("too_few_requests", "again").unwrap_err().code, "flag_not_found");
    assert_eq!(driven.job.flag("too_few_requests", "few"), Ok(vec![]), "a cleared flag stays cleared");
}

/// One thing that somebody tries to do to a job.
#[derive(Debug, Clone)]
enum Try {
    Queue,
    Claim,
    Cancel,
    LeaseExpired(u32),
    Report { kind: u8, attempt: u32, late_s: i64 },
    Flag,
}

fn tries() -> impl Strategy<Value = Try> {
    prop_oneof![
        1 => Just(Try::Queue),
        3 => Just(Try::Claim),
        1 => Just(Try::Cancel),
        2 => (0u32..4).prop_map(Try::LeaseExpired),
        8 => (0u8..6, 0u32..4, 0i64..40).prop_map(|(kind, attempt, late_s)| Try::Report { kind, attempt, late_s }),
        1 => Just(Try::Flag),
    ]
}

fn events_of(driven: &Driven, attempted: &Try) -> (Vec<Event>, Timestamp) {
    let now = at(driven.now);
    let job = &driven.job;
    match attempted {
        Try::Queue => (job.queue().unwrap_or_default(), now),
        Try::Claim => (job.claim(&agent(), LEASE_S).unwrap_or_default(), now),
        Try::Cancel => (job.cancel().unwrap_or_default(), now),
        Try::LeaseExpired(attempt) => (job.lease_expired(*attempt), now),
        Try::Flag => (job.flag("rule", "message").unwrap_or_default(), now),
        Try::Report { kind, attempt, late_s } => {
            let report = match kind {
                0 => serving(*attempt),
                1 => running(*attempt),
                2 => output(*attempt),
                3 => completed(*attempt),
                4 => failed(*attempt),
                _ => cancelled(*attempt),
            };
            let happened = at(driven.now - late_s);
            (job.report(&agent(), &report, happened, now).unwrap_or_default(), happened)
        }
    }
}

fn rank(phase: JobPhase) -> u8 {
    match phase {
        JobPhase::Pending => 0,
        JobPhase::Queued => 1,
        JobPhase::Claimed => 2,
        JobPhase::Serving => 3,
        JobPhase::Running => 4,
        _ => 5,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whatever_is_tried_the_machine_keeps_its_promises(attempts in proptest::collection::vec(tries(), 1..60)) {
        let mut driven = Driven::pending();
        let mut stream = vec![recorded(&Event::JobCreated(Box::new(job_created())), 1, at(0))];
        for attempted in &attempts {
            driven.now += 3;
            let (events, happened) = events_of(&driven, attempted);
            for event in events {
                let before = driven.job.clone();
                driven.job.evolve(&event, happened);
                stream.push(recorded(&event, driven.job.version, happened));
                let after = &driven.job;

                prop_assert_eq!(after.version, before.version + 1);
                let requeued = before.phase == JobPhase::Lost && after.phase == JobPhase::Queued;
                if before.phase.is_terminal() && !requeued {
                    let late = before.phase == JobPhase::Lost && after.phase == JobPhase::Completed;
                    prop_assert!(after.phase == before.phase || late, "{:?} became {:?}", before.phase, after.phase);
                }
                if requeued {
                    prop_assert!(before.attempt() < MAX_ATTEMPTS);
                }
                if before.is_held() && after.is_held() {
                    prop_assert!(rank(after.phase) >= rank(before.phase), "phases go forward");
                }
                if matches!(event, Event::JobClaimed(_)) {
                    prop_assert_eq!(after.attempt(), before.attempt() + 1);
                } else {
                    prop_assert_eq!(after.attempt(), before.attempt());
                }
                if let Some(result) = before.result_attempt {
                    prop_assert_eq!(after.result_attempt, Some(result), "a result stays");
                }
                prop_assert_eq!(after.result_attempt.is_some(), after.phase == JobPhase::Completed);
                if let Some(result) = after.result_attempt {
                    prop_assert!(after.attempt_numbered(result).is_some_and(|attempt| attempt.has_output));
                    prop_assert_eq!(result, after.attempt(), "only the newest attempt's result counts");
                }
            }
            let job = &driven.job;
            prop_assert!(job.attempt() <= MAX_ATTEMPTS);
            for pair in job.attempts.windows(2) {
                prop_assert_eq!(pair[1].number, pair[0].number + 1);
                prop_assert!(pair[0].claimed_at <= pair[1].claimed_at);
                let (_, end) = job.window(pair[0].number).unwrap();
                prop_assert!(end.is_some_and(|end| end <= pair[1].claimed_at), "windows do not overlap");
            }
            if job.phase == JobPhase::Queued || job.is_held() {
                let held = job.attempts.last().is_some_and(|attempt| attempt.end.is_none());
                prop_assert_eq!(job.is_held(), held, "a held job's newest attempt is open, and no other's is");
            }
        }
        prop_assert_eq!(Job::load(&stream).unwrap().unwrap(), driven.job, "replay gives the same job");
    }
}

#[test]
fn a_failed_job_is_tried_again_with_a_loss_to_spare_of_its_own() {
    let mut driven = Driven::running();
    assert_eq!(driven.job.retry().unwrap_err().code, "job_not_failed");
    driven.report(failed(1)).unwrap();
    driven.take(|job| job.retry());
    assert_eq!((driven.phase(), driven.job.attempt()), (JobPhase::Pending, 1));
    driven.take(|job| job.queue());
    // The attempt that failed says nothing more.
    assert!(driven.report(completed(1)).is_err());
    driven.claim();
    assert_eq!(driven.job.attempt(), 2);
    driven.lose(2);
    assert_eq!(driven.phase(), JobPhase::Queued, "the first loss after the retry goes back to the queue");
    driven.claim();
    driven.lose(3);
    assert_eq!(driven.phase(), JobPhase::Lost);
    driven.take(|job| job.retry());
    assert_eq!(driven.phase(), JobPhase::Pending);
}
