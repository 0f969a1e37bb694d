//! The long table: every result in one, drawn and read as it comes in sight. How quick it is with ten thousand is measured
//! in `make bench`.

use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP, PHONE};
use support::control_plane::ControlPlane;
use support::imports::import_many;

use crate::pages::{becomes, copied_by, fits_the_window, press, visit};

const RESULTS: usize = 1_000;

/// The jobs drawn, by their places in the table, from 0.
const DRAWN: &str = "return Array.from(document.querySelectorAll('[data-testid=result]')).map(r => [Number(r.ariaRowIndex) - 2, r.dataset.job])";

#[tokio::test]
async fn a_thousand_results_stand_in_one_table_of_which_a_screenful_is_drawn() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let position = import_many(&admin, "many", RESULTS).await;
    let jobs = |order: &str| format!("/api/v_benchmark_results?select=job&order={order},job.asc");
    let list = async |order: &str| -> Vec<String> {
        let rows = admin.rows_at_least(&jobs(order), position).await;
        rows.iter().map(|r| r["job"].as_str().expect("a job").to_owned()).collect()
    };
    let (email, password) = plane.first_sign_in();
    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.sign_in(&email, &password).await;

    // From pages to the one table, in the address.
    visit(&browser, "/reporting").await;
    browser.click("long").await;
    becomes(&browser, "the address", "return new URL(location).search", json!("?rows=all")).await;
    let by_time = list("finished_at.desc.nullslast").await;
    assert_eq!(by_time.len(), RESULTS);
    shows(&browser, "the newest first", &by_time, 0).await;
    let count = "return [document.querySelector('[data-testid=results]').ariaRowCount, document.querySelectorAll('[data-testid=result]').length < 120]";
    assert_eq!(browser.run(count, json!([])).await, json!([(RESULTS + 1).to_string(), true]));
    browser.screenshot("long-table").await;

    // Sorted: the best first, from the top.
    browser.run("document.querySelector('[data-testid=long-table]').scrollTop = 9000", json!([])).await;
    browser.click_css("[data-sort=output_tokens_per_second]").await;
    let best = list("output_tokens_per_second.desc.nullslast").await;
    shows(&browser, "the best first", &best, 0).await;
    becomes(
        &browser,
        "the top",
        "return document.querySelector('[data-testid=long-table]').scrollTop",
        json!(0),
    )
    .await;

    // Anywhere in it, up to the end.
    for top in [5_000, 14_000, 1_000_000, 600] {
        browser
            .run(&format!("document.querySelector('[data-testid=long-table]').scrollTop = {top}"), json!([]))
            .await;
        let height = "const b = document.querySelector('[data-testid=long-table]'); return [b.scrollTop, b.clientHeight]";
        let at = browser.run(height, json!([])).await;
        let middle = (at[0].as_f64().expect("pixels") + at[1].as_f64().expect("pixels") / 2.0) / 28.0;
        shows(&browser, &format!("row {middle:.0}"), &best, (middle as usize).min(RESULTS - 1)).await;
    }
    let end =
        "return document.querySelector('[data-testid=row-range]').textContent.endsWith('of 1\u{202f}000')";
    browser.until("how many there are", end).await;

    keyboard(&browser).await;
    copies(&browser).await;
    imported(&browser).await;
    past_the_end(&browser).await;

    // The link opens the same rows elsewhere; on a phone, where rows are cards, in pages.
    let fresh = Browser::open(&plane.url, DESKTOP).await;
    fresh.sign_in(&email, &password).await;
    visit(&fresh, "/reporting?rows=all&sort=ttft_p50_ms&concurrency=8").await;
    let quick = admin
        .rows("/api/v_benchmark_results?select=job&concurrency=eq.8&order=ttft_p50_ms.asc.nullslast,job.asc")
        .await;
    let quick: Vec<String> = quick.iter().map(|r| r["job"].as_str().expect("a job").to_owned()).collect();
    shows(&fresh, "the same rows", &quick, 0).await;
    fresh.close().await;
    let phone = Browser::open(&plane.url, PHONE).await;
    phone.sign_in(&email, &password).await;
    visit(&phone, "/reporting?rows=all").await;
    becomes(&phone, "a page", "return document.querySelectorAll('[data-testid=result]').length", json!(50))
        .await;
    fits_the_window(&phone, "/reporting?rows=all").await;
    phone.close().await;
    browser.close().await;
}

/// What was measured elsewhere says so wherever it stands, and its proof is the file's event.
async fn imported(browser: &Browser) {
    visit(browser, "/reporting?sort=-output_tokens_per_second").await;
    let marks = "return Array.from(document.querySelectorAll('[data-testid=result]')).every(r => r.querySelector('[data-status=imported]'))";
    assert_eq!(browser.run(marks, json!([])).await, json!(true));
    browser.screenshot("imported").await;
    browser.click_css("[data-testid=result] [data-metric=output_tokens_per_second]").await;
    browser.see("proof").await;
    browser.until("the file's event", "return document.querySelector('[data-testid=proof-events]')?.textContent.includes('tool_output.imported')").await;
    browser.find_css("[data-testid=proof] [data-status=imported]").await;
    browser.screenshot("imported-proof").await;
    browser.click("close-drawer").await;
    for nth in [1, 2] {
        browser.click_css(&format!("[data-testid=result]:nth-child({nth}) [data-testid=pick]")).await;
    }
    browser
        .until("two compared", "return document.querySelectorAll('[data-testid=compared]').length === 2")
        .await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new(), "errors in the browser's console");
}

/// An error has its code, what to do, and another try.
async fn past_the_end(browser: &Browser) {
    visit(browser, "/reporting?page=99").await;
    let code = browser.see("trouble").await.attr("data-code").await.expect("an attribute");
    assert_eq!(code.as_deref(), Some("range_not_satisfiable"));
    let words = browser.text("trouble").await;
    assert!(words.contains("begin earlier") && words.contains("Try again"), "{words}");
}

/// Waits until the row at a place is there, and everything drawn stands where the API has it.
async fn shows(browser: &Browser, what: &str, jobs: &[String], place: usize) {
    let there = format!(
        "const d = (() => {{ {DRAWN} }})(); return d.some(([n, job]) => n === {place} && job === {}) && d",
        json!(jobs[place])
    );
    let drawn: Vec<(usize, String)> =
        serde_json::from_value(browser.until(what, &there).await).expect("places and jobs");
    for (nth, job) in drawn {
        assert_eq!(jobs.get(nth), Some(&job), "{what}: row {nth}");
    }
}

/// The keyboard goes through the rows, beyond what was drawn at first, and picks one.
async fn keyboard(browser: &Browser) {
    browser.run("document.querySelector('[data-testid=long-table]').scrollTop = 0", json!([])).await;
    browser
        .until("the top", "return document.querySelector('[data-testid=result]').ariaRowIndex === '2'")
        .await;
    let place = "return Number(document.activeElement.ariaRowIndex) || null";
    press(browser, "j").await;
    becomes(browser, "the first row", place, json!(2)).await;
    for nth in 3..70 {
        press(browser, "j").await;
        becomes(browser, "the next row", place, json!(nth)).await;
    }
    press(browser, "x").await;
    let picked = "return document.activeElement.dataset.path === new URL(location).searchParams.get('pick')";
    browser.until("the row picked", picked).await;
    browser
        .until("the comparison", "return document.querySelectorAll('[data-testid=compared]').length === 1")
        .await;
    browser.click("compare-clear").await;
}

/// A copy holds every row, also those that were never drawn.
async fn copies(browser: &Browser) {
    browser.click_css("[data-testid=copy-table] summary").await;
    let lines = copied_by(browser, "copy-tsv").await.trim_end().lines().count();
    assert_eq!(lines, RESULTS + 1, "{}", Value::from(lines));
}
