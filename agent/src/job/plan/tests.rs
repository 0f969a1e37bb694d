use serde_json::{Value, json};

use super::*;

fn job(commands: Value) -> AssignedJob {
    let mut all = json!({
        "serve_argv": [], "tool_argv": ["env"], "readiness_path": "/health", "readiness_timeout_s": 60,
        "job_timeout_s": 60, "templates": []
    });
    for (key, value) in commands.as_object().unwrap() {
        all[key] = value.clone();
    }
    serde_json::from_value(json!({
        "job": {"org": "acme", "project": "p", "workload": "w", "run": 1, "scenario": "c1"},
        "attempt": 1,
        "server": {"org": "acme", "config": "cpu", "hostname": "h"},
        "claimed_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T00:10:00Z",
        "workload": {"model_code": "meta/llama", "framework_code": "f", "framework_version": "1", "tool_code": "metrumbench-llm"},
        "scenario": {"concurrency": 1, "num_requests": 1, "streaming": true},
        "commands": all, "sample_interval_ms": 1000,
    }))
    .unwrap()
}

fn planned(commands: Value, policy: &str) -> Result<Plan, Refusal> {
    planned_on(2, commands, policy)
}

fn planned_on(gpus: u32, commands: Value, policy: &str) -> Result<Plan, Refusal> {
    let policy: Policy = toml::from_str(&format!(
        "work_dir='/w'\nlog_dir='/l'\nsearch_dirs=['/usr/bin']\n{policy}\n[executables]\nenv=[]"
    ))
    .unwrap();
    let job = job(commands);
    let place = Place::of(&policy.work_dir, &policy.log_dir, &job.job, job.attempt);
    let released = [("HF_TOKEN".to_owned(), "hf_released".to_owned())].into();
    plan(&Given {
        job: &job,
        policy: &policy,
        place: &place,
        port: 9001,
        gpus,
        marker: "m",
        released: &released,
        sources: None,
    })
}

fn refusal(commands: Value, policy: &str) -> String {
    planned(commands, policy).err().expect("it should be refused").to_string()
}

#[test]
fn a_command_is_filled_and_its_program_becomes_an_absolute_path() {
    let commands = json!({
        "serve_argv": ["env", "--model={agent.model}", "--port", "{agent.port}", "{agent.gpus}"],
        "tool_argv": ["env", "--base-url={agent.base_url}", "--data-log={agent.data_log}", "--progress-file={agent.progress}"]
    });
    let plan = planned(commands, "").unwrap();
    assert_eq!(plan.serve[0].argv, ["/usr/bin/env", "--model=meta/llama", "--port", "9001", "0,1"]);
    assert_eq!(
        plan.tool.argv,
        [
            "/usr/bin/env",
            "--base-url=http://127.0.0.1:9001",
            "--data-log=/l/acme/p/w/1/c1/attempt-1/summary.jsonl",
            "--progress-file=/l/acme/p/w/1/c1/attempt-1/progress.jsonl"
        ]
    );
}

#[test]
fn a_job_without_a_server_uses_its_endpoint_and_does_not_ask_for_health() {
    let plan = planned(json!({"endpoint_url": "https://gpu.example/v1/"}), "").unwrap();
    assert!(plan.serve.is_empty());
    assert_eq!(plan.base_urls, ["https://gpu.example/v1"]);
    assert_eq!(
        (plan.endpoints[0].base_url.as_str(), plan.endpoints[0].readiness_path.as_str()),
        ("https://gpu.example", "")
    );
    assert!(refusal(json!({}), "").contains("endpoint_url"));
}

#[test]
fn a_program_that_the_policy_does_not_name_is_refused() {
    for program in ["sh", "/bin/sh", "{agent.python}", "../env"] {
        let why = refusal(json!({"serve_argv": [program]}), "");
        assert!(why.contains("not allowed by this host's policy"), "{program}: {why}");
    }
}

#[test]
fn a_flag_that_loads_code_is_refused_unless_the_policy_accepts_it() {
    let commands = json!({"endpoint_url": "http://h", "dangerous_flags": ["trust_remote_code"]});
    assert!(refusal(commands.clone(), "").contains("trust_remote_code"));
    assert!(planned(commands, "accept_dangerous = true").is_ok());
}

#[test]
fn an_environment_variable_that_the_policy_does_not_name_is_refused() {
    let commands = json!({"serve_argv": ["env"], "serve_env": {"LD_PRELOAD": "/evil.so"}});
    assert!(refusal(commands.clone(), "").contains("LD_PRELOAD"));
    let plan = planned(
        json!({"serve_argv": ["env"], "serve_env": {"OMP_NUM_THREADS": "2"}}),
        "env=['OMP_NUM_THREADS']",
    );
    assert_eq!(plan.unwrap().serve[0].env["OMP_NUM_THREADS"], "2");
}

#[test]
fn a_model_that_is_not_where_the_policy_says_is_refused() {
    let commands = json!({"serve_argv": ["env", "{agent.model}"]});
    let why = refusal(commands, "models = {'meta/llama' = '/no/such/model.gguf'}");
    assert!(why.contains("/no/such/model.gguf"), "{why}");
}

#[test]
fn an_unknown_tool_or_placeholder_is_refused() {
    assert!(refusal(json!({"serve_argv": ["env", "{tensor_parallel}"]}), "").contains("tensor_parallel"));
}

#[test]
fn each_replica_has_gpus_and_a_port_of_its_own_and_the_load_goes_to_all() {
    let commands = json!({
        "serve_argv": ["env", "--port={agent.port}", "--gpus={agent.gpus}"],
        "tool_argv": ["env", "--url={agent.base_url}", "--endpoints-file={agent.endpoints}"],
        "replicas": 4, "gpus_per_replica": 2,
    });
    let plan = planned_on(8, commands, "").unwrap();
    let argv: Vec<&[String]> = plan.serve.iter().map(|spec| &spec.argv[1..]).collect();
    assert_eq!(
        argv,
        [
            ["--port=9001", "--gpus=0,1"],
            ["--port=9002", "--gpus=2,3"],
            ["--port=9003", "--gpus=4,5"],
            ["--port=9004", "--gpus=6,7"],
        ]
    );
    for (spec, gpus) in plan.serve.iter().zip(["0,1", "2,3", "4,5", "6,7"]) {
        assert_eq!(
            (spec.env["CUDA_VISIBLE_DEVICES"].as_str(), spec.env["HIP_VISIBLE_DEVICES"].as_str()),
            (gpus, gpus)
        );
    }
    assert_eq!(plan.base_urls[3], "http://127.0.0.1:9004");
    assert_eq!(plan.endpoints.len(), 4);
    assert_eq!(plan.tool.argv[1], "--url=http://127.0.0.1:9001");
    assert_eq!(plan.tool.argv[2], "--endpoints-file=/l/acme/p/w/1/c1/attempt-1/endpoints.json");
}

#[test]
fn one_replica_is_pinned_to_its_gpus_and_a_host_without_any_pins_nothing() {
    let commands = json!({"serve_argv": ["env", "{agent.gpus}"], "gpus_per_replica": 1});
    let plan = planned_on(4, commands.clone(), "").unwrap();
    assert_eq!(plan.serve[0].argv[1], "0");
    let plan = planned_on(0, commands, "").unwrap();
    assert!(plan.gpu_sets.is_empty() && !plan.serve[0].env.contains_key("CUDA_VISIBLE_DEVICES"));
    let plan = planned_on(4, json!({"serve_argv": ["env", "{agent.gpus}"]}), "").unwrap();
    assert_eq!((plan.serve[0].argv[1].as_str(), plan.gpu_sets.len()), ("0,1,2,3", 0));
}

#[test]
fn more_replicas_than_the_host_has_gpus_for_are_refused() {
    let commands = json!({"serve_argv": ["env"], "replicas": 4, "gpus_per_replica": 2});
    for gpus in [0, 7] {
        let why = planned_on(gpus, commands.clone(), "").err().expect("refused").to_string();
        assert!(why.contains("4 replicas of 2 GPUs"), "{why}");
    }
    let unsaid = json!({"serve_argv": ["env"], "replicas": 2});
    assert!(refusal(unsaid, "").contains("does not say"));
}

#[test]
fn the_environments_values_are_filled_too_and_companions_are_started_beside() {
    let commands = json!({
        "serve_argv": ["env"], "serve_env": {"OLLAMA_HOST": "127.0.0.1:{agent.port}"},
        "companions": [{"name": "frontend", "argv": ["env", "--http-port={agent.port}"]}],
    });
    let plan = planned(commands.clone(), "env=['OLLAMA_HOST']").unwrap();
    assert_eq!(plan.serve[0].env["OLLAMA_HOST"], "127.0.0.1:9001");
    assert_eq!(plan.companions[0].0.argv, ["/usr/bin/env", "--http-port=9001"]);
    assert!(refusal(commands, "").contains("OLLAMA_HOST"));
    let forbidden = json!({"serve_argv": ["env"], "companions": [{"name": "x", "argv": ["sh", "-c", "id"]}]});
    assert!(refusal(forbidden, "").contains("not allowed by this host's policy"));
}

#[test]
fn a_released_token_is_in_the_model_servers_environment_alone_and_where_the_policy_allows_it() {
    let commands = json!({"serve_argv": ["env"], "tool_argv": ["env"]});
    let plan = planned(commands.clone(), "secret_env=['HF_TOKEN']").unwrap();
    let serve = &plan.serve[0];
    // A host's own value would go first; the tests' environment has none.
    assert_eq!(serve.env.get("HF_TOKEN").map(String::as_str), Some("hf_released"));
    assert!(!plan.tool.env.contains_key("HF_TOKEN") && !serve.argv.concat().contains("hf_released"));
    let plan = planned(commands, "secret_env=[]\nenv=['PATH']").unwrap();
    assert!(!plan.serve[0].env.contains_key("HF_TOKEN"));
}

#[test]
fn the_tool_may_connect_to_the_policys_networks_and_to_the_servers_of_its_own_job() {
    let env = |commands: Value, policy: &str| {
        planned_on(8, commands, policy).unwrap().tool.env[NETWORKS_ENV].clone()
    };
    let replicas = json!({"serve_argv": ["env"], "replicas": 2, "gpus_per_replica": 2});
    assert_eq!(env(replicas, ""), "127.0.0.1:9001,127.0.0.1:9002");
    let endpoint = json!({"endpoint_url": "https://gpu.example/v1/"});
    assert_eq!(env(endpoint.clone(), ""), "");
    assert_eq!(env(endpoint, "allowed_networks = ['10.0.0.0/8']"), "10.0.0.0/8");
}
