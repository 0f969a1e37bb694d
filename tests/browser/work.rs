//! A day's work: clone a workload to change one thing, see how long it will take, watch it run, stop it.

use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP};
use support::workloads::refserver;

use crate::measured::{HOST, Measured, PROJECT};
use crate::pages::{becomes, settle, visit};

#[tokio::test]
async fn a_workload_is_cloned_estimated_watched_and_stopped() {
    let measured = Measured::start().await;
    let browser = measured.browser(DESKTOP).await;

    // The clone holds what the workload was made of, and says how long it will take from what ran before.
    visit(&browser, "/projects/main/sizing").await;
    browser.click_css("[data-testid=workload][data-code=slow] [data-testid=clone-workload]").await;
    browser.see("new-project-form").await;
    let arguments = "return document.querySelector('[data-testid=engine-args]').value.split('\\n').sort()";
    becomes(&browser, "the engine arguments", arguments, json!(["itl_ms=12", "ttft_ms=20"])).await;
    let chips = "return Array.from(document.querySelectorAll('[data-testid=chips-concurrency] label')).filter(l => l.querySelector('input').checked).map(l => l.dataset.value)";
    becomes(&browser, "the concurrencies", chips, json!(["1", "2"])).await;
    browser
        .until(
            "an estimate",
            "return document.querySelector('[data-testid=estimate]').textContent.startsWith('about')",
        )
        .await;
    browser
        .until(
            "readiness",
            "return document.querySelector('[data-testid=readiness-verdict]').textContent.startsWith('ready')",
        )
        .await;
    browser.screenshot("clone").await;

    several_workloads(&browser).await;

    // A job that takes a while is watched: its telemetry in numbers, its charts, its logs.
    let mut long = refserver(&[1], 200, 8);
    long["p_workload_code"] = json!("long");
    long["p_engine_args"] = json!({"ttft_ms": 200, "itl_ms": 50});
    measured.admin.command("create_workload", &json!({"p_project_code": PROJECT, "p_workload": long})).await;
    let start = json!({"p_project_code": PROJECT, "p_workload_code": "long", "p_config_code": "local-cpu", "p_hostname": HOST});
    measured.admin.command("start_run", &start).await;
    visit(&browser, "/monitoring").await;
    browser.see("telemetry-summary").await;
    let job = "return document.querySelector('[data-testid=watched]').dataset.job";
    becomes(&browser, "the job watched", job, json!("job/main/sizing/long/1/c1-isl64-osl8")).await;
    let samples = "return Number(/(\\d+) samples?/.exec(document.querySelector('[data-testid=telemetry-words]').textContent)?.[1] ?? 0)";
    let first = browser.until("samples", &format!("return (() => {{ {samples} }})() || null")).await;
    let more = format!("return (() => {{ {samples} }})() > {first}");
    browser.until("more samples without a reload", &more).await;
    settle(&browser, "the watched job").await;
    browser.screenshot("monitoring-live").await;

    // It is stopped, and says so.
    visit(&browser, "/projects/main/sizing/long/1").await;
    browser.click("cancel-run").await;
    let status = "return document.querySelector('[data-testid=job]').dataset.status";
    becomes(&browser, "the job cancelled", status, json!("cancelled")).await;
    browser
        .until("no button to cancel it", "return document.querySelector('[data-testid=cancel-run]') === null")
        .await;
    manage(&browser).await;
    let errors = browser.console_errors().await;
    // A maintenance without a reason is refused, on purpose.
    let errors: Vec<&String> = errors.iter().filter(|e| !e.contains("/rpc/set_server_maintenance")).collect();
    assert_eq!(errors, Vec::<&String>::new(), "errors in the browser's console");
    let rows = measured.admin.rows("/api/v_jobs?workload_code=eq.long").await;
    assert_eq!(rows[0]["status"], Value::from("cancelled"));
    browser.close().await;
}

/// Why a server rests, at length.
const WHY: &str =
    "the second power supply hums and is replaced by the night shift; ask before the burn-in has ended";

/// Two workloads at once, typed, lost with the tab, found again and saved.
async fn several_workloads(browser: &Browser) {
    visit(browser, "/projects/new").await;
    browser.fill("project-name", "Two questions").await;
    let verdict =
        "return document.querySelector('[data-testid=readiness-verdict]').textContent.startsWith('ready')";
    browser.until("readiness", verdict).await;
    browser.click("add-card").await;
    let cards = "return document.querySelectorAll('[data-testid=workload-card]').length";
    becomes(browser, "two workloads", cards, json!(2)).await;
    let other = "const select = document.querySelectorAll('[data-testid=quantization]')[1]; select.focus(); \
        select.value = 'q8_0'; select.dispatchEvent(new Event('change', {bubbles: true}))";
    browser.run(other, json!([])).await;
    browser.until("the form kept", "return localStorage.getItem('draft:main')?.includes('q8_0')").await;
    browser.screenshot("project-new-two").await;

    visit(browser, "/projects/new").await;
    browser.see("restored").await;
    becomes(browser, "both workloads again", cards, json!(2)).await;
    let name = "return document.querySelector('[data-testid=project-name]').value";
    becomes(browser, "the name again", name, json!("Two questions")).await;
    let saveable = "return document.querySelector('[data-testid=save]').getAttribute('aria-disabled')";
    becomes(browser, "everything filled in", saveable, json!("false")).await;
    browser.click("save").await;
    let workloads = "return location.pathname === '/projects/main/two-questions' ? document.querySelectorAll('[data-testid=workload]').length : 0";
    becomes(browser, "both workloads saved", workloads, json!(2)).await;
    // What was saved is not kept any more.
    visit(browser, "/projects/new").await;
    becomes(browser, "an empty form", name, json!("")).await;
}

/// A project is renamed, shown to everyone and archived; what waits for silent servers is cancelled; a server is removed.
async fn manage(browser: &Browser) {
    visit(browser, "/projects/main/sizing").await;
    let long = "[data-testid=workload][data-code=long]";
    browser.click_css(&format!("{long} [data-testid=rename]")).await;
    browser.fill("workload-name", "Long answers").await;
    browser.click("rename-workload").await;
    let title =
        format!("return document.querySelector('{long} [data-testid=workload-title]')?.textContent ?? null");
    becomes(browser, "the workload's new name", &title, json!("Long answers")).await;
    let form = "return document.querySelector('[data-testid=rename-form]') === null";
    becomes(browser, "the form closed", form, json!(true)).await;
    browser.click_css(&format!("{long} [data-testid=archive-workload]")).await;
    browser.click_css(&format!("{long} [data-testid=archive-workload-sure]")).await;
    browser.find_css(&format!("{long} [data-testid=workload-archived]")).await;
    let execute = format!("return document.querySelector('{long} [data-testid=start-run]') === null");
    becomes(browser, "an archived workload is not executed", &execute, json!(true)).await;
    browser
        .until("the name", "return document.querySelector('[data-testid=settings-name]').value !== ''")
        .await;
    browser.fill("settings-name", "How many users fit").await;
    browser.click("rename-project").await;
    let head = "return document.querySelector('.page-head .meta').textContent";
    browser
        .until("the new name", &format!("return (() => {{ {head} }})().startsWith('How many users fit')"))
        .await;
    browser.click_css("[data-testid=project-settings] label:has(input[name=visibility]):last-child").await;
    browser.click("set-visibility").await;
    browser
        .until("everyone", &format!("return (() => {{ {head} }})().includes('visible to everyone')"))
        .await;
    browser.screenshot("project-settings").await;
    browser.click("archive-project").await;
    browser.click("archive-project-sure").await;
    browser.see("archived").await;

    visit(browser, "/monitoring").await;
    browser.click("cancel-stale-jobs").await;
    browser.click("cancel-stale-jobs-sure").await;
    browser.see("cancel-stale-jobs").await;

    visit(browser, "/hardware").await;
    // Maintenance begins with a reason, stays said, and ends.
    browser.click("begin-maintenance").await;
    browser.click("maintain").await;
    let refused = "return document.querySelector('[data-testid=maintenance-form] [role=alert] .status')?.textContent ?? null";
    browser
        .until("no maintenance without a reason", &format!("return (() => {{ {refused} }})() !== null"))
        .await;
    browser.fill("maintenance-reason", WHY).await;
    browser.click("maintain").await;
    let mark = "return document.querySelector('[data-testid=in-maintenance]')?.textContent ?? null";
    becomes(browser, "the server in maintenance", mark, json!(format!("maintenance: {WHY}"))).await;
    // A long reason leaves the other columns their room, and the row within the page.
    let room = "const t = document.querySelector('[data-testid=servers]'); return [t.scrollWidth <= t.parentElement.clientWidth, \
        Array.from(t.querySelectorAll('td')).every(td => td.scrollWidth <= td.clientWidth)]";
    becomes(browser, "everything in sight", room, json!([true, true])).await;
    let form = "return document.querySelector('[data-testid=maintenance-form]') === null";
    becomes(browser, "the form closed", form, json!(true)).await;
    browser.screenshot("hardware-maintenance").await;
    browser.click("end-maintenance").await;
    becomes(browser, "the maintenance ended", mark, Value::Null).await;

    browser.click("remove-server").await;
    browser.click("remove-server-sure").await;
    browser.until("no server", "return document.querySelector('[data-testid=server]') === null").await;
}
