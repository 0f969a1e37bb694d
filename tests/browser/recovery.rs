//! The page recovers by itself and says so: the control plane dies and comes back, the network is cut, the stream is
//! refused, the machine sleeps, the tab that leads is closed, the session ends.

use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP};
use support::proxy::{Mode, Proxy};

use crate::measured::{HOST, Measured, PROJECT};
use crate::pages::{becomes, visit};

const STATE: &str = "return document.querySelector('[data-testid=live]').dataset.state";
const WORDS: &str = "return document.querySelector('[data-testid=live]').textContent.trim()";
const RUNS: &str = "return document.querySelectorAll('[data-testid=run]').length";

/// One more run of the project, cancelled at once: it is seen in the list of runs.
async fn one_more_run(measured: &Measured) {
    let start = json!({"p_project_code": PROJECT, "p_workload_code": "slow", "p_config_code": "local-cpu", "p_hostname": HOST});
    let reply = measured.admin.command("start_run", &start).await;
    let cancel = json!({"p_project_code": PROJECT, "p_workload_code": "slow", "p_run_number": reply.keys["run_number"]});
    measured.admin.command("cancel_run", &cancel).await;
}

async fn loaded_once(browser: &Browser) {
    assert_eq!(
        browser.run("return window.__loaded_once", json!([])).await,
        json!(true),
        "the page was reloaded"
    );
}

/// A browser at the project's page, live, with the three runs that are there.
async fn at_the_project(browser: &Browser) {
    visit(browser, "/projects/main/sizing").await;
    becomes(browser, "the page live", STATE, json!("live")).await;
    browser.run("window.__loaded_once = true", json!([])).await;
    becomes(browser, "three runs", RUNS, json!(3)).await;
}

#[tokio::test]
async fn a_control_plane_that_died_and_came_back_leaves_no_trace_on_the_page() {
    let mut measured = Measured::start().await;
    let browser = measured.browser(DESKTOP).await;
    at_the_project(&browser).await;

    measured.plane.kill();
    becomes(&browser, "the page saying that the stream broke", STATE, json!("broken")).await;
    browser.screenshot("reconnecting").await;

    measured.plane.start_again().await;
    becomes(&browser, "the page live again", STATE, json!("live")).await;
    // What happens after it is seen without a reload.
    one_more_run(&measured).await;
    becomes(&browser, "the fourth run", RUNS, json!(4)).await;
    loaded_once(&browser).await;
    browser.close().await;
}

#[tokio::test]
async fn a_cut_network_a_refused_stream_a_sleep_and_a_closed_tab_are_survived_and_said() {
    let measured = Measured::start().await;
    let proxy = Proxy::to(&measured.plane.url).await;
    let (email, password) = measured.plane.first_sign_in();
    let browser = Browser::open(&proxy.url, DESKTOP).await;
    browser.sign_in(&email, &password).await;
    at_the_project(&browser).await;

    // The network is cut; what happened meanwhile is there when it is back.
    proxy.set(Mode::Cut);
    becomes(&browser, "the cut said", STATE, json!("broken")).await;
    one_more_run(&measured).await;
    proxy.set(Mode::Open);
    becomes(&browser, "what happened during the cut", RUNS, json!(4)).await;
    becomes(&browser, "the page live after the cut", STATE, json!("live")).await;

    // The control plane is overloaded: the page says so, asks again when it may, and no sooner.
    for (status, headers, words) in
        [(429, "retry-after: 2\r\n", "Asked to wait"), (503, "retry-after: 1\r\n", "Refused, trying again")]
    {
        proxy.set(Mode::Refuse { path: "/api/live", status, headers });
        becomes(&browser, "the refusal said", WORDS, json!(words)).await;
        if status == 429 {
            browser.screenshot("refused").await;
        }
        proxy.set(Mode::Open);
        becomes(&browser, "the page live after the refusal", STATE, json!("live")).await;
    }
    one_more_run(&measured).await;
    becomes(&browser, "what happened after the refusals", RUNS, json!(5)).await;

    // The machine sleeps: its connection dies without the page knowing, its clocks stand still.
    browser.devtools("Page.setWebLifecycleState", json!({"state": "frozen"})).await;
    proxy.set(Mode::Cut);
    one_more_run(&measured).await;
    proxy.set(Mode::Open);
    browser.devtools("Page.setWebLifecycleState", json!({"state": "active"})).await;
    becomes(&browser, "what happened during the sleep", RUNS, json!(6)).await;
    becomes(&browser, "the page live after the sleep", STATE, json!("live")).await;
    loaded_once(&browser).await;

    // A second tab follows the first; when that is closed it leads, and misses nothing.
    let first = browser.client.window().await.expect("a window");
    let second = browser.client.new_window(true).await.expect("a tab").handle;
    browser.client.switch_to_window(second.clone()).await.expect("the second tab");
    at_the_project_with(&browser, 6).await;
    let streams = proxy.count("/api/live");
    browser.client.switch_to_window(first).await.expect("the first tab");
    browser.client.close_window().await.expect("closed");
    browser.client.switch_to_window(second).await.expect("the second tab");
    one_more_run(&measured).await;
    becomes(&browser, "what happened after the leading tab closed", RUNS, json!(7)).await;
    becomes(&browser, "the second tab live", STATE, json!("live")).await;
    assert!(proxy.count("/api/live") > streams, "the second tab opened a stream of its own");

    // The session ends elsewhere: the page says that nobody is signed in, and shows what visitors may see.
    browser
        .run_async("const done = arguments[0]; fetch('/api/rpc/sign_out', {method: 'POST', headers: {'content-type': 'application/json', 'x-benchtrail-csrf': '1'}, body: '{}'}).then(r => done(r.status))")
        .await;
    proxy.set(Mode::Refuse { path: "/api/live", status: 401, headers: "" });
    browser
        .until(
            "the visitor",
            "return document.querySelector('[data-testid=rail-user]').textContent.startsWith('visitor')",
        )
        .await;
    browser.see("not-found").await;
    browser.close().await;
}

async fn at_the_project_with(browser: &Browser, runs: usize) {
    visit(browser, "/projects/main/sizing").await;
    becomes(browser, "the page live", STATE, json!("live")).await;
    becomes(browser, "the runs", RUNS, Value::from(runs)).await;
}
