//! The control plane's clock. `events` has none, so that everything decided from events can be decided again.

use events::timestamp::Timestamp;
use time::OffsetDateTime;

/// The time now, by this machine's clock, in whole microseconds.
pub fn now() -> Timestamp {
    Timestamp::try_from(OffsetDateTime::now_utc()).expect("the clock stands between the years 1 and 9999")
}
