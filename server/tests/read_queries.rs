//! The query dialect against a real PostgreSQL, and the live stream over a real log.

mod common;
mod reading;

use std::pin::pin;

use axum::body::Body;
use axum::response::IntoResponse;
use axum::response::sse::Sse;
use common::Cluster;
use events::api::{LiveEvent, LiveHead};
use events::project::ProjectVisibility;
use futures::StreamExt;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use reading::{Read, Story, anonymous, person};
use serde_json::{Value, json};
use server::auth::Visibility;
use server::live::stream::{Client, stream};
use server::live::{Hub, Topics};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_ranges_counts_and_formats_are_postgrests() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "dialect").await;
    Story { concurrencies: vec![1, 2, 4, 8, 16], seconds: 3, ..Story::default() }.tell(&read).await;
    let head = read.settle().await;
    let ada = person("acme", "ada");
    let query = "select=c:concurrency&order=concurrency";
    let (status, headers, body) =
        read.ask(&ada, "v_jobs", query, &[("range", "1-2"), ("prefer", "count=exact")]).await;
    assert_eq!((status, headers["content-range"].to_str().unwrap()), (206, "1-2/5"));
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), json!([{"c": 2}, {"c": 4}]));
    let (status, headers, _) = read.ask(&ada, "v_jobs", "limit=0", &[]).await;
    assert_eq!((status, headers["content-range"].to_str().unwrap()), (200, "*/*"));
    let (status, _, _) = read.ask(&ada, "v_jobs", "offset=9", &[("prefer", "count=exact")]).await;
    assert_eq!(status, 416);
    let (_, headers, csv) =
        read.ask(&ada, "v_jobs", &format!("{query}&concurrency=in.(4,16)"), &[("accept", "text/csv")]).await;
    assert_eq!(csv, "c\r\n4\r\n16\r\n");
    assert!(headers["content-type"].to_str().unwrap().starts_with("text/csv"));
    let (_, _, lines) =
        read.ask(&ada, "v_jobs", "select=flags&limit=2", &[("accept", "application/x-ndjson")]).await;
    assert_eq!(lines, "{\"flags\":[\"few_requests\"]}\n{\"flags\":[\"few_requests\"]}\n");
    let object = [("accept", "application/vnd.pgrst.object+json")];
    assert_eq!(read.ask(&ada, "v_projects", "select=name", &object).await.2, "{\"name\":\"A project\"}");
    assert_eq!(read.ask(&ada, "v_jobs", "", &object).await.0, 406);
    let (status, _, _) = read.ask(&ada, "v_jobs", "", &[("prefer", &format!("at-least={head}"))]).await;
    assert_eq!(status, 200);
    let or = "or=(concurrency.eq.1,and(concurrency.gt.4,hostname.not.is.null))&select=concurrency&order=concurrency.desc";
    let rows = read.rows(&ada, "v_jobs", or).await;
    assert_eq!(rows, [json!({"concurrency": 16}), json!({"concurrency": 8}), json!({"concurrency": 1})]);
    assert_eq!(read.rows(&ada, "v_jobs", "flags=cs.[\"few_requests\"]").await.len(), 5);
    assert_eq!(read.rows(&ada, "v_jobs", "created_at=gt.2020-01-01&job=ilike.*C16-*").await.len(), 1);
    assert_eq!(read.ask(&ada, "v_runs", "as_of=1", &[]).await.0, 400);
}

/// Queries as a client might write them, well and badly.
fn any_query() -> impl Strategy<Value = String> {
    let column = prop_oneof![
        Just("concurrency".to_owned()),
        Just("status".to_owned()),
        Just("streaming".to_owned()),
        Just("created_at".to_owned()),
        Just("ready_after_s".to_owned()),
        Just("flags".to_owned()),
        "[a-z_'\";]{1,8}"
    ];
    let value = prop_oneof![
        Just("1".to_owned()),
        Just("true".to_owned()),
        Just("2026-01-01".to_owned()),
        Just("null".to_owned()),
        Just("'; drop table read.jobs_v1; --".to_owned()),
        Just("(1,2,\"a,b\")".to_owned()),
        Just("9223372036854775808".to_owned()),
        Just("1e400".to_owned()),
        "[%_\\\\*(){}\"',.a-z0-9 ]{0,12}",
        ".{0,8}"
    ];
    let operator = "(not\\.)?(eq|neq|gt|gte|lt|lte|in|is|like|ilike|cs|fts|)";
    let test = (column.clone(), operator, value.clone());
    let one = test.clone().prop_map(|(c, o, v)| format!("{}={}", encoded(&c), encoded(&format!("{o}.{v}"))));
    let group = (prop_oneof![Just("or"), Just("and"), Just("not.or")], proptest::collection::vec(test, 1..4))
        .prop_map(|(word, tests)| {
            let list: Vec<String> = tests.into_iter().map(|(c, o, v)| format!("{c}.{o}.{v}")).collect();
            format!("{word}={}", encoded(&format!("({})", list.join(","))))
        });
    let order = (column.clone(), "(\\.asc|\\.desc)?(\\.nullslast|\\.nullsfirst)?")
        .prop_map(|(c, d)| format!("order={}", encoded(&format!("{c}{d}"))));
    let select = (column, ".{0,6}").prop_map(|(c, a)| format!("select={}", encoded(&format!("{a}:{c}"))));
    let number = value.prop_map(|v| format!("limit={}", encoded(&v)));
    proptest::collection::vec(prop_oneof![4 => one, 3 => group, 1 => order, 1 => select, 1 => number], 1..4)
        .prop_map(|parts| parts.join("&"))
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_is_answered_or_refused_and_none_breaks_anything() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "fuzz").await;
    Story { seconds: 3, visibility: ProjectVisibility::Private, ..Story::default() }.tell(&read).await;
    read.settle().await;
    let (ada, bob) = (person("acme", "ada"), person("acme", "bob"));
    let mut runner = TestRunner::deterministic();
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..1500 {
        let query = any_query().new_tree(&mut runner).unwrap().current();
        let (status, _, body) = read.ask(&ada, "v_jobs", &query, &[]).await;
        match status {
            200 => answered += 1,
            400..500 => {
                let error: events::api::ApiError = serde_json::from_str(&body).unwrap();
                assert!(error.hint.is_some(), "{query}: {body}");
                refused += 1;
            }
            other => panic!("{other} for {query}: {body}"),
        }
        let (status, _, body) = read.ask(&bob, "v_jobs", &query, &[]).await;
        assert!(status != 200 || body == "[]", "{query} shows bob {body}");
    }
    assert!(answered > 50 && refused > 150, "{answered} answered, {refused} refused");
    assert_eq!(read.rows(&ada, "v_jobs", "").await.len(), 2, "everything is still there");
}

/// What a client of the live stream gets until `last`.
async fn listen(
    read: &Read,
    hub: &Hub,
    who: &Visibility,
    topics: &str,
    after: i64,
    last: i64,
) -> (Vec<i64>, Vec<Value>) {
    let client = Client {
        hub: hub.clone(),
        reader: who.clone(),
        still_allowed: None,
        topics: Topics::parse(topics).unwrap(),
        after,
        stop: read.stop.clone(),
    };
    let body: Body = Sse::new(stream(client)).into_response().into_body();
    let mut chunks = pin!(body.into_data_stream());
    let (mut positions, mut payloads, mut text, mut previous) =
        (Vec::new(), Vec::new(), String::new(), after);
    loop {
        while let Some(end) = text.find("\n\n") {
            let message: String = text.drain(..end + 2).collect();
            let field = |name: &str| message.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
            match field("event:").unwrap() {
                "event" => {
                    let event: LiveEvent = serde_json::from_str(field("data:").unwrap()).unwrap();
                    assert_eq!(event.previous, previous, "arithmetic shows a hole");
                    previous = event.event.position;
                    positions.push(previous);
                    payloads.push(event.event.payload);
                }
                "head" => {
                    let head: LiveHead = serde_json::from_str(field("data:").unwrap()).unwrap();
                    assert!(head.position <= last && head.previous <= head.position);
                    if head.position > after {
                        assert!(positions.last().is_none_or(|p| *p <= head.position));
                    }
                }
                other => panic!("{other}"),
            }
        }
        let waits = positions.last().copied().unwrap_or(after) < last;
        // Whoever has nothing to wait for hears nothing more: the head comes after 15 s.
        let next = tokio::time::timeout(
            std::time::Duration::from_millis(if waits { 5000 } else { 50 }),
            chunks.next(),
        );
        match next.await {
            Ok(Some(chunk)) => text.push_str(&String::from_utf8_lossy(&chunk.unwrap())),
            _ => return (positions, payloads),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resuming_at_every_position_gives_each_event_once() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "resume").await;
    let story = Story { concurrencies: vec![1], seconds: 5, ..Story::default() };
    story.prologue(&read).await;
    let hub = Hub::start(read.log.clone(), None, read.stop.clone()).await.unwrap();
    let last = Story { project: "p2".into(), ..story.clone() }.tell(&read).await;
    hub.watch().wait_for(|head| *head >= last).await.unwrap();
    let ada = person("acme", "ada");
    let topics = "acme/p2/w1/1";
    let (all, _) = listen(&read, &hub, &ada, topics, 0, last).await;
    assert!(all.len() > 15, "{all:?}");
    for after in 0..last {
        let (positions, _) = listen(&read, &hub, &ada, topics, after, last).await;
        let expected: Vec<i64> = all.iter().copied().filter(|p| *p > after).collect();
        assert_eq!(positions, expected, "after {after}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_rights_there_is_nothing_to_hear_replayed_or_live() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "rights").await;
    let hub = Hub::start(read.log.clone(), None, read.stop.clone()).await.unwrap();
    let story = Story { visibility: ProjectVisibility::Private, seconds: 3, ..Story::default() };
    let last = story.tell(&read).await;
    hub.watch().wait_for(|head| *head >= last).await.unwrap();
    let quick = async |who: &Visibility| listen(&read, &hub, who, "acme/p1", last - 30, last - 30).await.0;
    assert!(!quick(&person("acme", "ada")).await.is_empty());
    for who in [person("acme", "bob"), person("other", "ada"), anonymous()] {
        assert_eq!(quick(&who).await, Vec::<i64>::new());
    }
    // The rights of now decide, also over what happened before.
    let last = story.show(&read, ProjectVisibility::Public).await;
    hub.watch().wait_for(|head| *head >= last).await.unwrap();
    assert!(!quick(&anonymous()).await.is_empty());
    let last = story.show(&read, ProjectVisibility::Private).await;
    hub.watch().wait_for(|head| *head >= last).await.unwrap();
    assert_eq!(quick(&anonymous()).await, Vec::<i64>::new());
}
