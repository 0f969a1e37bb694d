//! Leaderboard: what the control plane ranks is what the page shows, whatever is chosen, now and as it stood.

use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP, PHONE, Window};

use crate::measured::Measured;
use crate::pages::{becomes, fits_the_window, settle, visit};

/// Rank, whether it is shared, and the job behind each entry, as they stand in the table.
const ENTRIES: &str = "return Array.from(document.querySelectorAll('[data-testid=entry]')).map(e => { \
    const rank = e.querySelector('td').textContent; return [Number(e.dataset.rank), rank.startsWith('='), \
    e.dataset.href.replace('/projects/', 'job/')] })";

/// The same as the API ranks it.
async fn ranked(measured: &Measured, query: &str) -> Value {
    let rows = measured.admin.rows(&format!("/api/v_leaderboard?{query}&limit=50")).await;
    rows.iter().map(|r| json!([r["rank"], r["shared"], r["job"]])).collect()
}

#[tokio::test]
async fn the_page_shows_the_control_planes_ranking() {
    let measured = Measured::start().await;
    let browser = measured.browser(DESKTOP).await;

    // Nothing real was measured here: each category says what to do about it.
    visit(&browser, "/leaderboard").await;
    let hint = "return document.querySelector('[data-testid=empty] p').textContent";
    becomes(&browser, "what to do", hint, json!("No result qualifies yet: complete a run on real hardware."))
        .await;
    browser.click_css("[data-testid=empty] button").await;
    becomes(&browser, "the address", "return new URL(location).search", json!("?simulated=true")).await;
    // So short a run is doubted: it counts when that is asked for, which the empty ranking offers.
    browser.click("count-doubted").await;
    let flagged = "return document.querySelector('[data-testid=flagged]').getAttribute('aria-pressed')";
    becomes(&browser, "doubted runs counted", flagged, json!("true")).await;
    for (word, category) in
        [("cost", "cost_efficiency"), ("quality", "quality"), ("energy", "sustainability")]
    {
        browser.click(&format!("tab-{category}")).await;
        becomes(&browser, category, "return new URL(location).searchParams.get('tab')", json!(word)).await;
        settle(&browser, category).await;
        let wanted =
            ranked(&measured, &format!("category=eq.{category}&simulated=is.true&suspicious=is.true")).await;
        becomes(&browser, category, ENTRIES, wanted).await;
    }
    simulated(&browser, &measured).await;
    filters(&browser, &measured).await;
    past(&browser, &measured).await;
    led(&browser, &measured).await;
    columns(&browser).await;
    proof(&browser).await;
    links(&browser, &measured).await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new(), "errors in the browser's console");
    browser.close().await;

    for (name, window) in
        [("leaderboard-dark", Window { dark: true, ..DESKTOP }), ("leaderboard-phone", PHONE)]
    {
        let other = measured.browser(window).await;
        visit(&other, "/leaderboard?simulated=true&flagged=true").await;
        fits_the_window(&other, "/leaderboard").await;
        other.screenshot(name).await;
        other.close().await;
    }
}

/// As it stood: before the second workload was measured there was one entry.
async fn past(browser: &Browser, measured: &Measured) {
    let rows = measured.admin.rows("/api/v_benchmark_results?order=position.asc&select=position").await;
    let third = rows[2]["position"].as_i64().expect("a position");
    visit(browser, &format!("/leaderboard?simulated=true&flagged=true&as-of={third}")).await;
    let query = |at: i64| format!("category=eq.throughput&simulated=is.true&suspicious=is.true&as_of={at}");
    let then = ranked(measured, &query(third)).await;
    assert_eq!(then.as_array().map(Vec::len), Some(1), "{then}");
    becomes(browser, "the ranking then", ENTRIES, then).await;
    browser.see("as-of-row").await;
    browser.screenshot("leaderboard-as-of").await;
    let last = rows[rows.len() - 1]["position"].as_i64().expect("a position");
    visit(browser, &format!("/leaderboard?simulated=true&flagged=true&as-of={last}")).await;
    becomes(browser, "the ranking at the last result", ENTRIES, ranked(measured, &query(last)).await).await;
    browser.click("as-of").await;
    becomes(
        browser,
        "now",
        ENTRIES,
        ranked(measured, "category=eq.throughput&simulated=is.true&suspicious=is.true").await,
    )
    .await;
}

/// Simulated runs are ranked among themselves; the mean of two runs has an interval.
async fn simulated(browser: &Browser, measured: &Measured) {
    visit(browser, "/leaderboard").await;
    browser.click("simulated").await;
    browser.click("flagged").await;
    let wanted = ranked(measured, "category=eq.throughput&simulated=is.true&suspicious=is.true").await;
    assert_eq!(wanted.as_array().map(Vec::len), Some(2), "{wanted}");
    becomes(browser, "simulated runs", ENTRIES, wanted).await;
    becomes(browser, "the address", "return new URL(location).search", json!("?simulated=true&flagged=true"))
        .await;
    let shown = "const e = document.querySelector('[data-testid=entry]'); return [e.querySelector('[data-testid=figure]').dataset.value, e.textContent.includes('±')]";
    let best = measured
        .admin
        .rows("/api/v_leaderboard?simulated=is.true&suspicious=is.true&limit=1")
        .await
        .remove(0);
    let shown = browser.run(shown, json!([])).await;
    let value: f64 =
        shown[0].as_str().and_then(|v| v.replace('\u{202f}', "").parse().ok()).expect("a figure");
    assert!((value - best["value"].as_f64().expect("a value")).abs() < 1e-6 * value, "{shown} {best}");
    assert_eq!(shown[1], json!(best["runs"].as_i64() > Some(1)), "an interval where it ran more than once");
    // Its interval stands on one scale with the others', and the ranking can be had as a file.
    let drawn = "return Array.from(document.querySelectorAll('[data-testid=entry] .interval')).map(i => Array.from(i.querySelectorAll('.range')).every(l => Number(l.getAttribute('x1')) >= 0 && Number(l.getAttribute('x2')) <= 100))";
    becomes(browser, "an interval for each", drawn, json!([true, true])).await;
    browser.screenshot("leaderboard").await;
    let catch = "window.__file = null; URL.createObjectURL = blob => { window.__file = blob; return 'blob:caught' }; HTMLAnchorElement.prototype.click = () => {}; \
        document.querySelector('[data-testid=export-csv]').dispatchEvent(new MouseEvent('click', {bubbles: true}))";
    browser.run(catch, json!([])).await;
    browser.until("the file", "return window.__file !== null").await;
    let lines = browser.run_async("const done = arguments[0]; window.__file.text().then(t => done(t.trimEnd().split('\\n').length))").await;
    assert_eq!(lines, json!(3), "a head and two entries");
    visit(browser, "/leaderboard?simulated=true&flagged=true").await;
}

/// A filter is one click, stands in the address, and makes room for the others.
async fn filters(browser: &Browser, measured: &Measured) {
    browser.click("add-filter").await;
    browser.click_css("[data-testid=chip][data-column=concurrency]").await;
    let chosen =
        browser.until("the filter", "return new URL(location).searchParams.get('concurrency')").await;
    let query = format!(
        "category=eq.throughput&simulated=is.true&suspicious=is.true&concurrency=eq.{}",
        chosen.as_str().expect("a value")
    );
    becomes(browser, "what the filter leaves", ENTRIES, ranked(measured, &query).await).await;
    browser.click_css("[data-testid=filter] button").await;
    becomes(
        browser,
        "the bare address",
        "return new URL(location).search",
        json!("?simulated=true&flagged=true"),
    )
    .await;
}

/// Who led when: the records of single results, as the API has them, each with its proof.
async fn led(browser: &Browser, measured: &Measured) {
    visit(browser, "/leaderboard?simulated=true&flagged=true").await;
    let results = measured
        .admin
        .rows("/api/v_benchmark_results?status=eq.completed&order=finished_at.asc&select=job,output_tokens_per_second")
        .await;
    let mut best = 0.0;
    let records: Vec<Value> = results
        .iter()
        .filter_map(|row| {
            let value = row["output_tokens_per_second"].as_f64()?;
            let beaten = value > best;
            best = f64::max(best, value);
            beaten.then(|| row["job"].clone())
        })
        .collect();
    let drawn = "document.querySelector('[data-testid=chart-record]')?.scrollIntoView({block: 'center'}); \
        return Array.from(document.querySelector('[data-testid=chart-record] .figure-plot')?.data ?? []).map(t => t.customdata[0])";
    becomes(browser, "the records", drawn, Value::from(records)).await;
    browser.screenshot("leaderboard-record").await;
}

/// The columns are chosen, and are in the address.
async fn columns(browser: &Browser) {
    visit(browser, "/leaderboard?simulated=true&flagged=true").await;
    browser.click_css("[data-testid=columns] summary").await;
    browser.click_css("[data-testid=columns] [data-column=interval]").await;
    browser.click_css("[data-testid=columns] [data-column=hostname]").await;
    let heads = "return Array.from(document.querySelectorAll('[data-testid=leaderboard] thead th')).map(t => t.firstChild.textContent)";
    let wanted = browser.run(heads, json!([])).await;
    let has = |name: &str| wanted.as_array().is_some_and(|heads| heads.iter().any(|head| head == name));
    assert!(has("Server") && !has("Interval"), "{wanted}");
    let link = browser.client.current_url().await.expect("an address");
    visit(browser, &format!("{}?{}", link.path(), link.query().unwrap_or_default())).await;
    becomes(browser, "the same columns", heads, wanted).await;
}

/// A figure opens the proof of the mean: its runs, and the newest of them.
async fn proof(browser: &Browser) {
    visit(browser, "/leaderboard?simulated=true&flagged=true").await;
    browser.click_css("[data-testid=entry] [data-testid=figure]").await;
    browser.see("proof").await;
    browser
        .until("the chain", "return document.querySelectorAll('[data-testid=chain] [data-link]').length >= 7")
        .await;
    let same = "return 'job/' + new URL(location).searchParams.get('job') === document.querySelector('[data-testid=entry]').dataset.href.replace('/projects/', 'job/')";
    assert_eq!(browser.run(same, json!([])).await, json!(true));
    // The mean is written out of its runs, and is the number that was clicked.
    let runs = "return Array.from(document.querySelectorAll('[data-testid=run-of-mean] [data-testid=figure]')).map(f => Number(f.dataset.value.replaceAll('\\u202f', '')))";
    browser.until("two runs", &format!("return (() => {{ {runs} }})().length === 2")).await;
    let runs: Vec<f64> = serde_json::from_value(browser.run(runs, json!([])).await).expect("numbers");
    let clicked = "return Number(document.querySelector('[data-testid=entry] [data-testid=figure]').dataset.value.replaceAll('\\u202f', ''))";
    let clicked = browser.run(clicked, json!([])).await.as_f64().expect("a number");
    assert!((runs.iter().sum::<f64>() / 2.0 - clicked).abs() < 1e-6 * clicked, "{runs:?} {clicked}");
    browser.screenshot("leaderboard-proof").await;
    browser.click("close-drawer").await;
}

/// Links open the same ranking in a fresh browser.
async fn links(browser: &Browser, measured: &Measured) {
    let seen = format!(
        "return JSON.stringify([(() => {{ {ENTRIES} }})(), document.querySelector('.tabs [aria-current]').textContent, \
         Array.from(document.querySelectorAll('[data-testid=filter]')).map(f => f.textContent), \
         document.querySelector('[data-testid=drawer-title]')?.textContent ?? null, \
         Array.from(document.querySelectorAll('thead th')).map(t => t.textContent)])"
    );
    let fresh = measured.browser(DESKTOP).await;
    let mut links = Vec::new();
    for tab in ["", "tab=cost&", "tab=quality&", "tab=energy&"] {
        for rest in [
            "",
            "simulated=true&flagged=true",
            "flagged=true&gpu=NVIDIA~20H200",
            "simulated=true&flagged=true&concurrency=1&concurrency=2",
            "simulated=true&flagged=true&as-of=990",
        ] {
            links.push(format!("/leaderboard?{tab}{rest}"));
        }
    }
    links.push(
        "/leaderboard?simulated=true&flagged=true&drawer=proof&job=main/sizing/fast/1/c4-isl64-osl8&metric=ttft_p50_ms"
            .to_owned(),
    );
    for link in links {
        visit(browser, &link).await;
        visit(&fresh, &link).await;
        let wanted = browser.run(&seen, json!([])).await;
        becomes(&fresh, &link, &seen, wanted).await;
    }
    fresh.close().await;
}
