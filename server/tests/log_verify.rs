//! The log cannot be altered, and when it is altered by force, the first position that does not fit is found.

mod common;

use std::process::Stdio;

use common::{Cluster, append, read_and_check, stream};
use events::envelope::{Envelope, GENESIS_HASH, chain_hash};
use events::merkle::ProofError;
use server::log::{CHECKPOINT_EVERY, Fault, Log, VerifyOptions, VerifyReport, signature_holds, verify};
use sqlx::{AssertSqlSafe, Connection};

async fn verified(log: &Log) -> VerifyReport {
    verify(log.pool(), &VerifyOptions::default(), |_| {}).await.unwrap()
}

/// A log of twelve events in three streams, with a checkpoint at 8.
async fn small_log(cluster: &Cluster, database: &str) -> Log {
    cluster.database(database).await;
    let log = cluster.log(database).await;
    for round in 0..2 {
        append(&log, "a", 0..2).await;
        append(&log, "b", round..round + 1).await;
        append(&log, "c", 3..4).await;
    }
    assert_eq!(log.checkpoint().await.unwrap().unwrap().position, 8);
    append(&log, "a", 4..8).await;
    log
}

/// Alters the log by force, as somebody with the database's highest rights and bad intentions would.
async fn tamper(cluster: &Cluster, database: &str, sql: &str) {
    cluster.execute(database, &format!("set session_replication_role = replica; {sql}")).await.unwrap();
}

#[tokio::test]
async fn neither_the_control_plane_nor_the_owner_can_alter_the_log() {
    let cluster = Cluster::start().await;
    let log = small_log(&cluster, "bt").await;
    let attempts = [
        "update events set payload = '{}' where position = 3",
        "update events_000000 set payload = '{}' where position = 3",
        "delete from events where position = 3",
        "delete from events_000000",
        "truncate events",
        "truncate events_000000",
        "truncate events cascade",
        "update event_ids set position = 1",
        "delete from event_ids",
        "truncate event_ids",
        "delete from streams",
        "truncate streams",
        "delete from log_head",
        "truncate log_head",
        "update checkpoints set position = 9",
        "delete from checkpoints",
        "truncate checkpoints",
    ];
    for role in ["benchtrail_app", "postgres", "benchtrail_reader"] {
        for attempt in attempts {
            let refused = cluster.execute("bt", &format!("set role {role}; {attempt}")).await.unwrap_err();
            let code = refused.as_database_error().unwrap().code().unwrap().into_owned();
            assert_eq!(code, "42501", "{role}: {attempt}: {refused}");
        }
    }
    // The control plane cannot write past the one door either.
    for attempt in [
        "insert into events select * from events limit 1",
        "insert into events_000000 select * from events limit 1",
        "insert into event_ids values (gen_random_uuid(), 99)",
        "insert into streams values (99, 'x', 1)",
        "update streams set version = 99",
        "update log_head set position = 99",
        "alter table events disable trigger all",
        "drop table events",
        "create table mine (n int)",
    ] {
        let refused =
            cluster.execute("bt", &format!("set role benchtrail_app; {attempt}")).await.unwrap_err();
        let code = refused.as_database_error().unwrap().code().unwrap().into_owned();
        assert_eq!(code, "42501", "{attempt}: {refused}");
    }
    let refused =
        cluster.execute("bt", "set role benchtrail_reader; select * from events").await.unwrap_err();
    assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "42501");
    assert_eq!(verified(&log).await.fault, None);
}

#[tokio::test]
async fn a_sound_log_is_found_sound() {
    let cluster = Cluster::start().await;
    let log = small_log(&cluster, "bt").await;
    let report = verified(&log).await;
    assert_eq!((report.from, report.to, report.events, report.checkpoints), (1, 12, 12, 1));
    assert_eq!(report.keys, [log.public_key()]);
    assert_eq!(report.fault, None);
    for from in 2..=12 {
        let options = VerifyOptions { from, to: Some(11), ..VerifyOptions::default() };
        assert_eq!(verify(log.pool(), &options, |_| {}).await.unwrap().fault, None, "from {from}");
    }
}

#[tokio::test]
async fn each_alteration_is_found_at_its_position() {
    let cluster = Cluster::start().await;
    let log = small_log(&cluster, "bt").await;
    const TABLES: [&str; 5] = ["events", "event_ids", "streams", "log_head", "checkpoints"];
    let saved = TABLES.map(|table| format!("create table saved_{table} as select * from {table}")).join(";");
    cluster.execute("bt", &saved).await.unwrap();
    let restore = TABLES
        .map(|table| format!("truncate {table}; insert into {table} select * from saved_{table}"))
        .join(";");
    let cases = [
        ("update events set payload = overlay(payload placing '8' from 11 for 1) where position = 5", 5),
        ("update events set payload = payload || ' ' where position = 12", 12),
        ("update events set occurred_at = occurred_at + interval '1 microsecond' where position = 1", 1),
        ("update events set recorded_at = recorded_at + interval '1 microsecond' where position = 7", 7),
        ("update events set actor_id = 'other' where position = 2", 2),
        ("update events set actor_kind = 'nobody' where position = 2", 2),
        ("update events set org = 'other' where position = 6", 6),
        ("update events set event_type = 'test.other' where position = 6", 6),
        ("update events set schema_version = 2 where position = 4", 4),
        ("update events set schema_version = -1 where position = 4", 4),
        ("update events set causation_id = event_id where position = 9", 9),
        ("update events set hash = set_byte(hash, 4, get_byte(hash, 4) # 255) where position = 10", 10),
        ("update events set hash = '\\x00' where position = 10", 10),
        ("update events set version = 7 where position = 3", 3),
        ("update events set stream_no = 2 where position = 4", 4),
        ("update events set stream_no = 99 where position = 4", 4),
        ("update events set event_id = gen_random_uuid() where position = 11", 11),
        ("delete from events where position = 1", 1),
        ("delete from events where position = 6", 6),
        ("delete from events where position = 12", 12),
        ("update events set position = 13 where position = 6", 6),
        ("update streams set stream_key = 'project/acme/z' where stream_no = 2", 3),
        ("delete from streams where stream_no = 3", 4),
        ("update streams set version = 1 where stream_no = 1", 12),
        ("update event_ids set position = 12 where position = 3", 3),
        ("delete from event_ids where position = 5", 5),
        ("update log_head set hash = decode(repeat('11', 32), 'hex')", 12),
        ("update checkpoints set hash = decode(repeat('11', 32), 'hex')", 8),
        ("update checkpoints set root = decode(repeat('11', 32), 'hex')", 8),
        ("update checkpoints set signature = decode(repeat('11', 64), 'hex')", 8),
        ("update checkpoints set previous_position = 3", 8),
    ];
    for (sql, position) in cases {
        tamper(&cluster, "bt", sql).await;
        let report = verified(&log).await;
        assert_eq!(report.fault.as_ref().map(|fault| fault.position), Some(position), "{sql}: {report:?}");
        tamper(&cluster, "bt", &restore).await;
    }
    assert_eq!(verified(&log).await.fault, None);
}

/// Rewrites an event and everything that depends on it, so that the chain is consistent again: what somebody with the
/// database and this source code could do, but without the signing key.
async fn rewrite_consistently(cluster: &Cluster, log: &Log, database: &str, from: i64) {
    let all = read_and_check(log).await;
    let mut hash = GENESIS_HASH;
    let mut sql = String::new();
    for event in &all {
        let payload = if event.position == from { r#"{"number":999}"# } else { event.payload.as_str() };
        let leaf = Envelope { payload, ..event.envelope() }.leaf();
        hash = chain_hash(&hash, &leaf);
        if event.position >= from {
            let hash = events::hexadecimal::encode(&hash);
            sql += &format!(
                "update events set payload = '{payload}', hash = '\\x{hash}' where position = {};",
                event.position
            );
        }
    }
    let hash = events::hexadecimal::encode(&hash);
    sql += &format!("update log_head set hash = '\\x{hash}';");
    tamper(cluster, database, &sql).await;
}

#[tokio::test]
async fn a_log_rewritten_with_a_consistent_chain_is_found_by_the_stored_checkpoint() {
    let cluster = Cluster::start().await;
    let log = small_log(&cluster, "bt").await;
    rewrite_consistently(&cluster, &log, "bt", 5).await;
    let fault = verified(&log).await.fault.unwrap();
    assert_eq!(fault.position, 8);
    assert!(fault.what.contains("another hash"), "{}", fault.what);
}

#[tokio::test]
async fn a_log_rewritten_with_its_checkpoints_is_found_by_a_checkpoint_kept_elsewhere() {
    let cluster = Cluster::start().await;
    let log = small_log(&cluster, "bt").await;
    let kept = log.checkpoint().await.unwrap().unwrap();
    assert_eq!(kept.position, 12);
    // Kept as a file and read back.
    let kept = serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap();
    let options = VerifyOptions { checkpoint: Some(kept), ..VerifyOptions::default() };
    let sound = verify(log.pool(), &options, |_| {}).await.unwrap();
    assert_eq!((sound.fault, sound.external_checkpoint), (None, true));
    for (from, to) in [(1, Some(11)), (13, None)] {
        let beside = VerifyOptions { from, to, ..options.clone() };
        let fault = verify(log.pool(), &beside, |_| {}).await.unwrap().fault.unwrap();
        assert_eq!(fault.position, 12);
        assert!(fault.what.contains("not looked at"), "{}", fault.what);
    }

    rewrite_consistently(&cluster, &log, "bt", 5).await;
    tamper(&cluster, "bt", "delete from checkpoints").await;
    assert_eq!(verified(&log).await.fault, None, "on its own the rewritten log is consistent");
    let report = verify(log.pool(), &options, |_| {}).await.unwrap();
    let Fault { position, what } = report.fault.unwrap();
    assert_eq!(position, 12);
    assert!(what.contains("rewritten"), "{what}");
    assert!(!report.external_checkpoint);
}

#[tokio::test]
async fn a_log_cut_short_is_found_by_a_checkpoint_kept_elsewhere() {
    let cluster = Cluster::start().await;
    let log = small_log(&cluster, "bt").await;
    let kept = log.checkpoint().await.unwrap();
    tamper(
        &cluster,
        "bt",
        "delete from events where position > 6; delete from event_ids where position > 6; delete from checkpoints; \
         update streams set version = 4 where stream_no = 1; update streams set version = 1 where stream_no > 1; \
         update log_head set position = 6, hash = (select hash from events where position = 6)",
    )
    .await;
    assert_eq!(verified(&log).await.fault, None);
    let options = VerifyOptions { checkpoint: kept, ..VerifyOptions::default() };
    let fault = verify(log.pool(), &options, |_| {}).await.unwrap().fault.unwrap();
    assert_eq!(fault.position, 7);
}

#[tokio::test]
async fn a_key_that_is_not_trusted_is_named() {
    let cluster = Cluster::start().await;
    let log = small_log(&cluster, "bt").await;
    let options = VerifyOptions { trusted_keys: vec![[7; 32]], ..VerifyOptions::default() };
    let fault = verify(log.pool(), &options, |_| {}).await.unwrap().fault.unwrap();
    assert_eq!(fault.position, 8);
    assert!(fault.what.contains("not trusted"), "{}", fault.what);
}

#[tokio::test]
async fn checkpoints_are_signed_every_4096_positions_by_whoever_comes_first() {
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let logs = [cluster.log("bt").await, cluster.log("bt").await];
    for round in 0..10 {
        append(&logs[round % 2], "a", 0..1000).await;
    }
    let mut connection = cluster.connect("bt").await;
    for _ in 0..500 {
        let count: i64 =
            sqlx::query_scalar("select count(*) from checkpoints").fetch_one(&mut connection).await.unwrap();
        if count == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let positions: Vec<i64> = sqlx::query_scalar("select position from checkpoints order by position")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(positions, [CHECKPOINT_EVERY, 2 * CHECKPOINT_EVERY]);
    assert_eq!(logs[1].checkpoint().await.unwrap().unwrap().position, 10_000);
    assert_eq!(logs[0].checkpoint().await.unwrap().unwrap().position, 10_000);
    let report = verified(&logs[0]).await;
    assert_eq!((report.checkpoints, report.fault), (3, None));
}

#[tokio::test]
async fn every_event_has_a_proof_and_a_proof_of_another_event_does_not_hold() {
    let cluster = Cluster::start().await;
    let log = small_log(&cluster, "bt").await;
    for position in 1..=12 {
        let mut proof = log.proof(position).await.unwrap();
        proof.verify().unwrap();
        assert!(signature_holds(&proof.checkpoint));
        assert_eq!(proof.checkpoint.public_key, log.public_key());
        // As a file, read by somebody else.
        let read: events::merkle::Proof =
            serde_json::from_str(&serde_json::to_string(&proof).unwrap()).unwrap();
        assert_eq!(read, proof);

        let other = log.proof(position % 12 + 1).await.unwrap();
        proof.event.payload.push(' ');
        assert_eq!(proof.verify(), Err(ProofError::Leaf));
        proof.event.leaf = proof.event.computed_leaf();
        assert_eq!(proof.verify(), Err(ProofError::Path));
        proof.event = other.event;
        assert!(proof.verify().is_err());
    }
    assert!(log.proof(0).await.is_err());
    assert!(log.proof(13).await.is_err());
}

#[tokio::test]
async fn a_key_file_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let cluster = Cluster::start().await;
    cluster.database("bt").await;
    let config = cluster.config("bt");
    let key = config.data_dir.join(server::log::KEY_FILE);
    let public = Log::open(config.clone()).await.unwrap().public_key();
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(Log::open(config.clone()).await.unwrap().public_key(), public, "the key is kept");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = Log::open(config).await.unwrap_err();
    assert!(error.to_string().contains("chmod 600"), "{error}");
}

#[tokio::test]
async fn a_dumped_and_restored_log_verifies_and_goes_on() {
    let cluster = Cluster::start().await;
    let log = small_log(&cluster, "bt").await;
    cluster.execute("postgres", "create database restored").await.unwrap();
    let mut dump = cluster.program("pg_dump").arg("bt").stdout(Stdio::piped()).spawn().unwrap();
    let restored = cluster
        .program("psql")
        .args(["-q", "-v", "ON_ERROR_STOP=1", "-d", "restored"])
        .stdin(dump.stdout.take().unwrap())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(restored.success() && dump.wait().unwrap().success());
    let copy = cluster.log("restored").await;
    assert_eq!(copy.head().await.unwrap(), log.head().await.unwrap());
    assert_eq!(append(&copy, "a", 0..1).await, (13, 13));
    assert_eq!(copy.stream_version(&stream("a")).await.unwrap(), 9);
    assert_eq!(verified(&copy).await.fault, None);
    read_and_check(&copy).await;
}

#[tokio::test]
async fn migrating_twice_and_in_several_databases_at_once_is_harmless() {
    let cluster = Cluster::start().await;
    for n in 0..4 {
        cluster.execute("postgres", &format!("create database db{n}")).await.unwrap();
    }
    let urls: Vec<String> = (0..4).map(|n| cluster.url(&format!("db{n}"))).collect();
    for result in futures::future::join_all(urls.iter().map(|url| server::log::migrate(url))).await {
        result.unwrap();
    }
    server::log::migrate(&urls[0]).await.unwrap();
    let mut connection = cluster.connect("db3").await;
    let undocumented: Vec<String> = sqlx::query_scalar(AssertSqlSafe(
        "select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') \
         and obj_description(oid) is null and relname ~ '^(events|event_ids|streams|log_head|checkpoints)'",
    ))
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(undocumented, Vec::<String>::new(), "each table of the log has a comment");
    connection.close().await.unwrap();
}
