//! A job's requests: as they were sent, from the load generator's own log; what there is before it ended, where every one
//! failed, and where the log is large.

use serde_json::{Value, json};
use support::agent::Agent;
use support::browser::{Browser, DESKTOP, PHONE};
use support::control_plane::ControlPlane;
use support::live::Live;
use support::workloads::refserver;

use crate::pages::{becomes, copied_by, fits_the_window, visit};

const INTO_VIEW: &str = "document.querySelector('[data-testid=requests]').scrollIntoView({block: 'start'})";
const BARS: &str = "document.querySelector('[data-testid=chart-requests]')?.scrollIntoView({block: 'center'}); return document.querySelector('[data-testid=chart-requests] .figure-plot')?.data?.[0].x.length ?? 0";
const WORDS: &str = "return document.querySelector('[data-testid=requests]')?.textContent ?? ''";

const SAMPLES: &str = "return document.querySelectorAll('[data-testid=sample]').length";

/// Opens what the first point in a chart's table stands for, has its proof checked in the browser and then by the program
/// alone, and gives it.
async fn prove_first_point(browser: &Browser, plane: &ControlPlane, chart: &str, drawer: &str) -> Value {
    browser.click_css(&format!("[data-testid={chart}] .figure-toggle[aria-label^=Table]")).await;
    browser.click_css(&format!("[data-testid={chart}] [data-testid=pick-point]")).await;
    browser.see(drawer).await;
    browser.see("check-proof").await;
    let copied = copied_by(browser, "copy-proof").await;
    browser.see("proof-holds").await;
    let text = copied.as_str();
    let path = plane.log_file("point-proof");
    std::fs::write(&path, text).expect("written");
    let verify = ["verify", "--proof", path.to_str().expect("UTF-8")];
    // No database at this address: nothing but the file is looked at.
    let (status, said) = plane.command_on("postgres://nobody@127.0.0.1:1/none", &verify).await;
    assert!(status.success() && said.contains("The proof holds"), "{said}");
    let mut proof: Value = serde_json::from_str(text).expect("JSON");
    proof["value"] = json!(proof["value"].as_f64().expect("a value") * 2.0);
    std::fs::write(&path, proof.to_string()).expect("written");
    let (status, said) = plane.command_on("postgres://nobody@127.0.0.1:1/none", &verify).await;
    assert_eq!(status.code(), Some(3), "{said}");
    serde_json::from_str(text).expect("JSON")
}

async fn says(browser: &Browser, words: &str) {
    browser.until(words, &format!("return (() => {{ {WORDS} }})().includes({})", json!(words))).await;
}

#[tokio::test]
async fn requests_are_shown_as_they_were_sent_and_what_is_missing_is_said() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let agent = Agent::start(&plane, &admin, "requests-host").await;
    let mut server = Live::open(&admin, "main:server", 0).await;
    server.until("the server online", |e| e.payload["state"] == "online").await;
    let (email, password) = plane.first_sign_in();
    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.sign_in(&email, &password).await;

    // While it runs there is no log; once it ended there is, without a reload.
    let mut steady = refserver(&[4], 60, 16);
    steady["p_engine_args"] = json!({"ttft_ms": 40, "itl_ms": 10, "jitter": 0.4});
    agent.execute(&admin, "steady", steady).await;
    let job = "/projects/main/steady/reference/1/c4-isl64-osl16";
    browser.goto(job).await;
    says(&browser, "The requests are shown once the job has ended.").await;
    browser.see("requests-file").await;
    browser.see("no-errors").await;
    becomes(&browser, "a window of bars", BARS, json!(36)).await;
    browser.run(INTO_VIEW, json!([])).await;
    browser.screenshot("job-requests").await;
    // Where one is, is in the address.
    browser.click("requests-later").await;
    let from = "return new URL(location).searchParams.get('requests')";
    becomes(&browser, "the last window", from, json!("24")).await;
    browser.click("requests-slowest").await;
    // A request is a line of a file whose hash is in the log, a point of a chart the samples of its events.
    let request = prove_first_point(&browser, &plane, "chart-requests", "request").await;
    assert_eq!(request["metric"], "response_time_ms");
    let text = request["line"]["text"].as_str().expect("a line");
    let line: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(line["response_time_ms"], request["value"], "{text}");
    browser.see("file-holds").await;
    browser.screenshot("request-proof").await;
    let sample = prove_first_point(&browser, &plane, "chart-ram", "samples").await;
    assert_eq!(
        (&sample["metric"], &sample["samples"]["source"]),
        (&json!("ram_used_bytes"), &json!("system"))
    );
    browser.screenshot("sample-proof").await;
    // The link of a proof opens the same one.
    let link = browser.client.current_url().await.expect("an address");
    visit(&browser, &format!("{}?{}", link.path(), link.query().unwrap_or_default())).await;
    becomes(&browser, "the same samples", SAMPLES, sample["samples"]["count"].clone()).await;
    visit(&browser, &format!("{job}?requests=10")).await;
    let first = "return document.querySelector('[data-testid=chart-requests] .figure-plot')?.layout?.yaxis.ticktext[0] ?? null";
    browser.run(INTO_VIEW, json!([])).await;
    becomes(&browser, "the window of the address", first, json!("#10")).await;

    // All refused: every one is there, and the kind of error with its requests.
    let mut refused = refserver(&[4], 60, 8);
    refused["p_workload_code"] = json!("refused");
    // Of the load alone: the server is ready first.
    refused["p_tool_args"] = json!({"extra_body": {"refserver": {"shape": "status-429"}}});
    let (run, position) = agent.execute(&admin, "refused", refused).await;
    let mut live = Live::open(&admin, "main/refused:run", position).await;
    live.until("the end of the run", |e| e.event_type == "run.finished" && e.stream == run).await;
    visit(&browser, "/projects/main/refused/refused/1/c4-isl64-osl8").await;
    browser.run(INTO_VIEW, json!([])).await;
    becomes(&browser, "a bar for each that failed", BARS, json!(36)).await;
    let kinds = "return Array.from(document.querySelectorAll('[data-testid=error-kind]')).map(k => k.querySelector('td').textContent)";
    becomes(&browser, "one kind of error", kinds, json!(["60"])).await;
    browser.run(INTO_VIEW, json!([])).await;
    browser.screenshot("job-requests-failed").await;

    // A large log is read when it is asked for.
    let mut many = refserver(&[64], 24_000, 1);
    many["p_workload_code"] = json!("many");
    many["p_engine_args"] = json!({"ttft_ms": 0, "itl_ms": 0});
    let (run, position) = agent.execute(&admin, "many", many).await;
    let mut live = Live::open(&admin, "main/many:run", position).await;
    live.until("the end of the run", |e| e.event_type == "run.finished" && e.stream == run).await;
    visit(&browser, "/projects/main/many/many/1/c64-isl64-osl1").await;
    browser.see("read-requests").await;
    becomes(&browser, "nothing read unasked", BARS, json!(0)).await;
    browser.click("read-requests").await;
    browser.run(INTO_VIEW, json!([])).await;
    becomes(&browser, "the first window of the large log", BARS, json!(36)).await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new(), "errors in the browser's console");
    browser.close().await;

    let phone = Browser::open(&plane.url, PHONE).await;
    phone.sign_in(&email, &password).await;
    visit(&phone, job).await;
    phone.run(INTO_VIEW, json!([])).await;
    becomes(&phone, "the bars on a phone", BARS, json!(36)).await;
    fits_the_window(&phone, job).await;
    phone.screenshot("job-requests-phone").await;
    phone.close().await;
}
