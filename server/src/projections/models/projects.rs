//! Projects, their workloads and scenarios: `v_projects`, `v_workloads`, `v_scenarios`.

use events::envelope::Recorded;
use events::keys::{ProjectKey, RunKey, ScenarioKey, WorkloadKey};
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};

use super::access::{self, Rights};
use super::scenarios::ScenarioRow;
use super::workloads::WorkloadRow;
use crate::projections::table::{Access, Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

/// A project, as `v_projects` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProjectRow {
    org: String,
    project_code: String,
    name: String,
    visibility: String,
    owner: String,
    /// `draft` until something of it is executed, then `active`; `archived` in the end.
    status: String,
    archived: bool,
    workloads: i64,
    runs: i64,
    last_run_at: Option<Timestamp>,
    last_run_status: Option<String>,
    last_run: Option<String>,
    created_at: Timestamp,
    position: i64,
}

impl Row for ProjectRow {
    type Key = (String, String);
    const TABLE: &'static str = "projects";
    const KEY: &'static [&'static str] = &["org", "project_code"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Text, Time};
        vec![
            Column::shown("org", Text),
            Column::shown("project_code", Text),
            Column::shown("name", Text),
            Column::shown("visibility", Text),
            Column::shown("owner", Text),
            Column::shown("status", Text),
            Column::shown("archived", Bool),
            Column::shown("workloads", Int),
            Column::shown("runs", Int),
            Column::shown("last_run_at", Time),
            Column::shown("last_run_status", Text),
            Column::shown("last_run", Text),
            Column::shown("created_at", Time),
            Column::shown("position", Int),
        ]
    }
    fn key(&self) -> Self::Key {
        (self.org.clone(), self.project_code.clone())
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
}

/// Folds `project.*`, `workload.*`, `scenario.defined`, `run.*` and the first claim of a run's jobs.
#[derive(Debug, Default)]
pub struct Projects {
    projects: Table<ProjectRow>,
    workloads: Table<WorkloadRow>,
    scenarios: Table<ScenarioRow>,
}

impl Projects {
    fn project(&mut self, org: &str, code: &str, position: i64) -> Result<&mut ProjectRow, FoldError> {
        self.projects
            .get_mut(&(org.to_owned(), code.to_owned()), position)
            .ok_or_else(|| FoldError(format!("project {org}/{code} is not there")))
    }

    fn workload(&mut self, key: &WorkloadKey, position: i64) -> Result<&mut WorkloadRow, FoldError> {
        self.workloads
            .get_mut(&workload_key(key), position)
            .ok_or_else(|| FoldError(format!("{key} is not there")))
    }

    fn rights(&self, key: &ProjectKey) -> Result<Rights, FoldError> {
        let project = self
            .projects
            .get(&(key.org.clone(), key.project.clone()))
            .ok_or_else(|| FoldError(format!("{key} is not there")))?;
        Ok(Rights { visibility: project.visibility.clone(), owner: project.owner.clone() })
    }

    fn run_status(&mut self, run: &RunKey, status: &str, position: i64) -> Result<(), FoldError> {
        let stream = run.stream().to_string();
        let project = self.project(&run.org, &run.project, position)?;
        if project.last_run.as_deref() == Some(stream.as_str()) {
            project.last_run_status = Some(status.to_owned());
            project.position = position;
        }
        Ok(())
    }
}

fn workload_key(key: &WorkloadKey) -> (String, String, String) {
    (key.org.clone(), key.project.clone(), key.workload.clone())
}

impl Projection for Projects {
    fn name(&self) -> &'static str {
        "projects"
    }
    fn version(&self) -> i32 {
        4
    }
    fn interests(&self) -> &'static [&'static str] {
        &[
            "project.created",
            "project.renamed",
            "project.visibility_changed",
            "project.archived",
            "workload.created",
            "workload.renamed",
            "workload.archived",
            "scenario.defined",
            "run.created",
            "run.finished",
            "job.claimed",
        ]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![&mut self.projects, &mut self.workloads, &mut self.scenarios]
    }

    fn wants(&mut self, recorded: &Recorded, _: &Event) {
        let parts = recorded.stream.parts();
        let part = |n: usize| parts.get(n).cloned().unwrap_or_default();
        self.projects.want((part(0), part(1)));
        if matches!(recorded.stream.kind(), "workload" | "scenario" | "run") {
            self.workloads.want((part(0), part(1), part(2)));
        }
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let position = recorded.position;
        match event {
            Event::ProjectCreated(created) => {
                let key = ProjectKey::from_stream(&recorded.stream)?;
                self.projects.put(
                    ProjectRow {
                        org: key.org,
                        project_code: key.project,
                        name: created.name.clone(),
                        visibility: created.visibility.as_str().to_owned(),
                        owner: created.owner.clone(),
                        status: "draft".to_owned(),
                        archived: false,
                        workloads: 0,
                        runs: 0,
                        last_run_at: None,
                        last_run_status: None,
                        last_run: None,
                        created_at: recorded.recorded_at,
                        position,
                    },
                    position,
                );
            }
            Event::ProjectRenamed(renamed) => {
                let key = ProjectKey::from_stream(&recorded.stream)?;
                let project = self.project(&key.org, &key.project, position)?;
                project.name.clone_from(&renamed.name);
                project.position = position;
            }
            Event::ProjectArchived(_) => {
                let key = ProjectKey::from_stream(&recorded.stream)?;
                let project = self.project(&key.org, &key.project, position)?;
                project.archived = true;
                project.status = "archived".to_owned();
                project.position = position;
            }
            Event::ProjectVisibilityChanged(changed) => {
                let key = ProjectKey::from_stream(&recorded.stream)?;
                self.project(&key.org, &key.project, position)?.position = position;
                let visibility = changed.visibility.as_str();
                self.projects.set_visibility(&key.org, &key.project, visibility);
                self.workloads.set_visibility(&key.org, &key.project, visibility);
                self.scenarios.set_visibility(&key.org, &key.project, visibility);
            }
            Event::WorkloadCreated(created) => {
                let key = WorkloadKey::from_stream(&recorded.stream)?;
                let rights = self.rights(&key.project_key())?;
                let project = self.project(&key.org, &key.project, position)?;
                project.workloads += 1;
                project.position = position;
                self.workloads.put(WorkloadRow::new(key, created, recorded, rights), position);
            }
            Event::WorkloadRenamed(_) | Event::WorkloadArchived(_) => {
                let workload = self.workload(&WorkloadKey::from_stream(&recorded.stream)?, position)?;
                match event {
                    Event::WorkloadRenamed(renamed) => workload.name.clone_from(&renamed.name),
                    _ => workload.archived = true,
                }
                workload.position = position;
            }
            Event::ScenarioDefined(defined) => {
                let key = ScenarioKey::from_stream(&recorded.stream)?;
                let rights = self.rights(&key.workload_key().project_key())?;
                let workload = self.workload(&key.workload_key(), position)?;
                workload.scenarios += 1;
                workload.position = position;
                self.scenarios.put(ScenarioRow::new(key, &defined.spec, recorded, rights), position);
            }
            Event::RunCreated(_) => {
                let key = RunKey::from_stream(&recorded.stream)?;
                self.rights(&key.workload_key().project_key())?;
                let workload = self.workload(&key.workload_key(), position)?;
                workload.runs += 1;
                workload.position = position;
                let project = self.project(&key.org, &key.project, position)?;
                project.runs += 1;
                if !project.archived {
                    project.status = "active".to_owned();
                }
                project.last_run_at = Some(recorded.recorded_at);
                project.last_run_status = Some("pending".to_owned());
                project.last_run = Some(recorded.stream.to_string());
                project.position = position;
            }
            Event::JobClaimed(_) => {
                let key = events::keys::JobKey::from_stream(&recorded.stream)?;
                self.run_status(&key.run_key(), "running", position)?;
            }
            Event::RunFinished(finished) => {
                let key = RunKey::from_stream(&recorded.stream)?;
                self.run_status(&key, finished.outcome.as_str(), position)?;
            }
            _ => {}
        }
        Ok(())
    }
}
