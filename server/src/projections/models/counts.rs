//! How many results and jobs there are of each kind: what counts are answered by where the filters ask for nothing finer,
//! however many there are. Folded by [`super::results`] and [`super::runs`].

use std::fmt::Debug;
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::access;
use super::jobs::JobRow;
use super::result::ResultRow;
use super::setup::Setup;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// What is counted, and where its counts are kept.
pub trait Counted: Clone + Debug + Default + PartialEq + Send + Sync + 'static {
    /// The table.
    const TABLE: &'static str;
}

/// Results.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OfResults;
/// Jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OfJobs;

impl Counted for OfResults {
    const TABLE: &'static str = "result_counts";
}
impl Counted for OfJobs {
    const TABLE: &'static str = "job_counts";
}

/// How many are alike in all of these columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct CountRow<C: Counted> {
    /// All the other columns in one text.
    kind: String,
    /// The same in a number, which rows of what is counted carry.
    pub(super) kind_no: i64,
    org: String,
    project_code: String,
    scenario_code: String,
    #[serde(flatten)]
    setup: Setup,
    status: String,
    simulated: Option<bool>,
    imported: bool,
    suspicious: bool,
    n: i64,
    visibility: String,
    owner: String,
    #[serde(skip)]
    counted: PhantomData<C>,
}

impl<C: Counted> CountRow<C> {
    /// With its kind in one text.
    fn named(mut self) -> Self {
        self.kind = serde_json::json!([
            self.org,
            self.project_code,
            self.scenario_code,
            self.setup,
            self.status,
            self.simulated,
            self.imported,
            self.suspicious,
        ])
        .to_string();
        let digest = Sha256::digest(self.kind.as_bytes());
        self.kind_no = digest.iter().take(8).fold(0, |number, byte| number << 8 | i64::from(*byte));
        self
    }
}

impl CountRow<OfResults> {
    /// The kind of a result; none of them is counted yet.
    pub(super) fn of(result: &ResultRow) -> Self {
        Self {
            kind: String::new(),
            kind_no: 0,
            org: result.org.clone(),
            project_code: result.project_code.clone(),
            scenario_code: result.scenario_code.clone(),
            setup: result.setup.clone(),
            status: result.status.clone(),
            simulated: Some(result.figures.simulated),
            imported: result.imported,
            suspicious: result.suspicious,
            n: 0,
            visibility: result.visibility.clone(),
            owner: result.owner.clone(),
            counted: PhantomData,
        }
        .named()
    }
}

impl CountRow<OfJobs> {
    /// The kind of a job with the status that it has or had; none of them is counted yet.
    pub(super) fn of(job: &JobRow, (status, simulated): (String, Option<bool>)) -> Self {
        Self {
            kind: String::new(),
            kind_no: 0,
            org: job.org.clone(),
            project_code: job.project_code.clone(),
            scenario_code: job.scenario_code.clone(),
            setup: Setup {
                model_code: job.model_code.clone(),
                framework_code: Some(job.framework_code.clone()),
                framework_version: Some(job.framework_version.clone()),
                quantization: job.quantization.clone(),
                tool_code: job.tool_code.clone(),
                config_code: Some(job.config_code.clone()),
                hostname: Some(job.hostname.clone()),
                // Of the server, and no columns of a job.
                gpu_name: None,
                gpu_count: None,
                concurrency: Some(job.concurrency),
                input_sequence_length: job.input_sequence_length,
                output_sequence_length: job.output_sequence_length,
                streaming: job.streaming,
            },
            status,
            simulated,
            imported: false,
            suspicious: false,
            n: 0,
            visibility: job.visibility.clone(),
            owner: job.owner.clone(),
            counted: PhantomData,
        }
        .named()
    }
}

impl<C: Counted> Row for CountRow<C> {
    type Key = String;
    const TABLE: &'static str = C::TABLE;
    const KEY: &'static [&'static str] = &["kind"];
    const TALLY: Option<&'static str> = Some("n");

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Text};
        let shown = |kind: Kind, names: &[&str]| -> Vec<Column> {
            names.iter().map(|name| Column::shown(name, kind)).collect()
        };
        let mut columns = vec![Column::hidden("kind", Text), Column::shown("kind_no", Int)];
        columns.extend(shown(Text, &["org", "project_code", "scenario_code"]));
        columns.extend(Setup::columns());
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
