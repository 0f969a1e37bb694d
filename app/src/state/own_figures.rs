//! What a tool measured beside the figures that all tools share: every column of its own view that has a value.

use events::metrics::metric;
use events::tools::ToolCode;

use crate::row::Row;

/// A figure that only this tool has.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnFigure {
    /// The view's column.
    pub column: String,
    /// What it is called, with its better direction.
    pub head: String,
    /// Its value.
    pub value: f64,
    /// Its unit; empty for counts and ratios.
    pub unit: &'static str,
    /// What it means.
    pub definition: String,
}

/// Words and settings of a tool's own view, and what they are called.
const SETTINGS: [(&str, &str); 13] = [
    ("tier", "KV cache tier"),
    ("dataset", "Dataset"),
    ("judge", "Judge"),
    ("questions", "Questions"),
    ("scored", "Scored"),
    ("num_rounds", "Rounds"),
    ("num_images_batch", "Images a request"),
    ("image_size", "Image size"),
    ("image_detail", "Image detail"),
    ("response_format", "Response format"),
    ("inference_time_source", "Inference time from"),
    ("ix_hardware", "Hardware"),
    ("ix_precision", "Precision"),
];

/// The view that keeps a tool's outputs: `metrumbench-asr` has `v_metrumbench_asr_outputs`.
pub fn own_view(tool: &str) -> Option<String> {
    ToolCode::of(tool).map(|_| format!("v_{}_outputs", tool.replace('-', "_")))
}

/// Every figure of a row of such a view but those shown elsewhere, in the order of their columns.
pub fn own_figures(row: &Row, shown: &[&str]) -> Vec<OwnFigure> {
    row.0
        .iter()
        .filter(|(column, _)| !shown.contains(&column.as_str()))
        .filter_map(|(column, value)| {
            let value = value.as_f64()?;
            let metric = metric(column)?;
            Some(OwnFigure {
                column: column.clone(),
                head: format!("{} {}", metric.label, metric.direction.arrow()).trim_end().to_owned(),
                value,
                unit: metric.unit,
                definition: metric.definition,
            })
        })
        .collect()
}

/// The settings of a row of such a view, in words.
pub fn own_settings(row: &Row) -> Vec<(&'static str, String)> {
    SETTINGS
        .iter()
        .filter_map(|(column, name)| Some((*name, row.maybe_text(column).filter(|text| !text.is_empty())?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_tool_has_its_view() {
        assert_eq!(own_view("metrumbench-asr").as_deref(), Some("v_metrumbench_asr_outputs"));
        assert_eq!(own_view("kv-cache-offload").as_deref(), Some("v_kv_cache_offload_outputs"));
        assert_eq!(own_view("something-else"), None);
    }

    #[test]
    fn what_the_head_shows_is_not_said_twice_and_nothing_is_no_figure() {
        let row = json!({"job": "job/a", "wer_avg": 12.5, "rtf_p50": 0.2, "cer_avg": null, "position": 8, "tier": "cpu"});
        let row: Row = serde_json::from_value(row).expect("a row");
        let found = own_figures(&row, &["wer_avg"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].column.as_str(), found[0].value, found[0].unit), ("rtf_p50", 0.2, ""));
        assert!(found[0].head.ends_with('↓'), "{}", found[0].head);
        assert_eq!(own_settings(&row), [("KV cache tier", "cpu".to_owned())]);
    }
}
