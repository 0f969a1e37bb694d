//! The agent's clock.

use std::time::{SystemTime, UNIX_EPOCH};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_ahead_has_a_positive_offset() {
        let at = |micros| Timestamp::from_micros(micros).unwrap();
        assert_eq!(offset_ms(at(1_000_000), at(1_020_000), at(510_000)), 500.0);
    }
}
