//! `create_server_config_instance`: registers a server and makes the one-time token its agent enrols with.

use events::Event;
use events::access::{EnrolTokenCreated, Role};
use events::api::{CommandReply, CreateServer};
use events::keys::ServerKey;
use events::server_host::ServerRegistered;
use serde_json::json;

use super::append::{Maker, append};
use super::{CommandError, RequestMeta, catalogue, load, reply};
use crate::api::bootstrap;
use crate::auth::sessions::access_stream;
use crate::auth::{Principal, agents};
use crate::domain::{Aggregate, Server};
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
    let file = bootstrap::script_filename(args.p_bootstrap_script_filename.as_deref())?;
    let facts = ServerRegistered {
        comment: args.p_comment,
        cost_per_hour_usd: args.p_cost_per_hour_usd,
        ip_address: args.p_ip_address,
    };
    let events = Server::register(current.as_ref(), &key, facts)?;
    let mut position = if events.is_empty() {
        recorded.last().map_or(0, |last| last.position)
    } else {
        let expected = current.as_ref().map_or(Expected::NoStream, |server| Expected::Exact(server.version));
        let maker = Maker::of(principal, "create_server_config_instance", &meta);
        append(&state.log, vec![maker.write(key.stream(), expected, &events, 0)?]).await?
    };
    // The event first: a token that works is never missing from the audit trail.
    let created = EnrolTokenCreated {
        server: key.stream().to_string(),
        expires_at: meta.now.plus_micros(agents::ENROL_TOKEN_S * 1_000_000),
    };
    let stream = access_stream(&caller.org, &caller.user);
    let maker = Maker::of(principal, "create_server_config_instance", &meta);
    let write = maker.write(stream, Expected::Any, &[Event::EnrolTokenCreated(created)], 1)?;
    position = position.max(append(&state.log, vec![write]).await?);
    let token = agents::create_enrol_token(&state.pool, &key, &caller.user, meta.now).await?;
    let token = token.reveal();
    let command = bootstrap::command(&state.config, token, file);
    Ok(reply(
        position,
        [
            ("server", json!(key.stream())),
            ("enrol_token", json!(token)),
            ("bootstrap_command", json!(command)),
        ],
    ))
}
