//! Bad input: a 4xx with code, message and hint, and nothing half-written.

use reqwest::Method;
use serde_json::{Value, json};
use support::api::Api;
use support::control_plane::ControlPlane;
use support::{database, workloads};

async fn head(plane: &ControlPlane) -> i64 {
    let pool = database::open(&plane.database_url()).await;
    database::assert_gapless(&pool).await
}

#[tokio::test]
async fn bad_commands_are_refused_and_leave_no_trace() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let before = head(&plane).await;
    let project = |workload: Value| json!({"p_project_code": "p", "p_name": "P", "p_workloads": [workload]});
    let with = |key: &str, value: Value| {
        let mut workload = workloads::refserver(&[1], 10, 8);
        workload[key] = value;
        project(workload)
    };
    let table: Vec<(&str, &str, Value)> = vec![
        ("an unknown key", "create_project", json!({"p_name": "P", "p_colour": "red"})),
        ("a wrong type", "create_project", json!({"p_name": 7})),
        ("a missing argument", "create_project", json!({})),
        ("a code with capitals", "create_project", json!({"p_name": "P", "p_project_code": "Not A Code"})),
        ("an empty name", "create_project", json!({"p_name": ""})),
        ("an unknown visibility", "create_project", json!({"p_name": "P", "p_visibility": "secret"})),
        ("an unknown model", "create_project", with("p_model_code", json!("nobody/nothing"))),
        ("an unknown framework", "create_project", with("p_framework_code", json!("nothing"))),
        ("an unknown version", "create_project", with("p_framework_version", json!("9.9.9"))),
        ("an unknown engine argument", "create_project", with("p_engine_args", json!({"no_such_flag": 1}))),
        (
            "an engine argument of a wrong type",
            "create_project",
            with("p_engine_args", json!({"ttft_ms": "soon"})),
        ),
        ("no concurrency", "create_project", with("p_scenarios", json!({"p_concurrency": []}))),
        ("concurrency 0", "create_project", with("p_scenarios", json!({"p_concurrency": [0]}))),
        ("one scenario twice", "create_project", with("p_scenarios", json!({"p_concurrency": [1, 1]}))),
        (
            "an unknown project",
            "start_run",
            json!({"p_project_code": "nope", "p_workload_code": "w", "p_config_code": "local-cpu", "p_hostname": "h"}),
        ),
        (
            "an unknown run",
            "cancel_run",
            json!({"p_project_code": "nope", "p_workload_code": "w", "p_run_number": 1}),
        ),
        ("an unknown command", "make_coffee", json!({})),
    ];
    for (what, command, args) in table {
        let answer = admin.post(&format!("/api/rpc/{command}"), &args).await;
        let error = answer.refused();
        assert!(error.hint.as_deref().is_some_and(|h| !h.is_empty()), "{what}: no hint in {error:?}");
    }
    let malformed =
        admin.request(Method::POST, "/api/rpc/create_project").header("content-type", "application/json");
    admin.send(malformed.body("{\"p_name\": ")).await.refused();
    let oversized = "x".repeat(20 << 20);
    let answer = admin.post("/api/rpc/create_project", &json!({"p_name": oversized})).await;
    assert_eq!(answer.status.as_u16(), 413, "{}", answer.text.chars().take(200).collect::<String>());
    answer.refused();
    let mut deep = String::new();
    deep.push_str(&"[".repeat(10_000));
    let nested =
        admin.request(Method::POST, "/api/rpc/create_project").header("content-type", "application/json");
    admin.send(nested.body(deep)).await.refused();
    assert_eq!(head(&plane).await, before, "a refused command wrote something");
}

#[tokio::test]
async fn bad_reads_are_refused_by_name() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    for path in [
        "/api/v_nothing",
        "/api/v_jobs?no_such_column=eq.1",
        "/api/v_jobs?status=resembles.x",
        "/api/v_jobs?order=no_such_column",
        "/api/v_jobs?select=status,no_such_column",
        "/api/v_jobs?limit=many",
        "/api/v_jobs?concurrency=eq.eight",
        "/api/history?stream=not-a-key",
        "/api/history",
        "/api/live?topics=",
        "/api/nothing",
    ] {
        let error = admin.get(path).await.refused();
        assert!(error.hint.is_some(), "{path}: no hint in {error:?}");
    }
}

#[tokio::test]
async fn strangers_are_refused() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let anonymous = Api::anonymous(&plane.url);
    let args = json!({"p_name": "P"});
    assert_eq!(anonymous.post("/api/rpc/create_project", &args).await.status.as_u16(), 401);
    let forged = Api::with_token(&plane.url, "bt_u_0000000000000000000000000000000000000000000");
    assert_eq!(forged.post("/api/rpc/create_project", &args).await.status.as_u16(), 401);
    // A page of another origin can send the cookie but not the header.
    let request = support::api::http()
        .post(format!("{}/api/rpc/create_project", plane.url))
        .header("cookie", admin.cookie().expect("signed in"))
        .json(&args);
    assert_eq!(admin.send(request).await.status.as_u16(), 403);
    // Reports come from agents only.
    let batch = json!({"org": "main", "agent": "local-cpu~h", "items": []});
    assert!(admin.post("/api/agent/reports", &batch).await.status.is_client_error());
    assert!(anonymous.post("/api/agent/reports", &batch).await.status.is_client_error());
}
