//! `cancel_stale_jobs`: stops the runs that wait for servers from which nothing is heard.

use events::access::Role;
use events::api::{CancelRun, CancelStaleJobs, CommandReply};
use events::keys::{RunKey, ServerKey};
use events::server_host::ServerState;
use serde_json::json;

use super::{CommandError, RequestMeta, cancel_run, reply};
use crate::auth::Principal;
use crate::state::AppState;

/// Cancels every unfinished run on a stale, offline or removed server that the caller may change.
/// Keys in the answer: `runs`, the stream keys of those that were cancelled.
///
/// # Errors
/// The log does not answer.
pub async fn cancel_stale_jobs(
    state: &AppState,
    principal: &Principal,
    args: CancelStaleJobs,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    state.work.catch_up().await?;
    let wanted = |server: &ServerKey| {
        server.org == caller.org
            && args.p_config_code.as_ref().is_none_or(|config| *config == server.config)
            && args.p_hostname.as_ref().is_none_or(|hostname| *hostname == server.hostname)
    };
    let stale: Vec<RunKey> = state.work.read(|index| {
        let silent = |server: &ServerKey| {
            index.server(server).is_none_or(|server| {
                server.removed || matches!(server.state, ServerState::Stale | ServerState::Offline)
            })
        };
        let open = index.open_runs().into_iter();
        open.filter(|(_, run)| wanted(&run.server) && silent(&run.server)).map(|(key, _)| key).collect()
    });
    let mut position = state.log.head().await?.position;
    let mut cancelled = Vec::new();
    for key in stale {
        let run = CancelRun {
            p_project_code: key.project.clone(),
            p_workload_code: key.workload.clone(),
            p_run_number: key.run,
        };
        // Each run's events have ids of their own: one key cannot stand for all of them.
        let meta = RequestMeta { idempotency_key: None, ..meta.clone() };
        match cancel_run::cancel_run(state, principal, run, meta).await {
            Ok(done) => {
                position = position.max(done.position);
                cancelled.push(key.stream().to_string());
            }
            // Somebody else's, or ended meanwhile.
            Err(error) if matches!(error.status, 403 | 404 | 409) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(reply(position, [("runs", json!(cancelled))]))
}
