//! Topics: which streams a client wants to hear of. Comma-separated `<path>[:kind+kind]`.
//!
//! The path is the leading parts of a stream's key after its kind, as they stand in the key: `acme/p1/w1/3` is the
//! run with its jobs, telemetry, progress and logs; `acme:server` the organisation's servers.

use std::collections::BTreeSet;

use events::keys::{KINDS, StreamKey};

/// The most topics one client may name.
const MOST: usize = 50;

/// Why the topics were not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// None were given.
    #[error("no topics: name at least one, for example topics=acme/my-project")]
    Empty,
    /// More than can be followed at once.
    #[error("{0} topics are more than the {MOST} that one stream may follow")]
    TooMany(usize),
    /// A topic without a path, or with an empty part.
    #[error(
        "{0:?} is not a topic: expected <path>[:kind+kind], for example acme/my-project/my-workload/3:job+telemetry"
    )]
    Shape(String),
    /// A kind of stream that does not exist.
    #[error("{kind:?} is not a kind of stream; there are {}", KINDS.join(", "))]
    Kind {
        /// The word given.
        kind: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Topic {
    path: String,
    /// Empty means every kind.
    kinds: BTreeSet<String>,
}

/// What a client follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics(Vec<Topic>);

impl Topics {
    /// Reads the query parameter.
    ///
    /// # Errors
    /// [`TopicError`] names the topic that is not understood.
    pub fn parse(text: &str) -> Result<Self, TopicError> {
        let words: Vec<&str> = text.split(',').map(str::trim).filter(|w| !w.is_empty()).collect();
        if words.is_empty() {
            return Err(TopicError::Empty);
        }
        if words.len() > MOST {
            return Err(TopicError::TooMany(words.len()));
        }
        words.into_iter().map(Topic::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether an event of this stream is wanted.
    pub fn want(&self, stream: &StreamKey) -> bool {
        self.0.iter().any(|topic| topic.wants(stream))
    }
}

impl Topic {
    fn parse(word: &str) -> Result<Self, TopicError> {
        // A kind never holds a colon; a part of a path may.
        // A plus in a query string is a space once decoded.
        let known = |kinds: &str| kinds.split(['+', ' ']).all(|k| KINDS.contains(&k));
        let (path, kinds) = match word.rsplit_once(':') {
            Some((path, kinds)) if known(kinds) || !kinds.contains('/') => (path, Some(kinds)),
            _ => (word, None),
        };
        if path.is_empty() || path.split('/').any(str::is_empty) {
            return Err(TopicError::Shape(word.to_owned()));
        }
        let kinds: BTreeSet<String> =
            kinds.into_iter().flat_map(|k| k.split(['+', ' '])).map(str::to_owned).collect();
        if let Some(kind) = kinds.iter().find(|k| !KINDS.contains(&k.as_str())) {
            return Err(TopicError::Kind { kind: kind.clone() });
        }
        Ok(Self { path: path.to_owned(), kinds })
    }

    fn wants(&self, stream: &StreamKey) -> bool {
        let below = stream
            .path()
            .strip_prefix(self.path.as_str())
            .is_some_and(|r| r.is_empty() || r.starts_with('/'));
        below && (self.kinds.is_empty() || self.kinds.contains(stream.kind()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> StreamKey {
        text.parse().expect("a key")
    }

    #[test]
    fn a_path_takes_everything_below_it() {
        let topics = Topics::parse("acme/p1/w1/3").expect("topics");
        assert!(topics.want(&key("run/acme/p1/w1/3")));
        assert!(topics.want(&key("telemetry/acme/p1/w1/3/c8/1")));
        assert!(!topics.want(&key("run/acme/p1/w1/31")));
        assert!(!topics.want(&key("workload/acme/p1/w1")));
    }

    #[test]
    fn kinds_narrow_a_path() {
        let topics = Topics::parse("acme:server, acme/p1:project+run").expect("topics");
        assert!(topics.want(&key("server/acme/cpu/host")));
        assert!(topics.want(&key("run/acme/p1/w/1")));
        assert!(!topics.want(&key("job/acme/p1/w/1/c1")));
        assert!(!topics.want(&key("project/acme/p2")));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert_eq!(Topics::parse(" , "), Err(TopicError::Empty));
        assert_eq!(Topics::parse("acme//x"), Err(TopicError::Shape("acme//x".into())));
        assert_eq!(Topics::parse("acme:dragon"), Err(TopicError::Kind { kind: "dragon".into() }));
        assert!(matches!(Topics::parse(&"a,".repeat(51)), Err(TopicError::TooMany(51))));
    }
}
