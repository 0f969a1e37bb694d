//! The serializer that writes canonical JSON.

use std::fmt;
use std::fmt::Write as _;

use serde::{Serialize, Serializer, ser};

use super::{CanonicalError, MAX_DEPTH, canonical_json};

/// The name under which `serde_json` passes a `RawValue` to a serializer.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

fn write_text(out: &mut String, text: &str) -> Result<(), CanonicalError> {
    out.push('"');
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[start..at]);
        start = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0x0c => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            0 => return Err(CanonicalError::Nul),
            other => write!(out, "\\u{other:04x}").expect("writing to a String cannot fail"),
        }
    }
    out.push_str(&text[start..]);
    out.push('"');
    Ok(())
}

/// Writes one value, at a depth.
pub(super) struct Writer<'a> {
    pub(super) out: &'a mut String,
    pub(super) depth: usize,
}

impl<'a> Writer<'a> {
    fn display(self, value: impl fmt::Display) -> Result<(), CanonicalError> {
        write!(self.out, "{value}").expect("writing to a String cannot fail");
        Ok(())
    }

    fn list(self, open: &str, close: &'static str) -> Result<List<'a>, CanonicalError> {
        let depth = deeper(self.depth)?;
        self.out.push_str(open);
        Ok(List { out: self.out, depth, first: true, close })
    }

    fn members(self, before: &str, close: &'static str) -> Result<Members<'a>, CanonicalError> {
        let depth = deeper(self.depth)?;
        self.out.push_str(before);
        Ok(Members { out: self.out, depth, entries: Vec::new(), key: None, close, raw: None })
    }

    /// `{"variant":` of an externally tagged enum.
    fn tag(variant: &str, inside: &str) -> Result<String, CanonicalError> {
        let mut tag = String::from("{");
        write_text(&mut tag, variant)?;
        tag.push(':');
        tag.push_str(inside);
        Ok(tag)
    }
}

fn deeper(depth: usize) -> Result<usize, CanonicalError> {
    if depth >= MAX_DEPTH {
        return Err(CanonicalError::TooDeep);
    }
    Ok(depth + 1)
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = CanonicalError;
    type SerializeSeq = List<'a>;
    type SerializeTuple = List<'a>;
    type SerializeTupleStruct = List<'a>;
    type SerializeTupleVariant = List<'a>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Members<'a>;

    fn serialize_bool(self, v: bool) -> Result<(), CanonicalError> {
        self.display(v)
    }
    fn serialize_i8(self, v: i8) -> Result<(), CanonicalError> {
        self.display(v)
    }
    fn serialize_i16(self, v: i16) -> Result<(), CanonicalError> {
        self.display(v)
    }
    fn serialize_i32(self, v: i32) -> Result<(), CanonicalError> {
        self.display(v)
    }
    fn serialize_i64(self, v: i64) -> Result<(), CanonicalError> {
        self.display(v)
    }
    fn serialize_i128(self, v: i128) -> Result<(), CanonicalError> {
        self.display(v)
    }
    fn serialize_u8(self, v: u8) -> Result<(), CanonicalError> {
        self.display(v)
    }
    fn serialize_u16(self, v: u16) -> Result<(), CanonicalError> {
        self.display(v)
    }
    fn serialize_u32(self, v: u32) -> Result<(), CanonicalError> {
        self.display(v)
    }
    fn serialize_u64(self, v: u64) -> Result<(), CanonicalError> {
        self.display(v)
    }
    fn serialize_u128(self, v: u128) -> Result<(), CanonicalError> {
        self.display(v)
    }
    fn serialize_f32(self, v: f32) -> Result<(), CanonicalError> {
        if !v.is_finite() {
            return Err(CanonicalError::NotFinite(v.to_string()));
        }
        // Rust's `Debug` of a float is the shortest text that reads back as the same number.
        self.display(format_args!("{v:?}"))
    }
    fn serialize_f64(self, v: f64) -> Result<(), CanonicalError> {
        if !v.is_finite() {
            return Err(CanonicalError::NotFinite(v.to_string()));
        }
        self.display(format_args!("{v:?}"))
    }
    fn serialize_char(self, v: char) -> Result<(), CanonicalError> {
        write_text(self.out, v.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, v: &str) -> Result<(), CanonicalError> {
        write_text(self.out, v)
    }
    fn serialize_bytes(self, v: &[u8]) -> Result<(), CanonicalError> {
        self.collect_seq(v)
    }
    fn serialize_none(self) -> Result<(), CanonicalError> {
        self.display("null")
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), CanonicalError> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), CanonicalError> {
        self.display("null")
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), CanonicalError> {
        self.display("null")
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), CanonicalError> {
        write_text(self.out, variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        let depth = deeper(self.depth)?;
        self.out.push_str(&Self::tag(variant, "")?);
        value.serialize(Writer { out: self.out, depth })?;
        self.out.push('}');
        Ok(())
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<List<'a>, CanonicalError> {
        self.list("[", "]")
    }
    fn serialize_tuple(self, _: usize) -> Result<List<'a>, CanonicalError> {
        self.list("[", "]")
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<List<'a>, CanonicalError> {
        self.list("[", "]")
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<List<'a>, CanonicalError> {
        let open = Self::tag(variant, "[")?;
        self.list(&open, "]}")
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, CanonicalError> {
        self.members("", "}")
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'a>, CanonicalError> {
        let mut members = self.members("", "}")?;
        members.raw = (name == RAW_VALUE).then(String::new);
        Ok(members)
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, CanonicalError> {
        let open = Self::tag(variant, "")?;
        self.members(&open, "}}")
    }
}

/// An array being written.
pub(super) struct List<'a> {
    out: &'a mut String,
    depth: usize,
    first: bool,
    close: &'static str,
}

impl List<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        if !std::mem::take(&mut self.first) {
            self.out.push(',');
        }
        value.serialize(Writer { out: self.out, depth: self.depth })
    }

    fn finish(self) -> Result<(), CanonicalError> {
        self.out.push_str(self.close);
        Ok(())
    }
}

impl ser::SerializeSeq for List<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.item(value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.finish()
    }
}

impl ser::SerializeTuple for List<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.item(value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.finish()
    }
}

impl ser::SerializeTupleStruct for List<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.item(value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.finish()
    }
}

impl ser::SerializeTupleVariant for List<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.item(value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.finish()
    }
}

/// An object being written: its members are held back until all are known, then sorted.
pub(super) struct Members<'a> {
    out: &'a mut String,
    depth: usize,
    entries: Vec<(String, String)>,
    key: Option<String>,
    close: &'static str,
    /// Some while the "object" is a `RawValue` in disguise.
    raw: Option<String>,
}

impl Members<'_> {
    fn member<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<(), CanonicalError> {
        if let Some(raw) = &mut self.raw {
            // The text is passed as one string: its canonical JSON, read back, is the text itself.
            let quoted = canonical_json(value)?;
            *raw = serde_json::from_str(&quoted).map_err(|e| CanonicalError::Invalid(e.to_string()))?;
            return Ok(());
        }
        let mut text = String::new();
        value.serialize(Writer { out: &mut text, depth: self.depth })?;
        self.entries.push((key, text));
        Ok(())
    }

    fn finish(mut self) -> Result<(), CanonicalError> {
        if let Some(raw) = self.raw {
            let value: serde_json::Value =
                serde_json::from_str(&raw).map_err(|e| CanonicalError::Invalid(e.to_string()))?;
            return value.serialize(Writer { out: self.out, depth: self.depth - 1 });
        }
        self.entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        if let Some(pair) = self.entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(CanonicalError::DuplicateName(pair[0].0.clone()));
        }
        self.out.push('{');
        for (at, (key, value)) in self.entries.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            write_text(self.out, key)?;
            self.out.push(':');
            self.out.push_str(value);
        }
        self.out.push_str(self.close);
        Ok(())
    }
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), CanonicalError> {
        let text = canonical_json(key)?;
        let name = match text.as_bytes()[0] {
            b'"' => serde_json::from_str(&text).map_err(|e| CanonicalError::Invalid(e.to_string()))?,
            b'-' | b'0'..=b'9' | b't' | b'f' => text,
            _ => return Err(CanonicalError::KeyNotText),
        };
        self.key = Some(name);
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        let key =
            self.key.take().ok_or_else(|| CanonicalError::Invalid("a value before its key".to_owned()))?;
        self.member(key, value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.finish()
    }
}

impl ser::SerializeStruct for Members<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        self.member(key.to_owned(), value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.finish()
    }
}

impl ser::SerializeStructVariant for Members<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        self.member(key.to_owned(), value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.finish()
    }
}
