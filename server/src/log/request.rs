//! What is asked of the log, and what it answers.

use std::collections::HashSet;

use events::envelope::{MAX_PAYLOAD_BYTES, NewEvent};
use events::keys::StreamKey;
use uuid::Uuid;

/// What the caller believes about a stream. A write is refused where it is not so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Nothing: append at the end, whatever it is.
    Any,
    /// That the stream has no event yet.
    NoStream,
    /// That the stream's last event has this version (0: none yet).
    Exact(i64),
}

/// Events for one stream.
#[derive(Debug, Clone)]
pub struct StreamWrite {
    /// The stream.
    pub stream: StreamKey,
    /// What is believed about it.
    pub expected: Expected,
    /// The events, in order; at least one.
    pub events: Vec<NewEvent>,
}

/// Writes that are judged together: all of them are appended, next to one another, or none is.
#[derive(Debug, Clone, Default)]
pub struct AppendRequest {
    /// The writes, in order; at least one. A stream may occur once.
    pub writes: Vec<StreamWrite>,
}

impl AppendRequest {
    /// A request of one write.
    pub fn one(stream: StreamKey, expected: Expected, events: Vec<NewEvent>) -> Self {
        Self { writes: vec![StreamWrite { stream, expected, events }] }
    }
}

/// The place an event got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Its stream.
    pub stream: StreamKey,
    /// Its place in the global order.
    pub position: i64,
    /// Its place in the stream.
    pub version: i64,
}

/// What became of a request. Given only when it is final: appended means committed and durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendOutcome {
    /// Every event was appended.
    Appended {
        /// Position of the first event.
        first: i64,
        /// Position of the last event.
        last: i64,
        /// The place of each event, in the order of the request.
        events: Vec<Placed>,
    },
    /// Every event of the request had been appended before, with the same content: a resend. Nothing was written.
    AlreadyAppended {
        /// The position of each event, in the order of the request.
        positions: Vec<i64>,
    },
    /// A stream is not at the version that was expected. Nothing was written.
    VersionConflict {
        /// The first stream of the request that is not as expected.
        stream: StreamKey,
        /// What was expected of it.
        expected: Expected,
        /// The version of its last event; 0 where it has none.
        actual: i64,
    },
    /// The request itself is at fault, and would be refused again. Nothing was written.
    Rejected {
        /// Why, and what to do.
        reason: String,
    },
}

impl AppendOutcome {
    /// The last position at which the request's events stand; `None` where it was refused.
    pub fn position(&self) -> Option<i64> {
        match self {
            Self::Appended { last, .. } => Some(*last),
            Self::AlreadyAppended { positions } => positions.iter().copied().max(),
            Self::VersionConflict { .. } | Self::Rejected { .. } => None,
        }
    }
}

/// Most events of one request.
pub const MAX_REQUEST_EVENTS: usize = 5_000;
/// Most bytes of payload of one request.
pub const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;
/// Longest stream key, organisation, event type or actor's id, in bytes.
const MAX_NAME_BYTES: usize = 1_000;

/// Why a request can never be appended, whatever the state of the log; `None` where nothing is wrong with it.
pub(super) fn fault(request: &AppendRequest) -> Option<String> {
    let events = || request.writes.iter().flat_map(|write| &write.events);
    if request.writes.is_empty() {
        return Some("the request has no writes".to_owned());
    }
    let count = events().count();
    if count > MAX_REQUEST_EVENTS {
        return Some(format!(
            "the request has {count} events; at most {MAX_REQUEST_EVENTS} are taken at once"
        ));
    }
    let bytes: usize = events().map(|event| event.payload.len()).sum();
    if bytes > MAX_REQUEST_BYTES {
        return Some(format!(
            "the request has {bytes} bytes of payload; at most {MAX_REQUEST_BYTES} are taken at once"
        ));
    }
    let mut streams = HashSet::new();
    let mut ids = HashSet::with_capacity(count);
    for write in &request.writes {
        let stream = &write.stream;
        if stream.as_str().is_empty() || stream.as_str().len() > MAX_NAME_BYTES {
            return Some(format!("a stream key must have 1 to {MAX_NAME_BYTES} bytes"));
        }
        if !streams.insert(stream) {
            return Some(format!("stream {stream} is written twice; put its events into one write"));
        }
        if write.events.is_empty() {
            return Some(format!("the write to stream {stream} has no events"));
        }
        if matches!(write.expected, Expected::Exact(version) if version < 0) {
            return Some(format!("the version expected of stream {stream} is negative"));
        }
        for event in &write.events {
            if !ids.insert(event.event_id) {
                return Some(format!("event id {} occurs twice in the request", event.event_id));
            }
            if let Some(fault) = event_fault(event, stream) {
                return Some(fault);
            }
        }
    }
    None
}

fn event_fault(event: &NewEvent, stream: &StreamKey) -> Option<String> {
    let id = event.event_id;
    if id == Uuid::nil() {
        return Some("an event has the nil UUID as its id".to_owned());
    }
    if event.payload.len() > MAX_PAYLOAD_BYTES {
        return Some(format!(
            "event {id} has a payload of {} bytes; at most {MAX_PAYLOAD_BYTES} fit: store it as a blob and name \
             that in the event",
            event.payload.len()
        ));
    }
    if event.schema_version == 0 {
        return Some(format!("event {id} has schema version 0; they count from 1"));
    }
    if event.org != stream.org() {
        return Some(format!(
            "event {id} belongs to organisation {:?} but stream {stream} does not",
            event.org
        ));
    }
    for (what, text) in
        [("type", &event.event_type), ("organisation", &event.org), ("actor's id", &event.actor.id)]
    {
        if text.is_empty() || text.len() > MAX_NAME_BYTES || text.contains('\0') {
            return Some(format!(
                "event {id}: the {what} must have 1 to {MAX_NAME_BYTES} bytes, none of them zero"
            ));
        }
    }
    None
}
