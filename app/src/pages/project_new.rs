//! New project: one page from a question to running jobs; readiness and commands while one types.

use events::api::{CheckReadiness, CreateProject, CreateWorkload, Readiness, StartRun};
use events::keys::code_from_name;
use events::project::ProjectVisibility;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use wasm_bindgen_futures::spawn_local;

use super::workload_form::{Draft, codes, versions};
use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::format::{count, maybe_count};
use crate::parts::{CopyButton, PageHead, command, shell};
use crate::row::Row;
use crate::state::live;
use crate::state::query::Query;

const CONCURRENCY: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const ISL: [u32; 5] = [128, 256, 512, 1024, 2048];
const OSL: [u32; 5] = [32, 64, 128, 256, 512];

/// What the form holds; copied freely.
#[derive(Clone, Copy)]
struct Form {
    name: RwSignal<String>,
    visibility: RwSignal<ProjectVisibility>,
    draft: RwSignal<Draft>,
    server: RwSignal<String>,
    readiness: RwSignal<Option<Readiness>>,
    trouble: RwSignal<Option<Trouble>>,
    busy: RwSignal<bool>,
    /// The project a workload is added to; nothing for a new one.
    existing: Option<StoredValue<String>>,
}

impl Form {
    fn code(self) -> String {
        match self.existing {
            Some(code) => code.get_value(),
            None => self.name.try_with(|name| code_from_name(name)).unwrap_or_default(),
        }
    }
}

/// The page that makes a project, or adds a workload to one (`?project=code`).
#[component]
pub fn NewProject() -> impl IntoView {
    let page = Page::expect();
    let location = use_location();
    let existing = Query::parse(&location.search.get_untracked()).get("project").map(str::to_owned);
    let form = Form {
        name: RwSignal::new(existing.clone().unwrap_or_default()),
        visibility: RwSignal::new(ProjectVisibility::Organization),
        draft: RwSignal::new(Draft::default()),
        server: RwSignal::new(String::new()),
        readiness: RwSignal::new(None),
        trouble: RwSignal::new(None),
        busy: RwSignal::new(false),
        existing: existing.map(StoredValue::new),
    };
    let models = use_rows(|| Some("/api/v_models?order=model_code.asc&limit=500".into()));
    let frameworks = use_rows(|| Some("/api/v_frameworks?order=framework_code.asc&limit=500".into()));
    let tools = use_rows(|| Some("/api/v_tools?order=tool_code.asc".into()));
    let servers = use_rows(|| Some("/api/v_servers?order=server.asc".into()));
    let projects = use_rows(|| Some("/api/v_projects?select=project_code&limit=1000".into()));
    let org = page.org_now();
    if !org.is_empty() {
        keep_live(servers, vec![format!("{org}:server")], live::fold_server, |e| live::kind(e) == "server");
    }
    // The first sensible choice, once it is known what there is.
    Effect::new(move |_| {
        let (Some(models), Some(frameworks), Some(servers)) =
            (models.rows.get(), frameworks.rows.get(), servers.rows.get())
        else {
            return;
        };
        if form.server.get_untracked().is_empty()
            && let Some(server) = servers.iter().find(|s| s.text("state") == "online").or(servers.first())
        {
            form.server.set(server.text("server"));
        }
        let chosen = form.server.get_untracked();
        let server = servers.iter().find(|s| s.text("server") == chosen);
        form.draft.update(|draft| draft.suit(server, &models, &frameworks));
    });
    check_while_typing(form, servers);

    if !untrack(|| page.signed_in()) {
        return super::unknown_key("page for visitors:", "/projects/new");
    }
    let title = if form.existing.is_some() { "New workload" } else { "New project" };
    view! {
        <form class="grid" aria-label=title data-testid="new-project-form" on:submit=|event| event.prevent_default()>
            <div class="span-8">
                <PageHead title meta=|| "nothing runs until you execute; every change is an event".into_any()/>
                <ProjectFields form projects/>
                <Workload form models frameworks tools servers/>
                <Commands form/>
            </div>
            <div class="span-4 sticky-side stack">
                <ReadinessPanel form/>
                <Scenarios form/>
                <Actions form servers/>
            </div>
        </form>
    }
    .into_any()
}

#[component]
fn ProjectFields(form: Form, projects: Rows) -> impl IntoView {
    let page = Page::expect();
    let words = move || {
        let code = form.code();
        let taken = projects.rows.with(|r| r.iter().flatten().any(|p| p.text("project_code") == code));
        match (form.existing.is_some(), code.is_empty(), taken) {
            (true, ..) => String::new(),
            (_, true, _) => "a short question, for example: gemma on this laptop".to_owned(),
            (_, _, true) => format!("{}/{code} exists: choose another name", page.org()),
            _ => format!("{}/{code} is free", page.org()),
        }
    };
    let choice = move |value: ProjectVisibility, word: &'static str| {
        view! {
            <label>
                <input
                    type="radio"
                    name="visibility"
                    prop:checked=move || form.visibility.get() == value
                    on:change=move |_| form.visibility.set(value)
                />
                {word}
            </label>
        }
    };
    view! {
        <div class="form-grid form-first">
            <label class="field span-7">
                <span class="field-label">"Project"</span>
                <input
                    class="control"
                    data-testid="project-name"
                    placeholder="What do you want to know?"
                    readonly=form.existing.is_some()
                    bind:value=form.name
                />
                <small data-testid="project-code">{words}</small>
            </label>
            {form.existing.is_none().then(|| view! {
                <fieldset class="field span-5">
                    <legend class="field-label">"Visible to"</legend>
                    <span class="segmented">
                        {choice(ProjectVisibility::Private, "Me")}
                        {choice(ProjectVisibility::Organization, "Organization")}
                        {choice(ProjectVisibility::Public, "Everyone")}
                    </span>
                </fieldset>
            })}
        </div>
    }
    .into_any()
}

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
fn Workload(form: Form, models: Rows, frameworks: Rows, tools: Rows, servers: Rows) -> impl IntoView {
    let draft = form.draft;
    let same = |list: Vec<String>| list.into_iter().map(|c| (c.clone(), c)).collect::<Vec<_>>();
    let code = move || {
        draft.with(|d| {
            let model = d.model.rsplit('/').next().unwrap_or_default();
            code_from_name(&[model, &d.framework, &d.quantization].join(" "))
        })
    };
    view! {
        <section class="workload" aria-labelledby="workload-1">
            <div class="section-head section-head-plain">
                <h2 id="workload-1">"Workload"</h2>
                <span class="key quiet">{code}</span>
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
                        <label><input type="radio" name="streaming" prop:checked=move || draft.with(|d| d.streaming) on:change=move |_| draft.update(|d| d.streaming = true)/>"On"</label>
                        <label><input type="radio" name="streaming" data-testid="streaming-off" prop:checked=move || draft.with(|d| !d.streaming) on:change=move |_| draft.update(|d| d.streaming = false)/>"Off"</label>
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

/// Asks for readiness a moment after the last change.
fn check_while_typing(form: Form, servers: Rows) {
    let question = Memo::new(move |_| {
        let input = form.draft.with(|d| d.input().ok())?;
        let server = form.server.get();
        let row = servers.rows.with(|r| r.iter().flatten().find(|s| s.text("server") == server).cloned());
        Some(CheckReadiness {
            p_workload: input,
            p_config_code: row.as_ref().map(|r| r.text("config_code")),
            p_hostname: row.as_ref().map(|r| r.text("hostname")),
        })
    });
    let turn = StoredValue::new(0u32);
    Effect::new(move |_| {
        let Some(question) = question.get() else {
            form.readiness.set(None);
            return;
        };
        let mine = turn.try_update_value(|t| {
            *t += 1;
            *t
        });
        set_timeout(
            move || {
                if turn.try_get_value() != mine {
                    return;
                }
                spawn_local(async move {
                    let answer = api::call::<Readiness>("check_readiness", &question).await;
                    if turn.try_get_value() != mine {
                        return;
                    }
                    match answer {
                        Ok(readiness) => {
                            form.readiness.try_set(Some(readiness));
                            form.trouble.try_set(None);
                        }
                        Err(trouble) => {
                            form.readiness.try_set(None);
                            form.trouble.try_set(Some(trouble));
                        }
                    }
                });
            },
            std::time::Duration::from_millis(250),
        );
    });
}

#[component]
fn Commands(form: Form) -> impl IntoView {
    let shown = move |title: &'static str, id: &'static str, argv: Vec<String>, note: String| {
        let text = shell(&argv);
        view! {
            <section aria-labelledby=id class="resolved">
                <div class="command-head">
                    <h3 id=id>{title}</h3>
                    <span class="meta">{note}</span>
                    <CopyButton text=Signal::stored(text)/>
                </div>
                {command(&argv)}
            </section>
        }
        .into_any()
    };
    move || {
        form.readiness.with(|r| r.as_ref().and_then(|r| r.commands.clone())).map(|commands| {
            let note = |n: usize| commands.templates.get(n).map_or_else(String::new, |t| format!("resolved from template {t}"));
            view! {
                <div data-testid="resolved-commands">
                    {(!commands.serve_argv.is_empty()).then(|| shown("Serve command", "serve-command", commands.serve_argv.clone(), note(0)))}
                    {shown("Tool command, first scenario", "tool-command", commands.tool_argv.clone(), note(usize::from(!commands.serve_argv.is_empty())))}
                </div>
            }
        })
    }
}

#[component]
fn ReadinessPanel(form: Form) -> impl IntoView {
    let verdict = move || {
        form.readiness.with(|r| {
            let Some(r) = r else { return ("queued", "waiting".to_owned()) };
            let fails = r.checks.iter().filter(|c| c.result == "fails").count();
            let open = r.checks.iter().filter(|c| c.result == "unknown" || c.result == "warning").count();
            match (r.ready, fails, open) {
                (true, _, 0) => ("completed", "ready".to_owned()),
                (true, _, n) => ("flagged", format!("ready, {n} to look at")),
                (false, n, _) => {
                    ("failed", format!("{n} of {} {}", r.checks.len(), if n == 1 { "fails" } else { "fail" }))
                }
            }
        })
    };
    let missing = move || form.draft.with(|d| d.input().err().unwrap_or_default());
    view! {
        <section aria-labelledby="readiness" aria-live="polite" data-testid="readiness">
            <div class="section-head">
                <h2 id="readiness">"Readiness"</h2>
                <span class="push">
                    <span class="status" data-status=move || verdict().0 data-testid="readiness-verdict">{move || verdict().1}</span>
                </span>
            </div>
            <ul class="checks">
                {move || missing().into_iter().map(|m| view! { <li><div class="checks-row"><span class="status" data-status="queued">"open"</span><span>{m}</span></div></li> }).collect_view()}
                {move || form.trouble.get().map(|t| view! {
                    <li data-testid="readiness-trouble">
                        <div class="checks-row">
                            <span class="status" data-status="failed">"error"</span>
                            <span>{t.error.message}</span>
                            <span class="meta">{t.error.hint}</span>
                        </div>
                    </li>
                })}
                {move || form.readiness.with(|r| r.iter().flat_map(|r| &r.checks).map(check_row).collect_view())}
            </ul>
        </section>
    }
    .into_any()
}

fn check_row(check: &events::api::ReadinessCheck) -> AnyView {
    let (mark, word) = match check.result.as_str() {
        "ok" => ("completed", "ok"),
        "fails" => ("failed", "fails"),
        "warning" => ("flagged", "look"),
        _ => ("queued", "open"),
    };
    let cures = check.cures.iter().map(|c| view! { <li>{c.clone()}</li> }).collect_view();
    view! {
        <li data-rule=check.rule.clone() data-result=check.result.clone()>
            <div class="checks-row">
                <span class="status" data-status=mark>{word}</span>
                <span>{check.title.clone()}</span>
                <span class="meta">{check.message.clone()}</span>
            </div>
            {(!check.cures.is_empty()).then(|| view! { <ul class="cure-list">{cures}</ul> })}
        </li>
    }
    .into_any()
}

#[component]
fn Scenarios(form: Form) -> impl IntoView {
    let rolled = Memo::new(move |_| {
        form.draft.with(|d| d.input().map(|i| i.p_scenarios.roll_out()).unwrap_or_default())
    });
    let product = move || {
        form.draft.with(|d| {
            [d.concurrency.len(), d.isl.len().max(1), d.osl.len().max(1)].map(|n| n.to_string()).join(" × ")
        })
    };
    view! {
        <section aria-labelledby="scenarios" data-testid="scenarios">
            <div class="section-head">
                <h2 id="scenarios">{move || match rolled.with(Vec::len) { 1 => "1 scenario".to_owned(), n => format!("{n} scenarios") }}</h2>
                <span class="meta">{product}</span>
            </div>
            <div class="scenario-scroll">
                <table class="data-table keep-shape">
                    <caption class="visually-hidden">"Scenarios"</caption>
                    <thead>
                        <tr>
                            <th scope="col">"Scenario"</th>
                            <th scope="col" class="number">"Requests"</th>
                            <th scope="col" class="number">"Context"</th>
                        </tr>
                    </thead>
                    <tbody>
                        {move || rolled.with(|list| list.iter().map(|s| {
                            let context = s.input_sequence_length.zip(s.output_sequence_length).map(|(i, o)| i64::from(i) + i64::from(o));
                            view! {
                                <tr>
                                    <th scope="row" class="key">{s.code()}</th>
                                    <td class="number">{count(i64::from(s.num_requests))}</td>
                                    <td class="number">{maybe_count(context)}</td>
                                </tr>
                            }
                        }).collect_view())}
                    </tbody>
                </table>
            </div>
        </section>
    }
    .into_any()
}

#[component]
fn Actions(form: Form, servers: Rows) -> impl IntoView {
    let page = Page::expect();
    let navigate = use_navigate();
    let save_trouble = RwSignal::new(None::<Trouble>);
    let ready = Memo::new(move |_| form.readiness.with(|r| r.as_ref().is_some_and(|r| r.ready)));
    let complete = Memo::new(move |_| form.draft.with(|d| d.input().is_ok()) && !form.code().is_empty());
    let save = move |execute: bool| {
        if form.busy.get_untracked() || !complete.get_untracked() || (execute && !ready.get_untracked()) {
            return;
        }
        form.busy.set(true);
        save_trouble.set(None);
        let navigate = navigate.clone();
        let org = page.org_now();
        let chosen = form.server.get_untracked();
        let server =
            servers.rows.with_untracked(|r| r.iter().flatten().find(|s| s.text("server") == chosen).cloned());
        spawn_local(async move {
            let outcome = store(form, page, execute.then_some(server).flatten()).await;
            form.busy.try_set(false);
            match outcome {
                Ok(path) => navigate(&format!("/projects/{org}/{path}"), NavigateOptions::default()),
                Err(trouble) => {
                    save_trouble.try_set(Some(trouble));
                }
            }
        });
    };
    let save_and_run = save.clone();
    let why_not = move || match (complete.get(), ready.get()) {
        (false, _) if form.code().is_empty() => "needs a name".to_owned(),
        (false, _) => "needs the open fields".to_owned(),
        (_, false) => form.readiness.with(|r| {
            r.as_ref()
                .map_or_else(|| "checking".to_owned(), |r| format!("needs all {} checks", r.checks.len()))
        }),
        _ => String::new(),
    };
    view! {
        <div>
            <div class="actions">
                <button type="button" class="button" data-testid="save" aria-disabled=move || (!complete.get()).to_string() on:click=move |_| save(false)>"Save"</button>
                <button
                    type="button"
                    class="button button-primary"
                    data-testid="save-and-execute"
                    aria-disabled=move || (!complete.get() || !ready.get() || form.busy.get()).to_string()
                    on:click=move |_| save_and_run(true)
                >
                    {move || if form.busy.get() { "Saving" } else { "Save and Execute" }}
                </button>
                <span class="meta">{why_not}</span>
            </div>
            <div role="alert">
                {move || save_trouble.get().map(|t| view! {
                    <p class="one-line"><span class="status" data-status="failed">{t.error.message}</span></p>
                    <p class="meta">{t.error.details}" "{t.error.hint}</p>
                })}
            </div>
        </div>
    }
    .into_any()
}

/// Saves; starts a run where a server is given. Answers where to go: `project` or `project/workload/run`.
async fn store(form: Form, page: Page, server: Option<Row>) -> Result<String, Trouble> {
    let input = form.draft.with_untracked(Draft::input).map_err(|missing| Trouble {
        status: 0,
        error: events::api::ApiError {
            code: "incomplete".into(),
            message: missing.join(" "),
            details: None,
            hint: None,
        },
    })?;
    let code = form.code();
    let (reply, workload) = if form.existing.is_some() {
        let reply = api::command(
            "create_workload",
            &CreateWorkload { p_project_code: code.clone(), p_workload: input },
        )
        .await?;
        let workload = reply.keys.get("workload_code").and_then(|v| v.as_str()).map(str::to_owned);
        (reply, workload)
    } else {
        let arguments = CreateProject {
            p_project_code: None,
            p_name: form.name.get_untracked().trim().to_owned(),
            p_visibility: form.visibility.get_untracked(),
            p_workloads: vec![input],
        };
        let reply = api::command("create_project", &arguments).await?;
        let first = reply
            .keys
            .get("workload_codes")
            .and_then(|v| v.get(0))
            .and_then(|v| v.as_str())
            .map(str::to_owned);
        (reply, first)
    };
    page.live.must_reach(reply.position);
    let project = reply.keys.get("project_code").and_then(|v| v.as_str()).map_or(code, str::to_owned);
    let (Some(server), Some(workload)) = (server, workload) else { return Ok(project) };
    let arguments = StartRun {
        p_project_code: project.clone(),
        p_workload_code: workload.clone(),
        p_config_code: server.text("config_code"),
        p_hostname: server.text("hostname"),
        p_scenario_codes: None,
    };
    let started = api::command("start_run", &arguments).await?;
    page.live.must_reach(started.position);
    let run = started.keys.get("run_number").map(ToString::to_string).unwrap_or_default();
    Ok(format!("{project}/{workload}/{run}"))
}
