//! Reporting: what is picked, compared, zoomed and looked at in the past is in the address; numbers prove themselves.

use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP};

use crate::measured::Measured;
use crate::pages::{becomes, press, settle, visit};

const FAST: &str = "main/sizing/fast/1/c4-isl64-osl8";
const SLOW: &str = "main/sizing/slow/1/c2-isl64-osl8";

/// The jobs of the rows, as they stand in the table.
const ROWS: &str =
    "return Array.from(document.querySelectorAll('[data-testid=result]')).map(r => r.dataset.path)";

#[tokio::test]
async fn results_are_compared_explained_proved_and_shown_as_they_stood() {
    let measured = Measured::start().await;
    let browser = measured.browser(DESKTOP).await;
    visit(&browser, "/reporting").await;
    becomes(
        &browser,
        "eight results",
        "return document.querySelectorAll('[data-testid=result]').length",
        json!(8),
    )
    .await;
    bound(&browser, &measured).await;
    compare(&browser).await;
    explain(&browser).await;
    look_back(&browser, &measured).await;
    prove(&browser).await;
    doubt(&browser).await;
    save_views(&browser).await;
    links_open_the_same_view(&browser, &measured).await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new(), "errors in the browser's console");
    browser.close().await;
}

/// A promise as a filter: only results that keep it.
async fn bound(browser: &Browser, measured: &Measured) {
    let keep = measured.admin.rows("/api/v_benchmark_results?output_tokens_per_second=gte.300").await.len();
    assert!(keep > 0 && keep < 8, "{keep} of 8 results");
    browser.click("add-filter").await;
    browser.choose("limit-figure", "output_tokens_per_second").await;
    browser.fill("limit-value", "300").await;
    browser.click("limit-add").await;
    browser.see("limit").await;
    let rows = "return document.querySelectorAll('[data-testid=result]').length";
    becomes(browser, "the results that keep it", rows, json!(keep)).await;
    browser.screenshot("limit").await;
    browser.click_css("[data-testid=limit] button").await;
    becomes(browser, "all results", rows, json!(8)).await;
    browser.click("add-filter").await;
}

/// What the table is set to is kept under a name, found again and removed.
async fn save_views(browser: &Browser) {
    let query = "return new URL(location).search";
    let rows =
        "return Array.from(document.querySelectorAll('[data-testid=result]')).map(r => r.dataset.path)";
    visit(browser, "/reporting?sort=ttft_p50_ms&drawer=event&position=1").await;
    let sorted = browser.run(rows, json!([])).await;
    browser.click_css("[data-testid=views] summary").await;
    browser.fill("view-name", "Quick to answer").await;
    browser.click("view-shared").await;
    browser.click("save-view").await;
    let entries =
        "return Array.from(document.querySelectorAll('[data-testid=saved-view]')).map(v => v.dataset.code)";
    becomes(browser, "the view in the list", entries, json!(["quick-to-answer"])).await;
    browser.screenshot("saved-views").await;

    // Elsewhere, and back by its name: the same rows in the same order, and nothing of the drawer.
    visit(browser, "/reporting").await;
    browser.click_css("[data-testid=views] summary").await;
    browser.click_css("[data-testid=saved-view] a").await;
    becomes(browser, "the view's address", query, json!("?sort=ttft_p50_ms")).await;
    becomes(browser, "the view's rows", rows, sorted).await;
    browser.click("remove-view").await;
    becomes(browser, "no view in the list", entries, json!([])).await;
}

/// Two rows by keyboard and pointer, the pinned one first, and what differs between them.
async fn compare(browser: &Browser) {
    for job in [FAST, SLOW] {
        browser.click_css(&format!("[data-path='{job}'] [data-testid=pick]")).await;
    }
    becomes(
        browser,
        "two compared",
        "return document.querySelectorAll('[data-testid=compared]').length",
        json!(2),
    )
    .await;
    let differing = "return Array.from(document.querySelectorAll('[data-testid=setting]')).map(s => s.querySelector('th').textContent)";
    becomes(browser, "the settings that differ", differing, json!(["Concurrency", "itl-ms"])).await;

    // The keyboard: to the first row, pinned; what is pinned is no difference to itself.
    press(browser, "j").await;
    let focused = "return document.activeElement.dataset.path ?? null";
    let first = browser.until("the keyboard on a row", focused).await;
    press(browser, "b").await;
    becomes(
        browser,
        "the first row pinned",
        "return document.querySelector('[data-testid=compared]').querySelector('a').title",
        json!(format!("job/{}", first.as_str().expect("a path"))),
    )
    .await;
    becomes(
        browser,
        "three compared",
        "return document.querySelectorAll('[data-testid=compared]').length",
        json!(3),
    )
    .await;
    press(browser, "b").await;
    becomes(
        browser,
        "two again",
        "return document.querySelectorAll('[data-testid=compared]').length",
        json!(2),
    )
    .await;
    // The interval over two runs of the same scenario.
    browser
        .until(
            "an interval",
            "return document.querySelector('[data-testid=compare]').textContent.includes('±')",
        )
        .await;
    settle(browser, "the comparison").await;
    browser.screenshot("compare").await;

    // The logs against each other, in the address too.
    browser.click("diff-framework").await;
    browser.see("log-diff-words").await;
    let stream = "return new URL(location).searchParams.get('logs')";
    becomes(browser, "the stream in the address", stream, json!("framework")).await;
    browser.screenshot("log-diff").await;
    browser.click("diff-none").await;
}

/// The charts say in sentences what they show; a click on a point opens its proof.
async fn explain(browser: &Browser) {
    let words = "return document.querySelector('[data-testid=chart-words]').textContent";
    let frontier = format!("const t = (() => {{ {words} }})(); return t.includes('on the frontier') && t");
    browser.until("the frontier in words", &frontier).await;
    browser.click("tab-concurrency").await;
    let saturation = format!(
        "const t = (() => {{ {words} }})(); return (t.includes('saturates') || t.includes('still climbs')) && t.includes('a third concurrency') && t"
    );
    browser.until("saturation in words", &saturation).await;
    browser.until("the lines", "const p = document.querySelector('[data-testid=chart-report] .figure-plot'); return p.data && p.data.length >= 3").await;
    browser.screenshot("saturation").await;
    for tab in ["model", "framework", "quantization", "hardware", "cost"] {
        browser.click(&format!("tab-{tab}")).await;
        browser.until(tab, &format!("return new URL(location).searchParams.get('tab') === '{tab}'")).await;
    }
    browser.click("tab-pareto").await;
    browser.until("the points", "const p = document.querySelector('[data-testid=chart-report] .figure-plot'); return p.data && p.data.some(t => t.customdata)").await;
    let pick = "const p = document.querySelector('[data-testid=chart-report] .figure-plot'); \
        const t = p.data.find(t => t.customdata); p.emit('plotly_click', {points: [{customdata: t.customdata[0]}]}); return t.customdata[0]";
    let job = browser.run(pick, json!([])).await;
    browser.see("proof").await;
    becomes(
        browser,
        "the proof of that point",
        "return 'job/' + new URL(location).searchParams.get('job')",
        job,
    )
    .await;
    browser.click("close-drawer").await;
}

/// At an earlier position there were fewer results.
async fn look_back(browser: &Browser, measured: &Measured) {
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

/// The proof is checked in the browser and copied as a file.
async fn prove(browser: &Browser) {
    visit(browser, "/reporting").await;
    browser.click_css("[data-testid=result] [data-metric=output_tokens_per_second]").await;
    browser.see("check-proof").await;
    let catch = "window.__copied = null; navigator.clipboard.writeText = text => { window.__copied = text; return Promise.resolve(); }";
    browser.run(catch, json!([])).await;
    browser.click("copy-proof").await;
    browser.see("proof-holds").await;
    let copied = browser.until("the copy", "return window.__copied").await;
    let proof: Value = serde_json::from_str(copied.as_str().expect("text")).expect("JSON");
    assert_eq!(proof["format"], "benchtrail.proof.v1");
    let proofs = proof["proofs"].as_array().expect("proofs");
    assert!(proofs.len() >= 7, "{} events", proofs.len());
    for proof in proofs {
        let proof: events::merkle::Proof = serde_json::from_value(proof.clone()).expect("a proof");
        proof.verify().expect("a proof that holds");
    }
    browser.screenshot("proof").await;
    browser.click("close-drawer").await;
}

/// A person doubts a result and clears the doubt with a reason; both stay visible.
async fn doubt(browser: &Browser) {
    visit(browser, &format!("/reporting?drawer=proof&job={SLOW}&metric=ttft_p50_ms")).await;
    browser.click("doubt").await;
    browser.fill("doubt-message", "the host was busy").await;
    browser.click("doubt-submit").await;
    let flag = "[data-testid=flag][data-rule=doubted_by_person]";
    browser.find_css(&format!("{flag}[data-cleared=false]")).await;
    browser.screenshot("doubt").await;
    browser.click_css(&format!("{flag} [data-testid=clear-flag]")).await;
    browser.fill("clear-reason", "measured again, the same").await;
    browser.click("clear-submit").await;
    browser.find_css(&format!("{flag}[data-cleared=true]")).await;
    browser.click("close-drawer").await;
}

/// Copied links open the same view in a fresh browser: rows, chart, zoom, comparison, drawer.
async fn links_open_the_same_view(browser: &Browser, measured: &Measured) {
    let views = [
        "/reporting?sort=-output_tokens_per_second&workload=fast".to_owned(),
        format!(
            "/reporting?sort=ttft_p50_ms&columns=workload_code,scenario_code,ttft_p50_ms&pick={FAST}&pick={SLOW}&pin={SLOW}"
        ),
        "/reporting?run=2&tab=concurrency&y=requests_per_second&zoom=-0.2,1.5,0,200".to_owned(),
        format!("/reporting?workload=slow&x=ttft_p99_ms&drawer=proof&job={SLOW}&metric=ttft_p50_ms"),
    ];
    let seen = format!(
        "const rows = (() => {{ {ROWS} }})(); const chart = document.querySelector('[data-testid=chart-report] .figure-plot'); \
         const text = id => document.querySelector(`[data-testid=${{id}}]`)?.textContent ?? null; \
         if (!chart?.layout) return null; const round = r => r.map(n => Math.round(n * 1000)); \
         return JSON.stringify([rows, Array.from(document.querySelectorAll('[data-sort]')).map(s => s.dataset.sort), \
            document.querySelector('[aria-sort]')?.getAttribute('aria-sort') ?? null, round(chart.layout.xaxis.range), round(chart.layout.yaxis.range), \
            Array.from(document.querySelectorAll('[data-testid=compared] a')).map(a => a.title), text('drawer-title'), text('calculation'), text('chart-words')])"
    );
    let fresh = measured.browser(DESKTOP).await;
    for link in views {
        visit(browser, &link).await;
        visit(&fresh, &link).await;
        // The comparison and the drawer come a moment after the rows.
        let wanted = browser.until(&link, &stable(&seen)).await;
        becomes(&fresh, &link, &seen, wanted.clone()).await;
        let view: Value = serde_json::from_str(wanted.as_str().expect("text")).expect("JSON");
        if link.contains("zoom") {
            assert_eq!(view[3], json!([-200, 1500]), "the zoom of {link}");
        }
    }
    fresh.close().await;
}

/// Yields a view once it holds all that its address names.
fn stable(seen: &str) -> String {
    format!(
        "const v = (() => {{ {seen} }})(); if (!v) return null; const q = new URL(location).searchParams; const view = JSON.parse(v); \
         const picked = new Set([...q.getAll('pick'), ...q.getAll('pin')]).size; \
         return view[0].length > 0 && view[5].length === picked && (!q.has('drawer') || view[7]) && view[8] && v"
    )
}
