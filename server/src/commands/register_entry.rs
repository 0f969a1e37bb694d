//! `register_model`, `register_framework_version`, `register_accelerator`, `register_server_config`: an organisation's
//! own entries of the catalogue. They stand before the platform's of the same code, for that organisation only.

use events::access::Role;
use events::api::CommandReply;
use events::api_catalogue::{
    RegisterAccelerator, RegisterFrameworkVersion, RegisterModel, RegisterServerConfig,
};
use events::keys::check_code;
use events::{Event, StreamKey};
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, load, reply};
use crate::auth::Principal;
use crate::domain::{Refusal, catalogue_entry, decode};
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;

/// Adds or changes a model. Keys in the answer: `stream`.
///
/// # Errors
/// `bad_code`, `bad_entry`.
pub async fn register_model(
    state: &AppState,
    principal: &Principal,
    args: RegisterModel,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    catalogue_entry::check_model_code(&args.p_model_code)?;
    let event = catalogue_entry::model(args.p_facts)?;
    register(state, principal, "register_model", "model", &[&args.p_model_code], event, &meta).await
}

/// Adds or changes a framework version. Keys in the answer: `stream`.
///
/// # Errors
/// `bad_code`, `bad_entry`.
pub async fn register_framework_version(
    state: &AppState,
    principal: &Principal,
    args: RegisterFrameworkVersion,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    check_code("framework code", &args.p_framework_code)?;
    check_code("framework version", &args.p_framework_version)?;
    let event = catalogue_entry::framework(&args.p_framework_code, args.p_facts)?;
    let parts = [args.p_framework_code.as_str(), args.p_framework_version.as_str()];
    register(state, principal, "register_framework_version", "framework", &parts, event, &meta).await
}

/// Adds or changes an accelerator type. Keys in the answer: `stream`.
///
/// # Errors
/// `bad_code`, `bad_entry`.
pub async fn register_accelerator(
    state: &AppState,
    principal: &Principal,
    args: RegisterAccelerator,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    check_code("accelerator code", &args.p_accelerator_code)?;
    let event = catalogue_entry::accelerator(args.p_facts)?;
    let parts = [args.p_accelerator_code.as_str()];
    register(state, principal, "register_accelerator", "accelerator", &parts, event, &meta).await
}

/// Adds or changes a server configuration. Keys in the answer: `stream`.
///
/// # Errors
/// `bad_code`, `bad_entry`.
pub async fn register_server_config(
    state: &AppState,
    principal: &Principal,
    args: RegisterServerConfig,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    check_code("server configuration code", &args.p_config_code)?;
    let event = catalogue_entry::server_config(args.p_facts)?;
    register(state, principal, "register_server_config", "config", &[&args.p_config_code], event, &meta).await
}

/// Appends the entry, unless it stands there already.
async fn register(
    state: &AppState,
    principal: &Principal,
    command: &str,
    kind: &str,
    parts: &[&str],
    event: Event,
    meta: &RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Admin)?;
    let maker = Maker::of(principal, command, meta);
    let all: Vec<&str> = std::iter::once(caller.org.as_str()).chain(parts.iter().copied()).collect();
    let stream = StreamKey::new(kind, &all);
    for _ in 0..TRIES {
        let recorded = load::stream(&state.log, &stream).await?;
        if let Some(last) = recorded.last()
            && decode(last)? == event
        {
            return Ok(reply(last.position, [("stream", json!(stream))]));
        }
        let expected = recorded.last().map_or(Expected::NoStream, |last| Expected::Exact(last.version));
        let write = maker.write(stream.clone(), expected, std::slice::from_ref(&event), 0)?;
        match append(&state.log, vec![write]).await {
            Ok(position) => return Ok(reply(position, [("stream", json!(stream))])),
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(Refusal::conflict("contended", format!("{stream} changes all the time")).into())
}
