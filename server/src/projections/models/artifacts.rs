//! What a job left behind as files: `v_job_artifacts`, one row a job and blob. `GET /api/blobs/<org>/<sha256>` gives the bytes.

use std::collections::BTreeSet;

use events::envelope::Recorded;
use events::keys::JobKey;
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};

use super::access::{self, rights_table};
use crate::projections::table::{Access, Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

rights_table!(ArtifactRights, "artifact_rights");

/// A file of a job, as `v_job_artifacts` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ArtifactRow {
    org: String,
    project_code: String,
    workload_code: String,
    run_number: u32,
    scenario_code: String,
    job: String,
    kind: String,
    sha256: String,
    bytes: u64,
    media_type: String,
    erased: bool,
    recorded_at: Timestamp,
    position: i64,
    visibility: String,
    owner: String,
}

impl Row for ArtifactRow {
    type Key = (String, String, String);
    const TABLE: &'static str = "job_artifacts";
    const KEY: &'static [&'static str] = &["job", "kind", "sha256"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Text, Time};
        let mut columns = access::job_columns();
        columns.extend([
            Column::shown("kind", Text),
            Column::shown("sha256", Text),
            Column::shown("bytes", Int),
            Column::shown("media_type", Text),
            Column::shown("erased", Bool),
            Column::shown("recorded_at", Time),
            Column::shown("position", Int),
        ]);
        columns.extend(access::columns());
        columns
    }
    fn key(&self) -> Self::Key {
        (self.job.clone(), self.kind.clone(), self.sha256.clone())
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
}

/// The jobs that a blob belongs to: erasing it erases it for all of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ArtifactBlobRow {
    blob: String,
    rows: BTreeSet<(String, String)>,
}

impl Row for ArtifactBlobRow {
    type Key = String;
    const TABLE: &'static str = "artifact_blobs";
    const KEY: &'static [&'static str] = &["blob"];

    fn columns() -> Vec<Column> {
        vec![Column::hidden("blob", Kind::Text), Column::hidden("rows", Kind::Json)]
    }
    fn key(&self) -> Self::Key {
        self.blob.clone()
    }
}

/// Folds `blob.stored` and `blob.erased`.
#[derive(Debug, Default)]
pub struct Artifacts {
    rights: Table<ArtifactRights>,
    blobs: Table<ArtifactBlobRow>,
    artifacts: Table<ArtifactRow>,
}

/// The job a blob says it belongs to.
fn job_of(job: Option<&str>) -> Option<(JobKey, String)> {
    let stream: events::StreamKey = job?.parse().ok()?;
    Some((JobKey::from_stream(&stream).ok()?, stream.to_string()))
}

impl Projection for Artifacts {
    fn name(&self) -> &'static str {
        "artifacts"
    }
    fn version(&self) -> i32 {
        1
    }
    fn interests(&self) -> &'static [&'static str] {
        &[access::PROJECT_CREATED, access::VISIBILITY_CHANGED, "blob.stored", "blob.erased"]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![&mut self.rights, &mut self.blobs, &mut self.artifacts]
    }

    fn wants(&mut self, recorded: &Recorded, event: &Event) {
        access::wants(&mut self.rights, recorded, event);
        if recorded.stream.kind() != "blob" {
            return;
        }
        let blob = recorded.stream.to_string();
        self.blobs.want(blob.clone());
        match event {
            Event::BlobStored(stored) => {
                if let Some((key, job)) = job_of(stored.job.as_deref()) {
                    access::want(&mut self.rights, &key.org, &key.project);
                    self.artifacts.want((job, stored.purpose.clone(), stored.sha256.clone()));
                }
            }
            _ => {
                let sha256 = recorded.stream.parts().pop().unwrap_or_default();
                let rows = self.blobs.loaded(&blob).map(|b| b.rows.clone()).unwrap_or_default();
                for (job, kind) in rows {
                    self.artifacts.want((job, kind, sha256.clone()));
                }
            }
        }
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        if let Some((project, visibility)) = access::fold(&mut self.rights, recorded, event)? {
            self.artifacts.set_visibility(&project.org, &project.project, &visibility);
            return Ok(());
        }
        let (blob, position) = (recorded.stream.to_string(), recorded.position);
        match event {
            Event::BlobStored(stored) => {
                // A blob of no job is no job's file.
                let Some((key, job)) = job_of(stored.job.as_deref()) else { return Ok(()) };
                let rights = access::rights(&self.rights, &key.org, &key.project)?;
                let mut rows = self.blobs.get(&blob).map(|b| b.rows.clone()).unwrap_or_default();
                if rows.insert((job.clone(), stored.purpose.clone())) {
                    self.blobs.put(ArtifactBlobRow { blob, rows }, position);
                }
                self.artifacts.put(
                    ArtifactRow {
                        org: key.org,
                        project_code: key.project,
                        workload_code: key.workload,
                        run_number: key.run,
                        scenario_code: key.scenario,
                        job,
                        kind: stored.purpose.clone(),
                        sha256: stored.sha256.clone(),
                        bytes: stored.size,
                        media_type: stored.media_type.clone(),
                        erased: false,
                        recorded_at: recorded.recorded_at,
                        position,
                        visibility: rights.visibility,
                        owner: rights.owner,
                    },
                    position,
                );
                Ok(())
            }
            Event::BlobErased(_) => {
                let sha256 = recorded.stream.parts().pop().unwrap_or_default();
                let rows = self.blobs.get(&blob).map(|b| b.rows.clone()).unwrap_or_default();
                for (job, kind) in rows {
                    if let Some(row) = self.artifacts.get_mut(&(job, kind, sha256.clone()), position) {
                        row.erased = true;
                        row.position = position;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
