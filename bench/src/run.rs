//! The work loop: one for all load generators, parameterised by pacing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures::{FutureExt, StreamExt};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use crate::balance::{Balancer, Strategy};
use crate::collect::Collector;
use crate::endpoints::RoundRobin;
use crate::http::pool::Pool;
use crate::http::request::RequestHead;
use crate::links::AT_ONCE;
use crate::live::Live;
use crate::pacing::{Pacing, PreciseTimer, Schedule, slot_start};
use crate::record::{Phase, Record};
use crate::request_log::RequestLog;
use crate::signals::Control;
use crate::workload::Workload;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// When to send.
    pub pacing: Pacing,
    /// Requests to measure; none when only time ends the run.
    pub requests: Option<u64>,
    /// Time to measure, from the end of the ramp-up.
    pub duration: Option<Duration>,
    /// Requests to send first.
    pub warmup: u64,
    /// The longest one request may take.
    pub request_timeout: Duration,
    /// Seed of arrival times.
    pub seed: u64,
    /// How endpoints are picked.
    pub strategy: Strategy,
    /// Further tries of a request that failed for a passing reason.
    pub retries: u32,
    /// The wait before the first of them; doubled for each further one.
    pub retry_backoff: Duration,
}

/// One endpoint, ready for requests.
pub struct Target {
    /// Its connections.
    pub pool: Arc<Pool>,
    /// What each request begins with.
    pub head: RequestHead,
    /// Its share of the traffic.
    pub weight: u32,
}

/// What the progress display reads.
#[derive(Debug, Default)]
pub struct Gauges {
    /// Requests under way.
    pub in_flight: AtomicU64,
    /// The most there ever were.
    pub max_in_flight: AtomicU64,
    /// Requests begun for measurement.
    pub begun: AtomicU64,
    /// Where the run stands: 0 starting, 1 warm-up, 2 ramp-up, 3 running, 4 drain, 5 done.
    pub stage: AtomicU64,
    /// Our own reference server answered.
    pub simulated: AtomicBool,
}

/// Names of [`Gauges::stage`].
pub const STAGES: [&str; 6] = ["starting", "warmup", "ramp_up", "running", "drain", "done"];

/// A run under way.
pub struct Run<W> {
    pub(crate) workload: W,
    pub(crate) plan: Plan,
    pub(crate) targets: Vec<Target>,
    balancer: Mutex<Balancer>,
    pub(crate) run_tag: String,
    collector: Mutex<Collector>,
    pub(crate) log: Option<RequestLog>,
    /// Answers still looked into after their slot was freed.
    pub(crate) inspections: TaskTracker,
    /// Requests of which something is yet to be had from elsewhere, once the load is over.
    pub(crate) unfinished: Mutex<Vec<Record>>,
    /// For the progress display.
    pub gauges: Gauges,
    /// What arrives, counted as it does.
    pub live: Arc<Live>,
    /// For whoever wants to end it.
    pub control: Control,
}

impl<W: Workload> Run<W> {
    /// A run, not yet started. `run_tag` begins each request id.
    pub fn new(
        workload: W,
        plan: Plan,
        targets: Vec<Target>,
        collector: Collector,
        log: Option<RequestLog>,
        run_tag: String,
        control: Control,
    ) -> Arc<Self> {
        let weights: Vec<u32> = targets.iter().map(|target| target.weight).collect();
        let balancer = Mutex::new(Balancer::new(plan.strategy, &weights, plan.seed));
        Arc::new(Self {
            workload,
            plan,
            targets,
            balancer,
            run_tag,
            collector: Mutex::new(collector),
            log,
            inspections: TaskTracker::new(),
            unfinished: Mutex::default(),
            gauges: Gauges::default(),
            live: Arc::default(),
            control,
        })
    }

    /// The figures so far.
    pub fn collector(&self) -> MutexGuard<'_, Collector> {
        self.collector.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn balancer(&self) -> MutexGuard<'_, Balancer> {
        self.balancer.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What is to be done.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Closes the request log, waiting for what it still holds.
    pub fn close_log(&self) -> std::io::Result<()> {
        self.log.as_ref().map_or(Ok(()), RequestLog::close)
    }

    /// Does the whole run.
    pub async fn execute(self: &Arc<Self>) {
        self.warm_up().await;
        self.open_connections_ahead().await;
        let start = Instant::now();
        let measure_from = start + self.plan.pacing.ramp_up();
        self.collector().open_window(measure_from);
        self.set_stage(if measure_from > start { 2 } else { 3 });
        let clock = self.watch_clock(measure_from);
        match self.plan.pacing {
            Pacing::Closed { concurrency, ramp_up } => {
                self.run_slots(concurrency, ramp_up, start, measure_from).await;
            }
            Pacing::Open { rate, arrival, max_concurrency, .. } => {
                let schedule = Schedule::new(rate, arrival, self.plan.seed);
                self.run_schedule(schedule, max_concurrency, start, measure_from).await;
            }
        }
        clock.abort();
        self.inspections.close();
        self.inspections.wait().await;
        if self.control.cancelled.is_cancelled() {
            self.collector().close_window(Instant::now());
        }
        self.set_stage(4);
    }

    /// Gets what is yet to be had of requests that ended, now that nothing is measured any more. An interrupt ends it.
    pub async fn finish(self: &Arc<Self>) {
        let unfinished = std::mem::take(&mut *self.unfinished());
        let limit = tokio::time::sleep(self.workload.completion_limit());
        let over = async {
            tokio::select! {
                () = limit => "there was no time left to fetch it (--fetch-timeout)",
                () = self.control.cancelled.cancelled() => "the run was interrupted before it was fetched",
            }
        };
        let over = over.shared();
        let completing = futures::stream::iter(unfinished).map(|mut record| {
            let over = over.clone();
            async move {
                let given_up = tokio::select! {
                    biased;
                    reason = over => Some(reason),
                    () = self.workload.complete(record.endpoint, record.index, &mut record.extra) => None,
                };
                if let Some(reason) = given_up {
                    self.workload.give_up(&mut record.extra, reason);
                }
                self.collector().learn(&record);
                if let Some(log) = &self.log {
                    log.write(&record);
                }
            }
        });
        completing.buffer_unordered(AT_ONCE).collect::<()>().await;
        self.set_stage(5);
    }

    pub(crate) fn unfinished(&self) -> MutexGuard<'_, Vec<Record>> {
        self.unfinished.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn set_stage(&self, stage: u64) {
        self.gauges.stage.fetch_max(stage, Relaxed);
    }

    fn is_stopping(&self) -> bool {
        self.control.stop.is_cancelled()
    }

    /// Moves the stage along, and stops the run when its time is over.
    fn watch_clock(self: &Arc<Self>, measure_from: Instant) -> tokio::task::JoinHandle<()> {
        let run = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep_until(measure_from.into()).await;
            run.set_stage(3);
            if let Some(duration) = run.plan.duration {
                tokio::time::sleep_until((measure_from + duration).into()).await;
                run.set_stage(4);
                run.control.stop.cancel();
            }
        })
    }

    async fn warm_up(self: &Arc<Self>) {
        if self.plan.warmup == 0 {
            return;
        }
        self.set_stage(1);
        let at_once = match self.plan.pacing {
            Pacing::Closed { concurrency, .. } => concurrency,
            Pacing::Open { max_concurrency, .. } => max_concurrency.unwrap_or(8),
        };
        let next = Arc::new(AtomicU64::new(0));
        let mut slots = JoinSet::new();
        for _ in 0..u64::from(at_once).min(self.plan.warmup) {
            let (run, next) = (Arc::clone(self), Arc::clone(&next));
            slots.spawn(async move {
                while !run.is_stopping() {
                    let index = next.fetch_add(1, Relaxed);
                    if index >= run.plan.warmup {
                        break;
                    }
                    run.perform(index, None, Instant::now(), |_| Phase::Warmup).await;
                }
            });
        }
        settle(slots).await;
    }

    /// A closed loop without ramp-up begins with all slots at once: its first answers should show the server,
    /// not the opening of connections. (A server that closes each connection is measured with that, from the second on.)
    async fn open_connections_ahead(self: &Arc<Self>) {
        let Pacing::Closed { concurrency, ramp_up } = self.plan.pacing else { return };
        if !ramp_up.is_zero() || self.is_stopping() {
            return;
        }
        let wanted =
            self.plan.requests.map_or(u64::from(concurrency), |requests| requests.min(concurrency.into()));
        let mut counts = vec![0; self.targets.len()];
        let mut picker = RoundRobin::new(self.targets.iter().map(|target| target.weight));
        (0..wanted).for_each(|_| counts[picker.next_endpoint()] += 1);
        let openings = self.targets.iter().zip(counts).map(|(target, count)| target.pool.open_ahead(count));
        tokio::select! {
            _ = futures::future::join_all(openings) => {}
            () = self.control.stop.cancelled() => {}
        }
    }

    /// Takes one of the requests that are to be measured; false when there are no more.
    fn take_ticket(&self) -> bool {
        let limit = self.plan.requests.unwrap_or(u64::MAX);
        self.gauges.begun.fetch_update(Relaxed, Relaxed, |begun| (begun < limit).then_some(begun + 1)).is_ok()
    }

    async fn run_slots(
        self: &Arc<Self>,
        concurrency: u32,
        ramp_up: Duration,
        start: Instant,
        measure_from: Instant,
    ) {
        let next = Arc::new(AtomicU64::new(0));
        let mut slots = JoinSet::new();
        for slot in 0..concurrency {
            let (run, next) = (Arc::clone(self), Arc::clone(&next));
            let begins = start + slot_start(slot, concurrency, ramp_up);
            slots.spawn(async move {
                if begins > start {
                    tokio::select! {
                        () = tokio::time::sleep_until(begins.into()) => {}
                        () = run.control.stop.cancelled() => {}
                    }
                }
                let mut ready_at = begins.max(start);
                while !run.is_stopping() {
                    // A request begun in the ramp-up is not sure to be measured: it takes its ticket when it ends.
                    let ticket = Instant::now() >= measure_from;
                    if ticket && !run.take_ticket() {
                        break;
                    }
                    let index = next.fetch_add(1, Relaxed);
                    // Ready when the answer before it was complete, however late that is noticed here.
                    let performing = run.perform(index, None, ready_at, |ended_at| {
                        if !ticket && ended_at < measure_from {
                            return Phase::RampUp;
                        }
                        if !ticket {
                            run.take_ticket();
                        }
                        Phase::Measured
                    });
                    ready_at = performing.await;
                }
            });
        }
        settle(slots).await;
    }

    async fn run_schedule(
        self: &Arc<Self>,
        schedule: Schedule,
        max_concurrency: Option<u32>,
        start: Instant,
        measure_from: Instant,
    ) {
        let permits = max_concurrency.map_or(Semaphore::MAX_PERMITS, |most| most as usize);
        let gate = Arc::new(Semaphore::new(permits));
        let timer = PreciseTimer::new();
        let mut requests = JoinSet::new();
        for (index, offset) in schedule.enumerate() {
            let scheduled = start + offset;
            tokio::select! {
                biased;
                () = self.control.stop.cancelled() => break,
                () = timer.sleep_until(scheduled) => {}
            }
            if self.is_stopping() || scheduled >= measure_from && !self.take_ticket() {
                break;
            }
            let (run, gate) = (Arc::clone(self), Arc::clone(&gate));
            requests.spawn(async move {
                let mut ready_at = scheduled;
                let permit = match gate.try_acquire() {
                    Ok(permit) => permit,
                    // Held back by --max-concurrency: that is the server's doing, not this client's.
                    Err(_) => {
                        let acquired = run.control.abort.run_until_cancelled(gate.acquire()).await;
                        let Some(Ok(permit)) = acquired else { return };
                        ready_at = Instant::now();
                        permit
                    }
                };
                let in_ramp = scheduled < measure_from;
                run.perform(index as u64, Some(scheduled), ready_at, |_| {
                    if in_ramp { Phase::RampUp } else { Phase::Measured }
                })
                .await;
                drop(permit);
            });
            while requests.try_join_next().is_some() {}
        }
        settle(requests).await;
    }
}

/// Waits for all of them. A fault of ours in one request, which has been printed, must not cost the others' results.
async fn settle(mut tasks: JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}
