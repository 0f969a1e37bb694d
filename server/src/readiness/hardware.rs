//! Does the hardware do what the framework, the precision and the parallelism ask of it?

use super::cures::{advice, link, set, set_arg, unset};
use super::{Facts, Finding};
use crate::resolve::gpus_per_replica;

/// The arguments of tensor parallelism.
const TENSOR: &[&str] = &["tensor_parallel_size", "tp_size", "num_shard"];

/// The numbers of a compute capability or a version, for comparing.
pub(super) fn numbers(text: &str) -> Vec<u64> {
    text.split('.').map_while(|part| part.parse().ok()).collect()
}

/// The framework can serve models of the model's kind.
pub(super) fn framework_serves(facts: &Facts<'_>) -> Finding {
    let (kinds, modality) = (&facts.framework.modalities, &facts.model.modality);
    if kinds.is_empty() {
        return Finding::DoesNotApply;
    }
    if kinds.contains(modality) {
        return Finding::ok(format!("It serves {modality} models."));
    }
    let (code, hint) = match modality.as_str() {
        "asr" => ("vllm", "Choose vllm: it serves Whisper models."),
        "imagegen" => ("vllm-omni", "Choose vllm-omni, or sglang with its diffusion path."),
        _ => ("vllm", "Choose vllm, which covers most models."),
    };
    Finding::fails(
        format!(
            "{} {} serves {} models; {} is {modality}.",
            facts.workload.framework_code,
            facts.workload.framework_version,
            kinds.join(", "),
            facts.workload.model_code
        ),
        set("p_framework_code", code, hint),
    )
}

/// What kind of hardware the host is, in the words of the frameworks' lists.
fn vendor(facts: &Facts<'_>) -> Option<String> {
    let (count, _) = facts.gpus()?;
    if count == 0 {
        return Some("cpu".to_owned());
    }
    let reported = facts.capabilities().and_then(|host| host.gpus.first()).map(|gpu| gpu.name.to_lowercase());
    let name =
        reported.or_else(|| facts.accelerator.map(|a| format!("{} {}", a.vendor, a.kind).to_lowercase()))?;
    let of_nvidia = facts.capabilities().is_some_and(|host| host.driver_version.is_some());
    let known = [
        (["nvidia", "geforce", "tesla", "quadro"].as_slice(), "nvidia"),
        (&["amd", "instinct", "radeon", "mi3"], "amd"),
        (&["google", "tpu"], "google-tpu"),
        (&["intel", "arc"], "intel-xpu"),
    ];
    let found = known.iter().find(|(words, _)| words.iter().any(|word| name.contains(word)));
    found.map(|(_, vendor)| (*vendor).to_owned()).or_else(|| of_nvidia.then(|| "nvidia".to_owned()))
}

/// The build that is asked for is one for this kind of hardware.
pub(super) fn build_fits(facts: &Facts<'_>) -> Finding {
    let Some(profile) = facts.workload.build_profile.as_deref().filter(|_| !facts.is_external()) else {
        return Finding::DoesNotApply;
    };
    let Some(vendor) = vendor(facts) else { return Finding::unknown("the server's hardware is not known") };
    // `amd-mi300` is a build for some of AMD's. Every host has a processor.
    let is_of = |vendor: &str| {
        profile.strip_prefix(vendor).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    if is_of(&vendor) || is_of("cpu") {
        return Finding::ok(format!("Build {profile} runs on this server, which is {vendor}."));
    }
    if !["nvidia", "amd", "google-tpu", "intel-xpu"].into_iter().any(is_of) {
        return Finding::unknown(format!("it is not known which hardware build {profile} is for"));
    }
    Finding::Fails(
        format!("Build {profile} is not for this server, which is {vendor}."),
        vec![
            unset("p_build_profile", "Leave the build to the server's hardware."),
            link("/hardware", "Or choose another server."),
        ],
    )
}

/// Whether the framework's version serves without an accelerator. A processor is spelled by its maker in some lists.
fn serves_on_processors(facts: &Facts<'_>) -> bool {
    facts.framework.vendors.iter().any(|vendor| vendor == "cpu" || vendor.ends_with("-cpu"))
}

/// The framework's version runs on this kind of hardware, and on GPUs of this generation.
pub(super) fn hardware_supported(facts: &Facts<'_>) -> Finding {
    if facts.is_external() || facts.framework.vendors.is_empty() {
        return Finding::DoesNotApply;
    }
    let name = format!("{} {}", facts.workload.framework_code, facts.workload.framework_version);
    let Some(vendor) = vendor(facts) else { return Finding::unknown("the server's hardware is not known") };
    let runs = match vendor.as_str() {
        "cpu" => serves_on_processors(facts),
        vendor => facts.framework.vendors.iter().any(|known| known == vendor),
    };
    if !runs {
        return Finding::Fails(
            format!("{name} runs on {}; this server is {vendor}.", facts.framework.vendors.join(", ")),
            vec![
                set(
                    "p_framework_code",
                    if vendor == "cpu" { "llama-cpp" } else { "vllm" },
                    if vendor == "cpu" {
                        "Choose framework llama-cpp, which also runs on processors."
                    } else {
                        "Choose framework vllm, which runs on most hardware."
                    },
                ),
                link("/hardware", "Or choose another server."),
            ],
        );
    }
    let needed = facts.framework.min_compute_capability.as_deref().filter(|_| vendor == "nvidia");
    let Some(needed) = needed else { return Finding::ok(format!("{name} runs on {vendor}.")) };
    let Some(found) = facts.compute_capability() else {
        return Finding::unknown(format!(
            "{name} needs compute capability {needed}; the server's is not known"
        ));
    };
    if numbers(found) >= numbers(needed) {
        return Finding::ok(format!("{name} needs compute capability {needed}, the GPUs have {found}."));
    }
    Finding::Fails(
        format!("{name} needs compute capability {needed}, the GPUs have {found}."),
        vec![
            link("/hardware", "Choose a server with newer GPUs."),
            advice("Or choose an older framework version that still runs on these GPUs."),
        ],
    )
}

/// The compute capability from which NVIDIA GPUs compute in a precision.
fn capability_for(precision: &str) -> Option<(&'static str, &'static str)> {
    let precision = precision.to_ascii_lowercase();
    if precision.contains("fp4") {
        return Some(("fp4", "10.0"));
    }
    if precision.starts_with("fp8") {
        return Some(("fp8", "8.9"));
    }
    precision.starts_with("bf16").then_some(("bf16", "8.0"))
}

/// The accelerators compute in the precision of the weights, and of the cache.
pub(super) fn precision_supported(facts: &Facts<'_>) -> Finding {
    if !facts.loads_model() || facts.gpus().is_none_or(|(count, _)| count == 0) {
        return Finding::DoesNotApply;
    }
    let Some(precision) = facts.precision() else { return Finding::unknown("the precision is not known") };
    let Some((kind, needed)) = capability_for(precision) else { return Finding::DoesNotApply };
    let supported = match (facts.compute_capability(), facts.accelerator) {
        (Some(found), _) => numbers(found) >= numbers(needed),
        (None, Some(accelerator)) => accelerator.precisions.iter().any(|known| known == kind),
        (None, None) => {
            return Finding::unknown(format!("whether the accelerators compute in {kind} is not known"));
        }
    };
    if supported {
        return Finding::ok(format!("The accelerators compute in {kind}."));
    }
    let message = format!(
        "The accelerators do not compute in {kind}: the weights are converted, which is slower, or refused."
    );
    let fallback = if kind == "bf16" { "fp16" } else { "bf16" };
    Finding::Warning(
        message,
        vec![
            set("p_quantization", fallback, format!("Choose {fallback}, if the memory allows.")),
            link("/hardware", "Or choose a server whose accelerators have it."),
        ],
    )
}

/// Tensor parallelism fits the accelerators and divides the attention heads.
pub(super) fn tensor_parallel_divides(facts: &Facts<'_>) -> Finding {
    let Some(key) = facts.known_key(TENSOR).filter(|_| !facts.is_external()) else {
        return Finding::DoesNotApply;
    };
    let parallel = facts.tensor_parallel();
    let fitting =
        |number: u64| -> Vec<u64> { (1..=number.min(16)).filter(|n| number.is_multiple_of(*n)).collect() };
    let one_of = |numbers: &[u64]| {
        let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
        format!("Set it to one of {}.", words.join(", "))
    };
    let nearest = |numbers: &[u64]| numbers.iter().copied().filter(|n| *n <= parallel).max().unwrap_or(1);
    if let Some(heads) = facts.model.attention_heads.map(u64::from)
        && !heads.is_multiple_of(parallel)
    {
        let numbers = fitting(heads);
        return Finding::fails(
            format!("Tensor parallelism {parallel} does not divide the model's {heads} attention heads."),
            set_arg(key, nearest(&numbers), one_of(&numbers)),
        );
    }
    if let Some(heads) = facts.model.kv_heads.map(u64::from)
        && heads > 1
        && facts.model.attention_kind.as_deref().is_some_and(|kind| kind.starts_with("gqa") || kind == "mha")
        && !heads.is_multiple_of(parallel)
        && !parallel.is_multiple_of(heads)
    {
        let numbers = fitting(heads);
        return Finding::fails(
            format!(
                "Tensor parallelism {parallel} neither divides the model's {heads} key-value heads nor is a multiple of them."
            ),
            set_arg(key, nearest(&numbers), one_of(&numbers)),
        );
    }
    let Some((count, _)) = facts.gpus() else {
        return Finding::unknown("the number of accelerators is not known");
    };
    let processors = facts.accelerator.is_none_or(|accelerator| accelerator.kind == "cpu");
    if count == 0 && processors && serves_on_processors(facts) {
        if parallel > 1 {
            return Finding::fails(
                format!(
                    "Tensor parallelism {parallel} needs accelerators; the server has its processors alone."
                ),
                set_arg(key, 1, "Set it to 1."),
            );
        }
        if facts.accelerator.is_some() {
            return Finding::ok("It serves on the server's processors.");
        }
        return Finding::Warning(
            "The server has no accelerator that the agent could find: it serves on its processors."
                .to_owned(),
            vec![advice(
                "Have the framework's build for processors installed there, or choose a server with accelerators.",
            )],
        );
    }
    if count == 0 {
        return Finding::fails(
            "The server has no accelerator that the agent could find.",
            set(
                "p_framework_code",
                "llama-cpp",
                "Choose a server with accelerators, or framework llama-cpp, which also runs on processors.",
            ),
        );
    }
    let count = u64::from(count);
    let footprint = gpus_per_replica(&facts.engine_args(), &facts.framework.engine_args)
        .unwrap_or(parallel)
        .max(parallel);
    if footprint > count {
        let numbers = fitting(count);
        let most = nearest(&numbers);
        let message = if footprint == parallel {
            format!("Tensor parallelism {parallel} does not divide the server's {count} accelerators.")
        } else {
            format!(
                "One model server needs {footprint} accelerators (tensor × pipeline × data parallelism), the server has {count}."
            )
        };
        return Finding::Fails(
            message,
            vec![
                set_arg(key, most, one_of(&numbers)),
                link("/hardware", "Or choose a server with more accelerators."),
            ],
        );
    }
    if !count.is_multiple_of(parallel) {
        let numbers = fitting(count);
        return Finding::fails(
            format!("Tensor parallelism {parallel} does not divide the server's {count} accelerators."),
            set_arg(key, nearest(&numbers), one_of(&numbers)),
        );
    }
    Finding::ok(format!("Tensor parallelism {parallel} on {count} accelerators."))
}

/// The model servers that fit on the host use all of it, and each has requests to answer.
pub(super) fn replicas(facts: &Facts<'_>) -> Finding {
    let Some(Ok(resolved)) = facts.resolved else { return Finding::DoesNotApply };
    let (Some(each), Some((count, _))) = (resolved.commands.gpus_per_replica, facts.gpus()) else {
        return Finding::DoesNotApply;
    };
    let replicas = resolved.commands.replicas;
    let used = replicas.saturating_mul(each);
    if count == 0 || used > count {
        return Finding::DoesNotApply;
    }
    let servers = if replicas == 1 { "model server" } else { "model servers" };
    let message = format!("{replicas} {servers} of {each} accelerators use {used} of {count}.");
    if used < count {
        let one_endpoint = facts.tool.endpoints_argv.is_empty();
        let why = if one_endpoint { " The tool knows one endpoint only." } else { "" };
        let cure = match facts
            .known_key(TENSOR)
            .filter(|_| facts.model.attention_heads.is_none_or(|heads| heads.is_multiple_of(count)))
        {
            Some(key) => set_arg(
                key,
                count,
                format!("Set tensor parallelism to {count}, if the whole server is to be measured."),
            ),
            None => advice("Choose a degree of parallelism that divides the accelerators."),
        };
        return Finding::warning(format!("{message}{why} The rest is idle, and costs."), cure);
    }
    let few = facts.scenarios.iter().find(|scenario| scenario.concurrency < replicas);
    if let Some(scenario) = few {
        return Finding::warning(
            format!(
                "{message} {} keeps fewer requests in flight than there are model servers: some have nothing to do.",
                scenario.code()
            ),
            advice(format!("Choose a concurrency of at least {replicas}, or more tensor parallelism.")),
        );
    }
    Finding::ok(message)
}
