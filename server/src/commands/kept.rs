//! What is kept under a name, a stream for each: saved, changed and removed as it stands at that moment.

use events::envelope::Recorded;
use events::{Event, StreamKey};

use super::append::{Maker, NotAppended, append};
use super::{CommandError, load};
use crate::log::{Expected, Log};

/// How often it is decided anew when others change the same at the same moment.
const TRIES: u32 = 8;

/// Decides on the stream as it stands and appends, until nobody else was quicker. Gives the position of the last event: where
/// there is nothing to change, of the one that is there.
///
/// # Errors
/// What the decision refuses, and `contended` with `code`.
pub(super) async fn change(
    log: &Log,
    maker: &Maker,
    key: &StreamKey,
    code: &str,
    decide: impl Fn(&[Recorded]) -> Result<Vec<Event>, CommandError>,
) -> Result<i64, CommandError> {
    for _ in 0..TRIES {
        let recorded = load::stream(log, key).await?;
        let events = decide(&recorded)?;
        let (version, position) = recorded.last().map_or((0, 0), |last| (last.version, last.position));
        if events.is_empty() {
            return Ok(position);
        }
        let write = maker.write(key.clone(), Expected::Exact(version), &events, 0)?;
        match append(log, vec![write]).await {
            Ok(position) => return Ok(position),
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&code))
}
