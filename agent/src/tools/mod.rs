//! The load generators the agent can run. A new one is one file here, one in `events`, one projection.

mod external;
mod genai_perf;
mod inferencex;
mod kv_cache_offload;
mod kyai;
mod metrumbench;
mod metrumbench_asr;
mod metrumbench_imagegen;
mod metrumbench_llm;
mod metrumbench_vlm;

use std::path::{Path, PathBuf};

use events::report::{AssignedJob, ReportBody};
use events::tool_output::{ProgressReported, ToolInvocation};
use events::tools::ToolCode;

pub use metrumbench::Metrumbench;

/// The files a tool writes for the agent.
#[derive(Debug, Clone)]
pub struct ToolFiles {
    /// Where its summary lines go (`{agent.data_log}`).
    pub data_log: PathBuf,
    /// Where its progress lines go (`{agent.progress}`).
    pub progress: PathBuf,
    /// Where its lines, one a request, go (`{agent.request_log}`).
    pub request_log: PathBuf,
}

impl ToolFiles {
    /// The files inside an attempt's log folder.
    pub fn inside(folder: &Path) -> Self {
        Self {
            data_log: folder.join("summary.jsonl"),
            progress: folder.join("progress.jsonl"),
            request_log: folder.join("requests.jsonl"),
        }
    }
}

/// A summary as a tool wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryLine {
    /// The exact line, without its end.
    pub line: String,
    /// SHA-256 of it, hexadecimal.
    pub sha256: String,
}

/// Why a tool's summary is not usable.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// There is none.
    #[error("the tool wrote no summary to {path}: see the tool log for why it ended early")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("the tool's summary {path} cannot be read: {source}")]
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what the tool's contract says.
    #[error("the tool's summary is not understood ({0}): are tool and agent of the same version?")]
    NotUnderstood(String),
}

/// What was measured, as the agent knows it beside the tool's own words.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// The job.
    pub job: &'a AssignedJob,
    /// Accelerators on this host.
    pub gpus: u32,
}

/// A load generator.
pub trait Tool: Send + Sync {
    /// Its code, as workloads name it.
    fn code(&self) -> &'static str;

    /// Makes ready what the tool needs before it starts.
    ///
    /// # Errors
    /// When a file cannot be made.
    fn prepare(&self, files: &ToolFiles) -> std::io::Result<()>;

    /// The arguments that ask it for its version.
    fn version_arguments(&self) -> &'static [&'static str];

    /// The final command line, from the one that the control plane signed with its placeholders filled.
    fn argv(&self, signed: Vec<String>, files: &ToolFiles) -> Vec<String>;

    /// One line of progress; nothing for a line that is none.
    fn progress(&self, line: &str, seq: u64) -> Option<ProgressReported>;

    /// The summary it wrote.
    ///
    /// # Errors
    /// [`SummaryError`].
    fn summary(&self, files: &ToolFiles) -> Result<SummaryLine, SummaryError>;

    /// The summary as typed metrics, ready to be reported. `clean` is the line without secrets.
    ///
    /// # Errors
    /// [`SummaryError::NotUnderstood`].
    fn metrics(
        &self,
        measured: &Measured<'_>,
        invocation: ToolInvocation,
        clean: &str,
    ) -> Result<ReportBody, SummaryError>;

    /// The file with one line a request, where the command asks for one.
    fn request_log(&self, argv: &[String]) -> Option<PathBuf>;

    /// The model that the command's requests ask for, where it says so.
    fn model(&self, argv: &[String]) -> Option<String>;
}

/// The tool of a code.
pub fn find(code: &str) -> Option<Box<dyn Tool>> {
    Some(match ToolCode::of(code)? {
        ToolCode::MetrumbenchLlm => Box::new(metrumbench_llm::tool()),
        ToolCode::MetrumbenchVlm => Box::new(metrumbench_vlm::tool()),
        ToolCode::MetrumbenchAsr => Box::new(metrumbench_asr::tool()),
        ToolCode::MetrumbenchImagegen => Box::new(metrumbench_imagegen::tool()),
        ToolCode::Inferencex => Box::new(inferencex::tool()),
        ToolCode::GenaiPerf => Box::new(genai_perf::tool()),
        ToolCode::KvCacheOffload => Box::new(kv_cache_offload::tool()),
        ToolCode::Kyai => Box::new(kyai::tool()),
    })
}

/// A whole file, exactly as it was written.
fn whole_file(path: &Path) -> Result<SummaryLine, SummaryError> {
    use sha2::{Digest, Sha256};
    let bytes = std::fs::read(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => SummaryError::Missing { path: path.to_owned() },
        _ => SummaryError::Unreadable { path: path.to_owned(), source },
    })?;
    let sha256 = hex::encode(Sha256::digest(&bytes));
    let line = String::from_utf8(bytes).map_err(|e| SummaryError::NotUnderstood(e.to_string()))?;
    Ok(SummaryLine { line, sha256 })
}

/// The last line of a file, exactly as it was written.
fn last_line(path: &Path) -> Result<SummaryLine, SummaryError> {
    use sha2::{Digest, Sha256};
    let missing = || SummaryError::Missing { path: path.to_owned() };
    let bytes = std::fs::read(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => missing(),
        _ => SummaryError::Unreadable { path: path.to_owned(), source },
    })?;
    let line =
        bytes.split(|&b| b == b'\n').rfind(|line| !line.trim_ascii().is_empty()).ok_or_else(missing)?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let sha256 = hex::encode(Sha256::digest(line));
    let line = std::str::from_utf8(line).map_err(|e| SummaryError::NotUnderstood(e.to_string()))?;
    Ok(SummaryLine { line: line.to_owned(), sha256 })
}

/// The value of `--name=value` or `--name value` in a command line.
fn option_value<'a>(argv: &'a [String], name: &str) -> Option<&'a str> {
    let mut arguments = argv.iter();
    while let Some(argument) = arguments.next() {
        let Some(rest) = argument.strip_prefix(name) else { continue };
        if rest.is_empty() {
            return arguments.next().map(String::as_str);
        }
        if let Some(value) = rest.strip_prefix('=') {
            return Some(value);
        }
    }
    None
}
