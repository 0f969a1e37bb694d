//! Sets of a tool's arguments: a team keeps them, uses them, and nobody else sees them.

mod plane;

use events::access::Role;
use plane::{Client, Plane};
use serde_json::{Value, json};

async fn sets(client: &Client, plane: &Plane) -> Vec<Value> {
    let request = client
        .request(reqwest::Method::GET, "/api/v_tool_args_sets?order=set_code")
        .header("prefer", format!("at-least={}", plane.head().await));
    client.send(request).await.ok().as_array().unwrap().clone()
}

fn set(name: &str, values: Value) -> Value {
    json!({"p_tool_code": "metrumbench-llm", "p_name": name, "p_values": values})
}

#[tokio::test]
async fn a_set_is_the_teams_to_use_to_replace_and_to_remove() {
    let plane = Plane::start().await;
    let (ada, bob) = (plane.client(Role::Member).await, plane.client(Role::Member).await);
    let slow = json!({"request_timeout": 600.0, "temperature": 0.0});
    let reply = ada.rpc("save_tool_args_set", &set("Slow servers", slow.clone())).await.ok();
    assert_eq!(reply["set_code"], "slow-servers");
    let found = sets(&bob, &plane).await;
    assert_eq!((&found[0]["name"], &found[0]["tool_args"]), (&json!("Slow servers"), &slow));
    assert_eq!(found[0]["tool_code"], "metrumbench-llm");

    // The same again is nothing new; another takes its place.
    let again = ada.rpc("save_tool_args_set", &set("Slow servers", slow.clone())).await.ok();
    assert_eq!(again["position"], reply["position"]);
    bob.rpc("save_tool_args_set", &set("Slow servers", json!({"request_timeout": 900.0}))).await.ok();
    assert_eq!(sets(&ada, &plane).await[0]["tool_args"], json!({"request_timeout": 900.0}));

    // What it holds is what a workload takes.
    let workload = json!({
        "p_project_code": "p", "p_name": "P", "p_visibility": "organization",
        "p_workloads": [{"p_model_code": "google/gemma-3-270m", "p_framework_code": "refserver",
            "p_framework_version": "0.1.0", "p_tool_args": sets(&ada, &plane).await[0]["tool_args"],
            "p_scenarios": {"p_concurrency": [1], "p_input_sequence_length": [16], "p_output_sequence_length": [8]}}],
    });
    ada.rpc("create_project", &workload).await.ok();

    let gone = json!({"p_tool_code": "metrumbench-llm", "p_set_code": "slow-servers"});
    bob.rpc("remove_tool_args_set", &gone).await.ok();
    assert_eq!(sets(&ada, &plane).await, Vec::<Value>::new());
    assert_eq!(ada.rpc("remove_tool_args_set", &gone).await.refused().code, "set_not_found");
    ada.rpc("save_tool_args_set", &set("Slow servers", slow)).await.ok();
    assert_eq!(sets(&bob, &plane).await.len(), 1);
    plane.stop().await;
}

#[tokio::test]
async fn a_set_that_no_workload_could_have_is_refused() {
    let plane = Plane::start().await;
    let ada = plane.client(Role::Member).await;
    for (args, code) in [
        (set("A", json!({"request_timeout": "soon"})), "bad_argument"),
        (set("A", json!({"request_timeot": 5.0})), "unknown_argument"),
        (set("A", json!({"concurrency": 5})), "scenario_axis"),
        (set("A", json!({})), "no_values"),
        (set(" ", json!({"request_timeout": 5.0})), "bad_name"),
        (json!({"p_tool_code": "nmap", "p_name": "A", "p_values": {"x": 1}}), "unknown_tool"),
        (
            json!({"p_tool_code": "metrumbench-llm", "p_name": "A", "p_set_code": "a/b", "p_values": {"x": 1}}),
            "bad_code",
        ),
    ] {
        assert_eq!(ada.rpc("save_tool_args_set", &args).await.refused().code, code, "{args}");
    }
    let viewer = plane.client(Role::Viewer).await;
    let refused =
        viewer.rpc("save_tool_args_set", &set("A", json!({"request_timeout": 5.0}))).await.refused();
    assert_eq!(refused.code, "role_too_low");
    assert_eq!(sets(&ada, &plane).await, Vec::<Value>::new());
    plane.stop().await;
}
