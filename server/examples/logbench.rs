//! How fast the event log is, beside what PostgreSQL itself does with the same bytes in the same run.
//!
//! `cargo run --release -p benchtrail-server --example logbench` takes about two minutes, in a database of its own.
//! With `--soak SECONDS` it appends for that long instead and reports stalls; `--soak SECONDS 32 100` by 32 writers in
//! requests of 100 events (64 and 1 where not said).

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Cluster, stream};
use events::canonical::CanonicalJson;
use events::envelope::{Actor, ActorKind, GENESIS_HASH, NewEvent, chain_hash};
use events::keys::StreamKey;
use futures::TryStreamExt;
use serde_json::json;
use server::log::{AppendOutcome, AppendRequest, Expected, Log, VerifyOptions, verify};
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

const ROUNDS: usize = 3;
const RUN: Duration = Duration::from_millis(1500);
const COPIED_ROWS: usize = 100_000;

/// Payloads of a job's events, about 390 bytes each, all different.
fn payloads() -> Vec<CanonicalJson> {
    (0..4096)
        .map(|n| {
            CanonicalJson::of(&json!({
                "attempt": 1, "scenario": "c8-isl512-osl256", "requests": 200 + n, "failed": 0,
                "duration_s": 61.5 + f64::from(n) / 7.0, "output_tokens_per_s": 1834.25 + f64::from(n) / 3.0,
                "ttft_ms": {"mean": 41.3 + f64::from(n) / 11.0, "p50": 38.9, "p90": 55.25, "p99": 93.5},
                "tpot_ms": {"mean": 4.36, "p50": 4.31 + f64::from(n) / 13.0, "p90": 4.9, "p99": 6.125},
                "tool": "metrumbench-llm", "host": "gpu-node-17", "note": "steady state reached after warm-up",
            }))
            .unwrap()
        })
        .collect()
}

fn event(payloads: &[CanonicalJson], number: usize) -> NewEvent {
    NewEvent {
        event_id: Uuid::now_v7(),
        event_type: "job.progressed".to_owned(),
        schema_version: 1,
        org: "acme".to_owned(),
        actor: Actor { kind: ActorKind::Agent, id: "agent-17".to_owned() },
        causation_id: None,
        correlation_id: None,
        occurred_at: server::clock::now(),
        payload: payloads[number % payloads.len()].clone(),
    }
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    per_second: f64,
    p50: Duration,
    p99: Duration,
    longest: Duration,
}

/// `writers` tasks append requests of `size` events for a while, each waiting for its acknowledgement.
async fn append(
    log: &Log,
    payloads: &'static [CanonicalJson],
    writers: usize,
    size: usize,
    run: Duration,
) -> Rate {
    let began = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let log = log.clone();
            tokio::spawn(async move {
                let mut waits = Vec::new();
                let mut number = writer * 31;
                let mut key: Option<StreamKey> = None;
                let mut version = 0;
                while began.elapsed() < run {
                    // Ten requests to a stream, then a new one.
                    let requests = waits.len();
                    if requests % 10 == 0 {
                        key = Some(stream(&Uuid::now_v7().simple().to_string()));
                        version = 0;
                    }
                    let events: Vec<_> = (number..number + size).map(|n| event(payloads, n)).collect();
                    let expected = if version == 0 { Expected::NoStream } else { Expected::Exact(version) };
                    let request = AppendRequest::one(key.clone().unwrap(), expected, events);
                    number += size;
                    version += size as i64;
                    let asked = Instant::now();
                    match log.append(request).await.unwrap() {
                        AppendOutcome::Appended { .. } => waits.push(asked.elapsed()),
                        other => panic!("{other:?}"),
                    }
                }
                waits
            })
        })
        .collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(task.await.unwrap());
    }
    let took = began.elapsed();
    waits.sort_unstable();
    Rate {
        per_second: (waits.len() * size) as f64 / took.as_secs_f64(),
        p50: waits[waits.len() / 2],
        p99: waits[waits.len() * 99 / 100],
        longest: *waits.last().unwrap(),
    }
}

/// The rows of `events` in binary COPY form, as the log would write them.
fn copy_rows(payloads: &[CanonicalJson]) -> Vec<u8> {
    let mut out = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for number in 0..COPIED_ROWS {
        let event = event(payloads, number);
        let at = (event.occurred_at.as_micros() - 946_684_800_000_000).to_be_bytes();
        let fields: [Option<&[u8]>; 15] = [
            Some(&(number as i64 + 1).to_be_bytes()),
            Some(&(number as i64 / 10).to_be_bytes()),
            Some(&(number as i64 % 10).to_be_bytes()),
            Some(&at),
            Some(&at),
            Some(event.event_id.as_bytes()),
            Some(&1_i32.to_be_bytes()),
            Some(event.event_type.as_bytes()),
            Some(event.org.as_bytes()),
            Some(event.actor.kind.as_str().as_bytes()),
            Some(event.actor.id.as_bytes()),
            None,
            None,
            Some(event.payload.as_str().as_bytes()),
            Some(&[7; 32]),
        ];
        out.extend_from_slice(&15_i16.to_be_bytes());
        for field in fields {
            match field {
                Some(bytes) => {
                    out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
                    out.extend_from_slice(bytes);
                }
                None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
            }
        }
    }
    out.extend_from_slice(&(-1_i16).to_be_bytes());
    out
}

/// Rows per second of one COPY BINARY in one transaction into a table without an index.
async fn copy_in(connection: &mut PgConnection, rows: &[u8]) -> f64 {
    run_sql(connection, "drop table if exists raw; create table raw (like events)").await;
    let began = Instant::now();
    let mut copy = connection.copy_in_raw("copy raw from stdin (format binary)").await.unwrap();
    for chunk in rows.chunks(1 << 16) {
        copy.send(chunk).await.unwrap();
    }
    assert_eq!(copy.finish().await.unwrap(), COPIED_ROWS as u64);
    COPIED_ROWS as f64 / began.elapsed().as_secs_f64()
}

async fn run_sql(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
}

/// Commits per second of single rows, by pgbench, into a table without an index.
fn pgbench(cluster: &Cluster, clients: usize) -> f64 {
    let script = cluster.path().join("single.sql");
    let mut file = std::fs::File::create(&script).unwrap();
    writeln!(
        file,
        "\\set n random(1, 1000000)\ninsert into single values (:n, :n, repeat('x', 394), \
         decode(repeat('07', 32), 'hex'), decode(repeat('07', 32), 'hex'));"
    )
    .unwrap();
    let output = cluster
        .program("pgbench")
        .args(["-n", "-M", "prepared", "-j", "2", "-T", "2", "-c", &clients.to_string(), "-f"])
        .arg(&script)
        .arg("bt")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Events per second of copying the whole log out and throwing it away.
async fn copy_out(connection: &mut PgConnection, count: i64) -> f64 {
    let began = Instant::now();
    let mut rows = connection
        .copy_out_raw("copy (select * from events order by position) to stdout (format binary)")
        .await
        .unwrap();
    while rows.try_next().await.unwrap().is_some() {}
    count as f64 / began.elapsed().as_secs_f64()
}

/// Events per second of verifying the chain, without making anything of the events.
async fn replay_verified(log: &Log, count: i64) -> f64 {
    let began = Instant::now();
    // All but the last: then only the chain and the checkpoints are looked at, not the tables beside them.
    let options = VerifyOptions { to: Some(count - 1), ..VerifyOptions::default() };
    let report = verify(log.pool(), &options, |_| {}).await.unwrap();
    assert_eq!((report.fault, report.events), (None, count - 1));
    count as f64 / began.elapsed().as_secs_f64()
}

/// Events per second of reading owned events and following the chain, as a projection does.
async fn replay_owned(log: &Log, count: i64) -> f64 {
    let began = Instant::now();
    let (mut at, mut hash) = (0, GENESIS_HASH);
    while at < count {
        for event in log.read_all(at, 10_000).await.unwrap() {
            hash = chain_hash(&hash, &event.leaf);
            assert_eq!(hash, event.hash);
            at += 1;
            std::hint::black_box(&event);
        }
    }
    count as f64 / began.elapsed().as_secs_f64()
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn spread(numbers: &[f64]) -> String {
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(0.0, f64::max);
    format!("{:.0}–{:.0}", low, high)
}

fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("?", |(_, m)| m);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let commit =
        commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    format!("{cores} x {model}, load before {}, commit {commit}", load.split(' ').next().unwrap_or("?"))
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let machine = machine();
    let cluster = Cluster::start_with(&[
        "shared_buffers=512MB",
        "max_wal_size=4GB",
        "min_wal_size=1GB",
        "max_connections=200",
    ])
    .await;
    cluster.database("bt").await;
    let log = cluster.log("bt").await;
    let payloads: &'static [CanonicalJson] = payloads().leak();
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--soak") {
        let number = |nth: usize| arguments.get(at + nth).and_then(|text| text.parse::<usize>().ok());
        let seconds = number(1).expect("--soak SECONDS [WRITERS [EVENTS-A-REQUEST]]");
        soak(&log, payloads, seconds as u64, number(2).unwrap_or(64), number(3).unwrap_or(1), &machine).await;
        return;
    }

    let mut connection = cluster.connect("bt").await;
    run_sql(&mut connection, "create table single (a bigint, b bigint, payload text, h1 bytea, h2 bytea)")
        .await;
    let rows = copy_rows(payloads);
    let writers = [1, 16, 64, 256];
    let clients = [1, 16, 64];
    // Once for nothing, so that every part is warm.
    append(&log, payloads, 64, 1, RUN / 3).await;
    copy_in(&mut connection, &rows).await;

    let mut copies = Vec::new();
    let mut commits = vec![Vec::new(); clients.len()];
    let mut singles = vec![Vec::new(); writers.len()];
    let mut hundreds = Vec::new();
    for _ in 0..ROUNDS {
        copies.push(copy_in(&mut connection, &rows).await);
        for (at, clients) in clients.into_iter().enumerate() {
            commits[at].push(pgbench(&cluster, clients));
            run_sql(&mut connection, "truncate single").await;
        }
        for (at, writers) in writers.into_iter().enumerate() {
            singles[at].push(append(&log, payloads, writers, 1, RUN).await);
        }
        hundreds.push(append(&log, payloads, 32, 100, RUN).await);
    }
    let count = log.head().await.unwrap().position;
    run_sql(&mut connection, "vacuum (freeze, analyze) events").await;
    let (mut out, mut verified, mut owned) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        out.push(copy_out(&mut connection, count).await);
        verified.push(replay_verified(&log, count).await);
        owned.push(replay_owned(&log, count).await);
    }

    println!("{machine}; PostgreSQL and the log share the cores; medians of {ROUNDS} interleaved runs\n");
    println!("| what | rows or events per s | lowest–highest | p50 ms | p99 ms | ratio |");
    println!("|---|---|---|---|---|---|");
    let plain = |what: &str, rates: &[f64], ratio: String| {
        println!("| {what} | {:.0} | {} | | | {ratio} |", median(rates.to_vec()), spread(rates));
    };
    let timed = |what: &str, rates: &[Rate], ratio: String| {
        let per_second: Vec<f64> = rates.iter().map(|rate| rate.per_second).collect();
        let of = |pick: fn(&Rate) -> Duration| {
            median(rates.iter().map(|rate| pick(rate).as_secs_f64() * 1e3).collect())
        };
        println!(
            "| {what} | {:.0} | {} | {:.2} | {:.2} | {ratio} |",
            median(per_second.clone()),
            spread(&per_second),
            of(|rate| rate.p50),
            of(|rate| rate.p99)
        );
    };
    let rate = |rates: &[Rate]| median(rates.iter().map(|rate| rate.per_second).collect());
    let copied = median(copies.clone());
    plain("COPY BINARY, one transaction, no index", &copies, "1 (of COPY)".to_owned());
    for (at, clients) in clients.into_iter().enumerate() {
        plain(
            &format!("pgbench, single-row commits, {clients} clients, no index"),
            &commits[at],
            String::new(),
        );
    }
    for (at, writers) in writers.into_iter().enumerate() {
        let against = clients
            .iter()
            .position(|clients| *clients == writers.min(64))
            .map_or(1.0, |at| median(commits[at].clone()));
        let ratio = format!("{:.2} of pgbench {}", rate(&singles[at]) / against, writers.min(64));
        timed(&format!("append, {writers} writers, single events"), &singles[at], ratio);
    }
    timed(
        "append, 32 writers, requests of 100",
        &hundreds,
        format!("{:.2} of COPY", rate(&hundreds) / copied),
    );
    let read = median(out.clone());
    plain(&format!("COPY OUT binary, {count} events, discarded"), &out, "1 (of COPY OUT)".to_owned());
    plain(
        "replay, chain and checkpoints verified",
        &verified,
        format!("{:.2} of COPY OUT", median(verified.clone()) / read),
    );
    plain(
        "replay, owned events, chain verified",
        &owned,
        format!("{:.2} of COPY OUT", median(owned.clone()) / read),
    );
}

/// Appends for a long time and tells of every second in which an append took long.
async fn soak(
    log: &Log,
    payloads: &'static [CanonicalJson],
    seconds: u64,
    writers: usize,
    size: usize,
    machine: &str,
) {
    println!("{machine}; soak of {seconds} s, {writers} writers, requests of {size}");
    let began = Instant::now();
    let (mut longest, mut stalls, mut events, mut runs) = (Duration::ZERO, 0, 0.0, 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        let rate = append(log, payloads, writers, size, Duration::from_secs(1)).await;
        longest = longest.max(rate.longest);
        events += rate.per_second;
        runs += 1;
        if rate.longest > Duration::from_millis(250) {
            stalls += 1;
            println!(
                "at {:.0} s: an append took {:.0} ms",
                began.elapsed().as_secs_f64(),
                rate.longest.as_secs_f64() * 1e3
            );
        }
    }
    println!(
        "{:.0} events/s on average; longest append {:.0} ms; {stalls} of {runs} seconds with one over 250 ms",
        events / f64::from(runs),
        longest.as_secs_f64() * 1e3
    );
}
