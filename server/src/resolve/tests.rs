use std::collections::BTreeMap;
use std::sync::LazyLock;

use events::Event;
use events::catalogue::{FrameworkRegistered, ToolRegistered};
use events::job::ResolvedCommands;
use events::workload::{ScenarioSpec, WorkloadSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::domain::testing::{scenario, workload};
use crate::seed::catalogue;

struct Known {
    framework: FrameworkRegistered,
    tool: ToolRegistered,
}

fn known(code: &str, version: &str) -> Known {
    static ENTRIES: LazyLock<BTreeMap<events::StreamKey, Event>> = LazyLock::new(|| catalogue().unwrap());
    let take = |stream: &str| ENTRIES.get(&stream.parse().unwrap()).expect("it is in the catalogue").clone();
    let Event::FrameworkRegistered(framework) = take(&format!("framework/_/{code}/{version}")) else {
        panic!()
    };
    let Event::ToolRegistered(tool) = take("tool/_/metrumbench-llm") else { panic!() };
    Known { framework: *framework, tool }
}

fn spec(code: &str, version: &str, args: Value) -> WorkloadSpec {
    let Value::Object(args) = args else { panic!("an object") };
    WorkloadSpec {
        framework_code: code.into(),
        framework_version: version.into(),
        engine_args: args.into_iter().collect(),
        ..workload()
    }
}

fn resolved(spec: &WorkloadSpec, scenario: &ScenarioSpec) -> Result<ResolvedCommands, Refusal> {
    let known = known(&spec.framework_code, &spec.framework_version);
    resolve(&Inputs {
        workload: spec,
        scenario,
        run_scenarios: std::slice::from_ref(scenario),
        framework: &known.framework,
        tool: &known.tool,
        set: None,
        sidecars: &BTreeMap::new(),
        gpus: None,
    })
}

fn refusal(spec: &WorkloadSpec) -> Refusal {
    resolved(spec, &scenario()).expect_err("it is refused")
}

fn llama_cpp(args: Value) -> WorkloadSpec {
    spec("llama-cpp", "0.7.0", args)
}

#[test]
fn llama_cpp_gets_a_slot_a_request_and_a_context_for_all_of_them() {
    let commands = resolved(&llama_cpp(json!({})), &scenario()).unwrap();
    insta::assert_json_snapshot!(commands);
}

#[test]
fn llama_cpp_takes_flags_and_values_as_separate_elements() {
    let args = json!({"batch_size": 512, "flash_attn": "on", "n_gpu_layers": "all", "threads": 2});
    insta::assert_json_snapshot!(resolved(&llama_cpp(args), &scenario()).unwrap().serve_argv);
}

#[test]
fn the_reference_server_is_started_by_its_own_flags() {
    let spec = spec("refserver", "0.1.0", json!({"ttft_ms": 100, "itl_ms": 20.5}));
    insta::assert_json_snapshot!(resolved(&spec, &scenario()).unwrap().serve_argv);
}

#[test]
fn vllm_takes_each_flag_with_its_value_in_one_element() {
    let args = json!({
        "tensor_parallel_size": 8,
        "max_model_len": 8192,
        "gpu_memory_utilization": 0.9,
        "kv_cache_dtype": "fp8",
        "enable_expert_parallel": true,
        "no_enable_prefix_caching": true,
        "trust_remote_code": false,
    });
    let mut spec = spec("vllm", "0.28.0", args);
    spec.model_code = "meta-llama/Llama-3.3-70B-Instruct".into();
    insta::assert_json_snapshot!(resolved(&spec, &scenario()).unwrap());
}

#[test]
fn the_workloads_quantization_reaches_the_framework() {
    let flags = |quantization: &str| {
        let spec =
            WorkloadSpec { quantization: Some(quantization.into()), ..spec("vllm", "0.28.0", json!({})) };
        resolved(&spec, &scenario()).unwrap().serve_argv.split_off(6)
    };
    assert_eq!(flags("fp8"), ["--quantization=fp8"]);
    assert_eq!(flags("bf16"), ["--dtype=bfloat16"]);
    assert!(flags("q4_k_m").is_empty(), "no such format there: a label only");
}

#[test]
fn sglang_is_started_with_its_model_path() {
    let mut spec = spec("sglang", "0.5.15.post1", json!({"tp_size": 2, "context_length": 4096}));
    spec.model_code = "Qwen/Qwen3-8B".into();
    insta::assert_json_snapshot!(resolved(&spec, &scenario()).unwrap().serve_argv);
}

#[test]
fn an_openai_endpoint_starts_nothing() {
    let mut spec = spec("openai", "v1", json!({}));
    spec.endpoint_url = Some("https://host.example:8000/v1".into());
    spec.tool_args.insert("served_model_name".into(), json!("their-name"));
    insta::assert_json_snapshot!(resolved(&spec, &scenario()).unwrap());
}

#[test]
fn a_scenario_without_streaming_says_so_to_the_tool() {
    let silent = ScenarioSpec { streaming: Some(false), max_tokens: Some(32), ..scenario() };
    let argv = resolved(&llama_cpp(json!({})), &silent).unwrap().tool_argv;
    assert!(argv.contains(&"--no-streaming".to_owned()) && !argv.contains(&"--streaming".to_owned()));
    assert!(argv.contains(&"--max-tokens=32".to_owned()), "{argv:?}");
    assert!(argv.contains(&"--scenario=c2-isl128-osl64-nostream".to_owned()), "{argv:?}");
}

#[test]
fn tool_arguments_follow_the_template() {
    let mut spec = llama_cpp(json!({}));
    spec.tool_args = BTreeMap::from([
        ("ramp_up_seconds".to_owned(), json!(2.5)),
        ("mode".to_owned(), json!("completion")),
        ("ignore_eos".to_owned(), json!(true)),
        ("extra_body".to_owned(), json!({"top_k": 1})),
        ("job_timeout_seconds".to_owned(), json!(900)),
    ]);
    let commands = resolved(&spec, &scenario()).unwrap();
    assert_eq!(commands.job_timeout_s, 900);
    insta::assert_json_snapshot!(commands.tool_argv);
}

#[test]
fn a_kept_server_is_sized_for_the_largest_scenario_of_its_run() {
    let known = known("llama-cpp", "0.7.0");
    let large = ScenarioSpec { concurrency: 8, input_sequence_length: Some(1024), ..scenario() };
    let small = scenario();
    let run = [small.clone(), large.clone()];
    let argv = |keep_server| {
        let workload = WorkloadSpec { keep_server, ..llama_cpp(json!({})) };
        let inputs = Inputs {
            workload: &workload,
            scenario: &small,
            run_scenarios: &run,
            framework: &known.framework,
            tool: &known.tool,
            set: None,
            sidecars: &BTreeMap::new(),
            gpus: None,
        };
        resolve(&inputs).unwrap().serve_argv
    };
    let ctx_size = |argv: &[String]| -> u64 {
        let at = argv.iter().position(|element| element == "--ctx-size").unwrap();
        argv[at + 1].parse().unwrap()
    };
    assert_eq!(ctx_size(&argv(true)), 8 * context_per_request(&large));
    assert_eq!(ctx_size(&argv(false)), 2 * context_per_request(&small));
}

#[test]
fn a_workload_that_sets_its_slots_gets_a_context_for_them() {
    let argv = resolved(&llama_cpp(json!({"parallel": 4})), &scenario()).unwrap().serve_argv;
    let tail: Vec<&str> = argv[argv.len() - 4..].iter().map(String::as_str).collect();
    assert_eq!(tail, ["--ctx-size", "2048", "--parallel", "4"]);
}

#[test]
fn the_context_of_a_request_has_headroom() {
    assert_eq!(context_per_request(&scenario()), 512);
    assert!(context_per_request(&scenario()) >= 128 + 64 + 64);
}

#[test]
fn an_unknown_argument_names_the_nearest() {
    let refusal = refusal(&llama_cpp(json!({"ctxsize": 4096})));
    assert_eq!(refusal.code, "unknown_argument");
    assert_eq!(refusal.hint.as_deref(), Some("did you mean \"ctx_size\"?"));
}

#[test]
fn values_are_held_to_their_types_and_ranges() {
    for (args, wanted) in [
        (json!({"batch_size": "512"}), "a whole number of at least 1"),
        (json!({"batch_size": 0}), "a whole number of at least 1"),
        (json!({"batch_size": 1.5}), "a whole number of at least 1"),
        (json!({"flash_attn": "maybe"}), "one of on, off, auto"),
        (json!({"n_gpu_layers": 7}), "a text"),
        (json!({"n_gpu_layers": ""}), "1 to 4096 bytes"),
        (json!({"tensor_split": "a\nb"}), "no control characters"),
    ] {
        let refusal = refusal(&llama_cpp(args.clone()));
        assert_eq!(refusal.code, "bad_argument", "{args}");
        assert!(refusal.message.contains(wanted), "{args}: {}", refusal.message);
    }
    let refusal = refusal(&spec("vllm", "0.28.0", json!({"enable_expert_parallel": "yes"})));
    assert!(refusal.message.contains("true or false"), "{}", refusal.message);
}

#[test]
fn a_value_that_looks_like_an_option_is_refused_where_it_stands_alone() {
    let refusal = refusal(&llama_cpp(json!({"n_gpu_layers": "--rpc"})));
    assert!(refusal.message.contains("begins with '-'"), "{}", refusal.message);
}

#[test]
fn a_model_code_that_looks_like_an_option_is_refused() {
    let spec = WorkloadSpec { model_code: "--trust-remote-code".into(), ..spec("vllm", "0.28.0", json!({})) };
    assert!(refusal(&spec).message.contains("begins with '-'"));
}

#[test]
fn no_value_can_borrow_the_agents_placeholders() {
    for value in ["{agent.work_dir}", "a{{x}}", "{agent.unknown}"] {
        let refusal = refusal(&llama_cpp(json!({"n_gpu_layers": value})));
        assert!(refusal.message.contains("placeholders"), "{}", refusal.message);
    }
    let mut spec = llama_cpp(json!({}));
    spec.tool_args.insert("extra_body".into(), json!({"guided_json": {"a": {}}}));
    assert!(resolved(&spec, &scenario()).is_ok(), "JSON holds braces and no placeholder");
}

#[test]
fn a_scenarios_axes_are_not_the_tools_to_change() {
    let mut spec = llama_cpp(json!({}));
    spec.tool_args.insert("input_sequence_length".into(), json!(4096));
    assert_eq!(refusal(&spec).code, "scenario_axis");
}

#[test]
fn an_unresolved_placeholder_stops_the_run_and_is_named() {
    let mut known = known("llama-cpp", "0.7.0");
    known.framework.serve_argv.push("--speed={warp_factor}".into());
    let (workload, scenario) = (llama_cpp(json!({})), scenario());
    let inputs = Inputs {
        workload: &workload,
        scenario: &scenario,
        run_scenarios: &[],
        framework: &known.framework,
        tool: &known.tool,
        set: None,
        sidecars: &BTreeMap::new(),
        gpus: None,
    };
    let refusal = resolve(&inputs).unwrap_err();
    assert_eq!(refusal.code, "unresolved_placeholder");
    assert!(refusal.message.contains("{warp_factor}"), "{}", refusal.message);
    assert!(check_template(&known.framework.serve_argv).is_err());
}

#[test]
fn flags_that_load_code_are_listed() {
    let spec = spec("vllm", "0.28.0", json!({"trust_remote_code": true, "tensor_parallel_size": 1}));
    assert_eq!(resolved(&spec, &scenario()).unwrap().dangerous_flags, ["--trust-remote-code"]);
    let off = spec_off();
    assert!(resolved(&off, &scenario()).unwrap().dangerous_flags.is_empty(), "switched off is not dangerous");
}

fn spec_off() -> WorkloadSpec {
    spec("vllm", "0.28.0", json!({"trust_remote_code": false}))
}

#[test]
fn endpoints_are_plain_addresses() {
    let endpoint = |url: Option<&str>| {
        let mut spec = spec("openai", "v1", json!({}));
        spec.endpoint_url = url.map(str::to_owned);
        resolved(&spec, &scenario()).map(|commands| commands.endpoint_url).map_err(|refusal| refusal.code)
    };
    assert_eq!(endpoint(Some("http://10.0.0.7:8000")), Ok(Some("http://10.0.0.7:8000".into())));
    assert_eq!(endpoint(None), Err("endpoint_missing"));
    for bad in [
        "ftp://h/",
        "host:8000",
        "http://",
        "http://u:p@h/",
        "http://h/?k=v",
        "http://h/#f",
        "http://h/ x",
        "",
    ] {
        assert_eq!(endpoint(Some(bad)), Err("bad_endpoint"), "{bad:?}");
    }
    let started = WorkloadSpec { endpoint_url: Some("http://h/".into()), ..llama_cpp(json!({})) };
    assert_eq!(refusal(&started).code, "endpoint_without_use");
}

#[test]
fn an_endpoint_takes_no_engine_arguments() {
    let mut spec = spec("openai", "v1", json!({"threads": 2}));
    spec.endpoint_url = Some("http://h/".into());
    assert_eq!(refusal(&spec).code, "engine_args_without_engine");
}

#[test]
fn a_template_may_not_let_a_value_choose_the_executable() {
    assert!(check_template(&["{model_code}".into()]).is_err());
    assert!(check_template(&["{agent.python}".into(), "-m".into(), "sglang".into()]).is_ok());
    assert!(check_template(&["a".into(), "{open".into()]).is_err());
    assert!(check_template(&["a".into(), "close}".into()]).is_err());
}

/// The options among elements: what a program would take for a flag.
fn options(argv: &[String]) -> Vec<String> {
    let flag = |element: &String| element.split('=').next().unwrap_or_default().to_owned();
    argv.iter().filter(|element| element.starts_with('-')).map(flag).collect()
}

proptest! {
    #[test]
    fn no_text_changes_the_number_of_elements_or_adds_an_option(text in ".{0,60}", model in ".{1,60}", style in 0..2) {
        let (code, version, key) =
            if style == 0 { ("llama-cpp", "0.7.0", "n_gpu_layers") } else { ("vllm", "0.28.0", "reasoning_parser") };
        let plain = {
            let mut spec = spec(code, version, json!({key: "x"}));
            spec.model_code = "m".into();
            resolved(&spec, &scenario()).unwrap()
        };
        let mut spec = spec(code, version, json!({key: text.clone()}));
        spec.model_code = model.clone();
        if let Ok(commands) = resolved(&spec, &scenario()) {
            prop_assert_eq!(commands.serve_argv.len(), plain.serve_argv.len());
            prop_assert_eq!(commands.tool_argv.len(), plain.tool_argv.len());
            prop_assert_eq!(options(&commands.serve_argv), options(&plain.serve_argv));
            prop_assert_eq!(options(&commands.tool_argv), options(&plain.tool_argv));
            prop_assert_eq!(&commands.serve_argv[0], &plain.serve_argv[0]);
            let open = |argv: &[String]| argv.iter().filter(|element| element.contains("{agent.")).count();
            prop_assert_eq!(open(&commands.serve_argv), open(&plain.serve_argv));
            prop_assert_eq!(open(&commands.tool_argv), open(&plain.tool_argv));
        }
    }

    #[test]
    fn any_value_is_resolved_or_refused(key in "[a-z_]{1,12}", number in any::<i64>(), text in ".{0,20}") {
        for value in [json!(number), json!(text), json!(null), json!([1]), json!({"a": 1}), json!(1e300)] {
            let _ = resolved(&llama_cpp(json!({key.clone(): value, "ctx_size": number})), &scenario());
        }
    }
}
