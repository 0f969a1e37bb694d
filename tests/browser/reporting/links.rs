//! Links: a set of view states, each opened in a fresh browser, shows the same.

use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP};

use super::{FAST, ROWS, SLOW};
use crate::measured::Measured;
use crate::pages::{becomes, visit};

/// Copied links open the same view in a fresh browser: rows, chart, zoom, comparison, drawer.
pub async fn open_the_same_view(browser: &Browser, measured: &Measured) {
    let mut views = vec![
        "/reporting?sort=-output_tokens_per_second&workload=fast".to_owned(),
        format!(
            "/reporting?sort=ttft_p50_ms&columns=workload_code,scenario_code,ttft_p50_ms&pick={FAST}&pick={SLOW}&pin={SLOW}&over=System~20RAM"
        ),
        "/reporting?run=2&tab=concurrency&y=requests_per_second&zoom=-0.2,1.5,0,200".to_owned(),
        format!("/reporting?workload=slow&x=ttft_p99_ms&drawer=proof&job={SLOW}&metric=ttft_p50_ms"),
    ];
    let seen = format!(
        "const rows = (() => {{ {ROWS} }})(); const chart = document.querySelector('[data-testid=chart-report] .figure-plot'); \
         const text = id => document.querySelector(`[data-testid=${{id}}]`)?.textContent ?? null; \
         if (!chart?.layout) return null; const round = r => r.map(n => Math.round(n * 1000)); \
         return JSON.stringify([rows, Array.from(document.querySelectorAll('[data-sort]')).map(s => s.dataset.sort), \
            document.querySelector('[aria-sort]')?.getAttribute('aria-sort') ?? null, round(chart.layout.xaxis.range), round(chart.layout.yaxis.range), \
            Array.from(document.querySelectorAll('[data-testid=compared] a')).map(a => a.title), text('drawer-title'), text('calculation'), text('chart-words')])"
    );
    let head = measured.admin.rows("/api/v_events?order=position.desc&limit=1&select=position").await;
    let head = head[0]["position"].as_i64().expect("a position");
    views.extend((0..14).map(|nth| generated(nth, head)));
    let fresh = measured.browser(DESKTOP).await;
    for link in views {
        visit(browser, &link).await;
        visit(&fresh, &link).await;
        // The comparison and the drawer come a moment after the rows.
        let wanted = browser.until(&link, &stable(&seen)).await;
        becomes(&fresh, &link, &seen, wanted.clone()).await;
        let view: Value = serde_json::from_str(wanted.as_str().expect("text")).expect("JSON");
        if let Some(zoom) = link.split("zoom=").nth(1).and_then(|rest| rest.split('&').next()) {
            let ends = zoom
                .split(',')
                .take(2)
                .map(|end| (end.parse::<f64>().expect("a number") * 1000.0).round() as i64);
            assert_eq!(view[3], json!(ends.collect::<Vec<_>>()), "the zoom of {link}");
        }
    }
    fresh.close().await;
}

/// The nth of a set of view states: each way of setting the view, in ever other combinations, the same in every run.
fn generated(nth: usize, head: i64) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(nth as u64 + 1);
    let mut any = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % n
    };
    const METRICS: [&str; 5] =
        ["output_tokens_per_second", "requests_per_second", "ttft_p50_ms", "ttft_p99_ms", "tpot_avg_ms"];
    let mut words = Vec::new();
    let (sort, down) = (METRICS[any(5)], ["", "-"][any(2)]);
    words.push(format!("sort={down}{sort}"));
    words.push(
        ["workload=fast", "workload=slow", "run=1", "status=completed", "concurrency=1&concurrency=2"]
            [any(5)]
        .to_owned(),
    );
    if any(2) == 0 {
        words.push(format!(
            "columns=workload_code,scenario_code,{},{}",
            METRICS[any(2)],
            METRICS[2 + any(3)]
        ));
    }
    words.push(format!(
        "tab={}",
        ["pareto", "concurrency", "model", "framework", "quantization", "hardware"][any(6)]
    ));
    words.push(format!("y={}", METRICS[any(5)]));
    words.push(format!("x={}", METRICS[any(5)]));
    if any(3) == 0 {
        words.push(format!("zoom={},{},0,{}", -(any(5) as f64) / 10.0, 1 + any(4), 100 + any(300)));
    }
    words.extend(
        [FAST, SLOW].into_iter().filter(|_| any(2) == 0).map(|job| format!("pick={job}")).collect::<Vec<_>>(),
    );
    if any(3) == 0 {
        words.push(format!("pin={}", [FAST, SLOW][any(2)]));
    }
    if any(3) == 0 {
        words.push(format!("drawer=proof&job={}&metric={}", [FAST, SLOW][any(2)], METRICS[any(5)]));
    }
    if any(3) == 0 {
        words.push(format!("as-of={head}"));
    }
    format!("/reporting?{}", words.join("&"))
}

/// Yields a view once it holds all that its address names.
fn stable(seen: &str) -> String {
    format!(
        "const v = (() => {{ {seen} }})(); if (!v) return null; const q = new URL(location).searchParams; const view = JSON.parse(v); \
         const picked = new Set([...q.getAll('pick'), ...q.getAll('pin')]).size; \
         return view[0].length > 0 && view[5].length === picked && (!q.has('drawer') || view[7]) && view[8] && v"
    )
}
