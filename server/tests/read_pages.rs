//! Pages of a sorted view, put one behind the other, are the sorted view.

mod common;
mod reading;

use common::Cluster;
use reading::{Read, Story, person};
use serde_json::Value;

/// The jobs of rows, in their order.
fn jobs(rows: &[Value]) -> Vec<String> {
    rows.iter().map(|row| row["job"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_in_any_order_are_the_whole_in_that_order() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "pages").await;
    // Some with energy, some without; figures that are alike, so that the second column decides.
    let story = Story { seconds: 3, progress: 1, ..Story::default() };
    story.tell(&read).await;
    for run in 2..=4 {
        Story { run, simulated: run == 3, ..story.clone() }.again(&read).await;
    }
    Story { project: "p2".into(), gpus: 0, ..story.clone() }.tell(&read).await;
    read.settle().await;
    let ada = person("acme", "ada");
    let mut with_nulls = 0;
    for (view, columns) in [
        (
            "v_benchmark_results",
            &[
                "ttft_p99_ms",
                "output_tokens_per_second",
                "energy_j",
                "cost_per_million_output_tokens_usd",
                "finished_at",
                "quantization",
                "wer_avg",
            ][..],
        ),
        ("v_jobs", &["finished_at", "claimed_at", "progress_done", "status"]),
    ] {
        for column in columns {
            for order in
                ["desc.nullslast", "asc.nullslast", "desc.nullsfirst", "asc.nullsfirst", "desc", "asc"]
            {
                // A bound on the column itself leaves nothing without a value.
                let bounded = format!("{column}=not.is.null&order={column}.{order},job.desc");
                let known = read.rows(&ada, view, &bounded).await;
                if let Some(least) = known.last().map(|row| match &row[*column] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                }) {
                    let whole = read
                        .rows(&ada, view, &format!("{column}=gte.{least}&order={column}.{order},job.desc"))
                        .await;
                    let page = format!(
                        "{column}=gte.{least}&order={column}.{order},job.desc&limit={}",
                        whole.len() + 3
                    );
                    assert_eq!(jobs(&read.rows(&ada, view, &page).await), jobs(&whole), "{view} {page}");
                }
                // Counted, and few: found by their kinds, and then sorted.
                let bound = ["", "&requests_per_second=gt.0"][usize::from(view == "v_benchmark_results")];
                let filter = format!("status=eq.completed{bound}&order={column}.{order},job.desc");
                let whole = read.rows(&ada, view, &filter).await;
                let mut counted = Vec::new();
                for offset in (0..whole.len()).step_by(2) {
                    let page = format!("{filter}&select=job&limit=2&offset={offset}");
                    let (status, _, body) = read.ask(&ada, view, &page, &[("prefer", "count=exact")]).await;
                    assert!(status < 300, "{page}: {body}");
                    counted.extend(serde_json::from_str::<Vec<Value>>(&body).unwrap());
                }
                assert!(whole.len() > 2);
                assert_eq!(jobs(&counted), jobs(&whole), "{view} {filter}");
                let whole = read.rows(&ada, view, &format!("order={column}.{order},job.desc")).await;
                let nulls = whole.iter().filter(|row| row[*column].is_null()).count();
                with_nulls += usize::from(nulls > 0 && nulls < whole.len());
                assert!(whole.len() > 5);
                for limit in [1, 2, 3, whole.len(), whole.len() + 5] {
                    let mut paged = Vec::new();
                    for offset in (0..whole.len()).step_by(limit) {
                        let query = format!(
                            "select=job,position,figure:{column}&order={column}.{order},job.desc&limit={limit}&offset={offset}"
                        );
                        paged.extend(read.rows(&ada, view, &query).await);
                    }
                    assert_eq!(jobs(&paged), jobs(&whole), "{view} {column}.{order} by {limit}");
                    for (page, row) in paged.iter().zip(&whole) {
                        assert_eq!(page["figure"], row[*column]);
                    }
                }
            }
        }
    }
    assert!(with_nulls >= 6, "{with_nulls} orders have rows with and without a value");
}
