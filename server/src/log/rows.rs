//! The rows of a batch in PostgreSQL's binary form for an array of `log_row`: one value to bind, and cheaper for the
//! server to take apart than an array for each column.

use events::envelope::ActorKind;
use events::timestamp::Timestamp;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo};
use sqlx::{Encode, PgConnection, Postgres, Type};
use uuid::Uuid;

use super::LogError;
use super::database::pg_micros;

/// Object ids of built-in types, which are the same in every PostgreSQL.
const INT8: u32 = 20;
const INT4: u32 = 23;
const TEXT: u32 = 25;
const BYTEA: u32 = 17;
const UUID: u32 = 2950;
const TIMESTAMPTZ: u32 = 1184;

/// An event as a row to insert. Its position and the time of recording are the batch's to give.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventRow<'a> {
    pub stream_no: i64,
    pub version: i64,
    pub occurred_at: Timestamp,
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

/// The ids that this database gave to the type `log_row` and to its array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RowType {
    row: u32,
    array: u32,
}

impl RowType {
    pub async fn look_up(connection: &mut PgConnection) -> Result<Self, LogError> {
        let (row, array): (Oid, Oid) =
            sqlx::query_as("select oid, typarray from pg_type where oid = 'log_row'::regtype")
                .fetch_one(connection)
                .await?;
        Ok(Self { row: row.0, array: array.0 })
    }
}

/// Rows to bind as one parameter of type `log_row[]`.
#[derive(Debug)]
pub(super) struct RowArray<'r, 'a> {
    pub rows: &'r [EventRow<'a>],
    pub row_type: RowType,
}

impl Type<Postgres> for RowArray<'_, '_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("_log_row")
    }
}

impl Encode<'_, Postgres> for RowArray<'_, '_> {
    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(Oid(self.row_type.array)))
    }

    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        // Dimensions, has-nulls, element type; then the length and the lower bound of the one dimension.
        buffer.extend_from_slice(&1_i32.to_be_bytes());
        buffer.extend_from_slice(&0_i32.to_be_bytes());
        buffer.extend_from_slice(&self.row_type.row.to_be_bytes());
        buffer.extend_from_slice(&i32::try_from(self.rows.len())?.to_be_bytes());
        buffer.extend_from_slice(&1_i32.to_be_bytes());
        for row in self.rows {
            let length_at = buffer.len();
            buffer.extend_from_slice(&[0; 4]);
            row.write(buffer)?;
            let length = i32::try_from(buffer.len() - length_at - 4)?;
            buffer[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(IsNull::No)
    }
}

impl EventRow<'_> {
    fn write(&self, buffer: &mut PgArgumentBuffer) -> Result<(), BoxDynError> {
        fn field(buffer: &mut PgArgumentBuffer, oid: u32, bytes: Option<&[u8]>) -> Result<(), BoxDynError> {
            buffer.extend_from_slice(&oid.to_be_bytes());
            match bytes {
                Some(bytes) => {
                    buffer.extend_from_slice(&i32::try_from(bytes.len())?.to_be_bytes());
                    buffer.extend_from_slice(bytes);
                }
                None => buffer.extend_from_slice(&(-1_i32).to_be_bytes()),
            }
            Ok(())
        }
        buffer.extend_from_slice(&13_i32.to_be_bytes());
        field(buffer, INT8, Some(&self.stream_no.to_be_bytes()))?;
        field(buffer, INT8, Some(&self.version.to_be_bytes()))?;
        field(buffer, TIMESTAMPTZ, Some(&pg_micros(self.occurred_at).to_be_bytes()))?;
        field(buffer, UUID, Some(self.event_id.as_bytes()))?;
        field(buffer, INT4, Some(&i32::from(self.schema_version).to_be_bytes()))?;
        field(buffer, TEXT, Some(self.event_type.as_bytes()))?;
        field(buffer, TEXT, Some(self.org.as_bytes()))?;
        field(buffer, TEXT, Some(self.actor_kind.as_str().as_bytes()))?;
        field(buffer, TEXT, Some(self.actor_id.as_bytes()))?;
        field(buffer, UUID, self.causation_id.as_ref().map(|id| &id.as_bytes()[..]))?;
        field(buffer, UUID, self.correlation_id.as_ref().map(|id| &id.as_bytes()[..]))?;
        field(buffer, TEXT, Some(self.payload.as_bytes()))?;
        field(buffer, BYTEA, Some(&self.hash))
    }
}
