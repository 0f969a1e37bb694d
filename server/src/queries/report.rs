//! `GET /api/report/<run>`: everything about a run in one piece, with the proof of every event behind its figures.

use std::collections::BTreeMap;

use events::api::{ChainLink, EventView};
use events::keys::RunKey;
use events::merkle::Proof;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::history::{nothing_at, of_result, of_stream};
use super::view::{Source, rows};
use crate::api::Failure;
use crate::auth::Visibility;
use crate::live::Access;

/// What the report says it is.
pub const FORMAT: &str = "benchtrail.report.v1";

/// The most jobs of one report: more are read from the views.
const MOST_JOBS: usize = 500;

/// A run with all its jobs, where every figure comes from, and the proofs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// [`FORMAT`].
    pub format: &'static str,
    /// The control plane's version.
    pub version: &'static str,
    /// The address it was read from.
    pub source: String,
    /// The run's stream key.
    pub run_key: String,
    /// The project, as `v_projects` shows it.
    pub project: Value,
    /// The workload, as `v_workloads` shows it.
    pub workload: Value,
    /// The run, as `v_runs` shows it.
    pub run: Value,
    /// The server, as `v_servers` shows it; null where the reader may not see it.
    pub server: Value,
    /// The jobs in the order in which they were executed.
    pub jobs: Vec<JobReport>,
    /// The events of the run's own stream.
    pub events: Vec<EventView>,
    /// The proof of every event in the jobs' chains, in order of position: the event, its path in the Merkle tree, and the
    /// signed checkpoint.
    pub proofs: Vec<Proof>,
}

/// A job of a report.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobReport {
    /// The job's stream key.
    pub job_key: String,
    /// The job with its command lines, as `v_jobs` shows it.
    pub job: Value,
    /// Its result, as `v_benchmark_results` shows it; null where it has none.
    pub result: Value,
    /// The tool's summary as it was recorded, every figure; null where there is none.
    pub summary: Value,
    /// What its telemetry comes to, as `v_telemetry_job_summary` shows it; null where there is none.
    pub telemetry: Value,
    /// The same a GPU.
    pub gpus: Vec<Value>,
    /// The same for TPUs; null where there are none.
    pub tpus: Value,
    /// Every doubt about its result, cleared ones included.
    pub flags: Vec<Value>,
    /// Its files, by hash.
    pub artifacts: Vec<Value>,
    /// Project → workload → scenario → run → job → invocation → metrics, each with its position and hash.
    pub chain: Vec<ChainLink>,
}

/// The first row of a view that has these values, or null.
async fn one(
    source: Source<'_>,
    visibility: &Visibility,
    view: &str,
    filters: &[(&str, &str)],
) -> Result<Value, Failure> {
    let found = rows(source, visibility, view, filters).await?;
    Ok(found.into_iter().next().unwrap_or(Value::Null))
}

/// Puts the report of a run together.
///
/// # Errors
/// There is no such run, the reader may not see it, or something does not answer.
pub async fn report(
    source: Source<'_>,
    access: &Access,
    visibility: &Visibility,
    public_url: &str,
    key: &RunKey,
) -> Result<Report, Failure> {
    let stream = key.stream().to_string();
    let run = one(source, visibility, "v_runs", &[("run", &stream)]).await?;
    if run.is_null() {
        return Err(nothing_at(&stream));
    }
    let project_filters = [("org", key.org.as_str()), ("project_code", key.project.as_str())];
    let project = one(source, visibility, "v_projects", &project_filters).await?;
    let of_workload = [&project_filters[..], &[("workload_code", key.workload.as_str())]].concat();
    let workload = one(source, visibility, "v_workloads", &of_workload).await?;
    let text = |name: &str| run[name].as_str().unwrap_or_default().to_owned();
    let (config, hostname) = (text("config_code"), text("hostname"));
    let of_server =
        [("org", key.org.as_str()), ("config_code", config.as_str()), ("hostname", hostname.as_str())];
    let server = one(source, visibility, "v_servers", &of_server).await?;

    let mut found = rows(source, visibility, "v_jobs", &[("run", &stream)]).await?;
    if found.len() > MOST_JOBS {
        return Err(Failure::unprocessable(
            "too_many_rows",
            format!("the run has {} jobs, more than {MOST_JOBS}", found.len()),
            "read v_jobs and v_benchmark_results instead",
        ));
    }
    found.sort_by_key(|job| job["ordinal"].as_i64());
    let mut by_job: BTreeMap<&str, BTreeMap<String, Vec<Value>>> = BTreeMap::new();
    for view in [
        "v_benchmark_results",
        "v_telemetry_job_summary",
        "v_telemetry_per_gpu_summary",
        "v_tpu_telemetry_job_summary",
        "v_quality_flags",
        "v_job_artifacts",
    ] {
        let run_number = key.run.to_string();
        let filters = [
            &project_filters[..],
            &[("workload_code", key.workload.as_str()), ("run_number", run_number.as_str())],
        ]
        .concat();
        for row in rows(source, visibility, view, &filters).await? {
            let job = row["job"].as_str().unwrap_or_default().to_owned();
            by_job.entry(view).or_default().entry(job).or_default().push(row);
        }
    }
    let mut take =
        |view: &str, job: &str| by_job.get_mut(view).and_then(|rows| rows.remove(job)).unwrap_or_default();
    let first = |rows: Vec<Value>| rows.into_iter().next().unwrap_or(Value::Null);

    let (mut jobs, mut positions) = (Vec::new(), BTreeMap::new());
    for job in found {
        let job_key = job["job"].as_str().unwrap_or_default().to_owned();
        // Reads the log: judged by its own rule of who may see what.
        let history = of_result(source.log, access, visibility, &job_key).await?;
        positions.extend(history.chain.iter().map(|link| (link.position, ())));
        let metrics = history.chain.iter().find(|link| link.link == "metrics").map(|link| link.position);
        let summary = history
            .events
            .iter()
            .find(|event| Some(event.position) == metrics)
            .map_or(Value::Null, |event| event.payload["summary"].clone());
        jobs.push(JobReport {
            result: first(take("v_benchmark_results", &job_key)),
            summary,
            telemetry: first(take("v_telemetry_job_summary", &job_key)),
            gpus: take("v_telemetry_per_gpu_summary", &job_key),
            tpus: first(take("v_tpu_telemetry_job_summary", &job_key)),
            flags: take("v_quality_flags", &job_key),
            artifacts: take("v_job_artifacts", &job_key),
            chain: history.chain,
            job,
            job_key,
        });
    }
    let mut proofs = Vec::new();
    for position in positions.into_keys() {
        proofs.push(source.log.proof(position).await?);
    }
    Ok(Report {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION"),
        source: public_url.trim_end_matches('/').to_owned(),
        events: of_stream(source.log, access, visibility, &stream, 0, 1000).await?.events,
        run_key: stream,
        project,
        workload,
        run,
        server,
        jobs,
        proofs,
    })
}

/// A run's key, with or without the word `run/` before it.
///
/// # Errors
/// It is no run's key.
pub fn run_key(text: &str) -> Result<RunKey, Failure> {
    let text = text.trim_matches('/');
    let whole = if text.starts_with("run/") { text.to_owned() } else { format!("run/{text}") };
    let parsed = whole.parse().ok().and_then(|stream| RunKey::from_stream(&stream).ok());
    parsed.ok_or_else(|| {
        let shown: String = text.chars().take(200).collect();
        let hint = "<org>/<project_code>/<workload_code>/<run_number>, as in acme/p1/w1/3";
        Failure::bad_request("bad_key", format!("{shown:?} is no run"), hint)
    })
}
