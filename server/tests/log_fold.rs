//! What streams fold to: always what the log says, and no event read for it twice.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Cluster, append, events, request, stream};
use events::envelope::Recorded;
use server::log::{AppendOutcome, Expected, Log, LogError};

/// The positions of a stream's events.
#[derive(Debug, Clone, Default, PartialEq)]
struct Positions(Vec<i64>);

/// How many events there are: another state of the same stream.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Count(usize);

/// A fold that counts the events it is given.
async fn positions(log: &Log, name: &str, steps: &AtomicUsize) -> Vec<i64> {
    let key = stream(name);
    let folded = log.fold::<_, _, LogError>(&key, |before: Option<Positions>, event: &Recorded| {
        steps.fetch_add(1, Ordering::Relaxed);
        let mut positions = before.unwrap_or_default();
        positions.0.push(event.position);
        Ok::<_, LogError>(positions)
    });
    folded.await.unwrap().map(|positions| positions.0.clone()).unwrap_or_default()
}

async fn count(log: &Log, name: &str) -> Option<usize> {
    let key = stream(name);
    let folded = log.fold::<_, _, LogError>(&key, |before: Option<Count>, _: &Recorded| {
        Ok::<_, LogError>(Count(before.unwrap_or_default().0 + 1))
    });
    folded.await.unwrap().map(|count| count.0)
}

#[tokio::test]
async fn a_state_follows_its_stream_and_no_event_is_taken_twice() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let (log, steps) = (cluster.log("bt").await, AtomicUsize::new(0));
    assert_eq!(count(&log, "a").await, None);
    append(&log, "a", 0..2).await;
    append(&log, "b", 0..1).await;
    assert_eq!(positions(&log, "a", &steps).await, [1, 2]);
    append(&log, "a", 2..3).await;
    assert_eq!(positions(&log, "a", &steps).await, [1, 2, 4]);
    assert_eq!(positions(&log, "a", &steps).await, [1, 2, 4]);
    assert_eq!(steps.load(Ordering::Relaxed), 3, "each event once");
    // Another state of the same stream has a memory of its own; so has another process, which sees what this one appends.
    assert_eq!(count(&log, "a").await, Some(3));
    let other = cluster.log("bt").await;
    assert_eq!(count(&other, "a").await, Some(3));
    append(&log, "a", 3..4).await;
    assert_eq!((count(&other, "a").await, count(&other, "b").await), (Some(4), Some(1)));
    // More than is read at once.
    append(&log, "long", 0..1201).await;
    assert_eq!(count(&log, "long").await, Some(1201));
}

#[tokio::test]
async fn a_step_that_fails_leaves_nothing_behind() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    append(&log, "a", 0..3).await;
    let key = stream("a");
    let failing =
        log.fold::<_, _, LogError>(&key, |before: Option<Count>, event: &Recorded| match event.version {
            3 => Err(LogError::Closed),
            _ => Ok(Count(before.unwrap_or_default().0 + 1)),
        });
    assert!(failing.await.is_err());
    assert_eq!(count(&log, "a").await, Some(3));
}

#[tokio::test]
async fn states_are_right_while_the_stream_grows() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    let writer = {
        let log = log.clone();
        tokio::spawn(async move {
            for number in 0..200 {
                append(&log, "a", number..number + 1).await;
            }
        })
    };
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let log = log.clone();
            tokio::spawn(async move {
                let (steps, mut longest) = (AtomicUsize::new(0), 0);
                while longest < 200 {
                    let seen = positions(&log, "a", &steps).await;
                    assert!(seen.len() >= longest, "it never goes back");
                    assert!(seen.iter().copied().eq(1..=seen.len() as i64), "{seen:?}");
                    longest = seen.len();
                }
            })
        })
        .collect();
    writer.await.unwrap();
    for reader in readers {
        reader.await.unwrap();
    }
}

#[tokio::test]
async fn a_refused_version_makes_the_state_be_read_anew() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let (log, steps) = (cluster.log("bt").await, AtomicUsize::new(0));
    append(&log, "a", 0..2).await;
    assert_eq!(positions(&log, "a", &steps).await, [1, 2]);
    let refused = log.append(request("a", Expected::Exact(9), events(0..1))).await.unwrap();
    assert!(matches!(refused, AppendOutcome::VersionConflict { actual: 2, .. }), "{refused:?}");
    assert_eq!(positions(&log, "a", &steps).await, [1, 2]);
    assert_eq!(steps.load(Ordering::Relaxed), 4, "both events again");
}
