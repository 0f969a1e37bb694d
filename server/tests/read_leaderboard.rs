//! The leaderboard: who is ranked, by what, among whom.

mod common;
mod reading;

use common::Cluster;
use events::Event;
use events::project::ProjectVisibility;
use events::quality::{QualityCleared, QualityFlagged};
use reading::{Read, Story, anonymous, event, person};
use serde_json::{Value, json};
use server::auth::Visibility;
use server::projections::rebuild::rebuild;
use tokio_util::sync::CancellationToken;

fn story(project: &str, tokens: u64) -> Story {
    Story {
        project: project.into(),
        concurrencies: vec![8],
        seconds: 10,
        progress: 1,
        tokens,
        flagged: false,
        ..Story::default()
    }
}

/// Project, rank, whether it is shared, runs.
async fn board(read: &Read, who: &Visibility, query: &str) -> Vec<(String, i64, bool, i64)> {
    read.settle().await;
    let rows = read.rows(who, "v_leaderboard", query).await;
    let place = |row: &Value| {
        let number = |name: &str| row[name].as_i64().unwrap();
        let project = row["project_code"].as_str().unwrap().to_owned();
        (project, number("rank"), row["shared"].as_bool().unwrap(), number("runs"))
    };
    rows.iter().map(place).collect()
}

fn place(project: &str, rank: i64, shared: bool, runs: i64) -> (String, i64, bool, i64) {
    (project.to_owned(), rank, shared, runs)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_best_is_first_overlaps_share_a_rank_and_doubted_or_simulated_runs_stay_away() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "ranks").await;
    let ada = person("acme", "ada");
    story("best", 90_000).tell(&read).await;
    story("twin-a", 50_000).tell(&read).await;
    for (run, tokens) in [(2, 52_000), (3, 48_000)] {
        Story { run, ..story("twin-a", tokens) }.again(&read).await;
    }
    story("twin-b", 50_500).tell(&read).await;
    story("last", 1_000).tell(&read).await;
    Story { flagged: true, run: 1, ..story("doubted", 900_000) }.tell(&read).await;
    Story { simulated: true, ..story("simulated", 700_000) }.tell(&read).await;
    let expected = [
        place("best", 1, false, 1),
        place("twin-b", 2, true, 1),
        place("twin-a", 2, true, 3),
        place("last", 4, false, 1),
    ];
    assert_eq!(board(&read, &ada, "").await, expected);
    let mean = read.rows(&ada, "v_leaderboard", "project_code=eq.twin-a").await.remove(0);
    assert_eq!(mean["value"], 50_000.0 / 8.0);
    assert_eq!(mean["job"], "job/acme/twin-a/w1/3/c8-isl512-osl256", "the newest run stands for it");
    let half = mean["interval_half"].as_f64().unwrap();
    assert!((half - 4.303 * 250.0 / 3.0_f64.sqrt()).abs() < 1e-9, "{half}");

    // Asked for, they come.
    assert_eq!(board(&read, &ada, "suspicious=is.true").await[0], place("doubted", 1, false, 1));
    assert_eq!(board(&read, &ada, "simulated=is.true").await, [place("simulated", 1, false, 1)]);
    assert_eq!(board(&read, &ada, "simulated=in.(true,false)").await.len(), 5);

    // Pages keep their ranks, and say of how many.
    let (status, headers, body) = read
        .ask(
            &ada,
            "v_leaderboard",
            "select=r:rank,p:project_code&limit=2&offset=1",
            &[("prefer", "count=exact")],
        )
        .await;
    assert_eq!((status, headers["content-range"].to_str().unwrap()), (206, "1-2/4"));
    assert_eq!(
        serde_json::from_str::<Value>(&body).unwrap(),
        json!([{"r": 2, "p": "twin-b"}, {"r": 2, "p": "twin-a"}])
    );
    let (_, _, csv) =
        read.ask(&ada, "v_leaderboard", "select=rank,project_code", &[("accept", "text/csv")]).await;
    assert_eq!(csv, "rank,project_code\r\n1,best\r\n2,twin-b\r\n2,twin-a\r\n4,last\r\n");
    // Who is filtered away makes room.
    assert_eq!(board(&read, &ada, "project_code=neq.best&limit=1").await, [place("twin-b", 1, true, 1)]);
    assert!(board(&read, &ada, "model_code=eq.nobody/nothing").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_doubt_takes_a_run_away_and_its_clearing_brings_it_back() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "doubts").await;
    let ada = person("acme", "ada");
    let told = story("p1", 50_000);
    told.tell(&read).await;
    let job = told.job(8).stream();
    let flagged = QualityFlagged { attempt: 1, rule: "odd".into(), message: "it looks odd".into() };
    let cleared = QualityCleared { rule: "odd".into(), reason: "it was looked at".into() };
    assert_eq!(board(&read, &ada, "").await.len(), 1);
    read.append(&job, vec![event(&job, 40.0, &Event::QualityFlagged(flagged))]).await;
    assert!(board(&read, &ada, "").await.is_empty());
    read.append(&job, vec![event(&job, 41.0, &Event::QualityCleared(cleared))]).await;
    assert_eq!(board(&read, &ada, "").await, [place("p1", 1, false, 1)]);
    // The run's job is tried again: what it measured before counts no more.
    let claimed = events::job::JobClaimed { attempt: 2, agent: told.server().agent(), lease_s: 60 };
    read.append(&job, vec![event(&job, 42.0, &Event::JobClaimed(claimed))]).await;
    assert!(board(&read, &ada, "").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_category_ranks_its_own_figure_and_only_what_has_one() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "categories").await;
    let ada = person("acme", "ada");
    // Little power, little throughput; and one whose telemetry has a gap.
    Story { watts: 100.0, ..story("frugal", 40_000) }.tell(&read).await;
    Story { watts: 700.0, ..story("thirsty", 60_000) }.tell(&read).await;
    Story { watts: 50.0, lost_samples: vec![4, 5, 6], ..story("gappy", 50_000) }.tell(&read).await;
    let order = async |category: &str| {
        let rows = board(&read, &ada, &format!("category=eq.{category}")).await;
        rows.into_iter().map(|(project, ..)| project).collect::<Vec<_>>()
    };
    assert_eq!(order("throughput").await, ["thirsty", "gappy", "frugal"]);
    assert_eq!(order("sustainability").await, ["frugal", "thirsty"]);
    assert_eq!(order("cost_efficiency").await, ["thirsty", "gappy", "frugal"]);
    assert!(order("quality").await.is_empty());
    let row = read.rows(&ada, "v_leaderboard", "category=eq.cost_efficiency&limit=1").await.remove(0);
    // 60,000 tokens in 8 s of a server of 7.20 $ an hour.
    let per_usd = row["value"].as_f64().unwrap();
    assert!((per_usd - 60_000.0 / (7.2 / 3600.0 * 8.0)).abs() < 1e-6, "{per_usd}");
    assert_eq!(
        (&row["metric"], &row["output_tokens_per_second"]),
        (&json!("output_tokens_per_usd"), &json!(7500))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_setup_stands_once_with_its_best_scenario_and_nobody_is_ranked_among_what_they_may_not_see() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "setups").await;
    let (ada, bob) = (person("acme", "ada"), person("acme", "bob"));
    Story { concurrencies: vec![1, 8, 32], ..story("open", 50_000) }.tell(&read).await;
    let private = Story { visibility: ProjectVisibility::Private, ..story("hidden", 80_000) };
    private.tell(&read).await;
    Story { visibility: ProjectVisibility::Public, ..story("public", 10_000) }.tell(&read).await;
    let names = async |who: &Visibility| {
        let rows = board(&read, who, "").await;
        rows.into_iter().map(|(project, rank, ..)| (project, rank)).collect::<Vec<_>>()
    };
    let named = |names: &[(&str, i64)]| -> Vec<(String, i64)> {
        names.iter().map(|(name, rank)| ((*name).to_owned(), *rank)).collect()
    };
    assert_eq!(names(&ada).await, named(&[("hidden", 1), ("open", 2), ("public", 3)]));
    assert_eq!(names(&bob).await, named(&[("open", 1), ("public", 2)]));
    assert_eq!(names(&anonymous()).await, named(&[("public", 1)]));
    private.show(&read, ProjectVisibility::Public).await;
    assert_eq!(names(&anonymous()).await, named(&[("hidden", 1), ("public", 2)]));
    // Equal figures: the scenario that comes first by its code.
    let scenario = read.rows(&ada, "v_leaderboard", "project_code=eq.open&select=scenario_code").await;
    assert_eq!(scenario, [json!({"scenario_code": "c1-isl512-osl256"})]);
    let filtered = read.rows(&ada, "v_leaderboard", "concurrency=eq.32&select=scenario_code").await;
    assert_eq!(filtered, [json!({"scenario_code": "c32-isl512-osl256"})]);

    let reports = rebuild(&read.pool, &read.log, Some("results"), &CancellationToken::new()).await.unwrap();
    assert!(reports.iter().all(|report| report.equal()), "{reports:?}");
    assert_eq!(names(&anonymous()).await, named(&[("hidden", 1), ("public", 2)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leaderboard_is_shown_as_it_stood_at_any_position() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "past").await;
    let ada = person("acme", "ada");
    // Every step of the story, and the whole board after it.
    let columns = "select=category,metric,rank,shared,value,interval_half,runs,org,project_code,workload_code,\
        scenario_code,model_code,framework_code,config_code,hostname,gpu_name,gpu_count,concurrency,simulated,\
        doubted_runs,output_tokens_per_second,output_tokens_per_joule,suspicious,job,recorded_at,visibility";
    let queries = [
        "category=eq.throughput".to_owned(),
        "category=eq.sustainability&suspicious=is.true".to_owned(),
        "category=eq.cost_efficiency&simulated=in.(true,false)&limit=2&offset=1".to_owned(),
        "category=eq.throughput&project_code=neq.best&concurrency=eq.8".to_owned(),
    ];
    let mut steps: Vec<(i64, Vec<Vec<Value>>)> = Vec::new();
    for step in 0..7 {
        let position = match step {
            0 => story("best", 90_000).tell(&read).await,
            1 => story("twin-a", 50_000).tell(&read).await,
            2 => Story { run: 2, ..story("twin-a", 52_000) }.again(&read).await,
            3 => story("twin-b", 50_500).tell(&read).await,
            4 => Story { simulated: true, ..story("simulated", 700_000) }.tell(&read).await,
            5 => {
                let job = story("best", 90_000).job(8).stream();
                let flagged =
                    QualityFlagged { attempt: 1, rule: "odd".into(), message: "it looks odd".into() };
                read.append(&job, vec![event(&job, 40.0, &Event::QualityFlagged(flagged))]).await
            }
            _ => Story { concurrencies: vec![1, 8, 32], ..story("many", 60_000) }.tell(&read).await,
        };
        read.settle().await;
        let mut boards = Vec::new();
        for query in &queries {
            boards.push(read.rows(&ada, "v_leaderboard", &format!("{query}&{columns}")).await);
        }
        steps.push((position, boards));
    }
    for (position, boards) in &steps {
        for (query, board) in queries.iter().zip(boards) {
            let then = read.rows(&ada, "v_leaderboard", &format!("{query}&{columns}&as_of={position}")).await;
            assert_eq!(&then, board, "{query} at {position}");
        }
    }
    assert!(read.rows(&ada, "v_leaderboard", "as_of=0").await.is_empty());
    assert_eq!(read.ask(&ada, "v_leaderboard", "as_of=5&runs=gt.1", &[]).await.0, 400);
    assert_eq!(read.ask(&ada, "v_leaderboard", "as_of=5&value=gt.1", &[]).await.0, 400);
    // Nobody is ranked in the past among what they may not see now.
    assert!(read.rows(&anonymous(), "v_leaderboard", &format!("as_of={}", steps[6].0)).await.is_empty());
    let (_, headers, _) = read
        .ask(&ada, "v_leaderboard", &format!("as_of={}&limit=1", steps[3].0), &[("prefer", "count=exact")])
        .await;
    assert_eq!(headers["content-range"].to_str().unwrap(), "0-0/3");
}
