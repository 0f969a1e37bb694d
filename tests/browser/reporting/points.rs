//! Charts: their points and the numbers of their tables lead to their proof.

use serde_json::{Value, json};
use support::browser::Browser;

use super::{FAST, SLOW};
use crate::pages::{becomes, visit};

/// What the drawer proves.
const PROOF: &str =
    "const q = new URL(location).searchParams; return ['job/' + q.get('job'), q.get('metric')]";

/// A click on a line's point under the shared hover opens the proof of the nearest point, not of the first line's.
pub async fn click_a_point(browser: &Browser) {
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
    becomes(browser, "the point's proof", PROOF, json!([place[2], "output_tokens_per_second"])).await;
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
    becomes(browser, "the number's proof", PROOF, json!([format!("job/{SLOW}"), "output_tokens_per_second"]))
        .await;
    browser.click("close-drawer").await;
}

/// A chart as a table: each number that is a job's figure leads to its proof, which is the one of that job.
pub async fn prove_from_a_table(browser: &Browser) {
    visit(browser, "/projects/main/sizing/fast/1").await;
    let figures = "return Array.from(document.querySelectorAll('[data-testid=chart-latency] .figure-table [data-testid=figure]')).map(a => a.dataset.metric)";
    browser.click_css("[data-testid=chart-latency] .figure-toggle").await;
    becomes(browser, "a number for each job", figures, json!(["ttft_p99_ms", "ttft_p99_ms", "ttft_p99_ms"]))
        .await;
    let second = "[data-testid=chart-latency] .figure-table tbody tr:nth-child(2)";
    let concurrency = format!("return document.querySelector('{second} td:nth-child(2)').textContent");
    becomes(browser, "the second job's concurrency", &concurrency, json!("2")).await;
    browser.click_css(&format!("{second} [data-testid=figure]")).await;
    browser.see("proof").await;
    becomes(browser, "its proof", PROOF, json!(["job/main/sizing/fast/1/c2-isl64-osl8", "ttft_p99_ms"]))
        .await;
    browser.screenshot("chart-table").await;
    browser.click("close-drawer").await;
}
