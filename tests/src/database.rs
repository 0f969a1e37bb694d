//! The log as it lies in Postgres, read by the owner: what no API could gloss over.

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgPool, Row};

/// Opens the plant's database.
pub async fn open(url: &str) -> PgPool {
    let options: PgConnectOptions = url.parse().expect("a database address");
    PgPoolOptions::new().max_connections(3).connect_with(options).await.expect("the database answers")
}

/// Fails the test unless positions are 1..=n and every stream's versions are 1..=m.
pub async fn assert_gapless(pool: &PgPool) -> i64 {
    let row = sqlx::query("select count(*) as n, coalesce(min(position), 1) as low, coalesce(max(position), 0) as high from events")
        .fetch_one(pool)
        .await
        .expect("the log is readable");
    let (n, low, high): (i64, i64, i64) = (row.get("n"), row.get("low"), row.get("high"));
    assert_eq!((low, high), (1, n), "positions have a gap");
    let broken: i64 = sqlx::query_scalar(
        "select count(*) from (select 1 from events group by stream_no having min(version) <> 1 or max(version) <> count(*)) as broken",
    )
    .fetch_one(pool)
    .await
    .expect("the log is readable");
    assert_eq!(broken, 0, "streams with a gap in their versions");
    n
}

/// One event as it lies in the log.
#[derive(Debug)]
pub struct Stored {
    /// Its place in the log.
    pub position: i64,
    /// Its stream.
    pub stream: String,
    /// Its type.
    pub event_type: String,
    /// When it happened, as its sender says.
    pub occurred_at: time::OffsetDateTime,
    /// Its payload.
    pub payload: serde_json::Value,
}

/// Every event whose stream's key matches a SQL `like` pattern, in order.
pub async fn events_like(pool: &PgPool, pattern: &str) -> Vec<Stored> {
    let rows = sqlx::query(
        "select e.position, s.stream_key, e.event_type, e.occurred_at, e.payload from events e join streams s using (stream_no) \
         where s.stream_key like $1 order by e.position",
    )
    .bind(pattern)
    .fetch_all(pool)
    .await
    .expect("the log is readable");
    rows.into_iter()
        .map(|row| Stored {
            position: row.get("position"),
            stream: row.get("stream_key"),
            event_type: row.get("event_type"),
            occurred_at: row.get("occurred_at"),
            payload: serde_json::from_str(row.get("payload")).expect("a payload is JSON"),
        })
        .collect()
}
