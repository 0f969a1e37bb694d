//! `flag_result` and `clear_flag`: a person doubts a result, or looked at a doubt and clears it with a reason.

use events::Event;
use events::access::Role;
use events::api::{ClearFlag, CommandReply, FlagResult};
use events::keys::{JobKey, check_code};
use serde_json::json;

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, load, reply};
use crate::auth::Principal;
use crate::domain::{Job, Refusal};
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;
/// The rule of a flag that a person set without naming one.
const BY_PERSON: &str = "doubted_by_person";
/// The longest message or reason, characters.
const MAX_TEXT: usize = 2000;

/// Flags a result. Keys in the answer: `job`, `rule`.
///
/// # Errors
/// `job_not_found`, `no_result`, `flag_exists`, `bad_text`, `bad_code`.
pub async fn flag_result(
    state: &AppState,
    principal: &Principal,
    args: FlagResult,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let rule = args.p_rule.unwrap_or_else(|| BY_PERSON.to_owned());
    check_code("rule", &rule)?;
    let message = text("p_message", &args.p_message)?;
    let place = (args.p_project_code, args.p_workload_code, args.p_run_number, args.p_scenario_code);
    change(state, principal, "flag_result", place, &rule, meta, |job| {
        let events = job.flag(&rule, &message)?;
        if events.is_empty() {
            return Err(Refusal::conflict("flag_exists", format!("{rule} was flagged already"))
                .hint("name another rule"));
        }
        Ok(events)
    })
    .await
}

/// Clears a flag. Keys in the answer: `job`, `rule`.
///
/// # Errors
/// `job_not_found`, `flag_not_found`, `reason_missing`, `bad_text`.
pub async fn clear_flag(
    state: &AppState,
    principal: &Principal,
    args: ClearFlag,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let reason = text("p_reason", &args.p_reason)?;
    let rule = args.p_rule;
    let place = (args.p_project_code, args.p_workload_code, args.p_run_number, args.p_scenario_code);
    change(state, principal, "clear_flag", place, &rule, meta, |job| job.clear_flag(&rule, &reason)).await
}

fn text(what: &str, text: &str) -> Result<String, Refusal> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > MAX_TEXT || text.chars().any(|c| c.is_control() && c != '\n')
    {
        return Err(Refusal::invalid(
            "bad_text",
            format!("{what} has 1 to {MAX_TEXT} characters, none of them control characters"),
        ));
    }
    Ok(text.to_owned())
}

async fn change(
    state: &AppState,
    principal: &Principal,
    command: &str,
    (project, workload, run, scenario): (String, String, u32, String),
    rule: &str,
    meta: RequestMeta,
    decide: impl Fn(&Job) -> Result<Vec<Event>, Refusal>,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let (project, _) = load::writable_project(&state.log, &caller, &project).await?;
    let key = JobKey { org: project.org, project: project.project, workload, run, scenario };
    let maker = Maker::of(principal, command, &meta);
    for _ in 0..TRIES {
        let job = load::job(&state.log, &key).await?;
        let events = decide(&job)?;
        let write = maker.write(key.stream(), Expected::Exact(job.version), &events, 0)?;
        match append(&state.log, vec![write]).await {
            Ok(position) => {
                return Ok(reply(position, [("job", json!(key.stream())), ("rule", json!(rule))]));
            }
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&key))
}
