//! `metrumbench-llm`: text models.

use events::tools::ToolCode;

use super::metrumbench::Metrumbench;

/// The adapter.
pub fn tool() -> Metrumbench {
    Metrumbench {
        tool: ToolCode::MetrumbenchLlm,
        summary_option: "--data-log",
        request_log_option: "--request-log",
    }
}
