//! Reporting: what is picked, compared, zoomed and looked at in the past is in the address; numbers prove themselves.

use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP};

use crate::measured::Measured;
use crate::pages::{becomes, press, settle, visit};

const FAST: &str = "main/sizing/fast/1/c4-isl64-osl8";
const SLOW: &str = "main/sizing/slow/1/c2-isl64-osl8";

/// The jobs of the rows, as they stand in the table.
const ROWS: &str =
    "return Array.from(document.querySelectorAll('[data-testid=result]')).map(r => r.dataset.path)";

#[tokio::test]
async fn results_are_compared_explained_proved_and_shown_as_they_stood() {
    let measured = Measured::start().await;
    let browser = measured.browser(DESKTOP).await;
    visit(&browser, "/reporting").await;
    becomes(
        &browser,
        "eight results",
        "return document.querySelectorAll('[data-testid=result]').length",
        json!(8),
    )
    .await;
    read_once(&browser).await;
    rows_stay(&browser, &measured).await;
    bound(&browser, &measured).await;
    compare(&browser).await;
    explain(&browser).await;
    click_a_point(&browser).await;
    export(&browser).await;
    look_back(&browser, &measured).await;
    look_back_at_a_run(&browser, &measured).await;
    prove(&browser).await;
    doubt(&browser).await;
    save_views(&browser).await;
    links_open_the_same_view(&browser, &measured).await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new(), "errors in the browser's console");
    browser.close().await;
}

/// What the page shows is read once: the stream goes on from where the session stood when it was asked.
async fn read_once(browser: &Browser) {
    let live = "return document.querySelector('[data-testid=live]').dataset.state";
    becomes(browser, "the stream at the head", live, json!("live")).await;
    let read = "return performance.getEntriesByType('resource').filter(r => r.name.includes('v_benchmark_results') && r.name.includes('limit=50')).length";
    assert_eq!(browser.run(read, json!([])).await, json!(1), "readings of the page of results");
}

/// Rows are written once: what changes elsewhere leaves them, their links and the keyboard as they are.
async fn rows_stay(browser: &Browser, measured: &Measured) {
    let slow = format!("document.querySelector('[data-path=\"{SLOW}\"]')");
    // Their links lead to the proof within the view as it is now, whatever it was when they were written.
    visit_by_click(browser, "[data-sort=ttft_p50_ms]", "sort").await;
    let figure = format!("{slow}.querySelector('[data-metric=ttft_p50_ms]')");
    browser.run(&format!("{figure}.focus()"), json!([])).await;
    let href = browser.run(&format!("return {figure}.getAttribute('href')"), json!([])).await;
    let wanted = format!("/reporting?sort=ttft_p50_ms&drawer=proof&job={SLOW}&metric=ttft_p50_ms");
    assert_eq!(href, json!(wanted));

    // Doubted meanwhile: its row says so by itself, the keyboard stays where it was, the other rows are the same elements.
    browser
        .run(
            "document.querySelectorAll('[data-testid=result]').forEach(r => { r.kept = r.firstChild })",
            json!([]),
        )
        .await;
    let of = |rest: Value| {
        let mut args = json!({"p_project_code": "sizing", "p_workload_code": "slow", "p_run_number": 1,
            "p_scenario_code": "c2-isl64-osl8", "p_rule": "seen_from_elsewhere"});
        args.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
        args
    };
    measured.admin.command("flag_result", &of(json!({"p_message": "seen from elsewhere"}))).await;
    let anew = "return Array.from(document.querySelectorAll('[data-testid=result]')).filter(r => r.kept !== r.firstChild).map(r => r.dataset.path)";
    becomes(browser, "its row written anew, and no other", anew, json!([SLOW])).await;
    let mark = format!("return {slow}.querySelector('[data-testid=status]').dataset.status");
    becomes(browser, "the doubt in its row", &mark, json!("flagged")).await;
    let focus = "return [document.activeElement.dataset.metric ?? null, document.activeElement.closest('tr')?.dataset.path ?? null]";
    becomes(browser, "the keyboard where it was", focus, json!(["ttft_p50_ms", SLOW])).await;
    browser
        .run(
            "document.querySelectorAll('[data-testid=result]').forEach(r => { r.kept = r.firstChild })",
            json!([]),
        )
        .await;
    measured.admin.command("clear_flag", &of(json!({"p_reason": "measured again, the same"}))).await;
    becomes(browser, "its row written anew once more", anew, json!([SLOW])).await;

    // The figure that the drawer explains is marked while it does.
    browser.run(&format!("{figure}.click()"), json!([])).await;
    browser.see("proof").await;
    let marked = "return Array.from(document.querySelectorAll('[data-testid=result] [aria-current]')).map(a => [a.closest('tr').dataset.path, a.dataset.metric])";
    becomes(browser, "the figure explained", marked, json!([[SLOW, "ttft_p50_ms"]])).await;
    browser.click("close-drawer").await;
    becomes(browser, "no figure explained", marked, json!([])).await;

    // With the shift key everything between two picks is picked; once more lets one go.
    let boxes = "Array.from(document.querySelectorAll('[data-testid=pick]'))";
    browser.run(&format!("{boxes}[1].click(); {boxes}[4].dispatchEvent(new MouseEvent('click', {{bubbles: true, cancelable: true, shiftKey: true}}))"), json!([])).await;
    let picked = format!("return {boxes}.map(b => b.checked)");
    becomes(
        browser,
        "a stretch of rows",
        &picked,
        json!([false, true, true, true, true, false, false, false]),
    )
    .await;
    let selected = "return Array.from(document.querySelectorAll('[data-testid=result]')).map(r => r.ariaSelected === 'true')";
    becomes(
        browser,
        "the rows marked",
        selected,
        json!([false, true, true, true, true, false, false, false]),
    )
    .await;
    browser.click("compare-clear").await;
    becomes(browser, "no row", &picked, json!(vec![false; 8])).await;
    visit(browser, "/reporting").await;
}

/// Clicks, and waits until a key is in the address and the page has settled.
async fn visit_by_click(browser: &Browser, css: &str, key: &str) {
    browser.click_css(css).await;
    browser.until(key, &format!("return new URL(location).searchParams.has('{key}')")).await;
    settle(browser, css).await;
}

/// A promise as a filter: only results that keep it.
async fn bound(browser: &Browser, measured: &Measured) {
    let keep = measured.admin.rows("/api/v_benchmark_results?output_tokens_per_second=gte.300").await.len();
    assert!(keep > 0 && keep < 8, "{keep} of 8 results");
    browser.click("add-filter").await;
    browser.choose("limit-figure", "output_tokens_per_second").await;
    browser.fill("limit-value", "300").await;
    browser.click("limit-add").await;
    browser.see("limit").await;
    let rows = "return document.querySelectorAll('[data-testid=result]').length";
    becomes(browser, "the results that keep it", rows, json!(keep)).await;
    browser.screenshot("limit").await;
    browser.click_css("[data-testid=limit] button").await;
    becomes(browser, "all results", rows, json!(8)).await;
    browser.click("add-filter").await;
}

/// What the table is set to is kept under a name, found again and removed.
async fn save_views(browser: &Browser) {
    let query = "return new URL(location).search";
    let rows =
        "return Array.from(document.querySelectorAll('[data-testid=result]')).map(r => r.dataset.path)";
    visit(browser, "/reporting?sort=ttft_p50_ms&drawer=event&position=1").await;
    let sorted = browser.run(rows, json!([])).await;
    browser.click_css("[data-testid=views] summary").await;
    browser.fill("view-name", "Quick to answer").await;
    browser.click("view-shared").await;
    browser.click("save-view").await;
    let entries =
        "return Array.from(document.querySelectorAll('[data-testid=saved-view]')).map(v => v.dataset.code)";
    becomes(browser, "the view in the list", entries, json!(["quick-to-answer"])).await;
    browser.screenshot("saved-views").await;

    // Elsewhere, and back by its name: the same rows in the same order, and nothing of the drawer.
    visit(browser, "/reporting").await;
    browser.click_css("[data-testid=views] summary").await;
    browser.click_css("[data-testid=saved-view] a").await;
    becomes(browser, "the view's address", query, json!("?sort=ttft_p50_ms")).await;
    becomes(browser, "the view's rows", rows, sorted).await;
    browser.click("remove-view").await;
    becomes(browser, "no view in the list", entries, json!([])).await;
}

/// A run and a job as they stood when the second of three jobs had its result.
async fn look_back_at_a_run(browser: &Browser, measured: &Measured) {
    let of_run = "workload_code=eq.fast&run_number=eq.1";
    let results = format!("/api/v_benchmark_results?{of_run}&order=position.asc&select=position");
    let second = measured.admin.rows(&results).await[1]["position"].as_i64().expect("a position");
    let jobs = format!("/api/v_jobs?{of_run}&order=ordinal.asc&select=status&as_of={second}");
    let then: Vec<Value> = measured.admin.rows(&jobs).await.iter().map(|j| j["status"].clone()).collect();
    assert!(then.iter().any(|status| status != "completed"), "{then:?}");
    visit(browser, &format!("/projects/main/sizing/fast/1?as-of={second}")).await;
    let statuses =
        "return Array.from(document.querySelectorAll('[data-testid=job]')).map(j => j.dataset.status)";
    becomes(browser, "the jobs as they stood", statuses, json!(then)).await;
    let figures = "return document.querySelectorAll('[data-testid=job] [data-metric=ttft_p50_ms]').length";
    becomes(browser, "the figures there were", figures, json!(2)).await;
    browser.screenshot("run-as-of").await;
    browser.click("as-of").await;
    becomes(browser, "the jobs now", statuses, json!(["completed", "completed", "completed"])).await;
    becomes(browser, "all figures", figures, json!(3)).await;

    // The last job had not ended: no headline, and nothing of its telemetry after that.
    visit(browser, &format!("/projects/{FAST}?as-of={second}")).await;
    let status = "return document.querySelector('.page-head [data-testid=status]')?.dataset.status ?? null";
    browser
        .until(
            "a job that has not ended",
            &format!("const s = (() => {{ {status} }})(); return s && s !== 'completed'"),
        )
        .await;
    let headline = "return document.querySelector('[data-testid=headline-output_tokens_per_second] [data-testid=figure]') === null";
    becomes(browser, "no figure yet", headline, json!(true)).await;
    browser.click("as-of").await;
    becomes(browser, "the job now, doubted", status, json!("flagged")).await;
    becomes(browser, "its figure", headline, json!(false)).await;
    // Before the run there was none.
    visit(browser, "/projects/main/sizing/fast/1?as-of=1").await;
    let words = browser.text("empty").await;
    assert!(words.contains("at this position of the log"), "{words}");
}

/// Two rows by keyboard and pointer, the pinned one first, and what differs between them.
async fn compare(browser: &Browser) {
    for job in [FAST, SLOW] {
        browser.click_css(&format!("[data-path='{job}'] [data-testid=pick]")).await;
    }
    becomes(
        browser,
        "two compared",
        "return document.querySelectorAll('[data-testid=compared]').length",
        json!(2),
    )
    .await;
    let differing = "return Array.from(document.querySelectorAll('[data-testid=setting]')).map(s => s.querySelector('th').textContent)";
    becomes(browser, "the settings that differ", differing, json!(["Concurrency", "itl-ms"])).await;

    // The keyboard: to the first row, pinned; what is pinned is no difference to itself.
    press(browser, "j").await;
    let focused = "return document.activeElement.dataset.path ?? null";
    let first = browser.until("the keyboard on a row", focused).await;
    press(browser, "b").await;
    becomes(
        browser,
        "the first row pinned",
        "return document.querySelector('[data-testid=compared]').querySelector('a').title",
        json!(format!("job/{}", first.as_str().expect("a path"))),
    )
    .await;
    becomes(
        browser,
        "three compared",
        "return document.querySelectorAll('[data-testid=compared]').length",
        json!(3),
    )
    .await;
    press(browser, "b").await;
    becomes(
        browser,
        "two again",
        "return document.querySelectorAll('[data-testid=compared]').length",
        json!(2),
    )
    .await;
    // The interval over two runs of the same scenario.
    browser
        .until(
            "an interval",
            "return document.querySelector('[data-testid=compare]').textContent.includes('±')",
        )
        .await;
    settle(browser, "the comparison").await;
    browser.screenshot("compare").await;

    // The logs against each other, in the address too.
    browser.click("diff-framework").await;
    browser.see("log-diff-words").await;
    let stream = "return new URL(location).searchParams.get('logs')";
    becomes(browser, "the stream in the address", stream, json!("framework")).await;
    browser.screenshot("log-diff").await;
    browser.click("diff-none").await;
}

/// A click on a line's point under the shared hover opens the proof of the nearest point, not of the first line's.
async fn click_a_point(browser: &Browser) {
    visit(browser, "/projects/main/sizing/fast/1").await;
    browser.until("the line", "return document.querySelector('[data-testid=chart-throughput] .figure-plot')?.data?.[0].x.length === 3").await;
    browser
        .run(
            "document.querySelector('[data-testid=chart-throughput]').scrollIntoView({block: 'center'})",
            json!([]),
        )
        .await;
    let place = "const p = document.querySelector('[data-testid=chart-throughput] .figure-plot'), { xaxis, yaxis } = p._fullLayout, r = p.getBoundingClientRect(), t = p.data[0]; \
        return [r.left + xaxis._offset + xaxis.d2p(t.x[1]), r.top + yaxis._offset + yaxis.d2p(t.y[1]), t.customdata[1]]";
    let place = browser.run(place, json!([])).await;
    for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
        let event = json!({"type": kind, "x": place[0], "y": place[1], "button": if kind == "mouseMoved" { "none" } else { "left" }, "clickCount": 1});
        browser.devtools("Input.dispatchMouseEvent", event).await;
        if kind == "mouseMoved" {
            browser.until("the hover", "return document.querySelector('[data-testid=chart-throughput] .hoverlayer')?.childElementCount > 0").await;
        }
    }
    browser.see("proof").await;
    let proof = "const q = new URL(location).searchParams; return ['job/' + q.get('job'), q.get('metric')]";
    becomes(browser, "the point's proof", proof, json!([place[2], "output_tokens_per_second"])).await;
    // The run's jobs in another order, in the address; a third click leaves them as they ran.
    browser.click("close-drawer").await;
    let jobs = "return Array.from(document.querySelectorAll('[data-testid=job]')).map(j => Number(/c(\\d+)-/.exec(j.dataset.job)[1]))";
    for (sort, wanted) in [
        (json!("-output_tokens_per_second"), json!([4, 2, 1])),
        (json!("output_tokens_per_second"), json!([1, 2, 4])),
        (Value::Null, json!([1, 2, 4])),
    ] {
        browser.click_css("[data-sort=output_tokens_per_second]").await;
        becomes(
            browser,
            "the order in the address",
            "return new URL(location).searchParams.get('sort')",
            sort,
        )
        .await;
        becomes(browser, "the jobs in order", jobs, wanted).await;
    }
    // A number of the comparison leads to its proof as well.
    visit(browser, &format!("/reporting?pick={FAST}&pick={SLOW}")).await;
    browser.click_css(".compare .results tr:first-child td:nth-child(3) [data-testid=figure]").await;
    becomes(browser, "the number's proof", proof, json!([format!("job/{SLOW}"), "output_tokens_per_second"]))
        .await;
    browser.click("close-drawer").await;
}

/// Exactly what is filtered, as a file of each kind.
async fn export(browser: &Browser) {
    visit(browser, "/reporting?workload=slow").await;
    let catch = "window.__files = []; URL.createObjectURL = blob => { window.__files.push(blob); return 'blob:caught' }; HTMLAnchorElement.prototype.click = () => {}";
    browser.run(catch, json!([])).await;
    browser.click_css("[data-testid=export] summary").await;
    for (nth, (ending, first)) in
        [("csv", ""), ("ndjson", "{\""), ("parquet", "PAR1")].into_iter().enumerate()
    {
        let press = format!(
            "document.querySelector('[data-testid=export-{ending}]').dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
        );
        browser.run(&press, json!([])).await;
        browser.until(ending, &format!("return window.__files.length === {}", nth + 1)).await;
        let read = format!(
            "const done = arguments[0]; window.__files[{nth}].text().then(t => done([t.slice(0, {}), t.trimEnd().split('\\n').length, t.split('\\n')[0].split(',').includes('job')]))",
            first.len()
        );
        let file = browser.run_async(&read).await;
        assert_eq!(file[0], json!(first), "{ending}");
        assert_eq!(file[2], json!(ending == "csv"), "{ending}: the head of its columns");
        if ending != "parquet" {
            assert_eq!(file[1], json!(if ending == "csv" { 3 } else { 2 }), "{ending}: lines of two results");
        }
    }
}

/// The charts say in sentences what they show; a click on a point opens its proof.
async fn explain(browser: &Browser) {
    let words = "return document.querySelector('[data-testid=chart-words]').textContent";
    let frontier = format!("const t = (() => {{ {words} }})(); return t.includes('on the frontier') && t");
    browser.until("the frontier in words", &frontier).await;
    browser.click("tab-concurrency").await;
    let saturation = format!(
        "const t = (() => {{ {words} }})(); return (t.includes('saturates') || t.includes('still climbs')) && t.includes('a third concurrency') && t"
    );
    browser.until("saturation in words", &saturation).await;
    browser.until("the lines", "const p = document.querySelector('[data-testid=chart-report] .figure-plot'); return p.data && p.data.length >= 3").await;
    browser.screenshot("saturation").await;
    for tab in ["model", "framework", "quantization", "hardware", "cost"] {
        browser.click(&format!("tab-{tab}")).await;
        browser.until(tab, &format!("return new URL(location).searchParams.get('tab') === '{tab}'")).await;
    }
    browser.click("tab-pareto").await;
    browser.until("the points", "const p = document.querySelector('[data-testid=chart-report] .figure-plot'); return p.data && p.data.some(t => t.customdata)").await;
    let pick = "const p = document.querySelector('[data-testid=chart-report] .figure-plot'); \
        const t = p.data.find(t => t.customdata); p.emit('plotly_click', {points: [{customdata: t.customdata[0]}]}); return t.customdata[0]";
    let job = browser.run(pick, json!([])).await;
    browser.see("proof").await;
    becomes(
        browser,
        "the proof of that point",
        "return 'job/' + new URL(location).searchParams.get('job')",
        job,
    )
    .await;
    browser.click("close-drawer").await;
}

/// At an earlier position there were fewer results.
async fn look_back(browser: &Browser, measured: &Measured) {
    let rows = measured.admin.rows("/api/v_benchmark_results?order=position.asc&select=position").await;
    let third = rows[2]["position"].as_i64().expect("a position");
    visit(browser, &format!("/reporting?as-of={third}")).await;
    becomes(
        browser,
        "three results",
        "return document.querySelectorAll('[data-testid=result]').length",
        json!(3),
    )
    .await;
    browser.see("as-of-row").await;
    browser.screenshot("as-of").await;
    browser.click("as-of").await;
    becomes(
        browser,
        "all results",
        "return document.querySelectorAll('[data-testid=result]').length",
        json!(8),
    )
    .await;
}

/// The proof is checked in the browser and copied as a file.
async fn prove(browser: &Browser) {
    visit(browser, "/reporting").await;
    browser.click_css("[data-testid=result] [data-metric=output_tokens_per_second]").await;
    browser.see("check-proof").await;
    let catch = "window.__copied = null; navigator.clipboard.writeText = text => { window.__copied = text; return Promise.resolve(); }";
    browser.run(catch, json!([])).await;
    browser.click("copy-proof").await;
    browser.see("proof-holds").await;
    let copied = browser.until("the copy", "return window.__copied").await;
    let proof: Value = serde_json::from_str(copied.as_str().expect("text")).expect("JSON");
    assert_eq!(proof["format"], "benchtrail.proof.v1");
    let proofs = proof["proofs"].as_array().expect("proofs");
    assert!(proofs.len() >= 7, "{} events", proofs.len());
    for proof in proofs {
        let proof: events::merkle::Proof = serde_json::from_value(proof.clone()).expect("a proof");
        proof.verify().expect("a proof that holds");
    }
    browser.screenshot("proof").await;
    browser.click("close-drawer").await;
}

/// A person doubts a result and clears the doubt with a reason; both stay visible.
async fn doubt(browser: &Browser) {
    visit(browser, &format!("/reporting?drawer=proof&job={SLOW}&metric=ttft_p50_ms")).await;
    browser.click("doubt").await;
    browser.fill("doubt-message", "the host was busy").await;
    browser.click("doubt-submit").await;
    let flag = "[data-testid=flag][data-rule=doubted_by_person]";
    browser.find_css(&format!("{flag}[data-cleared=false]")).await;
    browser.screenshot("doubt").await;
    browser.click_css(&format!("{flag} [data-testid=clear-flag]")).await;
    browser.fill("clear-reason", "measured again, the same").await;
    browser.click("clear-submit").await;
    browser.find_css(&format!("{flag}[data-cleared=true]")).await;
    browser.click("close-drawer").await;
}

/// Copied links open the same view in a fresh browser: rows, chart, zoom, comparison, drawer.
async fn links_open_the_same_view(browser: &Browser, measured: &Measured) {
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
