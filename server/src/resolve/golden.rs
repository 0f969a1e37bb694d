//! The exact command of every framework in the catalogue, and what no text of a person's may change about it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use events::Event;
use events::catalogue::{EngineArgsSetRegistered, FrameworkRegistered, ToolRegistered};
use events::job::ResolvedCommands;
use events::keys::StreamKey;
use events::workload::WorkloadSpec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::domain::testing::{scenario, workload};
use crate::seed::catalogue;

static ENTRIES: LazyLock<BTreeMap<StreamKey, Event>> = LazyLock::new(|| catalogue().unwrap());

fn framework(code: &str, version: &str) -> FrameworkRegistered {
    match ENTRIES.get(&StreamKey::new("framework", &["_", code, version])) {
        Some(Event::FrameworkRegistered(framework)) => (**framework).clone(),
        other => panic!("{code} {version}: {other:?}"),
    }
}

fn tool() -> ToolRegistered {
    match ENTRIES.get(&StreamKey::new("tool", &["_", "metrumbench-llm"])) {
        Some(Event::ToolRegistered(tool)) => tool.clone(),
        other => panic!("{other:?}"),
    }
}

fn set(code: &str) -> SetInForce {
    let Some(Event::EngineArgsSetRegistered(facts)) =
        ENTRIES.get(&StreamKey::new("engine_args_set", &["_", code]))
    else {
        panic!("no set {code}")
    };
    in_force(code, facts)
}

fn in_force(code: &str, facts: &EngineArgsSetRegistered) -> SetInForce {
    SetInForce { org: "_".into(), set_code: code.into(), version: 1, archived: false, facts: facts.clone() }
}

fn sets() -> impl Iterator<Item = (String, &'static EngineArgsSetRegistered)> {
    ENTRIES.iter().filter_map(|(stream, event)| match event {
        Event::EngineArgsSetRegistered(facts) => Some((stream.parts().remove(1), &**facts)),
        _ => None,
    })
}

/// A workload to resolve, on a host with so many accelerators.
struct Case {
    spec: WorkloadSpec,
    framework: FrameworkRegistered,
    set: Option<SetInForce>,
    gpus: Option<u32>,
    tool: ToolRegistered,
}

impl Case {
    fn of(code: &str, version: &str, model: &str, args: Value) -> Self {
        let Value::Object(args) = args else { panic!("an object") };
        let spec = WorkloadSpec {
            framework_code: code.into(),
            framework_version: version.into(),
            model_code: model.into(),
            engine_args: args.into_iter().collect(),
            ..workload()
        };
        Self { spec, framework: framework(code, version), set: None, gpus: None, tool: tool() }
    }

    /// A set on the version it was checked against.
    fn of_set(code: &str, args: Value) -> Self {
        let set = set(code);
        let facts = &set.facts;
        let model = facts.model_code.clone().unwrap_or_else(|| "acme/model".into());
        let case = Self::of(&facts.framework_code, &facts.framework_version, &model, args);
        Self { set: Some(set), ..case }
    }

    fn resolve(&self) -> Result<Resolved, Refusal> {
        let sidecars = self.set.iter().flat_map(|set| &set.facts.companions).map(|companion| {
            let code = companion.framework_code.clone();
            (code, framework(&companion.framework_code, &companion.framework_version))
        });
        resolve_all(&Inputs {
            workload: &self.spec,
            scenario: &scenario(),
            run_scenarios: &[],
            framework: &self.framework,
            tool: &self.tool,
            set: self.set.as_ref(),
            sidecars: &sidecars.collect(),
            gpus: self.gpus,
        })
    }

    fn commands(&self) -> ResolvedCommands {
        self.resolve().unwrap_or_else(|refusal| panic!("{}: {refusal:?}", self.spec.framework_code)).commands
    }

    fn refusal(&self) -> Refusal {
        self.resolve().expect_err("it is refused")
    }
}

const LLAMA: &str = "meta-llama/Llama-3.1-8B-Instruct";

#[test]
fn vllm_is_started_with_its_flags_each_in_one_element() {
    let args = json!({"tensor_parallel_size": 2, "max_model_len": "auto", "kv_cache_dtype": "fp8", "enable_prefix_caching": false});
    assert_eq!(
        Case::of("vllm", "0.28.0", LLAMA, args).commands().serve_argv,
        [
            "vllm",
            "serve",
            LLAMA,
            "--host=127.0.0.1",
            "--port={agent.port}",
            "--served-model-name=meta-llama/Llama-3.1-8B-Instruct",
            "--no-enable-prefix-caching",
            "--kv-cache-dtype=fp8",
            "--max-model-len=auto",
            "--tensor-parallel-size=2",
        ]
    );
}

#[test]
fn vllm_omni_is_started_in_its_omni_mode_with_the_imagegen_defaults() {
    let case = Case::of_set("vllm-omni-metrumbench-imagegen", json!({}));
    assert_eq!(
        case.commands().serve_argv,
        [
            "vllm",
            "serve",
            "acme/model",
            "--omni",
            "--host=127.0.0.1",
            "--port={agent.port}",
            "--served-model-name=acme/model",
            "--ring-degree=1",
            "--tensor-parallel-size=1",
            "--ulysses-degree=1",
        ]
    );
}

#[test]
fn sglang_is_started_with_the_imagegen_defaults() {
    let of = |args| {
        let case = Case::of_set("sglang-metrumbench-imagegen", args);
        Case { tool: ToolRegistered { modality: "imagegen".into(), ..tool() }, ..case }
    };
    let case = of(json!({"tp_size": 2, "ulysses_degree": 2}));
    assert_eq!(
        case.commands().serve_argv,
        [
            "sglang",
            "serve",
            "--model-path=acme/model",
            "--host=127.0.0.1",
            "--port={agent.port}",
            "--served-model-name=acme/model",
            "--num-gpus=4",
            "--ring-degree=1",
            "--tp-size=2",
            "--ulysses-degree=2",
        ]
    );
    let one = of(json!({})).commands().serve_argv;
    assert!(!one.concat().contains("num-gpus"), "one is what it takes by itself");
    let text = Case::of("sglang", "0.5.15.post1", LLAMA, json!({"tp_size": 4})).commands().serve_argv;
    assert!(!text.concat().contains("num-gpus"), "only its diffusion server takes that");
}

#[test]
fn sglang_is_started_with_its_model_path() {
    let args = json!({"tp_size": 4, "context_length": 4096, "mem_fraction_static": 0.85, "disable_radix_cache": true});
    assert_eq!(
        Case::of("sglang", "0.5.15.post1", LLAMA, args).commands().serve_argv[3..],
        [
            "--host=127.0.0.1",
            "--port={agent.port}",
            "--served-model-name=meta-llama/Llama-3.1-8B-Instruct",
            "--context-length=4096",
            "--disable-radix-cache",
            "--mem-fraction-static=0.85",
            "--tp-size=4",
        ]
    );
}

#[test]
fn trt_llm_is_started_with_underscores_in_its_flags() {
    let args = json!({"tp_size": 2, "max_seq_len": 4096, "kv_cache_free_gpu_memory_fraction": 0.9});
    assert_eq!(
        Case::of("trt-llm", "1.2.1", LLAMA, args).commands().serve_argv,
        [
            "trtllm-serve",
            LLAMA,
            "--host=127.0.0.1",
            "--port={agent.port}",
            "--kv_cache_free_gpu_memory_fraction=0.9",
            "--max_seq_len=4096",
            "--tp_size=2",
        ]
    );
}

#[test]
fn tgi_is_started_by_its_launcher() {
    let args = json!({"num_shard": 2, "max_total_tokens": 4096, "quantize": "fp8"});
    assert_eq!(
        Case::of("tgi", "3.3.6", LLAMA, args).commands().serve_argv,
        [
            "text-generation-launcher",
            "--model-id=meta-llama/Llama-3.1-8B-Instruct",
            "--hostname=127.0.0.1",
            "--port={agent.port}",
            "--max-total-tokens=4096",
            "--num-shard=2",
            "--quantize=fp8",
        ]
    );
}

#[test]
fn llama_cpp_takes_flags_and_values_apart() {
    assert_eq!(
        Case::of("llama-cpp", "0.7.0", "google/gemma-3-270m", json!({"flash_attn": "on"}))
            .commands()
            .serve_argv,
        [
            "llama-server",
            "--model",
            "{agent.model}",
            "--host",
            "127.0.0.1",
            "--port",
            "{agent.port}",
            "--alias",
            "google/gemma-3-270m",
            "--ctx-size",
            "1024",
            "--flash-attn",
            "on",
            "--parallel",
            "2",
        ]
    );
}

#[test]
fn ollama_takes_its_arguments_from_the_environment() {
    let commands =
        Case::of("ollama", "0.12.0", LLAMA, json!({"kv_cache_type": "q8_0", "flash_attention": "1"}))
            .commands();
    assert_eq!(commands.serve_argv, ["ollama", "serve"]);
    let env: Vec<(&str, &str)> = commands.serve_env.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(
        env,
        [
            ("OLLAMA_CONTEXT_LENGTH", "512"),
            ("OLLAMA_FLASH_ATTENTION", "1"),
            ("OLLAMA_HOST", "127.0.0.1:{agent.port}"),
            ("OLLAMA_KV_CACHE_TYPE", "q8_0"),
            ("OLLAMA_NUM_PARALLEL", "2"),
        ]
    );
    assert_eq!((commands.readiness_path.as_str(), commands.readiness_timeout_s), ("/api/version", 600));
}

#[test]
fn ollama_is_told_which_model_to_fetch_by_the_name_that_requests_ask_for() {
    let mut case = Case::of("ollama", "0.12.0", LLAMA, json!({}));
    case.spec.tool_args.insert("served_model_name".into(), json!("llama3.1:8b"));
    let commands = case.commands();
    assert_eq!(commands.fetch_argv, ["ollama", "pull", "llama3.1:8b"]);
    assert!(commands.tool_argv.contains(&"--model=llama3.1:8b".to_owned()));
    for option in ["--insecure", "-h"] {
        case.spec.tool_args.insert("served_model_name".into(), json!(option));
        case.refusal();
    }
}

#[test]
fn dynamo_is_a_worker_and_a_frontend_beside_it() {
    let commands = Case::of("dynamo", "1.5.1", LLAMA, json!({"tensor_parallel_size": 2})).commands();
    assert_eq!(
        commands.serve_argv,
        [
            "{agent.python}",
            "-m",
            "dynamo.vllm",
            "--model=meta-llama/Llama-3.1-8B-Instruct",
            "--served-model-name=meta-llama/Llama-3.1-8B-Instruct",
            "--discovery-backend=file",
            "--tensor-parallel-size=2",
        ]
    );
    assert_eq!(commands.companions.len(), 1);
    assert_eq!(
        commands.companions[0].argv,
        ["{agent.python}", "-m", "dynamo.frontend", "--http-port={agent.port}", "--discovery-backend=file"]
    );
    assert_eq!(commands.serve_env["DYN_FILE_KV"], "{agent.work_dir}/dynamo");
}

#[test]
fn an_openai_endpoint_starts_nothing() {
    let mut case = Case::of("openai", "v1", LLAMA, json!({}));
    case.spec.endpoint_url = Some("https://host.example:8000/v1".into());
    let commands = case.commands();
    assert!(
        commands.serve_argv.is_empty() && commands.serve_env.is_empty() && commands.companions.is_empty()
    );
    assert_eq!((commands.replicas, commands.gpus_per_replica), (1, None));
}

#[test]
fn a_sidecar_is_no_framework_of_a_workload() {
    assert_eq!(Case::of("lmcache-server", "0.5.6", LLAMA, json!({})).refusal().code, "sidecar_only");
}

#[test]
fn the_nvme_tier_brings_its_cache_server_with_the_guides_defaults() {
    let mut case = Case::of_set("vllm-kvoffload-lmcache-nvme", json!({"lmcache-server.l1_size_gb": 16.0}));
    case.spec.model_code = LLAMA.into();
    let Resolved { commands, dangerous } = case.resolve().unwrap();
    assert_eq!(
        commands.companions[0].argv,
        [
            "lmcache",
            "server",
            "--host=127.0.0.1",
            "--chunk-size=256",
            "--eviction-policy=LRU",
            "--eviction-ratio=0.2",
            "--eviction-trigger-watermark=0.8",
            "--l1-init-size-gb=8",
            "--l1-size-gb=16.0",
            "--l1-use-lazy",
            r#"--l2-adapter={"base_path":"/data/lmcache/l2","max_capacity_gb":0,"num_workers":4,"type":"fs_native","use_odirect":false}"#,
            "--l2-prefetch-max-in-flight=8",
            "--l2-prefetch-policy=default",
            "--l2-store-policy=default",
        ]
    );
    // The port of its HTTP interface, not that of its queue.
    let ready = &commands.companions[0];
    assert_eq!(ready.readiness_url.as_deref(), Some("http://127.0.0.1:8080/healthcheck"));
    assert_eq!(ready.readiness_timeout_s, Some(120));
    case.spec.engine_args.insert("lmcache-server.http_port".into(), json!(8099));
    let moved = case.resolve().unwrap().commands;
    assert_eq!(moved.companions[0].readiness_url.as_deref(), Some("http://127.0.0.1:8099/healthcheck"));
    assert!(commands.serve_argv.contains(
        &r#"--kv-transfer-config={"kv_connector":"LMCacheMPConnector","kv_role":"kv_both"}"#.to_owned()
    ));
    assert!(commands.serve_argv.contains(&"--gpu-memory-utilization=0.8".to_owned()));
    let named: Vec<(&str, &str)> = dangerous.iter().map(|d| (d.program.as_str(), d.key.as_str())).collect();
    assert!(
        named.contains(&("vllm", "trust_remote_code")) && named.contains(&("lmcache-server", "l2_adapter")),
        "{named:?}"
    );
    assert_eq!(commands.replicas, 1);
}

#[test]
fn an_argument_of_a_sidecar_that_the_set_does_not_bring_is_refused() {
    let case = Case::of("vllm", "0.28.0", LLAMA, json!({"lmcache-server.l1_size_gb": 16.0}));
    assert_eq!(case.refusal().code, "unknown_argument");
    let case = Case::of_set("vllm-kvoffload-lmcache-cpu", json!({"lmcache-server.l1_sise": 16.0}));
    assert_eq!(case.refusal().code, "unknown_argument");
}

#[test]
fn the_guides_recipe_gives_the_recipes_command() {
    let commands = Case::of_set("vllm-llama33-70b-instruct-h100-h200-tp8", json!({})).commands();
    assert_eq!(
        commands.serve_argv[6..],
        [
            "--async-scheduling",
            "--max-num-batched-tokens=8192",
            "--no-enable-prefix-caching",
            "--tensor-parallel-size=8",
        ]
    );
    let set = commands.engine_args_set.unwrap();
    assert_eq!((set.org.as_str(), set.version), ("_", 1));
    assert_eq!(commands.engine_args["tensor_parallel_size"], json!(8));
}

#[test]
fn what_a_workload_sets_stands_above_its_set_and_null_takes_away() {
    let changes = json!({"tensor_parallel_size": 4, "async_scheduling": null});
    let commands = Case::of_set("vllm-llama33-70b-instruct-h100-h200-tp8", changes).commands();
    assert_eq!(
        commands.serve_argv[6..],
        ["--max-num-batched-tokens=8192", "--no-enable-prefix-caching", "--tensor-parallel-size=4"]
    );
    let case = Case::of_set("vllm-llama33-70b-instruct-h100-h200-tp8", json!({"no_such_flag": null}));
    assert_eq!(case.refusal().code, "unknown_argument");
}

#[test]
fn a_set_for_other_weights_of_the_model_loads_those() {
    let of_other = sets().find(|(_, facts)| {
        facts.framework_code == "sglang"
            && facts.model_id.is_some()
            && facts.model_id != facts.model_code
            && !facts.values.contains_key("quantization")
            && facts.model_code.is_some()
    });
    let (code, facts) = of_other.expect("recipes name checkpoints");
    let mut case = Case::of_set(&code, json!({}));
    case.spec.quantization.clone_from(&facts.precision);
    let commands = case.commands();
    assert_eq!(commands.serve_argv[2], format!("--model-path={}", facts.model_id.as_ref().unwrap()));
    assert_eq!(commands.weights, facts.model_id);
    assert!(
        !commands.serve_argv.iter().any(|arg| arg.starts_with("--quantization")),
        "the weights say it themselves"
    );
}

#[test]
fn a_set_of_another_framework_or_for_a_newer_version_is_refused() {
    let mut case = Case::of_set("vllm-llama33-70b-instruct-h100-h200-tp8", json!({}));
    case.spec.framework_version = "0.11.2".into();
    assert_eq!(case.refusal().code, "framework_version_too_old");
    let mut other = Case::of("sglang", "0.5.15.post1", LLAMA, json!({}));
    other.set = Some(set("vllm-llama33-70b-instruct-h100-h200-tp8"));
    assert_eq!(other.refusal().code, "set_of_other_framework");
}

#[test]
fn every_set_resolves_to_its_own_flags_or_says_which_it_cannot() {
    let mut refused = BTreeSet::new();
    for (code, facts) in sets() {
        match Case::of_set(&code, json!({})).resolve() {
            Ok(resolved) => {
                let argv = &resolved.commands.serve_argv;
                let own = argv.iter().skip(6).filter(|arg| arg.starts_with("--")).count();
                assert!(own >= facts.values.len(), "{code}: {argv:?}");
                assert_eq!(resolved.commands.serve_env, facts.env, "{code}");
            }
            Err(refusal) => {
                assert_eq!(refusal.code, "unsupported_set", "{code}: {refusal:?}");
                assert!(!facts.verified, "{code}: what cannot be started is not verified");
                refused.insert(code);
            }
        }
    }
    assert_eq!(refused.len(), 4, "{refused:?}");
    assert_eq!(sets().count(), 557);
}

#[test]
fn every_sets_parallelism_is_its_number_of_accelerators() {
    let mut other = Vec::new();
    for (code, facts) in sets() {
        let templates = &framework(&facts.framework_code, &facts.framework_version).engine_args;
        let gpus = gpus_per_replica(&facts.values, templates);
        let stated = u64::from(facts.gpu_count.unwrap_or(1)) * u64::from(facts.nodes.unwrap_or(1));
        let per_host = facts.gpu_count.map(u64::from);
        if gpus != Some(stated) && gpus != per_host {
            other.push(format!("{code}: {gpus:?} of {stated}"));
        }
    }
    assert!(other.is_empty(), "{} sets: {other:#?}", other.len());
}

#[test]
fn the_families_that_the_guide_names_have_verified_sets() {
    let verified: BTreeSet<&str> = sets()
        .filter(|(_, facts)| facts.verified)
        .filter_map(|(_, facts)| facts.model_family.as_deref())
        .collect();
    for family in ["llama", "deepseek", "qwen", "gemma", "glm", "gpt-oss", "kimi", "mistral", "nemotron"] {
        assert!(verified.contains(family), "{family}: {verified:?}");
    }
    for (code, facts) in sets() {
        assert!(facts.source.as_deref().is_some_and(|source| !source.is_empty()), "{code} names no source");
    }
    for code in [
        "vllm-llama31-8b-instruct-h100-h200-trillium-xeon6-tp1",
        "vllm-llama33-70b-instruct-h100-h200-tp8",
        "vllm-llama33-70b-instruct-b200-gb200-tp1-fused",
        "vllm-omni-metrumbench-imagegen",
        "sglang-metrumbench-imagegen",
    ] {
        assert!(set(code).facts.named_in_seeds, "{code}");
    }
}

#[test]
fn sets_point_at_what_the_catalogue_has() {
    for (code, facts) in sets() {
        let there = |kind: &str, key: &str| ENTRIES.contains_key(&StreamKey::new(kind, &["_", key]));
        assert!(
            facts.model_code.as_deref().is_none_or(|model| there("model", model)),
            "{code}: {:?}",
            facts.model_code
        );
        for accelerator in &facts.accelerator_codes {
            assert!(there("accelerator", accelerator), "{code}: {accelerator}");
        }
    }
}

#[test]
fn a_host_is_filled_with_replicas_where_the_tool_knows_many_endpoints() {
    let replicas = |gpus, args: Value| {
        let mut case = Case::of("vllm", "0.28.0", LLAMA, args);
        case.gpus = gpus;
        let commands = case.commands();
        let many = commands.tool_argv.contains(&"--endpoints-file={agent.endpoints}".to_owned());
        assert_eq!(many, commands.replicas > 1);
        (commands.replicas, commands.gpus_per_replica)
    };
    assert_eq!(replicas(Some(8), json!({"tensor_parallel_size": 2})), (4, Some(2)));
    assert_eq!(replicas(Some(8), json!({"tensor_parallel_size": 8})), (1, Some(8)));
    assert_eq!(replicas(Some(8), json!({"tensor_parallel_size": 2, "data_parallel_size": 2})), (2, Some(4)));
    assert_eq!(replicas(Some(8), json!({"tensor_parallel_size": 3})), (2, Some(3)));
    assert_eq!(replicas(Some(2), json!({"tensor_parallel_size": 4})), (1, Some(4)));
    assert_eq!(replicas(Some(8), json!({})), (8, Some(1)));
    assert_eq!(replicas(Some(0), json!({})), (1, None));
    assert_eq!(replicas(None, json!({})), (1, None));
}

#[test]
fn a_tool_of_one_endpoint_and_a_server_with_companions_have_one_replica() {
    let mut case = Case::of("vllm", "0.28.0", LLAMA, json!({"tensor_parallel_size": 2}));
    case.gpus = Some(8);
    case.tool.endpoints_argv.clear();
    let commands = case.commands();
    assert_eq!((commands.replicas, commands.gpus_per_replica), (1, Some(2)));
    let mut dynamo = Case::of("dynamo", "1.5.1", LLAMA, json!({}));
    dynamo.gpus = Some(8);
    assert_eq!(dynamo.commands().replicas, 1);
}

#[test]
fn data_parallel_attention_shares_the_accelerators_of_tensor_parallelism() {
    let templates = framework("sglang", "0.5.15.post1").engine_args;
    let gpus = |args: Value| gpus_per_replica(&serde_json::from_value(args).unwrap(), &templates);
    assert_eq!(gpus(json!({"tp_size": 8, "dp_size": 8, "enable_dp_attention": true})), Some(8));
    assert_eq!(gpus(json!({"tp_size": 4, "dp_size": 2})), Some(8));
}

/// The options among elements: what a program would take for a flag.
fn options(argv: &[String]) -> Vec<String> {
    let flag = |element: &String| element.split('=').next().unwrap_or_default().to_owned();
    argv.iter().filter(|element| element.starts_with('-')).map(flag).collect()
}

/// Every framework that is started, with an argument that takes any text, where it has one.
const STARTED: &[(&str, &str, Option<&str>)] = &[
    ("vllm", "0.28.0", Some("reasoning_parser")),
    ("vllm-omni", "0.24.0", Some("quantization")),
    ("sglang", "0.5.15.post1", Some("reasoning_parser")),
    ("trt-llm", "1.2.1", Some("reasoning_parser")),
    ("tgi", "3.3.6", Some("revision")),
    ("llama-cpp", "0.7.0", Some("tensor_split")),
    ("ollama", "0.12.0", Some("keep_alive")),
    ("dynamo", "1.5.1", None),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_text_changes_the_number_of_elements_or_adds_an_option(text in ".{0,60}", model in ".{1,60}", served in ".{1,40}") {
        for (code, version, key) in STARTED {
            let case = |text: &str, model: &str, served: &str| {
                let args = key.map_or(json!({}), |key| json!({key: text}));
                let mut case = Case::of(code, version, model, args);
                case.spec.tool_args.insert("served_model_name".into(), json!(served));
                case
            };
            let plain = case("x", "m", "s").commands();
            let Ok(Resolved { commands, .. }) = case(&text, &model, &served).resolve() else { continue };
            let open = |argv: &[String]| argv.iter().filter(|element| element.contains("{agent.")).count();
            for (argv, plain) in [
                (&commands.serve_argv, &plain.serve_argv),
                (&commands.tool_argv, &plain.tool_argv),
                (&commands.fetch_argv, &plain.fetch_argv),
            ] {
                prop_assert_eq!(argv.len(), plain.len());
                prop_assert_eq!(options(argv), options(plain));
                prop_assert_eq!(argv.first(), plain.first());
                prop_assert_eq!(open(argv), open(plain));
            }
            prop_assert_eq!(commands.companions.len(), plain.companions.len());
            for (companion, plain) in commands.companions.iter().zip(&plain.companions) {
                prop_assert_eq!(companion.argv.len(), plain.argv.len());
            }
            prop_assert_eq!(
                commands.serve_env.keys().collect::<Vec<_>>(),
                plain.serve_env.keys().collect::<Vec<_>>()
            );
        }
    }
}
