//! `as_of=<time>`: the position of the log at a time.

use events::Timestamp;

use crate::log::{Log, LogError};

/// The last position that was recorded at or before `time`; 0 where there is none. Positions follow the control plane's
/// clock, so that halving finds it.
///
/// # Errors
/// The log cannot be read.
pub async fn position_at(log: &Log, time: Timestamp) -> Result<i64, LogError> {
    let (mut before, mut after) = (0, log.head().await?.position + 1);
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        let found = log.read_all(middle - 1, 1).await?;
        match found.first() {
            Some(event) if event.recorded_at <= time => before = middle,
            _ => after = middle,
        }
    }
    Ok(before)
}
