//! The rules, each on a workload and a host that a test changes; what models, sets and accelerators need is in [`hardware`].

mod hardware;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use events::api::ReadinessCheck;
use events::prompt_source::{PromptSourceRef, PromptSourceType};
use events::server_host::{GpuInfo, HostCapabilities, ServerState};
use serde_json::{Value, json};

use super::*;
use crate::domain::testing::{scenario, server_key, workload};
use crate::resolve::{Inputs, resolve_all};
use crate::seed::catalogue;
use events::Event;

/// A workload on a server, as a test changes it.
struct World {
    server: Option<Server>,
    config: Option<ServerConfigRegistered>,
    accelerator: Option<AcceleratorRegistered>,
    set: Option<SetInForce>,
    unapproved: Vec<DangerousArg>,
    address_fault: Option<String>,
    endpoint_answer: Option<Result<u16, &'static str>>,
    prompt_source: Option<PromptSourceRef>,
    stored_token: bool,
    sidecars: BTreeMap<String, FrameworkRegistered>,
    model: ModelRegistered,
    framework: FrameworkRegistered,
    tool: ToolRegistered,
    workload: WorkloadSpec,
    scenarios: Vec<ScenarioSpec>,
}

fn entry(stream: &str) -> Event {
    static ENTRIES: LazyLock<BTreeMap<events::StreamKey, Event>> = LazyLock::new(|| catalogue().unwrap());
    ENTRIES.get(&stream.parse().unwrap()).expect("it is in the catalogue").clone()
}

impl World {
    fn llama_cpp() -> Self {
        Self::of("llama-cpp", "0.7.0", "google/gemma-3-270m")
    }

    fn vllm(model: &str, gpus: u32, gigabytes: f64) -> Self {
        let mut world = Self::of("vllm", "0.28.0", model);
        world.capabilities().gpus = (0..gpus)
            .map(|gpu| GpuInfo {
                gpu,
                name: "a GPU".into(),
                memory_total_bytes: Some((gigabytes * 1e9) as u64),
                power_limit_w: None,
                compute_capability: None,
            })
            .collect();
        world
    }

    fn of(framework: &str, version: &str, model: &str) -> Self {
        let Event::FrameworkRegistered(facts) = entry(&format!("framework/_/{framework}/{version}")) else {
            panic!()
        };
        let Event::ToolRegistered(tool) = entry("tool/_/metrumbench-llm") else { panic!() };
        let stream = events::StreamKey::new("model", &["_", model]);
        let Event::ModelRegistered(model_facts) = entry(stream.as_str()) else { panic!() };
        let capabilities = HostCapabilities {
            executables: vec!["llama-server".into(), "vllm".into(), "metrumbench-llm".into()],
            models: vec!["google/gemma-3-270m".into()],
            ram_total_bytes: 8_000_000_000,
            ..HostCapabilities::default()
        };
        let server = Server {
            comment: None,
            cost_per_hour_usd: None,
            ip_address: None,
            state: ServerState::Online,
            agent: Some(server_key().agent()),
            agent_version: None,
            nats_public_key: None,
            capabilities: Some(capabilities),
            removed: false,
            maintenance: None,
            version: 3,
        };
        let workload = WorkloadSpec {
            framework_code: framework.into(),
            framework_version: version.into(),
            model_code: model.into(),
            ..workload()
        };
        Self {
            server: Some(server),
            config: None,
            accelerator: None,
            set: None,
            unapproved: vec![],
            address_fault: None,
            endpoint_answer: None,
            prompt_source: None,
            stored_token: false,
            sidecars: BTreeMap::new(),
            model: *model_facts,
            framework: *facts,
            tool,
            workload,
            scenarios: vec![scenario()],
        }
    }

    fn capabilities(&mut self) -> &mut HostCapabilities {
        self.server.as_mut().and_then(|server| server.capabilities.as_mut()).expect("an enrolled server")
    }

    fn args(mut self, args: Value) -> Self {
        let Value::Object(args) = args else { panic!("an object") };
        self.workload.engine_args = args.into_iter().collect();
        self
    }

    fn judge(&self) -> Readiness {
        let key = server_key();
        let gpus = self.server.as_ref().and_then(|server| server.capabilities.as_ref());
        let gpus = gpus.map(|capabilities| capabilities.gpus.len() as u32);
        let resolved = self.scenarios.first().map(|scenario| {
            resolve_all(&Inputs {
                workload: &self.workload,
                scenario,
                run_scenarios: &self.scenarios,
                framework: &self.framework,
                tool: &self.tool,
                set: self.set.as_ref(),
                sidecars: &self.sidecars,
                gpus,
            })
        });
        let resolved = resolved.map(|resolved| {
            resolved.map(|mut resolved| {
                resolved.commands.prompt_source = self.prompt_source.clone();
                resolved
            })
        });
        check(&Facts {
            server_key: Some(&key),
            server: self.server.as_ref(),
            config: self.config.as_ref(),
            accelerator: self.accelerator.as_ref(),
            set: self.set.as_ref(),
            unapproved: &self.unapproved,
            address_fault: self.address_fault.as_deref(),
            endpoint_answer: self.endpoint_answer,
            stored_token: self.stored_token,
            model: &self.model,
            framework: &self.framework,
            tool: &self.tool,
            workload: &self.workload,
            scenarios: &self.scenarios,
            resolved: resolved.as_ref(),
        })
    }

    fn found(&self, rule: &str) -> ReadinessCheck {
        self.judge()
            .checks
            .into_iter()
            .find(|check| check.rule == rule)
            .unwrap_or_else(|| panic!("no {rule}"))
    }

    fn result(&self, rule: &str) -> String {
        self.found(rule).result
    }
}

#[test]
fn the_first_benchmark_is_ready() {
    let readiness = World::llama_cpp().judge();
    let failing: Vec<_> = readiness.checks.iter().filter(|check| check.result != "ok").collect();
    assert!(readiness.ready && failing.is_empty(), "{failing:?}");
    assert!(readiness.commands.is_some());
}

#[test]
fn whatever_fails_names_a_cure() {
    let mut world = World::llama_cpp().args(json!({"ctx_size": 64, "no_such_flag": 1}));
    world.server.as_mut().unwrap().state = ServerState::Offline;
    world.capabilities().executables.clear();
    world.capabilities().models.clear();
    world.capabilities().ram_total_bytes = 1;
    let readiness = world.judge();
    assert!(!readiness.ready);
    let failing: Vec<_> = readiness.checks.iter().filter(|check| check.result == "fails").collect();
    assert!(failing.len() >= 7, "{failing:?}");
    for check in failing {
        assert!(
            !check.cures.is_empty() && check.cures.iter().all(|cure| cure.ends_with(['.', '?'])),
            "{check:?}"
        );
    }
}

#[test]
fn a_server_is_ready_when_it_is_online_and_doubtful_when_it_is_stale() {
    let state = |state| {
        let mut world = World::llama_cpp();
        world.server.as_mut().unwrap().state = state;
        world.result("server_online")
    };
    assert_eq!(state(ServerState::Online), "ok");
    assert_eq!(state(ServerState::Stale), "warning");
    assert_eq!(state(ServerState::Offline), "fails");
    assert_eq!(state(ServerState::Registered), "fails");
    let mut resting = World::llama_cpp();
    resting.server.as_mut().unwrap().maintenance = Some("new fans".into());
    let check = resting.found("server_online");
    assert_eq!(check.result, "warning");
    assert!(check.message.contains("new fans"), "{}", check.message);
}

#[test]
fn a_server_that_is_not_there_fails() {
    let world = World { server: None, ..World::llama_cpp() };
    assert_eq!(world.result("server_online"), "fails");
    assert_eq!(world.result("framework_available"), "unknown");
}

#[test]
fn a_framework_the_agent_may_not_start_fails() {
    let mut world = World::llama_cpp();
    world.capabilities().executables = vec!["metrumbench-llm".into()];
    assert_eq!(world.result("framework_available"), "fails");
    assert_eq!(world.result("tool_available"), "ok");
    assert!(world.found("framework_available").message.contains("llama-server"));
}

#[test]
fn a_model_file_must_be_on_the_host() {
    let mut world = World::llama_cpp();
    assert_eq!(world.result("model_present"), "ok");
    world.capabilities().models = vec!["other/model".into()];
    let check = world.found("model_present");
    assert_eq!(check.result, "fails");
    assert!(check.message.contains("other/model"), "{}", check.message);
}

#[test]
fn a_stored_token_serves_for_a_gated_model() {
    let mut world = World::vllm("meta-llama/Llama-3.1-8B-Instruct", 1, 80.0);
    world.stored_token = true;
    assert_eq!(world.result("token_present"), "ok");
}

#[test]
fn a_gated_model_that_is_downloaded_wants_a_token() {
    let world = World::vllm("meta-llama/Llama-3.1-8B-Instruct", 1, 80.0);
    assert_eq!(world.result("token_present"), "warning");
    let mut local = World::llama_cpp();
    local.model.gated = true;
    assert!(
        local.judge().checks.iter().all(|check| check.rule != "token_present"),
        "a local file needs none"
    );
}

#[test]
fn a_model_too_large_for_the_memory_fails_with_the_parallelism_that_would_do() {
    let world = World::vllm("meta-llama/Llama-3.3-70B-Instruct", 8, 80.0);
    let check = world.found("model_fits_memory");
    assert_eq!(check.result, "fails");
    assert!(check.message.contains("140.0 GB"), "{}", check.message);
    assert!(check.cures.iter().any(|cure| cure.contains("tensor parallelism to 2")), "{:?}", check.cures);
    assert_eq!(world.args(json!({"tensor_parallel_size": 2})).result("model_fits_memory"), "ok");
}

#[test]
fn a_smaller_quantization_needs_less_memory() {
    let mut world = World::vllm("meta-llama/Llama-3.1-8B-Instruct", 1, 12.0);
    assert_eq!(world.result("model_fits_memory"), "fails");
    world.workload.quantization = Some("fp8".into());
    assert_eq!(world.result("model_fits_memory"), "ok");
    world.workload.quantization = Some("mystery".into());
    assert_eq!(world.result("model_fits_memory"), "unknown");
}

#[test]
fn a_quantization_that_nothing_applies_is_only_a_label() {
    let mut world = World::vllm("meta-llama/Llama-3.1-8B-Instruct", 1, 80.0);
    for (quantization, result) in [("fp8", "ok"), ("bf16", "ok"), ("q4_k_m", "warning")] {
        world.workload.quantization = Some(quantization.into());
        assert_eq!(world.result("quantization_applies"), result, "{quantization}");
    }
    let mut file = World::llama_cpp();
    file.workload.quantization = Some("q4_k_m".into());
    assert_eq!(file.result("quantization_applies"), "warning");
}

#[test]
fn without_accelerators_the_hosts_memory_counts() {
    let mut world = World::llama_cpp();
    assert!(world.found("model_fits_memory").message.contains("the host's memory"));
    world.capabilities().ram_total_bytes = 100_000_000;
    assert_eq!(world.result("model_fits_memory"), "fails");
}

#[test]
fn tensor_parallelism_divides_heads_and_accelerators() {
    let of = |gpus, parallel| {
        let world = World::vllm("meta-llama/Llama-3.3-70B-Instruct", gpus, 80.0);
        world.args(json!({"tensor_parallel_size": parallel})).found("tensor_parallel_divides")
    };
    assert_eq!(of(8, 8).result, "ok");
    assert_eq!(of(8, 3).result, "fails");
    assert!(of(8, 3).message.contains("64 attention heads"));
    assert_eq!(of(4, 8).result, "fails");
    assert!(of(6, 4).cures[0].contains("1, 2, 3, 6"), "{:?}", of(6, 4).cures);
    assert_eq!(of(0, 2).result, "fails");
}

#[test]
fn a_server_without_accelerators_serves_on_its_processors_where_the_framework_can() {
    let on = |(vendor, kind): (&str, &str), gpus, parallel| {
        let mut world = World::vllm("meta-llama/Llama-3.1-8B-Instruct", 0, 80.0);
        world.accelerator = (!vendor.is_empty()).then(|| AcceleratorRegistered {
            vendor: vendor.into(),
            kind: kind.into(),
            ..AcceleratorRegistered::default()
        });
        world.config = Some(ServerConfigRegistered { gpu_count: gpus, ..ServerConfigRegistered::default() });
        let world = world.args(json!({"tensor_parallel_size": parallel}));
        [world.result("tensor_parallel_divides"), world.result("hardware_supported")]
    };
    assert_eq!(on(("Intel", "cpu"), 0, 1), ["ok", "ok"]);
    assert_eq!(on(("", ""), 0, 1), ["warning", "ok"]);
    // One whose driver is gone is no server without.
    assert_eq!(on(("NVIDIA", "gpu"), 8, 1)[0], "fails");
    // What agents cannot list is there as the configuration says.
    assert_eq!(on(("Google", "tpu"), 8, 8), ["ok", "ok"]);
    assert_eq!(on(("Google", "tpu"), 4, 8)[0], "fails");
    assert_eq!(on(("Intel", "gpu"), 2, 2), ["ok", "ok"]);
}

#[test]
fn the_context_holds_input_and_output() {
    let with = |args| World::llama_cpp().args(args).found("context_covers");
    assert_eq!(with(json!({})).result, "ok");
    assert_eq!(with(json!({"ctx_size": 384})).result, "ok");
    let cut = with(json!({"ctx_size": 382}));
    assert_eq!(cut.result, "fails");
    assert!(cut.message.contains("shared by 2 slots"), "{}", cut.message);
    let vllm = |length| {
        let world = World::vllm("meta-llama/Llama-3.1-8B-Instruct", 1, 80.0);
        world.args(json!({"max_model_len": length})).result("context_covers")
    };
    assert_eq!(vllm(192), "ok");
    assert_eq!(vllm(191), "fails");
    // The model has 131,072: more would fail at launch, unless the model is told otherwise.
    assert_eq!(vllm(131_072), "ok");
    assert_eq!(vllm(131_073), "fails");
    let stretched = json!({"max_model_len": 200_000, "hf_overrides": "{}"});
    let world = World::vllm("meta-llama/Llama-3.1-8B-Instruct", 1, 80.0).args(stretched);
    assert_eq!(world.result("context_covers"), "ok");
}

#[test]
fn a_scenario_longer_than_the_models_context_fails() {
    let mut world = World::llama_cpp();
    world.scenarios[0].input_sequence_length = Some(40_000);
    let check = world.found("context_covers");
    assert_eq!(check.result, "fails");
    assert!(check.message.contains("32768"), "{}", check.message);
}

#[test]
fn too_few_requests_are_a_warning_not_a_failure() {
    let requests = |num_requests| {
        let mut world = World::llama_cpp();
        world.scenarios[0].num_requests = num_requests;
        world.found("load_is_sound")
    };
    assert_eq!(requests(200).result, "ok");
    assert!(requests(10).message.contains("smoke test"));
    assert!(requests(1).message.contains("never in flight"));
    assert_eq!(requests(1).result, "warning");
}

#[test]
fn a_server_that_each_scenario_sizes_for_itself_takes_what_is_in_flight() {
    let mut world = World::llama_cpp();
    let first = world.scenarios[0].clone();
    world.scenarios = [1, 2, 4].map(|concurrency| ScenarioSpec { concurrency, ..first.clone() }).to_vec();
    assert_eq!(world.result("load_is_sound"), "ok");
    assert_eq!(world.args(json!({"parallel": 2})).result("load_is_sound"), "warning");
}

#[test]
fn more_requests_in_flight_than_the_server_takes_are_a_warning() {
    let world = World::llama_cpp().args(json!({"parallel": 1}));
    assert_eq!(world.result("load_is_sound"), "warning");
}

#[test]
fn an_endpoint_needs_neither_model_nor_framework() {
    let mut world = World::of("openai", "v1", "google/gemma-3-270m");
    assert_eq!(world.result("endpoint_url"), "fails");
    world.workload.endpoint_url = Some("http://10.0.0.7:8000/v1".into());
    let readiness = world.judge();
    assert!(readiness.ready, "{:?}", readiness.checks);
    let rules: Vec<&str> = readiness.checks.iter().map(|check| check.rule.as_str()).collect();
    assert!(!rules.contains(&"framework_available") && !rules.contains(&"model_present"), "{rules:?}");
}

#[test]
fn a_file_in_another_precision_than_the_workload_says_is_a_warning_with_its_cure() {
    let mut world = World::llama_cpp();
    let of = |world: &mut World, file: &str, quantization: Option<&str>| {
        let files = [("google/gemma-3-270m".to_owned(), file.to_owned())].into();
        world.capabilities().model_files = files;
        world.workload.quantization = quantization.map(str::to_owned);
        world.found("quantization_applies")
    };
    let check = of(&mut world, "gemma-3-270m-Q4_K_M.gguf", None);
    assert_eq!(check.result, "warning");
    assert!(
        check.message.contains("is in Q4_K_M; the workload says as published (bf16)"),
        "{}",
        check.message
    );
    assert_eq!(sets(&check), ("p_quantization".to_owned(), json!("q4_k_m")));
    let memory = world.found("model_fits_memory").message;
    assert!(memory.contains("in Q4_K_M"), "{memory}");
    assert_eq!(of(&mut world, "gemma-3-270m-Q4_K_M.gguf", Some("q4_k_m")).result, "ok");
    assert_eq!(of(&mut world, "gemma-3-270m-Q4_K_M.gguf", Some("fp8")).result, "warning");
    assert_eq!(of(&mut world, "gemma-3-270m-BF16.gguf", None).result, "ok");
    // A name that says nothing is taken at the workload's word.
    assert_eq!(of(&mut world, "gemma.gguf", Some("bf16")).result, "ok");
}

#[test]
fn an_endpoint_that_does_not_answer_is_a_warning() {
    let mut world = World::of("openai", "v1", "google/gemma-3-270m");
    world.workload.endpoint_url = Some("http://10.0.0.7:9/v1".into());
    world.endpoint_answer = Some(Ok(401));
    assert_eq!(world.result("endpoint_answers"), "ok");
    world.endpoint_answer = Some(Err("connection refused"));
    let check = world.found("endpoint_answers");
    assert_eq!(check.result, "warning");
    assert!(check.message.contains("http://10.0.0.7:9/v1") && check.message.contains("connection refused"));
}

#[test]
fn a_tool_that_the_host_lacks_says_how_it_is_got() {
    let mut world = World::llama_cpp();
    world.capabilities().executables = vec!["llama-server".into()];
    let check = world.found("tool_available");
    assert_eq!(check.result, "fails");
    assert!(check.cures[0].contains("metrumbench-llm") && check.cures[0].contains("agent.toml"), "{check:?}");
    let Event::ToolRegistered(inferencex) = entry("tool/_/inferencex") else { panic!() };
    world.tool = inferencex;
    let check = world.found("tool_available");
    assert_eq!((check.result.as_str(), check.cures.len()), ("fails", 2), "{check:?}");
    assert!(check.cures[1].contains("[executables]"));
}

#[test]
fn inputs_that_only_hosts_have_must_lie_on_this_one() {
    let mut world = World::llama_cpp();
    let source = PromptSourceRef {
        org: "_".into(),
        code: "librispeech-test-clean".into(),
        source_type: PromptSourceType::MetrumbenchAsrSnapshot,
        sha256: None,
        ground_truth_sha256: None,
    };
    world.prompt_source = Some(source.clone());
    let check = world.found("snapshot_present");
    assert_eq!(check.result, "fails");
    assert!(check.cures[0].contains("[snapshots] in agent.toml"), "{check:?}");
    world.capabilities().snapshots = vec!["librispeech-test-clean".into()];
    assert_eq!(world.result("snapshot_present"), "ok");
    // What the control plane keeps is fetched by its hash.
    world.prompt_source = Some(PromptSourceRef { sha256: Some("0a".repeat(32)), ..source });
    assert!(!world.judge().checks.iter().any(|check| check.rule == "snapshot_present"));
}

/// A rule without a test could find anything.
#[test]
fn every_rule_has_a_test_that_names_it() {
    let tests = concat!(include_str!("tests.rs"), include_str!("tests/hardware.rs"));
    let untested: Vec<&str> =
        RULES.iter().map(|(rule, ..)| *rule).filter(|rule| !tests.contains(&format!("\"{rule}\""))).collect();
    assert_eq!(untested, Vec::<&str>::new());
}

#[test]
fn an_address_that_the_operator_does_not_allow_stands_in_the_way() {
    let mut world = World::of("openai", "v1", "google/gemma-3-270m");
    world.workload.endpoint_url = Some("http://169.254.169.254/v1".into());
    world.address_fault = Some("p_endpoint_url is http://169.254.169.254/v1: not public".into());
    let found = world.found("addresses_allowed");
    assert_eq!(found.result, "fails");
    assert!(found.message.contains("169.254.169.254") && found.cures[0].contains("--endpoint-allow"));
    world.address_fault = None;
    assert_eq!(world.result("addresses_allowed"), "ok");
    let rules: Vec<String> = World::llama_cpp().judge().checks.into_iter().map(|check| check.rule).collect();
    assert!(!rules.contains(&"addresses_allowed".to_owned()), "nothing is named");
}

#[test]
fn the_reference_server_has_no_weights_to_fit_or_fetch() {
    let mut world = World::of("refserver", "0.1.0", "google/gemma-3-270m");
    world.capabilities().executables.push("benchtrail-refserver".into());
    let readiness = world.judge();
    assert!(readiness.ready);
    let rules: Vec<&str> = readiness.checks.iter().map(|check| check.rule.as_str()).collect();
    assert!(!rules.contains(&"token_present") && !rules.contains(&"model_fits_memory"), "{rules:?}");
}

#[test]
fn flags_that_load_code_are_approved_by_an_administrator_and_by_the_agents_policy() {
    let mut world =
        World::vllm("meta-llama/Llama-3.1-8B-Instruct", 1, 80.0).args(json!({"trust_remote_code": true}));
    let check = |world: &World| world.found("dangerous_args_approved");
    assert_eq!(check(&world).result, "warning", "an agent that does not say");
    world.capabilities().accept_dangerous = Some(false);
    assert_eq!(check(&world).result, "fails");
    assert!(check(&world).message.contains("agent"));
    world.capabilities().accept_dangerous = Some(true);
    assert_eq!(check(&world).result, "ok");
    world.unapproved = vec![DangerousArg {
        program: "vllm".into(),
        key: "trust_remote_code".into(),
        flag: "--trust-remote-code".into(),
        value: json!(true),
    }];
    let found = check(&world);
    assert_eq!(found.result, "fails");
    let Cure::Command { command, args, .. } = &found.cure[0] else { panic!("{found:?}") };
    assert_eq!(command, "approve_dangerous_args");
    assert_eq!(args["p_args"], json!({"trust_remote_code": true}));
    let plain = World::vllm("meta-llama/Llama-3.1-8B-Instruct", 1, 80.0);
    assert!(plain.judge().checks.iter().all(|check| check.rule != "dangerous_args_approved"));
}

#[test]
fn a_command_that_cannot_be_resolved_fails_with_the_hint() {
    let check = World::llama_cpp().args(json!({"ctxsize": 1})).found("commands_resolve");
    assert_eq!(check.result, "fails");
    assert!(check.cures[0].contains("ctx_size"), "{:?}", check.cures);
}

/// The field and the value of a check's first cure that sets one.
fn sets(check: &ReadinessCheck) -> (String, Value) {
    let set = check.cure.iter().find_map(|cure| match cure {
        Cure::Set { field, value, .. } => Some((field.clone(), value.clone())),
        _ => None,
    });
    set.unwrap_or_else(|| panic!("{check:?}"))
}

fn gpu(world: &mut World, name: &str, capability: &str) {
    for gpu in &mut world.capabilities().gpus {
        gpu.name = name.into();
        gpu.compute_capability = Some(capability.into());
    }
}

const LLAMA_8B: &str = "meta-llama/Llama-3.1-8B-Instruct";
const LLAMA_70B: &str = "meta-llama/Llama-3.3-70B-Instruct";

#[test]
fn every_cure_is_a_sentence_and_the_same_for_people_and_programs() {
    let mut world = World::vllm(LLAMA_70B, 8, 80.0);
    world.scenarios[0].input_sequence_length = Some(200_000);
    world.capabilities().executables.clear();
    for check in world.judge().checks {
        let labels: Vec<&str> = check.cure.iter().map(Cure::label).collect();
        assert_eq!(labels, check.cures);
        assert!(labels.iter().all(|label| label.ends_with(['.', '?'])), "{labels:?}");
        assert!(check.result != "fails" || !labels.is_empty(), "{check:?}");
    }
}

#[test]
fn what_a_cure_sets_cures() {
    let mut world = World::vllm(LLAMA_70B, 8, 80.0);
    assert_eq!(world.result("model_fits_memory"), "fails");
    world.workload.engine_args = [("tensor_parallel_size".to_owned(), json!(3))].into();
    let (field, value) = sets(&world.found("tensor_parallel_divides"));
    assert_eq!((field.as_str(), &value), ("p_engine_args.tensor_parallel_size", &json!(2)));
    world.workload.engine_args = [("tensor_parallel_size".to_owned(), value)].into();
    assert_eq!(world.result("tensor_parallel_divides"), "ok");
    assert_eq!(world.result("model_fits_memory"), "ok");
    // Two cards hold the weights, not the cache of the model's whole context.
    let check = world.found("kv_cache_fits");
    assert_eq!(check.result, "fails", "{}", check.message);
    let (field, value) = sets(&check);
    let key = field.strip_prefix("p_engine_args.").unwrap();
    world.workload.engine_args.insert(key.to_owned(), value);
    assert_ne!(world.result("kv_cache_fits"), "fails", "{}", world.found("kv_cache_fits").message);
    assert_eq!(world.result("context_covers"), "ok");
}

fn with_set(world: World, code: &str) -> World {
    let Event::EngineArgsSetRegistered(facts) = entry(&format!("engine_args_set/_/{code}")) else { panic!() };
    let set =
        SetInForce { org: "_".into(), set_code: code.into(), version: 1, archived: false, facts: *facts };
    World { set: Some(set), ..world }
}
