//! How many results there are of each kind: what counts are answered by where the filters ask for nothing finer, however
//! many results there are. Folded by [`super::results`].

use serde::{Deserialize, Serialize};

use super::access;
use super::result::ResultRow;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// Results alike in all of these columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CountRow {
    /// All the other columns in one text.
    kind: String,
    org: String,
    project_code: String,
    model_code: String,
    framework_code: Option<String>,
    framework_version: Option<String>,
    quantization: Option<String>,
    tool_code: String,
    config_code: Option<String>,
    hostname: Option<String>,
    gpu_name: Option<String>,
    gpu_count: Option<i64>,
    concurrency: Option<u32>,
    input_sequence_length: Option<u32>,
    output_sequence_length: Option<u32>,
    streaming: Option<bool>,
    status: String,
    simulated: bool,
    imported: bool,
    suspicious: bool,
    n: i64,
    visibility: String,
    owner: String,
}

impl CountRow {
    /// The kind of a result; none of them is counted yet.
    pub(super) fn of(result: &ResultRow) -> Self {
        let mut row = Self {
            kind: String::new(),
            org: result.org.clone(),
            project_code: result.project_code.clone(),
            model_code: result.model_code.clone(),
            framework_code: result.framework_code.clone(),
            framework_version: result.framework_version.clone(),
            quantization: result.quantization.clone(),
            tool_code: result.tool_code.clone(),
            config_code: result.config_code.clone(),
            hostname: result.hostname.clone(),
            gpu_name: result.gpu_name.clone(),
            gpu_count: result.gpu_count,
            concurrency: result.concurrency,
            input_sequence_length: result.input_sequence_length,
            output_sequence_length: result.output_sequence_length,
            streaming: result.streaming,
            status: result.status.clone(),
            simulated: result.figures.simulated,
            imported: result.imported,
            suspicious: result.suspicious,
            n: 0,
            visibility: result.visibility.clone(),
            owner: result.owner.clone(),
        };
        row.kind = serde_json::json!([
            row.org,
            row.project_code,
            row.model_code,
            row.framework_code,
            row.framework_version,
            row.quantization,
            row.tool_code,
            row.config_code,
            row.hostname,
            row.gpu_name,
            row.gpu_count,
            row.concurrency,
            row.input_sequence_length,
            row.output_sequence_length,
            row.streaming,
            row.status,
            row.simulated,
            row.imported,
            row.suspicious,
        ])
        .to_string();
        row
    }
}

impl Row for CountRow {
    type Key = String;
    const TABLE: &'static str = "result_counts";
    const KEY: &'static [&'static str] = &["kind"];
    const TALLY: Option<&'static str> = Some("n");

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Text};
        let shown = |kind: Kind, names: &[&str]| -> Vec<Column> {
            names.iter().map(|name| Column::shown(name, kind)).collect()
        };
        let mut columns = vec![Column::hidden("kind", Text)];
        columns.extend(shown(
            Text,
            &[
                "org",
                "project_code",
                "model_code",
                "framework_code",
                "framework_version",
                "quantization",
                "tool_code",
                "config_code",
                "hostname",
                "gpu_name",
            ],
        ));
        columns.extend(shown(
            Int,
            &["gpu_count", "concurrency", "input_sequence_length", "output_sequence_length"],
        ));
        columns.extend(shown(Bool, &["streaming"]));
        columns.extend(shown(Text, &["status"]));
        columns.extend(shown(Bool, &["simulated", "imported", "suspicious"]));
        columns.extend(shown(Int, &["n"]));
        columns.extend(access::columns());
        columns
    }
    fn key(&self) -> Self::Key {
        self.kind.clone()
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
    fn tally(&mut self) -> Option<&mut i64> {
        Some(&mut self.n)
    }
}
