//! Audit: the log filtered, one event with its payload, the chain of hashes walked, and the way into the past.

use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP};

use crate::measured::Measured;
use crate::pages::{becomes, visit};

#[tokio::test]
async fn the_log_is_filtered_walked_and_shown_as_it_stood() {
    let measured = Measured::start().await;
    let browser = measured.browser(DESKTOP).await;
    filter(&browser, &measured).await;
    walk(&browser).await;
    look_back(&browser, &measured).await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new(), "errors in the browser's console");
    browser.close().await;
}

/// A type narrows the list to what the API has of it; an event opens beside it.
async fn filter(browser: &Browser, measured: &Measured) {
    visit(browser, "/audit").await;
    browser.choose("audit-type", "job.completed").await;
    becomes(
        browser,
        "the address",
        "return new URL(location).searchParams.get('type')",
        json!("job.completed"),
    )
    .await;
    let rows = measured
        .admin
        .rows("/api/v_events?type=eq.job.completed&order=position.desc&select=position&limit=50")
        .await;
    let wanted: Vec<&Value> = rows.iter().map(|r| &r["position"]).collect();
    assert_eq!(wanted.len(), 8);
    let shown = "return Array.from(document.querySelectorAll('[data-testid=event] th')).map(t => Number(t.textContent.replace(/\\s/g, '')))";
    becomes(browser, "the jobs that completed", shown, json!(wanted)).await;
    browser.click_css("[data-testid=event] a").await;
    browser.see("payload").await;
    browser.click("close-drawer").await;
}

/// The walk says how far it is, and that everything fits.
async fn walk(browser: &Browser) {
    visit(browser, "/audit").await;
    // The bar lives for a moment: it is noted as it appears.
    let note = "window.__bars = []; new MutationObserver(() => { const bar = document.querySelector('.verify [role=progressbar]'); \
        if (bar) window.__bars.push(Number(bar.ariaValueNow)) }).observe(document.body, {subtree: true, childList: true, attributes: true}); return true";
    browser.run(note, json!([])).await;
    browser.click("verify").await;
    let words = browser.see("verified").await.text().await.expect("text");
    assert!(words.contains("intact") && words.contains("events fit"), "{words}");
    let bars = browser.run("return window.__bars", json!([])).await;
    assert_eq!(bars.as_array().and_then(|b| b.last()), Some(&json!(100)), "{bars}");
    browser.screenshot("audit-verified").await;
}

/// The slider goes to a position; from there lead links to the reports as they stood.
async fn look_back(browser: &Browser, measured: &Measured) {
    let rows = measured.admin.rows("/api/v_benchmark_results?order=position.asc&select=position").await;
    let third = rows[2]["position"].as_i64().expect("a position");
    browser.click("as-of").await;
    browser.see("as-of-row").await;
    let slide = "const s = document.querySelector('#as-of-slider'); s.value = arguments[0]; \
        s.dispatchEvent(new Event('input', {bubbles: true})); s.dispatchEvent(new Event('change', {bubbles: true}))";
    browser.run(slide, json!([third])).await;
    becomes(
        browser,
        "the address",
        "return new URL(location).searchParams.get('as-of')",
        json!(third.to_string()),
    )
    .await;
    browser.screenshot("audit-as-of").await;
    browser.click("report-then").await;
    let results = "return document.querySelectorAll('[data-testid=result]').length";
    becomes(browser, "three results", results, json!(3)).await;
    let position =
        "return document.querySelector('[data-testid=as-of-position]').textContent.replace(/\\s/g, '')";
    becomes(browser, "as of the same position", position, json!(third.to_string())).await;
}
