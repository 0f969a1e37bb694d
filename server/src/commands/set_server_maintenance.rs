//! `set_server_maintenance`: a server gets no new jobs until its maintenance ends.

use events::access::Role;
use events::api::{CommandReply, SetServerMaintenance};
use events::keys::ServerKey;
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, load, nudge, reply};
use crate::auth::Principal;
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;

/// Begins or ends a server's maintenance. What waits for it keeps waiting, a job that runs goes on. Keys in the answer:
/// `server`.
///
/// # Errors
/// `server_not_found`, `reason_missing`, `bad_text`.
pub async fn set_server_maintenance(
    state: &AppState,
    principal: &Principal,
    args: SetServerMaintenance,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Admin)?;
    let key = ServerKey { org: caller.org, config: args.p_config_code, hostname: args.p_hostname };
    let maker = Maker::of(principal, "set_server_maintenance", &meta);
    for _ in 0..TRIES {
        let server = load::registered_server(&state.log, &key).await?;
        let events = server.set_maintenance(args.p_on, args.p_reason.as_deref())?;
        let keys = [("server", json!(key.stream()))];
        if events.is_empty() {
            return Ok(reply(state.log.head().await?.position, keys));
        }
        let write = maker.write(key.stream(), Expected::Exact(server.version), &events, 0)?;
        match append(&state.log, vec![write]).await {
            Ok(position) => {
                if !args.p_on {
                    nudge::work_available(state, &key).await;
                }
                return Ok(reply(position, keys));
            }
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&key))
}
