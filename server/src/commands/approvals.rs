//! `approve_dangerous_args`, `revoke_dangerous_args`: which arguments that load code or read paths may be used. The
//! agent's own policy still has the last word.

use events::access::Role;
use events::api::CommandReply;
use events::api_catalogue::{ApproveDangerousArgs, RevokeDangerousArgs};
use events::{Event, StreamKey};
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, catalogue, load, reply};
use crate::auth::Principal;
use crate::domain::{Approvals, Refusal};
use crate::log::Expected;
use crate::resolve::DangerousArg;
use crate::state::AppState;

const TRIES: u32 = 8;

fn stream(org: &str, program: &str, model: &str) -> StreamKey {
    StreamKey::new("approval", &[org, program, model])
}

/// The arguments that are not approved.
pub(super) async fn missing(
    state: &AppState,
    org: &str,
    model: &str,
    dangerous: &[DangerousArg],
) -> Result<Vec<DangerousArg>, CommandError> {
    let mut missing = Vec::new();
    for arg in dangerous {
        let events = load::stream(&state.log, &stream(org, &arg.program, model)).await?;
        if !Approvals::load(&events)?.covers(&arg.key, &arg.value) {
            missing.push(arg.clone());
        }
    }
    Ok(missing)
}

/// Refuses what is not approved.
///
/// # Errors
/// `dangerous_flags`.
pub(super) async fn require(
    state: &AppState,
    org: &str,
    model: &str,
    dangerous: &[DangerousArg],
) -> Result<(), CommandError> {
    let missing = missing(state, org, model, dangerous).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let flags: Vec<&str> = missing.iter().map(|arg| arg.flag.as_str()).collect();
    Err(Refusal::forbidden(
        "dangerous_flags",
        format!("{} need an administrator's approval", flags.join(", ")),
    )
    .because("these flags load code or read paths on the server")
    .hint("remove them, or ask an administrator to approve them with approve_dangerous_args")
    .into())
}

/// Approves exact values of arguments for one program and one model. Keys in the answer: `stream`.
///
/// # Errors
/// `no_args`, `bad_argument`, `bad_reason`, `unknown_model`, `unknown_program`.
pub async fn approve_dangerous_args(
    state: &AppState,
    principal: &Principal,
    args: ApproveDangerousArgs,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Admin)?;
    state.work.catch_up().await?;
    catalogue::model(state, &caller.org, &args.p_model_code).await?;
    let known = |kind| state.work.read(|index| index.catalogue_codes(kind, &caller.org));
    if !known("framework").contains(&args.p_program_code) && !known("tool").contains(&args.p_program_code) {
        let shown: String = args.p_program_code.chars().take(100).collect();
        return Err(Refusal::invalid(
            "unknown_program",
            format!("{shown:?} is neither a framework nor a tool"),
        )
        .hint("name the code of a framework, a sidecar or a tool in the catalogue")
        .into());
    }
    let stream = stream(&caller.org, &args.p_program_code, &args.p_model_code);
    let decide = |approvals: &Approvals| approvals.grant(&args.p_args, args.p_reason.as_deref());
    change(state, &Maker::of(principal, "approve_dangerous_args", &meta), stream, decide).await
}

/// Takes approvals back. Runs that were started go on. Keys in the answer: `stream`.
///
/// # Errors
/// `no_args`, `bad_reason`.
pub async fn revoke_dangerous_args(
    state: &AppState,
    principal: &Principal,
    args: RevokeDangerousArgs,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Admin)?;
    let stream = stream(&caller.org, &args.p_program_code, &args.p_model_code);
    let decide = |approvals: &Approvals| approvals.revoke(&args.p_keys, args.p_reason.as_deref());
    change(state, &Maker::of(principal, "revoke_dangerous_args", &meta), stream, decide).await
}

async fn change(
    state: &AppState,
    maker: &Maker,
    stream: StreamKey,
    decide: impl Fn(&Approvals) -> Result<Vec<Event>, Refusal>,
) -> Result<CommandReply, CommandError> {
    for _ in 0..TRIES {
        let recorded = load::stream(&state.log, &stream).await?;
        let approvals = Approvals::load(&recorded)?;
        let events = decide(&approvals)?;
        if events.is_empty() {
            let position = recorded.last().map_or(0, |last| last.position);
            return Ok(reply(position, [("stream", json!(stream))]));
        }
        let expected =
            if approvals.version == 0 { Expected::NoStream } else { Expected::Exact(approvals.version) };
        match append(&state.log, vec![maker.write(stream.clone(), expected, &events, 0)?]).await {
            Ok(position) => return Ok(reply(position, [("stream", json!(stream))])),
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&stream))
}
