//! Everybody can use it: axe finds nothing on any page in light and dark, nothing is wider than a phone.

use serde_json::{Value, json};
use support::binaries::cache;
use support::browser::{Browser, DESKTOP, PHONE, Window};

use crate::measured::Measured;
use crate::pages::{becomes, fits_the_window, visit};

const JOB: &str = "main/sizing/fast/1/c4-isl64-osl8";

fn pages(head: i64) -> Vec<String> {
    let mut pages: Vec<String> = [
        "/",
        "/projects",
        "/projects/new",
        "/projects/main/sizing",
        "/projects/main/sizing/fast/1",
        "/projects/main/sizing/fast/9",
        "/reporting",
        "/reporting?tab=concurrency",
        "/monitoring",
        "/leaderboard?simulated=true&flagged=true",
        "/leaderboard?tab=quality",
        "/hardware",
        "/hardware?add",
        "/catalogue",
        "/catalogue?tab=arguments&framework=vllm",
        "/catalogue?tab=sets",
        "/catalogue?tab=metrics",
        "/reporting?rows=all",
        "/audit",
        "/profile",
        "/organization",
        "/projects/import",
    ]
    .map(str::to_owned)
    .to_vec();
    let sets = "/catalogue?tab=sets&entry=vllm-deepseek-r1-b200-tp8-ep&against=~7edefaults&all=true";
    pages.extend([sets.to_owned(), format!("{sets}&clone=true")]);
    pages.push(format!("/projects/{JOB}"));
    pages.push(format!("/projects/{JOB}?as-of={head}"));
    pages.push(format!("/projects/main/sizing/fast/1?as-of={head}&sort=-ttft_p99_ms"));
    pages.push("/hardware?maintain=server/main/local-cpu/bench-host".to_owned());
    pages.push(format!("/projects/{JOB}?drawer=proof&job={JOB}&metric=output_tokens_per_second"));
    pages.push(format!("/reporting?as-of={head}&pick={JOB}&pick=main/sizing/slow/1/c2-isl64-osl8"));
    pages
}

#[tokio::test]
async fn axe_finds_nothing_in_light_and_dark_and_a_phone_shows_every_page() {
    let mut measured = Measured::start().await;
    let axe = cache().join("npm/axe.min.js");
    let axe = std::fs::read_to_string(&axe)
        .unwrap_or_else(|e| panic!("{}: {e}: run scripts/setup test first", axe.display()));
    let head = measured.admin.rows("/api/v_events?order=position.desc&limit=1&select=position").await;
    let pages = pages(head[0]["position"].as_i64().expect("a position"));
    let mut found = Vec::new();
    for (scheme, window) in [("light", DESKTOP), ("dark", Window { dark: true, ..DESKTOP }), ("phone", PHONE)]
    {
        let browser = measured.browser(window).await;
        for path in &pages {
            visit(&browser, path).await;
            if scheme == "phone" {
                fits_the_window(&browser, path).await;
            }
            found.extend(
                violations(&browser, &axe).await.into_iter().map(|v| format!("{scheme} {path}: {v}")),
            );
        }
        if scheme == "phone" {
            under_more(&browser).await;
            measured.plane.kill();
            stream_cut(&browser).await;
        }
        browser.close().await;
    }
    assert_eq!(found, Vec::<String>::new());
}

/// On a phone what the bar and the rail have no room for is under More: search, theme, who is signed in.
async fn under_more(browser: &Browser) {
    visit(browser, "/").await;
    let hidden = "return getComputedStyle(document.querySelector('.jump')).display";
    becomes(browser, "the bar without search", hidden, json!("none")).await;
    browser.click_css(".rail-more button").await;
    for testid in ["jump", "theme", "rail-user"] {
        let reachable = format!(
            "const e = document.querySelector('[data-testid={testid}]'); const r = e.getBoundingClientRect(); \
             const top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2); \
             return r.width > 40 && r.height > 16 && e.contains(top)"
        );
        browser.until(&format!("{testid} to be reached"), &reachable).await;
    }
    fits_the_window(browser, "/ with More open").await;
    browser.screenshot("more-phone").await;
    browser.click("theme").await;
    let theme = "return document.documentElement.dataset.theme";
    browser.until("the other theme", &format!("return (() => {{ {theme} }})() === 'dark'")).await;
    browser.click("theme").await;
    browser.click("rail-user").await;
    browser.see("sign-out").await;
    browser.see("to-organization").await;
}

/// A broken stream is said in words on a phone too.
async fn stream_cut(browser: &Browser) {
    let said = "const e = document.querySelector('[data-testid=live]'); \
        return e.dataset.state === 'broken' && e.innerText.trim().startsWith('Reconnecting')";
    browser.until("the break in words", said).await;
    browser.screenshot("reconnecting-phone").await;
}

/// What axe finds on the page: rule and elements.
async fn violations(browser: &Browser, axe: &str) -> Vec<String> {
    browser.run(axe, json!([])).await;
    let script = "const done = arguments[0]; axe.run({resultTypes: ['violations'], rules: {'target-size': {enabled: true}}}).then(r => done(r.violations.map(v => \
        `${v.id} (${v.impact}): ${v.nodes.map(n => n.html.slice(0, 160)).slice(0, 3).join(' | ')}`)), e => done([String(e)]))";
    let found = browser.client.execute_async(script, vec![]).await.expect("axe runs");
    found.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
