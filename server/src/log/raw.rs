//! Rows of `events` in PostgreSQL's binary form, read in place.

use std::str::{self, FromStr};

use events::envelope::{Actor, ActorKind, Envelope, Recorded};
use events::keys::StreamKey;
use events::timestamp::Timestamp;
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::LogError;
use super::database::{hash_of, timestamp};

/// The columns of `events`, in the order in which [`RawEvent`] reads them.
pub(super) const COLUMNS: &str = "position, stream_no, version, occurred_at, recorded_at, event_id, schema_version, \
     event_type, org, actor_kind, actor_id, causation_id, correlation_id, payload, hash";
const COUNT: usize = 15;

/// A row of `events`, borrowed from what the database sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawEvent<'a> {
    pub position: i64,
    pub stream_no: i64,
    pub version: i64,
    pub occurred_at: Timestamp,
    pub recorded_at: Timestamp,
    pub event_id: Uuid,
    pub schema_version: u16,
    pub event_type: &'a str,
    pub org: &'a str,
    pub actor_kind: ActorKind,
    pub actor_id: &'a str,
    pub causation_id: Option<Uuid>,
    pub correlation_id: Option<Uuid>,
    pub payload: &'a str,
    pub hash: [u8; 32],
}

impl<'a> RawEvent<'a> {
    /// From the binary values of [`COLUMNS`].
    fn of(values: &[Option<&'a [u8]>; COUNT]) -> Result<Self, LogError> {
        let position = values[0]
            .and_then(|bytes| bytes.try_into().ok())
            .map(i64::from_be_bytes)
            .ok_or_else(|| LogError::Damaged { position: 0, what: "a row without a position".to_owned() })?;
        let damaged = |what: String| LogError::Damaged { position, what };
        let value = |at: usize| values[at].ok_or_else(|| damaged(format!("column {at} is null")));
        let eight = |at: usize| {
            value(at)?.try_into().map_err(|_| damaged(format!("column {at} is not eight bytes long")))
        };
        let text =
            |at: usize| str::from_utf8(value(at)?).map_err(|_| damaged(format!("column {at} is not UTF-8")));
        let uuid = |at: usize| {
            values[at]
                .map(|bytes| Uuid::from_slice(bytes).map_err(|e| damaged(format!("column {at}: {e}"))))
                .transpose()
        };
        let time = |at: usize| timestamp(eight(at)?).map_err(|e| damaged(format!("column {at}: {e}")));
        let schema_version = value(6)?
            .try_into()
            .map(i32::from_be_bytes)
            .ok()
            .and_then(|version| u16::try_from(version).ok())
            .ok_or_else(|| damaged("the schema version is out of range".to_owned()))?;
        Ok(Self {
            position,
            stream_no: i64::from_be_bytes(eight(1)?),
            version: i64::from_be_bytes(eight(2)?),
            occurred_at: time(3)?,
            recorded_at: time(4)?,
            event_id: uuid(5)?.ok_or_else(|| damaged("no event id".to_owned()))?,
            schema_version,
            event_type: text(7)?,
            org: text(8)?,
            actor_kind: ActorKind::from_str(text(9)?).map_err(|e| damaged(e.to_string()))?,
            actor_id: text(10)?,
            causation_id: uuid(11)?,
            correlation_id: uuid(12)?,
            payload: text(13)?,
            hash: hash_of(position, value(14)?)?,
        })
    }

    /// From a row of a prepared query for [`COLUMNS`].
    pub fn of_row(row: &'a PgRow) -> Result<Self, LogError> {
        let mut values = [None; COUNT];
        for (at, value) in values.iter_mut().enumerate() {
            let raw = row.try_get_raw(at)?;
            *value = match sqlx::ValueRef::is_null(&raw) {
                true => None,
                false => Some(raw.as_bytes().map_err(sqlx::Error::Decode)?),
            };
        }
        Self::of(&values)
    }

    /// From one row of `copy (select …) to stdout (format binary)`.
    pub fn of_copied(row: &'a [u8]) -> Result<Self, LogError> {
        let broken =
            || LogError::Damaged { position: 0, what: "the database sent a row that ends early".to_owned() };
        let (count, mut rest) = row.split_first_chunk::<2>().ok_or_else(broken)?;
        if usize::from(u16::from_be_bytes(*count)) != COUNT {
            return Err(broken());
        }
        let mut values = [None; COUNT];
        for value in &mut values {
            let (length, after) = rest.split_first_chunk::<4>().ok_or_else(broken)?;
            rest = after;
            if let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) {
                let (bytes, after) = rest.split_at_checked(length).ok_or_else(broken)?;
                *value = Some(bytes);
                rest = after;
            }
        }
        Self::of(&values)
    }

    /// The hashed fields, with the stream's key.
    pub fn envelope(&self, stream: &'a str) -> Envelope<'a> {
        Envelope {
            position: self.position,
            stream,
            version: self.version,
            event_id: self.event_id,
            event_type: self.event_type,
            schema_version: self.schema_version,
            org: self.org,
            actor_kind: self.actor_kind,
            actor_id: self.actor_id,
            causation_id: self.causation_id,
            correlation_id: self.correlation_id,
            occurred_at: self.occurred_at,
            recorded_at: self.recorded_at,
            payload: self.payload,
        }
    }

    /// The event, owned. Its leaf is computed from what was read.
    pub fn recorded(&self, stream: StreamKey) -> Recorded {
        let leaf = self.envelope(stream.as_str()).leaf();
        Recorded {
            position: self.position,
            stream,
            version: self.version,
            event_id: self.event_id,
            event_type: self.event_type.to_owned(),
            schema_version: self.schema_version,
            org: self.org.to_owned(),
            actor: Actor { kind: self.actor_kind, id: self.actor_id.to_owned() },
            causation_id: self.causation_id,
            correlation_id: self.correlation_id,
            occurred_at: self.occurred_at,
            recorded_at: self.recorded_at,
            payload: self.payload.to_owned(),
            leaf,
            hash: self.hash,
        }
    }
}

/// Splits what `copy … (format binary)` sends into rows: takes the header off the first message, and skips the end mark.
pub(super) fn copied_row(message: &[u8], first: bool) -> Option<&[u8]> {
    /// Signature (11 bytes), flags (4), length of the header's extension (4), which is 0.
    const HEADER: usize = 19;
    let row = if first { message.get(HEADER..)? } else { message };
    (row.len() > 2 && row[..2] != [0xff, 0xff]).then_some(row)
}
