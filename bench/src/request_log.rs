//! One JSON line for each request, written as requests end.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use events::summary_requests::{IMAGEGEN_REQUEST_SCHEMA, ImagegenRequest, RequestLine};
use serde::Serialize;

use crate::extra::{AsrExtra, Attempt, Extra, ImagesExtra, VlmExtra};
use crate::failure::Redactor;
use crate::finish::open_log;
use crate::record::{Outcome, Record};

/// Ties the monotonic clock to the calendar: both were read at the same moment.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    instant: Instant,
    unix: Duration,
}

impl Anchor {
    /// Reads both clocks.
    pub fn now() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { instant: Instant::now(), unix }
    }

    /// How far the calendar clock was set between this reading and a later one.
    pub fn apart_from(self, later: Self) -> Duration {
        (self.unix + later.instant.saturating_duration_since(self.instant)).abs_diff(later.unix)
    }

    /// Nanoseconds since 1970 of a moment.
    pub fn unix_ns(&self, at: Instant) -> u64 {
        let unix = match at.checked_duration_since(self.instant) {
            Some(later) => self.unix + later,
            None => self.unix.saturating_sub(self.instant.duration_since(at)),
        };
        unix.as_nanos() as u64
    }
}

/// The log. A thread of its own writes it: a slow disk must not delay a measurement.
#[derive(Debug)]
pub struct RequestLog {
    anchor: Anchor,
    endpoints: Vec<String>,
    redactor: Redactor,
    queue: Arc<Queue>,
    writer: Mutex<Option<JoinHandle<io::Result<()>>>>,
}

/// Lines on their way to the file.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    closed: bool,
}

/// The writer looks for new lines no more often than this: thousands of requests a second must not mean thousands of writes.
const WRITES_APART: Duration = Duration::from_millis(5);

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Writes what comes until it is closed. After an error the rest is dropped: half a line must not be followed by more.
    fn write_to(&self, mut file: File) -> io::Result<()> {
        let (mut lines, mut result) = (Vec::new(), Ok(()));
        loop {
            let mut waiting = self.lock();
            while waiting.lines.is_empty() && !waiting.closed {
                waiting = self.changed.wait(waiting).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
            std::mem::swap(&mut waiting.lines, &mut lines);
            let closed = waiting.closed;
            drop(waiting);
            if result.is_ok() {
                result = file.write_all(&lines);
            }
            lines.clear();
            if closed {
                return result;
            }
            std::thread::sleep(WRITES_APART);
        }
    }
}

impl RequestLog {
    /// Opens `path` for appending.
    pub fn open(path: &Path, anchor: Anchor, endpoints: Vec<String>, redactor: Redactor) -> io::Result<Self> {
        let (file, queue) = (open_log(path)?, Arc::<Queue>::default());
        let reading = Arc::clone(&queue);
        let writer =
            std::thread::Builder::new().name("request-log".into()).spawn(move || reading.write_to(file))?;
        Ok(Self { anchor, endpoints, redactor, queue, writer: Mutex::new(Some(writer)) })
    }

    /// Hands one record to the writer, which reports its own errors at the end.
    pub fn write(&self, record: &Record) {
        let mut waiting = self.queue.lock();
        let before = waiting.lines.len();
        match self.write_to(&mut waiting.lines, record) {
            Ok(()) => waiting.lines.push(b'\n'),
            Err(_) => waiting.lines.truncate(before),
        }
        drop(waiting);
        if before == 0 {
            self.queue.changed.notify_one();
        }
    }

    /// Waits until all is written; the first error on the way, if there was one.
    pub fn close(&self) -> io::Result<()> {
        self.queue.lock().closed = true;
        self.queue.changed.notify_one();
        let writer = self.writer.lock().ok().and_then(|mut writer| writer.take());
        match writer.map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the writer of the request log died")),
            None => Ok(()),
        }
    }

    /// The line of a record, with what its load generator notes beyond what all do.
    fn write_to(&self, out: &mut Vec<u8>, record: &Record) -> serde_json::Result<()> {
        match &record.extra {
            Extra::None => serde_json::to_writer(out, &self.line(record, Nothing {})),
            Extra::Vlm(extra) => serde_json::to_writer(out, &self.line(record, vlm(extra))),
            Extra::Asr(extra) => serde_json::to_writer(out, &self.line(record, asr(extra))),
            Extra::Images(extra) => {
                serde_json::to_writer(out, &self.line(record, images(extra, &record.attempts)))
            }
        }
    }

    fn line<'a, M>(&'a self, record: &'a Record, modality: M) -> RequestLine<'a, M> {
        let timings = record.timings().unwrap_or_default();
        let (outcome, measured, failure) = match &record.outcome {
            Outcome::Success(measured) => ("success", Some(measured), None),
            Outcome::Failed(failure, so_far) => ("failed", Some(so_far), Some(failure)),
            Outcome::Incomplete => ("incomplete", None, None),
        };
        let unix = |at: Instant| self.anchor.unix_ns(at);
        RequestLine {
            request_id: &record.request_id,
            index: record.index,
            phase: record.phase.name(),
            endpoint: self.endpoints.get(record.endpoint).map_or("", String::as_str),
            outcome,
            scheduled_unix_ns: record.scheduled.map(unix),
            started_unix_ns: unix(record.started_at),
            ended_unix_ns: unix(record.ended_at),
            first_output_unix_ns: measured.and_then(|m| m.first_output).map(unix),
            last_output_unix_ns: measured.and_then(|m| m.last_output).map(unix),
            response_time_ms: ms(record.ended_at.saturating_duration_since(record.started_at)),
            ttft_ms: timings.ttft.map(ms),
            first_token_ms: timings.first_token.map(ms),
            tpot_ms: timings.tpot.map(ms),
            tpot_excl_first_ms: timings.tpot_excl_first.map(ms),
            schedule_delay_ms: record.scheduled.map(|at| ms(record.started_at.saturating_duration_since(at))),
            send_skew_ms: ms(record.started_at.saturating_duration_since(record.ready_at)),
            streamed: record.streamed,
            chunks: measured.filter(|_| record.streamed).map(|m| m.chunks),
            usage: measured.and_then(|m| m.usage),
            prompt_words: record.prompt_words,
            completion_words: measured.filter(|_| record.text).map(|m| m.words),
            finish_reason: measured.and_then(|m| m.finish_reason.as_deref()),
            status: record.status,
            connection_reused: record.sent.map(|sent| sent.reused),
            retried: record.sent.map(|sent| sent.retried),
            error_type: failure.map(|failure| record.names_of_failures()(failure.kind)),
            error: failure.map(|failure| self.redactor.redact(&failure.message)),
            modality,
        }
    }
}

/// Text: nothing more.
#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Vlm<'a> {
    image_processing_ms: f64,
    image_bytes: Option<u64>,
    image_dimensions: Vec<Option<String>>,
    /// Why something of them is null.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    image_unknown_reasons: &'a [String],
}

fn vlm(extra: &VlmExtra) -> Vlm<'_> {
    let size = |(width, height): (u32, u32)| format!("{width}x{height}");
    Vlm {
        image_processing_ms: ms(extra.processing),
        image_bytes: extra.bytes,
        image_dimensions: extra.dimensions.iter().map(|dimensions| dimensions.map(size)).collect(),
        image_unknown_reasons: &extra.unknown,
    }
}

#[derive(Serialize)]
struct Asr<'a> {
    sample: &'a str,
    inference_time_ms: Option<f64>,
    audio_seconds: Option<f64>,
    words: u64,
    characters: u64,
    bytes_sent: u64,
    bytes_received: u64,
    format: &'a str,
    wer: Option<f64>,
    cer: Option<f64>,
}

fn asr(extra: &AsrExtra) -> Asr<'_> {
    Asr {
        sample: &extra.sample,
        inference_time_ms: extra.inference.map(ms),
        audio_seconds: extra.audio_seconds,
        words: extra.words,
        characters: extra.characters,
        bytes_sent: extra.bytes_sent,
        bytes_received: extra.bytes_received,
        format: &extra.format,
        wer: extra.wer,
        cer: extra.cer,
    }
}

fn images<'a>(extra: &'a ImagesExtra, attempts: &'a [Attempt]) -> ImagegenRequest<'a> {
    ImagegenRequest {
        schema: IMAGEGEN_REQUEST_SCHEMA,
        prompt: &extra.prompt,
        size: &extra.size,
        images_requested: extra.requested,
        images_returned: extra.returned,
        response_bytes: extra.response_bytes,
        artifacts: &extra.artifacts,
        raw_path: extra.raw_path.as_deref(),
        attempts,
    }
}

fn ms(duration: Duration) -> f64 {
    crate::stats::round(duration.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let anchor = Anchor::now();
        let later = Anchor { instant: anchor.instant + Duration::from_secs(60), unix: anchor.unix };
        assert_eq!(anchor.apart_from(later), Duration::from_secs(60));
        let steady = Anchor { unix: anchor.unix + Duration::from_secs(60), ..later };
        assert_eq!(anchor.apart_from(steady), Duration::ZERO);
    }
}
