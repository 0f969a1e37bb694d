//! Whether a request that is sent again is the same request.

use std::collections::HashMap;

use sqlx::{AssertSqlSafe, PgConnection, Row};
use uuid::Uuid;

use super::LogError;
use super::database;
use super::raw::{COLUMNS, RawEvent};
use super::request::AppendRequest;

/// Compares a request's events with those at `positions`, one for each in order, in everything the sender decides.
/// Returns the id of the first that differs. Whether the stream's version is what the request expects is no part of it.
pub(super) async fn same_content(
    connection: &mut PgConnection,
    request: &AppendRequest,
    positions: &[i64],
) -> Result<Option<Uuid>, LogError> {
    let sql = format!(
        "select {COLUMNS}, (select stream_key from streams s where s.stream_no = events.stream_no) from events \
         where position = any($1)"
    );
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(positions).fetch_all(connection).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        let event = RawEvent::of_row(row)?.recorded(database::stream_key(row.try_get(15)?)?);
        found.insert(event.position, event);
    }
    let sent =
        request.writes.iter().flat_map(|write| write.events.iter().map(move |event| (&write.stream, event)));
    for ((stream, event), position) in sent.zip(positions) {
        let same = found.get(position).is_some_and(|there| {
            there.stream == *stream
                && there.event_id == event.event_id
                && there.event_type == event.event_type
                && there.schema_version == event.schema_version
                && there.org == event.org
                && there.actor == event.actor
                && there.causation_id == event.causation_id
                && there.correlation_id == event.correlation_id
                && there.occurred_at == event.occurred_at
                && there.payload == event.payload.as_str()
        });
        if !same {
            return Ok(Some(event.event_id));
        }
    }
    Ok(None)
}
