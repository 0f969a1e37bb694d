//! The agent's clock: the host's, as it is. How far it is from the control plane's is measured with every heartbeat; a
//! host that is too far off takes no work, rather than have its reports refused.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use events::report::CLOCK_LIMIT_MS;
use events::timestamp::Timestamp;

/// The host's wall clock, UTC, in whole microseconds.
pub fn now() -> Timestamp {
    let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    };
    Timestamp::EPOCH.plus_micros(micros)
}

/// How far this host's clock is ahead of the control plane's, in milliseconds, from one question and answer:
/// `theirs` is taken to lie in the middle between `asked` and `answered`.
pub fn offset_ms(asked: Timestamp, answered: Timestamp, theirs: Timestamp) -> f64 {
    let middle = asked.plus_micros(answered.micros_since(asked) / 2);
    middle.micros_since(theirs) as f64 / 1000.0
}

/// Further off than this, milliseconds, is worth a warning.
const WARNING_MS: f64 = 2_000.0;
/// An answer that took longer than this says little about the other clock.
const QUICK: Duration = Duration::from_secs(1);

/// One measurement of how far the host's clock is ahead of the control plane's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offset {
    /// Milliseconds ahead; negative when behind.
    pub ms: f64,
    /// How long the answer took: the measurement is right to half of it.
    pub round_trip: Duration,
}

/// What an offset means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Near enough.
    In,
    /// Worth a warning.
    Nearly,
    /// So far off that reports would be refused: no work is taken.
    Out,
}

impl Offset {
    /// Whether this measurement replaces an earlier one: a slow answer is worth less than what is known.
    pub fn replaces(&self, known: Option<&Self>) -> bool {
        self.round_trip <= QUICK || known.is_none_or(|known| self.round_trip <= known.round_trip)
    }

    /// What it means.
    pub fn step(&self) -> Step {
        match self.ms.abs() {
            off if off <= WARNING_MS => Step::In,
            off if off <= CLOCK_LIMIT_MS => Step::Nearly,
            _ => Step::Out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_does_not_replace_what_a_quick_one_told() {
        let of = |ms, round_trip| Offset { ms, round_trip: Duration::from_millis(round_trip) };
        let (quick, slow, slower) = (of(1.0, 20), of(-2_500.0, 5_000), of(-9_000.0, 18_000));
        assert!(slow.replaces(None) && slow.replaces(Some(&slower)) && quick.replaces(Some(&slow)));
        assert!(!slow.replaces(Some(&quick)) && !slower.replaces(Some(&slow)));
        assert_eq!([quick, slow, slower].map(|offset| offset.step()), [Step::In, Step::Nearly, Step::Out]);
    }

    #[test]
    fn a_clock_that_is_ahead_has_a_positive_offset() {
        let at = |micros| Timestamp::from_micros(micros).unwrap();
        assert_eq!(offset_ms(at(1_000_000), at(1_020_000), at(510_000)), 500.0);
    }
}
