//! A job's page: a log of a hundred thousand lines without lag, one zoom for all charts, keys that are not there.

use serde_json::json;
use support::browser::DESKTOP;

use crate::measured::Measured;
use crate::pages::{asked_for_nothing_missing, becomes, press, visit};

/// It takes some seconds: there are samples of it.
const JOB: &str = "/projects/main/sizing/slow/1/c1-isl64-osl8";

#[tokio::test]
async fn a_jobs_charts_share_a_zoom_and_its_logs_are_searched_by_address() {
    let measured = Measured::start().await;
    let browser = measured.browser(DESKTOP).await;

    // The zoom is in the address and in every chart.
    visit(&browser, JOB).await;
    asked_for_nothing_missing(&browser).await;
    let ranges = "return Array.from(document.querySelectorAll('[data-testid=telemetry] .figure-plot')).filter(p => p.layout).map(p => p.layout.xaxis.range.map(Number))";
    browser.until("two charts", &format!("return (() => {{ {ranges} }})().length >= 2")).await;
    let drag = "const p = document.querySelector('[data-testid=chart-ram] .figure-plot'); return Plotly.relayout(p, {'xaxis.range[0]': 1, 'xaxis.range[1]': 4}).then(() => true)";
    browser.run(drag, json!([])).await;
    becomes(
        &browser,
        "the zoom in the address",
        "return new URL(location).searchParams.get('zoom')",
        json!("1,4"),
    )
    .await;
    let all = format!(
        "const r = (() => {{ {ranges} }})(); return r.length >= 2 && r.every(([a, b]) => a === 1 && b === 4)"
    );
    browser.until("the same zoom in every chart", &all).await;
    browser.screenshot("job-zoom").await;
    browser.click("zoom-out").await;
    becomes(
        &browser,
        "no zoom in the address",
        "return new URL(location).searchParams.get('zoom')",
        json!(null),
    )
    .await;

    // A search in a log is a link.
    visit(&browser, &format!("{JOB}?log=tool&search=REQUESTS")).await;
    browser.until("a marked hit", "return document.querySelector('[data-testid=logs] mark')?.textContent.toLowerCase() === 'requests'").await;
    let every = "return Array.from(document.querySelectorAll('[data-testid=logs] li')).every(l => l.querySelector('mark'))";
    becomes(&browser, "only lines with the hit", every, json!(true)).await;
    browser.fill("log-search", "nothing of the kind").await;
    browser
        .until(
            "no line",
            "return document.querySelector('[data-testid=log-count]').textContent.startsWith('0 of')",
        )
        .await;

    // A run beside its baseline: the delta of each job's figure, and the columns, are in the address.
    visit(&browser, "/projects/main/sizing/fast/2").await;
    browser.choose("baseline", "1").await;
    let deltas =
        "return Array.from(document.querySelectorAll('[data-testid=delta]')).map(d => d.textContent)";
    browser.until("a delta a job", &format!("return (() => {{ {deltas} }})().length === 3")).await;
    let shown = browser.run(deltas, json!([])).await;
    let select = "select=run_number,scenario_code,output_tokens_per_second&order=scenario_code.asc";
    let of_run = async |run: u32| {
        let path = format!("/api/v_benchmark_results?workload_code=eq.fast&run_number=eq.{run}&{select}");
        let rows = measured.admin.rows(&path).await;
        rows.iter().map(|r| r["output_tokens_per_second"].as_f64().expect("a figure")).collect::<Vec<_>>()
    };
    let (before, now) = (of_run(1).await, of_run(2).await);
    let shown: Vec<String> = serde_json::from_value(shown).expect("texts");
    for (text, (now, before)) in shown.iter().zip(now.iter().zip(&before)) {
        let said: f64 = text.replace('\u{2212}', "-").replace(['\u{202f}', '±'], "").parse().expect(text);
        let wanted = (now / before - 1.0) * 100.0;
        assert!((said - wanted).abs() <= 0.06_f64.max(wanted.abs() * 0.01), "{text} for {wanted}");
    }
    browser.click_css("[data-testid=columns] summary").await;
    browser.click_css("[data-testid=columns] [data-column=tpot_avg_ms]").await;
    browser.screenshot("run-baseline").await;
    let heads =
        "return Array.from(document.querySelectorAll('[data-testid=jobs] thead th')).map(t => t.textContent)";
    let wanted = browser.run(heads, json!([])).await;
    let link = browser.client.current_url().await.expect("an address");
    visit(&browser, &format!("{}?{}", link.path(), link.query().unwrap_or_default())).await;
    becomes(&browser, "the same columns", heads, wanted).await;

    // Keys: the list of keys opens, takes the focus and gives it back.
    visit(&browser, JOB).await;
    press(&browser, "?").await;
    browser.see("keys").await;
    becomes(
        &browser,
        "the focus in the list",
        "return document.activeElement.dataset.testid ?? null",
        json!("close-keys"),
    )
    .await;
    browser.screenshot("keys").await;
    press(&browser, "?").await;
    browser.until("the list gone", "return document.querySelector('[data-testid=keys]') === null").await;

    // A key that is not there offers the nearest that is.
    visit(&browser, "/projects/main/sizing/fsat/1").await;
    browser.see("not-found").await;
    becomes(
        &browser,
        "the nearest keys",
        "return document.querySelector('[data-testid=nearest] a')?.textContent ?? null",
        json!("main/sizing/fast/1"),
    )
    .await;
    browser.screenshot("not-found").await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new(), "errors in the browser's console");
    browser.close().await;
}
