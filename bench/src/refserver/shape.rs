//! What the reference server can do wrong, and the ways it can write what is right.

use std::str::FromStr;

/// How an answer goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// As it should.
    #[default]
    Ok,
    /// The connection ends half way through the tokens.
    Cut,
    /// The connection ends before a byte of the answer.
    Refuse,
    /// Everything but a finish_reason, then `[DONE]`.
    MissingFinish,
    /// Everything but a finish_reason and `[DONE]`; the body ends properly.
    MissingFinishAndDone,
    /// Complete, but without `[DONE]`.
    NoDone,
    /// Complete, without `[DONE]`, and the body never ends.
    NoDoneOpen,
    /// `[DONE]` comes, and the body never ends.
    OpenAfterDone,
    /// An error object half way, then `[DONE]`, all under status 200.
    InBandError,
    /// An event of type `error` half way.
    ErrorEvent,
    /// An HTML page with status 200.
    Html,
    /// A whole JSON answer where a stream was asked for.
    JsonForStream,
    /// An event that is no JSON.
    BadJson,
    /// A finished answer without any token.
    Empty,
    /// Half the tokens, then silence.
    Stall,
    /// Silence.
    StallBeforeHead,
    /// This HTTP status with an error body.
    Status(u16),
    /// Status 500, out of memory.
    Oom,
}

const NAMES: &[(&str, Shape)] = &[
    ("ok", Shape::Ok),
    ("cut", Shape::Cut),
    ("refuse", Shape::Refuse),
    ("missing-finish", Shape::MissingFinish),
    ("missing-finish-and-done", Shape::MissingFinishAndDone),
    ("no-done", Shape::NoDone),
    ("no-done-open", Shape::NoDoneOpen),
    ("open-after-done", Shape::OpenAfterDone),
    ("in-band-error", Shape::InBandError),
    ("error-event", Shape::ErrorEvent),
    ("html", Shape::Html),
    ("json-for-stream", Shape::JsonForStream),
    ("bad-json", Shape::BadJson),
    ("empty", Shape::Empty),
    ("stall", Shape::Stall),
    ("stall-before-head", Shape::StallBeforeHead),
    ("oom", Shape::Oom),
];

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, shape)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*shape);
        }
        match text.strip_prefix("status-").and_then(|code| code.parse().ok()) {
            Some(code @ 300..=599) => Ok(Self::Status(code)),
            _ => {
                let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
                Err(format!("{text:?} is none of {}, status-NNN", names.join(", ")))
            }
        }
    }
}

/// How events are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// What ends a line.
    pub line_ending: &'static str,
    /// A comment line before each event.
    pub comments: bool,
    /// `data:` without the space.
    pub no_space: bool,
    /// Each event's JSON over several data lines.
    pub many_data_lines: bool,
    /// So many events in each write.
    pub events_per_write: usize,
    /// Each write in pieces of so many bytes; 0 for whole.
    pub split_bytes: usize,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            line_ending: "\n",
            comments: false,
            no_space: false,
            many_data_lines: false,
            events_per_write: 1,
            split_bytes: 0,
        }
    }
}

impl Wire {
    /// Appends one event with `data` to `out`.
    pub fn event(&self, out: &mut Vec<u8>, kind: Option<&str>, data: &str) {
        let end = self.line_ending;
        let field = if self.no_space { "data:" } else { "data: " };
        let mut line = |parts: &[&str]| {
            parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
            out.extend_from_slice(end.as_bytes());
        };
        if self.comments {
            line(&[": keep-alive"]);
            line(&["id: 1"]);
        }
        if let Some(kind) = kind {
            line(&["event: ", kind]);
        }
        match self.many_data_lines.then(|| data.find(',')).flatten() {
            Some(comma) => {
                line(&[field, &data[..=comma]]);
                line(&[field, &data[comma + 1..]]);
            }
            None => line(&[field, data]),
        }
        line(&[]);
    }
}
