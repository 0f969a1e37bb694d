//! The end of a run: what must be flagged, where the summary goes, the exit code.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use events::summary::{Client, Summary};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::cli::Common;
use crate::collect::Collector;
use crate::report;

/// Exit code: all went well.
pub const EXIT_OK: i32 = 0;
/// Exit code: too many requests failed, or the results could not be written.
pub const EXIT_FAILURES: i32 = 1;
/// Exit code: bad usage.
pub const EXIT_USAGE: i32 = 2;
/// Exit code: every request failed.
pub const EXIT_ALL_FAILED: i32 = 3;
/// Exit code: the machine is not fit to measure.
pub const EXIT_UNFIT: i32 = 4;
/// Exit code: interrupted.
pub const EXIT_INTERRUPTED: i32 = 130;

/// Raises the flags the figures call for.
pub fn raise_flags(collector: &Collector, client: &Client, flags: &mut Vec<String>) {
    let requests = collector.requests();
    let without_usage = collector.without_usage();
    let raised = [
        ("no_success", requests.succeeded == 0),
        ("usage_absent", requests.succeeded > 0 && without_usage == requests.succeeded),
        ("usage_partial", without_usage > 0 && without_usage < requests.succeeded),
        ("no_done_marker", collector.without_done() > 0),
        ("images_unknown", collector.images_unknown()),
        ("few_requests", requests.succeeded > 0 && requests.succeeded < 10),
        ("client_limited", client.limited),
    ];
    flags.extend(raised.into_iter().filter(|(_, raised)| *raised).map(|(flag, _)| flag.to_owned()));
}

/// The run's name for people.
pub fn readable_id(tool: &str, at: OffsetDateTime, concurrency: u32, id: Uuid) -> String {
    let kind = tool.rsplit('-').next().unwrap_or(tool);
    let tail = id.simple().to_string();
    format!(
        "{kind}-{:04}{:02}{:02}-{:02}{:02}{:02}-c{concurrency}-{}",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        &tail[tail.len() - 6..]
    )
}

/// The file a summary goes to; `-` is standard output.
#[derive(Clone, Debug)]
pub struct SummaryFile {
    /// Its path.
    pub path: PathBuf,
    /// A line is appended for each run; otherwise the file holds the last one alone.
    pub is_log: bool,
}

impl SummaryFile {
    fn write(&self, line: &str) -> io::Result<()> {
        if self.is_log {
            let mut file = open_log(&self.path)?;
            file.write_all(line.as_bytes())?;
            return file.sync_data();
        }
        // Whoever reads it meanwhile sees the old one or the new one, whole.
        let partial = self.path.with_extension(format!("part{}", std::process::id()));
        let written = File::create(&partial).and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.sync_data()
        });
        written.and_then(|()| std::fs::rename(&partial, &self.path)).inspect_err(|_| {
            let _ = std::fs::remove_file(&partial);
        })
    }
}

/// Opens a file of lines for appending. A line that broke off there (a full disk, a crash) is ended first, so that it
/// does not swallow the next one.
pub fn open_log(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let length = file.metadata()?.len();
    let is_regular = file.metadata()?.is_file();
    if is_regular && length > 0 {
        let mut last = [0];
        File::open(path)?.read_exact_at(&mut last, length - 1)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// Writes the line to its file, and shows it or a table. If the file cannot be written now, the line goes to standard
/// error: it is never lost.
pub fn write_summary(summary: &Summary, common: &Common, file: &SummaryFile) -> io::Result<()> {
    let mut line = serde_json::to_string(summary)?;
    line.push('\n');
    let to_stdout = file.path.as_os_str() == "-";
    let mut result = if to_stdout { Ok(()) } else { file.write(&line) };
    if let Err(error) = &result {
        let _ = writeln!(io::stderr(), "error: {}: {error}; the summary follows", file.path.display());
        let _ = io::stderr().write_all(line.as_bytes());
    }
    if to_stdout || common.json {
        let shown = io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush());
        if let Err(error) = shown {
            let _ = writeln!(io::stderr(), "error: standard output: {error}");
            if to_stdout {
                let _ = io::stderr().write_all(line.as_bytes());
            }
            result = result.and(Err(error));
        }
    } else if !common.quiet {
        let _ = io::stdout().write_all(report::table(summary).as_bytes());
    }
    result
}

/// The exit code.
pub fn exit_code(summary: &Summary, common: &Common, written: io::Result<()>, logged: io::Result<()>) -> i32 {
    if let Err(error) = &logged {
        let _ = writeln!(io::stderr(), "error: the request log is incomplete: {error}");
    }
    let requests = &summary.figures.requests;
    if summary.cancelled {
        EXIT_INTERRUPTED
    } else if requests.succeeded == 0 {
        EXIT_ALL_FAILED
    } else if summary.figures.errors.rate_pct.is_some_and(|rate| rate > common.max_error_rate)
        || written.is_err()
        || logged.is_err()
    {
        EXIT_FAILURES
    } else {
        EXIT_OK
    }
}
