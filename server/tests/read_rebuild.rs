//! Rebuilding while reads go on, folding through broken connections, and events that cannot be folded.

mod common;
mod reading;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::Cluster;
use events::Event;
use events::job::JobQueued;
use events::keys::StreamKey;
use events::project::ProjectVisibility;
use reading::{Read, Story, event, person};
use serde_json::json;
use server::projections::rebuild::{Differing, rebuild, rebuild_with};
use server::projections::{ProjectionError, ProjectionState, ProjectionStatus, registry};
use tokio_util::sync::CancellationToken;

/// Several projects, one of them private for a while, so that every kind of row and change is there.
async fn tell_much(read: &Read) {
    for n in 1..=3 {
        let lost_samples = if n == 2 { vec![7] } else { vec![] };
        let story = Story { project: format!("p{n}"), gpus: n, lost_samples, ..Story::default() };
        story.tell(read).await;
        if n == 3 {
            story.show(read, ProjectVisibility::Private).await;
            story.show(read, ProjectVisibility::Public).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_makes_the_same_rows_byte_for_byte_while_reads_and_writes_go_on() {
    let cluster = Cluster::start().await;
    let read = Arc::new(Read::start(&cluster, "rebuild").await);
    tell_much(&read).await;
    read.settle().await;
    let (done, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let reader = {
        let (read, done, reads) = (read.clone(), done.clone(), reads.clone());
        tokio::spawn(async move {
            let ada = person("acme", "ada");
            while !done.load(Ordering::Relaxed) {
                for (view, least) in
                    [("v_jobs", 6), ("v_benchmark_results", 6), ("v_telemetry_job_summary", 6)]
                {
                    let rows = read.rows(&ada, view, "select=job").await;
                    assert!(rows.len() >= least, "{view} shows {} rows", rows.len());
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    };
    let writer = {
        let (read, done) = (read.clone(), done.clone());
        tokio::spawn(async move {
            let mut n = 10;
            while !done.load(Ordering::Relaxed) {
                Story { project: format!("p{n}"), concurrencies: vec![1], ..Story::default() }
                    .tell(&read)
                    .await;
                n += 1;
            }
        })
    };
    let reports = rebuild(&read.pool, &read.log, None, &CancellationToken::new()).await.unwrap();
    done.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    reader.await.unwrap();
    assert!(reads.load(Ordering::Relaxed) > 0);
    assert_eq!(reports.len(), registry().len());
    for report in &reports {
        assert!(report.equal() && report.flipped && !report.tables.is_empty(), "{report:#?}");
        assert_eq!((report.from_generation, report.to_generation), (1, 2));
    }
    let rows: i64 = reports.iter().flat_map(|r| &r.tables).map(|t| t.rows_live).sum();
    assert!(rows > 100, "{rows} rows compared");
    // The live folds go on in the new tables.
    Story { project: "after".into(), ..Story::default() }.tell(&read).await;
    read.settle().await;
    let ada = person("acme", "ada");
    assert_eq!(read.rows(&ada, "v_jobs", "project_code=eq.after").await.len(), 2);
    let again = rebuild(&read.pool, &read.log, Some("results"), &CancellationToken::new()).await.unwrap();
    assert!(again[0].equal() && again[0].to_generation == 3, "{again:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_that_is_read_all_the_while_keeps_no_other_from_being_rebuilt() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "longreader").await;
    Story::default().tell(&read).await;
    read.settle().await;
    let mut reader = sqlx::PgPool::connect(&cluster.url("longreader")).await.unwrap().begin().await.unwrap();
    sqlx::query("select count(*) from read.v_saved_views").execute(&mut *reader).await.unwrap();

    let stop = CancellationToken::new();
    let reports = rebuild_with(&read.pool, &read.log, None, Differing::Refused, &stop).await.unwrap();
    let (held, others): (Vec<_>, Vec<_>) = reports.iter().partition(|report| report.being_read);
    assert_eq!(held.iter().map(|report| report.projection.as_str()).collect::<Vec<_>>(), ["saved_views"]);
    assert!(!held[0].flipped && held[0].equal(), "{held:#?}");
    assert!(others.len() > 5 && others.iter().all(|report| report.flipped), "{others:#?}");

    let alone = rebuild(&read.pool, &read.log, Some("saved_views"), &stop).await;
    assert!(matches!(&alone, Err(ProjectionError::BeingRead(name)) if name == "saved_views"), "{alone:#?}");
    reader.rollback().await.unwrap();
    let reports = rebuild(&read.pool, &read.log, Some("saved_views"), &stop).await.unwrap();
    assert!(reports[0].flipped && reports[0].equal(), "{reports:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_row_is_found_and_the_views_do_not_flip() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "changed").await;
    Story::default().tell(&read).await;
    read.settle().await;
    let sql = "update read.benchmark_results_v1 set output_tokens_per_second = output_tokens_per_second + 1 where job like '%c8%'";
    cluster.execute("changed", sql).await.unwrap();
    let reports = rebuild(&read.pool, &read.log, Some("results"), &CancellationToken::new()).await.unwrap();
    let unequal: Vec<&str> =
        reports[0].tables.iter().filter(|t| !t.equal).map(|t| t.table.as_str()).collect();
    assert_eq!(unequal, ["benchmark_results"]);
    assert!(!reports[0].flipped);

    // Asked to, a rebuild puts what the log gives in its place.
    let stop = CancellationToken::new();
    let reports =
        rebuild_with(&read.pool, &read.log, Some("results"), Differing::Replace, &stop).await.unwrap();
    assert!(reports[0].flipped && !reports[0].equal(), "{reports:#?}");
    let reports = rebuild(&read.pool, &read.log, Some("results"), &stop).await.unwrap();
    assert!(reports[0].flipped && reports[0].equal(), "{reports:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_rebuild_leaves_everything_and_can_be_started_again() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "cancelled").await;
    Story::default().tell(&read).await;
    read.settle().await;
    let stop = CancellationToken::new();
    stop.cancel();
    let cancelled = rebuild(&read.pool, &read.log, None, &stop).await;
    assert!(matches!(cancelled, Err(ProjectionError::Cancelled)), "{cancelled:?}");
    let reports = rebuild(&read.pool, &read.log, None, &CancellationToken::new()).await.unwrap();
    assert!(reports.iter().all(|r| r.equal() && r.flipped));
    let unknown = rebuild(&read.pool, &read.log, Some("nope"), &CancellationToken::new()).await;
    assert!(matches!(unknown, Err(ProjectionError::Unknown { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_between_apply_and_commit_change_nothing() {
    let cluster = Cluster::start().await;
    let read = Arc::new(Read::start(&cluster, "cut").await);
    let done = Arc::new(AtomicBool::new(false));
    let saboteur = {
        let (done, url) = (done.clone(), read.url.clone());
        tokio::spawn(async move {
            use sqlx::Connection;
            let mut connection = sqlx::PgConnection::connect(&url).await.unwrap();
            let mut cut = 0_i64;
            while !done.load(Ordering::Relaxed) {
                // Whoever is inside a transaction that has written read tables is cut off before it commits.
                let hit: Vec<bool> = sqlx::query_scalar(
                    "select pg_terminate_backend(a.pid) from pg_stat_activity a
                      where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_xid is not null
                        and a.query ~ 'insert into read|update read'",
                )
                .fetch_all(&mut connection)
                .await
                .unwrap();
                cut += hit.len() as i64;
                if cut > 40 {
                    break;
                }
            }
            cut
        })
    };
    tell_much(&read).await;
    let cut = saboteur.await.unwrap_or_default();
    done.store(true, Ordering::Relaxed);
    read.settle().await;
    assert!(cut > 0, "nothing was cut");
    let reports = rebuild(&read.pool, &read.log, None, &CancellationToken::new()).await.unwrap();
    for report in reports {
        assert!(report.equal(), "after {cut} cuts: {report:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_cannot_be_folded_is_quarantined_and_the_rest_goes_on() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "poison").await;
    Story { project: "before".into(), ..Story::default() }.tell(&read).await;
    // A job that was never created, a payload of another shape, and a type nobody knows.
    let orphan = StreamKey::new("job", &["acme", "before", "w1", "7", "c1"]);
    let queued = event(&orphan, 0.0, &Event::JobQueued(JobQueued { requeued: false }));
    let mut broken = queued.clone();
    broken.event_id = uuid::Uuid::now_v7();
    broken.event_type = "job.claimed".into();
    let mut unknown = queued.clone();
    unknown.event_id = uuid::Uuid::now_v7();
    unknown.event_type = "job.dreamt".into();
    read.append(&orphan, vec![queued, broken, unknown]).await;
    let last = Story { project: "after".into(), ..Story::default() }.tell(&read).await;
    read.settle().await;
    let ada = person("acme", "ada");
    assert_eq!(read.rows(&ada, "v_jobs", "project_code=eq.after&status=eq.completed").await.len(), 2);
    let status = read.projections.status();
    let of = |name: &str| status.projections.iter().find(|p| p.name == name).unwrap().clone();
    assert_eq!(of("runs").state, ProjectionState::Degraded);
    assert_eq!((of("runs").quarantined, of("runs").unknown), (2, 1));
    assert_eq!(of("catalogue").state, ProjectionState::Live);
    assert_eq!(of("runs").position, last);
    let noted: Vec<(String, String)> =
        sqlx::query_as("select event_type, error from read.quarantine where name = 'runs' order by position")
            .fetch_all(&read.pool)
            .await
            .unwrap();
    assert_eq!(noted[0].0, "job.queued");
    assert!(noted[1].1.contains("payload"), "{noted:?}");
    // What cannot be folded cannot be folded by a rebuild either: the rows are the same.
    let reports = rebuild(&read.pool, &read.log, None, &CancellationToken::new()).await.unwrap();
    assert!(reports.iter().all(|r| r.equal() && r.flipped), "{reports:#?}");
    assert_eq!(reports.iter().find(|r| r.projection == "runs").unwrap().quarantined, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_database_refuses_is_quarantined_by_a_rebuild_as_it_was_live() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "refused").await;
    let story = Story { project: "before".into(), ..Story::default() };
    story.tell(&read).await;
    // Beyond what any column holds: from a time before the door refused it.
    let progress = story.job(1).progress_stream(1);
    let reported = events::tool_output::ProgressReported {
        seq: 1000,
        phase: "running".into(),
        done: u64::MAX,
        total: None,
        failed: 0,
        in_flight: 0,
        elapsed_s: 1.0,
        requests_per_second: None,
        completion_tokens_per_second: None,
        ttft_p50_ms: None,
    };
    read.append(&progress, vec![event(&progress, 99.0, &Event::ProgressReported(reported))]).await;
    Story { project: "after".into(), ..Story::default() }.tell(&read).await;
    read.settle().await;
    let ada = person("acme", "ada");
    assert_eq!(read.rows(&ada, "v_jobs", "project_code=eq.after&status=eq.completed").await.len(), 2);
    let reports = rebuild(&read.pool, &read.log, None, &CancellationToken::new()).await.unwrap();
    assert!(reports.iter().all(|r| r.equal() && r.flipped), "{reports:#?}");
    let runs = reports.iter().find(|r| r.projection == "runs").unwrap();
    assert_eq!(runs.quarantined, 1);
    assert!(runs.events > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_follows_and_takes_over() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "two").await;
    let stop = CancellationToken::new();
    let second = server::projections::start(read.pool.clone(), read.log.clone(), stop.clone()).await.unwrap();
    Story { project: "p1".into(), ..Story::default() }.tell(&read).await;
    let head = read.settle().await;
    second.wait_for(head, std::time::Duration::from_secs(20)).await.unwrap();
    assert_eq!([read.projections.status().leader, second.status().leader].iter().filter(|l| **l).count(), 1);
    read.stop.cancel();
    Story { project: "p2".into(), ..Story::default() }.tell(&read).await;
    let head = read.log.head().await.unwrap().position;
    second.wait_for(head, std::time::Duration::from_secs(30)).await.unwrap();
    assert!(second.status().leader);
    let rows = read.rows(&person("acme", "ada"), "v_jobs", "project_code=eq.p2").await;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["status"], json!("completed"));
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_another_version_filled_are_rebuilt_at_start() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "outdated").await;
    Story::default().tell(&read).await;
    let head = read.settle().await;
    read.stop.cancel();
    let sql = "update read.projections set code_version = 0";
    cluster.execute("outdated", sql).await.unwrap();
    let stop = CancellationToken::new();
    let again = server::projections::start(read.pool.clone(), read.log.clone(), stop.clone()).await.unwrap();
    let upgraded = async {
        loop {
            let status = again.status();
            let flipped = |p: &ProjectionStatus| p.generation == 2 && p.state == ProjectionState::Live;
            if !status.projections.is_empty() && status.projections.iter().all(flipped) {
                return;
            }
            let _ = again.wait_for(head + 1, std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), upgraded).await.unwrap();
    assert_eq!(read.rows(&person("acme", "ada"), "v_benchmark_results", "").await.len(), 2);

    // What comes after the flip is folded by the process that led while the tables were another version's.
    Story { project: "later".into(), ..Story::default() }.tell(&read).await;
    let head = read.log.head().await.unwrap().position;
    again.wait_for(head, std::time::Duration::from_secs(20)).await.unwrap();
    assert_eq!(read.rows(&person("acme", "ada"), "v_benchmark_results", "").await.len(), 4);
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_tables_are_another_versions_the_views_of_the_others_keep_up_and_theirs_say_so() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "update").await;
    Story::default().tell(&read).await;
    read.settle().await;
    // As in another process' update: nobody rebuilds them here, for this one leads already.
    let sql = "update read.projections set code_version = 0 where name = 'results'";
    cluster.execute("update", sql).await.unwrap();
    let rebuilding = async {
        while !read.projections.status().projections.iter().any(|p| p.state == ProjectionState::Rebuilding) {
            let beyond = i64::MAX;
            let _ = read.projections.wait_for(beyond, std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), rebuilding).await.unwrap();
    let head = Story { project: "later".into(), ..Story::default() }.tell(&read).await;
    let ada = person("acme", "ada");
    let prefer = format!("at-least={head}");
    let (status, _, body) = read.ask(&ada, "v_projects", "", &[("prefer", &prefer)]).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("later"), "{body}");
    let (status, _, body) = read.ask(&ada, "v_benchmark_results", "", &[("prefer", &prefer)]).await;
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("rebuilt after an update"), "{body}");
    assert_eq!(read.rows(&ada, "v_benchmark_results", "").await.len(), 2, "the old tables are still shown");
}
