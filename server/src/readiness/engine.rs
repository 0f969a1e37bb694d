//! Are the engine arguments those that were meant, and may they be used?

use std::collections::BTreeMap;

use events::access::Role;
use events::api::Cure;
use events::tools::ToolCode;
use serde_json::{Value, json};

use super::cures::{advice, command, host, link, set, set_arg, unset};
use super::{Facts, Finding};
use crate::domain::workload::{OFFLOADING_FRAMEWORK, tier_set};

/// Above this share of the GPU memory there is no room for what the server did not plan.
const MOST_SHARE: f64 = 0.95;

/// The named set was made for this model, precision and hardware.
pub(super) fn set_fits(facts: &Facts<'_>) -> Finding {
    let Some(named) = facts.set else {
        return if facts.framework.engine_args.is_empty() || facts.is_external() {
            Finding::DoesNotApply
        } else {
            Finding::ok(
                "No engine args set is named: the framework's defaults hold, but for what is set here.",
            )
        };
    };
    let (code, of) = (&named.set_code, &named.facts);
    if let Some(model) = of.model_code.as_ref().filter(|model| **model != facts.workload.model_code) {
        return Finding::Fails(
            format!("{code} was made for {model}, the workload serves {}.", facts.workload.model_code),
            vec![
                set("p_model_code", model.as_str(), format!("Choose the set's model: {model}.")),
                unset("p_engine_args_set_code", "Or choose another set."),
            ],
        );
    }
    let served = facts.workload.quantization.as_deref().or(facts.model.default_precision.as_deref());
    if let (Some(precision), Some(served)) =
        (of.precision.as_deref().filter(|_| of.model_code.is_some()), served)
        && !precision.eq_ignore_ascii_case(served)
    {
        // Otherwise the result would carry a label that is not true.
        return Finding::fails(
            format!("{code} serves the weights in {precision}, the workload says {served}."),
            set("p_quantization", precision, format!("Set the quantization to {precision}.")),
        );
    }
    if let Some(nodes) = of.nodes.filter(|nodes| *nodes > 1) {
        return Finding::fails(
            format!("{code} spreads one model server over {nodes} hosts; a run has one server."),
            unset("p_engine_args_set_code", "Choose a set for one host."),
        );
    }
    if let (Some(needed), Some((count, _))) = (of.gpu_count, facts.gpus())
        && count > 0
        && needed > count
        && facts.workload.engine_args.is_empty()
    {
        return Finding::Fails(
            format!("{code} needs {needed} accelerators, the server has {count}."),
            vec![
                link("/hardware", "Choose a server with more accelerators."),
                unset("p_engine_args_set_code", "Or choose a set for fewer."),
            ],
        );
    }
    let here = facts.config.and_then(|config| config.accelerator_code.as_ref());
    if let Some(here) =
        here.filter(|here| !of.accelerator_codes.is_empty() && !of.accelerator_codes.contains(here))
    {
        return Finding::warning(
            format!("{code} was made for {}, the server has {here}.", of.accelerator_codes.join(", ")),
            unset(
                "p_engine_args_set_code",
                "Choose a set for these accelerators, or run a smoke scenario first.",
            ),
        );
    }
    if !of.verified {
        let what = if named.org == events::keys::PLATFORM_ORG {
            "is not verified"
        } else {
            "is the organisation's own"
        };
        return Finding::ok(format!("{code} {what}: run a smoke scenario first."));
    }
    Finding::ok(format!("{code} was read from its source and fits the model."))
}

/// The argument that has a framework keep a model's thinking apart from its answer.
const REASONING: &[&str] = &["reasoning_parser"];
/// What the names of models say that think before they answer, whether asked to or not.
const THINKING: &[&str] = &["-r1", "thinking", "reasoning", "qwq", "magistral"];

/// A judge scores the answer, not the thinking before it.
pub(super) fn reasoning_apart(facts: &Facts<'_>) -> Finding {
    let judged = facts.workload.tool_code == ToolCode::Kyai.as_str() && !facts.is_external();
    let Some(key) = facts.known_key(REASONING).filter(|_| judged) else { return Finding::DoesNotApply };
    if let Some(Value::String(parser)) = facts.arg(REASONING) {
        return Finding::ok(format!("{parser} keeps the model's thinking apart from its answers."));
    }
    let name = facts.workload.model_code.to_lowercase();
    if THINKING.iter().any(|word| name.contains(word)) {
        return Finding::warning(
            format!(
                "{} thinks before it answers: without {key} its thinking is judged as part of the answer.",
                facts.workload.model_code
            ),
            advice(format!("Set {key} to the framework's parser for this model, as its recipe has it.")),
        );
    }
    Finding::unknown(format!(
        "whether the model thinks before it answers is not known: if it does, set {key}, or its thinking is judged too"
    ))
}

/// The server leaves some of the GPU memory alone.
pub(super) fn memory_headroom(facts: &Facts<'_>) -> Finding {
    let keys = ["gpu_memory_utilization", "mem_fraction_static"];
    let Some((key, share)) = keys.into_iter().find_map(|key| Some((key, facts.arg(&[key])?.as_f64()?)))
    else {
        return Finding::DoesNotApply;
    };
    if share <= MOST_SHARE {
        return Finding::ok(format!("{key} is {share}."));
    }
    Finding::warning(
        format!(
            "{key} is {share}: there is no room for what the server did not plan, and it may run out of memory."
        ),
        set_arg(key, 0.9, format!("Set {key} to 0.9.")),
    )
}

/// The agent's policy lets the set's environment variables through.
pub(super) fn environment_allowed(facts: &Facts<'_>) -> Finding {
    let Some(Ok(resolved)) = facts.resolved else { return Finding::DoesNotApply };
    let names: Vec<&String> = resolved.commands.serve_env.keys().collect();
    if names.is_empty() {
        return Finding::DoesNotApply;
    }
    let Some(allowed) = facts.capabilities().and_then(|host| host.env.as_ref()) else {
        return Finding::unknown("which environment variables the agent passes on is not known");
    };
    let refused: Vec<&str> =
        names.into_iter().filter(|name| !allowed.contains(name)).map(String::as_str).collect();
    if refused.is_empty() {
        return Finding::ok("Every environment variable is passed on.");
    }
    Finding::fails(
        format!("The host's agent does not let a job set {}.", refused.join(", ")),
        host(refused.join(", "), "Add them to `env` in agent.toml, and restart the agent."),
    )
}

/// Arguments that load code or read paths are approved, and the agent's policy takes them.
pub(super) fn dangerous_args_approved(facts: &Facts<'_>) -> Finding {
    let Some(Ok(resolved)) = facts.resolved else { return Finding::DoesNotApply };
    if resolved.dangerous.is_empty() {
        return Finding::DoesNotApply;
    }
    let flags = resolved.commands.dangerous_flags.join(", ");
    if !facts.unapproved.is_empty() {
        let mut programs: BTreeMap<&str, BTreeMap<&str, &Value>> = BTreeMap::new();
        for arg in facts.unapproved {
            programs.entry(&arg.program).or_default().insert(&arg.key, &arg.value);
        }
        let mut cures: Vec<Cure> = programs
            .into_iter()
            .map(|(program, args)| {
                let keys: Vec<&str> = args.keys().copied().collect();
                let label = format!("An administrator approves {} of {program} for this model.", keys.join(", "));
                let args = json!({"p_program_code": program, "p_model_code": facts.workload.model_code, "p_args": args});
                command("approve_dangerous_args", args, Role::Admin, label)
            })
            .collect();
        cures.push(advice("Or remove them."));
        let flags: Vec<&str> = facts.unapproved.iter().map(|arg| arg.flag.as_str()).collect();
        return Finding::Fails(
            format!("{} load code or read paths on the server, and nobody approved it.", flags.join(", ")),
            cures,
        );
    }
    match facts.capabilities().and_then(|host| host.accept_dangerous) {
        Some(true) => Finding::ok(format!("{flags}: approved, and the agent's policy takes them.")),
        Some(false) => Finding::fails(
            format!(
                "{flags} load code or read paths; they are approved, but the host's agent does not take such jobs."
            ),
            host("accept_dangerous = true", "Set accept_dangerous in agent.toml, and restart the agent."),
        ),
        None => Finding::warning(
            format!("{flags} load code or read paths; they are approved."),
            host("accept_dangerous = true", "The agent's own policy must allow it as well."),
        ),
    }
}

/// The tier that a run of KV cache offload is labelled with is the one that its model server has.
pub(super) fn tier_fits(facts: &Facts<'_>) -> Finding {
    let of_vllm = facts.workload.framework_code == OFFLOADING_FRAMEWORK;
    if facts.workload.tool_code != ToolCode::KvCacheOffload.as_str() || !of_vllm {
        return Finding::DoesNotApply;
    }
    let args = &facts.workload.tool_args;
    let Some(said) = args.get("tier").or_else(|| facts.tool.defaults.get("tier")).and_then(Value::as_str)
    else {
        return Finding::DoesNotApply;
    };
    let served = offloading_tier(facts);
    if said == served {
        return Finding::ok(format!("The engine arguments keep the cache where the tier {said} says."));
    }
    let mut cures = vec![set("p_tool_args.tier", served, format!("Say what is served: tier {served}."))];
    if let Some(code) = tier_set(said) {
        let label = format!("Or serve with the set of tier {said}: {code}.");
        cures.push(set("p_engine_args_set_code", code, label));
    }
    Finding::Fails(
        format!(
            "The tier is {said}, the engine arguments serve {served}: the result's label would not be true."
        ),
        cures,
    )
}

/// Where vLLM keeps blocks that it offloads, by the engine arguments in force.
fn offloading_tier(facts: &Facts<'_>) -> &'static str {
    let args = facts.engine_args();
    let Some(connector) = args.get("kv_transfer_config").filter(|config| !config.is_null()) else {
        return "gpu";
    };
    let on_disk = !connector["kv_connector_extra_config"]["secondary_tiers"].is_null()
        || args.iter().any(|(key, value)| key.ends_with(".l2_adapter") && !value.is_null());
    if on_disk { "nvme" } else { "cpu" }
}
