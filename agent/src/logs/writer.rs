//! One log of an attempt: numbers its lines, keeps all of them in a file and reports the first ones live.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use events::tool_output::{LogLines, LogSource};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// A batch is reported when it is this old.
const BATCH_AGE: Duration = Duration::from_millis(500);
/// A batch is reported when it has this many lines.
const BATCH_LINES: usize = 200;
/// A batch is reported before it has more bytes than this, as JSON.
const BATCH_BYTES: usize = 32 << 10;
/// The last lines that an error message can show.
const TAIL_LINES: usize = 20;

/// How much of a log is kept.
#[derive(Debug, Clone, Copy)]
pub struct LogLimits {
    /// Lines that are reported live.
    pub live_lines: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// Where lines go in. The log ends when every handle is gone.
#[derive(Clone)]
pub struct LogHandle {
    lines: mpsc::Sender<Vec<String>>,
    tail: Arc<Mutex<VecDeque<String>>>,
}

impl LogHandle {
    /// Adds lines; waits when the writer is behind, so that a flood of output slows its process down and not the host.
    pub async fn lines(&self, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        {
            let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
            for line in lines.iter().skip(lines.len().saturating_sub(TAIL_LINES)) {
                if tail.len() == TAIL_LINES {
                    tail.pop_front();
                }
                tail.push_back(line.clone());
            }
        }
        // The writer outlives every handle.
        let _ = self.lines.send(lines).await;
    }

    /// The last lines, for an error message; at most 4 KiB.
    pub fn tail(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = tail.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        if text.len() > 4096 {
            let cut = (text.len() - 4096..text.len()).find(|&at| text.is_char_boundary(at));
            text = format!("…{}", &text[cut.unwrap_or(text.len())..]);
        }
        text
    }
}

/// What became of a log.
#[derive(Debug, Clone)]
pub struct LogEnd {
    /// Which log.
    pub source: LogSource,
    /// The file with all of its lines.
    pub file: PathBuf,
    /// Lines read.
    pub lines: u64,
    /// Lines that were not reported live and are only in the file.
    pub only_in_file: u64,
    /// Lines that the file could not take.
    pub lost: u64,
}

/// A running writer.
pub struct LogWriter {
    task: JoinHandle<LogEnd>,
}

impl LogWriter {
    /// Starts a log. Its lines are numbered from 1; `report` takes those reported live.
    pub fn start(
        source: LogSource,
        path: &Path,
        limits: LogLimits,
        report: impl FnMut(LogLines) + Send + 'static,
    ) -> std::io::Result<(Self, LogHandle)> {
        let file = BufWriter::new(File::options().create(true).append(true).open(path)?);
        let (lines, incoming) = mpsc::channel(64);
        let state = State {
            end: LogEnd { source, file: path.to_owned(), lines: 0, only_in_file: 0, lost: 0 },
            limits,
            file,
            written: 0,
            batch: Vec::new(),
            batch_bytes: 0,
            batch_first: 1,
            report,
        };
        let task = tokio::spawn(state.run(incoming));
        Ok((Self { task }, LogHandle { lines, tail: Arc::default() }))
    }

    /// Waits until every handle is gone and everything is written and reported.
    pub async fn end(self) -> Option<LogEnd> {
        self.task.await.inspect_err(|error| tracing::error!(%error, "a log's writer failed")).ok()
    }
}

struct State<R> {
    end: LogEnd,
    limits: LogLimits,
    file: BufWriter<File>,
    written: u64,
    batch: Vec<String>,
    batch_bytes: usize,
    batch_first: u64,
    report: R,
}

impl<R: FnMut(LogLines)> State<R> {
    async fn run(mut self, mut incoming: mpsc::Receiver<Vec<String>>) -> LogEnd {
        let mut due: Option<Instant> = None;
        loop {
            let lines = tokio::select! {
                lines = incoming.recv() => lines,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.flush();
                    due = None;
                    continue;
                }
            };
            let Some(lines) = lines else { break };
            for line in lines {
                self.take(line);
            }
            due = if self.batch.is_empty() { None } else { due.or_else(|| Some(Instant::now() + BATCH_AGE)) };
        }
        self.flush();
        self.end
    }

    fn take(&mut self, line: String) {
        self.end.lines += 1;
        self.write(&line);
        if self.end.lines > self.limits.live_lines {
            self.end.only_in_file += 1;
            return;
        }
        let bytes = json_len(&line);
        if self.batch.len() >= BATCH_LINES || self.batch_bytes + bytes > BATCH_BYTES {
            self.flush();
        }
        if self.batch.is_empty() {
            self.batch_first = self.end.lines;
        }
        self.batch_bytes += bytes;
        self.batch.push(line);
    }

    fn write(&mut self, line: &str) {
        let bytes = line.len() as u64 + 1;
        let fits = self.written + bytes <= self.limits.file_bytes && self.end.lost == 0;
        if fits && writeln!(self.file, "{line}").is_ok() {
            self.written += bytes;
            return;
        }
        if self.end.lost == 0 {
            tracing::error!(file = %self.end.file.display(), "a log file takes no more lines (max_log_bytes is reached or the disk is full)");
        }
        self.end.lost += 1;
    }

    fn flush(&mut self) {
        if let Err(error) = self.file.flush() {
            tracing::error!(file = %self.end.file.display(), %error, "a log file cannot be written");
        }
        self.batch_bytes = 0;
        if !self.batch.is_empty() {
            (self.report)(LogLines {
                source: self.end.source,
                first_line: self.batch_first,
                lines: std::mem::take(&mut self.batch),
            });
        }
    }
}

/// The bytes a line takes as a JSON string, with its comma.
fn json_len(line: &str) -> usize {
    let escapes = line.bytes().filter(|b| matches!(b, b'"' | b'\\' | b'\t')).count();
    line.len() + escapes + 3
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn write(lines: Vec<String>, limits: LogLimits) -> (LogEnd, Vec<LogLines>, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("framework.log");
        let (send, receive) = std::sync::mpsc::channel();
        let (writer, handle) = LogWriter::start(LogSource::Framework, &path, limits, move |batch| {
            send.send(batch).unwrap();
        })
        .unwrap();
        handle.lines(lines).await;
        drop(handle);
        let end = writer.end().await.unwrap();
        (end, receive.iter().collect(), std::fs::read_to_string(&path).unwrap())
    }

    fn numbered(count: usize) -> Vec<String> {
        (1..=count).map(|n| format!("line {n}")).collect()
    }

    #[tokio::test]
    async fn lines_are_numbered_without_a_gap_over_batches() {
        let limits = LogLimits { live_lines: 5_000, file_bytes: 1 << 20 };
        let (end, batches, file) = write(numbered(450), limits).await;
        let firsts: Vec<(u64, usize)> = batches.iter().map(|b| (b.first_line, b.lines.len())).collect();
        assert_eq!(firsts, [(1, 200), (201, 200), (401, 50)]);
        assert_eq!((end.lines, end.only_in_file, file.lines().count()), (450, 0, 450));
    }

    #[tokio::test]
    async fn beyond_the_live_limit_lines_are_only_in_the_file() {
        let limits = LogLimits { live_lines: 10, file_bytes: 1 << 20 };
        let (end, batches, file) = write(numbered(25), limits).await;
        assert_eq!(batches.iter().map(|b| b.lines.len()).sum::<usize>(), 10);
        assert_eq!((end.only_in_file, end.lost, file.lines().count()), (15, 0, 25));
    }

    #[tokio::test]
    async fn a_file_that_is_full_is_not_cut_inside_a_line() {
        let limits = LogLimits { live_lines: 10, file_bytes: 16 };
        let (end, _, file) = write(numbered(5), limits).await;
        assert_eq!((end.lost, file.as_str()), (3, "line 1\nline 2\n"));
    }

    #[tokio::test]
    async fn a_batch_of_long_lines_stays_below_its_bytes() {
        let limits = LogLimits { live_lines: 5_000, file_bytes: 1 << 20 };
        let (_, batches, _) = write(vec!["\"".repeat(8_000); 9], limits).await;
        assert!(batches.iter().all(|b| serde_json::to_vec(b).unwrap().len() < 33 << 10));
    }
}
