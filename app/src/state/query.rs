//! The query part of the page's addresses: everything a view can be set to lives there.
//!
//! Routers and mail programs decode percent escapes when they like, so values are written in an alphabet that
//! survives being decoded once too often: letters, digits, `-_./:,` as they are, every other byte as `~hh`.

use std::fmt::Write;

/// An ordered list of keys and values; keys may repeat.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query(Vec<(String, String)>);

fn survives(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_./:,".contains(&byte)
}

/// Writes a text in the alphabet that survives.
pub fn encode(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if survives(byte) {
            written.push(byte as char);
        } else {
            let _ = write!(written, "~{byte:02x}");
        }
    }
    written
}

/// Reads it back. Percent escapes that something on the way added are read too.
pub fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut read = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'~' || bytes[at] == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            // A percent escape of our own escape character: `%7e26`.
            Some(b'~') if bytes[at] == b'%' => {
                let rest = decode(&format!("~{}", &text.get(at + 3..).unwrap_or_default()));
                read.extend_from_slice(rest.as_bytes());
                return String::from_utf8_lossy(&read).into_owned();
            }
            Some(byte) => {
                read.push(byte);
                at += 3;
            }
            None => {
                read.push(if bytes[at] == b'+' { b' ' } else { bytes[at] });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// The position of the log as of which an address shows its page; nothing for now.
pub fn as_of(query: &Query) -> Option<i64> {
    query.get("as-of").and_then(|position| position.parse().ok()).filter(|position| *position > 0)
}

impl Query {
    /// Reads the part of an address after the `?`, with or without it.
    pub fn parse(search: &str) -> Self {
        let pairs = search.trim_start_matches('?').split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        });
        Self(pairs.collect())
    }

    /// The first value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Every value of a key, in order.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Every pair, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Sets a key to one value, or takes it away.
    pub fn set(&mut self, key: &str, value: Option<&str>) -> &mut Self {
        let place = self.0.iter().position(|(k, _)| k == key).unwrap_or(self.0.len());
        self.0.retain(|(k, _)| k != key);
        if let Some(value) = value {
            self.0.insert(place.min(self.0.len()), (key.to_owned(), value.to_owned()));
        }
        self
    }

    /// Adds a value to a key.
    pub fn push(&mut self, key: &str, value: &str) -> &mut Self {
        self.0.push((key.to_owned(), value.to_owned()));
        self
    }

    /// `?key=value&…`, or nothing when it is empty.
    pub fn write(&self) -> String {
        let pairs: Vec<String> =
            self.0
                .iter()
                .map(|(key, value)| {
                    if value.is_empty() { encode(key) } else { format!("{}={}", encode(key), encode(value)) }
                })
                .collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_is_readable_where_it_can_be() {
        let mut query = Query::default();
        query.set("job", Some("acme/p1/w1/3/c8-isl512-osl256")).push("model", "Llama 3 & more");
        assert_eq!(query.write(), "?job=acme/p1/w1/3/c8-isl512-osl256&model=Llama~203~20~26~20more");
    }

    #[test]
    fn taking_a_key_away_leaves_the_others_in_place() {
        let mut query = Query::parse("?a=1&b=2&c=3");
        query.set("b", None).set("a", Some("9"));
        assert_eq!(query.write(), "?a=9&c=3");
    }

    #[test]
    fn links_that_other_programs_escaped_are_read() {
        assert_eq!(
            Query::parse("model=a%2Fb&q=x+y").pairs().collect::<Vec<_>>(),
            [("model", "a/b"), ("q", "x y")]
        );
        assert_eq!(decode("a%7e26b"), "a&b");
    }

    proptest! {
        #[test]
        fn every_query_survives_being_written(pairs in proptest::collection::vec(("[a-z_.]{1,8}", ".{0,20}"), 0..6)) {
            let query = Query(pairs.into_iter().collect());
            prop_assert_eq!(Query::parse(&query.write()), query);
        }

        #[test]
        fn every_query_survives_one_decoding_too_many(value in "\\PC{0,20}") {
            let mut query = Query::default();
            query.push("k", &value);
            // What is written holds no character that decoding changes.
            prop_assert!(!query.write().contains(['%', '+', ' ', '#']));
        }

        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = Query::parse(&text);
        }
    }
}
