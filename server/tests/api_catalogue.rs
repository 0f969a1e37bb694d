//! The catalogue as people meet it: its views, an organisation's own entries and sets, and what must be approved.

mod plane;

use events::access::Role;
use plane::agent::{Agent, CONFIG};
use plane::{Client, ORG, Plane};
use serde_json::{Value, json};
use server::clock;
use server::seed::{Seeded, seed};

const LLAMA: &str = "meta-llama/Llama-3.1-8B-Instruct";
const RECIPE: &str = "vllm-llama33-70b-instruct-h100-h200-tp8";
const SMALL_RECIPE: &str = "vllm-llama31-8b-instruct-h100-h200-trillium-xeon6-tp1";

async fn rows(client: &Client, plane: &Plane, path: &str) -> Vec<Value> {
    let head = plane.head().await;
    let request = client.request(reqwest::Method::GET, path).header("prefer", format!("at-least={head}"));
    client.send(request).await.ok().as_array().unwrap().clone()
}

/// Somebody of another organisation.
async fn stranger(plane: &Plane) -> Client {
    let user = plane.account_in("globex", "hank@globex.example", Role::Admin).await;
    let scopes = ["read", "write", "admin"];
    let token = plane.token_of(user, "globex", Role::Admin, &scopes, clock::now()).await;
    Client::with_token(&plane.url, &token)
}

fn workload(code: &str, model: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut workload = json!({
        "p_workload_code": code, "p_model_code": model, "p_framework_code": "vllm", "p_framework_version": "0.28.0",
        "p_scenarios": {"p_concurrency": [2], "p_input_sequence_length": [128], "p_output_sequence_length": [64]},
    });
    change(&mut workload);
    workload
}

fn serve_argv(preview: &Value) -> Vec<String> {
    serde_json::from_value(preview["scenarios"][0]["commands"]["serve_argv"].clone()).unwrap()
}

#[tokio::test]
async fn everybody_reads_the_whole_catalogue() {
    let plane = Plane::start().await;
    let anonymous = plane.anonymous();
    for (view, least) in [
        ("v_models", 105),
        ("v_accelerator_types", 27),
        ("v_frameworks", 12),
        ("v_server_configs", 99),
        ("v_tools", 1),
        ("v_framework_engine_args_sets", 557),
        ("v_framework_engine_args_templates", 205),
        ("v_framework_engine_args_values", 1500),
        ("v_metric_catalogue", 100),
    ] {
        let found = rows(&anonymous, &plane, &format!("/api/{view}?limit=20000")).await;
        assert!(found.len() >= least, "{view}: {}", found.len());
    }
    let set = &rows(&anonymous, &plane, &format!("/api/v_framework_engine_args_sets?set_code=eq.{RECIPE}"))
        .await[0];
    assert_eq!(
        (&set["verified"], &set["named_in_seeds"], &set["custom"]),
        (&json!(true), &json!(true), &json!(false))
    );
    assert!(set["source_url"].as_str().unwrap().starts_with("https://recipes.vllm.ai/"));
    let values = rows(
        &anonymous,
        &plane,
        &format!(
            "/api/v_framework_engine_args_values?set_code=eq.{RECIPE}&order=key&select=key,value,sidecar"
        ),
    )
    .await;
    assert_eq!(values.len(), 4);
    assert_eq!(values[3], json!({"key": "tensor_parallel_size", "value": 8, "sidecar": null}));
    let sidecar =
        "/api/v_framework_engine_args_values?set_code=eq.vllm-kvoffload-lmcache-cpu&key=eq.l1_size_gb";
    assert_eq!(rows(&anonymous, &plane, sidecar).await[0]["sidecar"], "lmcache-server");
    let template = "/api/v_framework_engine_args_templates?framework_code=eq.vllm&key=eq.max_model_len";
    let template = &rows(&anonymous, &plane, template).await[0];
    assert_eq!(
        (&template["type"], &template["words"], &template["min"]),
        (&json!("int"), &json!(["auto"]), &json!(1))
    );
    let metric = &rows(&anonymous, &plane, "/api/v_metric_catalogue?metric=eq.ttft_p99_ms").await[0];
    assert_eq!((&metric["unit"], &metric["direction"]), (&json!("ms"), &json!("lower")));
    let h100 = &rows(&anonymous, &plane, "/api/v_accelerator_types?accelerator_code=eq.h100-sxm").await[0];
    assert_eq!((&h100["memory_gb"], &h100["compute_capability"]), (&json!(80), &json!("9.0")));
    plane.stop().await;
}

#[tokio::test]
async fn seeding_again_appends_nothing_and_keeps_what_somebody_changed() {
    let plane = Plane::start().await;
    let head = plane.head().await;
    let seeded = seed(&plane.state.log).await.unwrap();
    assert_eq!((seeded.added, seeded.changed, seeded.kept), (0, 0, 0));
    assert!(seeded.unchanged > 800, "{seeded:?}");
    let appended = plane.types_after(head).await;
    assert!(appended.iter().all(|event_type| !event_type.ends_with(".registered")), "{appended:?}");

    // An operator changes an entry of the platform's, as a file of another release would, and by hand.
    let stream = events::StreamKey::new("model", &["_", LLAMA]);
    let change = |actor: &str, name: &str| {
        let event = events::Event::ModelRegistered(Box::new(events::catalogue::ModelRegistered {
            display_name: name.into(),
            modality: "llm".into(),
            ..Default::default()
        }));
        server::log::AppendRequest {
            writes: vec![server::log::StreamWrite {
                stream: stream.clone(),
                expected: server::log::Expected::Any,
                events: vec![events::envelope::NewEvent {
                    event_id: uuid::Uuid::now_v7(),
                    event_type: event.event_type().into(),
                    schema_version: 1,
                    org: "_".into(),
                    actor: events::envelope::Actor {
                        kind: events::envelope::ActorKind::System,
                        id: actor.into(),
                    },
                    causation_id: None,
                    correlation_id: None,
                    occurred_at: clock::now(),
                    payload: events::canonical::CanonicalJson::of(&event.payload().unwrap()).unwrap(),
                }],
            }],
        }
    };
    plane.state.log.append(change("operator", "By hand")).await.unwrap();
    let again = seed(&plane.state.log).await.unwrap();
    assert_eq!(again, Seeded { kept: 1, unchanged: seeded.unchanged - 1, ..Seeded::default() });
    plane.state.log.append(change("seed", "An older file")).await.unwrap();
    let changed = seed(&plane.state.log).await.unwrap();
    assert_eq!((changed.changed, changed.added, changed.kept), (1, 0, 0));
    plane.stop().await;
}

#[tokio::test]
async fn a_set_of_the_organisations_is_its_own_and_a_workload_keeps_the_version_it_was_made_with() {
    let plane = Plane::start().await;
    let (member, other) = (plane.client(Role::Member).await, stranger(&plane).await);
    let create = json!({
        "p_set_code": "mine", "p_framework_code": "vllm", "p_framework_version": "0.28.0",
        "p_values": {"max_num_seqs": 64}, "p_model_code": LLAMA, "p_notes": "from our own sweep",
    });
    let reply = member.rpc("create_engine_args_set", &create).await.ok();
    assert_eq!((&reply["set_code"], &reply["version"]), (&json!("mine"), &json!(1)));
    assert_eq!(member.rpc("create_engine_args_set", &create).await.refused().code, "set_exists");
    let of_platform = json!({"p_from_set_code": RECIPE, "p_set_code": RECIPE});
    assert_eq!(member.rpc("clone_engine_args_set", &of_platform).await.refused().code, "set_exists");
    let path = "/api/v_framework_engine_args_sets?set_code=eq.mine";
    assert_eq!(rows(&member, &plane, path).await[0]["custom"], true);
    assert!(rows(&other, &plane, path).await.is_empty());
    assert!(rows(&plane.anonymous(), &plane, path).await.is_empty());
    let theirs = json!({"p_set_code": "mine"});
    assert_eq!(other.rpc("archive_engine_args_set", &theirs).await.refused().code, "set_not_found");
    assert_eq!(other.rpc("diff_engine_args_sets", &theirs).await.refused().code, "unknown_engine_args_set");

    // A workload made now keeps this version, whatever becomes of the set.
    member.rpc("create_project", &json!({"p_name": "p", "p_project_code": "p"})).await.ok();
    let with_set = |code: &str| workload(code, LLAMA, |w| w["p_engine_args_set_code"] = json!("mine"));
    let add = |code: &str| json!({"p_project_code": "p", "p_workload": with_set(code)});
    member.rpc("create_workload", &add("before")).await.ok();
    let update = json!({"p_set_code": "mine", "p_values": {"max_num_seqs": 128}});
    assert_eq!(member.rpc("update_engine_args_set", &update).await.ok()["version"], 2);
    let head = plane.head().await;
    member.rpc("update_engine_args_set", &update).await.ok();
    assert_eq!(plane.head().await, head, "a change of nothing is no event");
    member.rpc("create_workload", &add("after")).await.ok();
    let versions: Vec<Option<i64>> = {
        let load = async |code: &str| {
            let stream = events::StreamKey::new("workload", &[ORG, "p", code]);
            let events = plane.state.log.read_stream(&stream, 1, 10).await.unwrap();
            let payload: Value = serde_json::from_str(&events[0].payload).unwrap();
            payload["spec"]["engine_args_set_version"].as_i64()
        };
        vec![load("before").await, load("after").await]
    };
    assert_eq!(versions, [Some(1), Some(2)]);
    let preview = member.rpc("preview_commands", &json!({"p_workload": with_set("x")})).await.ok();
    assert!(serve_argv(&preview).contains(&"--max-num-seqs=128".to_owned()));
    let commands = &preview["scenarios"][0]["commands"];
    assert_eq!(commands["engine_args_set"], json!({"org": ORG, "set_code": "mine", "version": 2}));
    assert_eq!(commands["engine_args"]["max_num_seqs"], 128);

    // A clone takes another set, as it now stands, or none; otherwise it keeps its own in the version that it had.
    let cloned = async |from: &str, to: &str, set: Option<&str>| {
        let args = json!({"p_project_code": "p", "p_workload_code": from, "p_new_workload_code": to,
                          "p_engine_args_set_code": set});
        member.rpc("clone_workload", &args).await.ok();
        let stream = events::StreamKey::new("workload", &[ORG, "p", to]);
        let events = plane.state.log.read_stream(&stream, 1, 10).await.unwrap();
        let payload: Value = serde_json::from_str(&events[0].payload).unwrap();
        let spec = &payload["spec"];
        (spec["engine_args_set_code"].as_str().map(str::to_owned), spec["engine_args_set_version"].as_i64())
    };
    assert_eq!(cloned("before", "kept", None).await, (Some("mine".into()), Some(1)));
    assert_eq!(cloned("before", "renewed", Some("mine")).await, (Some("mine".into()), Some(2)));
    assert_eq!(cloned("before", "bare", Some("")).await, (None, None));
    assert_eq!(cloned("bare", "recipe", Some(SMALL_RECIPE)).await.0.as_deref(), Some(SMALL_RECIPE));

    member.rpc("archive_engine_args_set", &theirs).await.ok();
    let late = json!({"p_project_code": "p", "p_workload_code": "after", "p_new_workload_code": "later"});
    assert_eq!(member.rpc("clone_workload", &late).await.refused().code, "set_archived");
    assert_eq!(rows(&member, &plane, path).await[0]["archived"], true);
    assert_eq!(member.rpc("create_workload", &add("late")).await.refused().code, "set_archived");
    assert_eq!(
        member
            .rpc("update_engine_args_set", &json!({"p_set_code": "mine", "p_notes": "x"}))
            .await
            .refused()
            .code,
        "set_archived"
    );
    plane.stop().await;
}

#[tokio::test]
async fn sets_are_cloned_compared_and_held_to_their_templates() {
    let plane = Plane::start().await;
    let (member, viewer) = (plane.client(Role::Member).await, plane.client(Role::Viewer).await);
    let clone = json!({
        "p_from_set_code": RECIPE, "p_set_code": "llama-tp4",
        "p_values": {"tensor_parallel_size": 4, "max_model_len": 8192, "async_scheduling": null},
    });
    member.rpc("clone_engine_args_set", &clone).await.ok();
    let diff = json!({"p_set_code": "llama-tp4", "p_base_set_code": RECIPE});
    let diff = viewer.rpc("diff_engine_args_sets", &diff).await.ok();
    let told: Vec<(&str, &str, &Value, &Value)> = diff["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| (d["key"].as_str().unwrap(), d["change"].as_str().unwrap(), &d["base"], &d["value"]))
        .collect();
    assert_eq!(
        told,
        [
            ("async_scheduling", "removed", &json!(true), &json!(null)),
            ("max_model_len", "added", &json!(null), &json!(8192)),
            ("tensor_parallel_size", "changed", &json!(8), &json!(4)),
        ]
    );
    let from_defaults = viewer.rpc("diff_engine_args_sets", &json!({"p_set_code": RECIPE})).await.ok();
    let tp =
        from_defaults["differences"].as_array().unwrap().iter().find(|d| d["key"] == "tensor_parallel_size");
    assert_eq!((&tp.unwrap()["base"], &tp.unwrap()["value"]), (&json!(1), &json!(8)));
    let unlike = json!({"p_set_code": RECIPE, "p_base_set_code": "sglang-metrumbench-imagegen"});
    assert_eq!(
        viewer.rpc("diff_engine_args_sets", &unlike).await.refused().code,
        "sets_of_different_frameworks"
    );

    let head = plane.head().await;
    let with = |values: Value| json!({"p_from_set_code": RECIPE, "p_set_code": "bad", "p_values": values});
    for (values, code) in [
        (json!({"tensor_paralel_size": 4}), "unknown_argument"),
        (json!({"tensor_parallel_size": "4"}), "bad_argument"),
        (json!({"gpu_memory_utilization": 1.5}), "bad_argument"),
        (json!({"kv_cache_dtype": "fp7"}), "bad_argument"),
    ] {
        let refused = member.rpc("clone_engine_args_set", &with(values.clone())).await.refused();
        assert_eq!(refused.code, code, "{values}");
    }
    assert!(
        member
            .rpc("clone_engine_args_set", &with(json!({"tensor_paralel_size": 4})))
            .await
            .refused()
            .hint
            .unwrap()
            .contains("tensor_parallel_size")
    );
    for (command, args, code) in [
        ("update_engine_args_set", json!({"p_set_code": RECIPE, "p_values": {}}), "platforms_set"),
        ("archive_engine_args_set", json!({"p_set_code": RECIPE}), "platforms_set"),
        (
            "clone_engine_args_set",
            json!({"p_from_set_code": "vllm-llama33-70b-instruct-h100-h200-tp9", "p_set_code": "x"}),
            "unknown_engine_args_set",
        ),
        ("clone_engine_args_set", json!({"p_from_set_code": RECIPE, "p_set_code": "Not A Code"}), "bad_code"),
        (
            "create_engine_args_set",
            json!({"p_set_code": "x", "p_framework_code": "lmcache-server", "p_framework_version": "0.5.6", "p_values": {}}),
            "sidecar_only",
        ),
    ] {
        assert_eq!(member.rpc(command, &args).await.refused().code, code, "{command} {args}");
    }
    assert_eq!(plane.head().await, head, "nothing was half written");
    plane.stop().await;
}

#[tokio::test]
async fn an_entry_of_the_organisations_stands_before_the_platforms_for_it_alone() {
    let plane = Plane::start().await;
    let (admin, other) = (plane.client(Role::Admin).await, stranger(&plane).await);
    let facts = json!({"display_name": "Our Llama", "modality": "llm", "params_b_total": 8.5, "max_context": 4096, "gated": false});
    let args = json!({"p_model_code": LLAMA, "p_facts": facts});
    let reply = admin.rpc("register_model", &args).await.ok();
    assert_eq!(reply["stream"], format!("model/{ORG}/meta-llama%2FLlama-3.1-8B-Instruct"));
    let path = format!("/api/v_models?model_code=eq.{LLAMA}&select=display_name,custom");
    assert_eq!(rows(&admin, &plane, &path).await, [json!({"display_name": "Our Llama", "custom": true})]);
    let platforms = json!({"display_name": "Llama 3.1 8B Instruct", "custom": false});
    assert_eq!(rows(&other, &plane, &path).await, std::slice::from_ref(&platforms));
    assert_eq!(rows(&plane.anonymous(), &plane, &path).await, [platforms]);
    let head = plane.head().await;
    admin.rpc("register_model", &args).await.ok();
    assert_eq!(plane.head().await, head, "the same again is no event");
    // Readiness goes by the organisation's facts.
    let long = workload("w", LLAMA, |w| w["p_scenarios"]["p_input_sequence_length"] = json!([8000]));
    let check = async |client: &Client| {
        let readiness = client.rpc("check_readiness", &json!({"p_workload": long})).await.ok();
        let checks = readiness["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|c| c["rule"] == "context_covers").unwrap()["result"].clone()
    };
    assert_eq!((check(&admin).await, check(&other).await), (json!("fails"), json!("ok")));

    let own = json!({"p_framework_code": "mine", "p_framework_version": "1.0", "p_facts": {
        "display_name": "Mine", "serve_argv": ["mine-server", "--port={agent.port}", "--model={model}"], "flag_style": "equals",
        "readiness_path": "/health", "readiness_timeout_s": 60,
        "engine_args": {"threads": {"cli_flag": "--threads", "type": "int", "min": 1}}}});
    admin.rpc("register_framework_version", &own).await.ok();
    let mine = |w: &mut Value| {
        w["p_framework_code"] = json!("mine");
        w["p_framework_version"] = json!("1.0");
        w["p_engine_args"] = json!({"threads": 4});
    };
    let preview =
        admin.rpc("preview_commands", &json!({"p_workload": workload("w", LLAMA, mine)})).await.ok();
    assert_eq!(
        serve_argv(&preview),
        ["mine-server", "--port={agent.port}", &format!("--model={LLAMA}"), "--threads=4"]
    );
    let theirs =
        other.rpc("preview_commands", &json!({"p_workload": workload("w", LLAMA, mine)})).await.refused();
    assert_eq!(theirs.code, "unknown_framework");
    assert!(!theirs.hint.unwrap().contains("mine"), "another organisation's names are nobody's hints");
    let accelerator = json!({"p_accelerator_code": "x1", "p_facts": {"display_name": "X1", "vendor": "X", "memory_gb": 48}});
    admin.rpc("register_accelerator", &accelerator).await.ok();
    let config = json!({"p_config_code": "x1x4", "p_facts": {"display_name": "4 × X1", "accelerator_code": "x1", "gpu_count": 4, "gpu_memory_gb": 48}});
    admin.rpc("register_server_config", &config).await.ok();
    let found =
        rows(&admin, &plane, "/api/v_server_configs?config_code=eq.x1x4&select=gpu_count,custom").await;
    assert_eq!(found, [json!({"gpu_count": 4, "custom": true})]);
    for (command, args) in [
        ("register_model", json!({"p_model_code": "--flag", "p_facts": facts})),
        (
            "register_model",
            json!({"p_model_code": "a", "p_facts": {"display_name": "A", "modality": "music", "gated": false}}),
        ),
        (
            "register_framework_version",
            json!({"p_framework_code": "mine", "p_framework_version": "2", "p_facts": {
            "display_name": "M", "serve_argv": ["{model}"], "flag_style": "equals", "readiness_path": "/", "readiness_timeout_s": 1}}),
        ),
        (
            "register_accelerator",
            json!({"p_accelerator_code": "x", "p_facts": {"display_name": "X", "vendor": "X", "memory_gb": 0}}),
        ),
    ] {
        let head = plane.head().await;
        admin.rpc(command, &args).await.refused();
        assert_eq!(plane.head().await, head, "{command} {args}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn arguments_that_load_code_run_only_after_an_administrator_approved_their_very_values() {
    let plane = Plane::start().await;
    let (member, admin) = (plane.client(Role::Member).await, plane.client(Role::Admin).await);
    let agent = Agent::enrol(&plane, "h1").await;
    let dangerous = json!({
        "p_workload_code": "w", "p_model_code": "google/gemma-3-270m", "p_framework_code": "refserver", "p_framework_version": "0.1.0",
        "p_tool_args": {"insecure": true},
        "p_scenarios": {"p_concurrency": [1], "p_input_sequence_length": [16], "p_output_sequence_length": [8]},
    });
    member
        .rpc("create_project", &json!({"p_name": "p", "p_project_code": "p", "p_workloads": [dangerous]}))
        .await
        .ok();
    let start =
        json!({"p_project_code": "p", "p_workload_code": "w", "p_config_code": CONFIG, "p_hostname": "h1"});
    let check = async || {
        let args = json!({"p_workload": dangerous, "p_config_code": CONFIG, "p_hostname": "h1"});
        let readiness = member.rpc("check_readiness", &args).await.ok();
        let checks = readiness["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["rule"] == "dangerous_args_approved").unwrap()
    };
    let head = plane.head().await;
    // Neither a member nor an administrator starts what nobody approved: an approval is an event of its own.
    for client in [&member, &admin] {
        let refused = client.rpc("start_run", &start).await.refused();
        assert_eq!(refused.code, "not_ready");
        assert!(refused.message.contains("--insecure"), "{}", refused.message);
    }
    assert_eq!(plane.head().await, head);
    let found = check().await;
    assert_eq!(found["result"], "fails");
    let cure = &found["cure"][0];
    assert_eq!(
        (&cure["kind"], &cure["command"], &cure["role"]),
        (&json!("command"), &json!("approve_dangerous_args"), &json!("admin"))
    );

    // The cure is the very command, and it is an administrator's.
    member.rpc("approve_dangerous_args", &cure["args"]).await.refused();
    let reply = admin.rpc("approve_dangerous_args", &cure["args"]).await.ok();
    assert_eq!(reply["stream"], format!("approval/{ORG}/metrumbench-llm/google%2Fgemma-3-270m"));
    let approved = rows(&member, &plane, "/api/v_dangerous_arg_approvals").await;
    assert_eq!(
        (&approved[0]["key"], &approved[0]["value"], &approved[0]["approved"]),
        (&json!("insecure"), &json!(true), &json!(true))
    );
    assert!(rows(&stranger(&plane).await, &plane, "/api/v_dangerous_arg_approvals").await.is_empty());
    // The stand-in agent does not say what its policy takes.
    assert_ne!(check().await["result"], "fails");
    let keys = json!({"p_program_code": "metrumbench-llm", "p_model_code": "google/gemma-3-270m", "p_keys": ["insecure"], "p_reason": "a certificate is there now"});
    admin.rpc("revoke_dangerous_args", &keys).await.ok();
    assert_eq!(check().await["result"], "fails");
    let revoked = rows(&member, &plane, "/api/v_dangerous_arg_approvals").await;
    assert_eq!(
        (&revoked[0]["approved"], &revoked[0]["reason"]),
        (&json!(false), &json!("a certificate is there now"))
    );
    for (args, code) in [
        (
            json!({"p_program_code": "sh", "p_model_code": "google/gemma-3-270m", "p_args": {"x": 1}}),
            "unknown_program",
        ),
        (
            json!({"p_program_code": "vllm", "p_model_code": "no/such-model", "p_args": {"x": 1}}),
            "unknown_model",
        ),
        (json!({"p_program_code": "vllm", "p_model_code": "google/gemma-3-270m", "p_args": {}}), "no_args"),
    ] {
        assert_eq!(admin.rpc("approve_dangerous_args", &args).await.refused().code, code);
    }
    drop(agent);
    plane.stop().await;
}
