//! One live stream for all tabs of a browser: what tabs say to each other, and what the leading tab follows for them.
//! No browser in here.

use std::collections::BTreeMap;

/// What one tab says to the others.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A tab wants these topics; said when they change and every few seconds.
    Want {
        /// Who says it.
        tab: String,
        /// The topics.
        topics: Vec<String>,
    },
    /// Somebody signed in or out: the leader opens its stream anew.
    Restart,
    /// A tab closes.
    Bye {
        /// Who says it.
        tab: String,
    },
    /// The leader opened a stream of these topics, after this position.
    Open {
        /// The topics.
        topics: Vec<String>,
        /// The position it resumes after; absent from the head on.
        after: Option<i64>,
    },
    /// The leader passes on a message of the stream: its name and data as they came.
    Relay {
        /// `event`, `head` or `resync`.
        name: String,
        /// The data.
        data: String,
    },
    /// The leader's stream broke; how often it was tried since.
    Broken {
        /// How often.
        tries: u32,
    },
}

/// Stands between the parts of a message: in no topic, and in JSON only as an escape.
const BETWEEN: char = '\u{1f}';

impl Message {
    /// Writes it as a text that [`Self::read`] reads.
    pub fn write(&self) -> String {
        let number = |n: Option<i64>| n.map_or_else(String::new, |n| n.to_string());
        let parts: Vec<String> = match self {
            Self::Want { tab, topics } => vec!["want".into(), tab.clone(), topics.join(",")],
            Self::Restart => vec!["restart".into()],
            Self::Bye { tab } => vec!["bye".into(), tab.clone()],
            Self::Open { topics, after } => vec!["open".into(), topics.join(","), number(*after)],
            Self::Relay { name, data } => vec!["relay".into(), name.clone(), data.clone()],
            Self::Broken { tries } => vec!["broken".into(), tries.to_string()],
        };
        parts.join(&BETWEEN.to_string())
    }

    /// Reads it; nothing for what another version of the page says.
    pub fn read(text: &str) -> Option<Self> {
        let topics = |list: &str| list.split(',').filter(|t| !t.is_empty()).map(str::to_owned).collect();
        let mut parts = text.splitn(3, BETWEEN);
        let (word, one, two) = (parts.next()?, parts.next(), parts.next());
        Some(match (word, one, two) {
            ("want", Some(tab), Some(list)) => Self::Want { tab: tab.to_owned(), topics: topics(list) },
            ("restart", None, None) => Self::Restart,
            ("bye", Some(tab), None) => Self::Bye { tab: tab.to_owned() },
            ("open", Some(list), Some(after)) => Self::Open {
                topics: topics(list),
                after: if after.is_empty() { None } else { Some(after.parse().ok()?) },
            },
            ("relay", Some(name), Some(data)) => Self::Relay { name: name.to_owned(), data: data.to_owned() },
            ("broken", Some(tries), None) => Self::Broken { tries: tries.parse().ok()? },
            _ => return None,
        })
    }
}

/// A tab that was not heard for so long is gone, milliseconds.
const GONE_MS: f64 = 15_000.0;

/// What the other tabs want, as the leader knows it.
#[derive(Debug, Clone, Default)]
pub struct Wishes(BTreeMap<String, (Vec<String>, f64)>);

impl Wishes {
    /// Takes a tab's wish. True when what is wanted changed.
    pub fn want(&mut self, tab: &str, topics: Vec<String>, now_ms: f64) -> bool {
        let before = self.0.insert(tab.to_owned(), (topics.clone(), now_ms));
        before.is_none_or(|(old, _)| old != topics)
    }

    /// Forgets a tab. True when it was known.
    pub fn bye(&mut self, tab: &str) -> bool {
        self.0.remove(tab).is_some()
    }

    /// Forgets tabs that were not heard for long. True when there was one.
    pub fn forget_silent(&mut self, now_ms: f64) -> bool {
        let before = self.0.len();
        self.0.retain(|_, (_, heard)| now_ms - *heard < GONE_MS);
        self.0.len() != before
    }

    /// The topics of all tabs, each once, with the leader's own.
    pub fn union(&self, own: &[String]) -> Vec<String> {
        let mut all: Vec<String> =
            own.iter().cloned().chain(self.0.values().flat_map(|(t, _)| t.clone())).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// Whether a stream of `open` topics brings everything that `wanted` ones do.
pub fn covers(open: &[String], wanted: &[String]) -> bool {
    wanted.iter().all(|topic| open.contains(topic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn topics(list: &[&str]) -> Vec<String> {
        list.iter().map(|t| (*t).to_owned()).collect()
    }

    #[test]
    fn the_leader_follows_what_any_tab_wants() {
        let mut wishes = Wishes::default();
        assert!(wishes.want("b", topics(&["acme:run", "acme/p"]), 0.0));
        assert!(
            !wishes.want("b", topics(&["acme:run", "acme/p"]), 1.0),
            "the same wish again changes nothing"
        );
        assert_eq!(
            wishes.union(&topics(&["acme:run", "acme:job"])),
            topics(&["acme/p", "acme:job", "acme:run"])
        );
    }

    #[test]
    fn a_tab_that_closed_or_fell_silent_wants_nothing() {
        let mut wishes = Wishes::default();
        wishes.want("b", topics(&["x"]), 0.0);
        wishes.want("c", topics(&["y"]), 10_000.0);
        assert!(wishes.forget_silent(20_000.0));
        assert!(wishes.bye("c"));
        assert!(wishes.union(&[]).is_empty());
    }

    #[test]
    fn messages_survive_the_way_between_tabs() {
        for message in [
            Message::Want { tab: "a1".into(), topics: topics(&["acme:job+run", "acme/p"]) },
            Message::Want { tab: "a1".into(), topics: vec![] },
            Message::Restart,
            Message::Bye { tab: "a1".into() },
            Message::Open { topics: topics(&["acme:job+run"]), after: Some(7) },
            Message::Open { topics: vec![], after: None },
            Message::Relay { name: "event".into(), data: r#"{"a":"\u001f, ä"}"#.into() },
            Message::Broken { tries: 3 },
        ] {
            assert_eq!(Message::read(&message.write()), Some(message));
        }
    }

    proptest! {
        #[test]
        fn no_text_of_another_version_panics(text in ".{0,60}") {
            let _ = Message::read(&text);
        }
    }
}
