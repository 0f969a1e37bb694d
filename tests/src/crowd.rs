//! A page that watches many jobs at once, measured: is everything drawn once, does it stall, does it grow.

use std::time::Duration;

use serde_json::{Value, json};

use crate::browser::{Browser, DESKTOP};
use crate::control_plane::ControlPlane;
use crate::fleet::Fleet;

/// What is watched.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Jobs that run at once.
    pub jobs: u32,
    /// GPUs of each.
    pub gpus: u32,
    /// Samples of each, one a second.
    pub seconds: u64,
}

/// What was seen.
#[derive(Debug)]
pub struct Seen {
    /// Values of each job that the log holds.
    pub in_the_log: Vec<u64>,
    /// Values of each job that the dashboard took.
    pub on_the_dashboard: Vec<u64>,
    /// The longest that the main thread was busy at once, milliseconds; 0 where it never was for 50.
    pub longest_task_ms: f64,
    /// Tasks of more than 50 ms.
    pub long_tasks: usize,
    /// Of the longest frame: milliseconds of it in all, in scripts, and in style, layout and paint.
    pub longest_frame_ms: (f64, f64, f64),
    /// What the page holds after a quarter of the time, and at the end.
    pub held: (Held, Held),
    /// The most often that a strip's line was drawn anew in a second, on average.
    pub draws_per_second: f64,
    /// Milliseconds from a sample's own time to the frame after the page showed it, of the first job.
    pub lags_ms: Vec<f64>,
    /// Points of each line of a job's power chart, and the samples in the log at that moment.
    pub chart: (Vec<u64>, u64),
    /// Whether the points of those lines are in order of time, none twice.
    pub chart_in_order: bool,
}

/// What the page holds, garbage aside.
#[derive(Debug, Clone, Copy, Default)]
pub struct Held {
    /// JavaScript's heap, bytes.
    pub heap: f64,
    /// The program's own memory, bytes: it grows in steps and never shrinks.
    pub program: f64,
    /// Nodes of the document, also those that are in no document any more.
    pub nodes: f64,
    /// Listeners.
    pub listeners: f64,
}

const WATCH: &str = "
    window.__long = []; window.__frames = [];
    new PerformanceObserver(list => list.getEntries().forEach(e => window.__frames.push([e.duration,
        e.scripts.reduce((sum, s) => sum + s.duration, 0), e.styleAndLayoutStart ? e.startTime + e.duration - e.styleAndLayoutStart : 0])))
        .observe({type: 'long-animation-frame'});
    new PerformanceObserver(list => list.getEntries().forEach(e => window.__long.push(e.duration))).observe({type: 'longtask'});
    window.__draws = {};
    window.__since = performance.now();
    const seen = new MutationObserver(changes => {
        const strips = new Set(changes.map(c => c.target.closest('[data-testid=strip]')?.dataset.job));
        strips.forEach(job => { if (job) window.__draws[job] = (window.__draws[job] ?? 0) + 1 });
    });
    seen.observe(document.querySelector('[data-testid=running-jobs]'), {subtree: true, attributes: true, attributeFilter: ['points']});
    window.__shown = [];
    const strip = document.querySelector('[data-testid=strip]');
    window.__strip = strip.dataset.job;
    new MutationObserver(() => { const values = Number(strip.dataset.values); requestAnimationFrame(() =>
        window.__shown.push([values, performance.timeOrigin + performance.now()])) })
        .observe(strip, {attributes: true, attributeFilter: ['data-values']});
    return true";

/// What the page holds, after a collection.
async fn held(browser: &Browser) -> Held {
    browser.devtools("HeapProfiler.collectGarbage", json!({})).await;
    let usage = browser.devtools("Runtime.getHeapUsage", json!({})).await;
    let script = "const done = arguments[0]; const start = document.querySelector('meta[name=program-start]').content; \
        import(start).then(m => done(m.initSync().memory.buffer.byteLength), () => done(0))";
    let program = browser.run_async(script).await;
    let counters = browser.devtools("Memory.getDOMCounters", json!({})).await;
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    Held {
        heap: number(&usage["usedSize"]),
        program: number(&program),
        nodes: number(&counters["nodes"]),
        listeners: number(&counters["jsEventListeners"]),
    }
}

/// Lets a dashboard watch the load, then a job's page.
pub async fn watch(load: Load) -> Seen {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let mut fleet = Fleet::start(&plane, &admin, load.jobs, load.gpus).await;
    fleet.beat().await;
    let (email, password) = plane.first_sign_in();
    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.sign_in(&email, &password).await;
    browser.goto("/").await;
    let all = format!("return document.querySelectorAll('[data-testid=strip]').length === {}", load.jobs);
    browser.until("a strip for each job", &all).await;
    browser
        .until(
            "the page live",
            "return document.querySelector('[data-testid=live]').dataset.state === 'live'",
        )
        .await;
    browser.run(WATCH, json!([])).await;

    let mut second = tokio::time::interval(Duration::from_secs(1));
    let mut first = Held::default();
    for n in 0..load.seconds {
        second.tick().await;
        if n % 5 == 0 {
            fleet.beat().await;
        }
        fleet.report().await;
        if n == load.seconds / 4 {
            first = held(&browser).await;
        }
    }
    let each = fleet.values_of_a_sample();
    let values = fleet.sent * each;
    let drawn = format!(
        "return Array.from(document.querySelectorAll('[data-testid=strip]')).every(s => Number(s.dataset.values) >= {values})"
    );
    browser.until("every value on the page", &drawn).await;
    let numbers = |value: Value| -> Vec<u64> {
        value.as_array().into_iter().flatten().filter_map(Value::as_f64).map(|n| n as u64).collect()
    };
    let on_the_dashboard = "return Array.from(document.querySelectorAll('[data-testid=strip]')).map(s => [s.dataset.job, Number(s.dataset.values)]).sort().map(([_, n]) => n)";
    let on_the_dashboard = numbers(browser.run(on_the_dashboard, json!([])).await);
    let long = browser.run("return window.__long", json!([])).await;
    let long: Vec<f64> = long.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let frames = browser.run("return window.__frames", json!([])).await;
    let frames: Vec<(f64, f64, f64)> = serde_json::from_value(frames).expect("frames");
    let longest_frame_ms = frames.into_iter().fold((0.0, 0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
    let draws = "return Math.max(0, ...Object.values(window.__draws)) / ((performance.now() - window.__since) / 1000)";
    let draws_per_second = browser.run(draws, json!([])).await.as_f64().unwrap_or(f64::NAN);
    let lags_ms = lags(&browser, &fleet, each).await;
    let last = held(&browser).await;
    browser.screenshot("dashboard-fifty").await;

    let mut jobs = fleet.jobs();
    jobs.sort();
    let mut in_the_log = Vec::new();
    for job in &jobs {
        in_the_log.push(values_in_the_log(&admin, job).await);
    }

    // A job's page: read from the views, then live.
    let job = &jobs[0];
    browser.goto(&format!("/projects/{job}")).await;
    let points = "const p = document.querySelector('[data-testid=chart-gpu-power] .figure-plot'); \
        return p?.data?.filter(t => t.name?.startsWith('GPU')).map(t => t.x.length) ?? []";
    browser
        .until("a line for each GPU", &format!("return (() => {{ {points} }})().length === {}", load.gpus))
        .await;
    for _ in 0..3 {
        second.tick().await;
        fleet.report().await;
    }
    let sent = fleet.sent;
    let there = format!("return (() => {{ {points} }})().every(n => n >= {sent})");
    browser.until("every sample in the chart", &there).await;
    let chart = (numbers(browser.run(points, json!([])).await), sent);
    let in_order = "const p = document.querySelector('[data-testid=chart-gpu-power] .figure-plot'); \
        return p.data.filter(t => t.name?.startsWith('GPU')).every(t => Array.from(t.x).every((x, n, all) => n === 0 || x > all[n - 1]))";
    let chart_in_order = browser.run(in_order, json!([])).await == json!(true);
    browser.close().await;
    Seen {
        in_the_log,
        on_the_dashboard,
        longest_task_ms: long.iter().copied().fold(0.0, f64::max),
        long_tasks: long.len(),
        longest_frame_ms,
        held: (first, last),
        draws_per_second,
        lags_ms,
        chart,
        chart_in_order,
    }
}

/// How long each sample of the job in the first strip took to be shown.
async fn lags(browser: &Browser, fleet: &Fleet, each: u64) -> Vec<f64> {
    let job = browser.run("return window.__strip", json!([])).await;
    let taken = fleet.sampled_at(job.as_str().unwrap_or_default().trim_start_matches("job/"));
    let shown = browser.run("return window.__shown", json!([])).await;
    let shown: Vec<(f64, f64)> = serde_json::from_value(shown).expect("pairs of values and times");
    let after = |n: usize| {
        let values = ((n as u64 + 1) * each) as f64;
        shown.iter().find(|(there, _)| *there >= values).map(|(_, at)| *at)
    };
    taken.iter().enumerate().filter_map(|(n, at)| Some(after(n)? - at)).collect()
}

/// How many values the log holds of a job's first attempt, counted in its events.
async fn values_in_the_log(admin: &crate::api::Api, job: &str) -> u64 {
    let history = admin.get(&format!("/api/history?stream=telemetry/{job}/1&limit=1000")).await;
    let history: events::api::History = history.ok();
    let mut values = 0;
    for event in &history.events {
        for sample in event.payload["samples"].as_array().into_iter().flatten() {
            let of = |list: &str| sample[list].as_array().map_or(0, Vec::len) as u64;
            values += of("gpus") * 3 + of("cpus") + 1;
        }
    }
    values
}
