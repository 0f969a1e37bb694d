//! The tabs that draw a metric of their own: what tokens cost, how much of the host was in use, the latency beside the
//! throughput; and the days between which results ended.

use serde_json::{Value, json};
use support::browser::Browser;

use crate::pages::{becomes, set_field, visit};

const OFFERED: &str =
    "return Array.from(document.querySelectorAll('[data-testid=chart-y] option')).map(o => o.value)";
const POINTS: &str = "return (document.querySelector('[data-testid=chart-report] .figure-plot').data ?? []).flatMap(t => t.customdata ?? []).length";

/// What a click on the first point of the chart leads to.
async fn click_a_point(browser: &Browser) -> Value {
    let pick = "const p = document.querySelector('[data-testid=chart-report] .figure-plot'); \
        const t = p.data.find(t => t.customdata); p.emit('plotly_click', {points: [{customdata: t.customdata[0]}]}); return t.customdata[0]";
    browser.run(pick, json!([])).await
}

/// Each tab draws, and explains, the metric that it offers.
pub async fn metrics_of_their_own(browser: &Browser) {
    visit(browser, "/reporting?tab=cost&y=output_tokens_per_hour").await;
    let costs =
        json!(["cost_per_million_output_tokens_usd", "output_tokens_per_usd", "output_tokens_per_hour"]);
    becomes(browser, "what the tab offers", OFFERED, costs).await;
    becomes(browser, "every result, by the hour", POINTS, json!(8)).await;
    let hour = "return document.querySelector('[data-testid=chart-report] .figure-plot').data[0].x[0]";
    let best = "return Math.max(...Array.from(document.querySelectorAll('[data-testid=result] [data-metric=output_tokens_per_second]')).map(a => +a.dataset.value))";
    let (hour, best) = (browser.run(hour, json!([])).await, browser.run(best, json!([])).await);
    let (hour, best) = (hour.as_f64().expect("a number"), best.as_f64().expect("a number"));
    assert!((hour / best / 3600.0 - 1.0).abs() < 0.001, "{hour} tokens an hour of {best} a second");
    browser.screenshot("reporting-cost").await;
    click_a_point(browser).await;
    browser.see("proof").await;
    let metric = "return new URL(location).searchParams.get('metric')";
    becomes(browser, "the proof of what an hour follows from", metric, json!("output_tokens_per_second"))
        .await;
    browser.click("close-drawer").await;

    visit(browser, "/reporting?tab=hardware&y=avg_cpu_utilization").await;
    browser
        .until("how much of the processors was in use", &format!("return (() => {{ {POINTS} }})() > 0"))
        .await;
    browser.screenshot("reporting-hardware").await;
    let job = click_a_point(browser).await;
    let path = job.as_str().expect("a job").trim_start_matches("job/").to_owned();
    becomes(
        browser,
        "the page of the job with its samples",
        "return location.pathname",
        json!(format!("/projects/{path}")),
    )
    .await;
    browser.see("telemetry").await;

    visit(browser, "/reporting?tab=concurrency").await;
    browser.see("chart-report-latency").await;
    let same = "const lines = id => (document.querySelector(`[data-testid=${id}] .figure-plot`)?.data ?? []).filter(t => t.customdata).map(t => t.line.color + t.name); \
        const a = lines('chart-report'), b = lines('chart-report-latency'); return a.length >= 3 && JSON.stringify(a) === JSON.stringify(b)";
    browser.until("the same lines in the same colours, by latency", same).await;
    browser.screenshot("saturation").await;
}

/// Only what ended between two days.
pub async fn between_days(browser: &Browser) {
    visit(browser, "/reporting").await;
    browser.click("add-filter").await;
    let field = |testid: &str| format!("document.querySelector('[data-testid={testid}]')");
    set_field(browser, &field("ended-to"), "ended-to", "2000-01-01").await;
    let results = "return document.querySelectorAll('[data-testid=result]').length";
    becomes(browser, "nothing that old", results, json!(0)).await;
    set_field(browser, &field("ended-to"), "ended-to", "2999-12-31").await;
    set_field(browser, &field("ended-from"), "ended-from", "2000-01-01").await;
    becomes(browser, "everything again", results, json!(8)).await;
    let address = "const q = new URL(location).searchParams; return [q.get('ended-from'), q.get('ended-to')]";
    becomes(browser, "the days in the address", address, json!(["2000-01-01", "2999-12-31"])).await;
    browser.click_css("[data-testid=days] button").await;
    becomes(browser, "the days gone", address, json!([null, null])).await;
}

/// The list of projects stands in an order of the address, and says why a project has no best figure.
pub async fn projects_in_order(browser: &Browser) {
    visit(browser, "/projects").await;
    let runs = "return document.querySelector('[data-sort=runs]').closest('th').getAttribute('aria-sort')";
    for (sort, shown) in [(json!("runs"), json!("ascending")), (json!("-runs"), json!("descending"))] {
        browser.click_css("[data-sort=runs]").await;
        becomes(browser, "the order", "return new URL(location).searchParams.get('sort')", sort).await;
        becomes(browser, "its mark", runs, shown).await;
    }
    browser.see("project").await;
    // What the reference server measures is simulated: no project's best.
    let none = "return document.querySelector('[data-testid=best]') === null && document.querySelector('[data-testid=project] td[data-unit] .quiet').title.includes('no real run')";
    becomes(browser, "no best figure, and why", none, json!(true)).await;
}
