//! The live stream: resumed at every position of a run it gives each event exactly once; without rights it gives nothing.

use std::time::Duration;

use serde_json::json;
use support::agent::Agent;
use support::api::Api;
use support::control_plane::ControlPlane;
use support::live::{Live, Message};
use support::workloads;

#[tokio::test]
async fn resuming_at_every_position_gives_each_event_exactly_once() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let agent = Agent::start(&plane, &admin, "live-host").await;
    let mut server = Live::open(&admin, "main:server", 0).await;
    server.until("the server online", |e| e.payload["state"] == "online").await;
    let (run, _) = agent.execute(&admin, "live", workloads::refserver(&[2], 20, 8)).await;
    let path = run.trim_start_matches("run/");

    // Once through, live; then again from each position it had.
    let mut live = Live::open(&admin, path, 0).await;
    let seen = live.until("the end of the run", |e| e.event_type == "run.finished").await;
    let positions: Vec<i64> = seen.iter().map(|e| e.position).collect();
    let last = *positions.last().expect("events");
    for (i, &after) in positions.iter().enumerate().take(positions.len() - 1) {
        let mut resumed = Live::open(&admin, path, after).await;
        let again = resumed.until("the end of the run again", |e| e.position == last).await;
        let found: Vec<i64> = again.iter().map(|e| e.position).collect();
        assert_eq!(found, positions[i + 1..], "after {after}");
    }
}

#[tokio::test]
async fn a_client_without_rights_gets_nothing_replays_included() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let private =
        json!({"p_project_code": "secret", "p_name": "Secret", "p_visibility": "private", "p_workloads": []});
    let public =
        json!({"p_project_code": "open", "p_name": "Open", "p_visibility": "public", "p_workloads": []});
    admin.command("create_project", &private).await;
    let reply = admin.command("create_project", &public).await;

    let anonymous = Api::anonymous(&plane.url);
    let mut live = Live::open(&anonymous, "main", 0).await;
    let mut seen = Vec::new();
    while let Some(message) = live.next_within(Duration::from_secs(3)).await {
        match message {
            Message::Event(event) => seen.push(event.event),
            Message::Head(head) if head.position >= reply.position && !seen.is_empty() => break,
            _ => {}
        }
    }
    let streams: Vec<&str> = seen.iter().map(|e| e.stream.as_str()).collect();
    assert_eq!(streams, ["project/main/open"], "the public project, and nothing else");

    // The owner sees both.
    let mut live = Live::open(&admin, "main:project", 0).await;
    let seen = live.until("both projects", |e| e.stream == "project/main/open").await;
    assert!(seen.iter().any(|e| e.stream == "project/main/secret"));
}
