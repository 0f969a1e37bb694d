//! What the project's own load generators have in common: their options, progress lines and summaries.

use std::fs::File;
use std::path::PathBuf;

use events::report::ReportBody;
use events::summary::Summary;
use events::tool_output::{ProgressReported, ToolInvocation, ToolOutputRecorded};
use events::tools::ToolCode;
use serde::Deserialize;

use super::{Measured, SummaryError, SummaryLine, Tool, ToolFiles, last_line, option_value};

/// The adapter of one of them.
pub struct Metrumbench {
    /// Which.
    pub(super) tool: ToolCode,
    /// The option that names the file its summary goes to.
    pub(super) summary_option: &'static str,
    /// The option that names the file with one line a request.
    pub(super) request_log_option: &'static str,
}

/// A progress line. What an older or newer tool leaves out is not needed.
#[derive(Debug, Deserialize)]
struct ProgressLine {
    phase: String,
    done: u64,
    #[serde(default)]
    total: Option<u64>,
    #[serde(default)]
    failed: u64,
    #[serde(default)]
    in_flight: u64,
    elapsed_s: f64,
    #[serde(default)]
    requests_per_second: Option<f64>,
    #[serde(default)]
    completion_tokens_per_second: Option<f64>,
    #[serde(default)]
    ttft_p50_ms: Option<f64>,
}

impl Tool for Metrumbench {
    fn code(&self) -> &'static str {
        self.tool.as_str()
    }

    fn prepare(&self, files: &ToolFiles) -> std::io::Result<()> {
        // The tool appends to all of them; an older attempt's lines must not be taken for this one's.
        for path in [&files.data_log, &files.progress, &files.request_log] {
            File::create(path)?;
        }
        Ok(())
    }

    fn version_arguments(&self) -> &'static [&'static str] {
        &["--version"]
    }

    fn argv(&self, mut signed: Vec<String>, files: &ToolFiles) -> Vec<String> {
        // What the agent itself reads; a template need not know about it.
        if option_value(&signed, self.summary_option).is_none() {
            signed.push(format!("{}={}", self.summary_option, files.data_log.display()));
        }
        if option_value(&signed, "--progress-file").is_none()
            && option_value(&signed, "--progress-fd").is_none()
        {
            signed.push(format!("--progress-file={}", files.progress.display()));
        }
        signed
    }

    fn progress(&self, line: &str, seq: u64) -> Option<ProgressReported> {
        let line: ProgressLine = serde_json::from_str(line).ok()?;
        Some(ProgressReported {
            seq,
            phase: line.phase,
            done: line.done,
            total: line.total,
            failed: line.failed,
            in_flight: line.in_flight,
            elapsed_s: line.elapsed_s,
            requests_per_second: line.requests_per_second,
            completion_tokens_per_second: line.completion_tokens_per_second,
            ttft_p50_ms: line.ttft_p50_ms,
        })
    }

    fn summary(&self, files: &ToolFiles) -> Result<SummaryLine, SummaryError> {
        last_line(&files.data_log)
    }

    fn metrics(
        &self,
        measured: &Measured<'_>,
        invocation: ToolInvocation,
        clean: &str,
    ) -> Result<ReportBody, SummaryError> {
        let summary: Summary =
            serde_json::from_str(clean).map_err(|e| SummaryError::NotUnderstood(e.to_string()))?;
        if summary.tool != self.code() {
            return Err(SummaryError::NotUnderstood(format!("it was written by {:?}", summary.tool)));
        }
        let output = Box::new(ToolOutputRecorded { attempt: measured.job.attempt, invocation, summary });
        Ok(ReportBody::ToolOutput { job: measured.job.job.clone(), output })
    }

    fn request_log(&self, argv: &[String]) -> Option<PathBuf> {
        option_value(argv, self.request_log_option).map(PathBuf::from)
    }

    fn model(&self, argv: &[String]) -> Option<String> {
        option_value(argv, "--model").map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{metrumbench_imagegen, metrumbench_llm};

    fn argv(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_summary_is_the_last_line_exactly_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let files = ToolFiles::inside(folder.path());
        std::fs::write(&files.data_log, "{\"old\":1}\n{\"b\": 2, \"a\":1}\n\n").unwrap();
        let summary = metrumbench_llm::tool().summary(&files).unwrap();
        assert_eq!(summary.line, "{\"b\": 2, \"a\":1}");
        assert_eq!(summary.sha256, "31ee3b4a4ad6ce9eff523ff58fa5fabcd144052f53a63084c60127ea1696b4c9");
        std::fs::write(&files.data_log, "").unwrap();
        assert!(matches!(metrumbench_llm::tool().summary(&files), Err(SummaryError::Missing { .. })));
    }

    #[test]
    fn the_files_the_agent_reads_are_named_once() {
        let files = ToolFiles::inside(std::path::Path::new("/l"));
        let bare = metrumbench_llm::tool().argv(argv(&["metrumbench-llm"]), &files);
        assert_eq!(bare[1..], ["--data-log=/l/summary.jsonl", "--progress-file=/l/progress.jsonl"]);
        assert_eq!(metrumbench_llm::tool().argv(bare.clone(), &files), bare);
    }

    #[test]
    fn image_generation_names_its_files_by_other_options() {
        let files = ToolFiles::inside(std::path::Path::new("/l"));
        let tool = metrumbench_imagegen::tool();
        let argv = tool.argv(argv(&["metrumbench-imagegen", "--data-log=/l/requests.jsonl"]), &files);
        assert_eq!(argv[2..], ["--summary=/l/summary.jsonl", "--progress-file=/l/progress.jsonl"]);
        assert_eq!(tool.request_log(&argv), Some("/l/requests.jsonl".into()));
    }

    #[test]
    fn a_summary_of_another_tool_is_not_taken() {
        let golden = include_str!("../../../events/tests/golden/tool_output.recorded.v1.json");
        let recorded: ToolOutputRecorded = serde_json::from_str(golden).unwrap();
        let job = crate::tools::external::tests::job("metrumbench-llm");
        let measured = Measured { job: &job, gpus: 0 };
        let line = serde_json::to_string(&recorded.summary).unwrap();
        let metrics = |tool: Metrumbench| {
            tool.metrics(&measured, recorded.invocation.clone(), &line).map(|body| body.kind())
        };
        assert_eq!(metrics(metrumbench_llm::tool()).unwrap(), "tool_output");
        assert!(matches!(metrics(metrumbench_imagegen::tool()), Err(SummaryError::NotUnderstood(_))));
    }

    #[test]
    fn an_option_is_found_in_either_spelling() {
        let argv = argv(&["x", "--request-log", "/a", "--request-logs=/c"]);
        assert_eq!(metrumbench_llm::tool().request_log(&argv), Some("/a".into()));
        assert_eq!(option_value(&argv, "--request-logs"), Some("/c"));
        assert_eq!(option_value(&argv, "--request"), None);
    }

    #[test]
    fn a_line_that_is_no_progress_is_passed_over() {
        assert!(metrumbench_llm::tool().progress("warming up", 1).is_none());
        let line =
            r#"{"phase":"running","done":3,"total":10,"elapsed_s":1.5,"ttft_p50_ms":20.5,"something_new":1}"#;
        let progress = metrumbench_llm::tool().progress(line, 7).unwrap();
        assert_eq!((progress.seq, progress.done, progress.total), (7, 3, Some(10)));
        assert_eq!(progress.ttft_p50_ms, Some(20.5));
    }
}
