//! Do context and key-value cache hold what the scenarios send?

use events::tools::ToolCode;
use serde_json::Value;

use super::cures::{advice, set_arg, unset};
use super::fit::weights_gb;
use super::{Facts, Finding, place};

/// The arguments that bound the context of one request.
const CONTEXT: &[&str] = &["max_model_len", "context_length", "max_seq_len", "max_total_tokens"];
/// The arguments that may make a model's context longer than it says.
const STRETCHING: &[&str] = &["hf_overrides", "json_model_override_args", "rope_scaling"];
/// The share of a GPU's memory that a server claims.
const MEMORY_SHARE: &[&str] = &["gpu_memory_utilization", "mem_fraction_static", "cuda_memory_fraction"];
/// The share where neither the arguments nor their defaults say it.
const USUAL_SHARE: f64 = 0.9;

/// The context holds the longest scenario's input and output.
pub(super) fn context_covers(facts: &Facts<'_>) -> Finding {
    if !ToolCode::of(&facts.workload.tool_code).is_none_or(ToolCode::counts_tokens) {
        return Finding::DoesNotApply;
    }
    let Some((needed, scenario)) = facts.most_tokens() else {
        return Finding::unknown("the scenarios do not say how long inputs and outputs are");
    };
    if let Some(most) = facts.model.max_context.map(u64::from)
        && needed > most
    {
        return Finding::fails(
            format!("{scenario} needs {needed} tokens of context, the model has {most}."),
            advice("Choose shorter input or output lengths, or a model with a longer context."),
        );
    }
    let key = facts.known_key(CONTEXT);
    if let Some(key) = key
        && let Some(set) = facts.engine_arg(&[key]).filter(|set| *set > 0)
    {
        if let Some(most) = facts.model.max_context.map(u64::from)
            && set > most
            && facts.arg(STRETCHING).is_none()
        {
            return Finding::Fails(
                format!(
                    "The engine arguments ask for a context of {set} tokens, the model has {most}: its server would not start."
                ),
                vec![
                    set_arg(key, most, format!("Lower the context length to at most {most}.")),
                    unset(&format!("p_engine_args.{key}"), "Or remove it: the model's own is then used."),
                ],
            );
        }
        if set < needed {
            return Finding::Fails(
                format!(
                    "{scenario} needs {needed} tokens of context, the engine arguments allow {set}: requests would be cut."
                ),
                vec![
                    set_arg(key, needed, format!("Raise the context length to at least {needed}.")),
                    unset(&format!("p_engine_args.{key}"), "Or remove it: the model's own is then used."),
                ],
            );
        }
        return Finding::ok(format!("The context of {set} tokens covers {needed}."));
    }
    if place::knows(facts, "ctx_size").is_some()
        && let Some(shared) = facts.engine_arg(&["ctx_size"]).filter(|set| *set > 0)
    {
        let slots = facts.engine_arg(&["parallel"]).unwrap_or_else(|| facts.most_concurrency()).max(1);
        let each = shared / slots;
        if each < needed {
            return Finding::Fails(
                format!(
                    "{scenario} needs {needed} tokens of context; ctx_size {shared} is shared by {slots} slots, {each} each."
                ),
                vec![
                    set_arg(
                        "ctx_size",
                        needed * slots,
                        format!("Raise ctx_size to at least {}.", needed * slots),
                    ),
                    unset("p_engine_args.ctx_size", "Or remove it: it is then worked out."),
                ],
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

/// Bytes of keys and values that one token takes in all layers, at the cache's number format.
fn bytes_per_token(facts: &Facts<'_>) -> Option<f64> {
    let model = facts.model;
    let plain = model.attention_kind.as_deref().is_some_and(|kind| kind == "gqa" || kind == "mha");
    let at_16_bit = model.kv_bytes_per_token_16bit.or_else(|| {
        let layers = model.kv_cache_layers.or(model.layers).filter(|_| plain)?;
        Some(2.0 * f64::from(layers) * f64::from(model.kv_heads?) * f64::from(model.head_dim?) * 2.0)
    })?;
    let format = facts.arg(&["kv_cache_dtype", "cache_type_k", "kv_cache_type"]);
    let factor = match format.as_ref().and_then(Value::as_str) {
        Some(word) if word.starts_with("fp8") || word.starts_with("q8") || word == "int8" => 0.5,
        Some(word) if word.contains("fp4") || word.starts_with("q4") || word.starts_with("iq4") => 0.28,
        Some("f32") => 2.0,
        _ => 1.0,
    };
    Some(at_16_bit * factor)
}

/// The share of each accelerator's memory that the server claims.
fn memory_share(facts: &Facts<'_>) -> f64 {
    let set = facts.arg(MEMORY_SHARE).as_ref().and_then(Value::as_f64);
    let default =
        facts.known_key(MEMORY_SHARE).and_then(|key| facts.framework.engine_args[key].default.as_f64());
    set.or(default).unwrap_or(USUAL_SHARE)
}

/// Tokens that the cache of one model server holds beside the weights; nothing where the facts are missing.
fn cache_tokens(facts: &Facts<'_>) -> Option<f64> {
    let (count, memory) = facts.gpus()?;
    let (bytes, weights) = (bytes_per_token(facts)?, weights_gb(facts)? * 1e9);
    if count == 0 {
        let ram = facts.capabilities()?.ram_total_bytes as f64;
        return Some(((ram - weights) / bytes).max(0.0));
    }
    let spreads = facts.known_key(&["tensor_parallel_size", "tp_size", "num_shard"]).is_some();
    let (tensor, pipeline) =
        if spreads { (facts.tensor_parallel(), facts.pipeline_parallel()) } else { (u64::from(count), 1) };
    // Latent attention keeps all of it on every accelerator; others divide it by heads, as far as there are heads.
    let latent = facts.model.attention_kind.as_deref().is_some_and(|kind| kind.contains("mla"));
    let heads = facts.model.kv_heads.map_or(tensor, u64::from).max(1);
    let divided = if latent {
        1
    } else if spreads {
        tensor.min(heads)
    } else {
        tensor
    };
    let free = memory? as f64 * memory_share(facts) - weights / (tensor * pipeline) as f64;
    Some((free / (bytes / (divided * pipeline) as f64)).max(0.0))
}

/// Beside the weights there is room for the keys and values of the requests in flight.
pub(super) fn kv_cache_fits(facts: &Facts<'_>) -> Finding {
    if !facts.loads_model() {
        return Finding::DoesNotApply;
    }
    let Some((needed, scenario)) = facts.most_tokens() else {
        return Finding::unknown("the scenarios do not say how long inputs and outputs are");
    };
    let Some(holds) = cache_tokens(facts) else {
        return Finding::unknown(
            "the catalogue does not know the model's key-value heads and layers, or the server its memory",
        );
    };
    let holds = holds as u64;
    let fp8 = ["fp8", "fp8_e4m3", "fp8_e5m2"].into_iter().find(|word| {
        let known = facts.framework.engine_args.get("kv_cache_dtype");
        known.is_some_and(|template| template.choices.iter().any(|choice| choice == word))
    });
    let mut cures = Vec::new();
    if let Some(word) = fp8.filter(|_| facts.arg(&["kv_cache_dtype"]).is_none()) {
        cures.push(set_arg(
            "kv_cache_dtype",
            word,
            "Halve the cache with an FP8 format; it can affect quality.",
        ));
    }
    cures.push(advice(
        "Raise tensor parallelism, choose a smaller quantization, or a server with more memory.",
    ));
    if holds < needed {
        return Finding::Fails(
            format!(
                "{scenario} needs {needed} tokens of cache for one request; beside the weights about {holds} fit."
            ),
            cures,
        );
    }
    // Such servers refuse to start when their cache does not hold one request of the longest context.
    if let Some(key) = facts.known_key(&["max_model_len"]) {
        let word = facts.arg(&[key]);
        let longest = match &word {
            Some(Value::String(_)) => None,
            Some(number) => number.as_u64(),
            None => facts.model.max_context.map(u64::from),
        };
        if let Some(longest) = longest.filter(|longest| *longest > holds) {
            let enough = needed.next_multiple_of(256).min(holds);
            return Finding::Fails(
                format!(
                    "The context of {longest} tokens does not fit the cache: beside the weights about {holds} tokens fit, and the server refuses to start."
                ),
                vec![set_arg(key, enough, format!("Set {key} to {enough}, which covers {scenario}."))],
            );
        }
    }
    let in_flight = facts.most_concurrency().div_ceil(facts.replicas().max(1));
    let wanted = in_flight.saturating_mul(needed);
    if wanted > holds {
        return Finding::Warning(
            format!(
                "{in_flight} requests of {needed} tokens need {wanted} tokens of cache; beside the weights about {holds} fit: \
                 the rest waits, and its time to first token includes the waiting."
            ),
            cures,
        );
    }
    Finding::ok(format!("About {holds} tokens of cache fit beside the weights, {wanted} are needed."))
}

/// What a sidecar keeps in the host's memory fits there.
pub(super) fn host_memory_fits(facts: &Facts<'_>) -> Finding {
    let args = facts.engine_args();
    let pool = args.iter().find(|(key, _)| key.ends_with(".l1_size_gb"));
    let Some((key, size)) = pool.and_then(|(key, value)| Some((key.clone(), value.as_f64()?))) else {
        return Finding::DoesNotApply;
    };
    let Some(ram) =
        facts.capabilities().map(|host| host.ram_total_bytes as f64 / 1e9).filter(|ram| *ram > 0.0)
    else {
        return Finding::unknown("the host's memory is not known");
    };
    if size <= ram * 0.8 {
        return Finding::ok(format!("The pool of {size:.0} GB fits the host's {ram:.0} GB."));
    }
    let enough = (ram * 0.5).floor();
    Finding::fails(
        format!("The pool of {size:.0} GB does not fit the host's {ram:.0} GB beside everything else."),
        set_arg(&key, enough, format!("Set the pool to {enough:.0} GB.")),
    )
}
