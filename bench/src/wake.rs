//! How often the event loop wakes up.
//!
//! With many streams a token arrives every few microseconds, and waking up for each one costs more than reading it. The
//! kernel stamps every packet as it comes in, so a token that is read a moment later has the same time; what is held back
//! is only the next request of a slot whose answer is complete. The loop therefore waits a little before it looks again:
//! never longer than a thousandth of a response time, a tenth of the gap between tokens, or a millisecond. It does not
//! wait where times would suffer: with TLS, whose reads carry no stamp, and in open loops, whose requests have a schedule.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::http::arrival::STAMPS;

/// The longest wait.
const LONGEST: Duration = Duration::from_millis(1);

/// Below this, waiting costs as much as it spares: the timer of the system is no finer.
const SHORTEST: Duration = Duration::from_micros(100);

/// How long after one wake-up the next one may come, in nanoseconds.
static APART: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The wait that answers like this one allow.
fn apart(response_time: Duration, gap: Option<Duration>) -> Duration {
    let allowed = (response_time / 1000).min(gap.unwrap_or(Duration::MAX) / 10).min(LONGEST);
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

/// To be called when the event loop has nothing to do and is about to look for events.
pub fn before_park() {
    let apart = Duration::from_nanos(APART.load(Relaxed));
    let Some(last) = LAST.get().filter(|_| !apart.is_zero()) else { return };
    let since = last.elapsed();
    if since < apart {
        std::thread::sleep(apart - since);
    }
}

/// To be called when the event loop has found events.
pub fn after_park() {
    if APART.load(Relaxed) > 0 {
        LAST.set(Some(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_are_apart_by_a_small_part_of_what_is_measured() {
        let ms = Duration::from_millis;
        assert_eq!(apart(ms(800), Some(ms(20))), Duration::from_micros(800));
        assert_eq!(apart(ms(5000), Some(ms(4))), Duration::from_micros(400));
        assert_eq!(apart(ms(60_000), None), LONGEST);
        assert_eq!(apart(ms(50), Some(ms(20))), Duration::ZERO, "quick answers are waited for");
        assert_eq!(apart(ms(5000), Some(Duration::ZERO)), Duration::ZERO);
    }
}
