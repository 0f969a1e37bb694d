//! Figures of the page: what the first page loads, how soon it is there, what Lighthouse says, fifty jobs at once.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::agent::Agent;
use support::binaries::cache;
use support::browser::{Browser, DESKTOP};
use support::control_plane::{ControlPlane, page_dir};
use support::crowd::{Load, watch};
use support::live::Live;
use support::workloads;

use super::{percentile, row, setting, table};

/// Measures these parts: `size`, `paint`, `lighthouse`, `table`, `crowd`; all of them where none is named.
pub async fn measure(parts: &[String]) {
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|p| p == part);
    if wanted("size") {
        sizes();
    }
    if ["paint", "lighthouse", "table"].into_iter().any(wanted) {
        one_plant(wanted).await;
    }
    if wanted("crowd") {
        crowd().await;
    }
}

async fn one_plant(wanted: impl Fn(&str) -> bool) {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    // Something to show: a project with results.
    let agent = Agent::start(&plane, &admin, "page-host").await;
    let mut server = Live::open(&admin, "main:server", 0).await;
    server.until("the server online", |e| e.payload["state"] == "online").await;
    let workload = workloads::refserver(&[1, 2, 4, 8], 24, 8);
    let (run, position) = agent.execute(&admin, "page", workload).await;
    let mut live = Live::open(&admin, "main/page:run", position).await;
    live.until("the end of the run", |e| e.event_type == "run.finished" && e.stream == run).await;

    if wanted("paint") {
        for rate in [1, 4] {
            paints(&plane, rate).await;
        }
    }
    // As it is with a handful of results, when the charts are in sight at once, and with ten thousand.
    let cookie = admin.cookie().expect("a session");
    if wanted("lighthouse") {
        lighthouse(&plane, cookie, "4 results");
    }
    if wanted("table") {
        table::measure(&plane, &admin).await;
        if wanted("lighthouse") {
            lighthouse(&plane, cookie, &format!("{} results", table::results()));
        }
    }
}

/// The bytes of the files with this ending, as they are and by brotli.
fn bytes(files: &[PathBuf]) -> (u64, u64) {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    let brotli = |path: &Path| {
        let output = Command::new("brotli").args(["-c", "-q", "11"]).arg(path).output();
        output.map_or(0, |o| o.stdout.len() as u64)
    };
    (files.iter().map(|f| size(f)).sum(), files.iter().map(|f| brotli(f)).sum())
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

fn sizes() {
    let mut all = Vec::new();
    files(&page_dir(), &mut all);
    let wasm: Vec<PathBuf> = all.into_iter().filter(|p| p.extension().is_some_and(|e| e == "wasm")).collect();
    let first: Vec<PathBuf> = wasm.iter().filter(|p| p.ends_with("app_bg.wasm")).cloned().collect();
    for (words, files, aim) in [
        ("page: wasm of the first page (dashboard)", &first, "≤ 250 kB brotli"),
        ("page: wasm in all, the rest fetched when it is opened or idle", &wasm, "–"),
    ] {
        let (plain, packed) = bytes(files);
        let value = format!(
            "{:.0} kB, {:.0} kB brotli ({} files)",
            plain as f64 / 1e3,
            packed as f64 / 1e3,
            files.len()
        );
        row(words, value, aim);
    }
}

/// First paint and first use of the dashboard, the processor as it is or slowed down.
async fn paints(plane: &ControlPlane, rate: u32) {
    let (email, password) = plane.first_sign_in();
    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.sign_in(&email, &password).await;
    browser.devtools("Emulation.setCPUThrottlingRate", json!({"rate": rate})).await;
    let (mut paints, mut ready) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        browser.goto("/").await;
        let script =
            "const p = performance.getEntriesByName('first-contentful-paint')[0]; return p && p.startTime";
        paints.push(browser.until("the first paint", script).await.as_f64().unwrap_or(f64::NAN));
        // Interactive: the program has mounted its frame and answers.
        browser.see("rail").await;
        let mounted = browser.run("return performance.now()", json!([])).await;
        ready.push(mounted.as_f64().unwrap_or(f64::NAN));
    }
    paints.sort_by(f64::total_cmp);
    ready.sort_by(f64::total_cmp);
    let slow = if rate == 1 { String::new() } else { format!(", processor {rate} × slower") };
    row(
        &format!("page: first contentful paint, median of 7{slow}"),
        format!("{:.0} ms", paints[3]),
        "≤ 800 ms, 4 × slower",
    );
    row(
        &format!("page: frame mounted (seen by the driver), median of 7{slow}"),
        format!("{:.0} ms", ready[3]),
        "≤ 1,200 ms, 4 × slower",
    );
    browser.close().await;
}

/// Lighthouse's scores of two pages, for a desk and for a phone.
fn lighthouse(plane: &ControlPlane, cookie: &str, holding: &str) {
    let program = cache().join("npm/lighthouse/node_modules/.bin/lighthouse");
    if !program.exists() {
        row(
            "Lighthouse",
            "not installed: scripts/setup bench".to_owned(),
            "performance ≥ 95, accessibility 100",
        );
        return;
    }
    let headers = json!({"Cookie": cookie}).to_string();
    for (name, path) in [("dashboard", "/"), ("reporting", "/reporting")] {
        for (device, preset) in [("desk", Some("--preset=desktop")), ("phone", None)] {
            let output = Command::new(&program)
                .arg(format!("{}{path}", plane.url))
                .args(["--quiet", "--output=json", "--only-categories=performance,accessibility"])
                .arg("--chrome-flags=--headless=new --no-sandbox --disable-dev-shm-usage --disable-gpu")
                .arg(format!("--extra-headers={headers}"))
                .args(preset)
                .env("CHROME_PATH", "/usr/bin/chromium")
                .output();
            let value = match output {
                Ok(output) => match serde_json::from_slice::<Value>(&output.stdout) {
                    Ok(report) => scores(&report),
                    Err(error) => {
                        format!("no report: {error}; {}", String::from_utf8_lossy(&output.stderr).trim())
                    }
                },
                Err(error) => format!("not started: {error}"),
            };
            row(
                &format!("Lighthouse, {name}, {device}, {holding}"),
                value,
                "performance ≥ 95, accessibility 100",
            );
        }
    }
}

/// The rules of accessibility that are not kept.
fn missed(report: &Value) -> String {
    let of_category = report["categories"]["accessibility"]["auditRefs"].as_array().into_iter().flatten();
    let missed: Vec<&str> = of_category
        .filter_map(|audit| audit["id"].as_str())
        .filter(|id| report["audits"][*id]["score"].as_f64().is_some_and(|score| score < 1.0))
        .collect();
    if missed.is_empty() { String::new() } else { format!(" [{}]", missed.join(", ")) }
}

fn scores(report: &Value) -> String {
    let score = |category: &str| {
        report["categories"][category]["score"]
            .as_f64()
            .map_or("–".to_owned(), |s| format!("{:.0}", s * 100.0))
    };
    let shown = |audit: &str| report["audits"][audit]["displayValue"].as_str().unwrap_or("–").to_owned();
    format!(
        "performance {}, accessibility {}{} (first paint {}, largest {}, blocked {}, shift {})",
        score("performance"),
        score("accessibility"),
        missed(report),
        shown("first-contentful-paint"),
        shown("largest-contentful-paint"),
        shown("total-blocking-time"),
        shown("cumulative-layout-shift")
    )
}

async fn crowd() {
    let seconds = setting("CROWD_SECONDS", 120);
    let seen = watch(Load { jobs: 50, gpus: 8, seconds }).await;
    let held = seen.on_the_dashboard.iter().sum::<u64>();
    let sent = seen.in_the_log.iter().sum::<u64>();
    let exact = if seen.on_the_dashboard == seen.in_the_log { "each job alike" } else { "NOT alike" };
    row(
        &format!("50 jobs × 8 GPUs, {seconds} s: values on the dashboard"),
        format!("{held} of {sent} in the log, {exact}"),
        "all, none twice",
    );
    row(
        "… longest task of the main thread",
        format!("{:.0} ms ({} over 50 ms)", seen.longest_task_ms, seen.long_tasks),
        "≤ 100 ms",
    );
    let (frame, script, layout) = seen.longest_frame_ms;
    row(
        "… longest frame",
        format!("{frame:.0} ms, of it {script:.0} ms in scripts, {layout:.0} ms in style, layout and paint"),
        "–",
    );
    let (first, last) = seen.held;
    let quarter = seconds / 4;
    for (words, first, last, aim) in [
        ("heap and program memory", first.heap + first.program, last.heap + last.program, "within 10 %"),
        ("JavaScript heap alone", first.heap, last.heap, "–"),
        ("the program's memory alone", first.program, last.program, "–"),
    ] {
        row(
            &format!("… {words}, after {quarter} s and at the end"),
            format!("{:.1} MB, {:.1} MB ({:+.1} %)", first / 1e6, last / 1e6, (last / first - 1.0) * 100.0),
            aim,
        );
    }
    row(
        &format!("… nodes and listeners, after {quarter} s and at the end"),
        format!("{} and {}, {} and {}", first.nodes, first.listeners, last.nodes, last.listeners),
        "–",
    );
    row("… drawings of a strip a second", format!("{:.2}", seen.draws_per_second), "≤ 4");
    let mut lags = seen.lags_ms;
    lags.sort_by(f64::total_cmp);
    row(
        "… sample → changed pixel",
        format!(
            "p50 {:.0} ms, p99 {:.0} ms, max {:.0} ms (n {})",
            percentile(&lags, 50.0),
            percentile(&lags, 99.0),
            percentile(&lags, 100.0),
            lags.len()
        ),
        "p99 ≤ 500 ms",
    );
}
