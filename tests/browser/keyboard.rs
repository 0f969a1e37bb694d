//! By keyboard alone: on each page every control is reached by Tab, in the order of the document, is seen to have the focus, and
//! does its work by Enter, Space and the arrows.

use std::collections::BTreeSet;

use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP};
use support::workloads::refserver;

use crate::measured::{HOST, Measured, PROJECT, finished};
use crate::pages::{becomes, settle, visit};

const TAB: &str = "\u{E004}";
const ENTER: &str = "\u{E007}";
const SPACE: &str = " ";
const RIGHT: &str = "\u{E014}";
const DOWN: &str = "\u{E015}";
const END: &str = "\u{E010}";

/// A job with more requests than one window shows.
const MANY: &str = "/projects/main/sizing/many/1/c4-isl64-osl8";

/// Numbers what can be used in the page's content; of the radio buttons of a group the one that Tab leads to.
const CONTROLS: &str = "let n = 0; const groups = new Set(); for (const e of document.querySelectorAll('main :is(a[href], button, input, select, textarea, summary, [tabindex=\"0\"])')) { \
    delete e.dataset.kb; let led = true; \
    if (e.type === 'radio') { const chosen = document.querySelector(`main input[type=radio][name=\"${e.name}\"]:checked`); led = chosen ? chosen === e : !groups.has(e.name); groups.add(e.name); } \
    const shown = e.checkVisibility({ visibilityProperty: true }) && !e.closest('svg, .modebar'); \
    if (shown && led && !e.disabled && e.tabIndex >= 0) e.dataset.kb = n++; } return n";

/// Where the focus is: its number, whether it is seen there (by an outline, its own or its label's, or a shadow), what it is
/// on, and whether that is in the page's content.
const HERE: &str = "const e = document.activeElement; if (!e) return [null, true, '', false]; \
    const ring = e => { const s = getComputedStyle(e); return (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== 'none' }; \
    const label = e.closest('label'); return [e.dataset.kb ?? null, ring(e) || !!label && ring(label), e.outerHTML.slice(0, 140), !!e.closest('main')]";

/// Presses keys where the focus is, as a keyboard does.
async fn key(browser: &Browser, keys: &str) {
    let pressed = keys.chars().fold(KeyActions::new("keyboard".to_owned()), |pressed, value| {
        pressed.then(KeyAction::Down { value }).then(KeyAction::Up { value })
    });
    browser.client.perform_actions(pressed).await.expect("keys");
}

/// Begins at the head of the content.
async fn to_the_top(browser: &Browser) {
    browser.run("document.querySelector('main').focus()", json!([])).await;
}

/// Goes by Tab until the focus is on an element, from where it is.
async fn tab_to(browser: &Browser, css: &str) {
    for _ in 0..400 {
        key(browser, TAB).await;
        let there = browser.run("return document.activeElement.matches(arguments[0])", json!([css])).await;
        if there == json!(true) {
            return;
        }
    }
    panic!("{css} is not reached by Tab");
}

/// Opens a page and begins at the head of its content.
async fn begin(browser: &Browser, path: &str) {
    visit(browser, path).await;
    to_the_top(browser).await;
}

/// Goes by Tab to an element and presses keys there.
async fn press_on(browser: &Browser, css: &str, keys: &str) {
    tab_to(browser, css).await;
    key(browser, keys).await;
}

/// Tab reaches every control of the page's content, in order, and each is seen to have the focus.
async fn everything_is_reached(browser: &Browser, path: &str) {
    visit(browser, path).await;
    let wanted = browser.run(CONTROLS, json!([])).await.as_u64().expect("a number");
    assert!(wanted > 0, "{path}: nothing to use");
    to_the_top(browser).await;
    let (mut reached, mut unseen) = (Vec::new(), Vec::new());
    for _ in 0..wanted + 60 {
        key(browser, TAB).await;
        let here = browser.run(HERE, json!([])).await;
        if here[3] == json!(false) {
            break;
        }
        // What came after the controls were counted, such as an answer about readiness, has no number.
        let Some(number) = here[0].as_str() else { continue };
        if here[1] == json!(false) {
            unseen.push(here[2].clone());
        }
        reached.push(number.parse::<u64>().expect("a number"));
    }
    assert_eq!(unseen, Vec::<Value>::new(), "{path}: the focus is not seen");
    assert!(reached.is_sorted(), "{path}: the order of the focus is not the document's: {reached:?}");
    let missing: Vec<u64> =
        (0..wanted).collect::<BTreeSet<_>>().difference(&reached.into_iter().collect()).copied().collect();
    let name =
        "return arguments[0].map(n => document.querySelector(`[data-kb='${n}']`)?.outerHTML.slice(0, 140))";
    let missing = browser.run(name, json!([missing])).await;
    assert_eq!(missing, json!([]), "{path}: not reached by Tab");
}

#[tokio::test]
async fn every_page_is_used_by_keyboard_alone() {
    let measured = Measured::start().await;
    // More requests than one window shows.
    let mut many = refserver(&[4], 60, 8);
    many["p_workload_code"] = json!("many");
    let add = json!({"p_project_code": PROJECT, "p_workload": many});
    measured.admin.command("create_workload", &add).await;
    let start = json!({"p_project_code": PROJECT, "p_workload_code": "many", "p_config_code": "local-cpu", "p_hostname": HOST});
    let reply = measured.admin.command("start_run", &start).await;
    finished(&measured.admin, reply.keys["run"].as_str().expect("a run"), reply.position).await;

    let browser = measured.browser(DESKTOP).await;
    for path in [
        "/projects/new",
        "/projects/import",
        "/profile",
        "/organization",
        "/catalogue",
        "/hardware?add",
        MANY,
    ] {
        everything_is_reached(&browser, path).await;
    }
    new_project(&browser).await;
    imports(&browser).await;
    profile(&browser).await;
    organization(&browser).await;
    catalogue(&browser).await;
    requests(&browser).await;
    browser.close().await;
}

/// A project is named, its kind and axes chosen, and saved.
async fn new_project(browser: &Browser) {
    begin(browser, "/projects/new").await;
    press_on(browser, "[data-testid=project-name]", "By keyboard").await;
    press_on(browser, "[data-testid=kind] input", RIGHT).await;
    let kind = "return document.querySelector('[data-testid=kind] input:checked').closest('[data-tool]').dataset.tool";
    let second = browser
        .run("return document.querySelectorAll('[data-testid=kind]')[1].dataset.tool", json!([]))
        .await;
    becomes(browser, "the second kind", kind, second).await;
    key(browser, "\u{E012}").await;
    becomes(browser, "the first kind again", kind, json!("metrumbench-llm")).await;
    press_on(browser, "[data-testid=framework]", "refserver").await;
    let framework = "return document.querySelector('[data-testid=framework]').value";
    becomes(browser, "the framework", framework, json!("refserver")).await;
    press_on(browser, "[data-testid=chips-concurrency] [data-value='4'] input", SPACE).await;
    let chips = "return Array.from(document.querySelectorAll('[data-testid=chips-concurrency] input:checked')).map(i => i.closest('[data-value]').dataset.value)";
    becomes(browser, "one concurrency less", chips, json!(["1", "2"])).await;
    press_on(browser, "[data-testid=save]", ENTER).await;
    let saved = "return location.pathname === '/projects/main/by-keyboard' ? document.querySelectorAll('[data-testid=workload]').length : 0";
    becomes(browser, "the project", saved, json!(1)).await;
}

/// Where an import belongs is chosen.
async fn imports(browser: &Browser) {
    begin(browser, "/projects/import").await;
    press_on(browser, "[data-testid=import-project]", "by-keyboard").await;
    let project = "return document.querySelector('[data-testid=import-project]').value";
    becomes(browser, "the project", project, json!("by-keyboard")).await;
    tab_to(browser, "[data-testid=import-file]").await;
}

/// A token is made and revoked.
async fn profile(browser: &Browser) {
    begin(browser, "/profile").await;
    press_on(browser, "[data-testid=token-name]", "nightly").await;
    press_on(browser, "[data-testid=make-token]", SPACE).await;
    browser.see("token").await;
    to_the_top(browser).await;
    press_on(browser, "[data-testid=revoke-token]", ENTER).await;
    // The question has the focus.
    let focus = "return document.activeElement.dataset.testid ?? null";
    becomes(browser, "the question", focus, json!("revoke-token-sure")).await;
    key(browser, ENTER).await;
    let state = "return document.querySelector('[data-testid=api-token]')?.dataset.state ?? null";
    becomes(browser, "the token revoked", state, json!("revoked")).await;
}

/// Somebody is invited.
async fn organization(browser: &Browser) {
    begin(browser, "/organization").await;
    press_on(browser, "[data-testid=invite-email]", "new@example.org").await;
    press_on(browser, "[data-testid=invite]", ENTER).await;
    browser.see("invitation-link").await;
}

/// A list is opened, an entry of it, and compared with another.
async fn catalogue(browser: &Browser) {
    begin(browser, "/catalogue").await;
    press_on(browser, "[data-testid=tab-sets]", ENTER).await;
    browser.until("the sets", "return new URL(location).searchParams.get('tab') === 'sets'").await;
    settle(browser, "the sets").await;
    to_the_top(browser).await;
    press_on(browser, "[data-testid=entry-link]", ENTER).await;
    browser.see("entry").await;
    settle(browser, "the set").await;
    to_the_top(browser).await;
    press_on(browser, "[data-testid=against]", DOWN).await;
    browser.see("set-diff").await;
    let focus = "return document.activeElement.dataset.testid";
    becomes(browser, "the focus where it was", focus, json!("against")).await;
}

/// The requests of a job are gone through: by the slider's arrows, and to the slowest.
async fn requests(browser: &Browser) {
    visit(browser, MANY).await;
    browser.see("requests-slowest").await;
    to_the_top(browser).await;
    tab_to(browser, "[data-testid=requests-place]").await;
    let from = "return new URL(location).searchParams.get('requests')";
    key(browser, RIGHT).await;
    becomes(browser, "one request on", from, json!("1")).await;
    key(browser, END).await;
    becomes(browser, "the last window", from, json!("24")).await;
    to_the_top(browser).await;
    press_on(browser, "[data-testid=requests-earlier]", SPACE).await;
    becomes(browser, "the first window", from, Value::Null).await;
    press_on(browser, "[data-testid=requests-slowest]", ENTER).await;
    let focus = "return document.activeElement.dataset.testid";
    becomes(browser, "the focus where it was", focus, json!("requests-slowest")).await;
}
