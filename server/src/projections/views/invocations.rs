//! What benchmark tools were started with, under the names that the methodology gives these tables: one row a job whose
//! newest attempt started its tool.

use super::{ViewDef, folded, selected};
use crate::projections::models::jobs::JobRow;
use crate::projections::table::Row;

/// The columns of `v_jobs` that say where an invocation belongs, what was asked for, and what was executed.
const COLUMNS: &[&str] = &[
    "org",
    "project_code",
    "workload_code",
    "run_number",
    "scenario_code",
    "job",
    "run",
    "attempt",
    "status",
    "tool_code",
    "tool_version",
    "tool_argv",
    "resolved_tool_argv",
    "endpoint_urls",
    "served_models",
    "config_code",
    "hostname",
    "model_code",
    "framework_code",
    "framework_version",
    "quantization",
    "replicas",
    "concurrency",
    "num_requests",
    "input_sequence_length",
    "output_sequence_length",
    "streaming",
    "running_at",
    "finished_at",
    "position",
];

/// The views: of three tools of our own, and of all tools.
pub(super) fn invocations() -> [ViewDef; 4] {
    let of = |name, tool: Option<&str>| {
        let columns: Vec<_> =
            JobRow::columns().into_iter().filter(|c| COLUMNS.contains(&c.name.as_str())).collect();
        let alone = tool.map(|tool| format!(" and tool_code = '{tool}'")).unwrap_or_default();
        folded(ViewDef {
            name,
            select: format!(
                "select {} from {{{}}} where tool_argv is not null{alone}",
                selected(&columns, ""),
                JobRow::TABLE
            ),
            columns,
            tables: vec![JobRow::TABLE],
            invoker: true,
            history: None,
            served: true,
            ranked: false,
        })
    };
    [
        of("metrumbench_llm_invocations", Some("metrumbench-llm")),
        of("metrumbench_vlm_invocations", Some("metrumbench-vlm")),
        of("metrumbench_asr_invocations", Some("metrumbench-asr")),
        of("tool_invocations", None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_one_of_a_job() {
        for view in invocations() {
            assert_eq!(view.columns.len(), COLUMNS.len(), "{}", view.name);
        }
    }
}
