//! Catalogue: every entry with its sources, sets of engine arguments side by side, and their clones.

use serde_json::{Value, json};
use support::browser::{Browser, DESKTOP, PHONE, Window};

use crate::measured::Measured;
use crate::pages::{becomes, fits_the_window, settle, visit};

const ENTRIES: &str =
    "return Array.from(document.querySelectorAll('[data-testid=catalogue-entry]')).map(e => e.dataset.entry)";

/// Argument, what happened to it, and both sides.
const DIFFERENCES: &str = "return Array.from(document.querySelectorAll('[data-testid=difference]')).map(d => [d.dataset.key, d.dataset.change, \
    ...Array.from(d.querySelectorAll('td')).slice(0, 2).map(c => c.textContent)])";

/// The lists by their words in the address, their views and what orders them.
const LISTS: [(&str, &str, &str); 8] = [
    ("models", "v_models", "model_code"),
    ("accelerators", "v_accelerator_types", "accelerator_code"),
    ("frameworks", "v_frameworks", "framework_code,framework_version"),
    ("arguments", "v_framework_engine_args_templates", "framework_code,framework_version,key"),
    ("sets", "v_framework_engine_args_sets", "set_code"),
    ("configurations", "v_server_configs", "config_code"),
    ("tools", "v_tools", "tool_code"),
    ("prompts", "v_prompt_sources", "prompt_source_code"),
];

#[tokio::test]
async fn the_catalogue_shows_every_entry_its_sources_and_how_sets_differ() {
    let measured = Measured::start().await;
    let browser = measured.browser(DESKTOP).await;
    visit(&browser, "/catalogue").await;
    for (word, view, order) in LISTS {
        browser.click(&format!("tab-{word}")).await;
        let rows = measured.admin.rows(&format!("/api/{view}?order={order}&limit=100")).await;
        let keys = order.split(',').collect::<Vec<_>>();
        let wanted: Vec<String> = rows
            .iter()
            .map(|r| keys.iter().map(|k| r[*k].as_str().unwrap_or_default()).collect::<Vec<_>>().join(" "))
            .collect();
        becomes(&browser, word, ENTRIES, json!(wanted)).await;
        if word == "models" {
            browser.screenshot("catalogue").await;
        }
    }
    browser.click("tab-metrics").await;
    browser
        .until(
            "the metrics",
            "return document.querySelector('[data-testid=catalogue]').textContent.includes('ttft_p99_ms')",
        )
        .await;

    arguments(&browser, &measured).await;
    sources(&browser).await;
    compare_sets(&browser, &measured).await;
    clone_set(&browser, &measured).await;
    links(&browser, &measured).await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new(), "errors in the browser's console");
    refuse_a_code_in_use(&browser).await;
    browser.close().await;

    let (first, other) = two_sets(&measured).await;
    let path = format!("/catalogue?tab=sets&entry={other}&against={first}&all=true");
    for (name, window) in [("set-diff-dark", Window { dark: true, ..DESKTOP }), ("set-diff-phone", PHONE)] {
        let other = measured.browser(window).await;
        visit(&other, &path).await;
        other.see("set-diff").await;
        let said = "const m = document.querySelector('[data-change=same] [data-testid=meaning]'); return m?.textContent.length > 0 && m.offsetHeight > 0";
        other.until("what the arguments do", said).await;
        other.screenshot(name).await;
        fits_the_window(&other, &path).await;
        other.close().await;
    }
}

/// Two sets of one framework that differ.
async fn two_sets(measured: &Measured) -> (String, String) {
    let sets = measured
        .admin
        .rows("/api/v_framework_engine_args_sets?framework_code=eq.vllm&verified=is.true&order=set_code&select=set_code&limit=2")
        .await;
    let code = |nth: usize| sets[nth]["set_code"].as_str().expect("a code").to_owned();
    (code(0), code(1))
}

/// Arguments have a type, a range and what needs an approval; they are found and narrowed, all in the address.
async fn arguments(browser: &Browser, measured: &Measured) {
    visit(browser, "/catalogue?tab=arguments").await;
    browser.choose("framework", "vllm").await;
    browser.click("only").await;
    let rows = measured
        .admin
        .rows("/api/v_framework_engine_args_templates?framework_code=eq.vllm&dangerous=is.true&order=framework_version,key")
        .await;
    assert!(!rows.is_empty());
    let wanted: Vec<String> = rows
        .iter()
        .map(|r| {
            ["framework_code", "framework_version", "key"]
                .map(|k| r[k].as_str().unwrap_or_default())
                .join(" ")
        })
        .collect();
    becomes(browser, "what needs an approval", ENTRIES, json!(wanted)).await;
    let marks = "return document.querySelectorAll('[data-testid=dangerous]').length";
    becomes(browser, "each says so", marks, json!(wanted.len())).await;
    becomes(
        browser,
        "the address",
        "return new URL(location).search",
        json!("?tab=arguments&framework=vllm&only=true"),
    )
    .await;
    browser.click("only").await;
    browser.fill("find", "gpu_memory").await;
    browser.run("document.querySelector('[data-testid=find]').dispatchEvent(new Event('change', {bubbles: true}))", json!([])).await;
    browser.until("what was looked for", "const e = Array.from(document.querySelectorAll('[data-testid=catalogue-entry]')); return e.length > 0 && e.every(e => e.textContent.includes('gpu_memory'))").await;
    let range = "return Array.from(document.querySelectorAll('[data-testid=catalogue-entry]')).some(e => e.textContent.includes(' to '))";
    assert_eq!(browser.run(range, json!([])).await, json!(true), "a range is shown");
    browser.screenshot("catalogue-arguments").await;
}

/// An entry says where it comes from.
async fn sources(browser: &Browser) {
    visit(browser, "/catalogue?tab=sets&framework=sglang&only=true").await;
    browser.until("verified ones alone", "const e = Array.from(document.querySelectorAll('[data-testid=catalogue-entry]')); return e.length > 0 && e.every(e => e.querySelector('[data-testid=verified]'))").await;
    browser.click_css("[data-testid=catalogue-entry] [data-testid=entry-link]").await;
    browser.see("sources").await;
    let links = "return Array.from(document.querySelectorAll('[data-testid=sources] a')).every(a => a.href.startsWith('http') && a.rel.includes('noopener'))";
    assert_eq!(browser.run(links, json!([])).await, json!(true));
    let open = "return document.querySelector('[data-testid=catalogue-entry][aria-selected=true]').dataset.entry === new URL(location).searchParams.get('entry')";
    assert_eq!(browser.run(open, json!([])).await, json!(true));
    browser.screenshot("catalogue-set").await;
}

/// What differs between two sets is what the control plane says; equal arguments are a click away.
async fn compare_sets(browser: &Browser, measured: &Measured) {
    let (first, other) = two_sets(measured).await;
    visit(browser, &format!("/catalogue?tab=sets&entry={other}")).await;
    browser.choose("against", &first).await;
    let diff = measured
        .admin
        .command_json("diff_engine_args_sets", &json!({"p_set_code": other, "p_base_set_code": first}))
        .await;
    let text = |value: &Value| match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let wanted: Vec<Value> = diff["differences"]
        .as_array()
        .expect("differences")
        .iter()
        .map(|d| json!([d["key"], d["change"], text(&d["base"]), text(&d["value"])]))
        .collect();
    assert!(!wanted.is_empty(), "{diff}");
    becomes(browser, "what differs", DIFFERENCES, json!(wanted)).await;
    becomes(browser, "the address", "return new URL(location).searchParams.get('against')", json!(first))
        .await;
    browser.click("only-differing").await;
    browser
        .until("what is the same too", "return new URL(location).searchParams.get('all') === 'true'")
        .await;
    let set = measured
        .admin
        .rows(&format!("/api/v_framework_engine_args_values?set_code=eq.{other}&select=key"))
        .await;
    let all = format!(
        "const d = (() => {{ {DIFFERENCES} }})(); return d.filter(d => d[1] !== 'removed' && !d[0].includes('.')).length === {}",
        set.len()
    );
    browser.until("every argument of the set", &all).await;
    // What each does is said, and what needs an approval is marked, also where both have the same value.
    let templates = measured
        .admin
        .rows("/api/v_framework_engine_args_templates?framework_code=eq.vllm&select=framework_version,key,meaning,dangerous")
        .await;
    let version = diff["framework_version"].as_str().expect("a version");
    let said = "return Object.fromEntries(Array.from(document.querySelectorAll('[data-testid=difference]')).map(d => \
        [d.dataset.key, [d.querySelector('[data-testid=meaning]').textContent, d.querySelector('[data-status=flagged]') !== null, d.dataset.change]]))";
    browser.until("meanings", "return document.querySelector('[data-change=same] [data-testid=meaning]')?.textContent.length > 0").await;
    let said = browser.run(said, json!([])).await;
    let mut same = 0;
    for (key, line) in said.as_object().expect("arguments") {
        let of = |t: &&Value| t["framework_version"] == version && t["key"] == key.as_str();
        if let Some(template) = templates.iter().find(of) {
            assert_eq!((&line[0], &line[1]), (&template["meaning"], &template["dangerous"]), "{key}");
            same += usize::from(line[2] == "same");
        }
    }
    assert!(same > 0, "{said}");
    browser.screenshot("set-diff").await;
    // Against the defaults: every argument of the set that is not its default.
    browser.choose("against", "~defaults").await;
    browser
        .until(
            "the defaults",
            "return document.querySelector('[data-testid=set-diff] thead')?.textContent.includes('defaults')",
        )
        .await;
}

/// A clone differs in exactly what was changed.
async fn clone_set(browser: &Browser, measured: &Measured) {
    let sets = measured
        .admin
        .rows("/api/v_framework_engine_args_sets?framework_code=eq.vllm&engine_args=cs.{\"tensor_parallel_size\":8}&order=set_code&limit=1")
        .await;
    let from = sets[0]["set_code"].as_str().expect("a set with tensor_parallel_size");
    visit(browser, &format!("/catalogue?tab=sets&entry={from}")).await;
    browser.click("clone-set").await;
    browser.see("clone-form").await;
    browser
        .until(
            "the templates",
            "return document.querySelector('[data-testid=clone-form]').textContent.includes('int')",
        )
        .await;
    browser.fill("clone-code", "ours-tp4").await;
    browser.fill("clone-notes", "half the GPUs").await;
    browser.fill("arg-tensor_parallel_size", "four").await;
    browser.click("save-clone").await;
    let wrong = browser.text("clone-wrong").await;
    assert!(wrong.contains("tensor_parallel_size") && wrong.contains("whole number"), "{wrong}");
    browser.fill("arg-tensor_parallel_size", "4").await;
    browser.screenshot("clone-set").await;
    browser.click("save-clone").await;
    becomes(
        browser,
        "the clone beside its original",
        "return [new URL(location).searchParams.get('entry'), new URL(location).searchParams.get('against')]",
        json!(["ours-tp4", from]),
    )
    .await;
    becomes(browser, "what was changed", DIFFERENCES, json!([["tensor_parallel_size", "changed", "8", "4"]]))
        .await;
    let clone = measured.admin.rows("/api/v_framework_engine_args_sets?set_code=eq.ours-tp4").await.remove(0);
    assert_eq!(
        (&clone["engine_args"]["tensor_parallel_size"], &clone["cloned_from"], &clone["custom"]),
        (&json!(4), &json!(format!("{from}@1")), &json!(true))
    );
}

/// A code is used once: the refusal says so.
async fn refuse_a_code_in_use(browser: &Browser) {
    visit(browser, "/catalogue?tab=sets&entry=ours-tp4&clone=true").await;
    browser.fill("clone-code", "ours-tp4").await;
    browser.click("save-clone").await;
    let refused = browser.see("clone-trouble").await.attr("data-code").await.expect("an attribute");
    assert_eq!(refused.as_deref(), Some("set_exists"));
}

/// Links open the same view in a fresh browser.
async fn links(browser: &Browser, measured: &Measured) {
    let (first, other) = two_sets(measured).await;
    let seen = format!(
        "return JSON.stringify([(() => {{ {ENTRIES} }})(), (() => {{ {DIFFERENCES} }})(), document.querySelector('.tabs [aria-current]').textContent, \
         document.querySelector('[data-testid=entry] h2')?.textContent ?? null, document.querySelector('[data-testid=find]')?.value ?? null, \
         document.querySelector('[data-testid=clone-form]') !== null])"
    );
    let fresh = measured.browser(DESKTOP).await;
    let mut links: Vec<String> =
        LISTS.iter().map(|(word, ..)| format!("/catalogue?tab={word}&find=a")).collect();
    links.push("/catalogue?tab=arguments&framework=sglang&only=true".to_owned());
    links.push("/catalogue?tab=sets&framework=vllm&page=2".to_owned());
    links.push("/catalogue?entry=google/gemma-3-270m".to_owned());
    for against in [first.as_str(), "~7edefaults"] {
        for rest in ["", "&all=true", "&clone=true"] {
            links.push(format!("/catalogue?tab=sets&entry={other}&against={against}{rest}"));
        }
    }
    for link in links {
        visit(browser, &link).await;
        visit(&fresh, &link).await;
        settle(&fresh, &link).await;
        let wanted = browser.run(&seen, json!([])).await;
        becomes(&fresh, &link, &seen, wanted).await;
    }
    fresh.close().await;
}
