//! Runs, their jobs and the doubts about these: `v_runs`, `v_jobs`, `v_quality_flags`.

use std::collections::BTreeMap;

use events::envelope::Recorded;
use events::job::JobPhase;
use events::keys::{JobKey, RunKey};
use events::quality::{QualityCleared, QualityFlagged};
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};

use super::access::{self, rights_table};
use super::counts::{CountRow, OfJobs};
use super::jobs::{JobRow, job_of, phase};
use super::quality_flags::FlagRow;
use crate::projections::table::{Access, Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

rights_table!(RunRights, "run_rights");

/// A run, as `v_runs` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRow {
    org: String,
    project_code: String,
    workload_code: String,
    run_number: u32,
    run: String,
    status: String,
    config_code: String,
    hostname: String,
    jobs_total: i64,
    jobs_completed: i64,
    jobs_failed: i64,
    jobs_cancelled: i64,
    jobs_running: i64,
    cancel_requested: bool,
    rerun_of: Option<u32>,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    created_by: String,
    phases: BTreeMap<String, String>,
    first_position: i64,
    position: i64,
    visibility: String,
    owner: String,
}

impl RunRow {
    fn job_moved(&mut self, scenario: &str, to: JobPhase, recorded: &Recorded) {
        self.phases.insert(scenario.to_owned(), to.as_str().to_owned());
        let count =
            |status: &str| self.phases.values().filter(|p| phase(p).status() == status).count() as i64;
        let (completed, failed, cancelled) = (count("completed"), count("failed"), count("cancelled"));
        self.jobs_running = count("running");
        let queued = count("queued");
        (self.jobs_completed, self.jobs_failed, self.jobs_cancelled) = (completed, failed, cancelled);
        if to == JobPhase::Claimed && self.started_at.is_none() {
            self.started_at = Some(recorded.occurred_at);
        }
        if self.finished_at.is_none() {
            self.status = match (self.started_at.is_some(), queued > 0) {
                (true, _) => "running",
                (false, true) => "queued",
                (false, false) => "pending",
            }
            .to_owned();
        }
        self.position = recorded.position;
    }
}

impl Row for RunRow {
    type Key = String;
    const TABLE: &'static str = "runs";
    const KEY: &'static [&'static str] = &["run"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Json, Text, Time};
        let mut columns = access::run_columns();
        columns.extend([
            Column::shown("run", Text),
            Column::shown("status", Text),
            Column::shown("config_code", Text),
            Column::shown("hostname", Text),
            Column::shown("jobs_total", Int),
            Column::shown("jobs_completed", Int),
            Column::shown("jobs_failed", Int),
            Column::shown("jobs_cancelled", Int),
            Column::shown("jobs_running", Int),
            Column::shown("cancel_requested", Bool),
            Column::shown("rerun_of", Int),
            Column::shown("created_at", Time),
            Column::shown("started_at", Time),
            Column::shown("finished_at", Time),
            Column::shown("created_by", Text),
            Column::hidden("phases", Json),
            Column::hidden("first_position", Int),
            Column::shown("position", Int),
        ]);
        columns.extend(access::columns());
        columns
    }
    fn key(&self) -> Self::Key {
        self.run.clone()
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
}

/// What a job is counted as beside what it measures: its status, and whether it was simulated.
fn counted_as(job: &JobRow) -> (String, Option<bool>) {
    (job.status.clone(), job.simulated)
}

/// Folds `run.*`, `job.*`, `progress.reported` and `quality.*`.
#[derive(Debug, Default)]
pub struct Runs {
    rights: Table<RunRights>,
    runs: Table<RunRow>,
    jobs: Table<JobRow>,
    flags: Table<FlagRow>,
    counts: Table<CountRow<OfJobs>>,
}

impl Runs {
    fn job_event(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let (key, job, _) = job_of(&recorded.stream)?;
        let run = key.run_key().stream().to_string();
        let missing = |what: &str| FoldError(format!("{what} is not there"));
        if self.runs.get(&run).is_none() {
            return Err(missing(&run));
        }
        let row = self.jobs.get_mut(&job, recorded.position).ok_or_else(|| missing(&job))?;
        let before = row.standing();
        row.fold(event, recorded);
        let after = row.standing();
        if after.phase != before.phase
            && let Some(run) = self.runs.get_mut(&run, recorded.position)
        {
            run.job_moved(&key.scenario, after.phase, recorded);
        }
        match event {
            Event::QualityFlagged(flagged) => {
                let rights = access::rights(&self.rights, &key.org, &key.project)?;
                let raised = self.flags.get(&(job.clone(), flagged.rule.clone()));
                let first_position = raised.map_or(recorded.position, |flag| flag.first_position);
                self.flags.put(
                    FlagRow {
                        org: key.org,
                        project_code: key.project,
                        workload_code: key.workload,
                        run_number: key.run,
                        scenario_code: key.scenario,
                        job,
                        attempt: flagged.attempt,
                        rule: flagged.rule.clone(),
                        message: flagged.message.clone(),
                        flagged_at: recorded.recorded_at,
                        flagged_by: recorded.actor.id.clone(),
                        cleared: false,
                        cleared_at: None,
                        cleared_by: None,
                        cleared_reason: None,
                        first_position,
                        position: recorded.position,
                        visibility: rights.visibility,
                        owner: rights.owner,
                    },
                    recorded.position,
                );
            }
            Event::QualityCleared(cleared) => {
                if let Some(flag) = self.flags.get_mut(&(job, cleared.rule.clone()), recorded.position) {
                    flag.cleared = true;
                    flag.cleared_at = Some(recorded.recorded_at);
                    flag.cleared_by = Some(recorded.actor.id.clone());
                    flag.cleared_reason = Some(cleared.reason.clone());
                    flag.position = recorded.position;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts a job as what it is now, and no more as what it was.
    fn count(&mut self, job: &String, before: Option<(String, Option<bool>)>) {
        let Some(row) = self.jobs.get(job) else { return };
        let after = counted_as(row);
        if before.as_ref() == Some(&after) {
            return;
        }
        if let Some(before) = before {
            self.counts.add(CountRow::<OfJobs>::of(row, before), -1);
        }
        self.counts.add(CountRow::<OfJobs>::of(row, after), 1);
    }

    fn run_event(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let key = RunKey::from_stream(&recorded.stream)?;
        if let Event::RunCreated(created) = event {
            let rights = access::rights(&self.rights, &key.org, &key.project)?;
            self.runs.put(
                RunRow {
                    org: key.org,
                    project_code: key.project,
                    workload_code: key.workload,
                    run_number: key.run,
                    run: recorded.stream.to_string(),
                    status: "pending".to_owned(),
                    config_code: created.server.config.clone(),
                    hostname: created.server.hostname.clone(),
                    jobs_total: created.scenario_codes.len() as i64,
                    jobs_completed: 0,
                    jobs_failed: 0,
                    jobs_cancelled: 0,
                    jobs_running: 0,
                    cancel_requested: false,
                    rerun_of: created.rerun_of,
                    created_at: recorded.occurred_at,
                    started_at: None,
                    finished_at: None,
                    created_by: recorded.actor.id.clone(),
                    phases: BTreeMap::new(),
                    first_position: recorded.position,
                    position: recorded.position,
                    visibility: rights.visibility,
                    owner: rights.owner,
                },
                recorded.position,
            );
            return Ok(());
        }
        let run = recorded.stream.to_string();
        let row = self
            .runs
            .get_mut(&run, recorded.position)
            .ok_or_else(|| FoldError(format!("{run} is not there")))?;
        match event {
            Event::RunCancelRequested(_) => row.cancel_requested = true,
            Event::RunFinished(finished) => {
                row.status = finished.outcome.as_str().to_owned();
                row.finished_at = Some(recorded.occurred_at);
            }
            Event::RunReopened(_) => {
                row.status = "running".to_owned();
                row.finished_at = None;
                row.cancel_requested = false;
            }
            _ => {}
        }
        row.position = recorded.position;
        Ok(())
    }

    fn job_created(
        &mut self,
        recorded: &Recorded,
        created: &events::job::JobCreated,
    ) -> Result<(), FoldError> {
        let key = JobKey::from_stream(&recorded.stream)?;
        let rights = access::rights(&self.rights, &key.org, &key.project)?;
        let run = key.run_key().stream().to_string();
        let scenario = key.scenario.clone();
        let row = self
            .runs
            .get_mut(&run, recorded.position)
            .ok_or_else(|| FoldError(format!("{run} is not there")))?;
        row.job_moved(&scenario, JobPhase::Pending, recorded);
        self.jobs.put(JobRow::new(key, created, recorded, rights), recorded.position);
        Ok(())
    }
}

impl Projection for Runs {
    fn name(&self) -> &'static str {
        "runs"
    }
    fn version(&self) -> i32 {
        8
    }
    fn interests(&self) -> &'static [&'static str] {
        &[
            access::PROJECT_CREATED,
            access::VISIBILITY_CHANGED,
            "run.created",
            "run.cancel_requested",
            "run.finished",
            "run.reopened",
            "job.created",
            "job.queued",
            "job.claimed",
            "job.serving",
            "job.running",
            "job.completed",
            "job.failed",
            "job.cancel_requested",
            "job.cancelled",
            "job.lost",
            "job.retried",
            "tool_output.recorded",
            "tool_output.external",
            "progress.reported",
            "quality.flagged",
            "quality.cleared",
        ]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![&mut self.rights, &mut self.runs, &mut self.jobs, &mut self.flags, &mut self.counts]
    }

    fn wants(&mut self, recorded: &Recorded, event: &Event) {
        access::wants(&mut self.rights, recorded, event);
        match recorded.stream.kind() {
            "run" => {
                if let Ok(key) = RunKey::from_stream(&recorded.stream) {
                    access::want(&mut self.rights, &key.org, &key.project);
                }
                self.runs.want(recorded.stream.to_string());
            }
            "job" | "progress" => {
                let Ok((key, job, _)) = job_of(&recorded.stream) else { return };
                if let Event::QualityFlagged(QualityFlagged { rule, .. })
                | Event::QualityCleared(QualityCleared { rule, .. }) = event
                {
                    self.flags.want((job.clone(), rule.clone()));
                }
                if recorded.stream.kind() == "job" {
                    access::want(&mut self.rights, &key.org, &key.project);
                    self.runs.want(key.run_key().stream().to_string());
                }
                self.jobs.want(job);
            }
            _ => {}
        }
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        if let Some((project, visibility)) = access::fold(&mut self.rights, recorded, event)? {
            self.runs.set_visibility(&project.org, &project.project, &visibility);
            self.jobs.set_visibility(&project.org, &project.project, &visibility);
            self.flags.set_visibility(&project.org, &project.project, &visibility);
            self.counts.set_visibility(&project.org, &project.project, &visibility);
            return Ok(());
        }
        match event {
            Event::ProjectCreated(_) => Ok(()),
            Event::JobCreated(created) => {
                self.job_created(recorded, created)?;
                self.count(&recorded.stream.to_string(), None);
                Ok(())
            }
            Event::ProgressReported(progress) => {
                let (_, job, attempt) = job_of(&recorded.stream)?;
                let row = self
                    .jobs
                    .get_mut(&job, recorded.position)
                    .ok_or_else(|| FoldError(format!("{job} is not there")))?;
                row.progress(attempt, progress, recorded.position);
                Ok(())
            }
            _ if recorded.stream.kind() == "run" => self.run_event(recorded, event),
            _ => {
                let job = recorded.stream.to_string();
                let before = self.jobs.get(&job).map(counted_as);
                self.job_event(recorded, event)?;
                self.count(&job, before);
                Ok(())
            }
        }
    }
}
