//! What a team keeps from a workload's form: a tool's arguments, engine arguments, and the build that is chosen.

use serde_json::json;
use support::browser::{Browser, DESKTOP};
use support::control_plane::ControlPlane;

use crate::pages::{becomes, set_field, visit};

/// Sets a field as a person would, once it offers that.
async fn set(browser: &Browser, testid: &str, value: &str) {
    let field = format!("document.querySelector('[data-testid=\"{testid}\"]')");
    set_field(browser, &field, testid, value).await;
}

#[tokio::test]
async fn what_is_set_in_the_form_is_kept_for_the_team_and_chosen_again() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let (email, password) = plane.first_sign_in();
    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.sign_in(&email, &password).await;
    visit(&browser, "/projects/new").await;
    set(&browser, "framework", "vllm").await;
    browser.run("document.querySelector('[data-testid=more-arguments]').open = true", json!([])).await;

    // Arguments of the tool.
    set(&browser, "arg-request_timeout", "600").await;
    set(&browser, "tool-args-set-name", "Slow servers").await;
    browser.click("save-tool-args-set-name").await;
    let chosen = "return document.querySelector('[data-testid=tool-args-set]').value";
    becomes(&browser, "the set that is in force", chosen, json!("slow-servers")).await;
    let sets = admin.rows("/api/v_tool_args_sets").await;
    assert_eq!(sets[0]["tool_args"], json!({"request_timeout": 600}));

    // Engine arguments; and the build.
    set(&browser, "engine-args", "max_model_len=4096").await;
    set(&browser, "engine-args-set-name", "Long context").await;
    browser.click("save-engine-args-set-name").await;
    let chosen = "return document.querySelector('[data-testid=engine-args-set]').value";
    becomes(&browser, "the set of engine arguments", chosen, json!("long-context")).await;
    let word = "const e = document.querySelector('[data-testid=engine-args-set]'); \
                return e.options[e.selectedIndex].textContent";
    becomes(&browser, "how it is called", word, json!("long-context (custom)")).await;
    set(&browser, "build-profile", "amd").await;
    let shown = "document.querySelector('[data-testid=tool-args-set]').scrollIntoView({block: 'center'})";
    browser.run(shown, json!([])).await;
    browser.screenshot("project-new-team-sets").await;

    // Another tool has other arguments; the set waits.
    set(&browser, "tool-args-set", "").await;
    let timeout = "return document.querySelector('[data-testid=arg-request_timeout]').value";
    becomes(&browser, "no argument of its own", timeout, json!("")).await;
    set(&browser, "tool-args-set", "slow-servers").await;
    becomes(&browser, "the set's argument", timeout, json!("600")).await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
    browser.close().await;
}
