//! `cancel_run`: the request and what it means for every unfinished job, in one append.

use events::access::Role;
use events::api::{CancelRun, CommandReply};
use events::keys::{RunKey, WorkloadKey};
use events::report::HeldAttempt;
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, advance_run, load, nudge, reply};
use crate::auth::Principal;
use crate::domain::Refusal;
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;

/// Cancels a run: jobs that wait end at once, a job that an agent holds ends when the agent says so.
/// Keys in the answer: `run`.
///
/// # Errors
/// `project_not_found`, `run_not_found`, `run_finished`.
pub async fn cancel_run(
    state: &AppState,
    principal: &Principal,
    args: CancelRun,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let (project, _) = load::writable_project(&state.log, &caller, &args.p_project_code).await?;
    let workload = WorkloadKey { org: project.org, project: project.project, workload: args.p_workload_code };
    let key = RunKey {
        org: workload.org,
        project: workload.project,
        workload: workload.workload,
        run: args.p_run_number,
    };
    let maker = Maker::of(principal, "cancel_run", &meta);
    for _ in 0..TRIES {
        let run = load::run(&state.log, &key).await?;
        let events = run.cancel()?;
        let mut writes = Vec::new();
        if !events.is_empty() {
            writes.push(maker.write(key.stream(), Expected::Exact(run.version), &events, 0)?);
        }
        let mut held = Vec::new();
        for (index, code) in run.scenario_codes.iter().enumerate() {
            let job_key = key.job(code);
            let job = load::job(&state.log, &job_key).await?;
            if job.phase.is_terminal() {
                continue;
            }
            if job.is_held() {
                held.push(HeldAttempt { job: job_key.clone(), attempt: job.attempt() });
            }
            let events = job.cancel()?;
            if !events.is_empty() {
                writes.push(maker.write(job_key.stream(), Expected::Exact(job.version), &events, index)?);
            }
        }
        if writes.is_empty() {
            return Err(Refusal::conflict("cancel_requested", "the run is being cancelled already")
                .hint("a job that runs ends when its agent has stopped it")
                .into());
        }
        match append(&state.log, writes).await {
            Ok(position) => {
                for attempt in held {
                    nudge::cancel(state, &run.server, attempt).await;
                }
                let finished = advance_run::advance_run(state, &key, None, meta.now).await?;
                return Ok(reply(finished.unwrap_or(position), [("run", json!(key.stream()))]));
            }
            // A job moved on in the meantime: look again.
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&key))
}
