//! Projects: a named folder for one benchmarking question.

use serde::{Deserialize, Serialize};

/// Who may see a project and everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProjectVisibility {
    /// Its creator alone, administrators excluded.
    Private,
    /// Members of the organisation.
    #[default]
    Organization,
    /// Everyone, anonymous readers included.
    Public,
}

impl ProjectVisibility {
    /// The word used in SQL, the API and the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Organization => "organization",
            Self::Public => "public",
        }
    }
}

/// A person created a project. Stream: the project's. Read by: project board, access checks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectCreated {
    /// The display name; the code in the stream's key never changes.
    pub name: String,
    /// Who may see it.
    pub visibility: ProjectVisibility,
    /// The user who owns it (an id; names are kept in the vault).
    pub owner: String,
}

/// A person renamed a project. The code stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectRenamed {
    /// The new display name.
    pub name: String,
}

/// A person changed who may see a project. Readers' rights change from this position on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectVisibilityChanged {
    /// The new visibility.
    pub visibility: ProjectVisibility,
}

/// A person archived a project: hidden from lists, results kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectArchived {}
