//! Rows as JSON and CSV, straight from PostgreSQL's binary form.

use std::io::Write;

use events::Timestamp;
use sqlx::postgres::{PgRow, PgValueFormat, PgValueRef};
use sqlx::{Row, ValueRef};

use crate::projections::Kind;

/// PostgreSQL counts microseconds from 2000-01-01.
pub(super) const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

/// A value that does not have the form its column promises: a defect.
#[derive(Debug, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct EncodeError {
    column: usize,
    what: String,
}

/// Appends a row as a JSON object. `names` are JSON strings already, each with its colon.
///
/// # Errors
/// A value does not have its column's form.
pub fn json_row(row: &PgRow, names: &[String], kinds: &[Kind], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.push(b'{');
    for (nth, kind) in kinds.iter().enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        out.extend_from_slice(names[nth].as_bytes());
        match bytes(row, nth)? {
            None => out.extend_from_slice(b"null"),
            Some(bytes) => json_value(bytes, *kind, out).map_err(|what| EncodeError { column: nth, what })?,
        }
    }
    out.push(b'}');
    Ok(())
}

/// Appends a row as a line of CSV (RFC 4180). Nothing stands for null.
///
/// # Errors
/// A value does not have its column's form.
pub fn csv_row(row: &PgRow, kinds: &[Kind], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut scratch = Vec::new();
    for (nth, kind) in kinds.iter().enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        let Some(bytes) = bytes(row, nth)? else { continue };
        if *kind == Kind::Text {
            csv_field(bytes, out);
            continue;
        }
        scratch.clear();
        json_value(bytes, *kind, &mut scratch).map_err(|what| EncodeError { column: nth, what })?;
        match *kind {
            Kind::Time => out.extend_from_slice(
                scratch.strip_prefix(b"\"").and_then(|s| s.strip_suffix(b"\"")).unwrap_or(&scratch),
            ),
            _ => csv_field(&scratch, out),
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Appends one CSV field, quoted where it must be.
pub fn csv_field(bytes: &[u8], out: &mut Vec<u8>) {
    // An empty text is not null: it is quoted.
    if !bytes.is_empty() && !bytes.iter().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r')) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    for &byte in bytes {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// A column's bytes; nothing for null.
pub(super) fn bytes(row: &PgRow, nth: usize) -> Result<Option<&[u8]>, EncodeError> {
    let error = |what: String| EncodeError { column: nth, what };
    let value: PgValueRef<'_> = row.try_get_raw(nth).map_err(|e| error(e.to_string()))?;
    if value.is_null() {
        return Ok(None);
    }
    if value.format() != PgValueFormat::Binary {
        return Err(error("not in binary form".to_owned()));
    }
    value.as_bytes().map(Some).map_err(|e| error(e.to_string()))
}

fn json_value(bytes: &[u8], kind: Kind, out: &mut Vec<u8>) -> Result<(), String> {
    match kind {
        Kind::Text => {
            let text = std::str::from_utf8(bytes).map_err(|e| e.to_string())?;
            serde_json::to_writer(out, text).map_err(|e| e.to_string())
        }
        Kind::Int => whole(bytes, out),
        Kind::Float => float(bytes, out),
        Kind::Bool => {
            out.extend_from_slice(if bytes == [1] { b"true" } else { b"false" });
            Ok(())
        }
        Kind::Time => time(bytes, out),
        Kind::Json => {
            out.extend_from_slice(json_text(bytes)?);
            Ok(())
        }
        Kind::Floats => array(bytes, out, float),
        Kind::Ints => array(bytes, out, whole),
        Kind::Times => array(bytes, out, time),
    }
}

fn whole(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    out.extend_from_slice(itoa::Buffer::new().format(integer(bytes)?).as_bytes());
    Ok(())
}

/// A whole number of any width.
pub(super) fn integer(bytes: &[u8]) -> Result<i64, String> {
    let length = || format!("a whole number of {} bytes", bytes.len());
    Ok(match bytes.len() {
        8 => i64::from_be_bytes(bytes.try_into().map_err(|_| length())?),
        4 => i64::from(i32::from_be_bytes(bytes.try_into().map_err(|_| length())?)),
        2 => i64::from(i16::from_be_bytes(bytes.try_into().map_err(|_| length())?)),
        _ => return Err(length()),
    })
}

/// The text of binary jsonb: it stands behind a version byte.
pub(super) fn json_text(bytes: &[u8]) -> Result<&[u8], String> {
    match bytes.split_first() {
        Some((1, json)) => Ok(json),
        Some((version, _)) => Err(format!("JSON version {version}")),
        None => Err("empty JSON".to_owned()),
    }
}

/// A number.
pub(super) fn number(bytes: &[u8]) -> Result<f64, String> {
    let bytes = bytes.try_into().map_err(|_| format!("a number of {} bytes", bytes.len()))?;
    Ok(f64::from_be_bytes(bytes))
}

fn float(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let number = number(bytes)?;
    if !number.is_finite() {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    // The shortest digits that mean this number, several times as quickly as the standard library finds them.
    let mut buffer = zmij::Buffer::new();
    let digits = buffer.format_finite(number);
    if digits.contains('e') {
        // Spelt out, as ever.
        return write!(out, "{number}").map_err(|e| e.to_string());
    }
    out.extend_from_slice(digits.strip_suffix(".0").unwrap_or(digits).as_bytes());
    Ok(())
}

fn time(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let time = integer(bytes)?
        .checked_add(POSTGRES_EPOCH_US)
        .and_then(|micros| Timestamp::from_micros(micros).ok())
        .ok_or("a time outside the years 1 to 9999")?;
    out.push(b'"');
    out.extend_from_slice(&time.text());
    out.push(b'"');
    Ok(())
}

/// The elements of an array of one dimension, null where there is none. Its form: dimensions, flags, type, (length, lower
/// bound), then each element with its length.
pub(super) fn elements(bytes: &[u8]) -> Result<Vec<Option<&[u8]>>, String> {
    let word = |at: usize| -> Result<i32, String> {
        let four = bytes.get(at..at + 4).ok_or("an array that ends early")?;
        Ok(i32::from_be_bytes(four.try_into().map_err(|_| "four bytes")?))
    };
    let dimensions = word(0)?;
    if dimensions > 1 {
        return Err(format!("an array of {dimensions} dimensions"));
    }
    let mut found = Vec::new();
    if dimensions == 1 {
        let mut at = 20;
        for _ in 0..word(12)? {
            let size = word(at)?;
            at += 4;
            let Ok(size) = usize::try_from(size) else {
                found.push(None);
                continue;
            };
            found.push(Some(bytes.get(at..at + size).ok_or("an array that ends early")?));
            at += size;
        }
    }
    Ok(found)
}

fn array(
    bytes: &[u8],
    out: &mut Vec<u8>,
    element: impl Fn(&[u8], &mut Vec<u8>) -> Result<(), String>,
) -> Result<(), String> {
    out.push(b'[');
    for (nth, bytes) in elements(bytes)?.into_iter().enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        match bytes {
            None => out.extend_from_slice(b"null"),
            Some(bytes) => element(bytes, out)?,
        }
    }
    out.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(bytes: &[u8], kind: Kind) -> String {
        let mut out = Vec::new();
        json_value(bytes, kind, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_text_that_a_spreadsheet_takes_for_a_formula_is_exported_as_it_is() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "=HYPERLINK(\"http://x\";\"y\")"] {
            let mut out = Vec::new();
            csv_field(text.as_bytes(), &mut out);
            let plain = text.replace('"', "\"\"");
            let quoted = if text.contains('"') { format!("\"{plain}\"") } else { plain };
            assert_eq!(String::from_utf8(out).unwrap(), quoted);
        }
    }

    #[test]
    fn values_keep_every_bit() {
        assert_eq!(json(&0.1_f64.to_be_bytes(), Kind::Float), "0.1");
        assert_eq!(json(&f64::NAN.to_be_bytes(), Kind::Float), "null");
        assert_eq!(json(&i64::MAX.to_be_bytes(), Kind::Int), "9223372036854775807");
        assert_eq!(json(&7_i32.to_be_bytes(), Kind::Int), "7");
        assert_eq!(json("a\"b\n".as_bytes(), Kind::Text), "\"a\\\"b\\n\"");
        assert_eq!(json(&0_i64.to_be_bytes(), Kind::Time), "\"2000-01-01T00:00:00.000000Z\"");
    }

    #[test]
    fn numbers_are_spelt_out() {
        for (number, text) in [
            (402.0, "402"),
            (-0.0, "-0"),
            (1e-7, "0.0000001"),
            (1e21, "1000000000000000000000"),
            (2.5e15, "2500000000000000"),
        ] {
            assert_eq!(json(&f64::to_be_bytes(number), Kind::Float), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_number_is_spelt_as_the_standard_library_does(bits in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
            proptest::prop_assert_eq!(json(&bits.to_be_bytes(), Kind::Float), format!("{bits}"));
        }
    }

    #[test]
    fn an_array_with_a_null_is_read() {
        let mut bytes = Vec::new();
        for word in [1_i32, 1, 701, 2, 1, 8] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(1.5_f64.to_be_bytes());
        bytes.extend((-1_i32).to_be_bytes());
        assert_eq!(json(&bytes, Kind::Floats), "[1.5,null]");
        assert_eq!(json(&[0; 12], Kind::Floats), "[]");
        assert!(json_value(&bytes[..22], Kind::Floats, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_csv_field_is_quoted_where_it_must_be() {
        let field = |text: &str| {
            let mut out = Vec::new();
            csv_field(text.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(field("plain"), "plain");
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(field(""), "\"\"");
    }
}
