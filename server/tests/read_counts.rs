//! Exact counts of results, which are kept by kind, are those of the rows.

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
async fn both(read: &Read, who: &Visibility, query: &str) -> (String, String) {
    let counted = [("prefer", "count=exact")];
    let (status, headers, body) =
        read.ask(who, "v_benchmark_results", &format!("{query}&limit=1"), &counted).await;
    assert!(status < 300, "{query}: {status} {body}");
    let said = headers["content-range"].to_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let rows = read.rows(who, "v_benchmark_results", query).await;
    (said, rows.len().to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_count_of_any_filter_is_that_of_its_rows() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "counts").await;
    tell(&read).await;
    let people = [person("acme", "ada"), person("acme", "bob"), person("other", "carol"), anonymous()];
    let columns: Vec<&str> = server::projections::views::counts_of(
        server::projections::views::served("v_benchmark_results").unwrap(),
    )
    .unwrap()
    .columns
    .iter()
    .map(|column| column.name.as_str())
    .filter(|name| !["n", "visibility"].contains(name))
    .collect();
    assert!(columns.len() > 15, "{columns:?}");
    let mut seen = 0;
    for who in &people {
        let all = read.rows(who, "v_benchmark_results", "").await;
        let (said, rows) = both(&read, who, "").await;
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
                queries.push(format!("{column}=in.(%22{value}%22)&suspicious=is.false"));
                queries
                    .push(format!("or=({column}.eq.%22{value}%22,and(simulated.is.true,concurrency.gt.4))"));
                // With one that is not counted by.
                queries.push(format!("{column}=eq.{value}&run_number=lte.2"));
                queries.push(format!("{column}=eq.{value}&output_tokens_per_second=gt.1"));
            }
            for query in queries {
                let (said, rows) = both(&read, who, &query).await;
                assert_eq!(said, rows, "{query}");
                seen += usize::from(rows != "0");
            }
        }
    }
    assert!(seen > 200, "{seen} of the filters leave something");
    // Of a position that is gone, the rows are counted.
    let ada = &people[0];
    let head = read.log.head().await.unwrap().position;
    for position in [0, head / 3, head / 2, head] {
        let (said, rows) = both(&read, ada, &format!("status=eq.completed&as_of={position}")).await;
        assert_eq!(said, rows, "as of {position}");
    }
    // Who may see them changes.
    let story = Story { project: "p3".into(), ..Story::default() };
    story.show(&read, ProjectVisibility::Private).await;
    read.settle().await;
    for who in &people {
        let (said, rows) = both(&read, who, "").await;
        assert_eq!(said, rows);
    }
    let reports = server::projections::rebuild::rebuild(&read.pool, &read.log, Some("results"), &read.stop)
        .await
        .unwrap();
    assert!(reports.iter().all(|report| report.equal()), "{reports:?}");
}
