//! `create_server_config_instance`: registers a server and makes the one-time token its agent enrols with.

use events::access::Role;
use events::api::{CommandReply, CreateServer};
use events::keys::ServerKey;
use serde_json::json;

use super::append::{Maker, append};
use super::{CommandError, RequestMeta, catalogue, load, reply};
use crate::auth::{Principal, agents};
use crate::domain::Server;
use crate::log::Expected;
use crate::state::AppState;

/// Registers a server, or makes another token for one that is registered.
/// Keys in the answer: `server`, `enrol_token`, `bootstrap_command`.
///
/// # Errors
/// `unknown_server_config`, `bad_code`, `bad_cost`.
pub async fn create_server_config_instance(
    state: &AppState,
    principal: &Principal,
    args: CreateServer,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Admin)?;
    let key = ServerKey { org: caller.org.clone(), config: args.p_config_code, hostname: args.p_hostname };
    state.work.catch_up().await?;
    catalogue::server_config(state, &caller.org, &key.config).await?;
    let recorded = load::stream(&state.log, &key.stream()).await?;
    let current = Server::load(&recorded)?;
    let events =
        Server::register(current.as_ref(), &key, args.p_comment.as_deref(), args.p_cost_per_hour_usd)?;
    let position = if events.is_empty() {
        recorded.last().map_or(0, |last| last.position)
    } else {
        let expected = current.as_ref().map_or(Expected::NoStream, |server| Expected::Exact(server.version));
        let maker = Maker::of(principal, "create_server_config_instance", &meta);
        append(&state.log, vec![maker.write(key.stream(), expected, &events, 0)?]).await?
    };
    let token = agents::create_enrol_token(&state.pool, &key, &caller.user, meta.now).await?;
    let token = token.reveal();
    let url = state.config.public_url.as_str().trim_end_matches('/');
    let command = format!("benchtrail-agent enrol --url {url} --token {token} && benchtrail-agent run");
    Ok(reply(
        position,
        [
            ("server", json!(key.stream())),
            ("enrol_token", json!(token)),
            ("bootstrap_command", json!(command)),
        ],
    ))
}
