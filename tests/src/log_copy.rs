//! A copy of the log in a database of its own, and what somebody with every right over a database could do to one.

use events::envelope::{Actor, Envelope, GENESIS_HASH, Recorded, chain_hash};
use events::hexadecimal;
use events::timestamp::Timestamp;
use futures::TryStreamExt;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgPool, Row};

use crate::control_plane::ControlPlane;
use crate::database;

const TABLES: [&str; 5] = ["log_head", "streams", "event_ids", "events", "checkpoints"];

/// A copied log.
pub struct LogCopy {
    /// Its database, for `DATABASE_URL`.
    pub url: String,
    pool: PgPool,
}

impl LogCopy {
    /// Copies the log of a control plane, which goes on meanwhile, into a new database beside it.
    pub async fn of(plane: &ControlPlane) -> Self {
        let source = database::open(&plane.database_url()).await;
        run(&source, "create database log_copy").await;
        let mut url: url::Url = plane.database_url().parse().expect("an address");
        url.set_path("/log_copy");
        let (status, text) = plane.command_on(url.as_str(), &["migrate"]).await;
        assert!(status.success(), "{text}");
        let pool = database::open(url.as_str()).await;
        // One snapshot: the tables must fit each other.
        let mut from = source.begin().await.expect("a transaction");
        run_in(&mut from, "set transaction isolation level repeatable read read only").await;
        let mut to = privileged(&pool).await;
        run_in(&mut to, "delete from log_head").await;
        for table in TABLES {
            let mut copy = Vec::new();
            let rows = format!("copy (select * from {table}) to stdout (format binary)");
            let mut out = from.copy_out_raw(&rows).await.expect("a copy out");
            while let Some(bytes) = out.try_next().await.expect("rows") {
                copy.extend_from_slice(&bytes);
            }
            drop(out);
            let into = format!("copy {table} from stdin (format binary)");
            let mut into = to.copy_in_raw(&into).await.expect("a copy in");
            into.send(copy).await.expect("rows");
            into.finish().await.expect("copied");
        }
        to.commit().await.expect("committed");
        Self { url: url.to_string(), pool }
    }

    /// The last position.
    pub async fn head(&self) -> i64 {
        sqlx::query_scalar("select position from log_head").fetch_one(&self.pool).await.expect("a head")
    }

    /// Changes one byte of the payload at a position, whatever it was.
    pub async fn flip_a_byte(&self, position: i64) {
        let sql = format!(
            "update events set payload = overlay(payload placing \
             case substr(payload, length(payload) / 2, 1) when 'X' then 'Y' else 'X' end \
             from length(payload) / 2 for 1) where position = {position}"
        );
        let mut to = privileged(&self.pool).await;
        run_in(&mut to, &sql).await;
        to.commit().await.expect("committed");
    }

    /// Rewrites the payload at a position and every hash that follows from it, and throws the signed checkpoints away:
    /// on its own, the log is consistent again.
    pub async fn rewrite_from(&self, position: i64, payload: &str) {
        let mut hash = GENESIS_HASH;
        let mut to = privileged(&self.pool).await;
        for event in self.events().await {
            let payload = if event.position == position { payload } else { &event.payload };
            hash = chain_hash(&hash, &Envelope { payload, ..event.envelope() }.leaf());
            if event.position >= position {
                sqlx::query("update events set payload = $2, hash = $3 where position = $1")
                    .bind(event.position)
                    .bind(payload)
                    .bind(&hash[..])
                    .execute(&mut *to)
                    .await
                    .expect("rewritten");
            }
        }
        run_in(&mut to, &format!("update log_head set hash = '\\x{}'", hexadecimal::encode(&hash))).await;
        run_in(&mut to, "delete from checkpoints").await;
        to.commit().await.expect("committed");
    }

    async fn events(&self) -> Vec<Recorded> {
        let micros = |column: &str| format!("(extract(epoch from e.{column}) * 1000000)::bigint as {column}");
        let sql = format!(
            "select e.position, s.stream_key, e.version, e.event_id, e.event_type, e.schema_version, e.org, \
             e.actor_kind, e.actor_id, e.causation_id, e.correlation_id, e.payload, {}, {} \
             from events e join streams s using (stream_no) order by e.position",
            micros("occurred_at"),
            micros("recorded_at")
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&self.pool).await.expect("the log is readable");
        rows.iter().map(recorded).collect()
    }
}

fn recorded(row: &PgRow) -> Recorded {
    let at = |column| Timestamp::from_micros(row.get(column)).expect("a time");
    let key: String = row.get("stream_key");
    let kind: String = row.get("actor_kind");
    let version: i32 = row.get("schema_version");
    Recorded {
        position: row.get("position"),
        stream: key.parse().expect("a stream key"),
        version: row.get("version"),
        event_id: row.get("event_id"),
        event_type: row.get("event_type"),
        schema_version: version.try_into().expect("a small number"),
        org: row.get("org"),
        actor: Actor { kind: kind.parse().expect("a kind of actor"), id: row.get("actor_id") },
        causation_id: row.get("causation_id"),
        correlation_id: row.get("correlation_id"),
        occurred_at: at("occurred_at"),
        recorded_at: at("recorded_at"),
        payload: row.get("payload"),
        leaf: [0; 32],
        hash: [0; 32],
    }
}

/// A transaction in which no trigger guards the log: only a superuser can open one.
async fn privileged(pool: &PgPool) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let mut tx = pool.begin().await.expect("a transaction");
    run_in(&mut tx, "set local session_replication_role = replica").await;
    tx
}

async fn run(pool: &PgPool, sql: &str) {
    sqlx::query(AssertSqlSafe(sql.to_owned())).execute(pool).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
}

async fn run_in(tx: &mut sqlx::Transaction<'static, sqlx::Postgres>, sql: &str) {
    sqlx::query(AssertSqlSafe(sql.to_owned()))
        .execute(&mut **tx)
        .await
        .unwrap_or_else(|e| panic!("{sql}: {e}"));
}
