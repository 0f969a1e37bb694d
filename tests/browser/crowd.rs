//! Fifty jobs at once, eight GPUs each: every sample is on the page once, in order. How long the page is busy and how it
//! grows over two minutes is measured in `make bench`.

use support::crowd::{Load, watch};

#[tokio::test]
async fn fifty_jobs_at_once_are_drawn_without_a_loss_or_a_double() {
    let seen = watch(Load { jobs: 50, gpus: 8, seconds: 20 }).await;
    assert_eq!(seen.on_the_dashboard, seen.in_the_log, "{seen:?}");
    assert!(seen.in_the_log.iter().all(|n| *n == 20 * 26), "{seen:?}");
    assert!(seen.chart.0.iter().all(|n| *n == seen.chart.1), "{seen:?}");
    assert!(seen.chart_in_order, "{seen:?}");
    assert!(seen.draws_per_second <= 4.0, "{seen:?}");
}
