//! `as_of`: what a view says of an earlier position is what it said then.

mod common;
mod reading;

use std::collections::BTreeMap;

use common::Cluster;
use events::Event;
use events::canonical::CanonicalJson;
use events::envelope::{NewEvent, Recorded};
use events::job::{JobClaimed, JobFailed, JobLost, JobQueued, JobRetried};
use events::project::ProjectVisibility;
use events::quality::{QualityCleared, QualityFlagged};
use reading::{Read, Story, anonymous, event, person};
use serde_json::Value;

/// The views that are answered by folding again.
const VIEWS: [&str; 8] = [
    "v_jobs",
    "v_runs",
    "v_scenarios",
    "v_quality_flags",
    "v_telemetry_job_summary",
    "v_telemetry_per_gpu_summary",
    "v_tpu_telemetry_job_summary",
    "v_job_with_telemetry",
];

/// A log with a run, a run whose job is lost, fails, and is tried again with telemetry of each attempt, and doubts that
/// come, go and come again.
async fn tell(read: &Read) {
    let story = Story { seconds: 3, progress: 3, ..Story::default() };
    story.tell(read).await;
    story.leave_behind(read, 8).await;
    let job = story.job(8).stream();
    let one = async |e: Event| read.append(&job, vec![event(&job, 200.0, &e)]).await;
    let rule = || "few_requests".to_owned();
    one(Event::QualityCleared(QualityCleared { rule: rule(), reason: "Enough for a smoke test.".into() }))
        .await;
    one(Event::QualityFlagged(QualityFlagged { attempt: 1, rule: rule(), message: "Still few.".into() }))
        .await;
    let again = Story { run: 2, concurrencies: vec![8], seconds: 3, progress: 2, ..Story::default() };
    again.create_run(read).await;
    again.begin_job(read, 8).await;
    again.load(read, 8).await;
    let job = again.job(8).stream();
    let one = async |e: Event| read.append(&job, vec![event(&job, 300.0, &e)]).await;
    one(Event::JobLost(JobLost { attempt: 1, requeue: true })).await;
    one(Event::JobQueued(JobQueued { requeued: true })).await;
    one(Event::JobClaimed(JobClaimed { attempt: 2, agent: again.server().agent(), lease_s: 60 })).await;
    one(Event::JobFailed(JobFailed {
        attempt: 2,
        code: "server_not_ready".into(),
        message: "The server did not get ready.".into(),
        telemetry_samples: 0,
        log_lines: 0,
    }))
    .await;
    one(Event::JobRetried(JobRetried { attempt: 2 })).await;
}

/// The event, as it would be appended anew.
fn anew(recorded: &Recorded) -> NewEvent {
    NewEvent {
        event_id: recorded.event_id,
        event_type: recorded.event_type.clone(),
        schema_version: recorded.schema_version,
        org: recorded.org.clone(),
        actor: recorded.actor.clone(),
        causation_id: recorded.causation_id,
        correlation_id: recorded.correlation_id,
        occurred_at: recorded.occurred_at,
        payload: CanonicalJson::of(&serde_json::from_str::<Value>(&recorded.payload).unwrap()).unwrap(),
    }
}

/// The rows of a view in an order of their own.
async fn rows(read: &Read, view: &str, query: &str) -> Vec<String> {
    let mut rows: Vec<String> =
        read.rows(&person("acme", "ada"), view, query).await.iter().map(Value::to_string).collect();
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_of_an_earlier_position_is_what_the_view_was_at_that_position() {
    let cluster = Cluster::start().await;
    let script = Read::start(&cluster, "script").await;
    tell(&script).await;
    let read = Read::start(&cluster, "as_of").await;
    let mut then: BTreeMap<i64, Vec<Vec<String>>> = BTreeMap::new();
    // One event at a time, so that what lies between two of them is seen too.
    for recorded in script.log.read_all(0, 10_000).await.unwrap() {
        let position = read.append(&recorded.stream, vec![anew(&recorded)]).await;
        assert_eq!(position, recorded.position);
        read.settle().await;
        let mut seen = Vec::new();
        for view in VIEWS {
            seen.push(rows(&read, view, "").await);
        }
        then.insert(position, seen);
    }
    let last = then.last_key_value().unwrap().1;
    assert!(last.iter().all(|rows| !rows.is_empty()), "every view has something to say: {last:?}");
    for (position, seen) in &then {
        for (view, rows_then) in VIEWS.iter().zip(seen) {
            let now = rows(&read, view, &format!("as_of={position}")).await;
            assert_eq!(&now, rows_then, "{view} as of {position}");
        }
    }
    for view in VIEWS {
        assert!(rows(&read, view, "as_of=0").await.is_empty(), "{view}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_counts_and_exports_are_of_the_rows_as_they_were() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "filters").await;
    let story = Story { concurrencies: vec![1, 8, 16], seconds: 3, ..Story::default() };
    story.prologue(&read).await;
    story.begin_job(&read, 8).await;
    let before = read.log.head().await.unwrap().position;
    story.load(&read, 8).await;
    story.end_job(&read, 8).await;
    read.settle().await;
    let ada = person("acme", "ada");
    let of =
        async |query: &str| read.rows(&ada, "v_jobs", &format!("select=concurrency&{query}")).await.len();
    assert_eq!(of("status=eq.completed").await, 1);
    assert_eq!(of(&format!("status=eq.completed&as_of={before}")).await, 0);
    assert_eq!(of(&format!("phase=eq.running&as_of={before}")).await, 1);
    assert_eq!(of(&format!("phase=eq.running&concurrency=eq.8&run_number=eq.1&as_of={before}")).await, 1);
    assert_eq!(of(&format!("phase=eq.running&job=like.*c16*&as_of={before}")).await, 0);
    assert_eq!(of(&format!("or=(phase.eq.running,concurrency.eq.1)&as_of={before}")).await, 2);
    let counted = [("prefer", "count=exact")];
    let query = format!("phase=eq.pending&as_of={before}&order=concurrency.desc&limit=1&select=concurrency");
    let (status, headers, body) = read.ask(&ada, "v_jobs", &query, &counted).await;
    assert_eq!((status, headers["content-range"].to_str().unwrap()), (206, "0-0/2"), "{body}");
    assert_eq!(body, "[{\"concurrency\":16}]");
    let query = format!("as_of={before}&phase=eq.running");
    let (_, _, csv) = read.ask(&ada, "v_jobs", &query, &[("accept", "text/csv")]).await;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].ends_with(",as_of_position") && lines[1].ends_with(&format!(",{before}")), "{csv}");
    assert_eq!(lines.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_see_an_earlier_row_is_decided_as_of_now() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "rights").await;
    let story = Story { concurrencies: vec![8], seconds: 3, ..Story::default() };
    story.prologue(&read).await;
    story.begin_job(&read, 8).await;
    let before = read.log.head().await.unwrap().position;
    // As nobody else's, and as everybody's.
    story.show(&read, ProjectVisibility::Public).await;
    story.load(&read, 8).await;
    story.leave_behind(&read, 8).await;
    let middle = read.log.head().await.unwrap().position;
    story.end_job(&read, 8).await;
    story.show(&read, ProjectVisibility::Private).await;
    read.settle().await;
    let (ada, bob, carol) = (person("acme", "ada"), person("acme", "bob"), person("other", "carol"));
    let nobody = anonymous();
    let seen = async |who, view: &str, position: i64| {
        read.rows(who, view, &format!("as_of={position}&or=(org.eq.acme,project_code.eq.p1)")).await.len()
    };
    for view in VIEWS.into_iter().filter(|view| *view != "v_quality_flags") {
        assert_ne!(seen(&ada, view, middle).await, 0, "{view}");
        for who in [&bob, &carol, &nobody] {
            assert_eq!(seen(who, view, middle).await, 0, "{view}");
            assert_eq!(seen(who, view, before).await, 0, "{view}");
        }
    }
    story.show(&read, ProjectVisibility::Public).await;
    read.settle().await;
    assert_eq!(seen(&carol, "v_jobs", before).await, 1);
    let row = read.row(&nobody, "v_jobs", &format!("as_of={before}&select=phase")).await;
    assert_eq!(row["phase"], "running");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_answered_for_an_earlier_position_is_refused() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "refused").await;
    Story { concurrencies: vec![1], seconds: 1, ..Story::default() }.tell(&read).await;
    let head = read.settle().await;
    let ada = person("acme", "ada");
    // Nothing keeps or can say what these were.
    for view in server::projections::views::all().iter().filter(|view| view.served) {
        let (status, _, body) = read.ask(&ada, view.name, &format!("as_of={head}&limit=1"), &[]).await;
        match view.history {
            Some(_) => assert_eq!(status, 200, "{}: {body}", view.name),
            None => assert!(status == 400 && body.contains("no_history"), "{}: {status} {body}", view.name),
        }
    }
    // What has not happened yet would be answered otherwise tomorrow.
    for view in ["v_jobs", "v_benchmark_results", "v_leaderboard"] {
        let (status, _, body) = read.ask(&ada, view, &format!("as_of={}", head + 1), &[]).await;
        assert!(status == 400 && body.contains("position_ahead"), "{view}: {status} {body}");
    }
}
