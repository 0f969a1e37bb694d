//! When requests are sent: a closed loop of slots, or an open loop on a schedule.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::cli::Arrival;

/// How the load is paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// So many slots; each sends its next request when its last one ended.
    Closed {
        /// Slots.
        concurrency: u32,
        /// Time over which slots start, the first at once, the last at its end.
        ramp_up: Duration,
    },
    /// Requests at scheduled moments, whatever the answers do.
    Open {
        /// Requests a second.
        rate: f64,
        /// Spacing.
        arrival: Arrival,
        /// The most under way at once.
        max_concurrency: Option<u32>,
        /// Requests scheduled before this much time has passed are discarded.
        ramp_up: Duration,
    },
}

impl Pacing {
    /// The ramp-up.
    pub fn ramp_up(&self) -> Duration {
        match *self {
            Self::Closed { ramp_up, .. } | Self::Open { ramp_up, .. } => ramp_up,
        }
    }
}

/// When slot `slot` of `concurrency` starts: linearly from one slot to all of them.
pub fn slot_start(slot: u32, concurrency: u32, ramp_up: Duration) -> Duration {
    match concurrency {
        0 | 1 => Duration::ZERO,
        _ => ramp_up.mul_f64(f64::from(slot) / f64::from(concurrency - 1)),
    }
}

/// The moments of an open loop, as offsets from its start.
#[derive(Debug)]
pub struct Schedule {
    random: SmallRng,
    arrival: Arrival,
    rate: f64,
    sent: u64,
    at: f64,
}

impl Schedule {
    /// A schedule of `rate` requests a second.
    pub fn new(rate: f64, arrival: Arrival, seed: u64) -> Self {
        Self { random: SmallRng::seed_from_u64(seed ^ 0x5EED_0A11), arrival, rate, sent: 0, at: 0.0 }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let seconds = match self.arrival {
            Arrival::Constant => self.sent as f64 / self.rate,
            Arrival::Poisson => {
                if self.sent > 0 {
                    let uniform: f64 = self.random.random();
                    self.at -= (1.0 - uniform).ln() / self.rate;
                }
                self.at
            }
        };
        self.sent += 1;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// Sleeps to the microsecond. The runtime's own timers round up to whole milliseconds, which an open loop would
/// show as delay.
#[derive(Debug, Default)]
pub struct PreciseTimer {
    /// Made when first needed; none where the system gives none.
    timer: OnceLock<Option<AsyncFd<Descriptor>>>,
}

#[derive(Debug)]
struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl PreciseTimer {
    /// A timer; where the system gives none, one that sleeps by the runtime's.
    pub fn new() -> Self {
        Self::default()
    }

    fn descriptor(&self) -> Option<&AsyncFd<Descriptor>> {
        let make = || {
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)
                .ok()
                // SAFETY: the value owns its timer and names the same descriptor for as long as it lives.
                .and_then(|timer| {
                    unsafe { AsyncFd::register_with_interest(Descriptor(timer), Interest::READABLE) }.ok()
                })
        };
        self.timer.get_or_init(make).as_ref()
    }

    /// Sleeps until `at`; returns at once when that has passed.
    pub async fn sleep_until(&self, at: Instant) {
        let wait = at.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            return;
        }
        let Some(timer) = self.descriptor() else { return tokio::time::sleep_until(at.into()).await };
        let armed = timer
            .get_ref()
            .0
            .set(Expiration::OneShot(TimeSpec::from_duration(wait)), TimerSetTimeFlags::empty());
        if armed.is_err() {
            return tokio::time::sleep_until(at.into()).await;
        }
        while Instant::now() < at {
            match timer.readable().await {
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => return tokio::time::sleep_until(at.into()).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_start_linearly() {
        let starts: Vec<u64> =
            (0..5).map(|slot| slot_start(slot, 5, Duration::from_secs(8)).as_secs()).collect();
        assert_eq!(starts, [0, 2, 4, 6, 8]);
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        let last = Schedule::new(3.0, Arrival::Constant, 0).nth(3_000_000).unwrap();
        assert!((last.as_secs_f64() - 1e6).abs() < 1e-6);
    }

    #[test]
    fn poisson_arrivals_have_the_asked_rate_and_spread() {
        let times: Vec<f64> =
            Schedule::new(100.0, Arrival::Poisson, 1).take(20_001).map(|at| at.as_secs_f64()).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 0.01).abs() < 0.0005, "mean {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "deviation {}", variance.sqrt());
    }
}
