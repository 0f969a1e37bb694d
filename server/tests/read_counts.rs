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
use server::projections::Kind;

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
    let people = people();
    for who in [&people[0], &people[2]] {
        let seen = bounds(&read, who).await;
        assert!(seen > 100, "{seen} of the bounds leave something");
    }
    // Of a position that is gone, the rows are counted.
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
    bounds(&read, &people[1]).await;
    // What was counted and is no more leaves no trace.
    for table in ["result_counts_v1", "result_figure_counts_v1", "job_counts_v1"] {
        let sql = format!("select count(*) filter (where n <= 0), count(*) from read.{table}");
        let (empty, all): (i64, i64) =
            sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_one(&read.pool).await.unwrap();
        assert!(empty == 0 && all > 0, "{table}: {empty} of {all}");
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

/// Asks results by bounds on every figure and time that they have: at values, beside them, and at the edges of what is
/// counted together. Gives how many of the bounds left something.
async fn bounds(read: &Read, who: &Visibility) -> usize {
    let all = read.rows(who, "v_benchmark_results", "").await;
    let served = server::projections::views::served("v_benchmark_results").unwrap();
    let mut seen = 0;
    for column in served.columns.iter().filter(|column| matches!(column.kind, Kind::Float | Kind::Time)) {
        let name = &column.name;
        let mut values: Vec<String> = match column.kind {
            Kind::Float => {
                let of = |row: &Value| row[name.as_str()].as_f64();
                let numbers: Vec<f64> = all.iter().filter_map(of).collect();
                let Some(some) = numbers.first() else { continue };
                let power = some.abs().max(1.0).log2().floor().exp2();
                let beside = [some.next_up(), some.next_down(), power, power * 1.125, 0.0, -1.0, 1e300];
                numbers.iter().copied().chain(beside).map(|number| number.to_string()).collect()
            }
            _ => {
                let times: Vec<&str> = all.iter().filter_map(|row| row[name.as_str()].as_str()).collect();
                let Some(some) = times.first() else { continue };
                let edges =
                    [format!("{}:00:00Z", &some[..13]), some[..10].to_owned(), "2000-01-01".to_owned()];
                times.iter().map(|time| (*time).to_owned()).chain(edges).collect()
            }
        };
        values.sort();
        values.dedup();
        for (nth, value) in values.iter().enumerate() {
            let other = &values[(nth + 1) % values.len()];
            let filter = ["status=eq.completed", "suspicious=is.false", "model_code=not.is.null"][nth % 3];
            for query in [
                format!("{name}=gt.{value}"),
                format!("{name}=gte.{value}&{filter}"),
                format!("{name}=lt.{value}"),
                format!("{name}=lte.{value}&{filter}&simulated=is.false"),
                format!("{name}=gt.{value}&{name}=lte.{other}"),
                format!("{name}=gte.{value}&{name}=lt.{other}&{filter}"),
                format!("{name}=lt.{value}&concurrency=lte.8"),
            ] {
                let (said, rows) = both(read, who, "v_benchmark_results", &query).await;
                assert_eq!(said, rows, "{query}");
                seen += usize::from(rows != "0");
            }
        }
    }
    seen
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
