//! Engine arguments that follow from the workload and its scenarios, so that nobody has to work them out.

use std::collections::BTreeMap;

use events::catalogue::FrameworkRegistered;
use events::workload::ScenarioSpec;
use serde_json::Value;

use super::{Inputs, SetInForce, gpus_per_replica};

/// Tokens a request needs beyond its nominal lengths: the chat template and the system message.
const TEMPLATE_TOKENS: u64 = 64;
/// Prompts are made of words and come out longer or shorter than asked for; answers are capped.
const PROMPT_MARGIN: f64 = 1.25;
/// Context sizes are rounded up to a multiple of this.
const CONTEXT_STEP: u64 = 256;

/// Context tokens that one request of a scenario needs, with headroom.
pub fn context_per_request(scenario: &ScenarioSpec) -> u64 {
    let prompt = f64::from(scenario.input_sequence_length.unwrap_or(512)) * PROMPT_MARGIN;
    let answer = scenario.max_tokens.or(scenario.output_sequence_length).unwrap_or(512);
    let needed = prompt.ceil() as u64 + u64::from(answer) + TEMPLATE_TOKENS;
    needed.next_multiple_of(CONTEXT_STEP)
}

/// The engine arguments that follow: slots and context, and the quantization. What the set and the workload say stands
/// above them.
pub fn derived_engine_args(inputs: &Inputs<'_>) -> BTreeMap<String, Value> {
    let mut args = slots_and_context(inputs);
    let quantization = inputs.workload.quantization.as_ref();
    // A set for this precision knows how to serve it; its weights may be in it already, and say so themselves.
    let by_the_set =
        inputs.set.is_some_and(|set| set.facts.precision.as_ref() == quantization && quantization.is_some());
    if let Some(quantization) = quantization.filter(|_| !by_the_set) {
        args.extend(quantization_arg(inputs.framework, quantization));
    }
    args.extend(gpus_of_diffusion(inputs));
    args
}

/// The argument by which SGLang's diffusion server takes its GPUs, and does not count them itself.
const DIFFUSION_GPUS: &str = "num_gpus";

/// As many GPUs as the degrees of parallelism multiply to, for the diffusion server that must be told; nothing for one.
fn gpus_of_diffusion(inputs: &Inputs<'_>) -> Option<(String, Value)> {
    let templates = &inputs.framework.engine_args;
    let makes_images = inputs.tool.modality == "imagegen" && templates.contains_key(DIFFUSION_GPUS);
    let mut said = inputs.set.filter(|_| makes_images).map(SetInForce::args).unwrap_or_default();
    said.extend(inputs.workload.engine_args.clone());
    let gpus = gpus_per_replica(&said, templates).filter(|gpus| makes_images && *gpus > 1)?;
    Some((DIFFUSION_GPUS.to_owned(), Value::from(gpus)))
}

/// For frameworks whose requests have slots: as many as requests in flight, and a context that holds what they need,
/// which all slots share (llama.cpp) or each has (Ollama). A server that is kept for the whole run is sized for its
/// largest scenario; otherwise for the job's own, so that a scenario's command does not depend on what else is run. A
/// workload that sets the number of slots itself gets a context for that many.
fn slots_and_context(inputs: &Inputs<'_>) -> BTreeMap<String, Value> {
    let known = &inputs.framework.engine_args;
    let (slots_key, context_key, shared) = if known.contains_key("ctx_size") && known.contains_key("parallel")
    {
        ("parallel", "ctx_size", true)
    } else if known.contains_key("num_parallel") && known.contains_key("context_length") {
        ("num_parallel", "context_length", false)
    } else {
        return BTreeMap::new();
    };
    let keeps = inputs.workload.keep_server && !inputs.run_scenarios.is_empty();
    let scenarios = if keeps { inputs.run_scenarios } else { std::slice::from_ref(inputs.scenario) };
    let slots = scenarios.iter().map(|scenario| u64::from(scenario.concurrency)).max().unwrap_or(1);
    let of_set = inputs.set.and_then(|set| set.facts.values.get(slots_key));
    let slots = match inputs.workload.engine_args.get(slots_key).or(of_set).and_then(Value::as_u64) {
        Some(set @ 1..) => set,
        _ => slots,
    };
    let each = scenarios.iter().map(context_per_request).max().unwrap_or(CONTEXT_STEP);
    let context = if shared { each.saturating_mul(slots) } else { each };
    BTreeMap::from([
        (slots_key.to_owned(), Value::from(slots)),
        (context_key.to_owned(), Value::from(context)),
    ])
}

/// The argument that makes a framework serve the weights in the workload's quantization; nothing where it has none, and
/// the quantization is then only a name for the weights as they are published.
pub fn quantization_arg(framework: &FrameworkRegistered, quantization: &str) -> Option<(String, Value)> {
    let wanted = quantization.to_ascii_lowercase();
    let dtype = match wanted.as_str() {
        "bf16" => Some("bfloat16"),
        "fp16" => Some("float16"),
        "fp32" => Some("float32"),
        _ => None,
    };
    let (key, value) = match dtype {
        Some(dtype) => ("dtype", dtype.to_owned()),
        None => ("quantization", wanted),
    };
    let template = framework.engine_args.get(key)?;
    template.choices.contains(&value).then(|| (key.to_owned(), Value::from(value)))
}
