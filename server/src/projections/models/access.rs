//! Who may see a project, as each projection keeps it for its own rows.

use events::Event;
use events::envelope::Recorded;
use events::keys::ProjectKey;
use serde::{Deserialize, Serialize};

use crate::projections::FoldError;
use crate::projections::table::{Access, Row, Table};
use crate::projections::text::{Column, Kind};

/// The types of event that decide who may see a project. Every projection of project data folds them.
pub const PROJECT_CREATED: &str = "project.created";
/// See [`PROJECT_CREATED`].
pub const VISIBILITY_CHANGED: &str = "project.visibility_changed";

/// The rights to one project.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rights {
    /// `private`, `organization`, `public`.
    pub visibility: String,
    /// The user who owns the project.
    pub owner: String,
}

/// Makes a projection's own table of rights; each has one, so that it never reads another's.
macro_rules! rights_table {
    ($row:ident, $table:literal) => {
        /// Who may see a project.
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        pub struct $row {
            org: String,
            project_code: String,
            visibility: String,
            owner: String,
        }

        impl $crate::projections::table::Row for $row {
            type Key = (String, String);
            const TABLE: &'static str = $table;
            const KEY: &'static [&'static str] = &["org", "project_code"];

            fn columns() -> Vec<$crate::projections::text::Column> {
                use $crate::projections::text::{Column, Kind::Text};
                ["org", "project_code", "visibility", "owner"].map(|name| Column::shown(name, Text)).to_vec()
            }
            fn key(&self) -> Self::Key {
                (self.org.clone(), self.project_code.clone())
            }
            fn access(&mut self) -> Option<$crate::projections::table::Access<'_>> {
                Some($crate::projections::table::Access {
                    org: &self.org,
                    project_code: &self.project_code,
                    visibility: &mut self.visibility,
                })
            }
        }

        impl $crate::projections::models::access::RightsRow for $row {
            fn new(
                org: String,
                project_code: String,
                rights: $crate::projections::models::access::Rights,
            ) -> Self {
                Self { org, project_code, visibility: rights.visibility, owner: rights.owner }
            }
            fn rights(&self) -> $crate::projections::models::access::Rights {
                $crate::projections::models::access::Rights {
                    visibility: self.visibility.clone(),
                    owner: self.owner.clone(),
                }
            }
        }
    };
}
pub(crate) use rights_table;

/// The columns that place a row of a run.
pub(super) fn run_columns() -> Vec<Column> {
    let mut columns: Vec<Column> =
        ["org", "project_code", "workload_code"].map(|name| Column::shown(name, Kind::Text)).to_vec();
    columns.push(Column::shown("run_number", Kind::Int));
    columns
}

/// The columns that place a row of a job.
pub(super) fn job_columns() -> Vec<Column> {
    let mut columns = run_columns();
    columns.extend(["scenario_code", "job"].map(|name| Column::shown(name, Kind::Text)));
    columns
}

/// The columns that say what a job or a result measured.
pub(super) fn measured_columns() -> Vec<Column> {
    ["model_code", "framework_code", "framework_version", "quantization"]
        .map(|name| Column::shown(name, Kind::Text))
        .to_vec()
}

/// A row of a table of rights.
pub trait RightsRow: Row<Key = (String, String)> {
    /// A project's first rights.
    fn new(org: String, project_code: String, rights: Rights) -> Self;
    /// The rights.
    fn rights(&self) -> Rights;
}

/// Wants the rights to a project.
pub fn want<R: RightsRow>(table: &mut Table<R>, org: &str, project_code: &str) {
    table.want((org.to_owned(), project_code.to_owned()));
}

/// The rights to a project.
///
/// # Errors
/// The project is not there: its creation was quarantined, or the log does not begin at its beginning.
pub fn rights<R: RightsRow>(table: &Table<R>, org: &str, project_code: &str) -> Result<Rights, FoldError> {
    table
        .get(&(org.to_owned(), project_code.to_owned()))
        .map(RightsRow::rights)
        .ok_or_else(|| FoldError(format!("project {org}/{project_code} is not there")))
}

/// Wants what [`fold`] looks at.
pub fn wants<R: RightsRow>(table: &mut Table<R>, recorded: &Recorded, event: &Event) {
    if matches!(event, Event::ProjectCreated(_) | Event::ProjectVisibilityChanged(_))
        && let Ok(key) = ProjectKey::from_stream(&recorded.stream)
    {
        table.want((key.org, key.project));
    }
}

/// A project's change of visibility, when the event is one: the caller lets its tables follow.
///
/// # Errors
/// The stream is not a project's.
pub fn fold<R: RightsRow>(
    table: &mut Table<R>,
    recorded: &Recorded,
    event: &Event,
) -> Result<Option<(ProjectKey, String)>, FoldError> {
    match event {
        Event::ProjectCreated(created) => {
            let key = ProjectKey::from_stream(&recorded.stream)?;
            let rights =
                Rights { visibility: created.visibility.as_str().to_owned(), owner: created.owner.clone() };
            table.put(R::new(key.org, key.project, rights), recorded.position);
            Ok(None)
        }
        Event::ProjectVisibilityChanged(changed) => {
            let key = ProjectKey::from_stream(&recorded.stream)?;
            rights(table, &key.org, &key.project)?;
            let visibility = changed.visibility.as_str().to_owned();
            table.set_visibility(&key.org, &key.project, &visibility);
            Ok(Some((key, visibility)))
        }
        _ => Ok(None),
    }
}

/// The columns that say who may see a row, last in every table of project data.
pub fn columns() -> [Column; 2] {
    [Column::shown("visibility", Kind::Text), Column::hidden("owner", Kind::Text)]
}

/// A row's own access, by its three fields.
pub fn access<'a>(org: &'a str, project_code: &'a str, visibility: &'a mut String) -> Option<Access<'a>> {
    Some(Access { org, project_code, visibility })
}
