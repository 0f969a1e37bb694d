//! Models, their caches and sets on accelerators.

use super::*;

#[test]
fn the_cache_is_counted_by_heads_layers_and_number_format() {
    // 131072 bytes a token at 16 bits; 24 GB × 0.92 less 16 GB of weights hold about 46,000 tokens.
    let mut world = World::vllm(LLAMA_8B, 1, 24.0).args(json!({"max_model_len": "auto"}));
    world.scenarios[0].input_sequence_length = Some(900);
    world.scenarios[0].output_sequence_length = Some(100);
    let holds = |world: &World| {
        let message = world.found("kv_cache_fits").message;
        let digits: String =
            message.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap_or_else(|_| panic!("{message}"))
    };
    let plain = holds(&world);
    assert!((46_000..47_000).contains(&plain), "{plain}");
    world.workload.engine_args.insert("kv_cache_dtype".into(), json!("fp8"));
    let halved = holds(&world);
    assert!(halved.abs_diff(2 * plain) <= 2, "{halved}");
    world.workload.engine_args.insert("gpu_memory_utilization".into(), json!(0.8));
    assert!(holds(&world) < halved);
    world.scenarios[0].concurrency = 512;
    let check = world.found("kv_cache_fits");
    assert_eq!(check.result, "warning");
    assert!(check.message.contains("512 requests of 1000 tokens need 512000"), "{}", check.message);
    world.model.kv_bytes_per_token_16bit = None;
    world.model.kv_heads = None;
    assert_eq!(world.result("kv_cache_fits"), "unknown");
}

#[test]
fn a_model_that_leaves_no_room_for_one_request_fails() {
    let mut world = World::vllm(LLAMA_8B, 1, 18.0).args(json!({"max_model_len": "auto"}));
    world.scenarios[0].input_sequence_length = Some(8000);
    let check = world.found("kv_cache_fits");
    assert_eq!(check.result, "fails", "{}", check.message);
    assert_eq!(sets(&check), ("p_engine_args.kv_cache_dtype".to_owned(), json!("fp8")));
}

#[test]
fn key_value_heads_and_tensor_parallelism_divide_one_another() {
    // 64 heads, 8 of keys and values: 16 is a multiple of 8, and 64 is a multiple of 16.
    let of = |gpus, parallel| {
        let world = World::vllm(LLAMA_70B, gpus, 80.0);
        world.args(json!({"tensor_parallel_size": parallel})).result("tensor_parallel_divides")
    };
    assert_eq!(of(16, 16), "ok");
    let mut odd = World::vllm(LLAMA_70B, 8, 80.0).args(json!({"tensor_parallel_size": 4}));
    odd.model.kv_heads = Some(6);
    let check = odd.found("tensor_parallel_divides");
    assert_eq!(check.result, "fails");
    assert!(check.message.contains("6 key-value heads"), "{}", check.message);
}

#[test]
fn a_build_for_other_hardware_fails_and_is_cured_by_leaving_it_out() {
    let of = |profile: &str| {
        let mut world = World::vllm(LLAMA_8B, 1, 80.0);
        gpu(&mut world, "NVIDIA H100 80GB HBM3", "9.0");
        world.workload.build_profile = Some(profile.into());
        world
    };
    assert_eq!([of("nvidia").result("build_fits"), of("cpu").result("build_fits")], ["ok", "ok"]);
    assert_eq!(of("vulkan").result("build_fits"), "unknown");
    for profile in ["amd", "amd-mi300", "nvidias"] {
        let found = of(profile).result("build_fits");
        assert_eq!(found, if profile == "nvidias" { "unknown" } else { "fails" }, "{profile}");
    }
    let check = of("amd").found("build_fits");
    assert!(matches!(&check.cure[0], Cure::Unset { field, .. } if field == "p_build_profile"));
}

#[test]
fn one_server_may_not_need_more_accelerators_than_there_are() {
    let args = json!({"tensor_parallel_size": 4, "pipeline_parallel_size": 2, "data_parallel_size": 2});
    let check = World::vllm(LLAMA_70B, 8, 80.0).args(args).found("tensor_parallel_divides");
    assert_eq!(check.result, "fails");
    assert!(check.message.contains("needs 16 accelerators"), "{}", check.message);
}

#[test]
fn replicas_that_leave_accelerators_idle_or_have_nothing_to_do_are_a_warning() {
    let of = |gpus, parallel, concurrency| {
        let mut world = World::vllm(LLAMA_70B, gpus, 141.0).args(json!({"tensor_parallel_size": parallel}));
        world.scenarios[0].concurrency = concurrency;
        world.found("replicas")
    };
    assert_eq!(of(8, 2, 8).result, "ok");
    assert!(of(8, 2, 8).message.contains("4 model servers of 2 accelerators use 8 of 8"));
    assert_eq!(of(8, 2, 3).result, "warning", "three requests for four servers");
    assert_eq!(of(6, 4, 8).result, "warning");
    let mut single = World::vllm(LLAMA_70B, 8, 141.0).args(json!({"tensor_parallel_size": 2}));
    single.tool.endpoints_argv.clear();
    let check = single.found("replicas");
    assert_eq!(check.result, "warning");
    assert!(
        check.message.contains("one endpoint only") && check.message.contains("use 2 of 8"),
        "{}",
        check.message
    );
    assert_eq!(sets(&check), ("p_engine_args.tensor_parallel_size".to_owned(), json!(8)));
}

#[test]
fn a_framework_runs_on_the_hardware_that_its_version_names() {
    let mut world = World::vllm(LLAMA_8B, 1, 80.0);
    gpu(&mut world, "NVIDIA H100 80GB HBM3", "9.0");
    assert_eq!(world.result("hardware_supported"), "ok");
    gpu(&mut world, "Tesla V100", "7.0");
    let check = world.found("hardware_supported");
    assert_eq!(check.result, "fails");
    assert!(check.message.contains("needs compute capability 7.5, the GPUs have 7.0"), "{}", check.message);
    gpu(&mut world, "NVIDIA B200", "10.0");
    assert_eq!(world.result("hardware_supported"), "ok", "10.0 is more than 7.5");

    let mut trt = World::of("trt-llm", "1.2.1", LLAMA_8B);
    let check = trt.found("hardware_supported");
    assert_eq!(check.result, "fails", "no processor");
    assert_eq!(sets(&check), ("p_framework_code".to_owned(), json!("llama-cpp")));
    trt.capabilities().gpus = World::vllm(LLAMA_8B, 1, 192.0).capabilities().gpus.clone();
    gpu(&mut trt, "AMD Instinct MI300X", "9.4");
    assert_eq!(trt.result("hardware_supported"), "fails");
    trt.capabilities().gpus[0].name = "something".into();
    assert_eq!(trt.result("hardware_supported"), "unknown");
}

#[test]
fn the_precision_is_one_that_the_accelerators_compute_in() {
    let of = |capability: &str, quantization: &str| {
        let mut world = World::vllm(LLAMA_8B, 1, 80.0);
        gpu(&mut world, "NVIDIA A100", capability);
        world.workload.quantization = Some(quantization.into());
        world.judge().checks.into_iter().find(|check| check.rule == "precision_supported")
    };
    let result = |capability: &str, quantization: &str| of(capability, quantization).unwrap().result;
    assert_eq!(result("8.0", "fp8"), "warning");
    assert_eq!(result("8.9", "fp8"), "ok");
    assert_eq!(result("9.0", "nvfp4"), "warning");
    assert_eq!(result("10.0", "mxfp4"), "ok");
    assert_eq!(result("7.5", "bf16"), "warning");
    assert_eq!(sets(&of("7.5", "bf16").unwrap()), ("p_quantization".to_owned(), json!("fp16")));
    assert!(of("8.0", "awq").is_none(), "weights alone are packed");
}

#[test]
fn without_an_agents_word_the_configurations_accelerator_counts() {
    let mut world = World::vllm(LLAMA_8B, 1, 80.0);
    world.server.as_mut().unwrap().capabilities = None;
    world.config = Some(ServerConfigRegistered {
        accelerator_code: Some("a100-80gb".into()),
        gpu_count: 2,
        gpu_memory_gb: Some(80.0),
        ..ServerConfigRegistered::default()
    });
    let Event::AcceleratorRegistered(facts) = entry("accelerator/_/a100-80gb") else { panic!() };
    world.accelerator = Some(*facts);
    world.workload.quantization = Some("fp8".into());
    assert_eq!(world.result("hardware_supported"), "ok");
    assert_eq!(world.result("precision_supported"), "warning");
    assert!(world.found("model_fits_memory").message.contains("80.0 GB"));
}

#[test]
fn a_framework_serves_the_models_kind() {
    let mut world = World::vllm(LLAMA_8B, 1, 80.0);
    assert_eq!(world.result("framework_serves"), "ok");
    world.model.modality = "imagegen".into();
    let check = world.found("framework_serves");
    assert_eq!(check.result, "fails");
    assert_eq!(sets(&check), ("p_framework_code".to_owned(), json!("vllm-omni")));
}

#[test]
fn the_tier_of_an_offloaded_cache_is_what_the_engine_arguments_serve() {
    let of = |tier: Option<&str>, set: Option<&str>| {
        let mut world = World::vllm(LLAMA_8B, 1, 80.0);
        let Event::ToolRegistered(tool) = entry("tool/_/kv-cache-offload") else { panic!() };
        (world.tool, world.workload.tool_code) = (tool, "kv-cache-offload".into());
        world.workload.tool_args = tier.map(|tier| ("tier".to_owned(), json!(tier))).into_iter().collect();
        match set {
            Some(set) => with_set(world, set),
            None => world,
        }
        .found("tier_fits")
    };
    assert_eq!(of(None, None).result, "ok");
    assert_eq!(of(Some("nvme"), Some("vllm-kvoffload-lmcache-nvme")).result, "ok");
    assert_eq!(of(Some("nvme"), Some("vllm-kvoffload-offloading-fs")).result, "ok");
    assert_eq!(of(Some("cpu"), Some("vllm-kvoffload-lmcache-cpu")).result, "ok");
    assert_eq!(of(Some("cpu"), Some("vllm-kvoffload-simple-cpu")).result, "ok");
    let wrong = of(None, Some("vllm-kvoffload-lmcache-nvme"));
    assert_eq!(
        (wrong.result.as_str(), sets(&wrong)),
        ("fails", ("p_tool_args.tier".to_owned(), json!("nvme")))
    );
    assert_eq!(of(Some("nvme"), Some("vllm-kvoffload-gpu")).result, "fails");
}

#[test]
fn a_set_is_for_its_model_precision_and_hardware() {
    const RECIPE: &str = "vllm-llama33-70b-instruct-h100-h200-tp8";
    let fits = with_set(World::vllm(LLAMA_70B, 8, 80.0), RECIPE);
    assert_eq!(fits.result("set_fits"), "ok");
    assert_eq!(fits.result("tensor_parallel_divides"), "ok", "the set's parallelism counts");
    assert!(fits.found("tensor_parallel_divides").message.contains("Tensor parallelism 8"));
    let other = with_set(World::vllm(LLAMA_8B, 8, 80.0), RECIPE);
    let check = other.found("set_fits");
    assert_eq!(check.result, "fails");
    assert_eq!(sets(&check), ("p_model_code".to_owned(), json!(LLAMA_70B)));
    let small = with_set(World::vllm(LLAMA_70B, 4, 80.0), RECIPE);
    assert_eq!(small.result("set_fits"), "fails");
    let mut labelled = with_set(World::vllm(LLAMA_70B, 8, 80.0), RECIPE);
    labelled.workload.quantization = Some("fp8".into());
    let check = labelled.found("set_fits");
    assert_eq!(check.result, "fails", "the label would not be true");
    assert_eq!(sets(&check), ("p_quantization".to_owned(), json!("bf16")));
    let mut elsewhere = with_set(World::vllm(LLAMA_70B, 8, 180.0), RECIPE);
    elsewhere.config = Some(ServerConfigRegistered {
        accelerator_code: Some("b200".into()),
        gpu_count: 8,
        ..ServerConfigRegistered::default()
    });
    assert_eq!(elsewhere.result("set_fits"), "warning");
}

#[test]
fn a_set_for_several_hosts_does_not_run_on_one() {
    let mut world = with_set(World::vllm(LLAMA_70B, 8, 80.0), "vllm-llama33-70b-instruct-h100-h200-tp8");
    world.set.as_mut().unwrap().facts.nodes = Some(2);
    let check = world.found("set_fits");
    assert_eq!(check.result, "fails");
    assert!(check.message.contains("2 hosts"), "{}", check.message);
}

#[test]
fn a_token_that_the_host_is_known_to_lack_stops_the_run() {
    let mut world = World::vllm(LLAMA_8B, 1, 80.0);
    world.capabilities().secrets = Some(vec![]);
    assert_eq!(world.result("token_present"), "fails");
    world.model.unverified = vec!["gated".into()];
    assert_eq!(world.result("token_present"), "warning", "it may not be gated at all");
    world.capabilities().secrets = Some(vec!["HF_TOKEN".into()]);
    assert_eq!(world.result("token_present"), "ok");
    world.capabilities().secrets = Some(vec![]);
    world.capabilities().models = vec![LLAMA_8B.into()];
    assert_eq!(world.result("token_present"), "ok", "the host has the model itself");
}

#[test]
fn an_environment_that_the_agent_does_not_pass_on_stops_the_run() {
    let mut world = with_set(World::vllm(LLAMA_70B, 8, 80.0), "vllm-llama33-70b-instruct-h100-h200-tp8");
    world.set.as_mut().unwrap().facts.env = [("VLLM_USE_V2_MODEL_RUNNER".to_owned(), "1".to_owned())].into();
    assert_eq!(world.result("environment_allowed"), "unknown");
    world.capabilities().env = Some(vec!["PATH".into()]);
    let check = world.found("environment_allowed");
    assert_eq!(check.result, "fails");
    assert!(check.message.contains("VLLM_USE_V2_MODEL_RUNNER"), "{}", check.message);
    world.capabilities().env = Some(vec!["VLLM_USE_V2_MODEL_RUNNER".into()]);
    assert_eq!(world.result("environment_allowed"), "ok");
}

#[test]
fn an_offloaded_cache_fits_the_hosts_memory() {
    let Event::FrameworkRegistered(lmcache) = entry("framework/_/lmcache-server/0.5.6") else { panic!() };
    let mut world = with_set(World::vllm(LLAMA_8B, 1, 80.0), "vllm-kvoffload-lmcache-cpu");
    world.sidecars = [("lmcache-server".to_owned(), *lmcache)].into();
    world.capabilities().ram_total_bytes = 64_000_000_000;
    let check = world.found("host_memory_fits");
    assert_eq!(check.result, "fails");
    assert_eq!(sets(&check), ("p_engine_args.lmcache-server.l1_size_gb".to_owned(), json!(32.0)));
    world.workload.engine_args = [("lmcache-server.l1_size_gb".to_owned(), json!(32.0))].into();
    assert_eq!(world.result("host_memory_fits"), "ok");
    assert!(
        World::vllm(LLAMA_8B, 1, 80.0).judge().checks.iter().all(|check| check.rule != "host_memory_fits")
    );
}

#[test]
fn a_server_that_claims_all_of_the_memory_is_a_warning() {
    let of = |share: f64| {
        World::vllm(LLAMA_8B, 1, 80.0).args(json!({"gpu_memory_utilization": share})).found("memory_headroom")
    };
    assert_eq!(of(0.9).result, "ok");
    assert_eq!(of(0.98).result, "warning");
    assert_eq!(sets(&of(0.98)), ("p_engine_args.gpu_memory_utilization".to_owned(), json!(0.9)));
}

#[test]
fn a_clock_that_is_off_is_a_warning_and_one_that_has_the_agent_refuse_work_fails() {
    let mut world = World::llama_cpp();
    world.capabilities().clock_offset_ms = Some(20.0);
    assert_eq!(world.result("clock_in_step"), "ok");
    for (off, result) in
        [(2_001.0, "warning"), (-4_000.0, "warning"), (4_001.0, "fails"), (-6_000.0, "fails")]
    {
        world.capabilities().clock_offset_ms = Some(off);
        assert_eq!(world.result("clock_in_step"), result, "{off}");
    }
}

#[test]
fn a_model_that_thinks_is_judged_by_its_answer_alone() {
    let world = |model: &str, args: Value| {
        let mut world = World::vllm(LLAMA_8B, 1, 80.0).args(args);
        let Event::ToolRegistered(kyai) = entry("tool/_/kyai") else { panic!() };
        (world.tool, world.workload.tool_code, world.workload.model_code) =
            (kyai, "kyai".into(), model.into());
        world
    };
    assert_eq!(world(LLAMA_8B, json!({})).result("reasoning_apart"), "unknown");
    let thinks = world("deepseek-ai/DeepSeek-R1", json!({})).found("reasoning_apart");
    assert_eq!(thinks.result, "warning");
    assert!(thinks.message.contains("reasoning_parser"), "{}", thinks.message);
    let apart = world("deepseek-ai/DeepSeek-R1", json!({"reasoning_parser": "deepseek_r1"}));
    assert_eq!(apart.result("reasoning_apart"), "ok");
    // Only a judge reads answers.
    let measured = World::vllm(LLAMA_8B, 1, 80.0).judge();
    assert!(measured.checks.iter().all(|check| check.rule != "reasoning_apart"));
}

#[test]
fn several_images_a_request_are_asked_of_pipelines_that_make_them() {
    let of = |model: &str, images: u32| {
        let mut world = World::vllm(LLAMA_8B, 1, 80.0);
        let Event::ToolRegistered(tool) = entry("tool/_/metrumbench-imagegen") else { panic!() };
        world.tool = tool;
        world.workload = WorkloadSpec {
            tool_code: "metrumbench-imagegen".into(),
            framework_code: "sglang".into(),
            model_code: model.into(),
            ..world.workload
        };
        world.scenarios[0].num_images_batch = Some(images);
        world.judge().checks.into_iter().find(|check| check.rule == "images_a_request")
    };
    assert!(of("Qwen/Qwen-Image", 1).is_none(), "one always goes");
    let fails = of("Tongyi-MAI/Z-Image-Turbo", 2).unwrap();
    assert_eq!(fails.result, "fails");
    assert_eq!(sets(&fails), ("p_scenarios.p_num_images_batch".to_owned(), json!([1])));
    assert_eq!(of("black-forest-labs/FLUX.1-dev", 2).unwrap().result, "ok");
    assert_eq!(of("someone/else", 2).unwrap().result, "warning");
}
