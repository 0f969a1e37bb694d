//! The key of any stream.

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{KINDS, KeyError, PLATFORM_ORG};

/// The characters that are percent-encoded in one part of a stream key.
const PART: &AsciiSet = &CONTROLS.add(b'/').add(b'%');

/// The name of one stream: `kind/part/part…`, every part percent-encoded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey(String);

impl StreamKey {
    /// Builds a key of raw (not yet encoded) parts.
    pub fn new(kind: &str, parts: &[&str]) -> Self {
        let mut key = String::from(kind);
        for part in parts {
            key.push('/');
            key.extend(utf8_percent_encode(part, PART));
        }
        Self(key)
    }

    /// The key as it stands in the log, the API and the page.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The kind of stream, the part before the first `/`.
    pub fn kind(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// The organisation, the first part; [`PLATFORM_ORG`] for platform-wide streams.
    pub fn org(&self) -> &str {
        self.0.split('/').nth(1).unwrap_or(PLATFORM_ORG)
    }

    /// The decoded parts after the kind.
    pub fn parts(&self) -> Vec<String> {
        self.0.split('/').skip(1).map(|p| percent_decode_str(p).decode_utf8_lossy().into_owned()).collect()
    }

    /// The parts after the kind as they stand in the key, for example `acme/p1/w1/3`: the path that live topics match.
    pub fn path(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, path)| path)
    }
}

impl fmt::Display for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for StreamKey {
    type Err = KeyError;

    fn from_str(key: &str) -> Result<Self, KeyError> {
        let shape =
            |expected| KeyError::Shape { key: key.chars().take(200).collect(), kind: "stream", expected };
        let mut parts = key.split('/');
        let kind = parts.next().unwrap_or_default();
        if !KINDS.contains(&kind) {
            return Err(shape("one of the known kinds, then '/'"));
        }
        let rest: Vec<&str> = parts.collect();
        if rest.is_empty() || rest.iter().any(|p| p.is_empty()) {
            return Err(shape("kind/part/part…, no part empty"));
        }
        if key.len() > 1000 {
            return Err(shape("at most 1000 bytes"));
        }
        if key.chars().any(char::is_control) {
            return Err(shape("no control characters"));
        }
        // One spelling a key: what is encoded must be what we would encode.
        let canonical =
            Self::new(kind, &Self(key.to_owned()).parts().iter().map(String::as_str).collect::<Vec<_>>());
        if canonical.0 != key {
            return Err(shape("percent-encoding of '/' and '%' and control characters only"));
        }
        Ok(canonical)
    }
}

impl Serialize for StreamKey {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for StreamKey {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StreamKey".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A stream's natural key: its kind and the parts of its name, joined by '/'.",
            "examples": ["job/acme/p1/w1/3/c8-isl512-osl256"],
        })
    }
}

impl<'de> Deserialize<'de> for StreamKey {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}
