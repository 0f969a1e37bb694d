//! What outlives what: a command its client, a live stream its reader's token, a connection its patience.

mod plane;

use std::time::Duration;

use events::access::Role;
use plane::{Client, ORG, Plane};
use reqwest::Method;
use serde_json::{Value, json};
use server::clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(60);

fn address(plane: &Plane) -> String {
    plane.url.trim_start_matches("http://").to_owned()
}

#[tokio::test]
async fn a_command_whose_client_went_away_is_carried_out_and_answered_again_under_its_key() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    for round in 0..8 {
        let body = json!({"p_project_code": format!("p{round}"), "p_name": "p"}).to_string();
        let request = format!(
            "POST /api/rpc/create_project HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\nidempotency-key: k{round}\r\ncontent-length: {}\r\n\r\n{body}",
            member.bearer.as_deref().unwrap(),
            body.len()
        );
        let mut connection = TcpStream::connect(address(&plane)).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        drop(connection);
        let again = async {
            loop {
                let request = member
                    .request(Method::POST, "/api/rpc/create_project")
                    .header("idempotency-key", format!("k{round}"))
                    .header("content-type", "application/json")
                    .body(body.clone());
                let answer = member.send(request).await;
                if answer.status != 409 {
                    return answer;
                }
                assert_eq!(answer.refused().code, "still_at_work");
            }
        };
        let answer = tokio::time::timeout(PATIENCE, again).await.expect("it is not at work for ever").ok();
        assert_eq!(answer["project_code"], json!(format!("p{round}")));
    }
    let head = plane.head().await;
    let request = member.request(Method::GET, "/api/v_projects").header("prefer", format!("at-least={head}"));
    assert_eq!(member.send(request).await.ok().as_array().unwrap().len(), 8);
    plane.stop().await;
}

/// Reads a live stream to its end.
async fn to_its_end(mut response: reqwest::Response) -> String {
    let mut text = String::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    text
}

#[tokio::test]
async fn a_live_stream_ends_with_the_token_it_was_opened_with() {
    let plane = Plane::start().await;
    let user = plane.account("ada@example.org", Role::Member).await;
    let token = async || plane.token_of(user, ORG, Role::Member, &["read", "write"], clock::now()).await;
    let (reading, owner) = (token().await, Client::with_token(&plane.url, &token().await));
    let reader = Client::with_token(&plane.url, &reading);
    let head = plane.head().await;
    let response =
        reader.request(Method::GET, &format!("/api/live?topics={ORG}&after={head}")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let stream = tokio::spawn(to_its_end(response));

    let listed = plane.state.log.read_all(0, 1000).await.unwrap();
    let made: Vec<Value> = listed
        .iter()
        .filter(|event| event.event_type == "access.token_created")
        .map(|event| serde_json::from_str(&event.payload).unwrap())
        .collect();
    let id = &made[made.len() - 2]["token"];
    owner.rpc("revoke_api_token", &json!({"p_token_id": id})).await.ok();
    let text = tokio::time::timeout(PATIENCE, stream).await.expect("the stream ends").unwrap();
    assert!(text.contains("event: head"), "{text}");
    assert_eq!(reader.get("/api/v_projects").await.status, 401);
    plane.stop().await;
}

#[tokio::test]
async fn a_token_that_may_only_read_makes_and_revokes_no_tokens() {
    let plane = Plane::start().await;
    let user = plane.account("ada@example.org", Role::Member).await;
    let token = plane.token_of(user, ORG, Role::Member, &["read"], clock::now()).await;
    let reader = Client::with_token(&plane.url, &token);
    let args = json!({"p_name": "more", "p_scopes": ["read"], "p_expires_in_days": 365});
    assert_eq!(reader.rpc("create_api_token", &args).await.refused().code, "scope_missing");
    let args = json!({"p_token_id": uuid::Uuid::now_v7().to_string()});
    assert_eq!(reader.rpc("revoke_api_token", &args).await.refused().code, "scope_missing");
    plane.stop().await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let plane = Plane::start_with(|config| config.headers_within = Duration::from_secs(1)).await;
    let mut idle = TcpStream::connect(address(&plane)).await.unwrap();
    let mut slow = TcpStream::connect(address(&plane)).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-").await.unwrap();
    for connection in [&mut idle, &mut slow] {
        let mut said = Vec::new();
        let closed = tokio::time::timeout(PATIENCE, connection.read_to_end(&mut said)).await;
        assert!(closed.is_ok(), "still open after {PATIENCE:?}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn what_lies_ahead_of_the_log_is_refused_at_once() {
    let plane = Plane::start().await;
    let admin = plane.client(Role::Admin).await;
    let request =
        admin.request(Method::GET, "/api/v_projects").header("prefer", format!("at-least={}", i64::MAX));
    assert_eq!(admin.send(request).await.refused().code, "position_ahead");
    for range in
        [json!({"p_from": 2_147_483_648_i64}), json!({"p_from": 10, "p_to": 5}), json!({"p_from": 0})]
    {
        assert_eq!(admin.rpc("verify_log", &range).await.refused().code, "bad_range", "{range}");
    }
    let args = json!({"p_config_code": "local-cpu", "p_hostname": "h1", "p_comment": "a\u{0}b"});
    assert_eq!(admin.rpc("create_server_config_instance", &args).await.refused().code, "bad_text");
    plane.stop().await;
}
