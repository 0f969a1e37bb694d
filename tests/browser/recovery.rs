//! The page recovers by itself: the control plane dies and comes back while somebody looks at a run.

use serde_json::json;
use support::browser::DESKTOP;

use crate::measured::{HOST, Measured, PROJECT};
use crate::pages::{becomes, visit};

const STATE: &str = "return document.querySelector('[data-testid=live]').dataset.state";

#[tokio::test]
async fn a_control_plane_that_died_and_came_back_leaves_no_trace_on_the_page() {
    let mut measured = Measured::start().await;
    let browser = measured.browser(DESKTOP).await;
    visit(&browser, "/projects/main/sizing").await;
    becomes(&browser, "the page live", STATE, json!("live")).await;
    browser.run("window.__loaded_once = true", json!([])).await;
    let runs = "return document.querySelectorAll('[data-testid=run]').length";
    becomes(&browser, "three runs", runs, json!(3)).await;

    measured.plane.kill();
    becomes(&browser, "the page saying that the stream broke", STATE, json!("broken")).await;
    browser.screenshot("reconnecting").await;

    measured.plane.start_again().await;
    becomes(&browser, "the page live again", STATE, json!("live")).await;
    // What happens after it is seen without a reload.
    let start = json!({"p_project_code": PROJECT, "p_workload_code": "slow", "p_config_code": "local-cpu", "p_hostname": HOST});
    measured.admin.command("start_run", &start).await;
    becomes(&browser, "the fourth run", runs, json!(4)).await;
    assert_eq!(
        browser.run("return window.__loaded_once", json!([])).await,
        json!(true),
        "the page was reloaded"
    );
    browser.close().await;
}
