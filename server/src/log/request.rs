//! What is asked of the log, and what it answers.

use events::envelope::NewEvent;
use events::keys::StreamKey;

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
