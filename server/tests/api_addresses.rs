//! Addresses that people name for agents: what is not public is refused unless the operator allowed it.

mod plane;

use std::sync::Arc;

use events::access::Role;
use events::networks::Networks;
use plane::agent::{Agent, CONFIG};
use plane::{Client, Plane};
use serde_json::{Value, json};
use server::app;
use server::config::Config;
use server::outbound::Policy;
use server::state::AppState;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

fn endpoint(url: &str) -> Value {
    json!({
        "p_workload_code": "w", "p_model_code": "google/gemma-3-270m", "p_framework_code": "openai",
        "p_framework_version": "v1", "p_endpoint_url": url, "p_scenarios": {"p_concurrency": [1],
        "p_input_sequence_length": [128], "p_output_sequence_length": [64]},
    })
}

async fn create(client: &Client, workload: &Value) -> plane::Answer {
    client.rpc("create_workload", &json!({"p_project_code": "p", "p_workload": workload})).await
}

#[tokio::test]
async fn a_workload_names_no_address_near_the_agents_unless_the_operator_allowed_it() {
    let plane =
        Plane::start_with(|config| config.endpoints = Policy::of_agents("10.20.0.0/16".parse().unwrap()))
            .await;
    let member = plane.client(Role::Member).await;
    member.rpc("create_project", &json!({"p_project_code": "p", "p_name": "p"})).await.ok();
    let head = plane.head().await;
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.1:8000/v1",
        "http://localhost:8000/v1",
        "http://[::ffff:169.254.169.254]/v1",
        "http://10.21.0.1:8000/v1",
        "http://0x7f000001/v1",
    ] {
        let refused = create(&member, &endpoint(url)).await.refused();
        assert_eq!(refused.code, "address_refused", "{url}: {refused:?}");
        assert!(
            refused.message.contains("p_endpoint_url") && refused.hint.unwrap().contains("--endpoint-allow")
        );
        let in_project = json!({"p_project_code": "q", "p_name": "q", "p_workloads": [endpoint(url)]});
        assert_eq!(member.rpc("create_project", &in_project).await.refused().code, "address_refused");
    }
    let mut judged = endpoint("http://10.20.0.1:8000/v1");
    judged["p_tool_code"] = json!("kyai");
    judged["p_scenarios"] = json!({"p_concurrency": [1]});
    judged["p_tool_args"] = json!({"dataset": "mmlu-pro", "judge_url": "http://169.254.169.254/v1"});
    let refused = create(&member, &judged).await.refused();
    assert!(refused.message.contains("p_tool_args.judge_url"), "{}", refused.message);
    let images = json!({"p_prompt_source_code": "s", "p_type": "metrumbench_vlm_snapshot", "p_content":
        "{\"prompt\": \"x\", \"image_urls\": [\"https://images.example/a.jpg\"]}\n{\"prompt\": \"x\", \"image_urls\": [\"http://[fd00::1]/a.jpg\"]}\n"});
    let refused = member.rpc("create_prompt_source", &images).await.refused();
    assert_eq!(refused.code, "bad_rows");
    assert!(refused.message.contains("line 2: image_urls: fd00::1 is not a public"), "{}", refused.message);
    assert_eq!(plane.head().await, head, "nothing was written");

    create(&member, &endpoint("http://10.20.0.1:8000/v1")).await.ok();
    let clone = json!({"p_project_code": "p", "p_workload_code": "w", "p_new_workload_code": "w2",
                       "p_tool_args": {"prompts": "http://192.168.0.1/prompts.jsonl"}});
    assert_eq!(member.rpc("clone_workload", &clone).await.refused().code, "address_refused");
    plane.stop().await;
}

#[tokio::test]
async fn an_endpoint_is_tried_before_a_run_and_not_by_those_who_start_none() {
    let plane =
        Plane::start_with(|config| config.endpoints = Policy::of_agents("127.0.0.0/8".parse().unwrap()))
            .await;
    // Bound and let go: nothing listens there.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let found = async |role: Role, url: String| {
        let client = plane.client(role).await;
        let readiness = client.rpc("check_readiness", &json!({"p_workload": endpoint(&url)})).await.ok();
        let checks = readiness["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["rule"] == "endpoint_answers")
    };
    let check = found(Role::Member, format!("http://{closed}/v1")).await.unwrap();
    assert_eq!(check["result"], "warning");
    assert!(check["message"].as_str().unwrap().contains("does not answer the control plane"), "{check}");
    let check = found(Role::Member, format!("{}/v1", plane.url)).await.unwrap();
    assert_eq!(check["result"], "ok", "{check}");
    assert_eq!(found(Role::Viewer, format!("http://{closed}/v1")).await, None);
    plane.stop().await;
}

/// The same control plane once more, with narrower settings: as the operator starts it again.
async fn narrowed(plane: &Plane) -> (String, JoinHandle<Result<(), app::RunError>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let config =
        Config { endpoints: Policy::of_agents(Networks::default()), ..(*plane.state.config).clone() };
    let state = AppState { config: Arc::new(config), ..plane.state.clone() };
    (url, tokio::spawn(app::run(state, listener)))
}

#[tokio::test]
async fn a_run_to_an_address_that_is_no_longer_allowed_is_not_ready() {
    let plane =
        Plane::start_with(|config| config.endpoints = Policy::of_agents("127.0.0.0/8".parse().unwrap()))
            .await;
    let member = plane.client(Role::Member).await;
    Agent::enrol(&plane, "h1").await;
    member.rpc("create_project", &json!({"p_project_code": "p", "p_name": "p"})).await.ok();
    let workload = endpoint("http://127.0.0.1:1/v1");
    create(&member, &workload).await.ok();
    let found = async |client: &Client| {
        let readiness = client.rpc("check_readiness", &json!({"p_workload": workload})).await.ok();
        let checks = readiness["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["rule"] == "addresses_allowed").unwrap()
    };
    assert_eq!(found(&member).await["result"], "ok");
    let (url, serving) = narrowed(&plane).await;
    let member = Client::with_token(&url, member.bearer.as_deref().unwrap());
    assert_eq!(found(&member).await["result"], "fails");
    let start =
        json!({"p_project_code": "p", "p_workload_code": "w", "p_config_code": CONFIG, "p_hostname": "h1"});
    let refused = member.rpc("start_run", &start).await.refused();
    assert_eq!(refused.code, "not_ready");
    assert!(refused.message.contains("127.0.0.1 is not a public address"), "{}", refused.message);
    plane.stop().await;
    serving.await.unwrap().unwrap();
}
