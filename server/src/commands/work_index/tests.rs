use events::job::{JobClaimed, JobFailed, JobQueued};
use events::run::{RunCreated, RunFinished, RunOutcome};

use super::*;
use crate::domain::testing::{at, job_created, recorded_in, server_key};

/// A map that is told events one after another, each at the next position.
#[derive(Default)]
struct Told {
    index: Index,
    position: i64,
}

impl Told {
    fn tell(&mut self, stream: StreamKey, event: Event) {
        self.position += 1;
        let recorded = recorded_in(stream, &event, self.position, at(self.position));
        self.index.apply(&recorded).unwrap();
    }

    fn run(&mut self, number: u32, scenarios: &[&str]) -> RunKey {
        let run = RunKey { org: "acme".into(), project: "p".into(), workload: "w".into(), run: number };
        let scenario_codes = scenarios.iter().map(|code| (*code).to_owned()).collect();
        self.tell(
            run.stream(),
            Event::RunCreated(RunCreated { server: server_key(), scenario_codes, rerun_of: None }),
        );
        for code in scenarios {
            self.tell(run.job(code).stream(), Event::JobCreated(Box::new(job_created())));
        }
        run
    }

    fn queue(&mut self, job: &JobKey) {
        self.tell(job.stream(), Event::JobQueued(JobQueued { requeued: false }));
    }
}

#[test]
fn the_job_that_waits_longest_comes_first() {
    let mut told = Told::default();
    let (second, first) = (told.run(1, &["c1"]), told.run(2, &["c1"]));
    told.queue(&first.job("c1"));
    told.queue(&second.job("c1"));
    assert_eq!(told.index.queued_for(&server_key()), [first.job("c1"), second.job("c1")]);
    let elsewhere = ServerKey { hostname: "gpu-2".into(), ..server_key() };
    assert!(told.index.queued_for(&elsewhere).is_empty() && !told.index.work_waits_for(&elsewhere));
}

#[test]
fn a_claimed_job_is_held_and_waits_no_more() {
    let mut told = Told::default();
    let job = told.run(1, &["c1"]).job("c1");
    told.queue(&job);
    let claimed = JobClaimed { attempt: 1, agent: server_key().agent(), lease_s: 30 };
    told.tell(job.stream(), Event::JobClaimed(claimed));
    assert!(!told.index.work_waits_for(&server_key()));
    assert_eq!(told.index.held(Some(&server_key())).len(), 1);
}

#[test]
fn a_run_without_a_job_on_its_way_stands_still() {
    let mut told = Told::default();
    let run = told.run(1, &["c1", "c2"]);
    assert_eq!(told.index.idle_runs(), std::slice::from_ref(&run));
    told.queue(&run.job("c1"));
    assert!(told.index.idle_runs().is_empty());
    let failed = JobFailed {
        attempt: 0,
        code: "refused".into(),
        message: "m".into(),
        telemetry_samples: 0,
        log_lines: 0,
    };
    told.tell(run.job("c1").stream(), Event::JobFailed(failed));
    assert_eq!(told.index.idle_runs(), [run]);
}

#[test]
fn a_finished_run_leaves_the_map_and_its_number_stays_taken() {
    let mut told = Told::default();
    let run = told.run(3, &["c1"]);
    let finished = RunFinished { outcome: RunOutcome::Failed, completed: 0, failed: 1, cancelled: 0 };
    told.tell(run.stream(), Event::RunFinished(finished));
    assert!(told.index.open_job(&run.job("c1")).is_none() && told.index.idle_runs().is_empty());
    assert_eq!(told.index.last_run_of(&run.workload_key()), 3);
    told.queue(&run.job("c1"));
    assert!(!told.index.work_waits_for(&server_key()), "what comes late does not bring it back");
}
