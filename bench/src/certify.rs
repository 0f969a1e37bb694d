//! Does the run measure the server, or this client? Every run answers that itself.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use events::summary::Client;

use crate::collect::{Collector, NS_TO_MS};
use crate::http::arrival::STAMPS;
use crate::http::pool::Counters;
use crate::stats::{Samples, round};

/// A thread as busy as this has nothing left.
const BUSY: f64 = 0.9;

/// Lateness that is a larger part of what is measured than this is part of the figures.
const PART_OF_THE_FIGURES: f64 = 0.05;

/// Lateness below this is never remarked on, in milliseconds.
const LATE_MS: f64 = 20.0;
const SKEWED_MS: f64 = 1.0;

/// What a run cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Time from start to end.
    pub wall: Duration,
    /// Processor time of the process.
    pub process: Duration,
    /// Processor time of its busiest thread.
    pub busiest: Duration,
}

/// What is judged.
#[derive(Clone, Copy, Debug, Default)]
struct Signs {
    /// The part of the time the busiest thread was busy.
    busy: f64,
    /// 95 % of timers fired no later than this.
    lag_p95_ms: Option<f64>,
    /// 95 % of requests that could be sent were sent no later than this.
    skew_p95_ms: Option<f64>,
    /// The median of what is measured: the time to first token, or the response time.
    first_answer_ms: Option<f64>,
    /// The median response time.
    response_ms: Option<f64>,
    /// Requests that failed for want of something on this machine.
    failed_here: u64,
}

/// Why the client, not the server, set the pace; none when it did not.
fn reason(signs: Signs) -> Option<String> {
    if signs.failed_here > 0 {
        return Some(format!(
            "{} requests failed for want of open files or local ports on this machine",
            signs.failed_here
        ));
    }
    if signs.busy > BUSY {
        return Some(format!("its busiest thread was busy {:.0} % of the time", signs.busy * 100.0));
    }
    let too_much = |late: Option<f64>, least: f64, of: Option<f64>| {
        late.filter(|ms| *ms > least && *ms > of.unwrap_or(0.0) * PART_OF_THE_FIGURES)
    };
    if let Some(ms) = too_much(signs.lag_p95_ms, LATE_MS, signs.first_answer_ms) {
        return Some(format!(
            "it woke up {ms:.0} ms late (p95): this machine has too little processor time to spare"
        ));
    }
    too_much(signs.skew_p95_ms, SKEWED_MS, signs.response_ms)
        .map(|ms| format!("requests that could be sent waited {ms:.1} ms (p95) until it sent them"))
}

/// How the client fared.
pub fn client(
    collector: &Collector,
    counters: &Counters,
    max_in_flight: u64,
    lag: &Samples,
    cost: Cost,
) -> Client {
    let wall = cost.wall.as_secs_f64();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let busy = cost.busiest.as_secs_f64() / wall.max(1e-9);
    let p95 = |samples: &Samples| samples.percentiles([950])[0].map(|ns| ns as f64 * NS_TO_MS);
    let reason = reason(Signs {
        busy,
        lag_p95_ms: p95(lag),
        skew_p95_ms: p95(collector.send_skew()),
        first_answer_ms: collector.median_first_answer_ms(),
        response_ms: collector.median_response_ms(),
        failed_here: collector.failed_here(),
    });
    Client {
        cpu_share: (wall > 0.0).then(|| round(cost.process.as_secs_f64() / wall / cores as f64)),
        loop_lag_ms: lag.distribution(NS_TO_MS),
        send_skew_ms: collector.send_skew().distribution(NS_TO_MS),
        max_in_flight,
        connections_opened: counters.opened.load(Relaxed),
        reused: counters.reused.load(Relaxed),
        retried: counters.retried.load(Relaxed),
        limited: reason.is_some(),
        limited_reason: reason,
        headroom: (busy > 0.0).then(|| (100.0 / busy).round() / 100.0),
        clock_source: STAMPS.source().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: Signs = Signs {
        busy: 0.3,
        lag_p95_ms: Some(2.0),
        skew_p95_ms: Some(0.8),
        first_answer_ms: Some(200.0),
        response_ms: Some(800.0),
        failed_here: 0,
    };

    #[test]
    fn a_client_with_time_to_spare_set_no_pace() {
        assert_eq!(reason(FINE), None);
        assert_eq!(reason(Signs::default()), None);
    }

    #[test]
    fn a_busy_thread_sets_the_pace() {
        let said = reason(Signs { busy: 0.97, ..FINE }).unwrap();
        assert_eq!(said, "its busiest thread was busy 97 % of the time");
    }

    #[test]
    fn lateness_counts_where_it_is_part_of_the_figures() {
        assert!(reason(Signs { lag_p95_ms: Some(30.0), ..FINE }).unwrap().contains("30 ms late"));
        assert_eq!(reason(Signs { lag_p95_ms: Some(30.0), first_answer_ms: Some(2000.0), ..FINE }), None);
    }

    #[test]
    fn requests_held_back_set_the_pace() {
        assert!(reason(Signs { skew_p95_ms: Some(90.0), ..FINE }).unwrap().contains("waited 90.0 ms"));
        assert_eq!(reason(Signs { skew_p95_ms: Some(30.0), ..FINE }), None);
    }

    #[test]
    fn a_machine_without_files_or_ports_sets_the_pace() {
        assert!(reason(Signs { failed_here: 3, ..FINE }).unwrap().starts_with("3 requests failed for want"));
    }
}
