//! Hugging Face tokens: sealed, never shown again, given to the agent of the claimed job alone.

mod plane;

use events::access::Role;
use plane::agent::{Agent, Held, failed, project_with, start_run};
use plane::{Client, ORG, PASSWORD, Plane};
use serde_json::{Value, json};

const GATED: &str = "meta-llama/Llama-3.2-1B-Instruct";
const OPEN: &str = "Qwen/Qwen3-0.6B";
const OWN: &str = "hf_OwnTokenOfTheMember0123456789";
const SHARED: &str = "hf_TokenOfTheWholeOrganisation42";

async fn page(plane: &Plane, email: &str, role: Role) -> Client {
    plane.account(email, role).await;
    let mut page = plane.anonymous();
    page.sign_in(email, PASSWORD).await.ok();
    page
}

async fn rows(client: &Client, plane: &Plane, path: &str) -> Vec<Value> {
    let head = plane.head().await;
    let request = client.request(reqwest::Method::GET, path).header("prefer", format!("at-least={head}"));
    client.send(request).await.ok().as_array().unwrap().clone()
}

async fn ask(agent: &Agent, held: &Held, attempt: u32) -> plane::Answer {
    agent.client.post("/api/agent/secrets", &json!({"job": held.job, "attempt": attempt})).await
}

/// An agent that holds a job of a run that the member started, of a project of its own.
async fn holding(plane: &Plane, member: &Client, agent: &Agent, code: &str, model: &str) -> Held {
    project_with(member, code, 1, model).await;
    start_run(member, agent, code).await;
    assert!(plane.head().await > 0);
    agent.claim().await.expect("a job waits")
}

#[tokio::test]
async fn a_token_reaches_the_agent_of_the_claimed_job_and_nobody_else() {
    let plane = Plane::start().await;
    let member = page(&plane, "bob@example.org", Role::Member).await;
    let (agent, other) = (Agent::enrol(&plane, "h1").await, Agent::enrol(&plane, "h2").await);
    member.rpc("set_hf_token", &json!({"p_token": OWN})).await.ok();
    let held = holding(&plane, &member, &agent, "p", GATED).await;

    let answer = ask(&agent, &held, 1).await.ok();
    assert_eq!(answer, json!({"env": {"HF_TOKEN": OWN}}));
    assert_eq!(ask(&other, &held, 1).await.refused().code, "not_your_job");
    assert_eq!(ask(&agent, &held, 2).await.refused().code, "not_your_job");
    let by_person = member.post("/api/agent/secrets", &json!({"job": held.job, "attempt": 1})).await;
    assert_eq!(by_person.refused().code, "agent_token_required");
    // Once the job is over, so is the right to it.
    agent.report(&[(server::clock::now(), failed(&held))]).await;
    assert_eq!(ask(&agent, &held, 1).await.refused().code, "not_your_job");

    let released = rows(&member, &plane, "/api/v_audit?type=eq.secret.released").await;
    assert_eq!(released.len(), 1);
    assert_eq!(released[0]["actor_kind"], "agent");
    assert_eq!(released[0]["payload"]["server"], "server/acme/local-cpu/h1");
    assert!(rows(&member, &plane, "/api/v_secrets").await[0]["last_released_at"].is_string());
    plane.stop().await;
}

#[tokio::test]
async fn ones_own_token_goes_before_the_organisations_and_an_open_model_gets_none() {
    let plane = Plane::start().await;
    let admin = page(&plane, "ann@example.org", Role::Admin).await;
    let member = page(&plane, "bob@example.org", Role::Member).await;
    let organization = json!({"p_token": SHARED, "p_scope": "organization"});
    assert_eq!(member.rpc("set_hf_token", &organization).await.refused().code, "role_too_low");
    admin.rpc("set_hf_token", &organization).await.ok();
    let agents = [
        Agent::enrol(&plane, "h1").await,
        Agent::enrol(&plane, "h2").await,
        Agent::enrol(&plane, "h3").await,
    ];

    let held = holding(&plane, &member, &agents[0], "p1", GATED).await;
    assert_eq!(ask(&agents[0], &held, 1).await.ok()["env"]["HF_TOKEN"], SHARED);
    member.rpc("set_hf_token", &json!({"p_token": OWN})).await.ok();
    assert_eq!(ask(&agents[0], &held, 1).await.ok()["env"]["HF_TOKEN"], OWN);
    // The administrator's run gets the shared one, not the member's.
    let held = holding(&plane, &admin, &agents[1], "p2", GATED).await;
    assert_eq!(ask(&agents[1], &held, 1).await.ok()["env"]["HF_TOKEN"], SHARED);
    let held = holding(&plane, &member, &agents[2], "p3", OPEN).await;
    assert_eq!(ask(&agents[2], &held, 1).await.ok(), json!({"env": {}}));

    member.rpc("remove_hf_token", &json!({})).await.ok();
    assert_eq!(member.rpc("remove_hf_token", &json!({})).await.refused().code, "secret_not_found");
    admin.rpc("remove_hf_token", &json!({"p_scope": "organization"})).await.ok();
    assert_eq!(rows(&member, &plane, "/api/v_secrets").await.len(), 0);
    plane.stop().await;
}

#[tokio::test]
async fn a_stored_token_stands_nowhere_and_is_never_shown_again() {
    let plane = Plane::start().await;
    let member = page(&plane, "bob@example.org", Role::Member).await;
    let request =
        member.request(reqwest::Method::POST, "/api/rpc/set_hf_token").header("idempotency-key", "k1");
    let made = member.send(request.json(&json!({"p_token": OWN}))).await.ok();
    let shown = rows(&member, &plane, "/api/v_secrets").await;
    assert_eq!(
        (shown.len(), &shown[0]["fingerprint"], &shown[0]["scope"]),
        (1, &made["fingerprint"], &json!("user"))
    );
    assert!(!json!(shown).to_string().contains(OWN) && !made.to_string().contains(OWN));
    for bad in ["", "sk-1234567890123456", "hf_short", "hf_with a space in it 0123456"] {
        let refused = member.rpc("set_hf_token", &json!({"p_token": bad})).await;
        assert_eq!(refused.refused().code, "bad_token");
    }
    // Somebody else's is not theirs to see, an administrator's neither.
    let admin = page(&plane, "ann@example.org", Role::Admin).await;
    assert_eq!(rows(&admin, &plane, "/api/v_secrets").await.len(), 0);

    let events = plane.state.log.read_all(0, 10_000).await.unwrap();
    assert!(events.iter().all(|event| !event.payload.contains(OWN)));
    let stored: Vec<String> = sqlx::query_scalar(
        "select s::text from vault.secrets s union all select k::text from vault.idempotency_keys k",
    )
    .fetch_all(&plane.state.pool)
    .await
    .unwrap();
    assert_eq!(stored.len(), 2);
    assert!(stored.iter().all(|row| !row.contains(OWN) && !row.contains(&hex::encode(OWN))));
    plane.stop().await;
}

#[tokio::test]
async fn who_leaves_takes_their_token_along() {
    let plane = Plane::start().await;
    let admin = page(&plane, "ann@example.org", Role::Admin).await;
    let member = page(&plane, "bob@example.org", Role::Member).await;
    let agent = Agent::enrol(&plane, "h1").await;
    member.rpc("set_hf_token", &json!({"p_token": OWN})).await.ok();
    let held = holding(&plane, &member, &agent, "p", GATED).await;
    let bob = member.get("/api/session").await.ok()["user"].clone();
    admin.rpc("remove_member", &json!({"p_user_id": bob})).await.ok();
    assert_eq!(ask(&agent, &held, 1).await.ok(), json!({"env": {}}));
    assert_eq!(
        rows(&admin, &plane, &format!("/api/v_audit?stream=like.access/{ORG}/*&type=eq.secret.stored"))
            .await
            .len(),
        1
    );
    plane.stop().await;
}
