//! The part of the work index that quotas are about: limits, projects, stored bytes.

use std::collections::BTreeMap;

use events::Event;
use events::envelope::Recorded;
use events::quota::Resource;

use crate::domain::quota::Usage;
use crate::domain::{LoadError, Quota, decode};

/// Quotas, and what counts towards them, by organisation.
#[derive(Debug, Default)]
pub(super) struct QuotaIndex {
    quotas: BTreeMap<String, Quota>,
    projects: BTreeMap<String, u64>,
    stored_bytes: BTreeMap<String, u64>,
}

impl QuotaIndex {
    /// Follows an event of a project, a blob or a quota.
    pub(super) fn apply(&mut self, recorded: &Recorded) -> Result<(), LoadError> {
        let org = recorded.stream.org();
        match recorded.event_type.as_str() {
            "project.created" => *self.projects.entry(org.to_owned()).or_default() += 1,
            "project.archived" => take(&mut self.projects, org, 1),
            // The same bytes are stored once, whoever names them again.
            "blob.stored" if recorded.version == 1 => {
                if let Event::BlobStored(blob) = decode(recorded)? {
                    *self.stored_bytes.entry(org.to_owned()).or_default() += blob.size;
                }
            }
            "blob.erased" => {
                if let Event::BlobErased(erased) = decode(recorded)? {
                    take(&mut self.stored_bytes, org, erased.size.unwrap_or(0));
                }
            }
            "quota.set" | "quota.level_changed" => {
                self.quotas.entry(org.to_owned()).or_default().evolve(&decode(recorded)?);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn of(&self, org: &str) -> Option<&Quota> {
        self.quotas.get(org)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&String, &Quota)> {
        self.quotas.iter()
    }

    pub(super) fn usage(&self, org: &str, open_jobs: u64) -> Usage {
        let of = |counts: &BTreeMap<String, u64>| counts.get(org).copied().unwrap_or(0);
        [
            (Resource::Projects, of(&self.projects)),
            (Resource::OpenJobs, open_jobs),
            (Resource::StoredBytes, of(&self.stored_bytes)),
        ]
        .into()
    }
}

fn take(counts: &mut BTreeMap<String, u64>, org: &str, less: u64) {
    if let Some(count) = counts.get_mut(org) {
        *count = count.saturating_sub(less);
    }
}
