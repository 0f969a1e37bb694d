//! The user's path: sign in, define a workload, Save and Execute, watch it without reload, read the result and its proof.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use support::agent::Agent;
use support::browser::{Browser, DESKTOP, PHONE, Window};
use support::control_plane::ControlPlane;
use support::live::Live;

use crate::pages::{asked_for_nothing_missing, fits_the_window, settle, visit};

const RUN: &str = "/projects/main/gemma-on-this-host/gemma-3-270m-llama-cpp/1";
const JOB: &str = "/projects/main/gemma-on-this-host/gemma-3-270m-llama-cpp/1/c1-isl128-osl64";

#[tokio::test]
async fn a_user_measures_a_model_and_reads_its_proof() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let agent = Agent::start(&plane, &admin, "browser-host").await;
    let mut server = Live::open(&admin, "main:server", 0).await;
    server.until("the server online", |e| e.payload["state"] == "online").await;

    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.goto("/sign-in").await;
    browser.see("sign-in").await;
    browser.screenshot("sign-in").await;
    let (email, password) = plane.first_sign_in();
    browser.sign_in(&email, &password).await;
    browser.see("servers").await;
    browser.screenshot("dashboard-first").await;

    define_and_execute(&browser).await;
    watch_the_run(&browser).await;
    read_the_job(&browser).await;
    read_the_report(&browser).await;
    see_every_page(&browser).await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new(), "errors in the browser's console");
    browser.close().await;

    let dark = Browser::open(&plane.url, Window { dark: true, ..DESKTOP }).await;
    dark.sign_in(&email, &password).await;
    for (name, path) in [("dashboard", "/"), ("run", RUN), ("job", JOB), ("reporting", "/reporting")] {
        visit(&dark, path).await;
        if path != "/" {
            // What a chart shows is read after the page itself.
            dark.until("a chart", "return document.querySelector('.figure-plot .main-svg') !== null").await;
            settle(&dark, path).await;
        }
        dark.screenshot(&format!("{name}-dark")).await;
    }
    dark.close().await;

    let phone = Browser::open(&plane.url, PHONE).await;
    phone.sign_in(&email, &password).await;
    for (name, path) in [("dashboard", "/"), ("run", RUN), ("job", JOB), ("reporting", "/reporting")] {
        visit(&phone, path).await;
        let reading = "return Array.from(document.querySelectorAll('.figure-words')).every(w => w.textContent !== 'Reading.')";
        phone.until("what was to read", reading).await;
        settle(&phone, path).await;
        phone.screenshot(&format!("{name}-phone")).await;
        fits_the_window(&phone, path).await;
    }
    phone.close().await;
    drop(agent);
}

/// New project → Save and Execute; ends on the run's page.
async fn define_and_execute(browser: &Browser) {
    browser.goto("/projects/new").await;
    browser.fill("project-name", "Gemma on this host").await;
    browser.choose("model", "google/gemma-3-270m").await;
    browser.choose("framework", "llama-cpp").await;
    browser.fill("num-requests", "8").await;
    browser.click_css("[data-testid=chips-concurrency] [data-value='4']").await;
    browser
        .until(
            "readiness",
            "const v = document.querySelector('[data-testid=readiness-verdict]'); return v && v.textContent.startsWith('ready')",
        )
        .await;
    browser
        .until(
            "two scenarios",
            "return document.querySelectorAll('[data-testid=scenarios] tbody tr').length === 2",
        )
        .await;
    browser.until("the commands", "const c = document.querySelector('[data-testid=resolved-commands]'); return c && c.textContent.includes('llama-server')").await;
    browser.screenshot("project-new").await;
    browser
        .until(
            "Save and Execute to be allowed",
            "const b = document.querySelector('[data-testid=save-and-execute]'); return b && b.getAttribute('aria-disabled') !== 'true'",
        )
        .await;
    browser.click("save-and-execute").await;
    browser.until("the run's page", &format!("return location.pathname === '{RUN}'")).await;
}

/// Jobs move through their states and charts grow, all without a reload.
async fn watch_the_run(browser: &Browser) {
    browser.run("window.__loaded_once = true", json!([])).await;
    let statuses =
        "return Array.from(document.querySelectorAll('[data-testid=job]')).map(j => j.dataset.status)";
    browser.until("two jobs", "return document.querySelectorAll('[data-testid=job]').length === 2").await;
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let note = |value: Value, seen: &mut BTreeSet<String>| {
        for status in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
            seen.insert(status.to_owned());
        }
    };
    note(browser.run(statuses, json!([])).await, &mut seen);
    browser
        .until(
            "a running job",
            "return document.querySelector('[data-testid=job][data-status=running]') !== null",
        )
        .await;
    note(browser.run(statuses, json!([])).await, &mut seen);
    browser.screenshot("run-live").await;

    // Into the job, by a link of the page itself.
    browser.click_css(&format!("a[href='{JOB}']")).await;
    browser.see("telemetry").await;
    // What the host does and what the load generator reports, each growing by itself.
    for chart in ["chart-cpu", "chart-ram", "chart-progress"] {
        let points = format!(
            "const p = document.querySelector('[data-testid={chart}] .figure-plot'); \
             return (p && p.data && p.data[0] && p.data[0].x) ? p.data[0].x.length : 0"
        );
        let first = browser.until("the first points", &points).await.as_u64().unwrap_or(0);
        browser
            .until("more points", &format!("const n = (() => {{ {points} }})(); return n > {first}"))
            .await;
    }
    let progress = "return document.querySelector('[data-testid=progress]')?.textContent";
    let before = browser.until("the load generator's progress", progress).await;
    let moved = format!(
        "const p = document.querySelector('[data-testid=progress]'); return p === null || p.textContent !== {before}"
    );
    browser.until("its progress to move", &moved).await;
    browser.screenshot("job-live").await;
    asked_for_nothing_missing(browser).await;
    browser.run("history.back()", json!([])).await;
    let all_completed = "const j = Array.from(document.querySelectorAll('[data-testid=job]')); \
        return j.length === 2 && j.every(j => j.dataset.status === 'completed')";
    browser.until("both jobs to complete", all_completed).await;
    note(browser.run(statuses, json!([])).await, &mut seen);
    assert!(seen.contains("running") && seen.contains("completed"), "{seen:?}");
    assert!(seen.contains("pending") || seen.contains("queued"), "{seen:?}");
    assert_eq!(
        browser.run("return window.__loaded_once", json!([])).await,
        json!(true),
        "the page was reloaded"
    );
    // The results are read a moment after the jobs' last events: both rows have their figures, and both charts both points.
    let figures = "return Array.from(document.querySelectorAll('[data-testid=job]')).every(j => j.querySelector('[data-metric=output_tokens_per_second]')) \
        && ['throughput', 'latency'].every(c => { const p = document.querySelector(`[data-testid=chart-${c}] .figure-plot`); \
            return p && p.data && p.data[0].x.length === 2 })";
    browser.until("the figures of both jobs", figures).await;
    browser.screenshot("run").await;
}

/// The job's figures, logs, commands, and the proof of a figure.
async fn read_the_job(browser: &Browser) {
    browser.goto(JOB).await;
    browser.see("headline").await;
    browser
        .until("a chart", "return document.querySelector('[data-testid=chart-cpu] .main-svg') !== null")
        .await;
    browser.screenshot("job").await;
    let text = browser.text("command-tool").await;
    assert!(text.contains("metrumbench-llm"), "{text}");
    browser.click_css("[data-testid=headline] [data-testid=figure]").await;
    browser.see("drawer").await;
    let links = "return Array.from(document.querySelectorAll('[data-testid=chain] [data-link]')).map(l => l.dataset.link)";
    browser
        .until("the chain", "return document.querySelectorAll('[data-testid=chain] [data-link]').length >= 7")
        .await;
    assert_eq!(
        browser.run(links, json!([])).await,
        json!(["project", "workload", "scenario", "run", "job", "invocation", "metrics"])
    );
    browser.screenshot("provenance").await;
    browser.click("close-drawer").await;
    for source in ["framework", "tool", "agent"] {
        browser.click(&format!("log-{source}")).await;
        // Every stream numbers its lines from 1: what is shown must be this stream's.
        browser.until(&format!("lines of the {source}"), &lines_are_of(source)).await;
    }
    browser.screenshot("job-logs").await;
}

/// Whether every line that is drawn is the one that the log of this stream has under its number.
fn lines_are_of(source: &str) -> String {
    format!(
        "return (async () => {{ \
         const shown = Array.from(document.querySelectorAll('[data-testid=logs] li')); \
         const job = encodeURIComponent('job/' + location.pathname.slice('/projects/'.length)); \
         const rows = await (await fetch(`/api/v_log_lines?job=eq.${{job}}&source=eq.{source}&select=line_number,line&limit=5000`)).json(); \
         const of = new Map(rows.map(row => [String(row.line_number), row.line])); \
         return shown.length > 0 && shown.every(li => of.get(li.dataset.line) === li.querySelector('span').textContent); }})()"
    )
}

/// The table of results; its state is a link.
async fn read_the_report(browser: &Browser) {
    browser.goto("/reporting").await;
    browser
        .until("both results", "return document.querySelectorAll('[data-testid=result]').length === 2")
        .await;
    let drawn = "return document.querySelector('[data-testid=chart-report] .main-svg') !== null";
    browser.until("the chart", drawn).await;
    browser.screenshot("reporting").await;
    browser.click_css("[data-testid=result] [data-testid=figure]").await;
    browser.see("proof").await;
    browser
        .until("the chain", "return document.querySelectorAll('[data-testid=chain] [data-link]').length >= 7")
        .await;
    // The events behind it: when, who, what, with which hash, at which position.
    let event = "const e = Array.from(document.querySelectorAll('[data-testid=proof-event]')) \
        .find(e => e.textContent.includes('tool_output.recorded')); \
        return e ? [e.title, e.querySelector('.event-by').textContent, e.querySelector('.event-by .key').title, \
        e.querySelector('.position').textContent] : null";
    let event = browser.until("the event that has the figures", event).await;
    let part = |at: usize| event[at].as_str().unwrap_or_default().to_owned();
    assert!(part(0).contains('T') && part(0).ends_with('Z'), "{event}");
    assert!(part(1).starts_with("agent "), "{event}");
    assert!(part(2).len() == 64 && part(2).chars().all(|c| c.is_ascii_hexdigit()), "{event}");
    assert!(part(3).chars().any(|c| c.is_ascii_digit()), "{event}");
    browser.screenshot("reporting-provenance").await;
    // A deep link opens the same view.
    let link = browser.client.current_url().await.expect("an address");
    let state = "return JSON.stringify([document.querySelector('[data-testid=drawer-title]').textContent, \
        Array.from(document.querySelectorAll('[data-testid=result]')).map(r => r.dataset.job)])";
    let before = browser.run(state, json!([])).await;
    browser.client.goto("about:blank").await.expect("elsewhere");
    browser.client.goto(link.as_str()).await.expect("the link");
    browser.see("proof").await;
    browser
        .until("both results again", "return document.querySelectorAll('[data-testid=result]').length === 2")
        .await;
    assert_eq!(browser.run(state, json!([])).await, before, "{link}");
}

async fn see_every_page(browser: &Browser) {
    for (name, path) in [
        ("dashboard", "/"),
        ("projects", "/projects"),
        ("project", "/projects/main/gemma-on-this-host"),
        ("monitoring", "/monitoring"),
        ("leaderboard-empty", "/leaderboard"),
        ("hardware", "/hardware"),
        ("catalogue", "/catalogue"),
        ("audit", "/audit"),
        ("profile", "/profile"),
        ("not-found-project", "/projects/main/no-such-project"),
    ] {
        visit(browser, path).await;
        browser.screenshot(name).await;
    }
}
