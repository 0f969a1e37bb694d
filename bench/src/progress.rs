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

/// One progress line. Rates are over the time since the previous line. Null where nothing is known yet.
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
    /// Requests that ended well, of any phase, a second.
    pub requests_per_second: f64,
    /// Output tokens a second, counted as they stream.
    pub completion_tokens_per_second: Option<f64>,
    /// Median so far of the time to first token.
    pub ttft_p50_ms: Option<f64>,
    /// Median so far of the time per output token.
    pub tpot_p50_ms: Option<f64>,
    /// Median so far of the response time.
    pub response_time_p50_ms: Option<f64>,
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
            let _ = write!(io::stderr(), "\r\x1b[K{}", for_people(line));
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
    let mut since = Previous { began: Instant::now(), at: Instant::now(), succeeded: 0, tokens: 0.0 };
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        let ended = tokio::select! {
            _ = ticks.tick() => false,
            () = done.cancelled() => true,
        };
        output.write(&line(&run, anchor, &mut since));
        if ended {
            output.clear();
            return;
        }
    }
}

/// What the previous line had counted.
struct Previous {
    began: Instant,
    at: Instant,
    succeeded: u64,
    tokens: f64,
}

fn line<W: Workload>(run: &Run<W>, anchor: Anchor, previous: &mut Previous) -> Line {
    let (now, live) = (Instant::now(), run.live.now());
    let requests = run.collector().requests().clone();
    let seconds = now.duration_since(previous.at).as_secs_f64().max(1e-3);
    let tokens = live.tokens.unwrap_or_default();
    let line = Line {
        unix_ns: anchor.unix_ns(now),
        phase: STAGES[(run.gauges.stage.load(Relaxed) as usize).min(STAGES.len() - 1)],
        elapsed_s: round(now.duration_since(previous.began).as_secs_f64()),
        done: requests.succeeded + requests.failed,
        total: run.plan().requests,
        failed: requests.failed,
        discarded: requests.warmup + requests.ramp_up,
        in_flight: run.gauges.in_flight.load(Relaxed),
        requests_per_second: round(live.succeeded.saturating_sub(previous.succeeded) as f64 / seconds),
        // Where a failed answer's chunks are taken back, the rate is 0 rather than below.
        completion_tokens_per_second: live
            .tokens
            .map(|tokens| round((tokens - previous.tokens).max(0.0) / seconds)),
        ttft_p50_ms: live.ttft_p50_ms,
        tpot_p50_ms: live.tpot_p50_ms,
        response_time_p50_ms: live.response_time_p50_ms,
    };
    *previous = Previous { at: now, succeeded: live.succeeded, tokens, ..*previous };
    line
}

/// Characters of the bar.
const BAR: usize = 20;

/// The line that people see: a bar, live throughput and latency.
fn for_people(line: &Line) -> String {
    let mut out = format!("{:<8} ", line.phase);
    if let Some(total) = line.total.filter(|total| *total > 0) {
        let filled = (line.done.min(total) as usize * BAR) / total as usize;
        out.push_str(&format!("[{}{}] ", "█".repeat(filled), "·".repeat(BAR - filled)));
    }
    let of = line.total.map_or(String::new(), |total| format!("/{total}"));
    out.push_str(&format!("{}{of} done  {} under way", line.done, line.in_flight));
    if line.failed > 0 {
        out.push_str(&format!("  {} failed", line.failed));
    }
    out.push_str(&format!("  {:.1} req/s", line.requests_per_second));
    if let Some(rate) = line.completion_tokens_per_second {
        out.push_str(&format!("  {rate:.0} tok/s"));
    }
    let shown = [
        ("TTFT", line.ttft_p50_ms),
        ("TPOT", line.tpot_p50_ms),
        ("response", line.response_time_p50_ms.filter(|_| line.ttft_p50_ms.is_none())),
    ];
    for (name, median) in shown {
        if let Some(ms) = median {
            out.push_str(&format!("  {name} p50 {ms:.1} ms"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_a_bar_with_throughput_and_latency() {
        let line = Line {
            unix_ns: 0,
            phase: "running",
            elapsed_s: 1.0,
            done: 5,
            total: Some(20),
            failed: 1,
            discarded: 0,
            in_flight: 4,
            requests_per_second: 2.5,
            completion_tokens_per_second: Some(120.4),
            ttft_p50_ms: Some(31.25),
            tpot_p50_ms: None,
            response_time_p50_ms: Some(400.0),
        };
        assert_eq!(
            for_people(&line),
            "running  [█████···············] 5/20 done  4 under way  1 failed  2.5 req/s  120 tok/s  TTFT p50 31.2 ms"
        );
    }
}
