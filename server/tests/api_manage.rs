//! What people change afterwards: a project's name, who sees it, its archive; servers that leave; runs that wait in vain.

mod plane;

use events::access::Role;
use events::server_host::{ServerState, ServerStateChanged};
use events::{Event, canonical::CanonicalJson};
use plane::agent::{Agent, CONFIG, project, start_run};
use plane::{Client, Plane};
use serde_json::{Value, json};
use server::auth::Principal;
use server::clock;
use server::log::{AppendRequest, Expected};

async fn rows(client: &Client, plane: &Plane, path: &str) -> Vec<Value> {
    let head = plane.head().await;
    let request = client.request(reqwest::Method::GET, path).header("prefer", format!("at-least={head}"));
    client.send(request).await.ok().as_array().unwrap().clone()
}

#[tokio::test]
async fn a_project_is_renamed_and_its_code_stays() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    project(&member, "p1", 1).await;
    let args = json!({"p_project_code": "p1", "p_name": "Which GPU for the chat service?"});
    let reply = member.rpc("rename_project", &args).await.ok();
    assert_eq!(reply["project"], "project/acme/p1");
    let found = rows(&member, &plane, "/api/v_projects?project_code=eq.p1").await;
    assert_eq!(found[0]["name"], "Which GPU for the chat service?");
    // The same once more changes nothing, and says where it stands.
    let head = plane.head().await;
    let again = member.rpc("rename_project", &args).await.ok();
    assert_eq!((plane.head().await, &again["position"]), (head, &reply["position"]));
    let refused =
        member.rpc("rename_project", &json!({"p_project_code": "p1", "p_name": " "})).await.refused();
    assert_eq!(refused.code, "bad_name");
    plane.stop().await;
}

#[tokio::test]
async fn a_project_that_becomes_private_is_gone_for_everybody_else_and_back_when_it_opens() {
    let plane = Plane::start().await;
    let (owner, other) = (plane.client(Role::Member).await, plane.client(Role::Admin).await);
    project(&owner, "p1", 1).await;
    let seen =
        async |client: &Client| rows(client, &plane, "/api/v_workloads?project_code=eq.p1").await.len();
    assert_eq!((seen(&owner).await, seen(&other).await), (1, 1));
    let set = async |client: &Client, visibility: &str| {
        let args = json!({"p_project_code": "p1", "p_visibility": visibility});
        client.rpc("set_project_visibility", &args).await
    };
    set(&owner, "private").await.ok();
    assert_eq!((seen(&owner).await, seen(&other).await, seen(&plane.anonymous()).await), (1, 0, 0));
    // An administrator neither sees it nor changes it.
    assert_eq!(set(&other, "public").await.refused().code, "project_not_found");
    set(&owner, "public").await.ok();
    assert_eq!((seen(&other).await, seen(&plane.anonymous()).await), (1, 1));
    assert!(set(&owner, "secret").await.refused().message.contains("secret"));
    plane.stop().await;
}

#[tokio::test]
async fn an_archived_project_takes_no_more_work_and_keeps_its_rows() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let agent = Agent::enrol(&plane, "h1").await;
    project(&member, "p1", 1).await;
    member.rpc("archive_project", &json!({"p_project_code": "p1"})).await.ok();
    let args = json!({"p_project_code": "p1", "p_workload_code": "w", "p_config_code": CONFIG,
                      "p_hostname": agent.server.hostname});
    assert_eq!(member.rpc("start_run", &args).await.refused().code, "project_archived");
    let found = rows(&member, &plane, "/api/v_projects?project_code=eq.p1").await;
    assert_eq!(found[0]["archived"], true);
    plane.stop().await;
}

#[tokio::test]
async fn a_workload_is_renamed_and_archived_and_what_was_measured_stays() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let agent = Agent::enrol(&plane, "h1").await;
    project(&member, "p1", 1).await;
    start_run(&member, &agent, "p1").await;
    let named = json!({"p_project_code": "p1", "p_workload_code": "w", "p_name": "Gemma on one slot"});
    let reply = member.rpc("rename_workload", &named).await.ok();
    assert_eq!(reply["workload"], "workload/acme/p1/w");
    let head = plane.head().await;
    let again = member.rpc("rename_workload", &named).await.ok();
    assert_eq!((plane.head().await, &again["position"]), (head, &reply["position"]));
    let place = json!({"p_project_code": "p1", "p_workload_code": "w"});
    let other = json!({"p_project_code": "p1", "p_workload_code": "x"});
    assert_eq!(member.rpc("archive_workload", &other).await.refused().code, "workload_not_found");
    let viewer = plane.client(Role::Viewer).await;
    assert_eq!(viewer.rpc("archive_workload", &place).await.status, 403);
    member.rpc("archive_workload", &place).await.ok();
    let found = rows(&member, &plane, "/api/v_workloads?project_code=eq.p1").await;
    assert_eq!(
        (&found[0]["name"], &found[0]["archived"], &found[0]["workload_code"], &found[0]["runs"]),
        (&json!("Gemma on one slot"), &json!(true), &json!("w"), &json!(1))
    );
    // The run that was under way goes on.
    assert!(agent.claim().await.is_some());
    let start =
        json!({"p_project_code": "p1", "p_workload_code": "w", "p_config_code": CONFIG, "p_hostname": "h1"});
    assert_eq!(member.rpc("start_run", &start).await.refused().code, "workload_archived");
    let rerun = json!({"p_project_code": "p1", "p_workload_code": "w", "p_run_number": 1});
    assert_eq!(member.rpc("rerun", &rerun).await.refused().code, "workload_archived");
    assert_eq!(
        member
            .rpc("rename_workload", &json!({"p_project_code": "p1", "p_workload_code": "w", "p_name": "z"}))
            .await
            .refused()
            .code,
        "workload_archived"
    );
    let clone = json!({"p_project_code": "p1", "p_workload_code": "w", "p_new_workload_code": "w2"});
    member.rpc("clone_workload", &clone).await.ok();
    let found = rows(&member, &plane, "/api/v_workloads?workload_code=eq.w2").await;
    assert_eq!(
        (&found[0]["archived"], &found[0]["cloned_from"]),
        (&json!(false), &json!("workload/acme/p1/w"))
    );
    plane.stop().await;
}

#[tokio::test]
async fn a_removed_server_lets_its_agent_in_no_more_until_it_is_registered_anew() {
    let plane = Plane::start().await;
    let (admin, member) = (plane.client(Role::Admin).await, plane.client(Role::Member).await);
    let agent = Agent::enrol(&plane, "h1").await;
    project(&member, "p1", 1).await;
    start_run(&member, &agent, "p1").await;
    let args = json!({"p_config_code": CONFIG, "p_hostname": "h1"});
    let busy = admin.rpc("remove_server", &args).await.refused();
    assert_eq!(busy.code, "server_busy");
    assert!(busy.details.unwrap().contains("run/acme/p1/w/1"));

    let run = json!({"p_project_code": "p1", "p_workload_code": "w", "p_run_number": 1});
    member.rpc("cancel_run", &run).await.ok();
    admin.rpc("remove_server", &args).await.ok();
    assert_eq!(agent.beat(&[]).await.status, 401);
    let server = async || rows(&member, &plane, "/api/v_servers?hostname=eq.h1").await.remove(0);
    assert_eq!(server().await["removed"], true);
    assert_eq!(admin.rpc("remove_server", &args).await.refused().code, "server_not_found");

    let again = Agent::enrol(&plane, "h1").await;
    let row = server().await;
    assert_eq!((&row["removed"], &row["state"]), (&json!(false), &json!("online")));
    again.beat(&[]).await.ok();

    // Another token, and a price: the server stays what it is.
    let priced = json!({"p_config_code": CONFIG, "p_hostname": "h1", "p_cost_per_hour_usd": 2.5});
    admin.rpc("create_server_config_instance", &priced).await.ok();
    let row = server().await;
    assert_eq!(
        (&row["cost_per_hour_usd"], &row["state"], &row["cpus"]),
        (&json!(2.5), &json!("online"), &json!(4))
    );
    plane.stop().await;
}

#[tokio::test]
async fn runs_that_wait_for_a_silent_server_are_cancelled_and_no_others() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let (silent, lively) = (Agent::enrol(&plane, "silent").await, Agent::enrol(&plane, "lively").await);
    project(&member, "p1", 2).await;
    start_run(&member, &silent, "p1").await;
    start_run(&member, &lively, "p1").await;
    assert_eq!(member.rpc("cancel_stale_jobs", &json!({})).await.ok()["runs"], json!([]));

    let changed = Event::ServerStateChanged(ServerStateChanged { state: ServerState::Offline });
    let event = events::envelope::NewEvent {
        event_id: uuid::Uuid::now_v7(),
        event_type: changed.event_type().to_owned(),
        schema_version: changed.schema_version(),
        org: "acme".to_owned(),
        actor: Principal::operator("acme").actor(),
        causation_id: None,
        correlation_id: None,
        occurred_at: clock::now(),
        payload: CanonicalJson::of(&changed.payload().unwrap()).unwrap(),
    };
    let request = AppendRequest::one(silent.server.stream(), Expected::Any, vec![event]);
    plane.state.log.append(request).await.unwrap();

    let reply = member.rpc("cancel_stale_jobs", &json!({})).await.ok();
    assert_eq!(reply["runs"], json!(["run/acme/p1/w/1"]));
    let runs = rows(&member, &plane, "/api/v_runs?project_code=eq.p1&order=run_number&select=status").await;
    assert_eq!(runs[0]["status"], "cancelled");
    assert_ne!(runs[1]["status"], "cancelled");
    plane.stop().await;
}
