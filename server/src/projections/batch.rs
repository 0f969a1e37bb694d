//! A stretch of the log, read and decoded once for all projections.

use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use events::Event;
use events::catalog::DecodeError;
use events::envelope::Recorded;
use sqlx::PgConnection;

use super::{FoldError, Projection, StoreError};
use crate::log::{Log, LogError};

/// The most bytes of one batch: events are some hundred bytes as a rule, but may be 64 KiB each.
const BYTES: usize = 16 << 20;

/// What decoding made of an event.
#[derive(Debug)]
enum Decoded {
    Event(Box<Event>),
    /// No projection folds this type.
    Uninteresting,
    /// A type this version does not know.
    Unknown,
    /// A payload that does not fit its type.
    Broken(String),
}

/// Consecutive events after a position.
#[derive(Debug)]
pub(super) struct Batch {
    facts: Vec<(Recorded, Decoded)>,
    /// The last position held; the position read after where there was nothing.
    pub(super) last: i64,
}

/// What became of one batch in one projection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Folded {
    /// Events folded.
    pub(super) events: i64,
    /// Events of unknown types, passed over.
    pub(super) unknown: i64,
}

/// An event that could not be folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Poison {
    pub(super) position: i64,
    pub(super) event_type: String,
    pub(super) error: String,
}

/// Why a batch was not folded.
#[derive(Debug)]
pub(super) enum BatchError {
    /// One event cannot be folded: the rows held are spoilt, leave it out and begin again.
    Poison(Poison),
    Store(StoreError),
}

impl From<StoreError> for BatchError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Every type some projection folds.
pub(super) fn interests<'a>(
    projections: impl Iterator<Item = &'a Box<dyn Projection>>,
) -> HashSet<&'static str> {
    projections.flat_map(|p| p.interests().iter().copied()).collect()
}

impl Batch {
    /// Reads up to `limit` events after `after`, fewer where they are large.
    pub(super) async fn read(
        log: &Log,
        after: i64,
        limit: i64,
        interests: &HashSet<&'static str>,
    ) -> Result<Self, LogError> {
        Ok(Self::decode(log.read_within(after, limit, BYTES).await?, after, interests))
    }

    /// Decodes events that were read after `after`.
    pub(super) fn decode(recorded: Vec<Recorded>, after: i64, interests: &HashSet<&'static str>) -> Self {
        let last = recorded.last().map_or(after, |r| r.position);
        let facts = recorded
            .into_iter()
            .map(|r| {
                let known = events::catalog::EVENT_TYPES.contains(&r.event_type.as_str());
                let decoded = if !known {
                    Decoded::Unknown
                } else if !interests.contains(r.event_type.as_str()) {
                    Decoded::Uninteresting
                } else {
                    match Event::decode(&r.event_type, r.schema_version, &r.payload) {
                        Ok(event) => Decoded::Event(Box::new(event)),
                        Err(DecodeError::UnknownType { .. }) => Decoded::Unknown,
                        Err(error) => Decoded::Broken(error.to_string()),
                    }
                };
                (r, decoded)
            })
            .collect();
        Self { facts, last }
    }

    /// The events after `after` and up to `to`.
    fn between(&self, after: i64, to: i64) -> impl Iterator<Item = &(Recorded, Decoded)> {
        self.facts.iter().filter(move |(r, _)| r.position > after && r.position <= to)
    }

    /// Whether the projection has anything to do with the events after `after` and up to `to`.
    pub(super) fn concerns(&self, projection: &dyn Projection, after: i64, to: i64) -> bool {
        self.between(after, to).any(|(r, decoded)| match decoded {
            Decoded::Unknown => true,
            Decoded::Uninteresting => false,
            _ => projection.interests().contains(&r.event_type.as_str()),
        })
    }

    /// Folds the events after `after` and up to `to`, except those in `left_out`. Nothing is written yet. Without a
    /// connection nothing is loaded: the rows held are all there are.
    pub(super) async fn fold(
        &self,
        projection: &mut dyn Projection,
        mut conn: Option<&mut PgConnection>,
        generation: i32,
        (after, to): (i64, i64),
        left_out: &BTreeMap<i64, Poison>,
    ) -> Result<Folded, BatchError> {
        let mut folded = Folded::default();
        let mut concerned: Vec<(&Recorded, &Event)> = Vec::new();
        for (recorded, decoded) in self.between(after, to) {
            let interesting = projection.interests().contains(&recorded.event_type.as_str());
            match decoded {
                Decoded::Unknown => folded.unknown += 1,
                Decoded::Event(event) if interesting && !left_out.contains_key(&recorded.position) => {
                    concerned.push((recorded, event));
                }
                Decoded::Broken(error) if interesting && !left_out.contains_key(&recorded.position) => {
                    return Err(BatchError::Poison(poison(recorded, error.clone())));
                }
                _ => {}
            }
        }
        // Two rounds: the rows loaded first may hold the keys of others.
        for _ in 0..2 {
            let Some(conn) = conn.as_deref_mut() else { break };
            for (recorded, event) in &concerned {
                projection.wants(recorded, event);
            }
            let mut loaded = false;
            for table in projection.tables() {
                loaded |= table.load(&mut *conn, generation).await?;
            }
            if !loaded {
                break;
            }
        }
        for (recorded, event) in concerned {
            let result =
                catch_unwind(AssertUnwindSafe(|| projection.fold(recorded, event))).unwrap_or_else(|_| {
                    Err(FoldError("the fold panicked; its message is in the server's log".into()))
                });
            result.map_err(|error| BatchError::Poison(poison(recorded, error.to_string())))?;
            folded.events += 1;
        }
        Ok(folded)
    }

    /// The event at a position, as poison.
    pub(super) fn poison_at(&self, position: i64, error: String) -> Option<Poison> {
        self.facts.iter().find(|(r, _)| r.position == position).map(|(r, _)| poison(r, error))
    }
}

fn poison(recorded: &Recorded, error: String) -> Poison {
    Poison { position: recorded.position, event_type: recorded.event_type.clone(), error }
}
