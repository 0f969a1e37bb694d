//! What a run looks like in the views, to whom, and that a rebuild makes the same rows.

mod common;
mod reading;

use common::Cluster;
use events::Event;
use events::project::ProjectVisibility;
use reading::{Read, Story, anonymous, event, person};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_and_its_result_say_what_was_served_and_how() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "served").await;
    let story = Story { concurrencies: vec![8], seconds: 2, ..Story::default() };
    story.tell(&read).await;
    read.settle().await;
    let ada = person("acme", "ada");
    let job = read.rows(&ada, "v_jobs", "").await.remove(0);
    for (name, value) in [
        ("engine_args", json!({"tensor_parallel_size": 2})),
        ("engine_args_set_code", json!("vllm-llama-tp2")),
        ("engine_args_set_version", json!(3)),
        ("container_image", json!("vllm/vllm-openai:v0.28.0")),
        ("replicas", json!(1)),
        ("gpus_per_replica", json!(2)),
        ("gpu_sets", json!(["0,1"])),
        ("weights_revision", json!("ab".repeat(20))),
        ("weights_sha256", Value::Null),
    ] {
        assert_eq!(job[name], value, "{name}");
    }
    let beside = read.rows(&ada, "v_job_with_telemetry", "").await.remove(0);
    assert_eq!(beside["engine_args"], job["engine_args"]);
    let result =
        read.rows(&ada, "v_benchmark_results", "engine_args_set_code=eq.vllm-llama-tp2").await.remove(0);
    for (name, value) in [
        ("engine_args_set_version", json!(3)),
        ("replicas", json!(1)),
        ("gpus_per_replica", json!(2)),
        ("gpus_used", json!(2)),
        ("tensor_parallel_size", json!(2)),
        ("data_parallel_size", Value::Null),
        ("parallelism", json!("TP2")),
    ] {
        assert_eq!(result[name], value, "{name}");
    }
    // Another attempt is served anew: what the one before loaded is not its own.
    let stream = story.job(8).stream();
    let claimed = events::job::JobClaimed { attempt: 2, agent: story.server().agent(), lease_s: 60 };
    read.append(&stream, vec![event(&stream, 90.0, &Event::JobClaimed(claimed))]).await;
    read.settle().await;
    let job = read.rows(&ada, "v_jobs", "").await.remove(0);
    assert_eq!((&job["gpu_sets"], &job["weights_revision"]), (&Value::Null, &Value::Null));
    assert_eq!(job["engine_args_set_version"], 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn throughput_per_gpu_is_that_of_the_gpus_that_were_used() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "used").await;
    Story { concurrencies: vec![8], gpus: 8, ..Story::default() }.tell(&read).await;
    read.settle().await;
    let result = read.row(&person("acme", "ada"), "v_benchmark_results", "").await;
    assert_eq!((&result["gpu_count"], &result["gpus_used"]), (&json!(8), &json!(2)));
    assert_eq!(result["output_tokens_per_second_per_gpu"], 50_000.0 / 28.0 / 2.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_endpoint_on_another_machine_neither_hardware_nor_price_nor_energy_is_known() {
    let cluster = Cluster::start().await;
    for (name, endpoint, elsewhere) in
        [("elsewhere", "https://api.example.org/v1", true), ("here", "http://127.0.0.1:8000/v1", false)]
    {
        let read = Read::start(&cluster, name).await;
        Story { concurrencies: vec![8], endpoint: Some(endpoint), ..Story::default() }.tell(&read).await;
        read.settle().await;
        let result = read.row(&person("acme", "ada"), "v_benchmark_results", "").await;
        assert_eq!(result["external_endpoint"], elsewhere);
        assert!(!result["output_tokens_per_second"].is_null());
        for name in [
            "gpu_name",
            "gpu_count",
            "gpus_used",
            "output_tokens_per_second_per_gpu",
            "cost_per_million_output_tokens_usd",
            "energy_j",
            "output_tokens_per_joule",
        ] {
            assert_eq!(result[name].is_null(), elsewhere, "{name}: {}", result[name]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_in_every_view() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "views").await;
    let story = Story::default();
    story.tell(&read).await;
    let head = read.settle().await;
    let ada = person("acme", "ada");

    let project = read.row(&ada, "v_projects", "project_code=eq.p1").await;
    assert_eq!(project["workloads"], 1);
    assert_eq!(project["last_run_status"], "completed");
    let workload = read.row(&ada, "v_workloads", "").await;
    assert_eq!(workload["engine_args"], json!({"tensor_parallel_size": 2}));
    assert_eq!((&workload["scenarios"], &workload["runs"]), (&json!(2), &json!(1)));
    let run = read.row(&ada, "v_runs", "").await;
    assert_eq!((&run["status"], &run["jobs_completed"]), (&json!("completed"), &json!(2)));
    let jobs =
        read.rows(&ada, "v_jobs", "order=ordinal.desc&select=scenario_code,status,progress_done,flags").await;
    assert_eq!(
        jobs[0],
        json!({"scenario_code": "c8-isl512-osl256", "status": "completed", "progress_done": 50, "flags": ["few_requests"]})
    );
    assert_eq!(read.rows(&ada, "v_scenarios", "concurrency=gt.1").await.len(), 1);
    assert_eq!(read.row(&ada, "v_servers", "").await["gpu_count"], 2);
    assert_eq!(read.row(&anonymous(), "v_models", "").await["model_code"], "meta-llama/Llama-3.1-8B");
    let lines = read.rows(&ada, "v_log_lines", "scenario_code=like.c8*&order=line_number").await;
    assert_eq!(lines[1]["line"], "with\ttab \\ and ä");
    assert_eq!(read.rows(&ada, "v_quality_flags", "cleared=is.false").await.len(), 2);
    let events = read.rows(&ada, "v_events", "stream=eq.run/acme/p1/w1/1&order=position").await;
    assert_eq!(events[0]["type"], "run.created");
    assert_eq!(
        read.rows(&ada, "v_events", "select=position").await.len() as i64,
        head,
        "all of it is hers to see"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_has_its_energy_efficiency_and_cost() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "results").await;
    Story { concurrencies: vec![8], ..Story::default() }.tell(&read).await;
    read.settle().await;
    let ada = person("acme", "ada");
    let result = read.row(&ada, "v_benchmark_results", "").await;
    // 28 s at twice 300 W.
    assert_eq!(result["energy_j"], 16_800.0);
    assert_eq!(result["gpu_power_avg_w"], 600.0);
    assert_eq!(result["output_tokens_per_joule"], 50_000.0 / 16_800.0);
    assert_eq!(result["output_tokens_per_second_per_gpu"], 50_000.0 / 28.0 / 2.0);
    // 7.20 $ an hour for 28 s, for 50,000 tokens.
    let cost = result["cost_per_million_output_tokens_usd"].as_f64().unwrap();
    assert!((cost - 1.12).abs() < 1e-9, "{cost}");
    assert_eq!((&result["suspicious"], &result["status"]), (&json!(true), &json!("completed")));
    let output = read
        .row(&ada, "v_metrumbench_llm_outputs", "select=ttft_p99_ms,ttft_p99_9_ms,requests_succeeded")
        .await;
    assert_eq!(output, json!({"ttft_p99_ms": 300, "ttft_p99_9_ms": null, "requests_succeeded": 199}));

    let summary = read.row(&ada, "v_telemetry_job_summary", "").await;
    assert_eq!(
        (&summary["sample_count"], &summary["complete"], &summary["gaps"]),
        (&json!(31), &json!(true), &json!(0))
    );
    // From second 20 to 50.5 at 600 W.
    assert_eq!(summary["gpu_energy_j"], 18_300);
    assert_eq!(summary["avg_gpu_power_w"], 300);
    let gpus = read.rows(&ada, "v_telemetry_per_gpu_summary", "order=gpu_index").await;
    assert_eq!(gpus.len(), 2);
    assert_eq!(gpus[1]["avg_gpu_utilization"], 0.625);
    assert_eq!(read.row(&ada, "v_job_with_telemetry", "").await["avg_gpu_power_w"], 300);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_read_late_has_the_window_and_the_energy_of_its_load() {
    let cluster = Cluster::start().await;
    // Read 40 s late, when there were no samples any more; with a clock that was set back meanwhile; and of a tool that
    // does not say when its window was.
    for (name, read_late, ended_at) in
        [("late", Some(40.0), 50.0), ("clock_set_back", Some(-1.0), 49.0), ("does_not_say", None, 50.0)]
    {
        let read = Read::start(&cluster, name).await;
        Story { concurrencies: vec![8], read_late, ..Story::default() }.tell(&read).await;
        read.settle().await;
        let result = read.row(&person("acme", "ada"), "v_benchmark_results", "").await;
        assert_eq!(result["energy_j"], 16_800.0, "{name}");
        let ended: events::Timestamp = result["window_ended_at"].as_str().unwrap().parse().unwrap();
        assert_eq!(ended, reading::at(ended_at), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_sample_leaves_no_energy_but_a_gap() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "gaps").await;
    Story { concurrencies: vec![8], lost_samples: vec![10, 11, 12], ..Story::default() }.tell(&read).await;
    read.settle().await;
    let ada = person("acme", "ada");
    assert_eq!(read.row(&ada, "v_benchmark_results", "").await["energy_j"], json!(null));
    let summary = read.row(&ada, "v_telemetry_job_summary", "").await;
    assert_eq!(
        (&summary["gaps"], &summary["complete"], &summary["gpu_energy_j"]),
        (&json!(3), &json!(false), &json!(null))
    );
}

/// The sum of the others is not the power of all: there is no energy then, wherever in the window or at its edge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gpu_missing_from_a_sample_leaves_no_energy_of_all() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "short").await;
    for (n, short) in [vec![0], vec![15], vec![30], (0..15).collect()].into_iter().enumerate() {
        let project = format!("p{n}");
        Story { concurrencies: vec![8], one_gpu_short: short, project, ..Story::default() }.tell(&read).await;
    }
    read.settle().await;
    let ada = person("acme", "ada");
    for n in 0..4 {
        let of = format!("project_code=eq.p{n}");
        let result = read.row(&ada, "v_benchmark_results", &of).await;
        assert_eq!(result["energy_j"], json!(null), "p{n}");
        let summary = read.row(&ada, "v_telemetry_job_summary", &of).await;
        assert_eq!(
            (&summary["gpu_energy_j"], &summary["avg_gpu_power_total_w"], &summary["complete"]),
            (&json!(null), &json!(null), &json!(true)),
            "p{n}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn telemetry_is_there_raw_and_in_buckets() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "telemetry").await;
    Story { concurrencies: vec![8], gpus: 1, ..Story::default() }.tell(&read).await;
    read.settle().await;
    let ada = person("acme", "ada");
    let of =
        |bucket: i64| format!("bucket_s=eq.{bucket}&source=eq.gpu0&metric=eq.power_w&order=bucket_start");
    let raw = read.rows(&ada, "v_telemetry_buckets", &of(1)).await;
    assert_eq!(raw.len(), 31);
    let six = read.rows(&ada, "v_telemetry_buckets", &of(6)).await;
    let count: i64 = six.iter().map(|b| b["count"].as_i64().unwrap()).sum();
    assert_eq!(count, 31, "every sample is in one bucket");
    assert_eq!((&six[0]["min"], &six[0]["avg"], &six[0]["max"]), (&json!(300), &json!(300), &json!(300)));
    let series = read.rows(&ada, "v_telemetry_series", "metric=eq.power_w&bucket_s=eq.6").await;
    let points: usize = series.iter().map(|s| s["avg"].as_array().unwrap().len()).sum();
    assert_eq!(points, six.len());
    let chunks = read.rows(&ada, "v_telemetry_chunks", "source=eq.system").await;
    let samples: usize = chunks.iter().map(|c| c["ram_used_bytes"].as_array().unwrap().len()).sum();
    assert_eq!(samples, 31);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_follow_their_projects_visibility() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "visibility").await;
    let story = Story { concurrencies: vec![1], visibility: ProjectVisibility::Private, ..Story::default() };
    story.tell(&read).await;
    // A file, a TPU, and a result that nobody doubts.
    story.leave_behind(&read, 1).await;
    Story { run: 2, flagged: false, ..story.clone() }.again(&read).await;
    read.settle().await;
    // The story is of one tool: what others put out is not in it.
    let others = ["vlm", "asr", "imagegen", "inferencex", "genai_perf", "kv_cache", "kyai"];
    let views: Vec<&str> = server::projections::views::all()
        .iter()
        .filter(|v| v.served && v.columns.iter().any(|c| c.name == "project_code"))
        .map(|v| v.name)
        .filter(|name| !others.iter().any(|tool| name.contains(tool)))
        .collect();
    assert!(views.len() >= 14, "{views:?}");
    let (ada, bob, eve) = (person("acme", "ada"), person("acme", "bob"), person("other", "ada"));
    let seen = async |who: &server::auth::Visibility| {
        let mut seen = Vec::new();
        for view in &views {
            if !read.rows(who, view, "limit=5").await.is_empty() {
                seen.push(*view);
            }
        }
        seen
    };
    assert_eq!(seen(&ada).await, views, "the owner sees all");
    assert_eq!(seen(&bob).await, Vec::<&str>::new(), "a colleague sees nothing, even an administrator");
    story.show(&read, ProjectVisibility::Organization).await;
    read.settle().await;
    assert_eq!(seen(&bob).await, views);
    assert_eq!(seen(&eve).await, Vec::<&str>::new(), "another organisation sees nothing");
    story.show(&read, ProjectVisibility::Public).await;
    read.settle().await;
    assert_eq!(seen(&anonymous()).await, views);
    story.show(&read, ProjectVisibility::Private).await;
    read.settle().await;
    assert_eq!(seen(&bob).await, Vec::<&str>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_row_policies_hold_without_the_querys_own_condition() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "policies").await;
    Story { visibility: ProjectVisibility::Private, ..Story::default() }.tell(&read).await;
    read.settle().await;
    let count = async |org: &str, user: &str, table: &str| -> i64 {
        let mut tx = read.reader.begin().await.unwrap();
        sqlx::query("select set_config('app.org', $1, true), set_config('app.user', $2, true)")
            .bind(org)
            .bind(user)
            .execute(&mut *tx)
            .await
            .unwrap();
        let sql = format!("select count(*) from read.{table}");
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&mut *tx).await.unwrap()
    };
    for table in ["v_jobs", "jobs_v1", "v_benchmark_results_history", "v_log_lines", "v_events"] {
        assert!(count("acme", "ada", table).await > 0, "{table}");
    }
    for table in ["v_jobs", "jobs_v1", "v_benchmark_results_history", "v_log_lines"] {
        assert_eq!(count("acme", "bob", table).await, 0, "{table}");
        assert_eq!(count("", "", table).await, 0, "{table}");
    }
    let write = sqlx::query("delete from read.jobs_v1").execute(&read.reader).await;
    assert!(write.is_err(), "the reader writes nothing");
    let hidden = sqlx::query("select * from read.result_power_v1").execute(&read.reader).await;
    assert!(hidden.is_err(), "the folds' own tables are not for readers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_can_be_read_as_it_stood() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "as_of").await;
    let story = Story { concurrencies: vec![8], ..Story::default() };
    story.prologue(&read).await;
    story.begin_job(&read, 8).await;
    story.load(&read, 8).await;
    let before = read.log.head().await.unwrap().position;
    let last = story.end_job(&read, 8).await;
    read.settle().await;
    let ada = person("acme", "ada");
    let at = async |position: i64| {
        read.rows(&ada, "v_benchmark_results", &format!("as_of={position}&select=status,suspicious")).await
    };
    assert_eq!(at(before).await, Vec::<Value>::new());
    assert_eq!(at(before + 1).await, [json!({"status": "running", "suspicious": false})]);
    assert_eq!(at(before + 2).await, [json!({"status": "completed", "suspicious": false})]);
    assert_eq!(at(last).await, [json!({"status": "completed", "suspicious": true})]);
}
