//! The ground truth: when what was written, one JSON line a request.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::request_log::Anchor;

/// What the server did with one request. Times are nanoseconds since 1970, taken just before the bytes were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// The request's `x-request-id`, or a number of the server's own.
    pub request_id: String,
    /// The shape asked for.
    pub shape: String,
    /// When its last byte arrived, by the kernel's stamp.
    pub received_unix_ns: u64,
    /// When each chunk with output was written.
    pub chunks_unix_ns: Vec<u64>,
    /// When the last bytes of the answer were written.
    pub ended_unix_ns: u64,
    /// Input tokens, as reported in usage.
    pub prompt_tokens: u64,
    /// Output tokens, as reported in usage.
    pub completion_tokens: u64,
    /// Words of output.
    pub words: u64,
    /// True when it answered completely and properly.
    pub complete: bool,
    /// How many requests the connection had served before.
    pub served_before: u64,
}

/// The log.
#[derive(Debug)]
pub struct TruthLog {
    anchor: Anchor,
    file: Mutex<File>,
}

impl TruthLog {
    /// Opens `path` for appending.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { anchor: Anchor::now(), file: Mutex::new(file) })
    }

    /// Nanoseconds since 1970 now.
    pub fn now_ns(&self) -> u64 {
        self.unix_ns(Instant::now())
    }

    /// Nanoseconds since 1970 of a moment.
    pub fn unix_ns(&self, at: Instant) -> u64 {
        self.anchor.unix_ns(at)
    }

    /// Writes one line.
    pub fn write(&self, truth: &Truth) {
        let Ok(mut line) = serde_json::to_vec(truth) else { return };
        line.push(b'\n');
        if let Ok(mut file) = self.file.lock() {
            let _ = file.write_all(&line);
        }
    }
}

/// Reads a truth log.
pub fn read(path: &Path) -> io::Result<Vec<Truth>> {
    let text = std::fs::read_to_string(path)?;
    text.lines().map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
}
