//! `remove_server`: a server leaves the fleet. Its agent is let in no more; what it measured stays.

use events::access::Role;
use events::api::{CommandReply, RemoveServer};
use events::keys::ServerKey;
use serde_json::json;

use super::append::{Maker, append};
use super::{CommandError, RequestMeta, load, reply};
use crate::auth::{Principal, agents};
use crate::domain::Refusal;
use crate::log::Expected;
use crate::state::AppState;

/// Removes a server that has no work. Keys in the answer: `server`.
///
/// # Errors
/// `server_not_found`, `server_busy`.
pub async fn remove_server(
    state: &AppState,
    principal: &Principal,
    args: RemoveServer,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Admin)?;
    let key = ServerKey { org: caller.org, config: args.p_config_code, hostname: args.p_hostname };
    let server = load::registered_server(&state.log, &key).await?;
    state.work.catch_up().await?;
    let open = state.work.read(|index| index.open_runs());
    let waiting: Vec<String> = open
        .into_iter()
        .filter(|(_, run)| run.server == key)
        .map(|(run, _)| run.stream().to_string())
        .collect();
    if !waiting.is_empty() {
        return Err(Refusal::conflict("server_busy", "the server has runs that are not finished")
            .because(waiting.join(", "))
            .hint("wait for them, or stop them with cancel_run or cancel_stale_jobs")
            .into());
    }
    let maker = Maker::of(principal, "remove_server", &meta);
    let write = maker.write(key.stream(), Expected::Exact(server.version), &server.remove(), 0)?;
    let position = append(&state.log, vec![write]).await?;
    agents::revoke(&state.pool, &key, meta.now).await?;
    Ok(reply(position, [("server", json!(key.stream()))]))
}
