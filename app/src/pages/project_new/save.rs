//! Saving, and starting the first runs.

use events::api::{CommandReply, CreateProject, CreateWorkload, ExecuteOn, StartRun, WorkloadInput};
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen_futures::spawn_local;

use super::Form;
use super::draft::Draft;
use super::kept::Kept;
use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::remote::Rows;
use crate::browser::route::{NavigateOptions, use_navigate};

/// What came of saving.
enum Outcome {
    /// Done: where to go, a path below the organisation's.
    Done(String),
    /// Nothing was saved.
    Refused(Trouble),
    /// Saved as the project of this path, but not all of it started.
    NotStarted(String, Trouble),
}

#[component]
pub(super) fn Actions(form: Form, servers: Rows, kept: Kept) -> impl IntoView {
    let page = Page::expect();
    let navigate = use_navigate();
    let save_trouble = RwSignal::new(None::<Trouble>);
    // Where it was saved, if something went wrong afterwards.
    let saved = RwSignal::new(None::<String>);
    let ready = Memo::new(move |_| {
        let is =
            |c: &super::Card| !c.checking.get() && c.readiness.with(|r| r.as_ref().is_some_and(|r| r.ready));
        form.cards.with(|cards| !cards.is_empty() && cards.iter().all(is))
    });
    let complete = Memo::new(move |_| {
        let filled = |c: &super::Card| c.draft.with(|d| d.input().is_ok());
        let cards = form.cards.with(|cards| !cards.is_empty() && cards.iter().all(filled));
        cards && !form.code().is_empty()
    });
    let may_save = Memo::new(move |_| complete.get() && !form.busy.get() && saved.with(Option::is_none));
    let org = StoredValue::new(page.org_now());
    let save = move |execute: bool| {
        if !may_save.get_untracked() || (execute && !ready.get_untracked()) {
            return;
        }
        form.busy.set(true);
        save_trouble.set(None);
        let navigate = navigate.clone();
        let org = org.get_value();
        let on = if execute { chosen_servers(form, servers) } else { None };
        spawn_local(async move {
            let outcome = store(form, page, on).await;
            form.busy.try_set(false);
            if !matches!(outcome, Outcome::Refused(_)) {
                kept.forget();
            }
            match outcome {
                Outcome::Done(path) => {
                    navigate(&format!("/projects/{org}/{path}"), NavigateOptions::default());
                }
                Outcome::Refused(trouble) => {
                    save_trouble.try_set(Some(trouble));
                }
                Outcome::NotStarted(path, trouble) => {
                    saved.try_set(Some(path));
                    save_trouble.try_set(Some(trouble));
                }
            }
        });
    };
    let save_and_run = save.clone();
    let why_not = move || match (complete.get(), ready.get()) {
        (false, _) if form.code().is_empty() => "needs a name".to_owned(),
        (false, _) => "needs the open fields".to_owned(),
        (_, false) => form
            .cards
            .with(|cards| {
                let fails = |c: &super::Card| {
                    let checks = c.readiness.with(|r| r.as_ref().map(|r| (r.ready, r.checks.len())));
                    checks.filter(|(ready, _)| !ready && !c.checking.get()).map(|(_, n)| n)
                };
                cards.iter().enumerate().find_map(|(n, c)| Some((n, fails(c)?, cards.len())))
            })
            .map_or_else(
                || "checking".to_owned(),
                |(n, checks, cards)| match cards {
                    1 => format!("needs all {checks} checks"),
                    _ => format!("workload {} needs all its checks", n + 1),
                },
            ),
        _ => String::new(),
    };
    view! {
        <div>
            <div class="actions">
                <button type="button" class="button" data-testid="save" aria-disabled=move || (!may_save.get()).to_string() on:click=move |_| save(false)>"Save"</button>
                <button
                    type="button"
                    class="button button-primary"
                    data-testid="save-and-execute"
                    aria-disabled=move || (!may_save.get() || !ready.get()).to_string()
                    on:click=move |_| save_and_run(true)
                >
                    {move || if form.busy.get() { "Saving" } else { "Save and Execute" }}
                </button>
                <span class="meta">{why_not}</span>
            </div>
            <div role="alert" data-testid="save-trouble">
                {move || save_trouble.get().map(|t| view! {
                    <p class="one-line"><span class="status" data-status="failed">{t.error.message}</span></p>
                    <p class="meta">{t.error.details}" "{t.error.hint}</p>
                })}
                {move || saved.get().map(|path| view! {
                    <p class="one-line">"It is saved, and was not started: "<a class="link key" href=format!("/projects/{}/{path}", org.get_value())>{path.clone()}</a></p>
                })}
            </div>
        </div>
    }
    .into_any()
}

/// The server of each workload, in their order; nothing where one is not there.
fn chosen_servers(form: Form, servers: Rows) -> Option<Vec<ExecuteOn>> {
    let all = servers.rows.get_untracked()?;
    let of = |card: super::Card| {
        let chosen = card.draft.with_untracked(|d| d.server.clone());
        let server = all.iter().find(|s| s.text("server") == chosen)?;
        Some(ExecuteOn { p_config_code: server.text("config_code"), p_hostname: server.text("hostname") })
    };
    form.cards.get_untracked().into_iter().map(of).collect()
}

fn inputs(form: Form) -> Result<Vec<WorkloadInput>, Trouble> {
    let cards = form.cards.get_untracked();
    let read = |card: super::Card| {
        card.draft
            .with_untracked(Draft::input)
            .map_err(|missing| Trouble::of_page("incomplete", &missing.join(" "), ""))
    };
    cards.into_iter().map(read).collect()
}

fn word(reply: &CommandReply, key: &str) -> Option<String> {
    reply.keys.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// Saves; where servers are given, one a workload, starts a run of each workload on its own.
async fn store(form: Form, page: Page, servers: Option<Vec<ExecuteOn>>) -> Outcome {
    let inputs = match inputs(form) {
        Ok(inputs) => inputs,
        Err(trouble) => return Outcome::Refused(trouble),
    };
    let code = form.code();
    let one = inputs.len() == 1;
    let answer = if form.existing.is_some() {
        let Some(p_workload) = inputs.into_iter().next() else { return Outcome::Done(code) };
        api::command("create_workload", &CreateWorkload { p_project_code: code.clone(), p_workload }).await
    } else {
        let arguments = CreateProject {
            p_project_code: None,
            p_name: form.name.get_untracked().trim().to_owned(),
            p_visibility: form.visibility.get_untracked(),
            p_workloads: inputs,
            // One workload is saved and executed as one; of several each run is started by itself.
            p_execute: servers.as_ref().filter(|_| one).and_then(|servers| servers.first().cloned()),
        };
        api::command("create_project", &arguments).await
    };
    let reply = match answer {
        Ok(reply) => reply,
        Err(trouble) => return Outcome::Refused(trouble),
    };
    page.live.must_reach(reply.position);
    let project = word(&reply, "project_code").unwrap_or(code);
    let mut workloads: Vec<String> = word(&reply, "workload_code").into_iter().collect();
    let several = reply.keys.get("workload_codes").and_then(Value::as_array);
    workloads.extend(several.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    let run_path = |workload: &str, reply: &CommandReply| {
        let run = reply.keys.get("run_number").map(ToString::to_string);
        run.map(|run| format!("{project}/{workload}/{run}"))
    };
    if let Some(path) = workloads.first().and_then(|workload| run_path(workload, &reply)) {
        return Outcome::Done(path);
    }
    let Some(servers) = servers else { return Outcome::Done(project) };
    let mut path = project.clone();
    // The codes of the workloads come in the order in which they were sent.
    for (workload, server) in workloads.iter().zip(servers) {
        let arguments = StartRun {
            p_project_code: project.clone(),
            p_workload_code: workload.clone(),
            p_config_code: server.p_config_code,
            p_hostname: server.p_hostname,
            p_scenario_codes: None,
        };
        match api::command("start_run", &arguments).await {
            Ok(started) => {
                page.live.must_reach(started.position);
                if let Some(run) = run_path(workload, &started).filter(|_| workloads.len() == 1) {
                    path = run;
                }
            }
            Err(trouble) => return Outcome::NotStarted(project, trouble),
        }
    }
    Outcome::Done(path)
}
