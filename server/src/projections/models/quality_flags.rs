//! Doubts about results: `v_quality_flags`. Folded by [`super::runs`].

use events::Timestamp;
use serde::{Deserialize, Serialize};

use super::access;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// A doubt about a result, as `v_quality_flags` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FlagRow {
    pub(super) org: String,
    pub(super) project_code: String,
    pub(super) workload_code: String,
    pub(super) run_number: u32,
    pub(super) scenario_code: String,
    pub(super) job: String,
    pub(super) attempt: u32,
    pub(super) rule: String,
    pub(super) message: String,
    pub(super) flagged_at: Timestamp,
    pub(super) flagged_by: String,
    pub(super) cleared: bool,
    pub(super) cleared_at: Option<Timestamp>,
    pub(super) cleared_by: Option<String>,
    pub(super) cleared_reason: Option<String>,
    pub(super) first_position: i64,
    pub(super) position: i64,
    pub(super) visibility: String,
    pub(super) owner: String,
}

impl Row for FlagRow {
    type Key = (String, String);
    const TABLE: &'static str = "quality_flags";
    const KEY: &'static [&'static str] = &["job", "rule"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Text, Time};
        let mut columns = access::job_columns();
        columns.extend([
            Column::shown("attempt", Int),
            Column::shown("rule", Text),
            Column::shown("message", Text),
            Column::shown("flagged_at", Time),
            Column::shown("flagged_by", Text),
            Column::shown("cleared", Bool),
            Column::shown("cleared_at", Time),
            Column::shown("cleared_by", Text),
            Column::shown("cleared_reason", Text),
            Column::hidden("first_position", Int),
            Column::shown("position", Int),
        ]);
        columns.extend(access::columns());
        columns
    }
    fn key(&self) -> Self::Key {
        (self.job.clone(), self.rule.clone())
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
}
