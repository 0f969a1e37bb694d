//! `create_engine_args_set`, `clone_engine_args_set`, `update_engine_args_set`, `archive_engine_args_set`: an
//! organisation's own sets of engine arguments.

use events::access::Role;
use events::api::CommandReply;
use events::api_catalogue::{
    ArchiveEngineArgsSet, CloneEngineArgsSet, CreateEngineArgsSet, UpdateEngineArgsSet,
};
use events::catalogue::FrameworkRegistered;
use events::keys::PLATFORM_ORG;
use events::{Event, StreamKey};
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, catalogue, load, reply};
use crate::auth::Principal;
use crate::domain::{EngineArgsSet, Refusal};
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;

fn stream(org: &str, code: &str) -> StreamKey {
    StreamKey::new("engine_args_set", &[org, code])
}

/// Makes a set. Keys in the answer: `set_code`, `version`.
///
/// # Errors
/// `set_exists`, `unknown_framework`, `unknown_framework_version`, `unknown_model`, `unknown_accelerator`, and whatever
/// is wrong with a value.
pub async fn create_engine_args_set(
    state: &AppState,
    principal: &Principal,
    args: CreateEngineArgsSet,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    state.work.catch_up().await?;
    let org = &caller.org;
    let framework =
        catalogue::framework(state, org, &args.p_framework_code, &args.p_framework_version).await?;
    if let Some(model) = &args.p_model_code {
        catalogue::model(state, org, model).await?;
    }
    for code in &args.p_accelerator_codes {
        catalogue::accelerator(state, org, code).await?;
    }
    let events = EngineArgsSet::create(&args, &framework)?;
    begin(state, &Maker::of(principal, "create_engine_args_set", &meta), org, &args.p_set_code, &events).await
}

/// Makes a set like another. Keys in the answer: `set_code`, `version`.
///
/// # Errors
/// `unknown_engine_args_set`, `set_exists`, and whatever is wrong with a value.
pub async fn clone_engine_args_set(
    state: &AppState,
    principal: &Principal,
    args: CloneEngineArgsSet,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    state.work.catch_up().await?;
    let org = &caller.org;
    let from = catalogue::engine_args_set(state, org, &args.p_from_set_code, None).await?;
    let framework =
        framework_of(state, org, &from.facts.framework_code, &from.facts.framework_version).await?;
    let events = EngineArgsSet::clone_of(
        &from,
        &args.p_set_code,
        args.p_display_name.as_deref(),
        &args.p_values,
        args.p_notes.as_deref(),
        &framework,
    )?;
    begin(state, &Maker::of(principal, "clone_engine_args_set", &meta), org, &args.p_set_code, &events).await
}

/// Changes a set of the organisation's. Workloads keep the version they were made with. Keys in the answer: `set_code`,
/// `version`.
///
/// # Errors
/// `set_not_found`, `platforms_set`, `set_archived`, and whatever is wrong with a value.
pub async fn update_engine_args_set(
    state: &AppState,
    principal: &Principal,
    args: UpdateEngineArgsSet,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let maker = Maker::of(principal, "update_engine_args_set", &meta);
    for _ in 0..TRIES {
        let set = own(state, &caller.org, &args.p_set_code).await?;
        let facts = &set.facts;
        let framework =
            framework_of(state, &caller.org, &facts.framework_code, &facts.framework_version).await?;
        let events = set.update(&args, &framework)?;
        if let Some(done) = carry_on(state, &maker, &caller.org, &args.p_set_code, &set, &events).await? {
            return Ok(done);
        }
    }
    Err(CommandError::contended(&args.p_set_code))
}

/// Archives a set of the organisation's. Keys in the answer: `set_code`, `version`.
///
/// # Errors
/// `set_not_found`, `platforms_set`.
pub async fn archive_engine_args_set(
    state: &AppState,
    principal: &Principal,
    args: ArchiveEngineArgsSet,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let maker = Maker::of(principal, "archive_engine_args_set", &meta);
    for _ in 0..TRIES {
        let set = own(state, &caller.org, &args.p_set_code).await?;
        let events = set.archive();
        if let Some(done) = carry_on(state, &maker, &caller.org, &args.p_set_code, &set, &events).await? {
            return Ok(done);
        }
    }
    Err(CommandError::contended(&args.p_set_code))
}

async fn framework_of(
    state: &AppState,
    org: &str,
    code: &str,
    version: &str,
) -> Result<FrameworkRegistered, CommandError> {
    catalogue::framework(state, org, code, version).await
}

/// Appends a new set's first event. The platform's codes are taken: a workload would otherwise mean two sets by one name.
async fn begin(
    state: &AppState,
    maker: &Maker,
    org: &str,
    code: &str,
    events: &[Event],
) -> Result<CommandReply, CommandError> {
    let exists = || {
        Refusal::conflict("set_exists", format!("there is an engine args set {code:?} already"))
            .hint("choose another p_set_code; codes are never used twice")
    };
    if state.log.stream_version(&stream(PLATFORM_ORG, code)).await? > 0 {
        return Err(exists().into());
    }
    let write = maker.write(stream(org, code), Expected::NoStream, events, 0)?;
    match append(&state.log, vec![write]).await {
        Ok(position) => Ok(reply(position, [("set_code", json!(code)), ("version", json!(1))])),
        Err(NotAppended::Moved(_)) => Err(exists().into()),
        Err(NotAppended::Error(error)) => Err(error),
    }
}

/// A set that the organisation may change.
async fn own(state: &AppState, org: &str, code: &str) -> Result<EngineArgsSet, CommandError> {
    let recorded = load::stream(&state.log, &stream(org, code)).await?;
    if let Some(set) = EngineArgsSet::load(&recorded)? {
        return Ok(set);
    }
    if state.log.stream_version(&stream(PLATFORM_ORG, code)).await? > 0 {
        let message = format!("engine args set {code} is the platform's and cannot be changed");
        return Err(Refusal::forbidden("platforms_set", message)
            .hint("clone it and change the clone")
            .into());
    }
    Err(Refusal::not_found(
        "set_not_found",
        format!("the organisation has no engine args set {:?}", code.chars().take(100).collect::<String>()),
    )
    .hint("GET /api/v_framework_engine_args_sets lists the sets you may see")
    .into())
}

/// Appends a set's next event; nothing when somebody else was quicker.
async fn carry_on(
    state: &AppState,
    maker: &Maker,
    org: &str,
    code: &str,
    set: &EngineArgsSet,
    events: &[Event],
) -> Result<Option<CommandReply>, CommandError> {
    let stream = stream(org, code);
    let done =
        |position, version| Some(reply(position, [("set_code", json!(code)), ("version", json!(version))]));
    if events.is_empty() {
        let recorded = load::stream(&state.log, &stream).await?;
        return Ok(done(recorded.last().map_or(0, |last| last.position), set.version));
    }
    let write = maker.write(stream, Expected::Exact(set.version), events, 0)?;
    match append(&state.log, vec![write]).await {
        Ok(position) => Ok(done(position, set.version + 1)),
        Err(NotAppended::Moved(_)) => Ok(None),
        Err(NotAppended::Error(error)) => Err(error),
    }
}
