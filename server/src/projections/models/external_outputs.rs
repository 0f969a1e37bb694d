//! What third-party tools measured: `v_inferencex_outputs`, `v_genai_perf_outputs`, `v_kv_cache_offload_outputs`,
//! `v_kyai_outputs`. Folded by [`super::results`], imported results of InferenceX included.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::marker::PhantomData;

use events::Timestamp;
use events::envelope::Recorded;
use events::external_columns;
use events::foreign::{ForeignFigures, InferencexDimensions, PerGpu};
use events::keys::ImportKey;
use events::tool_output::{ExternalOutputRecorded, InferencexOutput, ToolOutputImported};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::access::{self, Rights};
use super::result_rows::{ResultJobRow, ResultServerRow};
use super::setup::Setup;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// A third-party tool, and where its outputs are kept.
pub trait ExternalTool: Clone + Debug + Default + Send + Sync + 'static {
    /// The table.
    const TABLE: &'static str;
    /// Its own columns, after those that place the row.
    fn columns() -> Vec<Column>;
}

/// `inferencex_outputs`.
#[derive(Debug, Clone, Default)]
pub struct Inferencex;
/// `genai_perf_outputs`.
#[derive(Debug, Clone, Default)]
pub struct GenaiPerf;
/// `kv_cache_offload_outputs`.
#[derive(Debug, Clone, Default)]
pub struct KvCacheOffload;
/// `kyai_outputs`.
#[derive(Debug, Clone, Default)]
pub struct Kyai;

fn floats(columns: &[external_columns::Figure]) -> Vec<Column> {
    columns.iter().map(|(name, _)| Column::shown(name, Kind::Float)).collect()
}

impl ExternalTool for Inferencex {
    const TABLE: &'static str = "inferencex_outputs";
    fn columns() -> Vec<Column> {
        let mut columns =
            floats(&external_columns::inferencex(&ForeignFigures::default(), &PerGpu::default()));
        columns.extend(DIMENSIONS.iter().map(|(name, kind)| Column::shown(name, *kind)));
        columns
    }
}

impl ExternalTool for GenaiPerf {
    const TABLE: &'static str = "genai_perf_outputs";
    fn columns() -> Vec<Column> {
        floats(&external_columns::genai_perf(&ForeignFigures::default()))
    }
}

impl ExternalTool for KvCacheOffload {
    const TABLE: &'static str = "kv_cache_offload_outputs";
    fn columns() -> Vec<Column> {
        let mut columns = floats(&external_columns::serving(&ForeignFigures::default()));
        columns.extend(floats(&external_columns::kv_cache(&Default::default())));
        columns.extend(["tier", "dataset"].map(|name| Column::shown(name, Kind::Text)));
        columns.push(Column::shown("num_rounds", Kind::Int));
        columns
    }
}

impl ExternalTool for Kyai {
    const TABLE: &'static str = "kyai_outputs";
    fn columns() -> Vec<Column> {
        let mut columns = vec![Column::shown("kyai_score", Kind::Float)];
        columns.extend(["questions", "scored", "errors"].map(|name| Column::shown(name, Kind::Int)));
        columns.extend(
            ["dataset", "dataset_sha256", "generation_prompt_sha256", "judge_prompt_sha256", "judge"]
                .map(|name| Column::shown(name, Kind::Text)),
        );
        columns.extend(
            ["window_s", "response_time_avg_ms", "response_time_p50_ms", "response_time_p95_ms"]
                .map(|name| Column::shown(name, Kind::Float)),
        );
        columns
    }
}

/// What InferenceX records of a run's configuration.
const DIMENSIONS: &[(&str, Kind)] = &[
    ("ix_hardware", Kind::Text),
    ("ix_framework", Kind::Text),
    ("ix_precision", Kind::Text),
    ("ix_spec_decoding", Kind::Text),
    ("ix_tp", Kind::Int),
    ("ix_pp", Kind::Int),
    ("ix_ep", Kind::Int),
    ("ix_dp_attention", Kind::Bool),
    ("ix_disaggregated", Kind::Bool),
    ("ix_multinode", Kind::Bool),
    ("ix_image", Kind::Text),
    ("ix_model_id", Kind::Text),
    ("ix_gpu_count", Kind::Int),
    ("ix_prefill_gpu_count", Kind::Int),
    ("ix_decode_gpu_count", Kind::Int),
    ("ix_prefill_tp", Kind::Int),
    ("ix_prefill_ep", Kind::Int),
    ("ix_decode_tp", Kind::Int),
    ("ix_decode_ep", Kind::Int),
    ("ix_prefill_workers", Kind::Int),
    ("ix_decode_workers", Kind::Int),
    ("ix_prefill_dp_attention", Kind::Bool),
    ("ix_decode_dp_attention", Kind::Bool),
];

fn dimensions(d: &InferencexDimensions, model_id: &Option<String>) -> [(&'static str, Value); 23] {
    [
        ("ix_hardware", json!(d.hardware)),
        ("ix_framework", json!(d.framework)),
        ("ix_precision", json!(d.precision)),
        ("ix_spec_decoding", json!(d.spec_decoding)),
        ("ix_tp", json!(d.tp)),
        ("ix_pp", json!(d.pp)),
        ("ix_ep", json!(d.ep)),
        ("ix_dp_attention", json!(d.dp_attention)),
        ("ix_disaggregated", json!(d.disaggregated)),
        ("ix_multinode", json!(d.multinode)),
        ("ix_image", json!(d.image)),
        ("ix_model_id", json!(model_id)),
        ("ix_gpu_count", json!(d.gpu_count)),
        ("ix_prefill_gpu_count", json!(d.prefill_gpu_count)),
        ("ix_decode_gpu_count", json!(d.decode_gpu_count)),
        ("ix_prefill_tp", json!(d.prefill_tp)),
        ("ix_prefill_ep", json!(d.prefill_ep)),
        ("ix_decode_tp", json!(d.decode_tp)),
        ("ix_decode_ep", json!(d.decode_ep)),
        ("ix_prefill_workers", json!(d.prefill_workers)),
        ("ix_decode_workers", json!(d.decode_workers)),
        ("ix_prefill_dp_attention", json!(d.prefill_dp_attention)),
        ("ix_decode_dp_attention", json!(d.decode_dp_attention)),
    ]
}

/// What a row says beside where it belongs.
type Own = BTreeMap<String, Value>;

fn numbers(columns: Vec<external_columns::Figure>) -> impl Iterator<Item = (String, Value)> {
    columns.into_iter().map(|(name, value)| (name, json!(value)))
}

/// The columns of InferenceX.
pub(super) fn of_inferencex(
    figures: &ForeignFigures,
    output: &InferencexOutput,
    model: &Option<String>,
) -> Own {
    let named = dimensions(&output.dimensions, model).map(|(name, value)| (name.to_owned(), value));
    numbers(external_columns::inferencex(figures, &output.per_gpu)).chain(named).collect()
}

/// The columns of GenAI-Perf.
pub(super) fn of_genai_perf(figures: &ForeignFigures) -> Own {
    numbers(external_columns::genai_perf(figures)).collect()
}

/// The columns of KV cache offload.
pub(super) fn of_kv_cache(output: &ExternalOutputRecorded, rounds: Option<u32>) -> Own {
    let cache = output.kv_cache.clone().unwrap_or_default();
    let words = [
        ("tier".to_owned(), json!(cache.tier)),
        ("dataset".to_owned(), json!(cache.dataset)),
        ("num_rounds".to_owned(), json!(rounds)),
    ];
    numbers(external_columns::serving(&output.figures))
        .chain(numbers(external_columns::kv_cache(&cache)))
        .chain(words)
        .collect()
}

/// The columns of KYAI.
pub(super) fn of_kyai(output: &ExternalOutputRecorded) -> Own {
    let kyai = output.kyai.clone().unwrap_or_default();
    let latency = output.figures.response_time_ms.clone().unwrap_or_default();
    [
        ("kyai_score", json!(kyai.score)),
        ("questions", json!(kyai.questions)),
        ("scored", json!(kyai.scored)),
        ("errors", json!(kyai.errors)),
        ("dataset", json!(kyai.dataset)),
        ("dataset_sha256", json!(kyai.dataset_sha256)),
        ("generation_prompt_sha256", json!(kyai.generation_prompt_sha256)),
        ("judge_prompt_sha256", json!(kyai.judge_prompt_sha256)),
        ("judge", json!(kyai.judge)),
        ("window_s", json!(output.figures.window_s)),
        ("response_time_avg_ms", json!(latency.avg)),
        ("response_time_p50_ms", json!(latency.p50)),
        ("response_time_p95_ms", json!(latency.p95)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// One result of a third-party tool. Old versions are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ExternalRow<T: ExternalTool> {
    org: String,
    project_code: String,
    workload_code: String,
    run_number: u32,
    scenario_code: String,
    job: String,
    attempt: Option<u32>,
    #[serde(flatten)]
    setup: Setup,
    tool_version: Option<String>,
    tool_argv: Option<Vec<String>>,
    result_sha256: String,
    imported: bool,
    simulated: bool,
    recorded_at: Timestamp,
    output_position: i64,
    output_hash: String,
    position: i64,
    valid_from: i64,
    valid_to: Option<i64>,
    visibility: String,
    owner: String,
    #[serde(flatten)]
    own: Own,
    #[serde(skip)]
    tool: PhantomData<T>,
}

impl<T: ExternalTool> ExternalRow<T> {
    pub(super) fn of_job(
        job: &ResultJobRow,
        server: Option<&ResultServerRow>,
        output: &ExternalOutputRecorded,
        simulated: bool,
        own: Own,
        recorded: &Recorded,
    ) -> Self {
        Self {
            org: job.org.clone(),
            project_code: job.project_code.clone(),
            workload_code: job.workload_code.clone(),
            run_number: job.run_number,
            scenario_code: job.scenario_code.clone(),
            job: job.job.clone(),
            attempt: Some(output.attempt),
            setup: Setup::of_job(job, server),
            tool_version: Some(output.invocation.tool_version.clone()),
            tool_argv: Some(output.invocation.argv.clone()),
            result_sha256: output.invocation.summary_sha256.clone(),
            imported: false,
            simulated,
            recorded_at: recorded.recorded_at,
            output_position: recorded.position,
            output_hash: hex::encode(recorded.hash),
            position: recorded.position,
            valid_from: recorded.position,
            valid_to: None,
            visibility: job.visibility.clone(),
            owner: job.owner.clone(),
            own,
            tool: PhantomData,
        }
    }

    pub(super) fn of_import(
        key: ImportKey,
        output: &ToolOutputImported,
        own: Own,
        rights: Rights,
        recorded: &Recorded,
    ) -> Self {
        Self {
            job: recorded.stream.to_string(),
            org: key.org,
            project_code: key.project,
            workload_code: key.import,
            run_number: key.number,
            scenario_code: key.scenario,
            attempt: None,
            setup: Setup::of_import(output),
            tool_version: output.load.tool_version.clone(),
            tool_argv: None,
            result_sha256: output.file_sha256.clone(),
            imported: true,
            simulated: output.figures.simulated,
            recorded_at: recorded.recorded_at,
            output_position: recorded.position,
            output_hash: hex::encode(recorded.hash),
            position: recorded.position,
            valid_from: recorded.position,
            valid_to: None,
            visibility: rights.visibility,
            owner: rights.owner,
            own,
            tool: PhantomData,
        }
    }
}

impl<T: ExternalTool> Row for ExternalRow<T> {
    type Key = String;
    const TABLE: &'static str = T::TABLE;
    const KEY: &'static [&'static str] = &["job"];
    const VERSIONED: bool = true;

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Json, Text, Time};
        let mut columns = access::job_columns();
        columns.extend([Column::shown("attempt", Int)]);
        columns.extend(Setup::columns());
        columns.extend([
            Column::shown("tool_version", Text),
            Column::shown("tool_argv", Json),
            Column::shown("result_sha256", Text),
            Column::shown("imported", Bool),
            Column::shown("simulated", Bool),
            Column::shown("recorded_at", Time),
            Column::shown("output_position", Int),
            Column::shown("output_hash", Text),
            Column::shown("position", Int),
            Column::shown("valid_from", Int),
            Column::shown("valid_to", Int),
        ]);
        columns.extend(access::columns());
        columns.extend(T::columns());
        columns
    }
    fn key(&self) -> Self::Key {
        self.job.clone()
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
    fn validity(&mut self) -> Option<(&mut i64, &mut Option<i64>)> {
        Some((&mut self.valid_from, &mut self.valid_to))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What a row holds is what its table has: one of them alone would not be written or stay empty.
    fn same<T: ExternalTool>(own: &Own) {
        let columns: BTreeSet<String> = T::columns().into_iter().map(|column| column.name).collect();
        assert_eq!(columns, own.keys().cloned().collect::<BTreeSet<_>>(), "{}", T::TABLE);
    }

    #[test]
    fn every_own_column_is_filled() {
        let golden = include_str!("../../../../events/tests/golden/tool_output.external.v1.json");
        let output: ExternalOutputRecorded = serde_json::from_str(golden).unwrap();
        let inferencex = output.inferencex.clone().unwrap();
        same::<Inferencex>(&of_inferencex(&output.figures, &inferencex, &output.load.model_id));
        same::<GenaiPerf>(&of_genai_perf(&output.figures));
        same::<KvCacheOffload>(&of_kv_cache(&output, Some(25)));
        same::<Kyai>(&of_kyai(&output));
    }
}
