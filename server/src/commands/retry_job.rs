//! `retry_job`: a failed job of a run is tried again, in that run.

use events::access::Role;
use events::api::{CommandReply, RetryJob};
use events::keys::JobKey;
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, advance_run, load, reply};
use crate::auth::Principal;
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;

/// Has a failed or lost job tried again: it waits for its turn; a run that had finished goes on. The commands are those
/// of the run, so that its results stay comparable. Keys in the answer: `run`, `job`.
///
/// # Errors
/// `project_not_found`, `project_archived`, `job_not_found`, `job_not_failed`, `server_not_found`.
pub async fn retry_job(
    state: &AppState,
    principal: &Principal,
    args: RetryJob,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let (project, facts) = load::writable_project(&state.log, &caller, &args.p_project_code).await?;
    facts.check_open()?;
    let key = JobKey {
        org: project.org,
        project: project.project,
        workload: args.p_workload_code,
        run: args.p_run_number,
        scenario: args.p_scenario_code,
    };
    let run_key = key.run_key();
    let maker = Maker::of(principal, "retry_job", &meta);
    for _ in 0..TRIES {
        let job = load::job(&state.log, &key).await?;
        let run = load::run(&state.log, &run_key).await?;
        // A job for a server that is gone would wait for ever.
        load::registered_server(&state.log, &run.server).await?;
        let mut writes = Vec::new();
        let reopened = run.reopen();
        if !reopened.is_empty() {
            writes.push(maker.write(run_key.stream(), Expected::Exact(run.version), &reopened, 0)?);
        }
        writes.push(maker.write(key.stream(), Expected::Exact(job.version), &job.retry()?, 0)?);
        match append(&state.log, writes).await {
            Ok(position) => {
                let next = advance_run::advance_run(state, &run_key, None, meta.now).await?;
                let keys = [("run", json!(run_key.stream())), ("job", json!(key.stream()))];
                return Ok(reply(next.unwrap_or(position), keys));
            }
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&key))
}
