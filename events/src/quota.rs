//! Quotas of organisations: how much of what one may have, and how near to it it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Projects that are not archived.
    Projects,
    /// Jobs of runs that are not finished.
    OpenJobs,
    /// Bytes of blobs that events name: logs, request logs, prompts, images.
    StoredBytes,
}

impl Resource {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Projects, Self::OpenJobs, Self::StoredBytes];

    /// The word used in SQL, the API and the page.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Projects => "projects",
            Self::OpenJobs => "open_jobs",
            Self::StoredBytes => "stored_bytes",
        }
    }

    /// As people say it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Projects => "projects",
            Self::OpenJobs => "open jobs",
            Self::StoredBytes => "stored bytes",
        }
    }
}

/// The operator set quotas of an organisation. Stream: `quota/<org>`. What is not named stays as it was; null is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaSet {
    /// The most of each resource.
    pub quotas: BTreeMap<Resource, Option<u64>>,
}

/// An organisation came nearer to a quota than it was, or is well below it again. Stream: `quota/<org>`. Appended by the
/// control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaLevelChanged {
    /// The resource.
    pub resource: Resource,
    /// The level that is reached, percent: 80, 95, or 0 for below.
    pub percent: u8,
    /// The level before.
    pub previous_percent: u8,
    /// How much is used.
    pub used: u64,
    /// The quota.
    pub limit: u64,
}
