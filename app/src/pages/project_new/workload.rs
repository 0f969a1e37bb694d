//! The workload as it is filled in: what is served, by what, and the traffic.

use events::keys::code_from_name;
use leptos::prelude::*;

use super::draft::{codes, versions};
use super::readiness::check_while_typing;
use super::{Card, Form};
use crate::browser::remote::Rows;
use crate::format::maybe_count;
use crate::row::Row;

const CONCURRENCY: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const ISL: [u32; 5] = [128, 256, 512, 1024, 2048];
const OSL: [u32; 5] = [32, 64, 128, 256, 512];

/// A choice among codes.
fn select(
    testid: &'static str,
    label: &'static str,
    class: &'static str,
    value: impl Fn() -> String + Copy + Send + Sync + 'static,
    options: impl Fn() -> Vec<(String, String)> + Copy + Send + Sync + 'static,
    set: impl Fn(String) + Copy + 'static,
) -> AnyView {
    let class = format!("field {class}");
    view! {
        <label class=class>
            <span class="field-label">{label}</span>
            <select class="control" data-testid=testid prop:value=value on:change=move |event| set(event_target_value(&event))>
                {move || {
                    let chosen = value();
                    options()
                        .into_iter()
                        .map(|(code, word)| view! { <option value=code.clone() selected=code == chosen>{word}</option> })
                        .collect_view()
                }}
            </select>
        </label>
    }
    .into_any()
}

#[component]
pub(super) fn Workload(
    form: Form,
    card: Card,
    models: Rows,
    frameworks: Rows,
    tools: Rows,
    servers: Rows,
) -> impl IntoView {
    let draft = card.draft;
    check_while_typing(form, card, servers);
    let place = move || form.cards.with(|cards| cards.iter().position(|c| c.id == card.id).unwrap_or(0) + 1);
    let several = move || form.cards.with(|cards| cards.len() > 1);
    let id = format!("workload-{}", card.id);
    // Radio buttons of one workload are a group of their own.
    let streaming = format!("streaming-{}", card.id);
    let same = |list: Vec<String>| list.into_iter().map(|c| (c.clone(), c)).collect::<Vec<_>>();
    let code = move || {
        draft.with(|d| {
            let model = d.model.rsplit('/').next().unwrap_or_default();
            code_from_name(&[model, &d.framework, &d.quantization].join(" "))
        })
    };
    view! {
        <section
            class="workload"
            aria-labelledby=id.clone()
            data-testid="workload-card"
            data-active=move || form.shown().is_some_and(|shown| shown.id == card.id).to_string()
            on:focusin=move |_| form.active.set(card.id)
        >
            <div class="section-head section-head-plain">
                <h2 id=id.clone()>{move || if several() { format!("Workload {}", place()) } else { "Workload".to_owned() }}</h2>
                <span class="key quiet">{code}</span>
                {form.existing.is_none().then(|| view! {
                    <div class="actions push">
                        <button type="button" class="figure-toggle" data-testid="duplicate-card" on:click=move |_| form.add(draft.get_untracked())>"Duplicate"</button>
                        <Show when=several>
                            <button type="button" class="figure-toggle" data-testid="remove-card" on:click=move |_| form.remove(card.id)>"Remove"</button>
                        </Show>
                    </div>
                })}
            </div>
            <div class="form-grid">
                {select("model", "Model", "span-5", move || draft.with(|d| d.model.clone()), move || same(codes(&models.all(), "model_code")), move |v| draft.update(|d| d.model = v))}
                {select("framework", "Framework", "span-2 half", move || draft.with(|d| d.framework.clone()), move || same(codes(&frameworks.all(), "framework_code")), move |v| {
                    draft.update(|d| {
                        d.framework = v;
                        d.version = versions(&frameworks.rows.get_untracked().unwrap_or_default(), &d.framework).last().cloned().unwrap_or_default();
                    });
                })}
                {select("framework-version", "Version", "span-2 half", move || draft.with(|d| d.version.clone()), move || same(versions(&frameworks.all(), &draft.with(|d| d.framework.clone()))), move |v| draft.update(|d| d.version = v))}
                {select("quantization", "Quantization", "span-3 half", move || draft.with(|d| d.quantization.clone()), quantizations, move |v| draft.update(|d| d.quantization = v))}
                {select("server", "Server", "span-4", move || form.server.get(), move || servers.all().iter().map(|s| (s.text("server"), server_words(s))).collect(), move |v| form.server.set(v))}
                {select("tool", "Tool", "span-3 half", move || draft.with(|d| d.tool.clone()), move || same(tool_codes(&tools.all())), move |v| draft.update(|d| d.tool = v))}
                <label class="field span-3 half">
                    <span class="field-label">"Requests per scenario"</span>
                    <input
                        class="control"
                        inputmode="numeric"
                        placeholder="max(200, 10 × concurrency)"
                        data-testid="num-requests"
                        prop:value=move || draft.with(|d| d.requests.clone())
                        on:input=move |event| draft.update(|d| d.requests = event_target_value(&event))
                    />
                </label>
                <fieldset class="field span-2">
                    <legend class="field-label">"Streaming"</legend>
                    <span class="segmented">
                        <label><input type="radio" name=streaming.clone() prop:checked=move || draft.with(|d| d.streaming) on:change=move |_| draft.update(|d| d.streaming = true)/>"On"</label>
                        <label><input type="radio" name=streaming data-testid="streaming-off" prop:checked=move || draft.with(|d| !d.streaming) on:change=move |_| draft.update(|d| d.streaming = false)/>"Off"</label>
                    </span>
                </fieldset>
                <Show when=move || draft.with(|d| d.framework == "openai")>
                    <label class="field span-12">
                        <span class="field-label">"Endpoint that already runs"</span>
                        <input
                            class="control key"
                            type="url"
                            placeholder="http://host:8000/v1"
                            data-testid="endpoint"
                            prop:value=move || draft.with(|d| d.endpoint.clone())
                            on:input=move |event| draft.update(|d| d.endpoint = event_target_value(&event))
                        />
                    </label>
                </Show>
                <details class="span-12">
                    <summary>"Engine arguments"</summary>
                    <label class="field">
                        <span class="field-label">"One a line, key=value; what is not named keeps the framework's default"</span>
                        <textarea
                            class="control control-tall key"
                            rows="3"
                            placeholder="ctx_size=4096"
                            data-testid="engine-args"
                            prop:value=move || draft.with(|d| d.engine_args.clone())
                            on:input=move |event| draft.update(|d| d.engine_args = event_target_value(&event))
                        ></textarea>
                    </label>
                    <label class="check">
                        <input
                            type="checkbox"
                            prop:checked=move || draft.with(|d| d.keep_server)
                            on:change=move |event| draft.update(|d| d.keep_server = event_target_checked(&event))
                        />
                        " keep one model server for all jobs of a run (recorded in the result)"
                    </label>
                </details>
            </div>
            <div class="matrix">
                <Chips label="Concurrency" name="concurrency" usual=&CONCURRENCY set=Signal::derive(move || draft.with(|d| d.concurrency.clone())) toggle=move |v| draft.update(|d| flip(&mut d.concurrency, v))/>
                <Chips label="Input tokens, ISL" name="isl" usual=&ISL set=Signal::derive(move || draft.with(|d| d.isl.clone())) toggle=move |v| draft.update(|d| flip(&mut d.isl, v))/>
                <Chips label="Output tokens, OSL" name="osl" usual=&OSL set=Signal::derive(move || draft.with(|d| d.osl.clone())) toggle=move |v| draft.update(|d| flip(&mut d.osl, v))/>
            </div>
        </section>
    }
    .into_any()
}

/// The tools of the catalogue; until it is read, the one there always is.
fn tool_codes(tools: &[Row]) -> Vec<String> {
    let codes = codes(tools, "tool_code");
    if codes.is_empty() { vec![events::workload::TOOL_METRUMBENCH_LLM.to_owned()] } else { codes }
}

fn quantizations() -> Vec<(String, String)> {
    ["", "bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4", "q8_0", "q4_k_m"]
        .iter()
        .map(|q| ((*q).to_owned(), if q.is_empty() { "as published".to_owned() } else { (*q).to_owned() }))
        .collect()
}

fn server_words(server: &Row) -> String {
    let gpus = match (server.whole("gpu_count"), server.maybe_text("gpu_name")) {
        (Some(n), Some(name)) if n > 0 => format!("{n} × {name}"),
        _ => format!("CPU, {} cores", maybe_count(server.whole("cpus"))),
    };
    format!("{}/{} · {gpus} · {}", server.text("config_code"), server.text("hostname"), server.text("state"))
}

fn flip(set: &mut std::collections::BTreeSet<u32>, value: u32) {
    if !set.remove(&value) {
        set.insert(value);
    }
}

#[component]
fn Chips(
    label: &'static str,
    name: &'static str,
    usual: &'static [u32],
    set: Signal<std::collections::BTreeSet<u32>>,
    toggle: impl Fn(u32) + Copy + Send + Sync + 'static,
) -> impl IntoView {
    let shown = Memo::new(move |_| {
        let mut values: Vec<u32> = usual.iter().copied().chain(set.get()).collect();
        values.sort_unstable();
        values.dedup();
        values
    });
    view! {
        <fieldset class="field" data-testid=format!("chips-{name}")>
            <legend class="field-label">{label}</legend>
            <div class="chips">
                <For each=move || shown.get() key=|v| *v let:value>
                    <label class="chip" data-value=value.to_string()>
                        <input type="checkbox" prop:checked=move || set.with(|s| s.contains(&value)) on:change=move |_| toggle(value)/>
                        {value}
                    </label>
                </For>
                <input
                    class="chip-input"
                    inputmode="numeric"
                    placeholder="+"
                    aria-label=format!("Another value of {label}")
                    on:change=move |event| {
                        let value = event_target_value(&event).trim().parse::<u32>();
                        if let Ok(value) = value && value > 0 && !set.with_untracked(|s| s.contains(&value)) {
                            toggle(value);
                        }
                        if let Some(input) = event.target().map(wasm_bindgen::JsCast::unchecked_into::<web_sys::HtmlInputElement>) {
                            input.set_value("");
                        }
                    }
                />
            </div>
        </fieldset>
    }
    .into_any()
}
