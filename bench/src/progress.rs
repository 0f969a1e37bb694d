//! What is shown while a run is under way: a line of JSON twice a second for the page, a status line for people.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::request_log::Anchor;
use crate::run::{Run, STAGES};
use crate::stats::round;
use crate::workload::Workload;

/// How often a line is written.
pub const EVERY: Duration = Duration::from_millis(500);

/// One progress line. Rates are over the time since the previous line; null where nothing happened in it.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
    /// One of [`STAGES`].
    pub phase: &'static str,
    /// Seconds since the run began.
    pub elapsed_s: f64,
    /// Measured requests that ended.
    pub done: u64,
    /// Measured requests there will be; null when only time ends the run.
    pub total: Option<u64>,
    /// Measured requests that failed.
    pub failed: u64,
    /// Requests of warm-up and ramp-up that ended.
    pub discarded: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// Successes a second.
    pub requests_per_second: f64,
    /// Completion tokens a second.
    pub completion_tokens_per_second: f64,
    /// Mean time to first token.
    pub ttft_ms: Option<f64>,
    /// Mean response time.
    pub response_time_ms: Option<f64>,
}

/// Where progress goes.
#[derive(Debug, Default)]
pub struct Output {
    machine: Option<File>,
    people: bool,
}

impl Output {
    /// An output to a file, an open descriptor, and (when standard error is a terminal) to people.
    pub fn open(file: Option<&Path>, descriptor: Option<i32>, quiet: bool) -> io::Result<Self> {
        let machine = match (file, descriptor) {
            (Some(path), _) => Some(OpenOptions::new().create(true).append(true).open(path)?),
            (None, Some(number)) => Some(duplicate(number)?),
            (None, None) => None,
        };
        Ok(Self { machine, people: !quiet && io::stderr().is_terminal() })
    }

    fn write(&mut self, line: &Line) {
        if let Some(machine) = &mut self.machine
            && let Ok(mut text) = serde_json::to_vec(line)
        {
            text.push(b'\n');
            if machine.write_all(&text).is_err() {
                self.machine = None; // a reader that went away must not end the run
            }
        }
        if self.people {
            let of = line.total.map_or(String::new(), |total| format!("/{total}"));
            let ttft = line.ttft_ms.map_or(String::new(), |ms| format!("  TTFT {ms:.1} ms"));
            let _ = write!(
                io::stderr(),
                "\r\x1b[K{:<9} {}{of} done  {} failed  {} under way  {:.1} req/s  {:.0} tok/s{ttft}",
                line.phase,
                line.done,
                line.failed,
                line.in_flight,
                line.requests_per_second,
                line.completion_tokens_per_second,
            );
        }
    }

    fn clear(&mut self) {
        if self.people {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// Duplicates a descriptor this process was started with; one that is not open is an error.
fn duplicate(number: i32) -> io::Result<File> {
    // SAFETY: the number is only borrowed for the duration of the call that duplicates it; a number that is
    // not open makes that call fail, nothing else.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let owned: OwnedFd = borrowed.try_clone_to_owned()?;
    Ok(File::from(owned))
}

/// Writes a line every half second until dropped into `done`, and a last one then.
pub async fn show<W: Workload>(
    run: Arc<Run<W>>,
    mut output: Output,
    anchor: Anchor,
    done: tokio_util::sync::CancellationToken,
) {
    let began = Instant::now();
    let mut last = began;
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        let ended = tokio::select! {
            _ = ticks.tick() => false,
            () = done.cancelled() => true,
        };
        let now = Instant::now();
        output.write(&line(&run, anchor, began, now, now.duration_since(last)));
        last = now;
        if ended {
            output.clear();
            return;
        }
    }
}

fn line<W: Workload>(run: &Run<W>, anchor: Anchor, began: Instant, now: Instant, span: Duration) -> Line {
    let mut collector = run.collector();
    let recent = collector.take_recent();
    let requests = collector.requests();
    let seconds = span.as_secs_f64().max(1e-3);
    let mean = |sum: Duration, n: u64| (n > 0).then(|| round(sum.as_secs_f64() * 1e3 / n as f64));
    Line {
        unix_ns: anchor.unix_ns(now),
        phase: STAGES[(run.gauges.stage.load(Relaxed) as usize).min(STAGES.len() - 1)],
        elapsed_s: round(now.duration_since(began).as_secs_f64()),
        done: requests.succeeded + requests.failed,
        total: run.plan().requests,
        failed: requests.failed,
        discarded: requests.warmup + requests.ramp_up,
        in_flight: run.gauges.in_flight.load(Relaxed),
        requests_per_second: round(recent.succeeded as f64 / seconds),
        completion_tokens_per_second: round(recent.completion_tokens as f64 / seconds),
        ttft_ms: mean(recent.ttft.0, recent.ttft.1.into()),
        response_time_ms: mean(recent.response_time, recent.succeeded),
    }
}
