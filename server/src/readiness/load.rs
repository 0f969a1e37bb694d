//! Is the load sound, and can it be turned into commands?

use super::{Facts, Finding, place};

/// Fewer requests than this are a smoke test.
const ENOUGH_REQUESTS: u32 = 100;

/// Enough requests to keep the concurrency up and to make percentiles.
pub(super) fn load_is_sound(facts: &Facts<'_>) -> Finding {
    if facts.scenarios.is_empty() {
        return Finding::fails("There is no scenario.", "Choose at least one concurrency.");
    }
    if let Some(scenario) =
        facts.scenarios.iter().find(|scenario| scenario.num_requests < scenario.concurrency)
    {
        return Finding::warning(
            format!(
                "{} sends {} requests at concurrency {}: that many are never in flight at once.",
                scenario.code(),
                scenario.num_requests,
                scenario.concurrency
            ),
            format!("Send at least {} requests.", u64::from(scenario.concurrency) * 10),
        );
    }
    let fewest = facts.scenarios.iter().map(|scenario| scenario.num_requests).min().unwrap_or(0);
    if fewest < ENOUGH_REQUESTS {
        return Finding::warning(
            format!("{fewest} requests a scenario are a smoke test, not a measurement."),
            "Send hundreds to thousands for numbers you report.",
        );
    }
    if let Some(slots) =
        facts.engine_arg(&["parallel", "max_num_seqs", "max_running_requests", "max_batch_size"])
        && let Some(scenario) =
            facts.scenarios.iter().find(|scenario| u64::from(scenario.concurrency) > slots)
    {
        return Finding::warning(
            format!(
                "{} keeps {} requests in flight, the server takes {slots} at once: the rest waits, and its time to first \
                 token includes the waiting.",
                scenario.code(),
                scenario.concurrency
            ),
            "Raise the server's limit, unless the waiting is what you measure.",
        );
    }
    Finding::ok(format!("At least {fewest} requests a scenario."))
}

/// Templates and arguments turn into command lines.
pub(super) fn commands_resolve(facts: &Facts<'_>) -> Finding {
    match facts.commands {
        None => Finding::unknown("there is no scenario to resolve commands for"),
        Some(Err(refusal)) => Finding::fails(
            place::sentence(&refusal.message),
            place::sentence(refusal.hint.as_deref().unwrap_or("see the message")),
        ),
        Some(Ok(commands)) if !commands.dangerous_flags.is_empty() => Finding::warning(
            format!("{} load code or read paths on the server.", commands.dangerous_flags.join(", ")),
            "An administrator must start this run, and the agent's own policy must allow it.",
        ),
        Some(Ok(_)) => Finding::ok("Every placeholder is filled."),
    }
}
