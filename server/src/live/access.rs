//! Which events a reader may see: judged for each event at the moment it is shown, replays included.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use events::Event;
use events::envelope::Recorded;
use events::keys::{PLATFORM_ORG, ProjectKey, StreamKey};
use sqlx::PgPool;

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
    pub async fn load(log: &Log, pool: &PgPool) -> Result<Self, LogError> {
        let access = Self::default();
        let keys: Vec<String> = sqlx::query_scalar(
            "select stream_key from streams where stream_key >= 'project/' and stream_key < 'project0'",
        )
        .fetch_all(pool)
        .await?;
        for key in keys {
            let Ok(stream) = key.parse::<StreamKey>() else { continue };
            for event in log.read_stream(&stream, 1, i64::MAX).await? {
                access.fold(&event);
            }
        }
        Ok(access)
    }

    /// Takes an event into account; every event in order, those of other streams change nothing.
    pub fn fold(&self, event: &Recorded) {
        if event.stream.kind() != "project" {
            return;
        }
        let Ok(key) = ProjectKey::from_stream(&event.stream) else { return };
        let decoded = Event::decode(&event.event_type, event.schema_version, &event.payload);
        let mut projects = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        match decoded {
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

    /// Whether this reader may see this event.
    pub fn sees(&self, reader: &Visibility, event: &Recorded) -> bool {
        match event.stream.kind() {
            "blob" => match blob_of_job(event) {
                Some(job) => self.sees_stream(reader, &job),
                None => self.sees_stream(reader, &event.stream),
            },
            _ => self.sees_stream(reader, &event.stream),
        }
    }

    /// Whether this reader may see events of this stream.
    pub fn sees_stream(&self, reader: &Visibility, stream: &StreamKey) -> bool {
        let member = |org: &str| reader.org.as_deref() == Some(org);
        match stream.kind() {
            "project" | "workload" | "scenario" | "run" | "job" | "telemetry" | "progress" | "logs" => {
                self.sees_project(reader, stream)
            }
            // The catalogue is everybody's.
            "config" | "model" | "framework" | "tool" => stream.org() == PLATFORM_ORG || member(stream.org()),
            "server" | "org" | "blob" => member(stream.org()),
            // Accounts and what they did: their own.
            "user" | "access" => {
                stream.parts().get(1).is_some_and(|user| reader.user.as_deref() == Some(user.as_str()))
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

/// The job a blob belongs to: it is seen by those who see the job.
fn blob_of_job(event: &Recorded) -> Option<StreamKey> {
    match Event::decode(&event.event_type, event.schema_version, &event.payload) {
        Ok(Event::BlobStored(blob)) => blob.job?.parse().ok(),
        _ => None,
    }
}
