//! What the leaderboard ranks: a scenario of a workload on a server, with the mean of its runs and their interval in each
//! category. Folded by [`super::results`]; ranked by [`crate::queries::leaderboard`], because who may see what, and which
//! filters are set, decides who stands where.
//!
//! Simulated runs are never mixed with real ones. Every figure is kept twice: without the runs whose results are
//! doubted, and with them.

use std::collections::BTreeMap;

use events::Timestamp;
use events::ranking::Interval;
use serde::{Deserialize, Serialize};

use super::access;
use super::result::ResultRow;
use super::setup::Setup;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// The categories; in each more is better.
pub const CATEGORIES: [Category; 4] = [
    Category { word: "throughput", metric: "output_tokens_per_second", unit: "tok/s" },
    Category { word: "cost_efficiency", metric: "output_tokens_per_usd", unit: "tok/USD" },
    Category { word: QUALITY, metric: "quality_score", unit: "" },
    Category { word: "sustainability", metric: "output_tokens_per_joule", unit: "tok/J" },
];

/// The category whose scores compare only where the questions, the prompts and the judge were the same.
pub const QUALITY: &str = "quality";

/// One category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Category {
    /// The word in the API.
    pub word: &'static str,
    /// The figure that is ranked by.
    pub metric: &'static str,
    /// Its unit.
    pub unit: &'static str,
}

impl Category {
    /// The column of its mean over runs; `doubted` says that flagged results count too.
    pub fn value_column(self, doubted: bool) -> String {
        format!("{}_{}", if doubted { "all" } else { "sound" }, self.metric)
    }

    /// The column of half its interval's width.
    pub fn half_column(self, doubted: bool) -> String {
        format!("{}_half", self.value_column(doubted))
    }

    /// The column of the number of runs behind it.
    pub fn runs_column(self, doubted: bool) -> String {
        format!("{}_runs", self.value_column(doubted))
    }
}

/// The figures of a scenario's runs as it is ranked by them: their mean, half their interval's width where there is more
/// than one, and how many they are.
pub fn standing(values: &[f64]) -> (Option<f64>, Option<f64>, usize) {
    let interval = Interval::of(values);
    let mean = interval.map(|i| i.mean).or_else(|| values.first().copied());
    (mean, interval.map(|i| i.half), values.len())
}

/// One run of the scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Run {
    job: String,
    recorded_at: Timestamp,
    doubted: bool,
    question_set: Option<String>,
    /// By category, in their order.
    figures: [Option<f64>; CATEGORIES.len()],
}

/// A scenario of a workload on a server, as `v_leaderboard_scenarios` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BoardRow {
    entry: String,
    setup: String,
    org: String,
    project_code: String,
    workload_code: String,
    scenario_code: String,
    #[serde(flatten)]
    measured: Setup,
    simulated: bool,
    /// What its quality was measured by, in its newest run that was.
    question_set: Option<String>,
    doubted_runs: i64,
    sound_job: Option<String>,
    sound_recorded_at: Option<Timestamp>,
    all_job: Option<String>,
    all_recorded_at: Option<Timestamp>,
    counted: BTreeMap<u32, Run>,
    position: i64,
    visibility: String,
    owner: String,
    #[serde(flatten)]
    means: BTreeMap<String, Option<f64>>,
}

/// The keys of a scenario's two rows: of its real and of its simulated runs.
pub(super) fn entry(place: [&str; 6], simulated: bool) -> String {
    // Control characters are in no code.
    format!("{}\u{1f}{simulated}", place.join("\u{1f}"))
}

fn place(result: &ResultRow) -> [&str; 6] {
    [
        &result.org,
        &result.project_code,
        &result.workload_code,
        result.setup.config_code.as_deref().unwrap_or_default(),
        result.setup.hostname.as_deref().unwrap_or_default(),
        &result.scenario_code,
    ]
}

fn run_of(result: &ResultRow) -> Run {
    Run {
        job: result.job.clone(),
        recorded_at: result.recorded_at,
        doubted: result.suspicious,
        question_set: result.question_set.clone(),
        figures: [
            result.figures.output_tokens_per_second,
            result.output_tokens_per_usd,
            result.quality_score,
            result.output_tokens_per_joule,
        ],
    }
}

impl BoardRow {
    /// A row without runs yet, for the scenario of a result.
    pub(super) fn new(result: &ResultRow) -> Self {
        let place = place(result);
        Self {
            entry: entry(place, result.figures.simulated),
            setup: entry([place[0], place[1], place[2], place[3], place[4], ""], result.figures.simulated),
            org: result.org.clone(),
            project_code: result.project_code.clone(),
            workload_code: result.workload_code.clone(),
            scenario_code: result.scenario_code.clone(),
            measured: result.setup.clone(),
            simulated: result.figures.simulated,
            question_set: None,
            doubted_runs: 0,
            sound_job: None,
            sound_recorded_at: None,
            all_job: None,
            all_recorded_at: None,
            counted: BTreeMap::new(),
            position: result.position,
            visibility: result.visibility.clone(),
            owner: result.owner.clone(),
            means: BTreeMap::new(),
        }
    }

    /// Whether a run's result is counted here as it stands now.
    pub(super) fn holds(&self, run: u32, result: Option<&ResultRow>) -> bool {
        self.counted.get(&run) == result.map(run_of).as_ref()
    }

    /// Counts a run's result, anew or no more.
    pub(super) fn count(&mut self, run: u32, result: Option<&ResultRow>, position: i64) {
        match result {
            Some(result) => {
                self.counted.insert(run, run_of(result));
                self.measured.gpu_name.clone_from(&result.setup.gpu_name);
                self.measured.gpu_count = result.setup.gpu_count;
            }
            None => {
                self.counted.remove(&run);
            }
        }
        self.position = position;
        self.question_set = self.counted.values().rev().find_map(|run| run.question_set.clone());
        self.doubted_runs = self.counted.values().filter(|run| run.doubted).count() as i64;
        for doubted in [false, true] {
            let runs: Vec<&Run> = self.counted.values().filter(|run| doubted || !run.doubted).collect();
            // The newest is the one with the highest number.
            let newest = runs.last().map(|run| (run.job.clone(), run.recorded_at));
            let (job, at) = newest.map_or((None, None), |(job, at)| (Some(job), Some(at)));
            if doubted {
                (self.all_job, self.all_recorded_at) = (job, at);
            } else {
                (self.sound_job, self.sound_recorded_at) = (job, at);
            }
            for (nth, category) in CATEGORIES.iter().enumerate() {
                // Scores of other questions are no repeats.
                let alike = |run: &&&Run| category.word != QUALITY || run.question_set == self.question_set;
                let values: Vec<f64> = runs.iter().filter(alike).filter_map(|run| run.figures[nth]).collect();
                let (value, half, number) = standing(&values);
                self.means.insert(category.value_column(doubted), value);
                self.means.insert(category.half_column(doubted), half);
                self.means.insert(category.runs_column(doubted), Some(number as f64));
            }
        }
    }
}

impl Row for BoardRow {
    type Key = String;
    const TABLE: &'static str = "leaderboard";
    const KEY: &'static [&'static str] = &["entry"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Float, Int, Json, Text, Time};
        let shown = |kind: Kind, names: &[&str]| -> Vec<Column> {
            names.iter().map(|name| Column::shown(name, kind)).collect()
        };
        let mut columns =
            shown(Text, &["entry", "setup", "org", "project_code", "workload_code", "scenario_code"]);
        columns.extend(Setup::columns());
        columns.extend(shown(Bool, &["simulated"]));
        columns.extend(shown(Text, &["question_set"]));
        columns.push(Column::shown("doubted_runs", Int));
        for which in ["sound", "all"] {
            columns.push(Column::shown(&format!("{which}_job"), Text));
            columns.push(Column::shown(&format!("{which}_recorded_at"), Time));
        }
        columns.push(Column::hidden("counted", Json));
        columns.push(Column::shown("position", Int));
        columns.extend(access::columns());
        for doubted in [false, true] {
            for category in CATEGORIES {
                columns.push(Column::shown(&category.value_column(doubted), Float));
                columns.push(Column::shown(&category.half_column(doubted), Float));
                columns.push(Column::shown(&category.runs_column(doubted), Float));
            }
        }
        columns
    }
    fn key(&self) -> Self::Key {
        self.entry.clone()
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
}
