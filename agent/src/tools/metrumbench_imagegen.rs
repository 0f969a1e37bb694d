//! `metrumbench-imagegen`: image generation. Its data log has a line a request, its summary a file of its own.

use events::tools::ToolCode;

use super::metrumbench::Metrumbench;

/// The adapter.
pub fn tool() -> Metrumbench {
    Metrumbench {
        tool: ToolCode::MetrumbenchImagegen,
        summary_option: "--summary",
        request_log_option: "--data-log",
    }
}
