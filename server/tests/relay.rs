//! The relay: what is in the log is in JetStream, in order, each event once; and the live hub never depends on it.

mod plane;

use std::time::Duration;

use async_nats::jetstream;
use events::access::Role;
use events::api::EventView;
use events::envelope::GENESIS_HASH;
use events::subjects::{EVENTS_STREAM, event_subject};
use futures::StreamExt;
use plane::Plane;
use server::live::Shown;
use server::relay::{POSITION_HEADER, PREVIOUS_HASH_HEADER};

/// How long anything may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);

fn context(plane: &Plane) -> jetstream::Context {
    jetstream::new(plane.state.nats.clone().expect("a NATS"))
}

/// The relayed messages, from the first one that is kept to the one at `last`.
async fn relayed(plane: &Plane, last: i64) -> Vec<(jetstream::Message, EventView)> {
    let read = async {
        let stream = loop {
            // The relay makes it; until then there is none.
            if let Ok(stream) = context(plane).get_stream(EVENTS_STREAM).await {
                break stream;
            }
            tokio::task::yield_now().await;
        };
        let consumer =
            stream.create_consumer(jetstream::consumer::pull::OrderedConfig::default()).await.unwrap();
        let mut messages = consumer.messages().await.unwrap();
        let mut seen: Vec<(jetstream::Message, EventView)> = Vec::new();
        while seen.last().is_none_or(|(_, view)| view.position < last) {
            let message = messages.next().await.unwrap().unwrap();
            let view = serde_json::from_slice(&message.payload).unwrap();
            seen.push((message, view));
        }
        seen
    };
    tokio::time::timeout(PATIENCE, read).await.expect("the relay reaches the head")
}

/// What the hub shows, from the first event to the last, page by page.
async fn shown(plane: &Plane) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    loop {
        let page = plane.state.hub.after(all.last().map_or(0, Shown::position)).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

fn header(message: &jetstream::Message, name: &str) -> String {
    message.headers.as_ref().and_then(|h| h.get(name)).expect("the header").as_str().to_owned()
}

#[tokio::test]
async fn the_stream_holds_every_event_of_the_log_once_and_in_order() {
    let plane = Plane::start().await;
    plane.account("ada@example.org", Role::Member).await;
    let log = plane.state.log.read_all(0, 10_000).await.unwrap();
    let seen = relayed(&plane, log.last().unwrap().position).await;
    assert_eq!(seen.len(), log.len());
    let mut previous = GENESIS_HASH;
    for ((message, view), recorded) in seen.iter().zip(&log) {
        assert_eq!(message.subject.as_str(), event_subject(&recorded.stream));
        assert_eq!(header(message, POSITION_HEADER), recorded.position.to_string());
        assert_eq!(header(message, PREVIOUS_HASH_HEADER), hex::encode(previous));
        assert_eq!(
            header(message, async_nats::header::NATS_MESSAGE_ID.as_ref()),
            recorded.event_id.to_string()
        );
        assert_eq!(view, &server::live::event_view(recorded));
        previous = recorded.hash;
    }
    plane.stop().await;
}

#[tokio::test]
async fn a_stream_that_is_lost_is_made_again_and_nothing_is_missed_meanwhile() {
    let plane = Plane::start().await;
    relayed(&plane, plane.head().await).await;
    context(&plane).delete_stream(EVENTS_STREAM).await.unwrap();
    // The hub delivers from the log while there is no stream.
    let mut watch = plane.state.hub.watch();
    plane.account("ada@example.org", Role::Member).await;
    let head = plane.head().await;
    tokio::time::timeout(PATIENCE, watch.wait_for(|position| *position >= head)).await.unwrap().unwrap();
    let from_hub: Vec<i64> = shown(&plane).await.iter().map(Shown::position).collect();
    assert_eq!(from_hub, (1..=head).collect::<Vec<_>>());
    // And the relay makes it again, from near the head: here all of it.
    let again: Vec<i64> = relayed(&plane, head).await.iter().map(|(_, view)| view.position).collect();
    assert_eq!(again, (1..=head).collect::<Vec<_>>());
    plane.stop().await;
}

#[tokio::test]
async fn what_others_publish_under_the_streams_subjects_reaches_no_reader() {
    let plane = Plane::start().await;
    let head = plane.head().await;
    relayed(&plane, head).await;
    let recorded = plane.state.log.read_all(head - 1, 1).await.unwrap().remove(0);
    let mut forged = server::live::event_view(&recorded);
    forged.position = head + 1;
    forged.payload = serde_json::json!({"forged": true});
    let subject = event_subject(&recorded.stream);
    // The hash of whoever makes one up follows as well as any other's.
    let leaf = [7; 32];
    let mut consistent = forged.clone();
    consistent.leaf = hex::encode(leaf);
    consistent.hash = hex::encode(events::envelope::chain_hash(&recorded.hash, &leaf));
    let bodies = [
        serde_json::to_vec(&forged).unwrap(),
        serde_json::to_vec(&consistent).unwrap(),
        b"no event".to_vec(),
    ];
    for body in bodies {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert(server::relay::SEAL_HEADER, "ab".repeat(32).as_str());
        let published =
            context(&plane).publish_with_headers(subject.clone(), headers, body.into()).await.unwrap();
        published.await.unwrap();
    }
    let mut watch = plane.state.hub.watch();
    plane.account("ada@example.org", Role::Member).await;
    let head = plane.head().await;
    tokio::time::timeout(PATIENCE, watch.wait_for(|position| *position >= head)).await.unwrap().unwrap();
    let log = plane.state.log.read_all(0, 10_000).await.unwrap();
    let views: Vec<EventView> = shown(&plane).await.iter().map(|s| (*s.view).clone()).collect();
    assert_eq!(views, log.iter().map(server::live::event_view).collect::<Vec<_>>());
    plane.stop().await;
}
