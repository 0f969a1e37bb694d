//! How fast the read side is: every view rebuilt from the log, and a chart's query.
//!
//! `cargo run --release -p benchtrail-server --example readbench` takes a minute or two, in databases of its own.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/reading/mod.rs"]
mod reading;

use std::time::{Duration, Instant};

use common::Cluster;
use reading::{Read, Story, person};
use server::projections::rebuild::rebuild;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() {
    // Durability on: figures of a database that keeps what it says.
    let cluster = Cluster::start_with(&["shared_buffers=512MB", "max_wal_size=4GB"]).await;
    println!("| figure | value | aim |");
    println!("|---|---|---|");
    runs_and_jobs(&cluster).await;
    telemetry(&cluster).await;
}

fn row(figure: &str, value: String, aim: &str) {
    println!("| {figure} | {value} | {aim} |");
}

/// Many events a row: 2,000 jobs with 100 lines of progress each.
async fn runs_and_jobs(cluster: &Cluster) {
    let read = Read::start(cluster, "jobs").await;
    let began = Instant::now();
    for n in 0..100 {
        let story = Story {
            project: format!("p{n}"),
            concurrencies: (1..=20).collect(),
            seconds: 2,
            progress: 100,
            ..Story::default()
        };
        story.tell(&read).await;
    }
    let head = read.log.head().await.unwrap().position;
    let told = began.elapsed();
    read.projections.wait_for(head, Duration::from_secs(300)).await.unwrap();
    let caught_up = began.elapsed().saturating_sub(told);
    row(
        "live folding beside appending, one writer",
        format!(
            "{:.0} events/s, caught up {:.0} ms after the last",
            head as f64 / told.as_secs_f64(),
            caught_up.as_secs_f64() * 1e3
        ),
        "–",
    );
    report_rebuild(&read, "runs, jobs, progress, logs", Some("runs"), "≥ 200,000 for foldable streams").await;
    report_rebuild(&read, "all views, in one pass", None, "≥ 200,000 for foldable streams").await;
    query(
        &read,
        "reporting table, 2,000 results: filter, sort, first 50",
        "v_benchmark_results",
        "streaming=eq.true&concurrency=gte.4&order=output_tokens_per_second.desc&limit=50",
        "p95 ≤ 50 ms",
    )
    .await;
}

/// One job of an hour on eight GPUs at 1 Hz.
async fn telemetry(cluster: &Cluster) {
    let read = Read::start(cluster, "telemetry").await;
    let story = Story { concurrencies: vec![8], gpus: 8, seconds: 3600, ..Story::default() };
    story.tell(&read).await;
    read.settle().await;
    report_rebuild(&read, "an hour of telemetry of 8 GPUs", None, "–").await;
    let job = "job=eq.job/acme/p1/w1/1/c8-isl512-osl256&attempt=eq.1";
    let metrics = "metric=in.(power_w,utilization,memory_used_bytes)&source=like.gpu*&bucket_s=eq.6";
    query(
        &read,
        "chart of 1 hour × 8 GPUs × 3 metrics, a row a bucket",
        "v_telemetry_buckets",
        &format!(
            "{job}&{metrics}&select=source,metric,bucket_start,min,avg,max&order=source,metric,bucket_start"
        ),
        "p95 ≤ 50 ms",
    )
    .await;
    query(
        &read,
        "the same, buckets as arrays",
        "v_telemetry_series",
        &format!("{job}&{metrics}&select=source,metric,bucket_start,min,avg,max&order=source,metric,segment"),
        "p95 ≤ 50 ms",
    )
    .await;
}

async fn report_rebuild(read: &Read, what: &str, only: Option<&str>, aim: &str) {
    let head = read.log.head().await.unwrap().position;
    let began = Instant::now();
    let reports = rebuild(&read.pool, &read.log, only, &CancellationToken::new()).await.unwrap();
    let whole = began.elapsed().as_secs_f64();
    let fold = reports.iter().map(|r| r.fold_s).fold(0.0, f64::max);
    let rows: i64 = reports.iter().flat_map(|r| &r.tables).map(|t| t.rows_rebuilt).sum();
    let equal = reports.iter().all(|r| r.equal());
    row(
        &format!("rebuild, {what}: {head} events into {rows} rows"),
        format!(
            "{:.0} events/s ({fold:.2} s); {whole:.2} s with proof and flip, equal: {equal}",
            head as f64 / fold
        ),
        aim,
    );
}

async fn query(read: &Read, what: &str, view: &str, query: &str, aim: &str) {
    let ada = person("acme", "ada");
    let (mut waits, mut bytes, mut rows) = (Vec::new(), 0, 0);
    for _ in 0..60 {
        let began = Instant::now();
        let (status, _, body) = read.ask(&ada, view, query, &[]).await;
        waits.push(began.elapsed().as_secs_f64() * 1e3);
        assert_eq!(status, 200, "{body}");
        bytes = body.len();
        rows = body.lines().count();
    }
    waits.sort_by(f64::total_cmp);
    row(
        &format!("query, {what}"),
        format!("p50 {:.1} ms, p95 {:.1} ms ({rows} rows, {} kB)", waits[30], waits[57], bytes / 1000),
        aim,
    );
}
