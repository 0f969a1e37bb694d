//! What third-party tools have in common: a result file of their own format, and no progress lines.

use std::path::{Path, PathBuf};

use events::external_figures::{KvCacheFigures, KyaiFigures};
use events::foreign::{ForeignError, ForeignFigures, Load};
use events::report::ReportBody;
use events::tool_output::{ExternalOutputRecorded, InferencexOutput, ProgressReported, ToolInvocation};
use events::tools::ToolCode;

use super::{Measured, SummaryError, SummaryLine, Tool, ToolFiles, option_value};

/// A result in the terms of the event it becomes.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) load: Load,
    pub(super) figures: ForeignFigures,
    pub(super) inferencex: Option<InferencexOutput>,
    pub(super) kv_cache: Option<KvCacheFigures>,
    pub(super) kyai: Option<KyaiFigures>,
}

/// The adapter of one of them.
pub struct External {
    /// Which.
    pub(super) tool: ToolCode,
    /// The option that names the model it asks for.
    pub(super) model_option: &'static str,
    /// Finds the result.
    pub(super) find: fn(&ToolFiles) -> Result<SummaryLine, SummaryError>,
    /// Reads it.
    pub(super) read: fn(&Measured<'_>, &str) -> Result<Read, String>,
}

/// The folder that tools with files of their own write into.
pub(super) fn folder(files: &ToolFiles) -> PathBuf {
    files.data_log.parent().unwrap_or(Path::new(".")).to_owned()
}

/// Why a result cannot be read, with its place in the file.
pub(super) fn why(error: ForeignError) -> String {
    error.to_string()
}

impl Tool for External {
    fn code(&self) -> &'static str {
        self.tool.as_str()
    }

    fn prepare(&self, files: &ToolFiles) -> std::io::Result<()> {
        // An older attempt's lines must not be taken for this one's; the folder is this attempt's alone.
        std::fs::File::create(&files.data_log)?;
        std::fs::File::create(&files.progress).map(drop)
    }

    fn version_arguments(&self) -> &'static [&'static str] {
        &["--version"]
    }

    fn argv(&self, signed: Vec<String>, _: &ToolFiles) -> Vec<String> {
        signed
    }

    fn progress(&self, _: &str, _: u64) -> Option<ProgressReported> {
        None
    }

    fn summary(&self, files: &ToolFiles) -> Result<SummaryLine, SummaryError> {
        (self.find)(files)
    }

    fn metrics(
        &self,
        measured: &Measured<'_>,
        invocation: ToolInvocation,
        clean: &str,
    ) -> Result<ReportBody, SummaryError> {
        let read = (self.read)(measured, clean).map_err(SummaryError::NotUnderstood)?;
        let Read { load, figures, inferencex, kv_cache, kyai } = read;
        let attempt = measured.job.attempt;
        let output =
            ExternalOutputRecorded { attempt, invocation, load, figures, inferencex, kv_cache, kyai };
        Ok(ReportBody::ExternalOutput { job: measured.job.job.clone(), output: Box::new(output) })
    }

    fn request_log(&self, _: &[String]) -> Option<PathBuf> {
        None
    }

    fn model(&self, argv: &[String]) -> Option<String> {
        option_value(argv, self.model_option).map(str::to_owned)
    }
}

#[cfg(test)]
pub(in crate::tools) mod tests {
    use events::report::AssignedJob;
    use serde_json::json;

    /// A job of a tool on eight GPUs that share the model by four.
    pub(in crate::tools) fn job(tool: &str) -> AssignedJob {
        let (job, server) = (
            json!({"org": "acme", "project": "p", "workload": "w", "run": 1, "scenario": "c8"}),
            json!({"org": "acme", "config": "h200x8", "hostname": "h"}),
        );
        serde_json::from_value(json!({
            "job": job, "attempt": 1, "server": server, "claimed_at": "2026-11-30T12:00:00Z",
            "expires_at": "2026-11-30T13:00:00Z",
            "workload": {"model_code": "m/a", "framework_code": "vllm", "framework_version": "0.28.0",
                         "tool_code": tool, "quantization": "fp8"},
            "scenario": {"concurrency": 8, "num_requests": 80},
            "commands": {"serve_argv": [], "tool_argv": [tool], "readiness_path": "", "readiness_timeout_s": 1,
                         "job_timeout_s": 60, "templates": [], "engine_args": {"tensor_parallel_size": 4},
                         "gpus_per_replica": 4},
            "sample_interval_ms": 1000,
        }))
        .expect("a job")
    }
}
