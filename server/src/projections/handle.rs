//! What the rest of the server knows of the projections: how far they are, and how to wait for them.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

/// What a projection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProjectionState {
    /// It follows the log.
    Live,
    /// It follows the log, but some events could not be folded: they are quarantined.
    Degraded,
    /// This version of the server reads another shape than the tables have: it is being rebuilt beside them.
    Rebuilding,
}

/// One projection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ProjectionStatus {
    /// Its name.
    pub name: String,
    /// Which set of its tables is live.
    pub generation: i32,
    /// The version of its code that fills them.
    pub code_version: i32,
    /// The last position that is folded in.
    pub position: i64,
    /// What it is doing.
    pub state: ProjectionState,
    /// Events that could not be folded.
    pub quarantined: i64,
    /// Events whose type this version of the server does not know.
    pub unknown: i64,
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Status {
    /// Whether this process is the one that folds.
    pub leader: bool,
    /// Every projection, by name.
    pub projections: Vec<ProjectionStatus>,
}

impl Status {
    /// The position that every projection has reached which follows the log. One that is rebuilt after an update of the
    /// program stands still until then, see [`Status::rebuilding`].
    pub fn position(&self) -> i64 {
        let following = self.projections.iter().filter(|p| p.state != ProjectionState::Rebuilding);
        following.map(|p| p.position).min().unwrap_or(0)
    }

    /// The first of these projections that is being rebuilt, and stands still before `position`.
    pub fn rebuilding(&self, names: &[&str], position: i64) -> Option<&ProjectionStatus> {
        self.projections.iter().find(|p| {
            p.state == ProjectionState::Rebuilding
                && p.position < position
                && names.contains(&p.name.as_str())
        })
    }

    /// Whether some events could not be folded.
    pub fn degraded(&self) -> bool {
        self.projections.iter().any(|p| p.state == ProjectionState::Degraded)
    }
}

/// The read tables have not reached the position in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the read tables stand at position {reached}, not yet at {wanted}; ask again")]
pub struct Behind {
    /// The position asked for.
    pub wanted: i64,
    /// The position reached.
    pub reached: i64,
}

/// A handle on the projections; cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    status: watch::Receiver<Arc<Status>>,
}

impl Handle {
    /// A handle that follows a status somebody else keeps.
    pub(super) fn new(status: watch::Receiver<Arc<Status>>) -> Self {
        Self { status }
    }

    /// Waits until every projection that follows the log has folded in the event at `position`.
    ///
    /// # Errors
    /// [`Behind`] when that did not happen in time.
    pub async fn wait_for(&self, position: i64, timeout: Duration) -> Result<(), Behind> {
        let mut status = self.status.clone();
        let reached = tokio::time::timeout(timeout, status.wait_for(|s| s.position() >= position)).await;
        match reached {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Behind { wanted: position, reached: self.status.borrow().position() }),
        }
    }

    /// How far every projection is.
    pub fn status(&self) -> Arc<Status> {
        self.status.borrow().clone()
    }
}
