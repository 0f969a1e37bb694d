//! A live client that reads more slowly than things happen: what it is told then, and what it is not told any more.

mod plane;

use std::pin::Pin;
use std::time::Duration;

use axum::response::IntoResponse as _;
use axum::response::sse::Sse;
use events::access::Role;
use futures::{Stream, StreamExt as _};
use plane::{Client, ORG, Plane};
use serde_json::{Value, json};
use server::auth::Principal;
use server::live::Topics;
use server::live::stream::{self, TOO_FAR};

/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one message says: its name and its data.
type Message = (String, Value);

/// A reader without an account that follows everything after `after`. It takes a message only when it is asked to.
fn reader(plane: &Plane, after: i64, too_far: i64) -> Pin<Box<dyn Stream<Item = Message>>> {
    let client = stream::Client {
        hub: plane.state.hub.clone(),
        reader: Principal::Anonymous.visibility(),
        still_allowed: None,
        topics: Topics::parse(ORG).unwrap(),
        after,
        too_far,
        stop: plane.state.stop.clone(),
    };
    let body = Sse::new(stream::stream(client)).into_response().into_body();
    Box::pin(body.into_data_stream().map(|chunk| {
        let text = String::from_utf8(chunk.unwrap().to_vec()).unwrap();
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        (field("event:"), serde_json::from_str(&field("data:")).unwrap())
    }))
}

async fn next(reader: &mut Pin<Box<dyn Stream<Item = Message>>>) -> Message {
    tokio::time::timeout(PATIENCE, reader.next()).await.expect("a message comes").expect("the stream goes on")
}

async fn create(member: &Client, code: &str) {
    let args = json!({"p_project_code": code, "p_name": code, "p_visibility": "public"});
    member.rpc("create_project", &args).await.ok();
}

/// Waits until the hub holds all that was appended, and gives its place.
async fn hub_follows(plane: &Plane) -> i64 {
    let head = plane.head().await;
    *plane.state.hub.watch().wait_for(|position| *position >= head).await.unwrap()
}

#[tokio::test]
async fn a_client_that_falls_too_far_behind_is_told_to_fetch_everything_when_it_comes_and_later() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let head = hub_follows(&plane).await;
    let mut slow = reader(&plane, head, 5);
    assert_eq!(next(&mut slow).await, ("head".into(), json!({"position": head, "previous": head})));
    for n in 0..6 {
        create(&member, &format!("p{n}")).await;
    }
    let head = hub_follows(&plane).await;
    assert_eq!(next(&mut slow).await, ("resync".into(), json!({"position": head, "previous": 0})));
    assert_eq!(next(&mut slow).await, ("head".into(), json!({"position": head, "previous": 0})));
    create(&member, "after").await;
    let (name, data) = next(&mut slow).await;
    assert_eq!((name.as_str(), &data["payload"]["name"]), ("event", &json!("after")));
    assert!(data["position"].as_i64().unwrap() > head, "{data}");

    let head = hub_follows(&plane).await;
    let mut late = reader(&plane, 1, 5);
    assert_eq!(next(&mut late).await, ("resync".into(), json!({"position": head, "previous": 0})));
    let mut patient = reader(&plane, 1, TOO_FAR);
    assert_eq!(next(&mut patient).await.0, "head");
    assert_eq!(next(&mut patient).await.0, "event");
    plane.stop().await;
}

#[tokio::test]
async fn what_waited_for_a_slow_client_is_not_sent_once_its_project_is_private() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let set = async |visibility: &str| {
        let args = json!({"p_project_code": "p", "p_visibility": visibility});
        member.rpc("set_project_visibility", &args).await.ok();
    };
    create(&member, "p").await;
    let head = hub_follows(&plane).await;
    for name in ["one", "two", "three"] {
        member.rpc("rename_project", &json!({"p_project_code": "p", "p_name": name})).await.ok();
    }
    hub_follows(&plane).await;
    let mut slow = reader(&plane, head, TOO_FAR);
    assert_eq!(next(&mut slow).await.0, "head");
    let (name, first) = next(&mut slow).await;
    assert_eq!((name.as_str(), &first["payload"]["name"]), ("event", &json!("one")));

    set("private").await;
    let other = json!({"p_project_code": "open", "p_name": "open", "p_visibility": "public"});
    member.rpc("create_project", &other).await.ok();
    hub_follows(&plane).await;
    let (name, second) = next(&mut slow).await;
    assert_eq!((name.as_str(), &second["payload"]["name"]), ("event", &json!("open")));
    assert_eq!(second["previous"], first["position"], "nothing is missing of what it may see");
    plane.stop().await;
}
