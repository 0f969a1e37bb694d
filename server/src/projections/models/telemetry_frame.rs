//! What the summaries of an attempt's telemetry have in common: whose they are, and between which positions of the log
//! they changed.

use serde::{Deserialize, Serialize};

use super::telemetry_series::JobColumns;
use crate::projections::table::Access;
use crate::projections::text::{Column, Kind};

/// The frame around a summary's figures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Frame {
    #[serde(flatten)]
    pub(super) keys: JobColumns,
    first_position: i64,
    pub(super) position: i64,
}

impl Frame {
    /// The frame of a row that the event at `position` makes.
    pub(super) fn new(keys: JobColumns, position: i64) -> Self {
        Self { keys, first_position: position, position }
    }

    /// The columns of a row with these figures.
    pub(super) fn around(figures: Vec<Column>) -> Vec<Column> {
        let mut columns = JobColumns::columns();
        columns.extend(figures);
        columns.extend([Column::hidden("first_position", Kind::Int), Column::shown("position", Kind::Int)]);
        columns
    }

    /// The job and the attempt.
    pub(super) fn key(&self) -> (String, u32) {
        (self.keys.job.clone(), self.keys.attempt)
    }

    pub(super) fn access(&mut self) -> Option<Access<'_>> {
        self.keys.access()
    }
}
