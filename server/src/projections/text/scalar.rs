//! A plain value as PostgreSQL's text.

use serde::ser::Impossible;
use serde::{Serialize, Serializer};

use super::TextError;

/// Writes one plain value.
pub(super) struct Scalar;

macro_rules! plain {
    ($($name:ident($arg:ty);)*) => {$(
        fn $name(self, v: $arg) -> Result<Option<String>, TextError> {
            Ok(Some(v.to_string()))
        }
    )*};
}

impl Serializer for Scalar {
    type Ok = Option<String>;
    type Error = TextError;
    type SerializeSeq = Impossible<Option<String>, TextError>;
    type SerializeTuple = Impossible<Option<String>, TextError>;
    type SerializeTupleStruct = Impossible<Option<String>, TextError>;
    type SerializeTupleVariant = Impossible<Option<String>, TextError>;
    type SerializeMap = Impossible<Option<String>, TextError>;
    type SerializeStruct = Impossible<Option<String>, TextError>;
    type SerializeStructVariant = Impossible<Option<String>, TextError>;

    plain! {
        serialize_bool(bool); serialize_i8(i8); serialize_i16(i16); serialize_i32(i32); serialize_i64(i64);
        serialize_u8(u8); serialize_u16(u16); serialize_u32(u32); serialize_u64(u64); serialize_f32(f32);
        serialize_f64(f64); serialize_char(char);
    }
    refuse! { "place of a value";
        serialize_bytes(&[u8]); serialize_unit_struct(&'static str);
    }
    refuse_compounds!("place of a value");

    fn serialize_str(self, v: &str) -> Result<Option<String>, TextError> {
        Ok(Some(v.to_owned()))
    }
    fn serialize_none(self) -> Result<Option<String>, TextError> {
        Ok(None)
    }
    fn serialize_unit(self) -> Result<Option<String>, TextError> {
        Ok(None)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, inner: &T) -> Result<Option<String>, TextError> {
        inner.serialize(self)
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Option<String>, TextError> {
        Ok(Some(variant.to_owned()))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        inner: &T,
    ) -> Result<Option<String>, TextError> {
        inner.serialize(self)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, TextError> {
        Err(TextError("a list in a plain column".to_owned()))
    }
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, TextError> {
        Err(TextError("a tuple in a plain column".to_owned()))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, TextError> {
        Err(TextError("an object in a plain column".to_owned()))
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, TextError> {
        Err(TextError("an object in a plain column".to_owned()))
    }
}
