//! The past: results, a run and a job as they stood at a position of the log.

use serde_json::{Value, json};
use support::browser::Browser;

use super::FAST;
use crate::measured::Measured;
use crate::pages::{becomes, visit};

/// At an earlier position there were fewer results.
pub async fn look_back(browser: &Browser, measured: &Measured) {
    let rows = measured.admin.rows("/api/v_benchmark_results?order=position.asc&select=position").await;
    let third = rows[2]["position"].as_i64().expect("a position");
    visit(browser, &format!("/reporting?as-of={third}")).await;
    becomes(
        browser,
        "three results",
        "return document.querySelectorAll('[data-testid=result]').length",
        json!(3),
    )
    .await;
    browser.see("as-of-row").await;
    browser.screenshot("as-of").await;
    browser.click("as-of").await;
    becomes(
        browser,
        "all results",
        "return document.querySelectorAll('[data-testid=result]').length",
        json!(8),
    )
    .await;
}

/// A run and a job as they stood when the second of three jobs had its result.
pub async fn look_back_at_a_run(browser: &Browser, measured: &Measured) {
    let of_run = "workload_code=eq.fast&run_number=eq.1";
    let results = format!("/api/v_benchmark_results?{of_run}&order=position.asc&select=position");
    let second = measured.admin.rows(&results).await[1]["position"].as_i64().expect("a position");
    let jobs = format!("/api/v_jobs?{of_run}&order=ordinal.asc&select=status&as_of={second}");
    let then: Vec<Value> = measured.admin.rows(&jobs).await.iter().map(|j| j["status"].clone()).collect();
    assert!(then.iter().any(|status| status != "completed"), "{then:?}");
    visit(browser, &format!("/projects/main/sizing/fast/1?as-of={second}")).await;
    let statuses =
        "return Array.from(document.querySelectorAll('[data-testid=job]')).map(j => j.dataset.status)";
    becomes(browser, "the jobs as they stood", statuses, json!(then)).await;
    let figures = "return document.querySelectorAll('[data-testid=job] [data-metric=ttft_p50_ms]').length";
    becomes(browser, "the figures there were", figures, json!(2)).await;
    browser.screenshot("run-as-of").await;
    browser.click("as-of").await;
    becomes(browser, "the jobs now", statuses, json!(["completed", "completed", "completed"])).await;
    becomes(browser, "all figures", figures, json!(3)).await;

    // The last job had not ended: no headline, and nothing of its telemetry after that.
    visit(browser, &format!("/projects/{FAST}?as-of={second}")).await;
    let status = "return document.querySelector('.page-head [data-testid=status]')?.dataset.status ?? null";
    browser
        .until(
            "a job that has not ended",
            &format!("const s = (() => {{ {status} }})(); return s && s !== 'completed'"),
        )
        .await;
    let headline = "return document.querySelector('[data-testid=headline-output_tokens_per_second] [data-testid=figure]') === null";
    becomes(browser, "no figure yet", headline, json!(true)).await;
    browser.click("as-of").await;
    becomes(browser, "the job now, doubted", status, json!("flagged")).await;
    becomes(browser, "its figure", headline, json!(false)).await;
    // Before the run there was none.
    visit(browser, "/projects/main/sizing/fast/1?as-of=1").await;
    let words = browser.text("empty").await;
    assert!(words.contains("at this position of the log"), "{words}");
}
