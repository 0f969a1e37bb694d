//! Results of other tools: read before they are sent, refused by line, and marked imported wherever they appear.

use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP, PHONE};
use support::control_plane::ControlPlane;

use crate::pages::{asked_for_nothing_missing, becomes, fits_the_window, visit};

fn vllm(concurrency: u32, tokens: f64) -> Value {
    json!({
        "date": "20261130-190000", "model_id": "google/gemma-3-270m", "num_prompts": 100, "max_concurrency": concurrency,
        "duration": 10.0, "completed": 100, "failed": 0, "total_input_tokens": 6400, "total_output_tokens": tokens * 10.0,
        "request_throughput": 10.0, "output_throughput": tokens, "total_token_throughput": 640.0 + tokens,
        "mean_ttft_ms": 21.0, "median_ttft_ms": 20.5, "std_ttft_ms": 2.0, "p99_ttft_ms": 30.0,
        "mean_tpot_ms": 5.0, "median_tpot_ms": 5.1, "std_tpot_ms": 0.4, "p99_tpot_ms": 7.0,
    })
}

/// Puts a file into the form's field.
async fn choose(browser: &Browser, name: &str, text: &str) {
    let script = "const data = new DataTransfer(); data.items.add(new File([arguments[1]], arguments[0])); \
        const input = document.querySelector('[data-testid=import-file]'); input.files = data.files; \
        input.dispatchEvent(new Event('change', {bubbles: true}))";
    browser.run(script, json!([name, text])).await;
}

#[tokio::test]
async fn a_file_is_read_before_it_is_sent_and_its_results_are_marked_imported() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    admin
        .command(
            "create_project",
            &json!({"p_project_code": "others", "p_name": "Others", "p_workloads": []}),
        )
        .await;
    let (email, password) = plane.first_sign_in();
    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.sign_in(&email, &password).await;
    visit(&browser, "/projects/main/others").await;
    browser.click("import").await;
    browser.see("import-form").await;
    let project = "return document.querySelector('[data-testid=import-project]').value";
    becomes(&browser, "the project it came from", project, json!("others")).await;

    // Every line that is wrong is told, and nothing can be sent.
    let line = include_str!("../../events/tests/golden/tool_output.recorded.v1.json");
    let recorded: Value = serde_json::from_str(line).expect("a golden file");
    let good = recorded["summary"].to_string();
    choose(&browser, "ours.jsonl", &format!("{good}\n{{\"schema\": 1}}\n{good}\nnonsense\n")).await;
    let places = "return Array.from(document.querySelectorAll('[data-testid=import-fault] th')).map(t => t.textContent)";
    becomes(&browser, "the faults by line", places, json!(["line 2", "line 4"])).await;
    let disabled =
        "return document.querySelector('[data-testid=import-submit]').getAttribute('aria-disabled')";
    becomes(&browser, "nothing to send", disabled, json!("true")).await;
    browser.screenshot("import-faults").await;

    // A good file shows what it holds; the format is recognised.
    choose(&browser, "vllm.json", &vllm(8, 1280.0).to_string()).await;
    let held = "return document.querySelectorAll('[data-testid=import-result]').length";
    becomes(&browser, "one result", held, json!(1)).await;
    browser.choose("import-model", "google/gemma-3-270m").await;
    browser.fill("import-framework", "vllm").await;
    browser.fill("import-gpu", "NVIDIA H100").await;
    browser.fill("import-gpus", "many").await;
    browser.click("import-submit").await;
    let trouble =
        "return document.querySelector('[data-testid=import-trouble]').textContent.includes('is a number')";
    browser.until("what is no number", trouble).await;
    browser.fill("import-gpus", "1").await;
    // What contradicts the file is refused by the control plane, in its words.
    browser.fill("import-concurrency", "16").await;
    browser.click("import-submit").await;
    let contradiction = "return document.querySelector('[data-testid=import-trouble]').textContent.includes('the file says 8')";
    browser.until("the contradiction", contradiction).await;
    browser.fill("import-concurrency", "8").await;
    browser.click("import-submit").await;
    browser.see("imported").await;
    browser.screenshot("import").await;

    // A file too large for the command goes by an upload.
    let mut large = vllm(16, 2000.0);
    large["ttfts"] = json!(vec![0.0205; 160_000]);
    choose(&browser, "large.json", &large.to_string()).await;
    browser
        .until(
            "the large file read",
            "return document.querySelector('#file + .meta')?.textContent.includes('large.json')",
        )
        .await;
    browser.fill("import-concurrency", "16").await;
    browser.click("import-submit").await;
    let imported = "return document.querySelector('[data-testid=imported] a.key')?.textContent.endsWith('/1/c16') ?? false";
    browser.until("the large file imported", imported).await;

    // Marked wherever they appear: in the project, in Reporting, on their own page, in their proof.
    visit(&browser, "/projects/main/others").await;
    let marks = "return Array.from(document.querySelectorAll('[data-testid=imported-row] [data-status]')).map(s => s.textContent)";
    becomes(&browser, "both marked in the project", marks, json!(["imported", "imported"])).await;
    browser.screenshot("project-imported").await;
    browser.click_css("[data-testid=imported-row]:last-child a.key").await;
    browser.see("imported-result").await;
    let figure = "return document.querySelector('[data-testid=headline-output_tokens_per_second] [data-testid=figure]')?.dataset.value ?? null";
    browser.until("its figure", &format!("return (() => {{ {figure} }})() !== null")).await;
    browser.screenshot("imported-result").await;
    browser.click("imported-proof").await;
    let chain = "return Array.from(document.querySelectorAll('[data-testid=chain] [data-link]')).map(l => l.dataset.link)";
    becomes(&browser, "its chain", chain, json!(["project", "file", "metrics"])).await;
    browser.screenshot("imported-result-proof").await;
    visit(&browser, "/reporting?project=others").await;
    let rows = "return Array.from(document.querySelectorAll('[data-testid=result] [data-status]')).map(s => s.textContent)";
    becomes(&browser, "both marked in Reporting", rows, json!(["imported", "imported"])).await;
    asked_for_nothing_missing(&browser).await;
    let errors = browser.console_errors().await;
    let refused = |e: &&String| !e.contains("status of 422") && !e.contains("status of 400");
    assert_eq!(errors.iter().filter(refused).collect::<Vec<_>>(), Vec::<&String>::new());
    browser.close().await;

    let phone = Browser::open(&plane.url, PHONE).await;
    phone.sign_in(&email, &password).await;
    visit(&phone, "/projects/import?project=others").await;
    fits_the_window(&phone, "/projects/import").await;
    phone.screenshot("import-phone").await;
    phone.close().await;
}
