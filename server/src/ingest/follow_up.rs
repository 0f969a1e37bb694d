//! What follows from an ended job. The watch does the same for what a crash left undone, so losing it here only delays it.

use events::keys::JobKey;
use uuid::Uuid;

use crate::state::AppState;
use crate::{clock, commands};

/// A job's end is in the log: its result is checked, and its run goes on. Beside the answer to the agent.
pub(super) fn job_ended(state: &AppState, job: JobKey, event_id: Uuid) {
    let state = state.clone();
    tokio::spawn(async move {
        let done = commands::advance_run::job_ended(&state, &job, Some(event_id), clock::now()).await;
        if let Err(error) = done {
            tracing::warn!(%job, %error, "an ended job's run was not advanced; the watch will do it");
        }
    });
}
