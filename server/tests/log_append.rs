//! What an append promises: order, expected versions, resends, refusals.

mod common;

use std::collections::HashMap;

use common::{Cluster, append, event, events, read_and_check, request, stream};
use events::canonical::CanonicalJson;
use server::log::{AppendOutcome, AppendRequest, Expected, StreamWrite};

#[tokio::test]
async fn an_append_gives_each_event_the_next_position_and_version() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    assert_eq!(append(&log, "a", 0..2).await, (1, 2));
    assert_eq!(append(&log, "b", 0..1).await, (3, 3));
    assert_eq!(append(&log, "a", 2..3).await, (4, 4));
    let all = read_and_check(&log).await;
    assert_eq!(all.iter().map(|e| e.version).collect::<Vec<_>>(), [1, 2, 1, 3]);
    assert_eq!(*log.watch().borrow(), 4);
    assert_eq!(log.stream_version(&stream("a")).await.unwrap(), 3);
    assert_eq!(log.stream_version(&stream("none")).await.unwrap(), 0);

    let of_stream = log.read_stream(&stream("a"), 2, 10).await.unwrap();
    assert_eq!(of_stream.iter().map(|e| e.position).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(log.event_by_id(all[2].event_id).await.unwrap().as_ref(), Some(&all[2]));
    // The two ways of reading, by rows and by copy, give the same.
    assert_eq!(log.read_all(0, 4).await.unwrap(), all);
}

#[tokio::test]
async fn the_log_is_read_without_the_types_that_are_nothing_to_the_reader() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    let of_type = |number: i64| {
        let mut event = event(number);
        if number % 10 != 0 {
            event.event_type = format!("test.bulk{}", number % 2);
        }
        event
    };
    log.append(request("a", Expected::Any, (0..1000).map(of_type).collect())).await.unwrap();
    let without = ["test.bulk0", "test.bulk1"];
    let (mut read, mut after) = (Vec::new(), 0);
    for reached in [400, 800, 1000, 1000] {
        let stretch = log.read_without(after, 400, &without).await.unwrap();
        assert_eq!((stretch.last, stretch.head), (reached, 1000));
        after = stretch.last;
        read.extend(stretch.events);
    }
    let all = log.read_all(0, 1000).await.unwrap();
    let wanted: Vec<_> = all.into_iter().filter(|event| event.event_type == "test.happened").collect();
    assert_eq!((read.len(), &read), (100, &wanted));
    assert_eq!(log.read_without(0, 1000, &[]).await.unwrap().events.len(), 1000);
}

#[tokio::test]
async fn large_events_are_read_a_few_at_a_time_and_none_is_left_out() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    let large = |number: i64| {
        let mut large = event(number);
        let payload = serde_json::json!({"number": number, "text": "x".repeat(60_000)});
        large.payload = CanonicalJson::of(&payload).unwrap();
        large
    };
    for part in 0..10 {
        let many = (part * 30..part * 30 + 30).map(large).collect();
        log.append(request("a", Expected::Any, many)).await.unwrap();
    }
    append(&log, "b", 0..300).await;
    let mut sizes = Vec::new();
    let mut after = 0;
    loop {
        let some = log.read_within(after, 1_000, 1 << 20).await.unwrap();
        let Some(last) = some.last() else { break };
        let expected: Vec<i64> = (after + 1..=last.position).collect();
        assert_eq!(some.iter().map(|event| event.position).collect::<Vec<_>>(), expected);
        after = last.position;
        sizes.push(some.len());
    }
    assert_eq!(after, 600);
    // Seventeen of 60 kB fit into a mebibyte, and the small ones come together with the last of the large.
    assert_eq!(sizes[..17], [17; 17]);
    assert_eq!(sizes[17..], [311]);
    // One larger than all that may be taken is read alone.
    assert_eq!(log.read_within(0, 1_000, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_read_is_what_was_appended() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    let mut sent = event(7);
    sent.causation_id = Some(uuid::Uuid::now_v7());
    sent.correlation_id = Some(uuid::Uuid::now_v7());
    sent.schema_version = u16::MAX;
    sent.occurred_at = "0001-01-01T00:00:00.000001Z".parse().unwrap();
    log.append(request("a", Expected::Any, vec![sent.clone()])).await.unwrap();
    let there = log.read_all(0, 1).await.unwrap().remove(0);
    assert_eq!(there.causation_id, sent.causation_id);
    assert_eq!(there.correlation_id, sent.correlation_id);
    assert_eq!(there.schema_version, sent.schema_version);
    assert_eq!(there.occurred_at, sent.occurred_at);
    assert_eq!(there.actor, sent.actor);
    assert_eq!(there.payload, sent.payload.as_str());
    assert_eq!(there.org, "acme");
    assert_eq!(there.leaf, there.computed_leaf());
}

#[tokio::test]
async fn expected_versions_are_kept() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    let conflict =
        |expected, actual| AppendOutcome::VersionConflict { stream: stream("a"), expected, actual };
    let append = |expected| log.append(request("a", expected, vec![event(0)]));

    assert_eq!(append(Expected::Exact(1)).await.unwrap(), conflict(Expected::Exact(1), 0));
    assert!(matches!(append(Expected::NoStream).await.unwrap(), AppendOutcome::Appended { .. }));
    assert_eq!(append(Expected::NoStream).await.unwrap(), conflict(Expected::NoStream, 1));
    assert_eq!(append(Expected::Exact(0)).await.unwrap(), conflict(Expected::Exact(0), 1));
    assert_eq!(append(Expected::Exact(2)).await.unwrap(), conflict(Expected::Exact(2), 1));
    assert!(matches!(append(Expected::Exact(1)).await.unwrap(), AppendOutcome::Appended { .. }));
    assert!(matches!(append(Expected::Any).await.unwrap(), AppendOutcome::Appended { .. }));
    assert_eq!(read_and_check(&log).await.len(), 3);
}

#[tokio::test]
async fn expected_versions_are_kept_by_a_server_that_remembers_nothing() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    append(&cluster.log("bt").await, "a", 0..3).await;
    for expected in [Expected::NoStream, Expected::Exact(2), Expected::Exact(4), Expected::Exact(0)] {
        let log = cluster.log("bt").await;
        assert_eq!(
            log.append(request("a", expected, vec![event(0)])).await.unwrap(),
            AppendOutcome::VersionConflict { stream: stream("a"), expected, actual: 3 }
        );
    }
    let log = cluster.log("bt").await;
    assert!(matches!(
        log.append(request("a", Expected::Exact(3), vec![event(0)])).await.unwrap(),
        AppendOutcome::Appended { first: 4, last: 4, .. }
    ));
}

#[tokio::test]
async fn of_many_who_expect_the_same_version_one_wins() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    for (round, expected) in
        [Expected::NoStream, Expected::Exact(1), Expected::Exact(2)].into_iter().enumerate()
    {
        let tries = (0..50).map(|n| {
            let log = log.clone();
            tokio::spawn(async move { log.append(request("a", expected, vec![event(n)])).await.unwrap() })
        });
        let mut outcomes: HashMap<bool, usize> = HashMap::new();
        for outcome in futures::future::join_all(tries).await {
            let appended = match outcome.unwrap() {
                AppendOutcome::Appended { .. } => true,
                AppendOutcome::VersionConflict { actual, .. } => {
                    assert_eq!(actual, round as i64 + 1);
                    false
                }
                other => panic!("{other:?}"),
            };
            *outcomes.entry(appended).or_default() += 1;
        }
        assert_eq!((outcomes[&true], outcomes[&false]), (1, 49));
    }
    assert_eq!(read_and_check(&log).await.len(), 3);
}

#[tokio::test]
async fn a_resend_is_answered_with_the_first_positions() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    let report = request("a", Expected::NoStream, events(0..3));
    log.append(report.clone()).await.unwrap();
    append(&log, "a", 3..4).await;
    let resent = AppendOutcome::AlreadyAppended { positions: vec![1, 2, 3] };
    assert_eq!(log.append(report.clone()).await.unwrap(), resent);
    // Also by a server that remembers nothing, and with an expectation that holds.
    let other = cluster.log("bt").await;
    assert_eq!(other.append(report.clone()).await.unwrap(), resent);
    let mut whatever = report;
    whatever.writes[0].expected = Expected::Any;
    assert_eq!(other.append(whatever).await.unwrap(), resent);
    assert_eq!(read_and_check(&log).await.len(), 4);
}

#[tokio::test]
async fn an_id_with_other_content_or_in_another_request_is_rejected() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    let first = event(0);
    log.append(request("a", Expected::Any, vec![first.clone()])).await.unwrap();

    let mut altered = first.clone();
    altered.payload = CanonicalJson::of(&1).unwrap();
    let mut elsewhere = first.clone();
    elsewhere.occurred_at = elsewhere.occurred_at.plus_micros(1);
    for (name, events) in [
        ("a", vec![altered]),
        ("a", vec![elsewhere]),
        ("b", vec![first.clone()]),
        ("a", vec![first.clone(), event(1)]),
        ("a", vec![event(1), first.clone()]),
    ] {
        for expected in [Expected::Any, Expected::NoStream, Expected::Exact(1)] {
            let outcome = log.append(request(name, expected, events.clone())).await.unwrap();
            assert!(matches!(outcome, AppendOutcome::Rejected { .. }), "{outcome:?}");
        }
    }
    assert_eq!(read_and_check(&log).await.len(), 1);
}

#[tokio::test]
async fn several_streams_in_one_request_are_all_or_nothing() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    let both = |expected| AppendRequest {
        writes: vec![
            StreamWrite { stream: stream("a"), expected: Expected::Any, events: events(0..2) },
            StreamWrite { stream: stream("b"), expected, events: events(2..3) },
        ],
    };
    match log.append(both(Expected::NoStream)).await.unwrap() {
        AppendOutcome::Appended { first: 1, last: 3, events } => {
            assert_eq!(
                events.iter().map(|p| (p.position, p.version)).collect::<Vec<_>>(),
                [(1, 1), (2, 2), (3, 1)]
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        log.append(both(Expected::NoStream)).await.unwrap(),
        AppendOutcome::VersionConflict { stream: stream("b"), expected: Expected::NoStream, actual: 1 }
    );
    assert_eq!(log.stream_version(&stream("a")).await.unwrap(), 2);
}

#[tokio::test]
async fn requests_that_can_never_be_appended_are_rejected() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    let with = |change: fn(&mut events::envelope::NewEvent)| {
        let mut event = event(0);
        change(&mut event);
        request("a", Expected::Any, vec![event])
    };
    let twice = event(0);
    let faults = [
        AppendRequest::default(),
        request("a", Expected::Any, vec![]),
        request("a", Expected::Exact(-1), events(0..1)),
        request("a", Expected::Any, vec![twice.clone(), twice]),
        request("a", Expected::Any, events(0..server::log::MAX_REQUEST_EVENTS as i64 + 1)),
        AppendRequest {
            writes: vec![0, 1]
                .into_iter()
                .map(|n| StreamWrite {
                    stream: stream("a"),
                    expected: Expected::Any,
                    events: events(n..n + 1),
                })
                .collect(),
        },
        with(|e| e.payload = CanonicalJson::of(&"x".repeat(64 * 1024 - 1)).unwrap()),
        with(|e| e.event_id = uuid::Uuid::nil()),
        with(|e| e.event_type.clear()),
        with(|e| e.schema_version = 0),
        with(|e| e.org = "other".to_owned()),
        with(|e| e.actor.id = "a\0b".to_owned()),
    ];
    for fault in faults {
        let outcome = log.append(fault).await.unwrap();
        assert!(matches!(outcome, AppendOutcome::Rejected { .. }), "{outcome:?}");
    }
    // Exactly 64 KiB fits.
    let largest = with(|e| e.payload = CanonicalJson::of(&"x".repeat(64 * 1024 - 2)).unwrap());
    assert!(matches!(log.append(largest).await.unwrap(), AppendOutcome::Appended { .. }));
    assert_eq!(read_and_check(&log).await.len(), 1);
}

#[tokio::test]
async fn a_request_larger_than_a_batch_is_appended_whole() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    assert_eq!(append(&log, "a", 0..server::log::MAX_REQUEST_EVENTS as i64).await, (1, 5000));
    read_and_check(&log).await;
}

#[tokio::test]
async fn the_head_of_another_process_is_seen() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let (here, there) = (cluster.log("bt").await, cluster.log("bt").await);
    append(&there, "a", 0..3).await;
    here.watch().wait_for(|seen| *seen == 3).await.unwrap();
}

#[tokio::test]
async fn an_append_across_the_end_of_a_partition_finds_the_next_one() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    // As if a million events, less three, had been archived.
    cluster
        .execute("bt", "update log_head set position = 2999997; select log_ensure_partitions(1)")
        .await
        .unwrap();
    let log = cluster.log("bt").await;
    assert_eq!(append(&log, "a", 0..10).await, (2_999_998, 3_000_007));
    let read = log.read_all(2_999_997, 100).await.unwrap();
    assert_eq!(read.len(), 10);
    // The one after the new one is made ahead of need.
    let mut connection = cluster.connect("bt").await;
    for _ in 0..200 {
        let made: bool = sqlx::query_scalar("select to_regclass('events_000004') is not null")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        if made {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("no partition was made ahead");
}
