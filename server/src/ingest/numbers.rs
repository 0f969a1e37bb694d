//! What an attempt was told once: its telemetry and its progress by their `seq`, its log lines by their number. Said again
//! under another event id it would count twice, so it is refused.

use std::collections::{BTreeMap, HashMap};

use events::envelope::Recorded;
use events::report::ItemOutcome;
use events::{Event, StreamKey};

use super::{Refused, Retry};
use crate::domain::{Aggregate, LoadError, decode};
use crate::log::{Expected, Log};

/// The most stretches of numbers that are told apart in one stream. Where an attempt's numbers have more holes, the oldest
/// holes count as filled.
const MOST_STRETCHES: usize = 64;

/// Numbers, as stretches of successive ones, in order.
#[derive(Debug, Clone, Default, PartialEq)]
struct Stretches(Vec<(u64, u64)>);

impl Stretches {
    /// Takes the numbers from `first` to `last`; false where one of them is there already.
    fn take(&mut self, first: u64, last: u64) -> bool {
        let at = self.0.partition_point(|(_, end)| *end < first);
        if self.0.get(at).is_some_and(|(start, _)| *start <= last) {
            return false;
        }
        let joins_before = at > 0 && self.0[at - 1].1.checked_add(1) == Some(first);
        let joins_after = self.0.get(at).is_some_and(|(start, _)| last.checked_add(1) == Some(*start));
        match (joins_before, joins_after) {
            (true, true) => {
                self.0[at - 1].1 = self.0[at].1;
                self.0.remove(at);
            }
            (true, false) => self.0[at - 1].1 = last,
            (false, true) => self.0[at].0 = first,
            (false, false) => self.0.insert(at, (first, last)),
        }
        if self.0.len() > MOST_STRETCHES {
            self.0[1].0 = self.0[0].0;
            self.0.remove(0);
        }
        true
    }
}

/// What one stream of an attempt was told, and how many events it has.
#[derive(Debug, Clone, Default, PartialEq)]
struct Numbers {
    version: i64,
    /// By what is numbered: a log has three sources, the other streams one.
    told: BTreeMap<&'static str, Stretches>,
}

/// What an event is numbered by, from the first number to the last; nothing for an event without.
fn numbers_of(event: &Event) -> Option<(&'static str, u64, u64)> {
    match event {
        Event::TelemetrySampled(sampled) => Some(("telemetry", sampled.seq, sampled.seq)),
        Event::ProgressReported(progress) => Some(("progress", progress.seq, progress.seq)),
        Event::LogLines(log) => {
            let further = (log.lines.len() as u64).saturating_sub(1);
            Some((log.source.as_str(), log.first_line, log.first_line.saturating_add(further)))
        }
        _ => None,
    }
}

impl Numbers {
    /// Takes an event, which is the stream's next; false where one of its numbers was told before.
    fn take(&mut self, event: &Event) -> bool {
        self.version += 1;
        numbers_of(event).is_none_or(|(of, first, last)| self.told.entry(of).or_default().take(first, last))
    }
}

impl Aggregate for Numbers {
    fn begin(first: &Recorded) -> Result<Self, LoadError> {
        let mut numbers = Self::default();
        numbers.follow(first)?;
        Ok(numbers)
    }

    fn follow(&mut self, recorded: &Recorded) -> Result<(), LoadError> {
        self.take(&decode(recorded)?);
        Ok(())
    }
}

/// The numbered streams of a batch.
#[derive(Debug)]
pub(super) struct Told {
    /// Whether the log is asked, or what is remembered is enough: who was wrong finds a conflict, and asks then.
    ask: bool,
    repeated: bool,
    streams: HashMap<StreamKey, Stream>,
}

#[derive(Debug, Default)]
struct Stream {
    numbers: Numbers,
    /// The items of the batch that went into it.
    items: Vec<usize>,
}

impl Told {
    /// None yet.
    pub fn new(ask: bool) -> Self {
        Self { ask, repeated: false, streams: HashMap::new() }
    }

    /// Takes the event of item `index` into its stream, and says which version that has to have before it.
    ///
    /// # Errors
    /// `number_repeated`.
    pub async fn take(
        &mut self,
        log: &Log,
        stream: &StreamKey,
        event: &Event,
        index: usize,
    ) -> Result<Result<Expected, Refused>, Retry> {
        let Some((of, first, last)) = numbers_of(event) else { return Ok(Ok(Expected::Any)) };
        if !self.streams.contains_key(stream) {
            let remembered = if self.ask { None } else { log.remembered::<Numbers>(stream) };
            let numbers = match remembered {
                Some((_, numbers)) => Some(numbers),
                None => log.fold::<_, _, Retry>(stream, Numbers::step).await?,
            };
            self.streams
                .insert(stream.clone(), Stream { numbers: numbers.unwrap_or_default(), items: vec![] });
        }
        let Some(known) = self.streams.get_mut(stream) else { return Ok(Ok(Expected::Any)) };
        let mut after = known.numbers.clone();
        if !after.take(event) {
            self.repeated = true;
            return Ok(Err(repeated(stream, of, first, last)));
        }
        let expected = Expected::Exact(known.numbers.version);
        known.numbers = after;
        known.items.push(index);
        Ok(Ok(expected))
    }

    /// Whether something was refused by what is remembered alone: it may be a resend that came in meanwhile.
    pub fn must_look_again(&self) -> bool {
        self.repeated && !self.ask
    }

    /// Remembers the streams into which everything went as it was to.
    pub fn remember(self, log: &Log, outcomes: &[Option<ItemOutcome>]) {
        for (stream, known) in self.streams {
            let accepted = |index: &usize| matches!(outcomes[*index], Some(ItemOutcome::Accepted { .. }));
            if !known.items.is_empty() && known.items.iter().all(accepted) {
                log.remember(&stream, known.numbers.version, known.numbers);
            }
        }
    }
}

fn repeated(stream: &StreamKey, of: &str, first: u64, last: u64) -> Refused {
    let (what, numbers) = match of {
        "telemetry" | "progress" => (format!("{of} seq"), first.to_string()),
        source => (format!("lines of the {source} log"), format!("{first} to {last}")),
    };
    Refused::new(
        "number_repeated",
        format!("{what} {numbers} of {stream} was reported before, under another event_id"),
        "number each report of an attempt once, and send it again under the event_id that it had",
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_taken_once() {
        let mut numbers = Stretches::default();
        assert!(numbers.take(1, 1) && numbers.take(3, 5));
        assert!(!numbers.take(3, 3) && !numbers.take(2, 3) && !numbers.take(5, 9) && !numbers.take(1, 9));
        assert!(numbers.take(2, 2), "a number that came late");
        assert_eq!(numbers.0, [(1, 5)]);
        assert!(numbers.take(u64::MAX, u64::MAX) && !numbers.take(u64::MAX, u64::MAX));
    }

    proptest! {
        #[test]
        fn the_stretches_are_those_of_a_plain_set(taken in prop::collection::vec((1u64..60, 0u64..4), 0..40)) {
            let (mut numbers, mut plain) = (Stretches::default(), std::collections::BTreeSet::new());
            for (first, more) in taken {
                let last = first + more;
                let free = (first..=last).all(|number| !plain.contains(&number));
                prop_assert_eq!(numbers.take(first, last), free);
                if free {
                    plain.extend(first..=last);
                }
            }
            prop_assert!(numbers.0.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        }

        #[test]
        fn many_holes_are_forgotten_from_the_oldest(step in 2u64..5) {
            let mut numbers = Stretches::default();
            for nth in 1..=1000 {
                prop_assert!(numbers.take(nth * step, nth * step));
            }
            prop_assert_eq!(numbers.0.len(), MOST_STRETCHES);
            prop_assert!(!numbers.take(step + 1, step + 1));
            prop_assert!(numbers.take(1000 * step + 1, 1000 * step + 1));
        }
    }
}
