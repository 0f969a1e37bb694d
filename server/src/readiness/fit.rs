//! Do the weights fit, in the format that is named?

use super::cures::{advice, set, set_arg};
use super::{Facts, Finding};
use crate::resolve::quantization_arg;

/// Share of the memory beyond the weights that a server needs at least: activations, and some cache.
const OVERHEAD: f64 = 1.1;

/// Bytes of a weight at a precision, with the scales of quantised formats.
pub(super) fn bytes_per_parameter(precision: &str) -> Option<f64> {
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

/// The weights of one copy of the model, gigabytes; nothing where the facts are missing.
pub(super) fn weights_gb(facts: &Facts<'_>) -> Option<f64> {
    Some(facts.model.params_b_total? * bytes_per_parameter(facts.precision()?)?)
}

/// The weights fit the accelerators' memory at the chosen precision; without accelerators, the host's memory.
pub(super) fn model_fits_memory(facts: &Facts<'_>) -> Finding {
    if !facts.loads_model() {
        return Finding::DoesNotApply;
    }
    let (Some(billions), Some(precision)) = (facts.model.params_b_total, facts.precision()) else {
        return Finding::unknown("the catalogue does not know the model's size or precision");
    };
    let Some(weights_gb) = weights_gb(facts) else {
        return Finding::unknown(format!("how many bytes a weight takes in {precision} is not known"));
    };
    let needed_gb = weights_gb * OVERHEAD;
    let Some((count, memory)) = facts.gpus() else {
        return Finding::unknown("the server's memory is not known");
    };
    let parallel = facts.tensor_parallel() * facts.pipeline_parallel();
    let tensor_key = facts.known_key(&["tensor_parallel_size", "tp_size", "num_shard"]);
    let (available_gb, used, place) = if count == 0 {
        let Some(ram) = facts.capabilities().map(|host| host.ram_total_bytes).filter(|ram| *ram > 0) else {
            return Finding::unknown("the server's memory is not known");
        };
        (ram as f64 / 1e9, 1, "the host's memory".to_owned())
    } else {
        let Some(memory) = memory else { return Finding::unknown("the accelerators' memory is not known") };
        // Without such an argument the framework spreads the model by itself.
        let used = if tensor_key.is_some() { parallel.min(u64::from(count)) } else { u64::from(count) };
        let noun = if used == 1 { "accelerator" } else { "accelerators" };
        (memory as f64 / 1e9 * used as f64, used, format!("{used} {noun}"))
    };
    let sizes = format!(
        "{billions} billion parameters in {precision} need {weights_gb:.1} GB, {needed_gb:.1} GB with 10 % overhead; \
         {place} has {available_gb:.1} GB"
    );
    if needed_gb <= available_gb {
        return Finding::ok(format!("{sizes}, {:.1} GB of it left for the cache.", available_gb - needed_gb));
    }
    let mut cures = Vec::new();
    for smaller in ["fp8", "awq"] {
        let fits =
            bytes_per_parameter(smaller).is_some_and(|bytes| billions * bytes * OVERHEAD <= available_gb);
        let published = facts.model.precisions.iter().any(|known| known == smaller);
        if fits && (published || quantization_arg(facts.framework, smaller).is_some()) {
            cures.push(set("p_quantization", smaller, format!("Choose a smaller quantization: {smaller}.")));
            break;
        }
    }
    if cures.is_empty() {
        cures.push(advice("Choose a smaller quantization, such as fp8 or awq, or a smaller model."));
    }
    let enough = ((needed_gb / (available_gb / used as f64)).ceil() as u64).next_power_of_two();
    match tensor_key {
        Some(key) if count > 0 && enough <= u64::from(count) => {
            let label = format!("Or spread the model: set tensor parallelism to {enough}.");
            cures.push(set_arg(key, enough, label));
        }
        _ => cures.push(advice("Or choose a server with more memory.")),
    }
    Finding::Fails(format!("{sizes}."), cures)
}

/// The precision that the name of a GGUF file ends in: `gemma-3-270m-Q4_K_M.gguf`.
pub(super) fn precision_of_file(name: &str) -> Option<&str> {
    let stem = name.rsplit_once('.').filter(|(_, ending)| ending.eq_ignore_ascii_case("gguf"))?.0;
    let last = stem.rsplit(['-', '.']).next()?;
    let lower = last.to_ascii_lowercase();
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let quantised = ["iq", "tq", "q"].iter().any(|kind| lower.strip_prefix(kind).is_some_and(digit));
    (quantised || ["f32", "f16", "fp16", "bf16", "mxfp4"].contains(&lower.as_str())).then_some(last)
}

/// What the host's file is in is what the workload says, or the model's publisher where it says nothing.
fn of_file(facts: &Facts<'_>) -> Option<Finding> {
    let file = facts.model_file()?;
    let found = precision_of_file(file)?;
    let published = facts.model.default_precision.as_deref();
    let said = facts.workload.quantization.as_deref().or(published);
    if said.is_some_and(|said| said.eq_ignore_ascii_case(found)) {
        return Some(Finding::ok(format!("The host's file {file} is in {found}.")));
    }
    let said = match &facts.workload.quantization {
        Some(quantization) => quantization.clone(),
        None => format!("as published{}", published.map(|p| format!(" ({p})")).unwrap_or_default()),
    };
    let code = found.to_ascii_lowercase();
    let label = format!("Say so: quantization {code}, which the results then carry.");
    Some(Finding::warning(
        format!("The host's file {file} is in {found}; the workload says {said}, and so would its results."),
        set("p_quantization", code, label),
    ))
}

/// The framework is told the workload's quantization, so that the result's label is true.
pub(super) fn quantization_applies(facts: &Facts<'_>) -> Finding {
    if let Some(finding) = of_file(facts) {
        return finding;
    }
    let Some(quantization) = &facts.workload.quantization else { return Finding::DoesNotApply };
    if facts
        .model
        .default_precision
        .as_ref()
        .is_some_and(|published| published.eq_ignore_ascii_case(quantization))
    {
        return Finding::ok(format!("The model is published in {quantization}."));
    }
    if let Some(set) = facts.set.filter(|set| set.facts.precision.as_ref() == Some(quantization)) {
        return Finding::ok(format!("The engine args set {} serves {quantization}.", set.set_code));
    }
    let args = facts.engine_args();
    let told = ["quantization", "quantize", "dtype"].iter().any(|key| args.contains_key(*key));
    if told || quantization_arg(facts.framework, quantization).is_some() {
        return Finding::ok(format!("The framework is told to serve {quantization}."));
    }
    Finding::warning(
        format!("{quantization} is only a label here: nothing tells the framework to serve the weights so."),
        advice("Make sure that the weights on the server are in this format; the results carry the label."),
    )
}
