//! Judging a batch in memory: which requests fit what is known of their streams, and the rows they become.
//! Nothing here is final: the database checks every assumption again, under the head's lock.

use std::collections::{HashMap, HashSet};

use events::envelope::{Envelope, chain_hash};
use events::keys::StreamKey;
use events::timestamp::Timestamp;
use uuid::Uuid;

use super::database::{HeadState, StreamState};
use super::request::{AppendRequest, Expected, Placed};
use super::rows::EventRow;

/// Most streams remembered; beyond it the memory is emptied and fills again.
const MOST_STREAMS: usize = 200_000;

/// What is known of streams: true when it was learnt or once what is under way is committed, and since then a version can
/// only have grown. Where something under way came to nothing, its streams are looked up anew or all are forgotten.
#[derive(Debug, Default)]
pub(super) struct StreamCache(HashMap<StreamKey, StreamState>);

impl StreamCache {
    pub fn get(&self, key: &StreamKey) -> Option<StreamState> {
        self.0.get(key).copied()
    }

    pub fn insert(&mut self, key: StreamKey, state: StreamState) {
        if self.0.len() >= MOST_STREAMS {
            self.0.clear();
        }
        self.0.insert(key, state);
    }

    pub fn forget(&mut self, key: &StreamKey) {
        self.0.remove(key);
    }
}

/// Whether an expectation holds of a stream whose last event has version `actual`.
pub(super) fn holds(expected: Expected, actual: i64) -> bool {
    match expected {
        Expected::Any => true,
        Expected::NoStream => actual == 0,
        Expected::Exact(version) => actual == version,
    }
}

/// A stream that the batch moves.
#[derive(Debug, Clone, Copy)]
struct Moved {
    number: i64,
    /// Version before the batch; 0 for a stream that the batch creates.
    from: i64,
    to: i64,
}

/// What a batch writes, as `log_append` takes it.
#[derive(Debug, Default)]
pub(super) struct Columns<'a> {
    pub created_no: Vec<i64>,
    pub created_key: Vec<&'a str>,
    pub created_version: Vec<i64>,
    pub moved_no: Vec<i64>,
    pub moved_from: Vec<i64>,
    pub moved_to: Vec<i64>,
    pub rows: Vec<EventRow<'a>>,
}

/// A batch made ready to send.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    /// The requests that fit, by their index in the batch, with the place of each event.
    pub accepted: Vec<(usize, Vec<Placed>)>,
    /// The requests that do not fit what is known, by index: resends, conflicts, or knowledge that is out of date.
    pub doubtful: Vec<usize>,
    pub columns: Columns<'a>,
    pub recorded_at: Timestamp,
    /// The head before.
    pub old: HeadState,
    /// The head after.
    pub new: HeadState,
    /// The streams as they are after.
    pub streams: Vec<(&'a StreamKey, StreamState)>,
    /// The leaf of each event.
    pub leaves: Vec<[u8; 32]>,
}

/// Judges `requests` in order, each against what is known and what those before it do, and lays out the rows.
/// A stream that is not in `cache` is taken to have no event.
pub(super) fn plan<'a>(
    requests: &[&'a AppendRequest],
    cache: &StreamCache,
    head: HeadState,
    recorded_at: Timestamp,
) -> Plan<'a> {
    let mut plan = Plan {
        accepted: Vec::with_capacity(requests.len()),
        doubtful: Vec::new(),
        columns: Columns::default(),
        recorded_at,
        old: head,
        new: head,
        streams: Vec::new(),
        leaves: Vec::new(),
    };
    let mut moved: HashMap<&'a StreamKey, Moved> = HashMap::new();
    let mut order: Vec<&'a StreamKey> = Vec::new();
    let mut ids: HashSet<Uuid> = HashSet::new();
    let mut buffer = Vec::with_capacity(2048);

    for (index, request) in requests.iter().copied().enumerate() {
        let fits = request.writes.iter().all(|write| {
            let actual = match moved.get(&write.stream) {
                Some(stream) => stream.to,
                None => cache.get(&write.stream).map_or(0, |stream| stream.version),
            };
            holds(write.expected, actual) && write.events.iter().all(|event| !ids.contains(&event.event_id))
        });
        if !fits {
            plan.doubtful.push(index);
            continue;
        }
        let mut placed = Vec::new();
        for write in &request.writes {
            let stream = moved.entry(&write.stream).or_insert_with(|| {
                order.push(&write.stream);
                match cache.get(&write.stream) {
                    Some(known) => Moved { number: known.number, from: known.version, to: known.version },
                    None => {
                        plan.new.streams += 1;
                        Moved { number: plan.new.streams, from: 0, to: 0 }
                    }
                }
            });
            for event in &write.events {
                ids.insert(event.event_id);
                stream.to += 1;
                plan.new.position += 1;
                let leaf = Envelope {
                    position: plan.new.position,
                    stream: write.stream.as_str(),
                    version: stream.to,
                    event_id: event.event_id,
                    event_type: &event.event_type,
                    schema_version: event.schema_version,
                    org: &event.org,
                    actor_kind: event.actor.kind,
                    actor_id: &event.actor.id,
                    causation_id: event.causation_id,
                    correlation_id: event.correlation_id,
                    occurred_at: event.occurred_at,
                    recorded_at,
                    payload: event.payload.as_str(),
                }
                .leaf_with(&mut buffer);
                plan.new.hash = chain_hash(&plan.new.hash, &leaf);
                plan.leaves.push(leaf);
                placed.push(Placed {
                    stream: write.stream.clone(),
                    position: plan.new.position,
                    version: stream.to,
                });
                plan.columns.rows.push(EventRow {
                    stream_no: stream.number,
                    version: stream.to,
                    occurred_at: event.occurred_at,
                    event_id: event.event_id,
                    schema_version: event.schema_version,
                    event_type: &event.event_type,
                    org: &event.org,
                    actor_kind: event.actor.kind,
                    actor_id: &event.actor.id,
                    causation_id: event.causation_id,
                    correlation_id: event.correlation_id,
                    payload: event.payload.as_str(),
                    hash: plan.new.hash,
                });
            }
        }
        plan.accepted.push((index, placed));
    }

    for key in order {
        let stream = moved[key];
        if stream.from == 0 {
            plan.columns.created_no.push(stream.number);
            plan.columns.created_key.push(key.as_str());
            plan.columns.created_version.push(stream.to);
        } else {
            plan.columns.moved_no.push(stream.number);
            plan.columns.moved_from.push(stream.from);
            plan.columns.moved_to.push(stream.to);
        }
        plan.streams.push((key, StreamState { number: stream.number, version: stream.to }));
    }
    plan
}
