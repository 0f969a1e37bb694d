//! Which colour a natural key has: the first key gets the first colour, the next the next, and each keeps its own.
//!
//! Keys are learnt in the order in which they first appear in the log and remembered in the browser, so that a key has
//! the same colour on every page and for good. The eleventh key of a kind shares the first colour.

use serde::{Deserialize, Serialize};

/// How many colours the style sheet has for series.
const COLOURS: usize = 10;
/// Keys remembered of one kind; later ones are coloured, but not kept.
const MOST_KEPT: usize = 2000;

/// What is coloured. Each kind has all ten colours to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A model, by its code.
    Model,
    /// A server: `config/hostname`.
    Server,
    /// What serves: framework, quantization and GPUs.
    Setup,
}

/// A colour of the style sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Colour(Option<usize>);

impl Colour {
    /// The colour of the nth series of a chart whose lines are not keys of the log.
    pub fn nth(place: usize) -> Self {
        Self(Some(place % COLOURS))
    }

    /// Its token: `--series-3`; grey while it is not known.
    pub fn token(self) -> &'static str {
        const TOKENS: [&str; COLOURS] = [
            "--series-1",
            "--series-2",
            "--series-3",
            "--series-4",
            "--series-5",
            "--series-6",
            "--series-7",
            "--series-8",
            "--series-9",
            "--series-10",
        ];
        self.0.map_or("--ink-3", |place| TOKENS[place])
    }

    /// The class that makes it the colour of what is inside.
    pub fn class(self) -> &'static str {
        self.0.map_or("series-none", |_| &self.token()[2..])
    }
}

/// The keys in the order in which they came, each kind for itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Slots {
    models: Vec<String>,
    servers: Vec<String>,
    setups: Vec<String>,
}

impl Slots {
    /// What a browser remembered; what it cannot read is forgotten.
    pub fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// What a browser remembers.
    pub fn write(&self) -> String {
        let mut kept = self.clone();
        for list in [&mut kept.models, &mut kept.servers, &mut kept.setups] {
            list.truncate(MOST_KEPT);
        }
        serde_json::to_string(&kept).unwrap_or_default()
    }

    fn list(&mut self, kind: Kind) -> &mut Vec<String> {
        match kind {
            Kind::Model => &mut self.models,
            Kind::Server => &mut self.servers,
            Kind::Setup => &mut self.setups,
        }
    }

    /// The colour of a key, and whether the key is new: it then got the next colour.
    pub fn colour(&mut self, kind: Kind, key: &str) -> (Colour, bool) {
        if key.is_empty() {
            return (Colour::default(), false);
        }
        let list = self.list(kind);
        match list.iter().position(|known| known == key) {
            Some(place) => (Colour::nth(place), false),
            None => {
                list.push(key.to_owned());
                (Colour::nth(list.len() - 1), true)
            }
        }
    }

    /// Learns keys in their order. True when one was new.
    pub fn learn<'a>(&mut self, kind: Kind, keys: impl IntoIterator<Item = &'a str>) -> bool {
        keys.into_iter().fold(false, |new, key| self.colour(kind, key).1 | new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_ten_keys_have_ten_colours() {
        let mut slots = Slots::default();
        let keys: Vec<String> = (0..11).map(|n| format!("org/model-{n}")).collect();
        let tokens: Vec<&str> = keys.iter().map(|key| slots.colour(Kind::Model, key).0.token()).collect();
        let mut distinct = tokens.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 10);
        assert_eq!(tokens[10], tokens[0], "the eleventh shares the first colour");
    }

    #[test]
    fn kinds_do_not_take_each_others_colours() {
        let mut slots = Slots::default();
        slots.learn(Kind::Model, ["a", "b"]);
        assert_eq!(slots.colour(Kind::Server, "h200x8/gpu-01").0.token(), "--series-1");
    }

    #[test]
    fn what_is_not_known_yet_is_grey() {
        assert_eq!(Colour::default().class(), "series-none");
        assert_eq!(Colour::nth(2).class(), "series-3");
        assert_eq!(Slots::default().colour(Kind::Model, ""), (Colour::default(), false));
    }

    #[test]
    fn a_memory_that_cannot_be_read_is_forgotten() {
        assert_eq!(Slots::read("{\"models\": 3}"), Slots::default());
        assert_eq!(Slots::read("{\"models\": [\"a\"]}").list(Kind::Model), &["a"]);
    }

    proptest! {
        #[test]
        fn a_key_keeps_its_colour_whatever_comes_after(
            keys in proptest::collection::vec("[a-e]{1,2}", 1..30),
            more in proptest::collection::vec("[a-e]{1,2}", 0..30),
        ) {
            let mut slots = Slots::default();
            let before: Vec<Colour> = keys.iter().map(|key| slots.colour(Kind::Setup, key).0).collect();
            slots.learn(Kind::Setup, more.iter().map(String::as_str));
            let mut slots = Slots::read(&slots.write());
            let after: Vec<Colour> = keys.iter().map(|key| slots.colour(Kind::Setup, key).0).collect();
            prop_assert_eq!(before, after);
        }
    }
}
