//! Which events a reader may see: judged for each event at the moment it is shown, replays included.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use events::Event;
use events::api::EventView;
use events::envelope::Recorded;
use events::keys::{PLATFORM_ORG, ProjectKey, StreamKey};
use events::saved_view::SHARED;
use events::system::UPLOAD;

use super::view::{decode, event_view};
use crate::auth::Visibility;
use crate::log::{Log, LogError};

/// How a project may be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProjectAccess {
    visibility: &'static str,
    owner: String,
}

/// Who may see which project, as the log says now. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Access(Arc<RwLock<HashMap<ProjectKey, ProjectAccess>>>);

impl Access {
    /// Reads every project's stream.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn load(log: &Log) -> Result<Self, LogError> {
        let access = Self::default();
        for event in log.read_kind("project").await? {
            access.fold(&event.stream, &event_view(&event));
        }
        Ok(access)
    }

    /// Takes an event into account; every event in order, those of other streams change nothing.
    pub fn fold(&self, stream: &StreamKey, event: &EventView) {
        if stream.kind() != "project" {
            return;
        }
        let Ok(key) = ProjectKey::from_stream(stream) else { return };
        let mut projects = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        match decode(event) {
            Ok(Event::ProjectCreated(created)) => {
                let visibility = created.visibility.as_str();
                projects.insert(key, ProjectAccess { visibility, owner: created.owner });
            }
            Ok(Event::ProjectVisibilityChanged(changed)) => {
                if let Some(project) = projects.get_mut(&key) {
                    project.visibility = changed.visibility.as_str();
                }
            }
            _ => {}
        }
    }

    /// Whether this reader may see this event: as others of its stream, a blob as its job, an upload as its sender.
    pub fn sees(&self, reader: &Visibility, event: &Recorded) -> bool {
        match event.stream.kind() {
            "blob" => self.sees_stream(reader, &seen_with(&event.stream, &event_view(event))),
            _ => self.sees_stream(reader, &event.stream),
        }
    }

    /// Whether this reader may see events of this stream. Of a blob's stream not all of them: see [`Self::sees`].
    pub fn sees_stream(&self, reader: &Visibility, stream: &StreamKey) -> bool {
        let member = |org: &str| reader.org.as_deref() == Some(org);
        match stream.kind() {
            "project" | "workload" | "scenario" | "run" | "job" | "telemetry" | "progress" | "logs"
            | "import" => self.sees_project(reader, stream),
            // The catalogue is everybody's.
            "config" | "model" | "framework" | "tool" | "accelerator" | "engine_args_set"
            | "prompt_source" => stream.org() == PLATFORM_ORG || member(stream.org()),
            "server" | "org" | "quota" | "blob" | "approval" | "tool_args_set" => member(stream.org()),
            // The organisation's, or one person's in it.
            "saved_view" => {
                let owner = stream.parts().into_iter().nth(1).unwrap_or_default();
                member(stream.org()) && (owner == SHARED || reader.user.as_deref() == Some(owner.as_str()))
            }
            // Accounts and what they did: their own, and their organisation's administrators'.
            "user" | "access" => {
                let own =
                    stream.parts().get(1).is_some_and(|user| reader.user.as_deref() == Some(user.as_str()));
                own || (reader.admin && member(stream.org()))
            }
            "system" => reader.org.is_some(),
            _ => false,
        }
    }

    fn sees_project(&self, reader: &Visibility, stream: &StreamKey) -> bool {
        let mut parts = stream.parts().into_iter();
        let (Some(org), Some(project)) = (parts.next(), parts.next()) else { return false };
        let key = ProjectKey { org, project };
        let projects = self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        projects.get(&key).is_some_and(|p| reader.sees(&key.org, p.visibility, &p.owner))
    }
}

/// The stream whose readers may see this event: a blob is seen by those who see its job, anything else with its own.
/// Until a command names it, an upload is its sender's alone: whoever knows its hash could name it.
pub(super) fn seen_with(stream: &StreamKey, event: &EventView) -> StreamKey {
    let other = match stream.kind() {
        "blob" => match decode(event) {
            Ok(Event::BlobStored(blob)) if blob.purpose == UPLOAD => {
                Some(StreamKey::new("user", &[PLATFORM_ORG, &event.actor_id]))
            }
            Ok(Event::BlobStored(blob)) => blob.job.and_then(|job| job.parse().ok()),
            _ => None,
        },
        _ => None,
    };
    other.unwrap_or_else(|| stream.clone())
}
