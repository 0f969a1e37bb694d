//! Rows as Apache Parquet, a row group at a time, from PostgreSQL's binary form. Every column may be null; lists have the
//! three levels that readers expect.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use sqlx::postgres::PgRow;

use super::encode::{self, POSTGRES_EPOCH_US};
use super::params::Query;
use crate::projections::Kind;

/// Rows of one row group.
const GROUP: usize = 10_000;
/// Bytes of text after which a row group ends earlier.
const GROUP_BYTES: usize = 32 << 20;

/// Where the file's bytes are put until they are sent.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A column's values of the row group that is being gathered, with their levels.
struct Gathered {
    kind: Kind,
    values: Values,
    definitions: Vec<i16>,
    /// For lists only.
    repetitions: Vec<i16>,
}

enum Values {
    /// All of them one behind the other, and where each ends: no memory of its own for each.
    Texts {
        bytes: Vec<u8>,
        ends: Vec<usize>,
    },
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Bools(Vec<bool>),
}

impl Gathered {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Text | Kind::Json => Values::Texts { bytes: Vec::new(), ends: Vec::new() },
            Kind::Int | Kind::Time | Kind::Ints | Kind::Times => Values::Ints(Vec::new()),
            Kind::Float | Kind::Floats => Values::Floats(Vec::new()),
            Kind::Bool => Values::Bools(Vec::new()),
        };
        Self { kind, values, definitions: Vec::new(), repetitions: Vec::new() }
    }

    fn is_list(&self) -> bool {
        matches!(self.kind, Kind::Floats | Kind::Ints | Kind::Times)
    }

    /// Takes a row's value; gives the bytes it holds on to.
    fn take(&mut self, bytes: Option<&[u8]>) -> Result<usize, String> {
        if self.is_list() {
            return self.take_list(bytes);
        }
        // A number that is none has no place in a table of figures.
        let found = match bytes {
            None => false,
            Some(bytes) => self.push(bytes)?,
        };
        self.definitions.push(i16::from(found));
        Ok(bytes.map_or(0, <[u8]>::len))
    }

    /// Levels of a list: 0 no list, 1 an empty one, 2 nothing in this place, 3 a value.
    fn take_list(&mut self, bytes: Option<&[u8]>) -> Result<usize, String> {
        let Some(bytes) = bytes else {
            self.definitions.push(0);
            self.repetitions.push(0);
            return Ok(0);
        };
        let elements = encode::elements(bytes)?;
        if elements.is_empty() {
            self.definitions.push(1);
            self.repetitions.push(0);
        }
        for (nth, element) in elements.into_iter().enumerate() {
            let found = match element {
                None => false,
                Some(bytes) => self.push(bytes)?,
            };
            self.definitions.push(if found { 3 } else { 2 });
            self.repetitions.push(i16::from(nth > 0));
        }
        Ok(bytes.len())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<bool, String> {
        match (&mut self.values, self.kind) {
            (Values::Texts { bytes: texts, ends }, kind) => {
                texts.extend_from_slice(if kind == Kind::Json { encode::json_text(bytes)? } else { bytes });
                ends.push(texts.len());
            }
            (Values::Ints(ints), Kind::Time | Kind::Times) => {
                let micros = encode::integer(bytes)?.checked_add(POSTGRES_EPOCH_US);
                ints.push(micros.ok_or("a time outside the years 1 to 9999")?);
            }
            (Values::Ints(ints), _) => ints.push(encode::integer(bytes)?),
            (Values::Floats(floats), _) => {
                let number = encode::number(bytes)?;
                if !number.is_finite() {
                    return Ok(false);
                }
                floats.push(number);
            }
            (Values::Bools(bools), _) => bools.push(bytes == [1]),
        }
        Ok(true)
    }
}

/// The field of a column in the file's schema.
fn field(name: &str, kind: Kind) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
        Kind::Int | Kind::Ints => (Physical::INT64, None),
        Kind::Time | Kind::Times => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        Kind::Float | Kind::Floats => (Physical::DOUBLE, None),
        Kind::Bool => (Physical::BOOLEAN, None),
    };
    let list = matches!(kind, Kind::Floats | Kind::Ints | Kind::Times);
    let leaf = Type::primitive_type_builder(if list { "element" } else { name }, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    if !list {
        return Ok(Arc::new(leaf));
    }
    let repeated = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(leaf)])
        .build()?;
    let outer = Type::group_type_builder(name)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(repeated)])
        .build()?;
    Ok(Arc::new(outer))
}

/// Rows on their way into a file.
pub(super) struct ParquetRows {
    writer: SerializedFileWriter<Sink>,
    sink: Sink,
    columns: Vec<Gathered>,
    rows: usize,
    bytes: usize,
}

impl ParquetRows {
    /// A file with the columns of a query, and facts about where it comes from in its own metadata.
    pub(super) fn new(query: &Query<'_>, about: &[(&str, String)]) -> io::Result<Self> {
        let build = || -> Result<_, ParquetError> {
            let fields =
                query.select.iter().map(|(alias, c)| field(alias, c.kind)).collect::<Result<Vec<_>, _>>()?;
            let schema = Type::group_type_builder("rows").with_fields(fields).build()?;
            let facts =
                about.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone())).collect();
            let mut properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .set_statistics_enabled(EnabledStatistics::Chunk)
                .set_created_by(format!("benchtrail {}", env!("CARGO_PKG_VERSION")))
                .set_key_value_metadata(Some(facts));
            // Figures are hardly ever the same twice: a dictionary of them is looked through and then thrown away.
            for (alias, _) in query.select.iter().filter(|(_, c)| matches!(c.kind, Kind::Float | Kind::Time))
            {
                let column = ColumnPath::new(vec![alias.clone()]);
                properties = properties.set_column_dictionary_enabled(column, false);
            }
            let properties = properties.build();
            let sink = Sink::default();
            let writer = SerializedFileWriter::new(sink.clone(), Arc::new(schema), Arc::new(properties))?;
            Ok((writer, sink))
        };
        let (writer, sink) = build().map_err(io::Error::other)?;
        let columns = query.select.iter().map(|(_, c)| Gathered::new(c.kind)).collect();
        Ok(Self { writer, sink, columns, rows: 0, bytes: 0 })
    }

    /// Takes a row; what is complete of the file goes to `out`.
    pub(super) fn row(&mut self, row: &PgRow, out: &mut Vec<u8>) -> io::Result<()> {
        for (nth, column) in self.columns.iter_mut().enumerate() {
            let bytes = encode::bytes(row, nth).map_err(io::Error::other)?;
            self.bytes += column.take(bytes).map_err(io::Error::other)?;
        }
        self.rows += 1;
        if self.rows >= GROUP || self.bytes >= GROUP_BYTES {
            self.end_group().map_err(io::Error::other)?;
            self.drain(out)?;
        }
        Ok(())
    }

    /// The rest of the file.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if self.rows > 0 {
            self.end_group().map_err(io::Error::other)?;
        }
        self.writer.finish().map_err(io::Error::other)?;
        self.drain(out)
    }

    fn drain(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.writer.flush()?;
        let mut written = self.sink.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        out.append(&mut written);
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let gathered = std::mem::replace(column, Gathered::new(column.kind));
            let definitions = Some(gathered.definitions.as_slice());
            let repetitions = gathered.is_list().then_some(gathered.repetitions.as_slice());
            let Some(mut chunk) = group.next_column()? else {
                return Err(ParquetError::General("a column without a place in the file".into()));
            };
            match gathered.values {
                Values::Texts { bytes, ends } => {
                    let bytes = Bytes::from(bytes);
                    let starts = std::iter::once(0).chain(ends.iter().copied());
                    let texts: Vec<ByteArray> =
                        starts.zip(&ends).map(|(from, to)| ByteArray::from(bytes.slice(from..*to))).collect();
                    chunk.typed::<ByteArrayType>().write_batch(&texts, definitions, repetitions)?
                }
                Values::Ints(v) => chunk.typed::<Int64Type>().write_batch(&v, definitions, repetitions)?,
                Values::Floats(v) => chunk.typed::<DoubleType>().write_batch(&v, definitions, repetitions)?,
                Values::Bools(v) => chunk.typed::<BoolType>().write_batch(&v, definitions, repetitions)?,
            };
            chunk.close()?;
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}
