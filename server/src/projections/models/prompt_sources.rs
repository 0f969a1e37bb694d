//! Prompt sources: `v_prompt_sources`, `v_prompt_libraries_with_prompt_count`, `v_prompt_source_calibrations`. An
//! organisation's own are its own; the platform's are everyone's.

use events::envelope::Recorded;
use events::keys::PLATFORM_ORG;
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};

use crate::projections::table::{Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

/// A source, as `v_prompt_sources` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PromptSourceRow {
    org: String,
    prompt_source_code: String,
    name: String,
    source_type: String,
    prompt_count: Option<u64>,
    sha256: Option<String>,
    size_bytes: Option<u64>,
    ground_truth: bool,
    ground_truth_sha256: Option<String>,
    local_paths: bool,
    words_total: Option<u64>,
    words_min: Option<u64>,
    words_max: Option<u64>,
    audio_s: Option<f64>,
    description: String,
    sources: Vec<String>,
    created_at: Timestamp,
    created_by: String,
    position: i64,
    visibility: String,
    owner: String,
}

impl Row for PromptSourceRow {
    type Key = (String, String);
    const TABLE: &'static str = "prompt_sources";
    const KEY: &'static [&'static str] = &["org", "prompt_source_code"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Float, Int, Json, Text, Time};
        [
            ("org", Text),
            ("prompt_source_code", Text),
            ("name", Text),
            ("source_type", Text),
            ("prompt_count", Int),
            ("sha256", Text),
            ("size_bytes", Int),
            ("ground_truth", Bool),
            ("ground_truth_sha256", Text),
            ("local_paths", Bool),
            ("words_total", Int),
            ("words_min", Int),
            ("words_max", Int),
            ("audio_s", Float),
            ("description", Text),
            ("sources", Json),
            ("created_at", Time),
            ("created_by", Text),
            ("position", Int),
        ]
        .map(|(name, kind)| Column::shown(name, kind))
        .into_iter()
        .chain(["visibility", "owner"].map(|name| Column::hidden(name, Text)))
        .collect()
    }
    fn key(&self) -> Self::Key {
        (self.org.clone(), self.prompt_source_code.clone())
    }
}

/// What was learnt of a source for a model, last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CalibrationRow {
    org: String,
    prompt_source_code: String,
    model_code: String,
    words_per_token: f64,
    overhead_tokens: f64,
    requests: u64,
    calibrated_at: Timestamp,
    position: i64,
    visibility: String,
    owner: String,
}

impl Row for CalibrationRow {
    type Key = (String, String, String);
    const TABLE: &'static str = "prompt_source_calibrations";
    const KEY: &'static [&'static str] = &["org", "prompt_source_code", "model_code"];

    fn columns() -> Vec<Column> {
        use Kind::{Float, Int, Text, Time};
        [
            ("org", Text),
            ("prompt_source_code", Text),
            ("model_code", Text),
            ("words_per_token", Float),
            ("overhead_tokens", Float),
            ("requests", Int),
        ]
        .map(|(name, kind)| Column::shown(name, kind))
        .into_iter()
        .chain([("calibrated_at", Time), ("position", Int)].map(|(name, kind)| Column::shown(name, kind)))
        .chain(["visibility", "owner"].map(|name| Column::hidden(name, Text)))
        .collect()
    }
    fn key(&self) -> Self::Key {
        (self.org.clone(), self.prompt_source_code.clone(), self.model_code.clone())
    }
}

/// Folds `prompt_source.created` and `prompt_source.calibrated`.
#[derive(Debug, Default)]
pub struct PromptSources {
    sources: Table<PromptSourceRow>,
    calibrations: Table<CalibrationRow>,
}

fn visibility_of(org: &str) -> String {
    if org == PLATFORM_ORG { "public" } else { "organization" }.to_owned()
}

impl Projection for PromptSources {
    fn name(&self) -> &'static str {
        "prompt_sources"
    }
    fn version(&self) -> i32 {
        2
    }
    fn interests(&self) -> &'static [&'static str] {
        &["prompt_source.created", "prompt_source.calibrated"]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![&mut self.sources, &mut self.calibrations]
    }
    fn wants(&mut self, _: &Recorded, _: &Event) {
        // Each event says everything about its row.
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let [org, code] = <[String; 2]>::try_from(recorded.stream.parts())
            .map_err(|_| FoldError(format!("{} is no prompt source", recorded.stream)))?;
        let (visibility, position) = (visibility_of(&org), recorded.position);
        match event {
            Event::PromptSourceCreated(created) => self.sources.put(
                PromptSourceRow {
                    org,
                    prompt_source_code: code,
                    name: created.name.clone(),
                    source_type: created.source_type.as_str().to_owned(),
                    prompt_count: created.rows,
                    sha256: created.sha256.clone(),
                    size_bytes: created.size,
                    ground_truth: created.ground_truth,
                    ground_truth_sha256: created.ground_truth_sha256.clone(),
                    local_paths: created.local_paths,
                    words_total: created.words.map(|words| words.total),
                    words_min: created.words.map(|words| words.min),
                    words_max: created.words.map(|words| words.max),
                    audio_s: created.audio_s,
                    description: created.description.clone(),
                    sources: created.sources.clone(),
                    created_at: recorded.recorded_at,
                    created_by: recorded.actor.id.clone(),
                    position,
                    visibility,
                    owner: String::new(),
                },
                position,
            ),
            Event::PromptSourceCalibrated(calibrated) => self.calibrations.put(
                CalibrationRow {
                    org,
                    prompt_source_code: code,
                    model_code: calibrated.model_code.clone(),
                    words_per_token: calibrated.words_per_token,
                    overhead_tokens: calibrated.overhead_tokens,
                    requests: calibrated.requests,
                    calibrated_at: recorded.recorded_at,
                    position,
                    visibility,
                    owner: String::new(),
                },
                position,
            ),
            _ => {}
        }
        Ok(())
    }
}
