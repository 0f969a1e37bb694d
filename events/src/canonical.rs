//! Canonical JSON: one spelling of each value, so that its hash can be computed again by anybody.
//!
//! The rules:
//! - no white space; the members of an object sorted by the UTF-8 bytes of their names; a name twice is refused;
//! - an integer is written in decimal digits, whatever its size; it never gets a fraction or an exponent;
//! - a floating point number is written with the fewest digits that read back as the same number, always with a
//!   fraction (`1.0`) or, below 1e-5 and from 1e16 on, an exponent (`1e-7`, `2.5e20`); minus zero is `-0.0`;
//! - NaN and the infinities are refused: JSON has no spelling for them, and a null in their place would be a
//!   wrong number;
//! - in strings only `"`, `\` and the control characters are escaped (`\b \t \n \f \r`, else `\u001f` in lower
//!   case); U+0000 is refused, because PostgreSQL cannot hold it in a `jsonb`;
//! - nesting is at most 64 deep.
//!
//! RFC 8785 differs: it sorts by UTF-16 and writes every number as a double, so it cannot hold a 64-bit integer.

mod writer;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use self::writer::Writer;

/// Deepest nesting of arrays and objects that is accepted.
pub const MAX_DEPTH: usize = 64;

/// Why a value has no canonical JSON.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum CanonicalError {
    /// NaN or an infinity.
    #[error("{0} is not a number that JSON can hold")]
    NotFinite(String),
    /// A string or a name holds U+0000.
    #[error("a string holds the character U+0000, which the database cannot keep; remove or replace it")]
    Nul,
    /// Two members of one object have the same name.
    #[error("the name {0:?} appears twice in one object")]
    DuplicateName(String),
    /// A map's key is not a string, an integer, a bool or a unit variant.
    #[error("the key of a map must be a string")]
    KeyNotText,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The text given was not JSON, or the value's own `Serialize` refused.
    #[error("{0}")]
    Invalid(String),
}

impl ser::Error for CanonicalError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Invalid(message.to_string())
    }
}

/// JSON text that is known to be canonical. The only ways to make one are the functions of this module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CanonicalJson(Box<str>);

impl CanonicalJson {
    /// The canonical JSON of a value.
    ///
    /// # Errors
    /// See [`CanonicalError`].
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, CanonicalError> {
        canonical_json(value).map(|text| Self(text.into_boxed_str()))
    }

    /// The canonical JSON of a JSON text written in any other way.
    ///
    /// # Errors
    /// The text is not JSON, or see [`CanonicalError`].
    pub fn parse(text: &str) -> Result<Self, CanonicalError> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| CanonicalError::Invalid(e.to_string()))?;
        Self::of(&value)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, owned.
    pub fn into_string(self) -> String {
        self.0.into_string()
    }

    /// Length of the text in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never true: the shortest JSON text has one byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for CanonicalJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for CanonicalJson {
    /// As the value itself, not as a string that holds JSON.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &serde_json::value::RawValue = serde_json::from_str(&self.0).map_err(ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CanonicalJson {
    /// Reads any value and keeps its canonical spelling.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Self::of(&value).map_err(serde::de::Error::custom)
    }
}

/// The canonical JSON text of a value; the rules stand at the top of this module.
///
/// # Errors
/// See [`CanonicalError`].
pub fn canonical_json<T: Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
    let mut out = String::with_capacity(256);
    value.serialize(Writer { out: &mut out, depth: 0 })?;
    Ok(out)
}
