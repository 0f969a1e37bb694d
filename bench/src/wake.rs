//! How often the event loop wakes up.
//!
//! With many streams a token arrives every few microseconds, and waking up for each one costs more than reading it. The
//! kernel stamps every packet as it comes in, so a token that is read a moment later has the same time; what is held back
//! is only the next request of a slot whose answer is complete. Where wake-ups come thick and fast the loop therefore
//! waits a little before it looks again: never longer than 1/400 of a response time, two milliseconds, or a fifth of the
//! gap between tokens (20 microseconds where they come closer than ten thousand a second). It does not wait where times
//! would suffer: with TLS, whose reads carry no stamp, and in open loops, whose requests have a schedule.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::http::arrival::STAMPS;

/// The longest wait.
const LONGEST: Duration = Duration::from_millis(2);

/// The shortest wait: below it, waiting costs as much as it spares. It is also what the times of tokens are true to, where
/// they come closer than that: those of one stream that are read together have the stamp of the last of them.
const SHORTEST: Duration = Duration::from_micros(20);

/// How late the system may end a wait of this thread. By itself it takes 50 microseconds, to end several at once.
const SLACK: Duration = Duration::from_micros(1);

/// How long after one wake-up the next one may come, in nanoseconds.
static APART: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The last wake-up, and how long after the one before it came.
    static LAST: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// The wait that answers like this one allow.
fn apart(response_time: Duration, gap: Option<Duration>) -> Duration {
    let allowed = (response_time / 400).min((gap.unwrap_or(Duration::MAX) / 5).max(SHORTEST)).min(LONGEST);
    if allowed < SHORTEST { Duration::ZERO } else { allowed }
}

/// An answer of a closed loop is complete: later wake-ups go by it. `gap` is the mean between its chunks.
pub fn observe(response_time: Duration, gap: Option<Duration>) {
    let by_kernel = STAMPS.source() == Some("kernel");
    let allowed = if by_kernel { apart(response_time, gap) } else { Duration::ZERO };
    let allowed = allowed.as_nanos() as u64;
    // Longer only little by little, shorter at once: one quick answer among slow ones counts.
    let before = APART.load(Relaxed);
    APART.store(allowed.min(before + (LONGEST / 16).as_nanos() as u64), Relaxed);
}

/// How long to wait before looking again, `since` the last wake-up, which came `interval` after the one before it. Where they
/// come seldom, waiting would only be one wake-up more.
fn wait(apart: Duration, since: Duration, interval: Duration) -> Duration {
    if interval > apart * 2 { Duration::ZERO } else { apart.saturating_sub(since) }
}

/// To be called by the thread of the event loop before it begins.
pub fn be_punctual() {
    // Where it is refused, waits are a little longer than asked for.
    let _ = nix::sys::prctl::set_timerslack(SLACK.as_nanos() as u64);
}

/// To be called when the event loop has nothing to do and is about to look for events.
pub fn before_park() {
    let apart = Duration::from_nanos(APART.load(Relaxed));
    let Some((last, interval)) = LAST.get().filter(|_| !apart.is_zero()) else { return };
    let wait = wait(apart, last.elapsed(), interval);
    if !wait.is_zero() {
        std::thread::sleep(wait);
    }
}

/// To be called when the event loop has found events.
pub fn after_park() {
    if APART.load(Relaxed) > 0 {
        let now = Instant::now();
        let interval = LAST.get().map_or(Duration::MAX, |(last, _)| now.duration_since(last));
        LAST.set(Some((now, interval)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn wake_ups_are_apart_by_a_small_part_of_what_is_measured() {
        assert_eq!(apart(ms(800), Some(ms(20))), ms(2));
        assert_eq!(apart(ms(5000), Some(ms(4))), Duration::from_micros(800));
        assert_eq!(apart(ms(60_000), None), LONGEST);
        assert_eq!(apart(ms(6), Some(ms(6))), Duration::ZERO, "quick answers are waited for");
        assert_eq!(apart(ms(5000), Some(Duration::from_micros(3))), SHORTEST, "closer than times are told");
    }

    #[test]
    fn only_wake_ups_that_come_thick_and_fast_are_held_apart() {
        let micros = Duration::from_micros;
        assert_eq!(wait(ms(2), micros(300), micros(150)), micros(1700));
        assert_eq!(wait(ms(2), micros(300), ms(10)), Duration::ZERO);
        assert_eq!(wait(ms(2), ms(3), ms(3)), Duration::ZERO);
    }
}
