//! Every kind of workload, made on the page with its own fields and launched from there; cures that are buttons.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use support::agent::Agent;
use support::api::Api;
use support::browser::{Browser, DESKTOP};
use support::control_plane::ControlPlane;
use support::live::Live;

use crate::pages::{becomes, set_field, settle, visit};

/// Sets a field of a workload's card as a person would: only what can be chosen.
async fn set(browser: &Browser, card: usize, testid: &str, value: &str) {
    let field = format!(
        "document.querySelectorAll('[data-testid=workload-card]')[{card}]?.querySelector('[data-testid=\"{testid}\"]')"
    );
    set_field(browser, &field, testid, value).await;
}

/// Presses something in a workload's card, once it is there.
async fn press(browser: &Browser, card: usize, css: &str) {
    let script = format!(
        "const e = document.querySelectorAll('[data-testid=workload-card]')[{card}]?.querySelector({}); \
         e?.scrollIntoView({{block: 'center'}}); e?.click(); return !!e",
        json!(css)
    );
    browser.until(&format!("{css} in card {card}"), &script).await;
}

/// Leaves one concurrency.
async fn one_at_a_time(browser: &Browser, card: usize) {
    for value in ["2", "4"] {
        press(browser, card, &format!("[data-testid=chips-concurrency] [data-value='{value}'] input")).await;
    }
}

const VERDICT: &str =
    "return document.querySelector('[data-testid=readiness-verdict]').textContent.startsWith('ready')";

/// A host with audio of its own and a program that takes InferenceX's arguments.
async fn world() -> (ControlPlane, Api, Agent) {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let folder = plane.dir().parent().expect("the test's folder").join("host");
    std::fs::create_dir_all(&folder).expect("a folder");
    let manifest = format!("{}\n", json!({"id": "1", "path": "1.wav", "duration": 4.0}));
    let said = "the quick brown fox jumps over the lazy dog";
    let transcript = format!("{}\n", json!({"id": "1", "transcript": said}));
    std::fs::write(folder.join("1.wav"), [7; 1000]).expect("audio");
    std::fs::write(folder.join("manifest.jsonl"), manifest).expect("a manifest");
    std::fs::write(folder.join("transcripts.jsonl"), transcript).expect("transcripts");
    let runner = folder.join("inferencex");
    std::fs::write(&runner, include_str!("runner.py")).expect("a program");
    std::fs::set_permissions(&runner, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let change = |policy: String| {
        policy
            .replace("[snapshots]", &format!("[snapshots]\nlibrispeech-test-clean = {folder:?}"))
            .replace("[executables]", &format!("[executables]\ninferencex = [{runner:?}]"))
    };
    let agent = Agent::start_with(&plane, &admin, "kinds-host", change).await;
    let mut server = Live::open(&admin, "main:server", 0).await;
    server.until("the server online", |e| e.payload["state"] == "online").await;
    (plane, admin, agent)
}

#[tokio::test]
async fn every_kind_of_workload_has_its_fields_and_is_launched_from_the_page() {
    let (plane, admin, _agent) = world().await;
    let (email, password) = plane.first_sign_in();
    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.sign_in(&email, &password).await;
    fields(&browser).await;
    cures(&browser, &admin).await;

    // Images and speech in one project, executed together.
    visit(&browser, "/projects/new").await;
    browser.click("start-afresh").await;
    browser.fill("project-name", "Kinds").await;
    press(&browser, 0, "[data-testid=kind][data-tool=metrumbench-vlm] input").await;
    set(&browser, 0, "model", "Qwen/Qwen3-VL-2B-Instruct").await;
    set(&browser, 0, "framework", "refserver").await;
    set(&browser, 0, "num-requests", "6").await;
    set(&browser, 0, "arg-synthetic_image", "64x48").await;
    one_at_a_time(&browser, 0).await;
    browser.until("the workload ready", VERDICT).await;
    let argv = "return document.querySelector('[data-testid=resolved-commands]')?.textContent.includes('--synthetic-image=64x48') ?? false";
    browser.until("the argument in the command", argv).await;

    browser.click("add-card").await;
    press(&browser, 1, "[data-testid=kind][data-tool=metrumbench-asr] input").await;
    set(&browser, 1, "model", "openai/whisper-tiny").await;
    set(&browser, 1, "framework", "refserver").await;
    set(&browser, 1, "prompt-source", "librispeech-test-clean").await;
    set(&browser, 1, "num-requests", "3").await;
    set(&browser, 1, "arg-language", "en").await;
    browser.until("the second workload ready", VERDICT).await;
    browser.screenshot("project-new-asr").await;
    let may = "return document.querySelector('[data-testid=save-and-execute]').getAttribute('aria-disabled')";
    becomes(&browser, "both can be executed", may, json!("false")).await;
    browser.click("save-and-execute").await;
    let runs = "return location.pathname === '/projects/main/kinds' ? Array.from(document.querySelectorAll('[data-testid=run] [data-status]')).map(s => s.dataset.status) : null";
    becomes(&browser, "both runs completed", runs, json!(["completed", "completed"])).await;

    // Each result is headed by what its tool measures, with every other figure of the tool below.
    let results = admin.rows("/api/v_benchmark_results?project_code=eq.kinds&order=position").await;
    for (row, name, heads, own) in [
        (&results[0], "job-vlm", ["output_tokens_per_second", "ttft_p50_ms"], "image"),
        (&results[1], "job-asr", ["audio_seconds_per_second", "wer_avg"], "rtf"),
    ] {
        let path = row["job"].as_str().expect("a job").trim_start_matches("job/").to_owned();
        visit(&browser, &format!("/projects/{path}")).await;
        for metric in heads {
            let value = row[metric].as_f64().expect("a figure");
            let figure = format!(
                "const e = document.querySelector('[data-testid=headline-{metric}] [data-testid=figure]'); \
                 return !!e && Math.abs(+e.dataset.value - {value}) <= 1e-6 * Math.abs({value})"
            );
            browser.until(metric, &figure).await;
        }
        let figures = format!(
            "return Array.from(document.querySelectorAll('[data-testid=own-figure]')).some(f => f.dataset.column.startsWith('{own}') && isFinite(f.dataset.value))"
        );
        browser.until(&format!("{own} among the figures of the tool"), &figures).await;
        browser.screenshot(name).await;
    }

    // InferenceX, added to the project and executed from its card there.
    visit(&browser, "/projects/new?project=kinds").await;
    set(&browser, 0, "tool", "inferencex").await;
    set(&browser, 0, "framework", "refserver").await;
    set(&browser, 0, "num-requests", "4").await;
    one_at_a_time(&browser, 0).await;
    browser.until("the workload ready", VERDICT).await;
    browser.click("save").await;
    let third = "[data-testid=workload]:nth-child(3) [data-testid=start-run]";
    browser.find_css(third).await;
    browser.click_css(third).await;
    browser
        .until("its run", "return /^\\/projects\\/main\\/kinds\\/[^/]+\\/1$/.test(location.pathname)")
        .await;
    let status = "return document.querySelector('[data-testid=job]')?.dataset.status ?? null";
    becomes(&browser, "its job completed", status, json!("completed")).await;

    let results = admin.rows("/api/v_benchmark_results?project_code=eq.kinds&order=position").await;
    let tools: Vec<&Value> = results.iter().map(|r| &r["tool_code"]).collect();
    assert_eq!(tools, [&json!("metrumbench-vlm"), &json!("metrumbench-asr"), &json!("inferencex")]);
    assert_eq!(results[0]["image_detail"], json!("high"));
    assert!(results[2]["output_tokens_per_second"].as_f64().is_some_and(|n| n > 0.0), "{}", results[2]);
    // While a form is being filled what it asks about may make no sense yet: refused, and said on the page.
    let errors = browser.console_errors().await;
    let errors: Vec<&String> =
        errors.iter().filter(|error| !error.contains("/rpc/check_readiness")).collect();
    assert_eq!(errors, Vec::<&String>::new(), "errors in the browser's console");
    browser.close().await;
}

/// Each kind has its own axes and arguments.
async fn fields(browser: &Browser) {
    visit(browser, "/projects/new").await;
    let axes = "return Array.from(document.querySelectorAll('fieldset[data-testid^=chips-]')).map(c => c.dataset.testid.slice(6))";
    for (tool, wanted, own) in [
        (
            "metrumbench-vlm",
            json!(["concurrency", "isl", "osl", "images", "image-details"]),
            "image_transport",
        ),
        ("metrumbench-asr", json!(["concurrency"]), "normalizer"),
        ("kyai", json!(["concurrency"]), "judge_model"),
        ("kv-cache-offload", json!(["concurrency", "isl", "osl", "rounds"]), "tier"),
        ("metrumbench-imagegen", json!(["concurrency", "images", "image-sizes"]), "guidance_scale"),
    ] {
        browser.click_css(&format!("[data-testid=kind][data-tool={tool}]")).await;
        becomes(browser, tool, axes, wanted).await;
        let chosen = "return document.querySelector('[data-testid=tool]').value";
        becomes(browser, "the tool", chosen, json!(tool)).await;
        let open =
            format!("return document.querySelector('[data-testid=arg-{own}]')?.closest('details') === null");
        browser.until(&format!("{own} in the open"), &open).await;
        // A list that is closed takes no other word; what is no value is said, and stays to be mended.
        if tool == "metrumbench-vlm" {
            let other =
                "return document.querySelector('[data-testid=chips-image-details] .chip-input') === null";
            becomes(browser, "a closed list", other, json!(true)).await;
        }
        if tool == "kv-cache-offload" {
            let field = "document.querySelector('[data-testid=chips-rounds] .chip-input')";
            set_field(browser, field, "rounds", "2").await;
            let said = "return document.querySelector('[data-testid=refused-rounds]').textContent.includes('at least 5')";
            becomes(browser, "why it was not taken", said, json!(true)).await;
            becomes(browser, "what was typed", &format!("return {field}.value"), json!("2")).await;
        }
    }
    browser.click_css("[data-value='512x512']").await;
    let codes = "return Array.from(document.querySelectorAll('[data-testid=scenarios] th[scope=row]')).map(t => t.textContent)";
    becomes(browser, "the scenarios", codes, json!(["c1-512x512", "c2-512x512", "c4-512x512"])).await;
    set(browser, 0, "arg-steps", "20").await;
    set(browser, 0, "framework", "refserver").await;
    browser.until("the workload ready", VERDICT).await;
    let argv = "return document.querySelector('[data-testid=resolved-commands]')?.textContent.includes('--steps=20') ?? false";
    browser.until("the argument in the command", argv).await;
    settle(browser, "the form").await;
    browser.screenshot("project-new-imagegen").await;
}

/// What stands in the way is cured by a press, or said so that it can be copied.
async fn cures(browser: &Browser, admin: &Api) {
    browser.click_css("[data-testid=kind][data-tool=metrumbench-llm]").await;
    set(browser, 0, "num-requests", "8").await;
    let cure = "[data-rule=load_is_sound] [data-testid=cure][data-field='p_scenarios.p_num_requests']";
    browser.find_css(cure).await;
    // Text of a model that does not fit this host, by a framework that it does not have.
    set(browser, 0, "model", "meta-llama/Llama-3.3-70B-Instruct").await;
    set(browser, 0, "framework", "vllm").await;
    browser.find_css("[data-rule=framework_available][data-result=fails] .cure-line code").await;
    browser.screenshot("project-new-cure").await;
    let disabled =
        "return document.querySelector('[data-testid=save-and-execute]').getAttribute('aria-disabled')";
    becomes(browser, "no executing of what fails", disabled, json!("true")).await;
    browser.find_css(cure).await;
    browser.click_css(cure).await;
    let requests = "return document.querySelector('[data-testid=num-requests]').value";
    becomes(browser, "the cure in the form", requests, json!("200")).await;
    browser.until("the cure gone", &format!("return document.querySelector(\"{cure}\") === null")).await;
    becomes(browser, "the focus kept", "return document.activeElement.id", json!("readiness")).await;
    // A cure that is a command: what loads code is approved by whoever may, and readiness is judged anew.
    set(browser, 0, "engine-args", "trust_remote_code=true").await;
    let unapproved = "[data-rule=dangerous_args_approved][data-result=fails]";
    browser.find_css(unapproved).await;
    browser.click_css(&format!("{unapproved} [data-testid=cure-command]")).await;
    let judged = "return document.querySelector('[data-rule=dangerous_args_approved]')?.textContent.includes('approved, but') || document.querySelector('[data-rule=dangerous_args_approved]')?.textContent.includes('they are approved')";
    browser.until("the approval in force", judged).await;
    let said = "return document.querySelector('[data-rule=dangerous_args_approved] [data-testid=cure-command]') === null";
    becomes(browser, "nothing left to approve", said, json!(true)).await;
    let approved = admin.rows("/api/v_dangerous_arg_approvals?program_code=eq.vllm").await;
    assert_eq!(
        (&approved[0]["key"], &approved[0]["value"]),
        (&json!("trust_remote_code"), &json!(true)),
        "{approved:?}"
    );
    // An argument of one's own stands beside the framework's default.
    set(browser, 0, "model", "google/gemma-3-270m").await;
    set(browser, 0, "framework", "llama-cpp").await;
    set(browser, 0, "engine-args", "ctx_size=4096").await;
    browser.find_css("[data-testid=in-force][data-key=ctx_size]").await;
    // Judged by its answers too, as a workload of its own.
    browser.click("judge-card").await;
    let tools = "return Array.from(document.querySelectorAll('[data-testid=tool]')).map(t => t.value)";
    becomes(browser, "KYAI beside it", tools, json!(["metrumbench-llm", "kyai"])).await;
    set(browser, 1, "arg-dataset", "ifeval").await;
    let kept = "return localStorage.getItem('draft:main')?.includes('ifeval') ?? false";
    browser.until("the form kept", kept).await;
    browser.screenshot("project-new-kyai").await;
}
