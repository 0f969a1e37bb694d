//! The log's view of PostgreSQL: connections, rows, and what its errors mean.

use std::collections::HashMap;
use std::str::FromStr;

use events::keys::StreamKey;
use events::timestamp::{Timestamp, TimestampError};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgConnectOptions, PgRow, PgTypeInfo};
use sqlx::{Encode, PgConnection, Postgres, Row, Type};
use uuid::Uuid;

use super::{Head, LogConfig, LogError};

/// PostgreSQL counts microseconds from 2000, [`Timestamp`] from 1970.
const PG_EPOCH_MICROS: i64 = 946_684_800_000_000;

/// A [`Timestamp`] as a `timestamptz`, without a detour over a calendar.
#[derive(Debug, Clone, Copy)]
pub(super) struct PgTimestamp(pub Timestamp);

impl Type<Postgres> for PgTimestamp {
    fn type_info() -> PgTypeInfo {
        <time::OffsetDateTime as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for PgTimestamp {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Postgres>::encode(pg_micros(self.0), buffer)
    }
}

/// Microseconds since 2000: what a `timestamptz` is in binary form.
pub(super) const fn pg_micros(timestamp: Timestamp) -> i64 {
    timestamp.as_micros() - PG_EPOCH_MICROS
}

/// The time that a `timestamptz` in binary form holds.
pub(super) fn timestamp(bytes: [u8; 8]) -> Result<Timestamp, TimestampError> {
    Timestamp::from_micros(i64::from_be_bytes(bytes).saturating_add(PG_EPOCH_MICROS))
}

/// For connections that write much: what they write goes to the disk as they write it, instead of all of it when a checkpoint
/// flushes its files, for which an append would wait.
pub(crate) const FLUSH_AS_WRITTEN: (&str, &str) = ("backend_flush_after", "256kB");

/// Options of every connection of the log.
pub(super) fn connect_options(config: &LogConfig, name: &str) -> Result<PgConnectOptions, LogError> {
    let options = PgConnectOptions::from_str(&config.database_url)?.application_name(name);
    Ok(match &config.role {
        Some(role) => options.options([("role", role.as_str())]),
        None => options,
    })
}

/// The end of the log as an appender must know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeadState {
    pub position: i64,
    pub hash: [u8; 32],
    /// The number given to the last new stream.
    pub streams: i64,
}

impl From<HeadState> for Head {
    fn from(head: HeadState) -> Self {
        Self { position: head.position, hash: head.hash }
    }
}

fn head_of(row: &PgRow) -> Result<HeadState, LogError> {
    let position = row.try_get(0)?;
    Ok(HeadState { position, hash: hash_of(position, row.try_get(1)?)?, streams: row.try_get(2)? })
}

pub(super) fn hash_of(position: i64, bytes: &[u8]) -> Result<[u8; 32], LogError> {
    bytes
        .try_into()
        .map_err(|_| LogError::Damaged { position, what: format!("a hash of {} bytes, not 32", bytes.len()) })
}

/// Reads the head.
pub(super) async fn head(connection: &mut PgConnection) -> Result<HeadState, LogError> {
    let row = sqlx::query("select position, hash, streams from log_head").fetch_one(connection).await?;
    head_of(&row)
}

/// Locks the head until the transaction ends, and reads it.
pub(super) async fn lock_head(connection: &mut PgConnection) -> Result<HeadState, LogError> {
    let row =
        sqlx::query("select position, hash, streams from log_lock_head()").fetch_one(connection).await?;
    head_of(&row)
}

/// A stream's number and the version of its last event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamState {
    pub number: i64,
    pub version: i64,
}

/// Looks streams up by key; those without an event are missing from the answer.
pub(super) async fn streams(
    connection: &mut PgConnection,
    keys: &[&str],
) -> Result<Vec<(StreamKey, StreamState)>, LogError> {
    let rows = sqlx::query("select stream_key, stream_no, version from streams where stream_key = any($1)")
        .bind(keys)
        .fetch_all(connection)
        .await?;
    rows.iter()
        .map(|row| {
            Ok((
                stream_key(row.try_get(0)?)?,
                StreamState { number: row.try_get(1)?, version: row.try_get(2)? },
            ))
        })
        .collect()
}

/// Looks positions up by event id.
pub(super) async fn positions(
    connection: &mut PgConnection,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, i64>, LogError> {
    let rows = sqlx::query("select event_id, position from event_ids where event_id = any($1)")
        .bind(ids)
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// What an error of an append means for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The connection is gone: whether the batch was committed is not known.
    Lost,
    /// Rolled back, for a reason that passes or that somebody must see to: a lock not got, a full disk, a missing grant.
    Passing,
    /// Rolled back, because a stream or an id is not as it was believed.
    Stale,
    /// Rolled back: there is no partition for the position.
    NoPartition,
    /// Rolled back, because of what the batch holds.
    Content,
}

/// The meaning of an error of an append.
pub(super) fn meaning(error: &LogError) -> Meaning {
    let error = match error {
        LogError::Database(error) => error,
        LogError::Unavailable(_) => return Meaning::Lost,
        _ => return Meaning::Passing,
    };
    let Some(database) = error.as_database_error() else {
        return match error {
            sqlx::Error::Encode(_) => Meaning::Content,
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Meaning::Passing,
            _ => Meaning::Lost,
        };
    };
    let code = database.code().unwrap_or_default();
    match &*code {
        "BT001" | "BT002" | "23505" => Meaning::Stale,
        "23514" => Meaning::NoPartition,
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "25P03" => Meaning::Lost,
        code if code.starts_with("08") => Meaning::Lost,
        code if code.starts_with("22") || code.starts_with("54") => Meaning::Content,
        _ => Meaning::Passing,
    }
}

/// A key as the database holds it.
pub(super) fn stream_key(text: &str) -> Result<StreamKey, LogError> {
    text.parse().map_err(|error| LogError::Damaged { position: 0, what: format!("stream key: {error}") })
}
