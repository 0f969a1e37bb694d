//! Two batches under way, by hand: the second writes while the first is not committed, and commits after it or not at all.

mod common;

use std::time::Duration;

use common::Cluster;
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::task::JoinHandle;

/// Appends one event to a new stream `stream-N`, at position N, as prepared on a log whose end is position N - 1.
fn append(position: i64) -> String {
    // The first batch stands on the empty log's hash.
    let hash = |position: i64| match position {
        0 => "decode(repeat('00', 32), 'hex')".to_owned(),
        n => format!("decode(repeat('{n:02}', 32), 'hex')"),
    };
    let (before, after) = (hash(position - 1), hash(position));
    format!(
        "select log_append({0}, {before}, {0}, {after}, now(), array[{position}::bigint], array['stream-{position}'], \
         array[1::bigint], '{{}}', '{{}}', '{{}}', array[row({position}, 1, now(), gen_random_uuid(), 1, 'test.made', \
         'acme', 'agent', 'a', null, null, '{{}}', {after})::log_row])",
        position - 1
    )
}

async fn ask(connection: &mut PgConnection, sql: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(connection).await
}

async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
}

async fn number(connection: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(connection).await.unwrap()
}

/// Waits until a backend waits for a lock of this kind.
async fn somebody_waits(watcher: &mut PgConnection, wait_event: &str) {
    let sql = format!("select count(*) from pg_stat_activity where wait_event = '{wait_event}'");
    tokio::time::timeout(Duration::from_secs(20), async {
        while number(watcher, &sql).await == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("nobody waits for {wait_event}"));
}

fn code(result: Result<bool, sqlx::Error>) -> String {
    let error = result.expect_err("refused");
    error.as_database_error().and_then(|error| error.code()).unwrap_or_default().into_owned()
}

/// Two batches under way: the first has written and is not committed, the second has its turn and waits at the head.
struct UnderWay {
    cluster: Cluster,
    first: PgConnection,
    /// The second's answer, with its connection.
    next: JoinHandle<(Result<bool, sqlx::Error>, PgConnection)>,
    watcher: PgConnection,
}

impl UnderWay {
    async fn begin() -> Self {
        let cluster = Cluster::start().await;
        cluster.database("bt").await;
        let (mut first, mut second) = (cluster.connect("bt").await, cluster.connect("bt").await);
        let mut watcher = cluster.connect("bt").await;

        run(&mut first, "begin").await;
        assert!(ask(&mut first, &append(1)).await.unwrap());
        let next = tokio::spawn(async move { (ask(&mut second, &append(2)).await, second) });
        somebody_waits(&mut watcher, "transactionid").await;
        Self { cluster, first, next, watcher }
    }
}

#[tokio::test]
async fn the_next_batch_writes_before_the_one_before_it_is_committed_and_commits_after_it() {
    let UnderWay { cluster: _cluster, mut first, next, mut watcher } = UnderWay::begin().await;
    assert_eq!(number(&mut watcher, "select count(*) from events").await, 0, "seen before it was committed");
    run(&mut first, "commit").await;
    let (appended, _) = next.await.unwrap();
    assert!(appended.unwrap());
    assert_eq!(number(&mut watcher, "select position from log_head").await, 2);
    assert_eq!(number(&mut watcher, "select count(*) from events").await, 2);
}

#[tokio::test]
async fn a_batch_whose_predecessor_is_taken_back_leaves_nothing_and_its_turn_goes_with_its_connection() {
    let UnderWay { cluster: _cluster, mut first, next, mut watcher } = UnderWay::begin().await;
    run(&mut first, "rollback").await;
    let (refused, second) = next.await.unwrap();
    assert_eq!(code(refused), "BT002");
    assert_eq!(number(&mut watcher, "select position from log_head").await, 0);
    assert_eq!(
        number(&mut watcher, "select (select count(*) from events) + (select count(*) from event_ids)").await,
        0
    );

    // The session that failed has the turn still. Whoever is next waits until it is gone.
    let next = tokio::spawn(async move { (ask(&mut first, &append(1)).await, first) });
    somebody_waits(&mut watcher, "advisory").await;
    drop(second);
    let (appended, _) = next.await.unwrap();
    assert!(appended.unwrap());
    assert_eq!(number(&mut watcher, "select position from log_head").await, 1);
}

#[tokio::test]
async fn a_batch_that_nobody_precedes_or_that_was_overtaken_writes_nothing() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let mut connection = cluster.connect("bt").await;
    let mut other = cluster.connect("bt").await;

    assert_eq!(code(ask(&mut connection, &append(2)).await), "BT002");
    // It gave the turn back before it gave up: nothing has to be closed.
    assert!(ask(&mut other, &append(1)).await.unwrap());
    assert!(!ask(&mut connection, &append(1)).await.unwrap(), "overtaken");
    assert!(ask(&mut other, &append(2)).await.unwrap());
    assert_eq!(number(&mut other, "select count(*) from event_ids").await, 2);
}
