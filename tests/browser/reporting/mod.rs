//! Reporting: what is picked, compared, zoomed and looked at in the past is in the address; numbers prove themselves.

mod links;
mod past;
mod points;
mod tabs;

use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP};

use crate::measured::Measured;
use crate::pages::{becomes, copied_by, press, settle, visit};

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
    named_and_marked(&browser).await;
    rows_stay(&browser, &measured).await;
    bound(&browser, &measured).await;
    compare(&browser).await;
    explain(&browser).await;
    tabs::metrics_of_their_own(&browser).await;
    tabs::between_days(&browser).await;
    tabs::projects_in_order(&browser).await;
    points::click_a_point(&browser).await;
    points::prove_from_a_table(&browser).await;
    export(&browser).await;
    past::look_back(&browser, &measured).await;
    past::look_back_at_a_run(&browser, &measured).await;
    prove(&browser).await;
    doubt(&browser).await;
    save_views(&browser).await;
    links::open_the_same_view(&browser, &measured).await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new(), "errors in the browser's console");
    browser.close().await;
}

/// Numbers of the reference server are marked simulated wherever they stand, and a workload stands within its project.
async fn named_and_marked(browser: &Browser) {
    let within = "return Array.from(new Set(Array.from(document.querySelectorAll('[data-testid=result] .within')).map(w => w.textContent)))";
    becomes(browser, "the project of every row", within, json!(["sizing"])).await;
    let run = FAST.rsplit_once('/').expect("a run").0;
    for path in ["/", &format!("/projects/{run}"), &format!("/projects/{FAST}")] {
        visit(browser, path).await;
        let marked = "return document.querySelector('.content .status[data-status=simulated]') !== null";
        browser.until(&format!("{path} to say that its numbers are simulated"), marked).await;
    }
    visit(browser, "/reporting").await;
}

/// What came with the page is not asked for, and what it shows is read once: the stream goes on from where the session stood.
async fn read_once(browser: &Browser) {
    let live = "return document.querySelector('[data-testid=live]').dataset.state";
    becomes(browser, "the stream at the head", live, json!("live")).await;
    let read = "return performance.getEntriesByType('resource').filter(r => r.name.includes('v_benchmark_results') && r.name.includes('limit=50')).length";
    assert_eq!(browser.run(read, json!([])).await, json!(0), "readings of what came with the page");
    let session =
        "return performance.getEntriesByType('resource').filter(r => r.name.endsWith('/api/session')).length";
    assert_eq!(browser.run(session, json!([])).await, json!(0), "readings of who reads");
    visit(browser, "/reporting?sort=ttft_p50_ms").await;
    becomes(browser, "the stream at the head", live, json!("live")).await;
    assert_eq!(browser.run(read, json!([])).await, json!(1), "readings of the page of results");
    visit(browser, "/reporting").await;
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

/// The proof is checked in the browser and copied as a file.
async fn prove(browser: &Browser) {
    visit(browser, "/reporting").await;
    browser.click_css("[data-testid=result] [data-metric=output_tokens_per_second]").await;
    browser.see("check-proof").await;
    let copied = copied_by(browser, "copy-proof").await;
    browser.see("proof-holds").await;
    let proof: Value = serde_json::from_str(&copied).expect("JSON");
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
