//! Is the load sound, and can it be turned into commands?

use events::tools::ToolCode;
use events::workload::ScenarioSpec;

use super::cures::{advice, set, set_arg};
use super::{Facts, Finding, place};

/// Fewer requests than this are a smoke test.
const ENOUGH_REQUESTS: u32 = 100;

/// The arguments that bound how many requests a server answers at once.
const SLOTS: &[&str] = &[
    "parallel",
    "num_parallel",
    "max_num_seqs",
    "max_running_requests",
    "max_batch_size",
    "max_concurrent_requests",
];

/// Those of them that each scenario's own command is sized by, unless somebody says how many.
const SIZED: &[&str] = &["parallel", "num_parallel"];

/// Enough requests to keep the concurrency up and to make percentiles.
pub(super) fn load_is_sound(facts: &Facts<'_>) -> Finding {
    if facts.scenarios.is_empty() {
        return Finding::fails(
            "There is no scenario.",
            set(
                "p_scenarios.p_concurrency",
                serde_json::json!([1, 8, 32]),
                "Choose at least one concurrency.",
            ),
        );
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
            set(
                "p_scenarios.p_num_requests",
                u64::from(scenario.concurrency) * 10,
                format!("Send at least {} requests.", u64::from(scenario.concurrency) * 10),
            ),
        );
    }
    let fewest = facts.scenarios.iter().map(|scenario| scenario.num_requests).min().unwrap_or(0);
    let imagegen = facts.workload.tool_code == ToolCode::MetrumbenchImagegen.as_str();
    if imagegen && let Some(finding) = enough_images(facts) {
        return finding;
    }
    if !imagegen && fewest < ENOUGH_REQUESTS {
        return Finding::warning(
            format!("{fewest} requests a scenario are a smoke test, not a measurement."),
            set("p_scenarios.p_num_requests", 200, "Send hundreds to thousands for numbers you report."),
        );
    }
    // Each replica takes its share.
    let share = |concurrency: u32| u64::from(concurrency).div_ceil(facts.replicas().max(1));
    let is_said = |key: &str| {
        let by_set = facts.set.is_some_and(|set| set.args().contains_key(key));
        by_set || facts.workload.engine_args.contains_key(key)
    };
    if let Some(key) = facts.known_key(SLOTS)
        && (is_said(key) || !SIZED.contains(&key))
        && let Some(slots) = facts.engine_arg(&[key])
        && let Some(scenario) = facts.scenarios.iter().find(|scenario| share(scenario.concurrency) > slots)
    {
        let needed = share(scenario.concurrency);
        return Finding::warning(
            format!(
                "{} keeps {needed} requests in flight at each model server, which takes {slots} at once: the rest waits, \
                 and its time to first token includes the waiting.",
                scenario.code(),
            ),
            set_arg(key, needed, "Raise the server's limit, unless the waiting is what you measure."),
        );
    }
    Finding::ok(format!("At least {fewest} requests a scenario."))
}

/// Images take seconds each: four rounds of the concurrency are enough.
fn enough_images(facts: &Facts<'_>) -> Option<Finding> {
    let wanted =
        |scenario: &ScenarioSpec| ToolCode::MetrumbenchImagegen.default_num_requests(scenario.concurrency);
    let few = facts.scenarios.iter().find(|scenario| scenario.num_requests < wanted(scenario))?;
    Some(Finding::warning(
        format!("{} sends {} requests: a smoke test, not a measurement.", few.code(), few.num_requests),
        set(
            "p_scenarios.p_num_requests",
            wanted(few),
            format!("Send at least {}, or leave the number out.", wanted(few)),
        ),
    ))
}

/// The framework whose shared denoising does not broadcast a prompt to several images: each pipeline has to.
const FRAMEWORK_SGLANG: &str = "sglang";
/// What the names of models say whose pipelines do, and of those that are known to fail (performance methodology, image
/// generation).
const BROADCASTS: &[&str] = &["stable-diffusion-3.5", "flux.1"];
const FAILS_TO: &[&str] = &["qwen-image", "z-image"];

/// Several images a request are only asked of pipelines that make them.
pub(super) fn images_a_request(facts: &Facts<'_>) -> Finding {
    let several = facts.scenarios.iter().find(|scenario| scenario.num_images_batch.is_some_and(|n| n > 1));
    let imagegen = facts.workload.tool_code == ToolCode::MetrumbenchImagegen.as_str();
    let (Some(scenario), true) = (several, imagegen && facts.workload.framework_code == FRAMEWORK_SGLANG)
    else {
        return Finding::DoesNotApply;
    };
    let model = facts.workload.model_code.to_lowercase();
    let named = |names: &[&str]| names.iter().any(|name| model.contains(name));
    let one =
        || set("p_scenarios.p_num_images_batch", serde_json::json!([1]), "Ask for one image a request.");
    let asks = format!("{} asks for several images a request", scenario.code());
    if named(FAILS_TO) {
        return Finding::fails(
            format!("{asks}, and this model's pipeline in SGLang fails at more than one."),
            one(),
        );
    }
    if named(BROADCASTS) {
        return Finding::ok("This model's pipeline in SGLang makes several images a request.");
    }
    Finding::warning(
        format!("{asks}; whether this model's pipeline in SGLang makes them is not known."),
        one(),
    )
}

/// Templates and arguments turn into command lines.
pub(super) fn commands_resolve(facts: &Facts<'_>) -> Finding {
    match facts.resolved {
        None => Finding::unknown("there is no scenario to resolve commands for"),
        Some(Err(refusal)) => Finding::fails(
            place::sentence(&refusal.message),
            advice(place::sentence(refusal.hint.as_deref().unwrap_or("see the message"))),
        ),
        Some(Ok(_)) => Finding::ok("Every placeholder is filled."),
    }
}
