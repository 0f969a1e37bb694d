//! Saved views: one's own and the organisation's, who sees and changes which.

mod plane;

use events::access::Role;
use plane::{Client, PASSWORD, Plane};
use serde_json::{Value, json};

async fn views(client: &Client, plane: &Plane) -> Vec<Value> {
    let head = plane.head().await;
    let request = client
        .request(reqwest::Method::GET, "/api/v_saved_views?order=view_code")
        .header("prefer", format!("at-least={head}"));
    client.send(request).await.ok().as_array().unwrap().clone()
}

async fn names(client: &Client, plane: &Plane) -> Vec<String> {
    views(client, plane).await.iter().map(|v| v["name"].as_str().unwrap().to_owned()).collect()
}

fn view(name: &str, query: &str, shared: bool) -> Value {
    json!({"p_name": name, "p_page": "/reporting", "p_query": query, "p_shared": shared})
}

#[tokio::test]
async fn ones_own_views_are_seen_by_nobody_else_and_shared_ones_by_the_organisation() {
    let plane = Plane::start().await;
    let (ada, bob) = (plane.client(Role::Member).await, plane.client(Role::Admin).await);
    let reply = ada.rpc("save_view", &view("Within 500 ms", "limit=ttft_p99_ms:lte:500", false)).await.ok();
    assert_eq!(reply["view_code"], "within-500-ms");
    let own = reply["saved_view"].as_str().unwrap().to_owned();
    ada.rpc("save_view", &view("Team board", "sort=output_tokens_per_second", true)).await.ok();

    let found = views(&ada, &plane).await;
    assert_eq!((&found[0]["name"], &found[0]["shared"]), (&json!("Team board"), &json!(true)));
    assert_eq!(
        (&found[1]["page"], &found[1]["query"], &found[1]["shared"]),
        (&json!("/reporting"), &json!("limit=ttft_p99_ms:lte:500"), &json!(false))
    );
    // An administrator too sees only what is shared; so do the event's readers.
    assert_eq!(names(&bob, &plane).await, ["Team board"]);
    assert_eq!(names(&plane.anonymous(), &plane).await, Vec::<String>::new());
    let history = format!("/api/history?stream={own}");
    assert_eq!(ada.get(&history).await.ok()["events"][0]["type"], "saved_view.saved");
    assert_eq!(bob.get(&history).await.refused().code, "not_found");
    let seen = |client: Client| {
        let plane = &plane;
        async move {
            let head = plane.head().await;
            let request = client
                .request(reqwest::Method::GET, "/api/v_events?type=eq.saved_view.saved&select=stream")
                .header("prefer", format!("at-least={head}"));
            client.send(request).await.ok().as_array().unwrap().len()
        }
    };
    assert_eq!((seen(ada.clone()).await, seen(bob.clone()).await, seen(plane.anonymous()).await), (2, 1, 0));
    plane.stop().await;
}

#[tokio::test]
async fn a_view_is_saved_anew_under_its_code_and_removed() {
    let plane = Plane::start().await;
    plane.account("ada@example.org", Role::Viewer).await;
    let mut ada = plane.anonymous();
    ada.sign_in("ada@example.org", PASSWORD).await.ok();
    ada.rpc("save_view", &view("Board", "sort=a", false)).await.ok();
    ada.rpc("save_view", &view("Board", "sort=b", false)).await.ok();
    assert_eq!(views(&ada, &plane).await[0]["query"], "sort=b");
    // The same once more changes nothing.
    let head = plane.head().await;
    ada.rpc("save_view", &view("Board", "?sort=b", false)).await.ok();
    assert_eq!(plane.head().await, head);
    ada.rpc("remove_view", &json!({"p_view_code": "board"})).await.ok();
    assert_eq!(views(&ada, &plane).await.len(), 0);
    let again = ada.rpc("remove_view", &json!({"p_view_code": "board"})).await;
    assert_eq!((again.status.as_u16(), again.refused().code.as_str()), (404, "view_not_found"));
    ada.rpc("save_view", &view("Board", "sort=c", false)).await.ok();
    assert_eq!(views(&ada, &plane).await[0]["query"], "sort=c");
    plane.stop().await;
}

#[tokio::test]
async fn a_shared_view_is_changed_by_who_saved_it_and_by_administrators() {
    let plane = Plane::start().await;
    let (ada, bob) = (plane.client(Role::Member).await, plane.client(Role::Member).await);
    let (viewer, admin) = (plane.client(Role::Viewer).await, plane.client(Role::Admin).await);
    ada.rpc("save_view", &view("Board", "sort=a", true)).await.ok();
    let head = plane.head().await;
    let remove = json!({"p_view_code": "board", "p_shared": true});
    assert_eq!(bob.rpc("save_view", &view("Board", "sort=b", true)).await.refused().code, "view_of_another");
    assert_eq!(bob.rpc("remove_view", &remove).await.refused().code, "view_of_another");
    assert_eq!(viewer.rpc("save_view", &view("Mine", "", true)).await.status.as_u16(), 403);
    assert_eq!(plane.head().await, head);
    // His own of the same code is another view.
    bob.rpc("save_view", &view("Board", "sort=b", false)).await.ok();
    assert_eq!(views(&bob, &plane).await.len(), 2);
    admin.rpc("remove_view", &remove).await.ok();
    assert_eq!(views(&bob, &plane).await.len(), 1);
    plane.stop().await;
}

#[tokio::test]
async fn an_address_elsewhere_and_a_token_that_only_reads_are_refused() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let head = plane.head().await;
    for page in ["//elsewhere.example", "https://elsewhere.example", "reporting", "/a?b"] {
        let args = json!({"p_name": "Odd", "p_page": page});
        let refused = member.rpc("save_view", &args).await;
        assert_eq!(
            (refused.status.as_u16(), refused.refused().code.as_str()),
            (400, "bad_address"),
            "{page}"
        );
    }
    assert_eq!(
        member.rpc("save_view", &json!({"p_name": "…", "p_page": "/"})).await.refused().code,
        "bad_code"
    );
    let token = plane.token(Role::Member, &["read"]).await;
    let reader = Client::with_token(&plane.url, &token);
    assert_eq!(reader.rpc("save_view", &view("A", "", false)).await.refused().code, "scope_missing");
    let all = plane.types_after(head).await;
    assert!(!all.iter().any(|t| t.starts_with("saved_view.")), "{all:?}");
    assert_eq!(views(&member, &plane).await.len(), 0);
    plane.stop().await;
}
