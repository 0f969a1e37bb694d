//! Bad input: a 4xx in JSON with code, message and hint, and nothing written.

mod plane;

use events::access::Role;
use plane::{PASSWORD, Plane};
use reqwest::Method;
use serde_json::{Value, json};
use server::api::Access;
use server::api::rpc::COMMANDS;

fn project(code: &str) -> Value {
    json!({"p_project_code": code, "p_name": "P", "p_workloads": []})
}

#[tokio::test]
async fn bad_arguments_are_refused_and_nothing_is_written() {
    let plane = Plane::start().await;
    let admin = plane.client(Role::Admin).await;
    admin.rpc("create_project", &project("taken")).await.ok();
    let workload = |change: fn(&mut Value)| {
        let mut workload = json!({
            "p_model_code": "google/gemma-3-270m", "p_framework_code": "refserver", "p_framework_version": "0.1.0",
            "p_scenarios": {"p_concurrency": [1], "p_input_sequence_length": [64], "p_output_sequence_length": [16]},
        });
        change(&mut workload);
        json!({"p_project_code": "taken", "p_workload": workload})
    };
    let run = |change: fn(&mut Value)| {
        let mut args = json!({"p_project_code": "taken", "p_workload_code": "w", "p_config_code": "local-cpu", "p_hostname": "h"});
        change(&mut args);
        args
    };
    // The statuses: 422 does not fit its type or the world is not ready, 400 a value, 404 unknown, 409 contradicts.
    let table: Vec<(&str, Value, u16)> = vec![
        ("create_project", json!({}), 422),
        ("create_project", json!([]), 422),
        ("create_project", json!(null), 422),
        ("create_project", json!({"p_name": 7}), 422),
        ("create_project", json!({"p_name": "x", "p_visibility": "secret"}), 422),
        ("create_project", json!({"p_name": "x", "p_surprise": 1}), 422),
        ("create_project", json!({"p_name": ""}), 400),
        ("create_project", project("Not A Code"), 400),
        ("create_project", project("../../etc"), 400),
        ("create_project", project("taken"), 409),
        ("create_workload", workload(|w| w["p_scenarios"]["p_concurrency"] = json!([])), 400),
        ("create_workload", workload(|w| w["p_scenarios"]["p_concurrency"] = json!([0])), 400),
        ("create_workload", workload(|w| w["p_scenarios"]["p_concurrency"] = json!([-1])), 422),
        ("create_workload", workload(|w| w["p_scenarios"]["p_concurrency"] = json!([1.5])), 422),
        ("create_workload", workload(|w| w["p_scenarios"]["p_concurrency"] = json!("8")), 422),
        ("create_workload", workload(|w| w["p_scenarios"]["p_surprise"] = json!(1)), 422),
        ("create_workload", workload(|w| w["p_engine_args"] = json!({"no_such_flag": 1})), 400),
        (
            "create_workload",
            json!({"p_project_code": "nowhere", "p_workload": workload(|_| {})["p_workload"]}),
            404,
        ),
        ("start_run", run(|_| {}), 404),
        ("start_run", run(|a| a["p_project_code"] = json!("nowhere")), 404),
        ("start_run", run(|a| a["p_hostname"] = json!(null)), 422),
        ("cancel_run", json!({"p_project_code": "taken", "p_workload_code": "w", "p_run_number": 1}), 404),
        ("cancel_run", json!({"p_project_code": "taken", "p_workload_code": "w", "p_run_number": "1"}), 422),
        (
            "cancel_run",
            json!({"p_project_code": "taken", "p_workload_code": "w", "p_run_number": 99999999999u64}),
            422,
        ),
        ("create_server_config_instance", json!({"p_config_code": "local-cpu", "p_hostname": "UPPER"}), 400),
        ("create_server_config_instance", json!({"p_config_code": "no-such", "p_hostname": "h"}), 400),
        ("create_api_token", json!({"p_name": "t", "p_scopes": ["everything"], "p_expires_in_days": 1}), 422),
        ("create_api_token", json!({"p_name": "t", "p_scopes": [], "p_expires_in_days": 1}), 422),
        ("create_api_token", json!({"p_name": "t", "p_scopes": ["read"], "p_expires_in_days": 0}), 422),
        ("create_api_token", json!({"p_name": "t", "p_scopes": ["read"], "p_expires_in_days": 366}), 422),
        ("revoke_api_token", json!({"p_token_id": "nothing"}), 404),
        ("verify_log", json!({"p_from": "start"}), 422),
        ("create_checkpoint", json!({"p_from": 1}), 422),
    ];
    for (command, args, status) in &table {
        let head = plane.head().await;
        let answer = admin.rpc(command, args).await;
        let error = answer.refused();
        assert_eq!(answer.status.as_u16(), *status, "{command} {args}: {error:?}");
        assert_eq!(plane.head().await, head, "{command} {args} wrote something");
    }
    plane.stop().await;
}

#[tokio::test]
async fn every_command_refuses_what_is_not_its_json() {
    let plane = Plane::start().await;
    let by_token = plane.client(Role::Admin).await;
    plane.account("ann@example.org", Role::Admin).await;
    let mut by_session = plane.anonymous();
    by_session.sign_in("ann@example.org", PASSWORD).await.ok();
    let head = plane.head().await;
    for command in COMMANDS {
        let admin = if command.access == Access::Session { &by_session } else { &by_token };
        let path = format!("/api/rpc/{}", command.name);
        for (body, status, code) in [
            ("", 400, "empty_body"),
            ("{", 400, "malformed_json"),
            ("nul", 400, "malformed_json"),
            ("{\"a\": nul}", 400, "malformed_json"),
            ("{} {}", 400, "malformed_json"),
            ("\u{feff}{}", 400, "malformed_json"),
            ("\"text\"", 422, "bad_arguments"),
            ("{\"p_surprise\": 1}", 422, "bad_arguments"),
        ] {
            let answer = admin.post_text(&path, body).await;
            let error = answer.refused();
            assert_eq!(
                (answer.status.as_u16(), error.code.as_str()),
                (status, code),
                "{} {body:?}",
                command.name
            );
        }
        let deep = format!("{{\"a\":{}", "[".repeat(10_000));
        admin.post_text(&path, deep).await.refused();
        let large = format!("{{\"p_name\": \"{}\"}}", "x".repeat(2 << 20));
        let answer = admin.post_text(&path, large).await;
        assert_eq!((answer.status.as_u16(), answer.refused().code.as_str()), (413, "body_too_large"));
        let request = admin.request(Method::POST, &path).body("{}");
        let answer = admin.send(request).await;
        assert_eq!((answer.status.as_u16(), answer.refused().code.as_str()), (415, "not_json"));
        let answer = admin.send(admin.request(Method::DELETE, &path)).await;
        assert_eq!((answer.status.as_u16(), answer.refused().code.as_str()), (405, "wrong_method"));
    }
    assert_eq!(plane.head().await, head);
    plane.stop().await;
}

#[tokio::test]
async fn what_does_not_exist_says_so_in_json() {
    let plane = Plane::start().await;
    let anonymous = plane.anonymous();
    for (method, path, status) in [
        (Method::GET, "/api/", 404),
        (Method::GET, "/api/agent/nothing", 404),
        (Method::POST, "/api/rpc/no_such_command", 404),
        (Method::POST, "/api/rpc/%ff", 400),
        (Method::GET, "/api/blobs/acme/zz", 400),
        (Method::PUT, "/healthz", 405),
        (Method::POST, "/somewhere", 405),
    ] {
        let answer = anonymous.send(anonymous.request(method.clone(), path).json(&json!({}))).await;
        answer.refused();
        assert_eq!(answer.status.as_u16(), status, "{method} {path}: {}", answer.text);
    }
    plane.stop().await;
}

#[tokio::test]
async fn a_batch_that_is_not_one_is_refused_as_a_whole() {
    let plane = Plane::start().await;
    let agent = plane::agent::Agent::enrol(&plane, "h1").await;
    let head = plane.head().await;
    let path = "/api/agent/reports";
    for (body, status) in [
        ("{", 400),
        ("[]", 422),
        ("{\"org\": \"acme\"}", 422),
        ("{\"org\": \"acme\", \"agent\": \"a\", \"items\": [], \"more\": 1}", 422),
        ("{\"org\": 1, \"agent\": \"a\", \"items\": []}", 422),
    ] {
        let answer = agent.client.post_text(path, body).await;
        answer.refused();
        assert_eq!(answer.status.as_u16(), status, "{body}");
    }
    let large = format!("{{\"org\": \"{}\"}}", "x".repeat(9 << 20));
    assert_eq!(agent.client.post_text(path, large).await.status.as_u16(), 413);
    let now = server::clock::now();
    let many = agent.batch(&vec![(now, json!({"kind": "surprise"})); 501]);
    let outcomes = agent.client.post(path, &many).await;
    assert_eq!((outcomes.status.as_u16(), outcomes.refused().code.as_str()), (413, "too_many_items"));
    assert!(plane.types_after(head).await.iter().all(|found| found == "report.rejected"));
    plane.stop().await;
}

#[tokio::test]
async fn the_same_request_under_the_same_key_is_answered_again_and_not_done_again() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let send = |key: &'static str, body: Value| {
        let request = member.request(Method::POST, "/api/rpc/create_project").header("idempotency-key", key);
        let member = member.clone();
        async move { member.send(request.json(&body)).await }
    };
    let first = send("k1", project("a")).await.ok();
    let head = plane.head().await;
    assert_eq!(send("k1", project("a")).await.ok(), first);
    assert_eq!(plane.head().await, head);
    assert_eq!(send("k1", project("b")).await.refused().code, "idempotency_key_reused");
    assert_eq!(send("k 2", project("b")).await.refused().code, "bad_idempotency_key");
    // What was refused is not kept: the corrected request may use the key again.
    send("k3", project("NO")).await.refused();
    send("k3", project("c")).await.ok();
    // Another person's key of the same name is another key.
    let other = plane.client(Role::Member).await;
    let request = other.request(Method::POST, "/api/rpc/create_project").header("idempotency-key", "k1");
    other.send(request.json(&project("d"))).await.ok();
    plane.stop().await;
}
