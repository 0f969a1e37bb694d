//! Exact counts of results and of jobs, which are kept by kind, are those of the rows.

mod common;
mod reading;

use common::Cluster;
use events::Event;
use events::job::{JobClaimed, JobLost, JobQueued};
use events::project::ProjectVisibility;
use events::quality::QualityCleared;
use reading::{Read, Story, anonymous, event, person};
use serde_json::Value;
use server::auth::Visibility;

/// Results of every kind, and some that were and are no more.
async fn tell(read: &Read) {
    let base = Story { seconds: 3, progress: 1, ..Story::default() };
    Story { flagged: false, ..base.clone() }.tell(read).await;
    Story { run: 2, ..base.clone() }.again(read).await;
    Story { run: 3, simulated: true, ..base.clone() }.again(read).await;
    let private = Story {
        project: "p2".into(),
        visibility: ProjectVisibility::Private,
        owner: "bob".into(),
        ..base.clone()
    };
    private.tell(read).await;
    Story { project: "p3".into(), visibility: ProjectVisibility::Public, gpus: 4, ..base.clone() }
        .tell(read)
        .await;
    Story { org: "other".into(), project: "p4".into(), ..base.clone() }.tell(read).await;
    // A doubt is cleared.
    let job = base.job(8).stream();
    let job_2 = Story { run: 2, ..base.clone() }.job(8).stream();
    let cleared = QualityCleared { rule: "few_requests".into(), reason: "Enough for a smoke test.".into() };
    read.append(&job_2, vec![event(&job_2, 500.0, &Event::QualityCleared(cleared))]).await;
    // A result ends with its attempt.
    let agent = base.server().agent();
    read.append(
        &job,
        vec![
            event(&job, 600.0, &Event::JobLost(JobLost { attempt: 1, requeue: true })),
            event(&job, 601.0, &Event::JobQueued(JobQueued { requeued: true })),
            event(&job, 602.0, &Event::JobClaimed(JobClaimed { attempt: 2, agent, lease_s: 60 })),
        ],
    )
    .await;
    read.settle().await;
}

/// The count that is said, and the rows that there are.
async fn both(read: &Read, who: &Visibility, view: &str, query: &str) -> (String, String) {
    let counted = [("prefer", "count=exact")];
    let (status, headers, body) = read.ask(who, view, &format!("{query}&limit=1"), &counted).await;
    assert!(status < 300, "{query}: {status} {body}");
    let said = headers["content-range"].to_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let rows = read.rows(who, view, query).await;
    (said, rows.len().to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_count_of_any_filter_is_that_of_its_rows() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "counts").await;
    tell(&read).await;
    for (view, sound, finer) in [
        ("v_benchmark_results", "suspicious=is.false", "output_tokens_per_second=gt.1"),
        ("v_jobs", "simulated=is.false", "attempt=gt.0"),
    ] {
        let seen = filters(&read, view, sound, finer).await;
        assert!(seen > 200, "{seen} of the filters of {view} leave something");
    }
    // Of a position that is gone, the rows are counted.
    let people = people();
    let head = read.log.head().await.unwrap().position;
    for position in [0, head / 3, head / 2, head] {
        for view in ["v_benchmark_results", "v_jobs"] {
            let query = format!("status=eq.completed&as_of={position}");
            let (said, rows) = both(&read, &people[0], view, &query).await;
            assert_eq!(said, rows, "{view} as of {position}");
        }
    }
    // Who may see them changes.
    let story = Story { project: "p3".into(), ..Story::default() };
    story.show(&read, ProjectVisibility::Private).await;
    read.settle().await;
    for who in &people {
        for view in ["v_benchmark_results", "v_jobs"] {
            let (said, rows) = both(&read, who, view, "").await;
            assert_eq!(said, rows, "{view}");
        }
    }
    for projection in ["results", "runs"] {
        let reports =
            server::projections::rebuild::rebuild(&read.pool, &read.log, Some(projection), &read.stop)
                .await
                .unwrap();
        assert!(reports.iter().all(|report| report.equal()), "{reports:?}");
    }
}

fn people() -> [Visibility; 4] {
    [person("acme", "ada"), person("acme", "bob"), person("other", "carol"), anonymous()]
}

/// Asks a view by every column that it is counted by, for everybody. Gives how many of the filters left something.
async fn filters(read: &Read, view: &str, sound: &str, finer: &str) -> usize {
    let served = server::projections::views::served(view).unwrap();
    let shown = |name: &str| served.columns.iter().any(|column| column.name == name);
    let columns: Vec<&str> = server::projections::views::counts_of(served)
        .unwrap()
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .filter(|name| !["n", "visibility"].contains(name) && shown(name))
        .collect();
    assert!(columns.len() > 13, "{columns:?}");
    let mut seen = 0;
    for who in &people() {
        let all = read.rows(who, view, "").await;
        let (said, rows) = both(read, who, view, "").await;
        assert_eq!((&said, &rows), (&all.len().to_string(), &all.len().to_string()));
        for column in &columns {
            let mut values: Vec<String> = all
                .iter()
                .map(|row| match &row[*column] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
                .collect();
            values.sort();
            values.dedup();
            let mut queries = vec![format!("{column}=is.null"), format!("{column}=not.is.null")];
            for value in values.iter().filter(|value| *value != "null") {
                let value: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
                queries.push(format!("{column}=eq.{value}"));
                queries.push(format!("{column}=not.eq.{value}&status=eq.completed"));
                queries.push(format!("{column}=in.(%22{value}%22)&{sound}"));
                queries
                    .push(format!("or=({column}.eq.%22{value}%22,and(simulated.is.true,concurrency.gt.4))"));
                // With one that is not counted by.
                queries.push(format!("{column}=eq.{value}&run_number=lte.2"));
                queries.push(format!("{column}=eq.{value}&{finer}"));
            }
            for query in queries {
                let (said, rows) = both(read, who, view, &query).await;
                assert_eq!(said, rows, "{view} {query}");
                seen += usize::from(rows != "0");
            }
        }
    }
    seen
}
