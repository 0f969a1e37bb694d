//! One live stream for all tabs of a browser: what tabs say to each other, and what the leading tab follows for them.
//! No browser in here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one tab says to the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
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
        let message = Message::Open { topics: topics(&["acme:job+run"]), after: Some(7) };
        let text = serde_json::to_string(&message).expect("text");
        assert_eq!(serde_json::from_str::<Message>(&text).expect("a message"), message);
    }
}
