//! Appending the access events: ids and fingerprints only.

use events::Event;
use events::StreamKey;
use events::canonical::CanonicalJson;
use events::envelope::{Actor, NewEvent};
use events::timestamp::Timestamp;
use uuid::Uuid;

use super::AuthError;
use crate::log::{AppendOutcome, AppendRequest, Expected, Log};

/// Appends one event and gives its position.
pub(crate) async fn record(
    log: &Log,
    stream: StreamKey,
    expected: Expected,
    event: &Event,
    actor: Actor,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<i64, AuthError> {
    let payload = event.payload().map_err(|error| AuthError::Refused(error.to_string()))?;
    let new = NewEvent {
        event_id: Uuid::now_v7(),
        event_type: event.event_type().to_owned(),
        schema_version: event.schema_version(),
        org: stream.org().to_owned(),
        actor,
        causation_id: None,
        correlation_id,
        occurred_at: now,
        payload: CanonicalJson::of(&payload).map_err(|error| AuthError::Refused(error.to_string()))?,
    };
    match log.append(AppendRequest::one(stream, expected, vec![new])).await? {
        AppendOutcome::Appended { last, .. } => Ok(last),
        AppendOutcome::AlreadyAppended { positions } => Ok(positions.into_iter().max().unwrap_or_default()),
        AppendOutcome::VersionConflict { .. } => Err(AuthError::Exists("this")),
        AppendOutcome::Rejected { reason } => Err(AuthError::Refused(reason)),
    }
}
