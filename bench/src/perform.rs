//! One request, from its preparation to its record.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::extra::Attempt;
use crate::failure::{Failure, FailureKind};
use crate::http::pool::Sent;
use crate::http::request::Request;
use crate::record::{Outcome, Phase, Record};
use crate::run::Run;
use crate::stats::round;
use crate::wake;
use crate::workload::{Prepared, Reader, Workload};

/// Warm-up requests take their prompts from far away, so that they warm no cache for measured ones.
const WARMUP_INDEX: u64 = 1 << 40;

/// A refused connection fails in microseconds: without a breath the whole run would be over, and the processor busy,
/// before a server that is just starting could answer one request.
const BREATH: Duration = Duration::from_millis(10);

/// How one try ended.
struct Tried {
    ended_at: Instant,
    status: Option<u16>,
    sent: Option<Sent>,
    outcome: Outcome,
}

impl<W: Workload> Run<W> {
    /// Sends one request and records how it went. `phase_of` judges by when it ended. Returns when its slot was free again.
    pub(crate) async fn perform(
        self: &Arc<Self>,
        index: u64,
        scheduled: Option<Instant>,
        ready_at: Instant,
        phase_of: impl FnOnce(Instant) -> Phase,
    ) -> Instant {
        let warmup = self.gauges.stage.load(Relaxed) < 2;
        let prompt_index = if warmup { WARMUP_INDEX + index } else { index };
        let request_id = format!("{}-{}{index}", self.run_tag, if warmup { "w" } else { "" });
        let endpoint = self.balancer().next_endpoint();
        let before = Instant::now();
        let prepared = self.workload.prepare(prompt_index).await;
        let started_at = if W::CLOCK_BEFORE_PREPARATION { before } else { Instant::now() };
        let in_flight = self.gauges.in_flight.fetch_add(1, Relaxed) + 1;
        self.gauges.max_in_flight.fetch_max(in_flight, Relaxed);
        let mut attempts = Vec::new();
        let (tried, prepared) = match prepared {
            Ok(prepared) => {
                let tried =
                    self.try_until_done(endpoint, &request_id, &prepared, started_at, &mut attempts).await;
                (tried, Prepared { body: Vec::new(), ..prepared })
            }
            Err(failure) => {
                let outcome = Outcome::Failed(failure, Box::default());
                (Tried { ended_at: Instant::now(), status: None, sent: None, outcome }, Prepared::default())
            }
        };
        self.gauges.in_flight.fetch_sub(1, Relaxed);
        self.balancer().done(endpoint);
        if let (None, Outcome::Success(measured)) = (scheduled, &tried.outcome) {
            let response_time = tried.ended_at.saturating_duration_since(started_at);
            wake::observe(response_time, measured.mean_gap());
        }
        let free_at = tried.ended_at;
        let phase = phase_of(free_at);
        let record = Record {
            index,
            endpoint,
            phase,
            request_id,
            scheduled,
            ready_at: ready_at.min(started_at),
            started_at,
            sent: tried.sent,
            ended_at: tried.ended_at,
            prompt_words: prepared.prompt_words,
            text: W::TEXT,
            streamed: prepared.streamed,
            status: tried.status,
            outcome: tried.outcome,
            extra: prepared.extra,
            attempts,
        };
        let failed_to_connect = matches!(
            &record.outcome,
            Outcome::Failed(
                Failure { kind: FailureKind::Connection | FailureKind::Request, status: None, .. },
                _
            )
        );
        if W::TEXT {
            self.live.ended(&record);
            self.keep(&record);
        } else {
            let run = Arc::clone(self);
            self.inspections.spawn(async move { run.inspect(record).await });
        }
        if failed_to_connect {
            tokio::time::sleep(BREATH).await;
            return Instant::now();
        }
        free_at
    }

    /// Puts a record into the figures and the log.
    pub(crate) fn keep(&self, record: &Record) {
        self.collector().add(record);
        if let Some(log) = &self.log {
            log.write(record);
        }
    }

    async fn inspect(&self, mut record: Record) {
        let extra = std::mem::take(&mut record.extra);
        match &mut record.outcome {
            Outcome::Success(measured) => {
                let (extra, failure) = self.workload.inspect(record.index, measured, extra).await;
                record.extra = extra;
                measured.body = Vec::new();
                if let Some(failure) = failure {
                    let failure = Failure { status: record.status, ..failure };
                    record.outcome = Outcome::Failed(failure, std::mem::take(measured));
                }
            }
            Outcome::Failed(_, so_far) => {
                so_far.body = Vec::new();
                record.extra = extra;
            }
            Outcome::Incomplete => record.extra = extra,
        }
        self.live.ended(&record);
        match (self.workload.is_unfinished(&record.extra), record.phase) {
            (true, Phase::Measured) => {
                self.collector().add(&record);
                return self.unfinished().push(record);
            }
            (true, _) => {
                self.workload.give_up(&mut record.extra, "not fetched: the request is in no figure");
            }
            (false, _) => {}
        }
        self.keep(&record);
    }

    async fn try_until_done(
        &self,
        endpoint: usize,
        request_id: &str,
        prepared: &Prepared,
        started_at: Instant,
        attempts: &mut Vec<Attempt>,
    ) -> Tried {
        let request = Request { head: &self.targets[endpoint].head, id: request_id, body: &prepared.body };
        let mut backoff = self.plan.retry_backoff;
        loop {
            let number = attempts.len() as u32 + 1;
            let began = if number == 1 { started_at } else { Instant::now() };
            let tried = self.try_once(endpoint, &request, prepared, began).await;
            if self.plan.retries == 0 {
                return tried;
            }
            let failure = match &tried.outcome {
                Outcome::Failed(failure, _) => Some(failure.kind),
                _ => None,
            };
            attempts.push(Attempt {
                number,
                latency_ms: round(tried.ended_at.saturating_duration_since(began).as_secs_f64() * 1e3),
                status: tried.status,
                error_type: failure.map(FailureKind::imagegen_name),
            });
            let again = failure.is_some_and(FailureKind::is_transient) && number <= self.plan.retries;
            if !again || self.control.stop.is_cancelled() {
                return tried;
            }
            tokio::time::sleep(backoff).await;
            backoff = backoff.saturating_mul(2);
        }
    }

    async fn try_once(
        &self,
        endpoint: usize,
        request: &Request<'_>,
        prepared: &Prepared,
        began: Instant,
    ) -> Tried {
        let mut reader = self.workload.reader(prepared);
        let is_running = self.gauges.stage.load(Relaxed) >= 3;
        reader.count_into(Arc::clone(&self.live), is_running.then_some(began));
        let deadline = began + self.plan.request_timeout;
        let sending = self.targets[endpoint].pool.send(request, &mut reader, deadline);
        let sent = self.control.abort.run_until_cancelled(sending).await;
        let ended_at = match (reader.so_far().complete_at, &sent) {
            (Some(complete_at), _) => complete_at,
            (None, Some(Ok(sent))) => sent.ended_at,
            _ => Instant::now(),
        };
        let status = reader.status();
        if reader.is_simulated() {
            self.gauges.simulated.store(true, Relaxed);
        }
        let Some(result) = sent else {
            return Tried { ended_at, status, sent: None, outcome: Outcome::Incomplete };
        };
        let (ended, sent) = match &result {
            Ok(sent) => (Ok(()), Some(*sent)),
            Err(error) => (Err(error), None),
        };
        let outcome = match reader.finish(ended, ended_at) {
            (measured, None) => Outcome::Success(Box::new(measured)),
            (so_far, Some(failure)) => Outcome::Failed(failure, Box::new(so_far)),
        };
        Tried { ended_at, status, sent, outcome }
    }
}
