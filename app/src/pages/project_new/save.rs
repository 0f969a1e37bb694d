//! Saving, and starting the first run.

use events::api::{CreateProject, CreateWorkload, StartRun};
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::Form;
use super::draft::Draft;
use super::kept::Kept;
use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::remote::Rows;
use crate::browser::route::{NavigateOptions, use_navigate};
use crate::row::Row;

#[component]
pub(super) fn Actions(form: Form, servers: Rows, kept: Kept) -> impl IntoView {
    let page = Page::expect();
    let navigate = use_navigate();
    let save_trouble = RwSignal::new(None::<Trouble>);
    let ready = Memo::new(move |_| {
        form.cards.with(|cards| {
            cards.len() == 1
                && cards
                    .iter()
                    .all(|c| !c.checking.get() && c.readiness.with(|r| r.as_ref().is_some_and(|r| r.ready)))
        })
    });
    let complete = Memo::new(move |_| {
        let cards = form
            .cards
            .with(|cards| !cards.is_empty() && cards.iter().all(|c| c.draft.with(|d| d.input().is_ok())));
        cards && !form.code().is_empty()
    });
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
                Ok(path) => {
                    kept.forget();
                    navigate(&format!("/projects/{org}/{path}"), NavigateOptions::default());
                }
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
        (_, false) if form.cards.with(|c| c.len() > 1) => {
            "several workloads: save them, then execute each from the project’s page".to_owned()
        }
        (_, false) => form
            .shown()
            .and_then(|card| (!card.checking.get()).then(|| card.readiness.get()).flatten())
            .map_or_else(|| "checking".to_owned(), |r| format!("needs all {} checks", r.checks.len())),
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
    let mut inputs = Vec::new();
    for card in form.cards.get_untracked() {
        inputs.push(card.draft.with_untracked(Draft::input).map_err(|missing| Trouble {
            status: 0,
            error: events::api::ApiError {
                code: "incomplete".into(),
                message: missing.join(" "),
                details: None,
                hint: None,
            },
        })?);
    }
    let code = form.code();
    let (reply, workload) = if form.existing.is_some() {
        let Some(input) = inputs.pop() else { return Ok(code) };
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
            p_workloads: inputs,
            p_execute: None,
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
