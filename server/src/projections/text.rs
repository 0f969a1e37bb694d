//! Rows as PostgreSQL's own text: one form of each value for COPY and for UNNEST, so that a rebuilt row is written
//! exactly as the live one was. No text holds a NUL: the log's canonical JSON refuses it.

use serde::ser::{self, Impossible, SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};

/// What a column holds, in the database and in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Text, compared by bytes.
    Text,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// Yes or no.
    Bool,
    /// A point in time.
    Time,
    /// Any JSON.
    Json,
    /// Numbers, null where there is none.
    Floats,
    /// Whole numbers, null where there is none.
    Ints,
    /// Points in time.
    Times,
}

impl Kind {
    /// The type in PostgreSQL.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Int => "bigint",
            Self::Float => "double precision",
            Self::Bool => "boolean",
            Self::Time => "timestamptz",
            Self::Json => "jsonb",
            Self::Floats => "double precision[]",
            Self::Ints => "bigint[]",
            Self::Times => "timestamptz[]",
        }
    }

    fn is_array(self) -> bool {
        matches!(self, Self::Floats | Self::Ints | Self::Times)
    }
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Whether views leave it out: state a fold keeps for itself.
    pub hidden: bool,
}

impl Column {
    /// A column that views show.
    pub fn shown(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind, hidden: false }
    }

    /// A column that views leave out.
    pub fn hidden(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind, hidden: true }
    }
}

/// A row that cannot be written: a defect of the row's type, not of an event.
#[derive(Debug, thiserror::Error)]
#[error("a row cannot be written: {0}")]
pub struct TextError(String);

impl ser::Error for TextError {
    fn custom<T: std::fmt::Display>(msg: T) -> Self {
        Self(msg.to_string())
    }
}

/// The text of every column of a row, in the order of `columns`; null where it is absent.
///
/// # Errors
/// The row's type does not have these columns.
pub fn fields<T: Serialize>(row: &T, columns: &[Column]) -> Result<Vec<Option<String>>, TextError> {
    let mut out = vec![None; columns.len()];
    row.serialize(RowWriter { columns, out: &mut out, next: 0 })?;
    Ok(out)
}

/// Appends one row in COPY's text format.
pub fn copy_line(fields: &[Option<String>], out: &mut Vec<u8>) {
    for (nth, field) in fields.iter().enumerate() {
        if nth > 0 {
            out.push(b'\t');
        }
        match field {
            None => out.extend_from_slice(b"\\N"),
            Some(text) => {
                for &byte in text.as_bytes() {
                    match byte {
                        b'\\' => out.extend_from_slice(b"\\\\"),
                        b'\t' => out.extend_from_slice(b"\\t"),
                        b'\n' => out.extend_from_slice(b"\\n"),
                        b'\r' => out.extend_from_slice(b"\\r"),
                        other => out.push(other),
                    }
                }
            }
        }
    }
    out.push(b'\n');
}

fn value<T: Serialize + ?Sized>(value: &T, kind: Kind) -> Result<Option<String>, TextError> {
    let error = |e: serde_json::Error| TextError(e.to_string());
    match kind {
        Kind::Json => {
            let json = serde_json::to_string(value).map_err(error)?;
            Ok((json != "null").then_some(json))
        }
        _ if kind.is_array() => {
            // A JSON list of numbers, times and nulls differs from an array literal in its brackets alone.
            let json = serde_json::to_string(value).map_err(error)?;
            if json == "null" {
                return Ok(None);
            }
            let inner = json.strip_prefix('[').and_then(|j| j.strip_suffix(']'));
            Ok(Some(format!(
                "{{{}}}",
                inner.ok_or_else(|| TextError("an array column needs a list".into()))?
            )))
        }
        _ => value.serialize(Scalar),
    }
}

struct RowWriter<'a> {
    columns: &'a [Column],
    out: &'a mut Vec<Option<String>>,
    next: usize,
}

impl RowWriter<'_> {
    fn put<T: Serialize + ?Sized>(&mut self, name: &str, field: &T) -> Result<(), TextError> {
        // Rows serialise in column order nearly always; a flattened part may not.
        let at = match self.columns.get(self.next) {
            Some(column) if column.name == name => self.next,
            _ => self
                .columns
                .iter()
                .position(|c| c.name == name)
                .ok_or_else(|| TextError(format!("no column {name:?}")))?,
        };
        self.out[at] = value(field, self.columns[at].kind)?;
        self.next = at + 1;
        Ok(())
    }
}

macro_rules! refuse {
    ($what:literal; $($name:ident($($arg:ty),*);)*) => {$(
        fn $name(self, $(_: $arg),*) -> Result<Self::Ok, TextError> {
            Err(TextError(concat!(stringify!($name), " in ", $what).to_owned()))
        }
    )*};
}

macro_rules! refuse_compounds {
    ($what:literal) => {
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<Self::Ok, TextError> {
            Err(TextError(concat!("a variant in ", $what).to_owned()))
        }
        fn serialize_tuple_struct(
            self,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleStruct, TextError> {
            Err(TextError(concat!("a tuple struct in ", $what).to_owned()))
        }
        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant, TextError> {
            Err(TextError(concat!("a variant in ", $what).to_owned()))
        }
        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant, TextError> {
            Err(TextError(concat!("a variant in ", $what).to_owned()))
        }
    };
}

impl<'a> Serializer for RowWriter<'a> {
    type Ok = ();
    type Error = TextError;
    type SerializeSeq = Impossible<(), TextError>;
    type SerializeTuple = Impossible<(), TextError>;
    type SerializeTupleStruct = Impossible<(), TextError>;
    type SerializeTupleVariant = Impossible<(), TextError>;
    type SerializeMap = MapWriter<'a>;
    type SerializeStruct = RowWriter<'a>;
    type SerializeStructVariant = Impossible<(), TextError>;

    refuse! { "place of a row";
        serialize_bool(bool); serialize_i8(i8); serialize_i16(i16); serialize_i32(i32); serialize_i64(i64);
        serialize_u8(u8); serialize_u16(u16); serialize_u32(u32); serialize_u64(u64); serialize_f32(f32);
        serialize_f64(f64); serialize_char(char); serialize_str(&str); serialize_bytes(&[u8]); serialize_none();
        serialize_unit(); serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }
    refuse_compounds!("place of a row");

    fn serialize_some<T: Serialize + ?Sized>(self, inner: &T) -> Result<(), TextError> {
        inner.serialize(self)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        inner: &T,
    ) -> Result<(), TextError> {
        inner.serialize(self)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, TextError> {
        Err(TextError("a list in place of a row".to_owned()))
    }
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, TextError> {
        Err(TextError("a tuple in place of a row".to_owned()))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<MapWriter<'a>, TextError> {
        Ok(MapWriter { row: self, key: String::new() })
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, TextError> {
        Ok(self)
    }
}

impl SerializeStruct for RowWriter<'_> {
    type Ok = ();
    type Error = TextError;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        field: &T,
    ) -> Result<(), TextError> {
        self.put(name, field)
    }
    fn end(self) -> Result<(), TextError> {
        Ok(())
    }
}

/// A row with a flattened part comes as a map.
struct MapWriter<'a> {
    row: RowWriter<'a>,
    key: String,
}

impl SerializeMap for MapWriter<'_> {
    type Ok = ();
    type Error = TextError;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), TextError> {
        self.key = key.serialize(Scalar)?.unwrap_or_default();
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, field: &T) -> Result<(), TextError> {
        let key = std::mem::take(&mut self.key);
        self.row.put(&key, field)
    }
    fn end(self) -> Result<(), TextError> {
        Ok(())
    }
}

mod scalar;
use scalar::Scalar;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    struct Row {
        name: String,
        count: Option<u32>,
        ratio: f64,
        argv: Vec<String>,
        watts: Vec<Option<f64>>,
        #[serde(flatten)]
        figures: BTreeMap<String, Option<f64>>,
    }

    fn columns() -> Vec<Column> {
        [
            ("name", Kind::Text),
            ("count", Kind::Int),
            ("ratio", Kind::Float),
            ("argv", Kind::Json),
            ("watts", Kind::Floats),
            ("ttft_p99_ms", Kind::Float),
        ]
        .map(|(name, kind)| Column::shown(name, kind))
        .to_vec()
    }

    #[test]
    fn a_row_becomes_the_text_of_its_columns() {
        let row = Row {
            name: "a\tb\\c".into(),
            count: None,
            ratio: 0.1,
            argv: vec!["--x".into(), "ä".into()],
            watts: vec![Some(1.5), None],
            figures: BTreeMap::from([("ttft_p99_ms".into(), Some(402.0))]),
        };
        let fields = fields(&row, &columns()).unwrap();
        let texts: Vec<Option<&str>> = fields.iter().map(Option::as_deref).collect();
        assert_eq!(
            texts,
            [Some("a\tb\\c"), None, Some("0.1"), Some("[\"--x\",\"ä\"]"), Some("{1.5,null}"), Some("402")]
        );
        let mut line = Vec::new();
        copy_line(&fields, &mut line);
        assert!(line.starts_with(b"a\\tb\\\\c\t\\N\t0.1\t"));
    }

    #[test]
    fn a_column_that_does_not_exist_is_refused() {
        let row = BTreeMap::from([("other", 1)]);
        assert!(fields(&row, &columns()).is_err());
    }
}
