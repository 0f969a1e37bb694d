//! Quotas of an organisation: what is over them is refused, what was measured is not.

mod plane;

use events::access::Role;
use events::quota::Resource;
use plane::agent::{Agent, CONFIG, failed, project, start_run};
use plane::{Client, ORG, Plane};
use reqwest::Method;
use serde_json::{Value, json};
use server::auth::Principal;
use server::clock;
use server::commands::RequestMeta;
use server::commands::quotas::set_quotas;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// The operator's doing; from when it returns on it counts.
async fn limit(plane: &Plane, resource: Resource, most: Option<u64>) {
    let meta = RequestMeta { correlation_id: Uuid::now_v7(), idempotency_key: None, now: clock::now() };
    let quotas = [(resource, most)].into();
    set_quotas(&plane.state, &Principal::operator(ORG), ORG, &quotas, meta).await.unwrap();
    plane.state.work.catch_up().await.unwrap();
}

async fn quota(client: &Client, plane: &Plane, resource: &str) -> Value {
    let path = format!("/api/v_quotas?resource=eq.{resource}&select=used,quota_limit,level_percent");
    let request =
        client.request(Method::GET, &path).header("prefer", format!("at-least={}", plane.head().await));
    client.send(request).await.ok()[0].clone()
}

async fn upload(client: &Client, bytes: &[u8]) -> plane::Answer {
    let path = format!("/api/uploads/{}", hex::encode(Sha256::digest(bytes)));
    client.send(client.request(Method::PUT, &path).body(bytes.to_vec())).await
}

#[tokio::test]
async fn one_project_more_than_the_quota_is_refused_until_one_is_archived() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    limit(&plane, Resource::Projects, Some(2)).await;
    project(&member, "p1", 1).await;
    project(&member, "p2", 1).await;
    let head = plane.head().await;
    let third = json!({"p_project_code": "p3", "p_name": "p3"});
    let refused = member.rpc("create_project", &third).await;
    assert_eq!(refused.status, 403);
    let refused = refused.refused();
    assert_eq!(refused.code, "quota_reached");
    assert!(refused.message.contains("2 of the 2 projects"), "{}", refused.message);
    plane.until_type_after(0, "quota.level_changed").await;
    assert!(!plane.types_after(head).await.contains(&"project.created".to_owned()));
    let row = quota(&member, &plane, "projects").await;
    assert_eq!(row, json!({"used": 2, "quota_limit": 2, "level_percent": 95}));
    // Another organisation's quota is another one.
    let elsewhere = plane.account_in("umbrella", "u@example.org", Role::Member).await;
    let token = plane.token_of(elsewhere, "umbrella", Role::Member, &["read", "write"], clock::now()).await;
    let other = Client::with_token(&plane.url, &token);
    other.rpc("create_project", &third).await.ok();
    assert_eq!(other.get("/api/v_quotas?quota_limit=not.is.null").await.ok(), json!([]));

    member.rpc("archive_project", &json!({"p_project_code": "p1"})).await.ok();
    member.rpc("create_project", &third).await.ok();
    limit(&plane, Resource::Projects, None).await;
    member.rpc("create_project", &json!({"p_project_code": "p4", "p_name": "p4"})).await.ok();
    plane.stop().await;
}

#[tokio::test]
async fn of_many_projects_asked_for_at_once_no_more_than_the_quota_are_made() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    limit(&plane, Resource::Projects, Some(3)).await;
    let create = |number: u32| {
        let member = member.clone();
        async move {
            let args = json!({"p_project_code": format!("p{number}"), "p_name": "p"});
            member.rpc("create_project", &args).await.status.as_u16()
        }
    };
    let mut statuses = futures::future::join_all((0..12).map(create)).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [&[200; 3][..], &[403; 9]].concat());
    plane.stop().await;
}

#[tokio::test]
async fn a_run_whose_jobs_are_too_many_waits_until_others_are_finished() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let agent = Agent::enrol(&plane, "h1").await;
    project(&member, "p", 1).await;
    project(&member, "q", 2).await;
    limit(&plane, Resource::OpenJobs, Some(2)).await;
    start_run(&member, &agent, "p").await;
    let start =
        json!({"p_project_code": "q", "p_workload_code": "w", "p_config_code": CONFIG, "p_hostname": "h1"});
    let refused = member.rpc("start_run", &start).await.refused();
    assert_eq!(refused.code, "quota_reached");
    assert!(refused.message.contains("1 of the 2 open jobs") && refused.message.contains("2 more"));
    let held = agent.claim().await.unwrap();
    let before = plane.head().await;
    agent.report(&[(clock::now(), failed(&held))]).await;
    plane.until_type_after(before, "run.finished").await;
    assert_eq!(quota(&member, &plane, "open_jobs").await["used"], 0);
    member.rpc("start_run", &start).await.ok();
    assert_eq!(quota(&member, &plane, "open_jobs").await["used"], 2);
    plane.stop().await;
}

#[tokio::test]
async fn uploads_at_the_same_moment_store_no_more_than_the_quota() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    limit(&plane, Resource::StoredBytes, Some(1000)).await;
    let files: Vec<Vec<u8>> = (0..8).map(|n| vec![n; 300]).collect();
    let answers =
        futures::future::join_all(files.iter().map(|file| async { upload(&member, file).await })).await;
    let kept = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(kept, 3, "{:?}", answers.iter().map(|answer| &answer.text).collect::<Vec<_>>());
    for answer in answers.into_iter().filter(|answer| answer.status != 200) {
        assert_eq!(answer.refused().code, "quota_reached");
    }
    assert_eq!(quota(&member, &plane, "stored_bytes").await["used"], 900);
    // The same bytes at the same moment count once.
    let same = vec![9; 80];
    let answers = futures::future::join_all((0..4).map(|_| upload(&member, &same))).await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    assert_eq!(quota(&member, &plane, "stored_bytes").await["used"], 980);
    plane.stop().await;
}

#[tokio::test]
async fn people_store_no_more_than_the_quota_and_agents_keep_their_evidence() {
    let plane = Plane::start().await;
    let (agent, held, member) = plane.held_of("h1").await;
    let prompts = |words: usize| {
        json!({"p_prompt_source_code": format!("s{words}"), "p_type": "prompt_library",
               "p_content": json!({"prompt": "word ".repeat(words)}).to_string()})
    };
    limit(&plane, Resource::StoredBytes, Some(1000)).await;
    member.rpc("create_prompt_source", &prompts(100)).await.ok();
    let used = quota(&member, &plane, "stored_bytes").await["used"].as_i64().unwrap();
    assert!((500..600).contains(&used), "{used}");
    assert_eq!(member.rpc("create_prompt_source", &prompts(120)).await.refused().code, "quota_reached");
    assert_eq!(upload(&member, &[7; 600]).await.refused().code, "quota_reached");
    upload(&member, &[7; 100]).await.ok();
    upload(&member, &[7; 100]).await.ok();
    assert_eq!(quota(&member, &plane, "stored_bytes").await["used"], used + 100, "the same bytes once");
    // Nobody else hears of what no command has named.
    let sha256 = hex::encode(Sha256::digest([7; 100]));
    let history =
        async |client: &Client| client.get(&format!("/api/history?stream=blob/acme/{sha256}")).await;
    assert_eq!(history(&member).await.ok()["events"].as_array().unwrap().len(), 1);
    let other = history(&plane.client(Role::Admin).await).await;
    assert!(!other.text.contains("upload"), "{}", other.text);
    let used = used + 100;

    limit(&plane, Resource::StoredBytes, Some(used.unsigned_abs())).await;
    assert_eq!(upload(&member, &[8; 1]).await.refused().code, "quota_reached");
    // What a job leaves is kept, and the next run is not begun.
    let evidence = b"the request log".to_vec();
    let sha256 = hex::encode(Sha256::digest(&evidence));
    let put = agent.client.request(Method::PUT, &format!("/api/agent/blobs/{sha256}")).body(evidence.clone());
    agent.client.send(put).await.ok();
    let stored = json!({"kind": "blob", "job": held.job, "attempt": held.attempt, "blob": {
        "sha256": sha256, "size": evidence.len(), "media_type": "text/plain", "purpose": "request_log"}});
    agent.report(&[(clock::now(), stored)]).await;
    assert_eq!(quota(&member, &plane, "stored_bytes").await["used"], used + evidence.len() as i64);
    let start =
        json!({"p_project_code": "p", "p_workload_code": "w", "p_config_code": CONFIG, "p_hostname": "h1"});
    assert_eq!(member.rpc("start_run", &start).await.refused().code, "quota_reached");
    plane.stop().await;
}
