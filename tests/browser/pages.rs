//! What every page has in common: how it is waited for, and what it must never do.

use serde_json::{Value, json};
use support::browser::Browser;

/// Opens a page and waits until it has settled: no skeleton, charts in sight drawn.
pub async fn visit(browser: &Browser, path: &str) {
    browser.goto(path).await;
    browser.see("rail").await;
    settle(browser, path).await;
}

/// Waits until nothing is missing any more.
pub async fn settle(browser: &Browser, what: &str) {
    browser
        .until(
            &format!("{what} to settle"),
            "return document.querySelector('h1') !== null && document.querySelector('[data-testid=skeleton]') === null \
             && Array.from(document.querySelectorAll('.figure-plot')).every(p => { \
                const r = p.getBoundingClientRect(); return r.top > innerHeight || r.height === 0 || p.querySelector('.main-svg') !== null })",
        )
        .await;
}

/// Waits until a script yields exactly this.
pub async fn becomes(browser: &Browser, what: &str, script: &str, wanted: Value) {
    let same = format!("return JSON.stringify((() => {{ {script} }})()) === {}", json!(wanted.to_string()));
    browser.until(what, &same).await;
}

/// No request of the page was answered with an error.
pub async fn asked_for_nothing_missing(browser: &Browser) {
    let refused = "return performance.getEntriesByType('resource').filter(r => r.responseStatus >= 400).map(r => `${r.responseStatus} ${r.name}`)";
    assert_eq!(browser.run(refused, json!([])).await, json!([]), "the page asked for what is not there");
}

/// Nothing is wider than the window.
pub async fn fits_the_window(browser: &Browser, path: &str) {
    let wide = "const by = document.documentElement.scrollWidth - innerWidth;
        const out = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth);
        return by > 0 ? [by, ...out.slice(-5).map(e => `${e.tagName}.${e.className} ${e.textContent.slice(0, 40)}`)] : null";
    let wide = browser.run(wide, json!([])).await;
    assert!(wide.is_null(), "{path} scrolls sideways, by pixels and because of {wide}");
}

/// Sets the field that an expression finds as a person would: only what can be chosen, and once it is offered.
pub async fn set_field(browser: &Browser, field: &str, testid: &str, value: &str) {
    let there = format!(
        "const e = {field}; return !!e && (e.tagName !== 'SELECT' || Array.from(e.options).some(o => o.value === {}))",
        json!(value)
    );
    browser.until(&format!("{testid} to offer {value}"), &there).await;
    let script = format!(
        "const e = {field}; e.focus(); e.value = arguments[0]; \
         for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {{bubbles: true}}))"
    );
    browser.run(&script, json!([value])).await;
}

/// Presses a key on the page.
pub async fn press(browser: &Browser, key: &str) {
    let script = "window.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))";
    browser.run(script, json!([key])).await;
}

/// What a button puts on the clipboard.
pub async fn copied_by(browser: &Browser, testid: &str) -> String {
    let catch = "window.__copied = null; \
        navigator.clipboard.writeText = text => { window.__copied = text; return Promise.resolve(); }";
    browser.run(catch, json!([])).await;
    browser.click(testid).await;
    browser.until("the copy", "return window.__copied").await.as_str().expect("text").to_owned()
}
