//! `metrumbench-vlm`: models for images and text.

use events::tools::ToolCode;

use super::metrumbench::Metrumbench;

/// The adapter.
pub fn tool() -> Metrumbench {
    Metrumbench {
        tool: ToolCode::MetrumbenchVlm,
        summary_option: "--data-log",
        request_log_option: "--request-log",
    }
}
