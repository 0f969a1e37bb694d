//! Scenarios: `v_scenarios`. Folded by [`super::projects`].

use events::Timestamp;
use events::envelope::Recorded;
use events::keys::ScenarioKey;
use events::workload::ScenarioSpec;
use serde::{Deserialize, Serialize};

use super::access::{self, Rights};
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// A scenario, as `v_scenarios` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScenarioRow {
    org: String,
    project_code: String,
    workload_code: String,
    scenario_code: String,
    concurrency: u32,
    input_sequence_length: Option<u32>,
    output_sequence_length: Option<u32>,
    num_requests: u32,
    max_tokens: Option<u32>,
    streaming: Option<bool>,
    num_rounds: Option<u32>,
    num_images_batch: Option<u32>,
    image_size: Option<String>,
    image_detail: Option<String>,
    created_at: Timestamp,
    position: i64,
    visibility: String,
    owner: String,
}

impl ScenarioRow {
    pub(super) fn new(key: ScenarioKey, spec: &ScenarioSpec, recorded: &Recorded, rights: Rights) -> Self {
        Self {
            org: key.org,
            project_code: key.project,
            workload_code: key.workload,
            scenario_code: key.scenario,
            concurrency: spec.concurrency,
            input_sequence_length: spec.input_sequence_length,
            output_sequence_length: spec.output_sequence_length,
            num_requests: spec.num_requests,
            max_tokens: spec.max_tokens,
            streaming: spec.streaming,
            num_rounds: spec.num_rounds,
            num_images_batch: spec.num_images_batch,
            image_size: spec.image_size.clone(),
            image_detail: spec.image_detail.clone(),
            created_at: recorded.recorded_at,
            position: recorded.position,
            visibility: rights.visibility,
            owner: rights.owner,
        }
    }
}

impl Row for ScenarioRow {
    type Key = (String, String, String, String);
    const TABLE: &'static str = "scenarios";
    const KEY: &'static [&'static str] = &["org", "project_code", "workload_code", "scenario_code"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Text, Time};
        let mut columns = vec![
            Column::shown("org", Text),
            Column::shown("project_code", Text),
            Column::shown("workload_code", Text),
            Column::shown("scenario_code", Text),
            Column::shown("concurrency", Int),
            Column::shown("input_sequence_length", Int),
            Column::shown("output_sequence_length", Int),
            Column::shown("num_requests", Int),
            Column::shown("max_tokens", Int),
            Column::shown("streaming", Bool),
            Column::shown("num_rounds", Int),
            Column::shown("num_images_batch", Int),
            Column::shown("image_size", Text),
            Column::shown("image_detail", Text),
            Column::shown("created_at", Time),
            Column::shown("position", Int),
        ];
        columns.extend(access::columns());
        columns
    }
    fn key(&self) -> Self::Key {
        (self.org.clone(), self.project_code.clone(), self.workload_code.clone(), self.scenario_code.clone())
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
}
