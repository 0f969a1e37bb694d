//! The rules, each a small function: what is odd, or nothing.

use std::collections::BTreeMap;

use events::external_figures::KvCacheFigures;
use events::foreign::ForeignFigures;
use events::tools::ToolCode;
use events::workload::ScenarioSpec;

use serde_json::Value;

use super::{Facts, TelemetryFacts};
use crate::domain::Job;
use crate::resolve::SERVED_MODEL;

/// The arguments that say by which name a server has the model.
const SERVED_NAMES: &[&str] = &[SERVED_MODEL, "alias"];

/// Fewer succeeded requests than this are a smoke test, not a measurement.
const ENOUGH_REQUESTS: u64 = 100;
/// Percent of failed requests above which the rest may not be typical.
const HIGH_ERROR_RATE_PCT: f64 = 1.0;
/// The share of the asked output length below which answers count as truncated.
const TRUNCATED_BELOW: f64 = 0.5;
/// The share of prompt tokens from the server's cache above which prefill was not measured.
const CACHED_ABOVE: f64 = 0.1;
/// Prompt tokens that every request may share whatever is asked: the chat template and the system message.
const COMMON_PREFIX_TOKENS: u64 = 64;
/// The share of the taken samples that must be in the log.
const ENOUGH_SAMPLES: f64 = 0.9;

fn tool(facts: &Facts<'_>) -> ToolCode {
    ToolCode::of(&facts.job.workload.tool_code).unwrap_or(ToolCode::MetrumbenchLlm)
}

fn succeeded(facts: &Facts<'_>) -> u64 {
    facts.output.summary.figures.requests.succeeded
}

/// The model server serves other models than the one that the result is credited to.
pub(super) fn model_not_served(job: &Job, attempt: u32) -> Option<String> {
    let served = &job.attempts.iter().find(|found| found.number == attempt)?.served_models;
    let told = |args: &BTreeMap<String, Value>| -> Vec<String> {
        let found = SERVED_NAMES.iter().filter_map(|key| args.get(*key)?.as_str());
        found.map(str::to_owned).collect()
    };
    let mut names = vec![job.workload.model_code.clone()];
    names.extend(told(&job.workload.tool_args));
    names.extend(told(&job.commands.engine_args));
    if served.is_empty() || served.iter().any(|model| names.iter().any(|name| is_model(model, name))) {
        return None;
    }
    let shown: Vec<&str> = served.iter().take(5).map(String::as_str).collect();
    Some(format!(
        "the model server serves {}, not {}: the figures are not this model's. Serve the workload's model, or say by \
         which name the server has it (tool argument served_model_name).",
        shown.join(", "),
        job.workload.model_code
    ))
}

/// The model server is another version than the one that the result is credited to.
pub(super) fn other_version(job: &Job, attempt: u32) -> Option<String> {
    let attempt = job.attempts.iter().find(|found| found.number == attempt)?;
    let said = attempt.framework_version.as_deref()?;
    let named = job.workload.framework_version.as_str();
    // A build of a release has what it was built for behind a `+`.
    let release = said.strip_prefix('v').unwrap_or(said).split('+').next().unwrap_or(said);
    (release != named).then(|| {
        format!(
            "the model server says that it is {code} {said}, the workload says {named}: the figures are not that \
             version's. Install {named} on the host, or name the version that it has.",
            code = job.workload.framework_code
        )
    })
}

/// Whether a name that a server gives a model is that of a model: without who publishes it, a file's ending and precision,
/// or a tag that means the newest.
fn is_model(served: &str, name: &str) -> bool {
    let last = |text: &str| text.rsplit(['/', '\\']).next().unwrap_or(text).to_lowercase();
    let (served, name) = (last(served), last(name));
    let file = served.strip_suffix(".gguf").and_then(|file| file.strip_prefix(name.as_str()));
    served.strip_suffix(":latest").unwrap_or(&served) == name
        || file.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', '_']))
}

/// Requests succeeded in no time at all.
pub(super) fn all_zero_latencies(facts: &Facts<'_>) -> Option<String> {
    if succeeded(facts) == 0 {
        return None;
    }
    let slowest = facts.output.summary.figures.response_time_ms.as_ref().and_then(|times| times.max);
    if slowest.is_some_and(|slowest| slowest > 0.0) {
        return None;
    }
    Some(format!(
        "{} requests succeeded, but every latency is zero or missing: the framework did not serve them. \
         Read the Framework log.",
        succeeded(facts)
    ))
}

/// Answers without tokens, or with more than the cap allows.
pub(super) fn implausible_tokens(facts: &Facts<'_>) -> Option<String> {
    let tokens = facts.output.summary.figures.completion_tokens.as_ref()?;
    if succeeded(facts) > 0 && tokens.n > 0 && tokens.total == 0 {
        return Some(format!(
            "{} requests succeeded with no completion token at all. Read the Framework log.",
            succeeded(facts)
        ));
    }
    let cap = facts.job.scenario.max_tokens.or(facts.job.scenario.output_sequence_length).map(u64::from)?;
    let most = tokens.max?;
    // Some servers count the end-of-sequence token, which the cap does not.
    (most > cap + 1).then(|| {
        format!(
            "an answer has {most} completion tokens, but requests were capped at {cap}: the server ignores the cap \
             or counts otherwise. Compare the request log with the server's usage."
        )
    })
}

/// The server did not say how many tokens it generated.
pub(super) fn token_counts_missing(facts: &Facts<'_>) -> Option<String> {
    if !tool(facts).counts_tokens() {
        return None;
    }
    let figures = &facts.output.summary.figures;
    let counted = figures.completion_tokens.as_ref().map_or(0, |tokens| tokens.n);
    (counted < succeeded(facts)).then(|| {
        format!(
            "the server gave its usage for {counted} of {} answers, so token rates are missing or too low. \
             Use a server version that reports usage, also when streaming.",
            succeeded(facts)
        )
    })
}

/// Answers far shorter than asked for.
pub(super) fn truncated(facts: &Facts<'_>) -> Option<String> {
    short_answers(&facts.job.scenario, facts.output.summary.figures.completion_tokens.as_ref()?.avg?)
}

/// Answers of so many tokens on average are far shorter than the scenario asks for.
pub(super) fn short_answers(scenario: &ScenarioSpec, average: f64) -> Option<String> {
    let asked = scenario.output_sequence_length?;
    (average > 0.0 && average < TRUNCATED_BELOW * f64::from(asked)).then(|| {
        format!(
            "answers have {average:.0} tokens on average where {asked} were asked for: the context may be too short, \
             or the model ends early. Raise the context length, or choose the output length the model gives."
        )
    })
}

/// Prompts far shorter than asked for: a context too short cuts them in silence, and speed then looks good.
pub(super) fn prompts_cut(facts: &Facts<'_>) -> Option<String> {
    short_prompts(&facts.job.scenario, facts.output.summary.figures.prompt_tokens.as_ref()?.avg?)
}

/// Prompts of so many tokens on average are far shorter than the scenario asks for.
pub(super) fn short_prompts(scenario: &ScenarioSpec, average: f64) -> Option<String> {
    let asked = scenario.input_sequence_length?;
    (average > 0.0 && average < TRUNCATED_BELOW * f64::from(asked)).then(|| {
        format!(
            "the server counted {average:.0} prompt tokens on average where {asked} were asked for: it may have cut \
             the prompts. Raise the context length, or calibrate the prompts for this model."
        )
    })
}

/// One of several model servers answered nothing.
pub(super) fn idle_replica(facts: &Facts<'_>) -> Option<String> {
    let endpoints = &facts.output.summary.endpoints;
    if endpoints.len() < 2 || succeeded(facts) == 0 {
        return None;
    }
    let idle: Vec<&str> = endpoints
        .iter()
        .filter(|endpoint| endpoint.weight > 0 && endpoint.figures.requests.succeeded == 0)
        .map(|endpoint| endpoint.name.as_str())
        .collect();
    (!idle.is_empty()).then(|| {
        format!(
            "{} of {} model servers answered no request ({}): the figures are not those of the whole host. \
             Read the Framework log, or raise the concurrency.",
            idle.len(),
            endpoints.len(),
            idle.join(", ")
        )
    })
}

/// Many requests failed.
pub(super) fn high_error_rate(facts: &Facts<'_>) -> Option<String> {
    let errors = &facts.output.summary.figures.errors;
    let rate = errors.rate_pct?;
    (rate > HIGH_ERROR_RATE_PCT).then(|| {
        let kinds: Vec<String> =
            errors.by_type.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let oom = if errors.oom_detected { " A message spoke of memory running out." } else { "" };
        format!(
            "{rate:.1} % of the requests failed ({}), and the figures describe only the rest.{oom} \
             Read the Tool log, then lower the concurrency.",
            kinds.join(", ")
        )
    })
}

/// Too few answers for percentiles.
pub(super) fn too_few_requests(facts: &Facts<'_>) -> Option<String> {
    // Images take seconds each: four rounds of the concurrency are what the platform itself sends.
    if tool(facts) == ToolCode::MetrumbenchImagegen {
        let wanted = tool(facts).default_num_requests(facts.job.scenario.concurrency);
        return (succeeded(facts) < u64::from(wanted)).then(|| {
            format!(
                "{} requests succeeded: a smoke test, not a measurement. Send at least {wanted}.",
                succeeded(facts)
            )
        });
    }
    few_requests(succeeded(facts))
}

/// Too few of them for percentiles.
pub(super) fn few_requests(succeeded: u64) -> Option<String> {
    (succeeded < ENOUGH_REQUESTS).then(|| {
        format!(
            "{succeeded} requests succeeded: a smoke test, not a measurement. Use hundreds to thousands for numbers \
             you report."
        )
    })
}

/// Fewer conversations were replayed than were to be in flight at once, or some broke off.
pub(super) fn few_sessions(scenario: &ScenarioSpec, cache: &KvCacheFigures) -> Option<String> {
    let number = |name: &str| cache.figures.get(name).copied();
    let (total, wanted) = (number("sessions_total")?, f64::from(scenario.concurrency));
    if total < wanted {
        return Some(format!(
            "{total} conversations were replayed where {wanted} were to be in flight at once: {} has no more of {} rounds. \
             Lower the concurrency or the rounds, and compare only what reached the same number.",
            cache.dataset,
            scenario.num_rounds.map_or_else(|| "so many".to_owned(), |rounds| rounds.to_string())
        ));
    }
    let broken = number("sessions_incomplete").unwrap_or(0.0) + number("sessions_error").unwrap_or(0.0);
    (broken > total * HIGH_ERROR_RATE_PCT / 100.0).then(|| {
        format!(
            "{broken} of {total} conversations did not get to their end, so later turns, where a cache tells, weigh less. \
             Read the Tool log."
        )
    })
}

/// Many of a third-party tool's requests failed.
pub(super) fn error_rate(rate_pct: f64) -> Option<String> {
    (rate_pct > HIGH_ERROR_RATE_PCT).then(|| {
        format!(
            "{rate_pct:.1} % of the requests failed, and the figures describe only the rest. Read the Tool log, then \
             lower the concurrency."
        )
    })
}

/// A third-party tool's requests were answered in no time at all, or without a single token.
pub(super) fn external_zeroes(succeeded: u64, figures: &ForeignFigures) -> Option<(&'static str, String)> {
    if succeeded == 0 {
        return None;
    }
    let spreads =
        [&figures.response_time_ms, &figures.ttft_ms, &figures.tpot_excl_first_ms, &figures.tpot_ms];
    let known: Vec<f64> = spreads
        .into_iter()
        .flatten()
        .flat_map(|spread| [spread.avg, spread.p50, spread.p99].into_iter().flatten())
        .collect();
    if !known.is_empty() && known.iter().all(|ms| *ms <= 0.0) {
        let message = format!(
            "{succeeded} requests succeeded, but every latency is zero: the framework did not serve them. Read the \
             Framework log."
        );
        return Some(("all_zero_latencies", message));
    }
    let none =
        figures.completion_tokens_total == Some(0) || figures.completion_tokens_per_second == Some(0.0);
    none.then(|| {
        let message = format!(
            "{succeeded} requests succeeded with no completion token at all. Read the Framework log."
        );
        ("implausible_tokens", message)
    })
}

/// The tool ended before it had done all it was asked to.
pub(super) fn partial_run(facts: &Facts<'_>) -> Option<String> {
    let summary = &facts.output.summary;
    summary.partial.then(|| {
        format!(
            "the load generator ended early: {} of {} requests were sent. Read the Tool log.",
            summary.figures.requests.attempted, facts.job.scenario.num_requests
        )
    })
}

/// The load generator, not the server, set the pace.
pub(super) fn client_limited(facts: &Facts<'_>) -> Option<String> {
    let client = &facts.output.summary.client;
    client.limited.then(|| {
        let reason = client.limited_reason.as_deref().unwrap_or("its own measurements say so");
        format!(
            "the load generator was the bottleneck ({reason}): the server may be faster than shown. \
             Give the load generator more processors, or lower the concurrency."
        )
    })
}

/// The server took much of the prompts from its cache.
pub(super) fn cached_prompts(facts: &Facts<'_>) -> Option<String> {
    let figures = &facts.output.summary.figures;
    let (cached, prompts) = (figures.cached_prompt_tokens.as_ref()?, figures.prompt_tokens.as_ref()?);
    let share = cached.total as f64 / prompts.total.max(1) as f64;
    // No request had more than what all begin with, and that is not most of a prompt.
    let shortest = prompts.min.unwrap_or(0);
    let is_prefix = cached.max.is_some_and(|most| most <= COMMON_PREFIX_TOKENS && most * 2 <= shortest);
    (share > CACHED_ABOVE && !is_prefix).then(|| {
        format!(
            "{:.0} % of the prompt tokens came from the server's prefix cache, so the time to first token is not \
             that of fresh prompts. Switch prefix caching off, or use more distinct prompts.",
            share * 100.0
        )
    })
}

/// No telemetry at all.
pub(super) fn missing_telemetry(facts: &Facts<'_>) -> Option<String> {
    no_telemetry(facts.telemetry)
}

/// Not one sample.
pub(super) fn no_telemetry(telemetry: &TelemetryFacts) -> Option<String> {
    (telemetry.samples == 0).then(|| {
        "there is not one telemetry sample of this attempt, so power and utilisation are unknown. Read the Agent log."
            .to_owned()
    })
}

/// Telemetry with holes.
pub(super) fn telemetry_gap(facts: &Facts<'_>) -> Option<String> {
    gap_in_telemetry(facts.telemetry)
}

/// Samples that are missing.
pub(super) fn gap_in_telemetry(telemetry: &TelemetryFacts) -> Option<String> {
    if telemetry.samples == 0 {
        return None;
    }
    if telemetry.missing_events > 0 {
        return Some(format!(
            "{} telemetry reports are missing in the agent's sequence: averages and energy may be wrong. \
             Read the Agent log.",
            telemetry.missing_events
        ));
    }
    if let Some(taken) = telemetry.taken
        && (telemetry.samples as f64) < ENOUGH_SAMPLES * taken as f64
    {
        return Some(format!(
            "the agent took {taken} telemetry samples, the log holds {}. Read the Agent log.",
            telemetry.samples
        ));
    }
    let bearable_s = (5.0 * telemetry.interval_s).max(5.0);
    if telemetry.uncovered_s > bearable_s {
        return Some(format!(
            "no telemetry for {:.0} s at the beginning or the end of the measurement: sampling began late or ended early. \
             Averages and energy leave that time out. Read the Agent log.",
            telemetry.uncovered_s
        ));
    }
    let longest = telemetry.longest_gap_s;
    (longest > bearable_s).then(|| {
        format!(
            "no telemetry for {longest:.0} s in the middle of the job: the host was too busy to sample, or slept. \
             Averages leave that time out."
        )
    })
}

/// No sample has a GPU on a host that has some.
pub(super) fn no_gpu_telemetry(telemetry: &TelemetryFacts) -> Option<String> {
    (telemetry.samples > 0 && telemetry.host_gpus > 0 && !telemetry.has_gpus).then(|| {
        format!(
            "no telemetry sample has a reading of a GPU, although the host has {}: its energy and utilisation are unknown. \
             See whether nvidia-smi answers on the host, and read the Agent log.",
            telemetry.host_gpus
        )
    })
}
