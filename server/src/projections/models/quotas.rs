//! Quotas and what counts towards them: `v_quotas`.

use events::Event;
use events::envelope::Recorded;
use events::quota::Resource;
use serde::{Deserialize, Serialize};

use crate::projections::table::{Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

/// One resource of an organisation's, as `v_quotas` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QuotaRow {
    org: String,
    resource: String,
    used: i64,
    quota_limit: Option<i64>,
    level_percent: i64,
    position: i64,
    visibility: String,
    owner: String,
}

impl Row for QuotaRow {
    type Key = (String, String);
    const TABLE: &'static str = "quotas";
    const KEY: &'static [&'static str] = &["org", "resource"];

    fn columns() -> Vec<Column> {
        vec![
            Column::shown("org", Kind::Text),
            Column::shown("resource", Kind::Text),
            Column::shown("used", Kind::Int),
            Column::shown("quota_limit", Kind::Int),
            Column::shown("level_percent", Kind::Int),
            Column::shown("position", Kind::Int),
            Column::hidden("visibility", Kind::Text),
            Column::hidden("owner", Kind::Text),
        ]
    }
    fn key(&self) -> Self::Key {
        (self.org.clone(), self.resource.clone())
    }
}

/// How many jobs a run has: it is open again when it is reopened. Shown to nobody.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunSizeRow {
    org: String,
    run: String,
    jobs: i64,
    visibility: String,
    owner: String,
}

impl Row for RunSizeRow {
    type Key = (String, String);
    const TABLE: &'static str = "quota_runs";
    const KEY: &'static [&'static str] = &["org", "run"];

    fn columns() -> Vec<Column> {
        vec![
            Column::shown("org", Kind::Text),
            Column::shown("run", Kind::Text),
            Column::shown("jobs", Kind::Int),
            Column::hidden("visibility", Kind::Text),
            Column::hidden("owner", Kind::Text),
        ]
    }
    fn key(&self) -> Self::Key {
        (self.org.clone(), self.run.clone())
    }
}

/// Folds `quota.*` and what counts: `project.created`, `project.archived`, runs and blobs.
#[derive(Debug, Default)]
pub struct Quotas {
    quotas: Table<QuotaRow>,
    runs: Table<RunSizeRow>,
}

/// The resource that an event counts towards.
fn counted(event: &Event) -> Option<Resource> {
    Some(match event {
        Event::ProjectCreated(_) | Event::ProjectArchived(_) => Resource::Projects,
        Event::RunCreated(_) | Event::RunFinished(_) | Event::RunReopened(_) => Resource::OpenJobs,
        Event::BlobStored(_) | Event::BlobErased(_) => Resource::StoredBytes,
        _ => return None,
    })
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Quotas {
    /// The row of a resource, new where nothing was counted yet.
    fn row(&mut self, org: &str, resource: Resource, position: i64) -> Result<&mut QuotaRow, FoldError> {
        let key = (org.to_owned(), resource.as_str().to_owned());
        if self.quotas.get(&key).is_none() {
            let row = QuotaRow {
                org: key.0.clone(),
                resource: key.1.clone(),
                used: 0,
                quota_limit: None,
                level_percent: 0,
                position,
                visibility: "organization".to_owned(),
                owner: String::new(),
            };
            self.quotas.put(row, position);
        }
        let row = self.quotas.get_mut(&key, position);
        let row = row.ok_or_else(|| FoldError(format!("the quota {}/{} is not there", key.0, key.1)))?;
        row.position = position;
        Ok(row)
    }

    fn jobs_of(&self, org: &str, run: &str) -> Result<i64, FoldError> {
        let row = self.runs.get(&(org.to_owned(), run.to_owned()));
        row.map(|row| row.jobs).ok_or_else(|| FoldError(format!("{run} is not there")))
    }
}

impl Projection for Quotas {
    fn name(&self) -> &'static str {
        "quotas"
    }
    fn version(&self) -> i32 {
        1
    }
    fn interests(&self) -> &'static [&'static str] {
        &[
            "project.created",
            "project.archived",
            "run.created",
            "run.finished",
            "run.reopened",
            "blob.stored",
            "blob.erased",
            "quota.set",
            "quota.level_changed",
        ]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![&mut self.quotas, &mut self.runs]
    }

    fn wants(&mut self, recorded: &Recorded, event: &Event) {
        let org = recorded.stream.org().to_owned();
        if recorded.stream.kind() == "run" {
            self.runs.want((org.clone(), recorded.stream.to_string()));
        }
        let resources = match event {
            Event::QuotaSet(set) => set.quotas.keys().copied().collect(),
            Event::QuotaLevelChanged(changed) => vec![changed.resource],
            event => counted(event).into_iter().collect(),
        };
        for resource in resources {
            self.quotas.want((org.clone(), resource.as_str().to_owned()));
        }
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let (org, position) = (recorded.stream.org(), recorded.position);
        let run = recorded.stream.as_str();
        let more = match event {
            Event::QuotaSet(set) => {
                for (resource, limit) in &set.quotas {
                    let row = self.row(org, *resource, position)?;
                    row.quota_limit = limit.map(whole);
                    row.level_percent = 0;
                }
                return Ok(());
            }
            Event::QuotaLevelChanged(changed) => {
                self.row(org, changed.resource, position)?.level_percent = i64::from(changed.percent);
                return Ok(());
            }
            Event::ProjectCreated(_) => 1,
            Event::ProjectArchived(_) => -1,
            Event::RunCreated(created) => {
                let jobs = whole(created.scenario_codes.len() as u64);
                let row = RunSizeRow {
                    org: org.to_owned(),
                    run: run.to_owned(),
                    jobs,
                    visibility: "private".to_owned(),
                    owner: String::new(),
                };
                self.runs.put(row, position);
                jobs
            }
            Event::RunFinished(_) => -self.jobs_of(org, run)?,
            Event::RunReopened(_) => self.jobs_of(org, run)?,
            // The same bytes are stored once, whoever names them again.
            Event::BlobStored(blob) if recorded.version == 1 => whole(blob.size),
            Event::BlobErased(erased) => -whole(erased.size.unwrap_or(0)),
            _ => return Ok(()),
        };
        if let Some(resource) = counted(event) {
            let row = self.row(org, resource, position)?;
            row.used = row.used.saturating_add(more).max(0);
        }
        Ok(())
    }
}
