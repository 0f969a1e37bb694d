//! InferenceX: the upstream `benchmark_serving.py`, behind a launcher `inferencex` on the host. Its aggregate is made
//! here: the upstream script divides by zero where a run has a single request or single tokens.

use events::foreign::{self, Format, InferencexDimensions, PerGpu};
use events::tool_output::InferencexOutput;
use events::tools::ToolCode;

use super::external::{External, Read, folder, why};
use super::{Measured, SummaryError, SummaryLine, ToolFiles, whole_file};

/// The adapter.
pub fn tool() -> External {
    External { tool: ToolCode::Inferencex, model_option: "--model", find, read }
}

fn find(files: &ToolFiles) -> Result<SummaryLine, SummaryError> {
    whole_file(&folder(files).join("inferencex.json"))
}

fn read(measured: &Measured<'_>, text: &str) -> Result<Read, String> {
    let mut results = foreign::read(Format::InferencexResult, text.as_bytes()).map_err(why)?;
    let result = results.pop().ok_or("it holds no result")?;
    let dimensions =
        InferencexDimensions::of_job(&measured.job.workload, &measured.job.commands, measured.gpus);
    let per_gpu = PerGpu::of(&result.figures, dimensions.gpu_count);
    let inferencex = Some(InferencexOutput { dimensions, per_gpu });
    Ok(Read { load: result.load, figures: result.figures, inferencex, ..Read::default() })
}

#[cfg(test)]
mod tests {
    use events::report::ReportBody;
    use events::tool_output::ToolInvocation;
    use serde_json::json;

    use super::*;
    use crate::tools::Tool;
    use crate::tools::external::tests::job;

    fn invocation() -> ToolInvocation {
        ToolInvocation {
            tool_code: "inferencex".into(),
            tool_version: "inferencex 843c625".into(),
            argv: vec![],
            exit_code: Some(0),
            summary_sha256: String::new(),
        }
    }

    #[test]
    fn a_result_is_divided_by_the_gpus_the_model_server_was_given() {
        let folder = tempfile::tempdir().unwrap();
        let files = ToolFiles::inside(folder.path());
        let result = json!({
            "model_id": "m/a", "num_prompts": 80, "max_concurrency": 8, "duration": 4.0, "completed": 80,
            "total_input_tokens": 8000, "total_output_tokens": 4000, "request_throughput": 20.0,
            "output_throughput": 1000.0, "total_token_throughput": 3000.0, "mean_ttft_ms": 20.0, "mean_tpot_ms": 0.0,
            "std_tpot_ms": 0.0, "mean_e2el_ms": 300.0,
        });
        std::fs::write(folder.path().join("inferencex.json"), result.to_string()).unwrap();
        let summary = tool().summary(&files).unwrap();
        let job = job("inferencex");
        let measured = Measured { job: &job, gpus: 8 };
        let body = tool().metrics(&measured, invocation(), &summary.line).unwrap();
        let ReportBody::ExternalOutput { output, .. } = body else { panic!("an external output") };
        let inferencex = output.inferencex.expect("InferenceX's own");
        assert_eq!(inferencex.dimensions.gpu_count, Some(4), "tensor parallelism 4 of the host's 8");
        assert_eq!(inferencex.per_gpu.tokens_per_second, Some(750.0));
        assert_eq!(inferencex.per_gpu.input_tokens_per_second, Some(500.0));
        assert_eq!(output.figures.tpot_excl_first_ms, None, "a time of zero was not measured");
        assert_eq!(inferencex.dimensions.precision.as_deref(), Some("fp8"));
    }

    #[test]
    fn no_result_file_is_a_missing_summary() {
        let folder = tempfile::tempdir().unwrap();
        let files = ToolFiles::inside(folder.path());
        assert!(matches!(tool().summary(&files), Err(SummaryError::Missing { .. })));
    }
}
