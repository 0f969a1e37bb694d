//! A result: one row of `v_benchmark_results`.

use events::Timestamp;
use events::envelope::Recorded;
use events::external_figures::KyaiFigures;
use events::job::JobPhase;
use events::keys::ImportKey;
use events::tool_output::ToolOutputImported;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::access::{self, Rights};
use super::jobs::phase;
use super::layout::Layout;
use super::result_figures::{ResultFigures, ratio};
use super::result_rows::{ResultJobRow, ResultServerRow, window};
use super::setup::Setup;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// A result, as `v_benchmark_results` shows it. Old versions are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultRow {
    pub(super) org: String,
    pub(super) project_code: String,
    pub(super) workload_code: String,
    pub(super) run_number: u32,
    pub(super) scenario_code: String,
    pub(super) attempt: u32,
    pub(super) job: String,
    pub(super) run: String,
    #[serde(flatten)]
    pub(super) setup: Setup,
    pub(super) engine_args_set_code: Option<String>,
    pub(super) engine_args_set_version: Option<i64>,
    #[serde(flatten)]
    pub(super) layout: Layout,
    pub(super) num_rounds: Option<u32>,
    pub(super) num_images_batch: Option<u32>,
    pub(super) image_size: Option<String>,
    pub(super) image_detail: Option<String>,
    pub(super) prompt_source_code: Option<String>,
    pub(super) prompt_source_sha256: Option<String>,
    pub(super) status: String,
    pub(super) gpu_power_avg_w: Option<f64>,
    pub(super) energy_j: Option<f64>,
    pub(super) output_tokens_per_joule: Option<f64>,
    pub(super) cost_per_million_output_tokens_usd: Option<f64>,
    pub(super) output_tokens_per_usd: Option<f64>,
    pub(super) quality_score: Option<f64>,
    /// What a score of quality was measured by: scores of others do not compare.
    pub(super) question_set: Option<String>,
    pub(super) imported: bool,
    pub(super) flags: Vec<String>,
    pub(super) suspicious: bool,
    pub(super) recorded_at: Timestamp,
    pub(super) finished_at: Option<Timestamp>,
    /// When the load ended; null where the tool does not tell, and energy is then not known.
    pub(super) window_ended_at: Option<Timestamp>,
    /// The event that holds the figures, and its hash in the chain: what a copy of the row is verified by.
    pub(super) output_position: i64,
    pub(super) output_hash: String,
    pub(super) position: i64,
    pub(super) valid_from: i64,
    pub(super) valid_to: Option<i64>,
    /// The kind that it is counted as, see [`super::counts`].
    pub(super) kind_no: i64,
    pub(super) visibility: String,
    pub(super) owner: String,
    #[serde(flatten)]
    pub(super) figures: ResultFigures,
}

impl ResultRow {
    /// The result of a job's attempt.
    pub(super) fn new(
        job: &ResultJobRow,
        server: Option<&ResultServerRow>,
        attempt: u32,
        figures: ResultFigures,
        window_ended_at: Option<Timestamp>,
        recorded: &Recorded,
    ) -> Self {
        let spec = &job.spec;
        let cost_per_second = server.and_then(|s| s.cost_per_hour_usd).map(|usd| usd / 3600.0);
        let tokens = figures.completion_tokens_total.map(|t| t as f64);
        let over_window = ratio(cost_per_second.zip(figures.window_s).map(|(c, s)| c * s), tokens);
        // Tools that tell neither their window nor their tokens tell the rate.
        let cost = over_window.or_else(|| ratio(cost_per_second, figures.output_tokens_per_second));
        Self {
            org: job.org.clone(),
            project_code: job.project_code.clone(),
            workload_code: job.workload_code.clone(),
            run_number: job.run_number,
            scenario_code: job.scenario_code.clone(),
            attempt,
            job: job.job.clone(),
            run: job.run.clone(),
            setup: Setup::of_job(job, server),
            engine_args_set_code: spec.engine_args_set_code.clone(),
            engine_args_set_version: spec.engine_args_set_version,
            layout: spec.layout.on(server.and_then(|s| s.gpu_count)),
            num_rounds: spec.num_rounds,
            num_images_batch: spec.num_images_batch,
            image_size: spec.image_size.clone(),
            image_detail: spec.image_detail.clone(),
            prompt_source_code: spec.prompt_source_code.clone(),
            prompt_source_sha256: spec.prompt_source_sha256.clone(),
            status: phase(&job.phase).status().to_owned(),
            gpu_power_avg_w: None,
            energy_j: None,
            output_tokens_per_joule: None,
            cost_per_million_output_tokens_usd: cost.map(|usd| usd * 1e6),
            output_tokens_per_usd: ratio(Some(1.0), cost),
            quality_score: figures.kyai_score(),
            question_set: None,
            imported: false,
            flags: job.flags.clone(),
            suspicious: !job.flags.is_empty(),
            recorded_at: recorded.recorded_at,
            finished_at: None,
            window_ended_at,
            output_position: recorded.position,
            output_hash: hex::encode(recorded.hash),
            position: recorded.position,
            valid_from: recorded.position,
            valid_to: None,
            kind_no: 0,
            visibility: job.visibility.clone(),
            owner: job.owner.clone(),
            figures,
        }
    }

    /// A result that was measured elsewhere.
    pub(super) fn of_import(
        key: &ImportKey,
        output: &ToolOutputImported,
        rights: Rights,
        recorded: &Recorded,
    ) -> Self {
        let gpu_count = output.gpu_count.map(i64::from);
        let figures =
            ResultFigures::of_foreign(&output.figures, output.inferencex.as_ref(), None, gpu_count, false);
        let cost_per_second = output.cost_per_hour_usd.map(|usd| usd / 3600.0);
        // What a token costs follows from the rate alone; the window may not be in the file.
        let cost = ratio(cost_per_second, figures.output_tokens_per_second);
        Self {
            org: key.org.clone(),
            project_code: key.project.clone(),
            workload_code: key.import.clone(),
            run_number: key.number,
            scenario_code: key.scenario.clone(),
            attempt: 0,
            job: recorded.stream.to_string(),
            run: recorded.stream.to_string(),
            setup: Setup::of_import(output),
            engine_args_set_code: None,
            engine_args_set_version: None,
            layout: Layout::of_import(output),
            num_rounds: None,
            num_images_batch: None,
            image_size: None,
            image_detail: None,
            prompt_source_code: None,
            prompt_source_sha256: None,
            status: JobPhase::Completed.status().to_owned(),
            gpu_power_avg_w: None,
            energy_j: None,
            output_tokens_per_joule: None,
            cost_per_million_output_tokens_usd: cost.map(|usd| usd * 1e6),
            output_tokens_per_usd: ratio(Some(1.0), cost),
            quality_score: None,
            question_set: None,
            imported: true,
            flags: Vec::new(),
            suspicious: false,
            recorded_at: recorded.recorded_at,
            finished_at: None,
            window_ended_at: output.figures.window_ended_at,
            output_position: recorded.position,
            output_hash: hex::encode(recorded.hash),
            position: recorded.position,
            valid_from: recorded.position,
            valid_to: None,
            kind_no: 0,
            visibility: rights.visibility,
            owner: rights.owner,
            figures,
        }
    }

    /// Cites the source of the inputs, where the workload named none.
    pub(super) fn cite(&mut self, source: &str, sha256: Option<&str>) {
        if self.prompt_source_code.is_none() {
            self.prompt_source_code = Some(source.to_owned());
            self.prompt_source_sha256 = sha256.map(str::to_owned);
        }
    }

    /// The measurement window, microseconds.
    pub(super) fn window(&self) -> Option<(i64, i64)> {
        window(self.figures.window_s, self.window_ended_at?)
    }

    pub(super) fn set_energy(&mut self, joules: Option<f64>) {
        self.energy_j = joules;
        self.gpu_power_avg_w = ratio(joules, self.figures.window_s);
        let tokens = self.figures.completion_tokens_total.map(|t| t as f64);
        self.output_tokens_per_joule = ratio(tokens, joules);
    }
}

/// The questions, both prompts and the judge, in one word: the questions' code, and a hash of what they all were.
pub(super) fn question_set(kyai: &KyaiFigures) -> String {
    let parts =
        [&kyai.dataset_sha256, &kyai.generation_prompt_sha256, &kyai.judge_prompt_sha256, &kyai.judge];
    let all = parts.map(String::as_str).join("\n");
    format!("{}-{}", kyai.dataset, &hex::encode(Sha256::digest(all))[..8])
}

impl Row for ResultRow {
    type Key = String;
    const TABLE: &'static str = "benchmark_results";
    const KEY: &'static [&'static str] = &["job"];
    // The figures that the reporting page sorts and bounds, with what says who sees a row and of which kind it is: what a
    // bound leaves is then counted without a look at the rows. Read either way. The last is for kinds with bounds.
    const INDEXES: &'static [&'static str] = &[
        "finished_at include org, visibility, owner, kind_no",
        "recorded_at",
        "output_tokens_per_second include org, visibility, owner, kind_no",
        "output_tokens_per_second_per_gpu include org, visibility, owner, kind_no",
        "requests_per_second include org, visibility, owner, kind_no",
        "total_tokens_per_second include org, visibility, owner, kind_no",
        "interactivity_tps include org, visibility, owner, kind_no",
        "ttft_p50_ms include org, visibility, owner, kind_no",
        "ttft_p90_ms include org, visibility, owner, kind_no",
        "ttft_p95_ms include org, visibility, owner, kind_no",
        "ttft_p99_ms include org, visibility, owner, kind_no",
        "tpot_avg_ms include org, visibility, owner, kind_no",
        "tpot_p50_ms include org, visibility, owner, kind_no",
        "tpot_p99_ms include org, visibility, owner, kind_no",
        "response_time_p50_ms include org, visibility, owner, kind_no",
        "response_time_p99_ms include org, visibility, owner, kind_no",
        "requests_succeeded include org, visibility, owner, kind_no",
        "requests_failed include org, visibility, owner, kind_no",
        "error_rate_pct include org, visibility, owner, kind_no",
        "window_s include org, visibility, owner, kind_no",
        "gpu_power_avg_w include org, visibility, owner, kind_no",
        "output_tokens_per_joule include org, visibility, owner, kind_no",
        "cost_per_million_output_tokens_usd include org, visibility, owner, kind_no",
        "output_tokens_per_usd include org, visibility, owner, kind_no",
        "quality_score include org, visibility, owner, kind_no",
        "workload_code, run_number",
        "kind_no include org, visibility, owner, output_tokens_per_second, requests_per_second, ttft_p50_ms, \
         ttft_p99_ms, tpot_p50_ms, response_time_p99_ms, output_tokens_per_joule, \
         cost_per_million_output_tokens_usd, finished_at",
    ];
    const VERSIONED: bool = true;

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Float, Int, Json, Text, Time};
        let of =
            |kind: Kind, names: &[&str]| names.iter().map(|n| Column::shown(n, kind)).collect::<Vec<_>>();
        let mut columns = of(Text, &["org", "project_code", "workload_code"]);
        columns.extend(of(Int, &["run_number"]));
        columns.extend(of(Text, &["scenario_code"]));
        columns.extend(of(Int, &["attempt"]));
        columns.extend(of(Text, &["job", "run"]));
        columns.extend(Setup::columns());
        columns.extend(of(Text, &["engine_args_set_code"]));
        columns.extend(of(Int, &["engine_args_set_version"]));
        columns.extend(Layout::columns());
        columns.extend(of(Int, &["num_rounds", "num_images_batch"]));
        columns
            .extend(of(Text, &["image_size", "image_detail", "prompt_source_code", "prompt_source_sha256"]));
        columns.extend(of(Text, &["status"]));
        columns.extend(of(
            Float,
            &[
                "gpu_power_avg_w",
                "energy_j",
                "output_tokens_per_joule",
                "cost_per_million_output_tokens_usd",
                "output_tokens_per_usd",
                "quality_score",
            ],
        ));
        columns.extend(of(Text, &["question_set"]));
        columns.extend(of(Bool, &["imported"]));
        columns.extend(of(Json, &["flags"]));
        columns.extend(of(Bool, &["suspicious"]));
        columns.extend(of(Time, &["recorded_at", "finished_at", "window_ended_at"]));
        columns.extend(of(Int, &["output_position"]));
        columns.extend(of(Text, &["output_hash"]));
        columns.extend(of(Int, &["position", "valid_from", "valid_to"]));
        columns.push(Column::hidden("kind_no", Int));
        columns.extend(access::columns());
        columns.extend(ResultFigures::columns());
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
