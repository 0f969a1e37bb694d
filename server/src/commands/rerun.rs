//! `rerun`: an earlier run once more, as a run of its own.

use events::access::Role;
use events::api::{CommandReply, Rerun, StartRun};
use events::job::JobPhase;
use events::keys::RunKey;

use super::append::Maker;
use super::{CommandError, RequestMeta, load, start_run};
use crate::auth::Principal;
use crate::domain::Refusal;
use crate::state::AppState;

/// Starts the scenarios of an earlier run again, on its server or another. Readiness is judged anew and the commands are
/// resolved anew. Keys in the answer: those of `start_run`.
///
/// # Errors
/// `project_not_found`, `run_not_found`, `no_failed_jobs`, and those of `start_run`.
pub async fn rerun(
    state: &AppState,
    principal: &Principal,
    args: Rerun,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let (project, _) = load::writable_project(&state.log, &caller, &args.p_project_code).await?;
    let key = RunKey {
        org: project.org,
        project: project.project,
        workload: args.p_workload_code.clone(),
        run: args.p_run_number,
    };
    let run = load::run(&state.log, &key).await?;
    let mut codes = run.scenario_codes.clone();
    if args.p_only_failed {
        codes.clear();
        for code in &run.scenario_codes {
            let phase = load::job(&state.log, &key.job(code)).await?.phase;
            if matches!(phase, JobPhase::Failed | JobPhase::Lost) {
                codes.push(code.clone());
            }
        }
        if codes.is_empty() {
            return Err(Refusal::conflict("no_failed_jobs", "no job of the run failed")
                .hint("leave p_only_failed out to execute all of its scenarios again")
                .into());
        }
    }
    let start = StartRun {
        p_project_code: args.p_project_code,
        p_workload_code: args.p_workload_code,
        p_config_code: args.p_config_code.unwrap_or(run.server.config),
        p_hostname: args.p_hostname.unwrap_or(run.server.hostname),
        p_scenario_codes: Some(codes),
    };
    start_run::start(state, principal, start, Some(key.run), &Maker::of(principal, "rerun", &meta)).await
}
