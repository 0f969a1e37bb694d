//! `cancel_job`: one job of a run.

use events::access::Role;
use events::api::{CancelJob, CommandReply};
use events::keys::JobKey;
use events::report::HeldAttempt;
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, advance_run, load, nudge, reply};
use crate::auth::Principal;
use crate::domain::Refusal;
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;

/// Cancels a job: at once where it waits, as a request where an agent holds it. Keys in the answer: `job`.
///
/// # Errors
/// `project_not_found`, `job_not_found`, `job_ended`.
pub async fn cancel_job(
    state: &AppState,
    principal: &Principal,
    args: CancelJob,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let (project, _) = load::writable_project(&state.log, &caller, &args.p_project_code).await?;
    let key = JobKey {
        org: project.org,
        project: project.project,
        workload: args.p_workload_code,
        run: args.p_run_number,
        scenario: args.p_scenario_code,
    };
    let maker = Maker::of(principal, "cancel_job", &meta);
    for _ in 0..TRIES {
        let job = load::job(&state.log, &key).await?;
        let events = job.cancel()?;
        if events.is_empty() {
            return Err(Refusal::conflict("cancel_requested", "the job is being cancelled already")
                .hint("it ends when its agent has stopped it")
                .into());
        }
        let write = maker.write(key.stream(), Expected::Exact(job.version), &events, 0)?;
        match append(&state.log, vec![write]).await {
            Ok(position) => {
                let job_key = json!(key.stream());
                if job.is_held() {
                    let held = HeldAttempt { job: key, attempt: job.attempt() };
                    nudge::cancel(state, &job.server, held).await;
                    return Ok(reply(position, [("job", job_key)]));
                }
                let next = advance_run::advance_run(state, &key.run_key(), None, meta.now).await?;
                return Ok(reply(next.unwrap_or(position), [("job", job_key)]));
            }
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&key))
}
