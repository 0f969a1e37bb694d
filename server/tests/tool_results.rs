//! Results that other tools measured: imported from files, or handed in for a job of InferenceX.

mod plane;

use events::access::Role;
use plane::agent::{Agent, CONFIG, rejected};
use plane::{Answer, Client, Plane};
use reqwest::Method;
use serde_json::{Value, json};
use server::clock;
use server::outbound::Policy;
use sha2::{Digest, Sha256};

async fn rows(client: &Client, plane: &Plane, path: &str) -> Vec<Value> {
    let head = plane.head().await;
    let request = client.request(Method::GET, path).header("prefer", format!("at-least={head}"));
    client.send(request).await.ok().as_array().unwrap().clone()
}

async fn project(member: &Client, code: &str) {
    member.rpc("create_project", &json!({"p_project_code": code, "p_name": code})).await.ok();
}

fn vllm() -> Value {
    json!({
        "model_id": "m", "num_prompts": 100, "request_rate": "inf", "max_concurrency": 8, "duration": 8.0,
        "completed": 100, "total_input_tokens": 6400, "total_output_tokens": 6400, "request_throughput": 12.5,
        "output_throughput": 800.0, "total_token_throughput": 1600.0, "mean_ttft_ms": 21.5, "median_ttft_ms": 20.0,
        "p99_ttft_ms": 40.25, "mean_tpot_ms": 9.5, "mean_e2el_ms": 630.0, "median_e2el_ms": 620.0,
    })
}

async fn import(member: &Client, file: &str, change: impl FnOnce(&mut Value)) -> Answer {
    let mut args = json!({
        "p_project_code": "p", "p_format": "vllm_bench_serve", "p_content": file,
        "p_model_code": "google/gemma-3-270m", "p_gpu_name": "NVIDIA H200", "p_gpu_count": 4,
        "p_cost_per_hour_usd": 28.8, "p_input_sequence_length": 64,
    });
    change(&mut args);
    member.rpc("import_results", &args).await
}

#[tokio::test]
async fn an_imported_result_stands_beside_the_measured_ones_and_says_so() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    project(&member, "p").await;
    let file = vllm().to_string();
    let reply = import(&member, &file, |_| ()).await.ok();
    let sha256 = hex::encode(Sha256::digest(file.as_bytes()));
    assert_eq!(reply["file_sha256"], json!(sha256));
    assert_eq!(reply["import_code"], json!(format!("vllm_bench_serve-{}", &sha256[..12])));

    let found = rows(&member, &plane, "/api/v_benchmark_results?project_code=eq.p").await;
    assert_eq!(found.len(), 1);
    let row = &found[0];
    assert_eq!((&row["imported"], &row["simulated"]), (&json!(true), &json!(false)));
    assert_eq!(row["tool_code"], json!("vllm-bench-serve"));
    assert_eq!(row["job"], reply["results"][0]);
    assert_eq!(row["scenario_code"], json!("c8-isl64"));
    assert_eq!(row["output_tokens_per_second"], json!(800));
    assert_eq!(row["output_tokens_per_second_per_gpu"], json!(200));
    assert_eq!(row["ttft_p99_ms"], json!(40.25));
    assert_eq!(row["tpot_excl_first_avg_ms"], json!(9.5));
    // 28.8 $/h are 0.008 $/s; 800 tokens/s make 10 $ a million.
    assert!((row["cost_per_million_output_tokens_usd"].as_f64().unwrap() - 10.0).abs() < 1e-9);
    for none in ["ttft_p95_ms", "tpot_avg_ms", "energy_j", "config_code", "framework_code", "ix_mean_tpot_ms"]
    {
        assert!(row[none].is_null(), "{none} is not in the file: {}", row[none]);
    }

    // Its provenance, down to the file.
    let job = reply["results"][0].as_str().unwrap();
    let history = member.get(&format!("/api/history?result={job}")).await.ok();
    let links: Vec<&str> =
        history["chain"].as_array().unwrap().iter().map(|l| l["link"].as_str().unwrap()).collect();
    assert_eq!(links, ["project", "file", "metrics"]);
    let blob = member.get(&format!("/api/blobs/acme/{sha256}")).await;
    assert_eq!(blob.text, file);
    plane.stop().await;
}

#[tokio::test]
async fn what_other_tools_wrote_of_a_real_server_is_imported_with_their_own_figures() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    project(&member, "p").await;
    let files = [
        ("guidellm", include_str!("../../events/src/foreign/captures/guidellm-0.8.1-llama-cpp.json")),
        ("aiperf", include_str!("../../events/src/foreign/captures/aiperf-0.13.0-llama-cpp.json")),
    ];
    for (format, file) in files {
        let told = |args: &mut Value| {
            args["p_format"] = json!(format);
            args["p_input_sequence_length"] = json!(48);
            args["p_output_sequence_length"] = json!(24);
        };
        import(&member, file, told).await.ok();
    }
    let found = rows(&member, &plane, "/api/v_benchmark_results?project_code=eq.p&order=tool_code").await;
    // What each showed on its console, rounded as there.
    let shown = |row: &Value, name: &str, digits: usize| {
        row[name].as_f64().map(|value| format!("{value:.digits$}")).unwrap_or_default()
    };
    let [aiperf, guidellm] = found.as_slice() else { panic!("two results: {found:?}") };
    for (row, digits, figures) in [
        (
            aiperf,
            2,
            [
                ("output_tokens_per_second", "9.57"),
                ("requests_per_second", "0.40"),
                ("ttft_avg_ms", "1491.43"),
                ("ttft_p99_ms", "1858.98"),
                ("tpot_excl_first_avg_ms", "152.60"),
                ("response_time_p50_ms", "5182.53"),
            ],
        ),
        (
            guidellm,
            1,
            [
                ("output_tokens_per_second", "20.2"),
                ("total_tokens_per_second", "64.2"),
                ("ttft_avg_ms", "668.7"),
                ("ttft_p95_ms", "992.5"),
                ("tpot_excl_first_p50_ms", "67.3"),
                ("tpot_excl_first_p95_ms", "102.5"),
            ],
        ),
    ] {
        for (name, figure) in figures {
            assert_eq!(shown(row, name, digits), figure, "{name} of {}", row["tool_code"]);
        }
        assert_eq!((&row["requests_succeeded"], &row["requests_failed"]), (&json!(16), &json!(0)));
        assert_eq!(row["scenario_code"], "c2-isl48-osl24");
        assert_eq!(row["imported"], true);
    }
    plane.stop().await;
}

#[tokio::test]
async fn the_same_file_is_imported_once() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    project(&member, "p").await;
    let file = vllm().to_string();
    import(&member, &file, |_| ()).await.ok();
    assert_eq!(import(&member, &file, |_| ()).await.refused().code, "already_imported");
    // As another import it is another result, if a person says so.
    import(&member, &file, |args| args["p_import_code"] = json!("again")).await.ok();
    plane.stop().await;
}

#[tokio::test]
async fn a_bad_file_is_refused_by_its_field_and_nothing_is_written() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    project(&member, "p").await;
    let head = plane.head().await;
    let mut broken = vllm();
    broken["completed"] = json!(-1);
    let refused = import(&member, &broken.to_string(), |_| ()).await.refused();
    assert!(refused.code == "bad_file" && refused.message.contains("completed"), "{refused:?}");
    let refused = import(&member, "{\n\"duration\": NaN}", |_| ()).await.refused();
    assert!(refused.message.contains("line 2"), "{refused:?}");
    let ours = |args: &mut Value| args["p_format"] = json!("metrumbench");
    let refused = import(&member, "{}\n\nnonsense\n", ours).await.refused();
    let details = refused.details.clone().unwrap_or_default();
    assert!(details.contains("line 1: ") && details.contains("\nline 3: "), "{refused:?}");
    let file = vllm().to_string();
    let code = async |change: fn(&mut Value)| import(&member, &file, change).await.refused().code;
    assert_eq!(code(|args| args["p_concurrency"] = json!(16)).await, "contradiction");
    assert_eq!(code(|args| args["p_model_code"] = json!("no/such")).await, "unknown_model");
    assert_eq!(code(|args| args["p_gpu_count"] = json!(0)).await, "bad_value");
    assert_eq!(code(|args| args["p_cost_per_hour_usd"] = json!(-1)).await, "bad_value");
    assert_eq!(code(|args| args["p_content"] = json!(null)).await, "file_missing");
    assert_eq!(code(|args| args["p_project_code"] = json!("elsewhere")).await, "project_not_found");
    assert_eq!(code(|args| args["p_import_code"] = json!("a/b")).await, "bad_code");
    assert_eq!(plane.head().await, head, "nothing was written");
    plane.stop().await;
}

#[tokio::test]
async fn a_large_file_is_uploaded_first() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    project(&member, "p").await;
    let mut large = vllm();
    large["generated_texts"] = json!(vec!["x".repeat(1000); 2000]);
    let bytes = large.to_string();
    let sha256 = hex::encode(Sha256::digest(bytes.as_bytes()));
    let by_upload = |args: &mut Value| {
        args["p_content"] = json!(null);
        args["p_upload_sha256"] = json!(sha256);
    };
    assert_eq!(import(&member, "", by_upload).await.refused().code, "file_missing");
    let put = member.request(Method::PUT, &format!("/api/uploads/{sha256}")).body(bytes.clone());
    assert_eq!(member.send(put).await.ok()["size"], json!(bytes.len()));
    // What nobody named yet, nobody reads.
    assert_eq!(member.get(&format!("/api/blobs/acme/{sha256}")).await.status.as_u16(), 404);
    import(&member, "", by_upload).await.ok();
    let wrong = member.request(Method::PUT, &format!("/api/uploads/{}", "0a".repeat(32))).body("x");
    assert_eq!(member.send(wrong).await.refused().code, "wrong_hash");
    plane.stop().await;
}

#[tokio::test]
async fn an_import_is_seen_by_those_who_see_its_project() {
    let plane = Plane::start().await;
    let (member, admin) = (plane.client(Role::Member).await, plane.client(Role::Admin).await);
    let private = json!({"p_project_code": "p", "p_name": "p", "p_visibility": "private"});
    member.rpc("create_project", &private).await.ok();
    let file = vllm().to_string();
    let reply = import(&member, &file, |_| ()).await.ok();
    let job = reply["results"][0].as_str().unwrap();
    let sha256 = reply["file_sha256"].as_str().unwrap();
    let seen = async |client: &Client| {
        let results = rows(client, &plane, "/api/v_benchmark_results").await.len();
        let history = client.get(&format!("/api/history?result={job}")).await.status.as_u16();
        let stream = client.get(&format!("/api/history?stream={job}")).await.status.as_u16();
        let blob = client.get(&format!("/api/blobs/acme/{sha256}")).await.status.as_u16();
        let events = rows(client, &plane, "/api/v_events?type=eq.tool_output.imported").await.len();
        (results, history, stream, blob, events)
    };
    assert_eq!(seen(&member).await, (1, 200, 200, 200, 1));
    assert_eq!(seen(&admin).await, (0, 404, 404, 404, 0), "private is its creator's alone");
    assert_eq!(seen(&plane.anonymous()).await, (0, 404, 404, 404, 0));
    let public = json!({"p_project_code": "p", "p_visibility": "public"});
    member.rpc("set_project_visibility", &public).await.ok();
    assert_eq!(seen(&plane.anonymous()).await, (1, 200, 200, 200, 1));
    plane.stop().await;
}

#[tokio::test]
async fn an_inferencex_aggregate_fills_its_own_view() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    project(&member, "p").await;
    let args = json!({
        "p_project_code": "p", "p_format": "inferencex", "p_content": aggregate().to_string(),
        "p_model_code": "google/gemma-3-270m",
    });
    member.rpc("import_results", &args).await.ok();
    let found = rows(&member, &plane, "/api/v_inferencex_outputs").await;
    let row = &found[0];
    assert_eq!(row["ix_tokens_per_second"], json!(8000));
    assert_eq!(row["ix_output_tput_per_gpu"], json!(500));
    assert_eq!((&row["ix_ttft_p99_ms"], &row["ix_p99_ttft_s"]), (&json!(500), &json!(0.5)));
    assert_eq!(row["ix_mean_interactivity_tps"], json!(50));
    assert_eq!((&row["ix_hardware"], &row["ix_tp"]), (&json!("h200"), &json!(8)));
    let unified = rows(&member, &plane, "/api/v_benchmark_results").await;
    assert_eq!(unified[0]["ix_mean_e2el_s"], row["ix_mean_e2el_s"]);
    assert_eq!(unified[0]["output_tokens_per_second"], json!(4000));
    plane.stop().await;
}

fn aggregate() -> Value {
    json!({"hw": "h200", "conc": 8, "model": "m", "framework": "vllm", "precision": "fp8", "isl": 64, "osl": 16, "tp": 8,
           "disagg": false, "tput_per_gpu": 1000.0, "output_tput_per_gpu": 500.0, "input_tput_per_gpu": 500.0,
           "mean_ttft": 0.25, "p99_ttft": 0.5, "mean_tpot": 0.02, "mean_e2el": 20.5})
}

/// A job of InferenceX that an agent holds; its scenario's arguments.
async fn inferencex_job(plane: &Plane, member: &Client) -> (Agent, Value) {
    let agent = Agent::enrol(plane, "h1").await;
    let capabilities = json!({"kind": "capabilities", "capabilities": {
        "agent_version": "0.1.0", "executables": ["benchtrail-refserver", "inferencex"],
    }});
    agent.report(&[(clock::now(), capabilities)]).await;
    let workload = json!({
        "p_workload_code": "w", "p_model_code": "google/gemma-3-270m", "p_framework_code": "refserver",
        "p_framework_version": "0.1.0", "p_tool_code": "inferencex",
        "p_scenarios": {"p_concurrency": [8], "p_input_sequence_length": [64], "p_output_sequence_length": [16]},
    });
    let args = json!({"p_project_code": "p", "p_name": "p", "p_workloads": [workload]});
    member.rpc("create_project", &args).await.ok();
    let start =
        json!({"p_project_code": "p", "p_workload_code": "w", "p_config_code": CONFIG, "p_hostname": "h1"});
    member.rpc("start_run", &start).await.ok();
    let place = json!({"p_project_code": "p", "p_workload_code": "w", "p_run_number": 1,
                       "p_scenario_code": "c8-isl64-osl16"});
    (agent, place)
}

fn with(place: &Value, results: Value) -> Value {
    let mut args = place.clone();
    args["p_results"] = results;
    args
}

#[tokio::test]
async fn a_job_of_inferencex_is_completed_by_its_result() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let (agent, place) = inferencex_job(&plane, &member).await;
    let ingest = async |results: Value| member.rpc("ingest_inferencex_results", &with(&place, results)).await;
    assert_eq!(ingest(aggregate()).await.refused().code, "job_not_running", "nobody has claimed it");
    let held = agent.claim().await.expect("a job waits");
    let mut other = aggregate();
    other["conc"] = json!(16);
    assert_eq!(ingest(other).await.refused().code, "bad_results");
    let mut broken = aggregate();
    broken["p99_ttft"] = json!("late");
    assert!(ingest(broken).await.refused().message.contains("p99_ttft"));
    ingest(aggregate()).await.ok();
    plane.until_type_after(0, "run.finished").await;
    let jobs = rows(&member, &plane, "/api/v_jobs?project_code=eq.p").await;
    assert_eq!(jobs[0]["status"], json!("completed"));
    let found = rows(&member, &plane, "/api/v_inferencex_outputs?project_code=eq.p").await;
    assert_eq!((&found[0]["job"], &found[0]["imported"]), (&jobs[0]["job"], &json!(false)));
    assert_eq!(found[0]["simulated"], json!(true), "the reference server answered");
    assert_eq!(jobs[0]["simulated"], json!(true), "the job says so too");
    // Its agent comes too late: a result is never replaced.
    assert!(matches!(ingest(aggregate()).await.refused().code.as_str(), "job_not_running" | "result_exists"));
    let late = json!({"kind": "completed", "job": held.job,
                      "completed": {"attempt": held.attempt, "telemetry_samples": 0, "log_lines": 0}});
    let outcomes = agent.report(&[(clock::now(), late)]).await;
    assert_eq!(rejected(&outcomes[0]), "attempt_ended");
    plane.stop().await;
}

#[tokio::test]
async fn a_person_doubts_a_result_with_a_reason_clears_the_doubt_with_another_and_hides_nothing() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let (agent, place) = inferencex_job(&plane, &member).await;
    let send = async |client: &Client, command: &str, own: Value| {
        let mut args = place.clone();
        args.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        client.rpc(command, &args).await
    };
    let doubt = json!({"p_rule": "odd", "p_message": "the host was shared"});
    assert_eq!(send(&member, "flag_result", doubt.clone()).await.refused().code, "no_result");
    agent.claim().await.expect("a job waits");
    member.rpc("ingest_inferencex_results", &with(&place, aggregate())).await.ok();
    plane.until_type_after(0, "run.finished").await;
    let viewer = plane.client(Role::Viewer).await;
    assert_eq!(send(&viewer, "flag_result", doubt.clone()).await.status, 403);
    assert_eq!(send(&member, "flag_result", json!({"p_message": " "})).await.refused().code, "bad_text");
    send(&member, "flag_result", doubt.clone()).await.ok();
    assert_eq!(send(&member, "flag_result", doubt).await.refused().code, "flag_exists");
    let flags = async || {
        let found = rows(&member, &plane, "/api/v_benchmark_results?project_code=eq.p").await;
        assert_eq!(found.len(), 1, "a doubted result stays");
        found[0]["flags"].to_string()
    };
    assert!(flags().await.contains("odd"), "{}", flags().await);
    let clear = |rule: &str, reason: &str| json!({"p_rule": rule, "p_reason": reason});
    assert_eq!(send(&viewer, "clear_flag", clear("odd", "x")).await.status, 403);
    assert_eq!(send(&member, "clear_flag", clear("odd", "")).await.refused().code, "bad_text");
    assert_eq!(send(&member, "clear_flag", clear("even", "x")).await.refused().code, "flag_not_found");
    send(&member, "clear_flag", clear("odd", "it was not")).await.ok();
    assert_eq!(send(&member, "clear_flag", clear("odd", "again")).await.refused().code, "flag_not_found");
    assert!(!flags().await.contains("odd"), "{}", flags().await);
    plane.stop().await;
}

#[tokio::test]
async fn a_tool_that_the_host_lacks_is_a_readiness_failure_with_its_cure() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    Agent::enrol(&plane, "h1").await;
    for (tool, word) in
        [("inferencex", "InferenceX"), ("genai-perf", "pip install genai-perf"), ("kyai", "docs/TOOLS.md")]
    {
        let mut workload = json!({
            "p_model_code": "google/gemma-3-270m", "p_framework_code": "refserver", "p_framework_version": "0.1.0",
            "p_tool_code": tool, "p_scenarios": {"p_concurrency": [1]},
        });
        if tool == "kyai" {
            workload["p_tool_args"] = json!({"dataset": "mmlu-pro"});
        }
        let args = json!({"p_workload": workload, "p_config_code": CONFIG, "p_hostname": "h1"});
        let readiness = member.rpc("check_readiness", &args).await.ok();
        assert_eq!(readiness["ready"], json!(false), "{tool}");
        let checks = readiness["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["rule"] == "tool_available").expect("the rule");
        assert_eq!(found["result"], json!("fails"), "{tool}");
        assert!(found["cures"][0].as_str().unwrap().contains(word), "{tool}: {found}");
    }
    plane.stop().await;
}

fn evaluation(score: f64, latency_ms: f64, dataset: &str, judge: &str) -> Value {
    let hash = |word: &str| hex::encode(Sha256::digest(word));
    json!({
        "load": {}, "figures": {"requests_succeeded": 98, "requests_failed": 2, "response_time_ms": {"avg": latency_ms}},
        "kyai": {"dataset": dataset, "dataset_sha256": hash(dataset), "generation_prompt_sha256": hash("g"),
                 "judge_prompt_sha256": hash("j"), "judge": judge, "questions": 100, "scored": 98, "errors": 2,
                 "score": score},
    })
}

#[tokio::test]
async fn evaluations_are_ranked_among_the_same_questions_and_judge_by_score_and_then_by_latency() {
    let plane =
        Plane::start_with(|config| config.endpoints = Policy::of_agents("127.0.0.0/8".parse().unwrap()))
            .await;
    let member = plane.client(Role::Member).await;
    let agent = Agent::enrol(&plane, "h1").await;
    let capabilities = json!({"kind": "capabilities", "capabilities": {
        "agent_version": "0.1.0", "executables": ["kyai"],
    }});
    agent.report(&[(clock::now(), capabilities)]).await;
    member.rpc("create_project", &json!({"p_project_code": "p", "p_name": "p"})).await.ok();
    let candidates = [
        ("google/gemma-3-270m", 0.5, 900.0, "mmlu-pro", "judge 1"),
        ("google/gemma-3-1b-it", 0.7, 900.0, "mmlu-pro", "judge 1"),
        ("Qwen/Qwen3-0.6B", 0.7, 300.0, "mmlu-pro", "judge 1"),
        ("Qwen/Qwen3-1.7B", 0.1, 300.0, "gpqa-diamond", "judge 1"),
        ("Qwen/Qwen3-4B", 0.2, 300.0, "mmlu-pro", "judge 2"),
    ];
    let mut heads = Vec::new();
    for (number, (model, score, latency, dataset, judge)) in candidates.iter().enumerate() {
        let code = format!("w{number}");
        let workload = json!({
            "p_workload_code": code, "p_model_code": model, "p_framework_code": "openai", "p_framework_version": "v1",
            "p_endpoint_url": "http://127.0.0.1:1/v1", "p_tool_code": "kyai", "p_tool_args": {"dataset": dataset},
            "p_scenarios": {"p_concurrency": [4]},
        });
        member.rpc("create_workload", &json!({"p_project_code": "p", "p_workload": workload})).await.ok();
        let start = json!({"p_project_code": "p", "p_workload_code": code, "p_config_code": CONFIG, "p_hostname": "h1"});
        member.rpc("start_run", &start).await.ok();
        let held = agent.claim().await.expect("a job waits");
        let mut output = evaluation(*score, *latency, dataset, judge);
        output["attempt"] = json!(held.attempt);
        output["invocation"] = json!({"tool_code": "kyai", "tool_version": "kyai 1", "argv": ["kyai"], "exit_code": 0,
                                      "summary_sha256": "0a".repeat(32)});
        let reported = json!({"kind": "external_output", "job": held.job, "output": output});
        let completed = json!({"kind": "completed", "job": held.job,
                               "completed": {"attempt": held.attempt, "telemetry_samples": 1, "log_lines": 0}});
        let telemetry = plane::agent::telemetry(&held, 1, clock::now());
        let items = [(clock::now(), telemetry), (clock::now(), reported), (clock::now(), completed)];
        let outcomes = agent.report(&items).await;
        assert!(
            outcomes.iter().all(|o| matches!(o, events::report::ItemOutcome::Accepted { .. })),
            "{outcomes:?}"
        );
        let path = format!("run/acme/p/{code}/1");
        let mut head = plane.state.log.watch();
        while !plane.types_of(&path).await.contains(&"run.finished".to_owned()) {
            head.changed().await.unwrap();
        }
        heads.push(plane.head().await);
    }
    let board =
        rows(&member, &plane, "/api/v_kyai_leaderboard?dataset=eq.mmlu-pro&judge=eq.judge 1&order=rank")
            .await;
    let ranks: Vec<(i64, &str)> = board
        .iter()
        .map(|row| (row["rank"].as_i64().unwrap(), row["model_code"].as_str().unwrap()))
        .collect();
    assert_eq!(ranks, [(1, "Qwen/Qwen3-0.6B"), (2, "google/gemma-3-1b-it"), (3, "google/gemma-3-270m")]);
    // As it stood after the first of them.
    let then = format!("/api/v_kyai_leaderboard?dataset=eq.mmlu-pro&as_of={}", heads[0]);
    let then = rows(&member, &plane, &then).await;
    assert_eq!(then.len(), 1);
    assert_eq!((&then[0]["rank"], &then[0]["model_code"]), (&json!(1), &json!("google/gemma-3-270m")));
    let other = rows(&member, &plane, "/api/v_kyai_leaderboard?dataset=eq.gpqa-diamond").await;
    assert_eq!((other.len(), &other[0]["rank"]), (1, &json!(1)), "other questions are another board");
    let other = rows(&member, &plane, "/api/v_kyai_leaderboard?judge=eq.judge 2").await;
    assert_eq!((other.len(), &other[0]["rank"]), (1, &json!(1)), "another judge is another board");
    // The leaderboard's quality is ranked within each of the three, now and as it stood then.
    for as_of in [String::new(), format!("&as_of={}", heads[4])] {
        let path = format!("/api/v_leaderboard?category=eq.quality&suspicious=is.true{as_of}");
        let board = rows(&member, &plane, &path).await;
        let mut ranks: Vec<(&str, i64, &str)> = board
            .iter()
            .map(|row| {
                let word = |name: &str| row[name].as_str().unwrap_or_default();
                (word("question_set"), row["rank"].as_i64().unwrap(), word("model_code"))
            })
            .collect();
        assert_eq!(ranks.len(), 5, "{board:?}");
        assert!(ranks.is_sorted_by_key(|(set, rank, _)| (*set, *rank)));
        ranks.retain(|(_, rank, _)| *rank == 1);
        let mut first: Vec<&str> = ranks.iter().map(|(_, _, model)| *model).collect();
        first.sort_unstable();
        assert_eq!(first, ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B", "Qwen/Qwen3-4B", "google/gemma-3-1b-it"]);
    }
    let unified = rows(&member, &plane, "/api/v_benchmark_results?workload_code=eq.w1").await;
    assert_eq!(unified[0]["kyai_score"], json!(0.7));
    // The questions are cited.
    let dataset = candidates[1].3;
    assert_eq!(unified[0]["prompt_source_code"], json!(dataset));
    assert_eq!(unified[0]["prompt_source_sha256"], json!(hex::encode(Sha256::digest(dataset))));
    plane.stop().await;
}
