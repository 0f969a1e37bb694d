//! Bytes as lower-case hexadecimal text.

use std::fmt::Write as _;

/// `bytes` as lower-case hexadecimal digits.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
    }
    text
}

/// The bytes behind hexadecimal digits of either case; `None` where the text is anything else or of another length.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N * 2 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

/// For `#[serde(with = "crate::hexadecimal::array")]`: a byte array as hexadecimal text.
pub mod array {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes the bytes as hexadecimal text.
    pub fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::encode(bytes))
    }

    /// Reads hexadecimal text of exactly `N` bytes.
    pub fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        super::decode(&text).ok_or_else(|| D::Error::custom(format!("expected {} hexadecimal digits", N * 2)))
    }
}
