//! Does the model fit the hardware, and the load the model?

use super::{Facts, Finding, place};
use crate::resolve::quantization_arg;

/// Share of the memory beyond the weights that a server needs at least: activations, and some cache.
const OVERHEAD: f64 = 1.1;

/// Bytes of a weight at a precision, with the scales of quantised formats.
fn bytes_per_parameter(precision: &str) -> Option<f64> {
    let precision = precision.to_ascii_lowercase();
    let known = [
        (["fp32", "f32", "float32"].as_slice(), 4.0),
        (&["bf16", "fp16", "f16", "bfloat16", "float16"], 2.0),
        (&["fp8", "int8", "q8", "w8a8"], 1.06),
        (&["q6"], 0.82),
        (&["q5"], 0.69),
        (&["fp4", "nvfp4", "mxfp4", "int4", "awq", "gptq", "q4", "w4a16"], 0.6),
    ];
    known
        .iter()
        .find(|(names, _)| names.iter().any(|name| precision.starts_with(name)))
        .map(|(_, bytes)| *bytes)
}

/// The weights fit the accelerators' memory at the chosen precision; without accelerators, the host's memory.
pub(super) fn model_fits_memory(facts: &Facts<'_>) -> Finding {
    if !facts.loads_model() {
        return Finding::DoesNotApply;
    }
    let precision = facts.workload.quantization.as_ref().or(facts.model.default_precision.as_ref());
    let (Some(billions), Some(precision)) = (facts.model.params_b_total, precision) else {
        return Finding::unknown("the catalogue does not know the model's size or precision");
    };
    let Some(bytes) = bytes_per_parameter(precision) else {
        return Finding::unknown(format!("how many bytes a weight takes in {precision} is not known"));
    };
    let weights_gb = billions * bytes;
    let needed_gb = weights_gb * OVERHEAD;
    let Some((count, memory)) = facts.gpus() else {
        return Finding::unknown("the server's memory is not known");
    };
    let parallel =
        facts.tensor_parallel() * facts.engine_arg(&["pipeline_parallel_size", "pp_size"]).unwrap_or(1);
    let (available_gb, place) = if count == 0 {
        let Some(ram) = facts.capabilities().map(|host| host.ram_total_bytes).filter(|ram| *ram > 0) else {
            return Finding::unknown("the server's memory is not known");
        };
        (ram as f64 / 1e9, "the host's memory".to_owned())
    } else {
        let Some(memory) = memory else { return Finding::unknown("the accelerators' memory is not known") };
        let used = parallel.min(u64::from(count));
        let noun = if used == 1 { "accelerator" } else { "accelerators" };
        (memory as f64 / 1e9 * used as f64, format!("{used} {noun}"))
    };
    let sizes = format!(
        "{billions} billion parameters in {precision} need {weights_gb:.1} GB, {needed_gb:.1} GB with 10 % overhead; \
         {place} has {available_gb:.1} GB"
    );
    if needed_gb <= available_gb {
        return Finding::ok(format!("{sizes}, {:.1} GB of it left for the cache.", available_gb - needed_gb));
    }
    let mut cures = vec!["Choose a smaller quantization, such as fp8 or awq.".to_owned()];
    let per_accelerator = available_gb / parallel.max(1) as f64;
    let enough = (needed_gb / per_accelerator).ceil() as u64;
    let enough = enough.next_power_of_two();
    if count > 0 && enough <= u64::from(count) {
        cures.push(format!("Or spread the model: set tensor parallelism to {enough}."));
    } else {
        cures.push("Or choose a server with more memory.".to_owned());
    }
    Finding::Fails(format!("{sizes}."), cures)
}

/// The framework is told the workload's quantization, so that the result's label is true.
pub(super) fn quantization_applies(facts: &Facts<'_>) -> Finding {
    let Some(quantization) = &facts.workload.quantization else { return Finding::DoesNotApply };
    if facts
        .model
        .default_precision
        .as_ref()
        .is_some_and(|published| published.eq_ignore_ascii_case(quantization))
    {
        return Finding::ok(format!("The model is published in {quantization}."));
    }
    let set = ["quantization", "dtype"].iter().any(|key| facts.workload.engine_args.contains_key(*key));
    if set || quantization_arg(facts.framework, quantization).is_some() {
        return Finding::ok(format!("The framework is told to serve {quantization}."));
    }
    Finding::warning(
        format!("{quantization} is only a label here: nothing tells the framework to serve the weights so."),
        "Make sure that the weights on the server are in this format; the results carry the label.",
    )
}

/// Tensor parallelism fits the accelerators and divides the attention heads.
pub(super) fn tensor_parallel_divides(facts: &Facts<'_>) -> Finding {
    if facts.is_external()
        || (place::knows(facts, "tensor_parallel_size").is_none() && place::knows(facts, "tp_size").is_none())
    {
        return Finding::DoesNotApply;
    }
    let parallel = facts.tensor_parallel();
    if let Some(heads) = facts.model.attention_heads.map(u64::from)
        && parallel > 0
        && !heads.is_multiple_of(parallel)
    {
        let fitting: Vec<String> =
            (1..=16u64).filter(|n| heads.is_multiple_of(*n)).map(|n| n.to_string()).collect();
        return Finding::fails(
            format!("Tensor parallelism {parallel} does not divide the model's {heads} attention heads."),
            format!("Set it to one of {}.", fitting.join(", ")),
        );
    }
    let Some((count, _)) = facts.gpus() else {
        return Finding::unknown("the number of accelerators is not known");
    };
    if count == 0 {
        return Finding::fails(
            "The server has no accelerator that the agent could find.",
            "Choose a server with accelerators, or framework llama-cpp, which also runs on processors.",
        );
    }
    let count = u64::from(count);
    if parallel > count || !count.is_multiple_of(parallel) {
        let fitting: Vec<String> =
            (1..=count).filter(|n| count.is_multiple_of(*n)).map(|n| n.to_string()).collect();
        return Finding::fails(
            format!("Tensor parallelism {parallel} does not divide the server's {count} accelerators."),
            format!("Set it to one of {}.", fitting.join(", ")),
        );
    }
    Finding::ok(format!("Tensor parallelism {parallel} on {count} accelerators."))
}

/// The context holds the longest scenario's input and output.
pub(super) fn context_covers(facts: &Facts<'_>) -> Finding {
    let Some((needed, scenario)) = facts.most_tokens() else {
        return Finding::unknown("the scenarios do not say how long inputs and outputs are");
    };
    if let Some(most) = facts.model.max_context.map(u64::from)
        && needed > most
    {
        return Finding::fails(
            format!("{scenario} needs {needed} tokens of context, the model has {most}."),
            "Choose shorter input or output lengths, or a model with a longer context.",
        );
    }
    if let Some(set) =
        facts.engine_arg(&["max_model_len", "context_length", "max_seq_len"]).filter(|set| *set > 0)
    {
        if set < needed {
            return Finding::fails(
                format!(
                    "{scenario} needs {needed} tokens of context, the engine arguments allow {set}: requests would be cut."
                ),
                format!("Raise the context length to at least {needed}, or remove it."),
            );
        }
        return Finding::ok(format!("The context of {set} tokens covers {needed}."));
    }
    if place::knows(facts, "ctx_size").is_some()
        && let Some(shared) = facts.engine_arg(&["ctx_size"]).filter(|set| *set > 0)
    {
        let most = facts.scenarios.iter().map(|scenario| u64::from(scenario.concurrency)).max().unwrap_or(1);
        let slots = facts.engine_arg(&["parallel"]).unwrap_or(most).max(1);
        let each = shared / slots;
        if each < needed {
            return Finding::fails(
                format!(
                    "{scenario} needs {needed} tokens of context; ctx_size {shared} is shared by {slots} slots, {each} each."
                ),
                format!(
                    "Raise ctx_size to at least {}, or remove it: it is then worked out.",
                    needed * slots
                ),
            );
        }
        return Finding::ok(format!(
            "Each of {slots} slots has {each} tokens of context, {needed} are needed."
        ));
    }
    match facts.model.max_context {
        Some(most) => {
            Finding::ok(format!("{scenario} needs {needed} tokens of context, the model has {most}."))
        }
        None => Finding::unknown("the catalogue does not know the model's longest context"),
    }
}
