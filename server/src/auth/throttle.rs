//! Limits on guessing and flooding: failures are counted per account and per address.
//!
//! Kept in memory: a restart forgives, and several servers count apart. Only failures count, so nobody who knows
//! their password is locked out of a session they already have.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};

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

    fn lock(&self) -> MutexGuard<'_, HashMap<K, VecDeque<Timestamp>>> {
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn wait(&self, times: &VecDeque<Timestamp>, now: Timestamp) -> u64 {
        let oldest = times.front().map_or(0, |oldest| now.micros_since(*oldest));
        ((self.window_micros - oldest).max(0) as u64).div_ceil(1_000_000).max(1)
    }

    /// Takes one if there is room, at once: of many who ask together no more than there is room for get one.
    /// True when this one filled the window.
    ///
    /// # Errors
    /// The seconds to wait when there is no room.
    pub fn take(&self, key: K, now: Timestamp) -> Result<bool, u64> {
        let mut seen = self.lock();
        make_room(&mut seen, &key, now, self.window_micros);
        let times = seen.entry(key).or_default();
        forget_before(times, now, self.window_micros);
        if times.len() >= self.limit {
            return Err(self.wait(times, now));
        }
        times.push_back(now);
        Ok(times.len() == self.limit)
    }

    /// Takes the last one of a key back: it was no failure.
    pub fn give_back(&self, key: &K) {
        if let Some(times) = self.lock().get_mut(key) {
            times.pop_back();
        }
    }

    /// Forgets a key: the right password was given.
    pub fn forgive(&self, key: &K) {
        self.lock().remove(key);
    }
}

/// Forgets who is past, and everybody where that does not help.
fn make_room<K: Hash + Eq>(seen: &mut HashMap<K, VecDeque<Timestamp>>, key: &K, now: Timestamp, window: i64) {
    if seen.len() < MOST_KEYS || seen.contains_key(key) {
        return;
    }
    seen.retain(|_, times| {
        forget_before(times, now, window);
        !times.is_empty()
    });
    if seen.len() >= MOST_KEYS {
        seen.clear();
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
        assert_eq!(throttle.take("a", at(0)), Ok(false));
        assert_eq!(throttle.take("a", at(30)), Ok(true));
        assert_eq!(throttle.take("a", at(31)), Err(29));
        assert_eq!(throttle.take("b", at(31)), Ok(false));
        assert_eq!(throttle.take("a", at(60)), Ok(true));
    }

    #[test]
    fn a_success_forgives() {
        let throttle = Throttle::new(1, 60);
        throttle.take("a", at(0)).unwrap();
        throttle.forgive(&"a");
        assert!(throttle.take("a", at(1)).is_ok());
        throttle.give_back(&"a");
        assert!(throttle.take("a", at(2)).is_ok());
    }

    #[test]
    fn of_many_who_ask_at_once_only_as_many_as_there_is_room_for_get_in() {
        let throttle = Throttle::new(10, 60);
        let let_in = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    if throttle.take("a", at(0)).is_ok() {
                        let_in.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(let_in.into_inner(), 10);
    }
}
