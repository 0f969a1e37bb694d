//! Limits on guessing and flooding: failures are counted per account and per address.
//!
//! Kept in memory: a restart forgives, and several servers count apart. Only failures count, so nobody who knows
//! their password is locked out of a session they already have.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Mutex;

use events::Timestamp;

/// At most `limit` counted things within `window_s` seconds for each key.
#[derive(Debug)]
pub struct Throttle<K> {
    limit: usize,
    window_micros: i64,
    seen: Mutex<HashMap<K, VecDeque<Timestamp>>>,
}

/// More keys than this are never remembered: an attacker with many addresses must not fill the memory.
const MOST_KEYS: usize = 50_000;

impl<K: Hash + Eq> Throttle<K> {
    /// A throttle of `limit` in `window_s` seconds.
    pub fn new(limit: usize, window_s: u32) -> Self {
        Self { limit, window_micros: i64::from(window_s) * 1_000_000, seen: Mutex::default() }
    }

    /// Whether there is room for one more now.
    ///
    /// # Errors
    /// The seconds to wait when there is not.
    pub fn check(&self, key: &K, now: Timestamp) -> Result<(), u64> {
        let mut seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(times) = seen.get_mut(key) else { return Ok(()) };
        forget_before(times, now, self.window_micros);
        if times.len() < self.limit {
            return Ok(());
        }
        let oldest = times.front().map_or(0, |oldest| now.micros_since(*oldest));
        Err(((self.window_micros - oldest).max(0) as u64).div_ceil(1_000_000).max(1))
    }

    /// Counts one. True when this one filled the window: the first moment of being throttled.
    pub fn count(&self, key: K, now: Timestamp) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if seen.len() >= MOST_KEYS && !seen.contains_key(&key) {
            let window = self.window_micros;
            seen.retain(|_, times| {
                forget_before(times, now, window);
                !times.is_empty()
            });
            if seen.len() >= MOST_KEYS {
                seen.clear();
            }
        }
        let times = seen.entry(key).or_default();
        forget_before(times, now, self.window_micros);
        if times.len() < self.limit {
            times.push_back(now);
        }
        times.len() == self.limit
    }

    /// Takes one if there is room: `check` and `count` in one.
    ///
    /// # Errors
    /// The seconds to wait when there is no room.
    pub fn take(&self, key: K, now: Timestamp) -> Result<(), u64> {
        self.check(&key, now)?;
        self.count(key, now);
        Ok(())
    }

    /// Forgets a key: the right password was given.
    pub fn forgive(&self, key: &K) {
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(key);
    }
}

fn forget_before(times: &mut VecDeque<Timestamp>, now: Timestamp, window_micros: i64) {
    while times.front().is_some_and(|oldest| now.micros_since(*oldest) >= window_micros) {
        times.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000).unwrap()
    }

    #[test]
    fn the_window_slides() {
        let throttle = Throttle::new(2, 60);
        throttle.count("a", at(0));
        assert!(throttle.check(&"a", at(1)).is_ok());
        assert!(throttle.count("a", at(30)));
        assert_eq!(throttle.check(&"a", at(31)), Err(29));
        assert!(throttle.check(&"b", at(31)).is_ok());
        assert!(throttle.check(&"a", at(60)).is_ok());
    }

    #[test]
    fn a_success_forgives() {
        let throttle = Throttle::new(1, 60);
        throttle.count("a", at(0));
        throttle.forgive(&"a");
        assert!(throttle.check(&"a", at(1)).is_ok());
    }
}
