//! Ten thousand results, each an event, in one table: how soon it is in another order, how it scrolls.

use serde_json::{Value, json};
use support::api::Api;
use support::browser::{Browser, DESKTOP};
use support::control_plane::ControlPlane;
use support::imports::import_many;

use super::{percentile, row, setting};

/// Results in the table.
pub fn results() -> usize {
    setting("TABLE_RESULTS", 10_000) as usize
}

/// The columns it is sorted by, each a click.
const SORTS: [&str; 7] = [
    "output_tokens_per_second",
    "ttft_p50_ms",
    "workload_code",
    "ttft_p99_ms",
    "scenario_code",
    "output_tokens_per_second_per_gpu",
    "finished_at",
];

/// Milliseconds from the click until the frame that shows other rows under the new head.
const SORT: &str = "const [key, done] = arguments; const shown = () => Array.from(document.querySelectorAll('[data-testid=result]')).slice(0, 20).map(r => r.dataset.job).join(); \
    const before = shown(), head = document.querySelector(`[data-sort=${key}]`), began = performance.now(); head.click(); \
    const look = () => { if (shown() !== before && head.closest('th').hasAttribute('aria-sort')) requestAnimationFrame(() => done(performance.now() - began)); \
        else requestAnimationFrame(look) }; look()";

/// Scrolls by four rows a frame for five seconds: milliseconds of each frame, and in how many the middle of the table was empty.
const SCROLL: &str = "const done = arguments[0]; const box = document.querySelector('[data-testid=long-table]'); const { left, top, width, height } = box.getBoundingClientRect(); \
    const frames = []; let empty = 0, last = 0; const began = performance.now(); \
    const step = now => { if (last) frames.push(now - last); last = now; box.scrollTop += 112; \
        if (!document.elementFromPoint(left + width / 2, top + height / 2)?.closest('[data-testid=result]')) empty++; \
        if (now - began < 5000) requestAnimationFrame(step); else done([frames, empty]) }; requestAnimationFrame(step)";

/// Measures on a plant that holds nothing else of note. The results stay: what comes after has them to show.
pub async fn measure(plane: &ControlPlane, admin: &Api) {
    let position = import_many(admin, "many", results()).await;
    admin.rows_at_least("/api/v_benchmark_results?limit=1", position).await;
    let (email, password) = plane.first_sign_in();
    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.sign_in(&email, &password).await;
    browser.goto("/reporting?rows=all").await;
    browser.see("result").await;
    let rows = browser
        .run("return document.querySelector('[data-testid=results]').ariaRowCount - 1", json!([]))
        .await;
    let mut waits = Vec::new();
    for key in SORTS {
        let took = browser.client.execute_async(SORT, vec![json!(key)]).await.expect("the table sorts");
        waits.push(took.as_f64().unwrap_or(f64::NAN));
    }
    waits.sort_by(f64::total_cmp);
    row(
        &format!(
            "a table of {rows} rows: from the click to the frame in another order, {} columns",
            SORTS.len()
        ),
        format!("median {:.0} ms, longest {:.0} ms", percentile(&waits, 50.0), percentile(&waits, 100.0)),
        "≤ 100 ms",
    );
    let scrolled = browser.run_async(SCROLL).await;
    let (mut frames, empty): (Vec<f64>, u64) =
        serde_json::from_value::<(Vec<f64>, u64)>(scrolled).expect("frames");
    let rate = 1000.0 * frames.len() as f64 / frames.iter().sum::<f64>();
    frames.sort_by(f64::total_cmp);
    row(
        "… scrolled by four rows a frame for five seconds",
        format!(
            "{rate:.1} frames/s, frame p95 {:.1} ms, longest {:.1} ms, rows not there yet in {empty} of {} frames",
            percentile(&frames, 95.0),
            percentile(&frames, 100.0),
            frames.len()
        ),
        "60 frames/s",
    );
    let drawn =
        browser.run("return document.querySelectorAll('[data-testid=result]').length", json!([])).await;
    row("… rows in the document", Value::to_string(&drawn), "–");
    browser.close().await;
}
