//! The log under many writers at once, several servers, a foreign transaction that stays open, and a database that is
//! killed: positions stay 1..=n, and every acknowledged event is there exactly once.

mod common;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Cluster, append, event, events, read_and_check, request, stream};
use events::envelope::Recorded;
use server::log::{AppendOutcome, AppendRequest, Expected, Log, LogConfig, LogError, StreamWrite};
use sqlx::Connection;
use uuid::Uuid;

/// What a writer was told.
#[derive(Default)]
struct Told {
    /// Position by event id, of everything that was acknowledged.
    positions: HashMap<Uuid, i64>,
    conflicts: usize,
    resends: usize,
    /// Ids of requests that were refused and never acknowledged.
    refused: HashSet<Uuid>,
}

impl Told {
    fn note(&mut self, request: &AppendRequest, outcome: AppendOutcome) {
        let ids = request.writes.iter().flat_map(|w| &w.events).map(|e| e.event_id);
        match outcome {
            AppendOutcome::Appended { first, last, events } => {
                assert_eq!(events.first().unwrap().position, first);
                assert_eq!(events.last().unwrap().position, last);
                for (id, placed) in ids.zip(events) {
                    assert_eq!(self.positions.insert(id, placed.position), None, "appended twice");
                }
            }
            AppendOutcome::AlreadyAppended { positions } => {
                self.resends += 1;
                for (id, position) in ids.zip(positions) {
                    let before = self.positions.insert(id, position);
                    assert!(before.is_none_or(|before| before == position), "a resend found another place");
                }
            }
            AppendOutcome::VersionConflict { .. } => {
                self.conflicts += 1;
                self.refused.extend(ids);
            }
            AppendOutcome::Rejected { reason } => panic!("{reason}"),
        }
    }

    fn merge(&mut self, other: Told) {
        for (id, position) in other.positions {
            let before = self.positions.insert(id, position);
            assert!(before.is_none_or(|before| before == position), "one event, two places");
        }
        self.conflicts += other.conflicts;
        self.resends += other.resends;
        self.refused.extend(other.refused);
    }
}

/// One writer: it competes for shared streams with expected versions, appends to a stream of its own, writes to two
/// streams at once, resends what it sent, and sends the same request twice at the same time.
async fn writer(logs: Vec<Log>, seed: u64, rounds: u64) -> Told {
    let mut told = Told::default();
    let mut own_version = 0;
    for round in 0..rounds {
        let log = &logs[usize::try_from(seed + round / 3).unwrap() % logs.len()];
        let number = i64::try_from(seed * 1_000_000 + round).unwrap();
        let shared = format!("shared-{}", (seed + round) % 5);
        let own = format!("own-{seed}");
        let asked = match round % 6 {
            0 => {
                let version = log.stream_version(&stream(&shared)).await.unwrap();
                let expected = if version == 0 { Expected::NoStream } else { Expected::Exact(version) };
                request(&shared, expected, events(number..number + 2))
            }
            1 => request(&shared, Expected::Any, events(number..number + 3)),
            2 => AppendRequest {
                writes: vec![
                    StreamWrite {
                        stream: stream(&shared),
                        expected: Expected::Any,
                        events: events(number..number + 1),
                    },
                    StreamWrite {
                        stream: stream(&own),
                        expected: Expected::Exact(own_version),
                        events: vec![event(number)],
                    },
                ],
            },
            3 => request(&shared, Expected::Exact(1), events(number..number + 1)),
            4 => request(&format!("new-{seed}-{round}"), Expected::NoStream, events(number..number + 1)),
            _ => request(&own, Expected::Exact(own_version), events(number..number + 2)),
        };
        own_version += match round % 6 {
            2 => 1,
            5 => 2,
            _ => 0,
        };
        let outcome = log.append(asked.clone()).await.unwrap();
        if round % 6 == 2 || round % 6 >= 4 {
            assert!(
                matches!(outcome, AppendOutcome::Appended { .. }),
                "nobody else writes there: {outcome:?}"
            );
        }
        let appended = matches!(outcome, AppendOutcome::Appended { .. });
        told.note(&asked, outcome);
        if appended && round % 4 == 0 {
            let other = &logs[usize::try_from(round).unwrap() % logs.len()];
            let (one, two) = tokio::join!(log.append(asked.clone()), other.append(asked.clone()));
            for outcome in [one.unwrap(), two.unwrap()] {
                assert!(matches!(outcome, AppendOutcome::AlreadyAppended { .. }), "{outcome:?}");
                told.note(&asked, outcome);
            }
        }
        if round % 5 == 0 {
            // The same request on two ways at once: one is appended, the other finds it there.
            let asked = request(&shared, Expected::Any, events(number..number + 2));
            let other = &logs[usize::try_from(round + 1).unwrap() % logs.len()];
            let (one, two) = tokio::join!(log.append(asked.clone()), other.append(asked.clone()));
            let (one, two) = (one.unwrap(), two.unwrap());
            let is_new = |outcome: &AppendOutcome| matches!(outcome, AppendOutcome::Appended { .. });
            assert!(is_new(&one) ^ is_new(&two), "{one:?} {two:?}");
            let (first, second) = if is_new(&one) { (one, two) } else { (two, one) };
            told.note(&asked, first);
            told.note(&asked, second);
        }
    }
    told
}

/// Follows the log as a projection would, by position, until told to stop and at the end.
async fn tail(log: Log, stop: Arc<AtomicBool>) -> Vec<i64> {
    let mut seen = Vec::new();
    let mut watch = log.watch();
    loop {
        let stopping = stop.load(Ordering::SeqCst);
        let after = seen.last().copied().unwrap_or(0);
        let batch: Vec<Recorded> = log.read_all(after, 700).await.unwrap();
        seen.extend(batch.iter().map(|event| event.position));
        if batch.is_empty() {
            if stopping {
                return seen;
            }
            let _ = tokio::time::timeout(Duration::from_millis(50), watch.changed()).await;
        }
    }
}

async fn torture(servers: usize, writers: u64, rounds: u64) {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let mut logs = Vec::new();
    for _ in 0..servers {
        logs.push(cluster.log("bt").await);
    }
    // A foreign transaction that has a snapshot and a transaction id, and stays open throughout.
    let mut foreign = cluster.connect("bt").await;
    sqlx::raw_sql("create table foreign_work (n int)").execute(&mut foreign).await.unwrap();
    let mut idle = foreign.begin().await.unwrap();
    sqlx::raw_sql("insert into foreign_work values (1); select count(*) from events")
        .execute(&mut *idle)
        .await
        .unwrap();

    let stop = Arc::new(AtomicBool::new(false));
    let tailing = tokio::spawn(tail(logs[0].clone(), stop.clone()));
    let tasks: Vec<_> = (0..writers).map(|seed| tokio::spawn(writer(logs.clone(), seed, rounds))).collect();
    let mut told = Told::default();
    for task in tasks {
        told.merge(task.await.unwrap());
    }
    stop.store(true, Ordering::SeqCst);

    let all = read_and_check(&logs[0]).await;
    assert_eq!(
        tailing.await.unwrap(),
        (1..=all.len() as i64).collect::<Vec<_>>(),
        "the reader saw each event once"
    );
    let there: HashMap<Uuid, i64> = all.iter().map(|event| (event.event_id, event.position)).collect();
    assert_eq!(there, told.positions, "what was acknowledged is what is there");
    assert!(told.refused.iter().all(|id| !there.contains_key(id)), "nothing of a refused request is there");
    assert!(told.conflicts > 0 && told.resends > 0, "the test did what it set out to do");
    for number in 0..5 {
        let key = stream(&format!("shared-{number}"));
        let count = all.iter().filter(|event| event.stream == key).count() as i64;
        assert_eq!(logs[0].stream_version(&key).await.unwrap(), count);
    }
    idle.rollback().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_through_one_server_leave_no_gap_and_no_double() {
    torture(1, 32, 60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_through_three_servers_leave_no_gap_and_no_double() {
    torture(3, 24, 40).await;
}

/// Appends numbered events to a stream of its own, resending after each loss, until told to stop.
async fn stubborn_writer(log: Log, seed: i64, stop: Arc<AtomicBool>) -> Vec<(Uuid, i64)> {
    let name = format!("own-{seed}");
    let mut acknowledged = Vec::new();
    let mut version = 0;
    while !stop.load(Ordering::SeqCst) {
        let asked = request(&name, Expected::Exact(version), events(version..version + 2));
        let ids: Vec<Uuid> = asked.writes[0].events.iter().map(|event| event.event_id).collect();
        let positions = loop {
            match log.append(asked.clone()).await {
                Ok(AppendOutcome::Appended { events, .. }) => {
                    break events.iter().map(|p| p.position).collect();
                }
                Ok(AppendOutcome::AlreadyAppended { positions }) => break positions,
                Ok(other) => panic!("{other:?}"),
                Err(LogError::Unavailable(_)) => {}
                Err(error) => panic!("{error}"),
            }
        };
        acknowledged.extend(ids.into_iter().zip::<Vec<i64>>(positions));
        version += 2;
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_killed_in_the_middle_of_appends_loses_nothing_that_was_acknowledged() {
    // Flushing as in production: a commit that was acknowledged must survive.
    let mut cluster = Cluster::start_with(&["fsync=on"]).await;
    cluster.database("bt").await;
    // Callers are told soon, so that both ways are taken: waiting it out inside, and resending from outside.
    let config = LogConfig { give_up_after: Duration::from_millis(700), ..cluster.config("bt") };
    let log = Log::open(config).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> =
        (0..16).map(|seed| tokio::spawn(stubborn_writer(log.clone(), seed, stop.clone()))).collect();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        cluster.kill();
        tokio::time::sleep(Duration::from_millis(300)).await;
        cluster.restart().await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::SeqCst);
    let mut acknowledged = HashMap::new();
    for task in tasks {
        acknowledged.extend(task.await.unwrap());
    }
    let all = read_and_check(&log).await;
    let there: HashMap<Uuid, i64> = all.iter().map(|event| (event.event_id, event.position)).collect();
    assert!(acknowledged.len() > 100, "only {} events", acknowledged.len());
    assert_eq!(there, acknowledged, "what was acknowledged is what is there, where it was said to be");
}

#[tokio::test]
async fn a_database_that_stays_away_is_reported_and_the_log_recovers_by_itself() {
    // Without flushes, but with commits that wait for the log to be written: that survives a kill.
    let mut cluster = Cluster::start_with(&["fsync=off"]).await;
    cluster.database("bt").await;
    let config = LogConfig { give_up_after: Duration::from_millis(200), ..cluster.config("bt") };
    let log = Log::open(config).await.unwrap();
    append(&log, "a", 0..1).await;
    cluster.kill();
    let asked = request("a", Expected::Exact(1), events(1..2));
    assert!(matches!(log.append(asked.clone()).await, Err(LogError::Unavailable(_))));
    cluster.restart().await;
    assert!(matches!(log.append(asked).await.unwrap(), AppendOutcome::Appended { first: 2, .. }));
    read_and_check(&log).await;
}

#[tokio::test]
async fn a_stream_whose_first_batch_came_to_nothing_is_not_mistaken_for_the_one_that_took_its_number() {
    let mut cluster = Cluster::start_with(&["fsync=off"]).await;
    cluster.database("bt").await;
    let config = LogConfig { give_up_after: Duration::from_millis(200), ..cluster.config("bt") };
    let log = Log::open(config).await.unwrap();
    append(&log, "a", 0..1).await;

    // The batch that makes the stream `lost` waits for the head when the database is killed.
    let mut connection = cluster.connect("bt").await;
    let mut holder = connection.begin().await.unwrap();
    sqlx::raw_sql("select * from log_lock_head()").execute(&mut *holder).await.unwrap();
    let asked = request("lost", Expected::Any, events(1..2));
    let waiting = {
        let (log, asked) = (log.clone(), asked.clone());
        tokio::spawn(async move { log.append(asked).await })
    };
    let mut watcher = cluster.connect("bt").await;
    let waits = "select exists (select from pg_stat_activity where application_name = 'benchtrail-appender' \
                 and wait_event_type = 'Lock')";
    tokio::time::timeout(Duration::from_secs(20), async {
        while !sqlx::query_scalar::<_, bool>(waits).fetch_one(&mut watcher).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
    .expect("the batch is under way");
    cluster.kill();
    assert!(matches!(waiting.await.unwrap(), Err(LogError::Unavailable(_))));
    cluster.restart().await;

    append(&log, "other", 2..3).await;
    let AppendOutcome::Appended { events, .. } = log.append(asked).await.unwrap() else {
        panic!("not appended");
    };
    assert_eq!(events[0].version, 1, "it is the first event of its stream");
    let all = read_and_check(&log).await;
    let streams: Vec<&str> = all.iter().map(|event| event.stream.as_str()).collect();
    assert_eq!(streams, [stream("a"), stream("other"), stream("lost")].each_ref().map(|key| key.as_str()));
}

#[tokio::test]
async fn a_lost_connection_after_the_commit_is_answered_as_appended() {
    // A proxy cannot be had cheaply; ending the appender's session while the commit waits for its flush gives the same:
    // the commit may or may not have happened, and the answer must be the truth.
    let cluster = Cluster::start_with(&["commit_delay=50000", "commit_siblings=0"]).await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> =
        (0..4).map(|seed| tokio::spawn(stubborn_writer(log.clone(), seed, stop.clone()))).collect();
    for _ in 0..15 {
        tokio::time::sleep(Duration::from_millis(70)).await;
        cluster
            .execute("postgres", "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'benchtrail-appender'")
            .await
            .unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    let mut acknowledged = HashMap::new();
    for task in tasks {
        acknowledged.extend(task.await.unwrap());
    }
    let all = read_and_check(&log).await;
    let there: HashMap<Uuid, i64> = all.iter().map(|event| (event.event_id, event.position)).collect();
    assert_eq!(there, acknowledged);
}

#[tokio::test]
async fn a_head_locked_by_somebody_else_delays_an_append_and_loses_nothing() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    append(&log, "a", 0..1).await;
    let mut connection = cluster.connect("bt").await;
    let mut holder = connection.begin().await.unwrap();
    sqlx::raw_sql("select * from log_lock_head()").execute(&mut *holder).await.unwrap();
    let waiting = {
        let log = log.clone();
        tokio::spawn(async move { append(&log, "a", 1..2).await })
    };
    // Longer than the appender waits for one lock.
    tokio::time::sleep(Duration::from_millis(5500)).await;
    assert!(!waiting.is_finished());
    holder.rollback().await.unwrap();
    assert_eq!(waiting.await.unwrap(), (2, 2));
    read_and_check(&log).await;
}
