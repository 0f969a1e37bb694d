//! One project: its workloads, their scenarios, their runs, and the buttons that execute them.

use events::access::Role;
use events::api::{ArchiveWorkload, RenameWorkload, StartRun};
use events::tools::ToolCode;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::project_settings::ProjectSettings;
use super::projects::visible_to;
use crate::browser::address::Address;
use crate::browser::api::{self, Trouble};
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::browser::route::{NavigateOptions, use_navigate};
use crate::format::{ABSENT, counted, duration, maybe_count, moment};
use crate::metrics::{Column, Kind as Shown, column};
use crate::parts::states::{Empty, once_there, when_there};
use crate::parts::{ChosenColumns, ColumnChoice, CommandButton, Done, PageHead, Status, swatch, tables};
use crate::row::Row;
use crate::state::colours::Kind;
use crate::state::filters::percent;
use crate::state::live;
use crate::state::query::Query;

/// One project.
#[component]
pub fn Project(org: String, project: String) -> impl IntoView {
    let page = Page::expect();
    let here = format!("org=eq.{}&project_code=eq.{}", percent(&org), percent(&project));
    let ask = move |view: &str, rest: &str| {
        let request = format!("/api/{view}?{here}{rest}");
        move || Some(request.clone())
    };
    let projects = use_rows(ask("v_projects", ""));
    let workloads = use_rows(ask("v_workloads", "&order=position.asc"));
    let runs = use_rows(ask("v_runs", "&order=position.desc&limit=200"));
    let servers = use_rows(|| Some("/api/v_servers?removed=is.false&order=server.asc".into()));
    let topics = vec![format!("{org}/{project}:project+workload+scenario+run+job")];
    keep_live(projects, topics.clone(), |_, _| false, |e| live::kind(e) == "project");
    keep_live(workloads, topics.clone(), |_, _| false, |e| matches!(live::kind(e), "workload" | "run"));
    keep_live(runs, topics, live::fold_run, |e| matches!(live::kind(e), "run" | "job"));
    keep_live(servers, vec![format!("{org}:server")], live::fold_server, |e| live::kind(e) == "server");

    let key = format!("{org}/{project}");
    let (title, code) = (project.clone(), project.clone());
    let add = format!("/projects/new?project={project}");
    let report = format!("/reporting?project={project}");
    let import = format!("/projects/import?project={project}");
    let imported = use_rows(ask("v_benchmark_results", "&imported=is.true&order=position.desc&limit=200"));
    keep_live(imported, vec![format!("{org}/{project}:import")], |_, _| false, |e| live::kind(e) == "import");
    let may = page.may(Role::Member) && page.org_now() == org;
    view! {
        <PageHead
            title
            meta=move || {
                projects.first().map(|p| format!("{}visible to {} · {}, {}", other_name(&p), visible_to(&p.text("visibility")), counted(p.whole("workloads").unwrap_or(0), "workload"), counted(p.whole("runs").unwrap_or(0), "run"))).into_any()
            }
        >
            <Show when=move || projects.first().is_some()>
                <a class="button" href=report.clone()>"Open in Reporting"</a>
                {may.then(|| view! {
                    <a class="button" href=import.clone() data-testid="import">"Import results"</a>
                    <a class="button button-primary" href=add.clone() data-testid="add-workload">"Add workload"</a>
                })}
            </Show>
        </PageHead>
        {once_there(projects, 8, move || super::unknown_key("project", &key), move || view! {
            <Body workloads runs servers imported/>
            {may.then(|| view! { <ProjectSettings projects project=code.clone()/> })}
        }.into_any())}
    }
    .into_any()
}

/// A project's name, where it is another than its code.
fn other_name(project: &Row) -> String {
    let name = project.text("name");
    if name.is_empty() || name == project.text("project_code") {
        String::new()
    } else {
        format!("{name} · ")
    }
}

#[component]
fn Body(workloads: Rows, runs: Rows, servers: Rows, imported: Rows) -> impl IntoView {
    let choice = run_columns();
    view! {
        <div class="stack">
            <section aria-labelledby="workloads">
                <div class="section-head"><h2 id="workloads">"Workloads"</h2><span class="meta">"what is measured: model, framework, traffic"</span></div>
                {once_there(
                    workloads,
                    3,
                    || view! { <Empty words="No workload yet: add one to have something to run."/> }.into_any(),
                    move || {
                        let codes = Memo::new(move |_| workloads.all().iter().map(|w| w.text("workload_code")).collect::<Vec<_>>());
                        view! {
                            <ul class="workload-list">
                                <For each=move || codes.get() key=Clone::clone let:code>
                                    <Workload workloads servers code/>
                                </For>
                            </ul>
                        }
                        .into_any()
                    },
                )}
            </section>
            <section aria-labelledby="runs">
                <div class="section-head"><h2 id="runs">"Runs"</h2><div class="actions"><ChosenColumns choice/></div></div>
                {when_there(runs, 3, || view! { <Empty words="No run yet. Pick a server beside a workload and execute it."/> }.into_any(), move |list| runs_table(&list, choice))}
            </section>
            {when_there(imported, 0, || ().into_any(), |list| imported_table(&list))}
        </div>
    }
    .into_any()
}

/// What other tools measured elsewhere.
fn imported_table(list: &[Row]) -> AnyView {
    let figures = ["output_tokens_per_second", "ttft_p50_ms"];
    let heads = figures.iter().filter_map(|key| column(key)).map(|c| {
        view! { <th scope="col" class="number" title=c.definition()>{c.head()}" "<span class="unit">{c.unit()}</span></th> }
    });
    let lines = list.iter().map(|row| {
        let row = row.clone();
        let status = Signal::stored(row.clone());
        view! {
            <tr data-testid="imported-row" data-href=row.job_path() tabindex="-1">
                <th scope="row" class="card-title"><a class="key" href=row.job_path()>{swatch(Kind::Model, &row.text("model_code"))}{format!("{} {}", row.text("workload_code"), row.text("scenario_code"))}</a></th>
                <td class="card-figure" data-label="Status"><Status row=status/></td>
                <td>{row.text("tool_code")}</td>
                {figures.map(|key| view! { <td class="number card-figure">{tables::figure(&row, key)}</td> })}
            </tr>
        }
    });
    view! {
        <section aria-labelledby="imported">
            <div class="section-head"><h2 id="imported">"Imported results"</h2><span class="meta">"measured by other tools, elsewhere"</span></div>
            <table class="data-table" data-testid="imported-results">
                <caption class="visually-hidden">"Imported results"</caption>
                <thead><tr><th scope="col">"Result"</th><th scope="col">"Status"</th><th scope="col">"Tool"</th>{heads.collect_view()}</tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </section>
    }
    .into_any()
}

#[component]
fn Workload(workloads: Rows, servers: Rows, code: String) -> impl IntoView {
    let page = Page::expect();
    let navigate = use_navigate();
    let row = workloads.all().into_iter().find(|w| w.text("workload_code") == code).unwrap_or_default();
    let server = RwSignal::new(String::new());
    let trouble = RwSignal::new(None::<Trouble>);
    let busy = RwSignal::new(false);
    Effect::new(move |_| {
        servers.rows.with(|rows| {
            let rows = rows.as_deref().unwrap_or_default();
            if server.get_untracked().is_empty()
                && let Some(first) = rows.iter().find(|s| s.text("state") == "online").or(rows.first())
            {
                server.set(first.text("server"));
            }
        });
    });
    let (org, project, workload) = (row.text("org"), row.text("project_code"), row.text("workload_code"));
    let start = move |_| {
        let chosen = server.get_untracked();
        let Some(found) =
            servers.rows.with_untracked(|r| r.iter().flatten().find(|s| s.text("server") == chosen).cloned())
        else {
            return;
        };
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        let (org, project, workload, navigate) =
            (org.clone(), project.clone(), workload.clone(), navigate.clone());
        spawn_local(async move {
            let arguments = StartRun {
                p_project_code: project.clone(),
                p_workload_code: workload.clone(),
                p_config_code: found.text("config_code"),
                p_hostname: found.text("hostname"),
                p_scenario_codes: None,
            };
            let answer = api::command("start_run", &arguments).await;
            busy.try_set(false);
            match answer {
                Ok(reply) => {
                    page.live.must_reach(reply.position);
                    let run = reply.keys.get("run_number").map(ToString::to_string).unwrap_or_default();
                    navigate(
                        &format!("/projects/{org}/{project}/{workload}/{run}"),
                        NavigateOptions::default(),
                    );
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let may = page.may(Role::Member) && page.org_now() == row.text("org");
    let code = StoredValue::new(code);
    let archived = Memo::new(move |_| {
        workloads
            .all()
            .iter()
            .any(|w| w.is("archived") && code.with_value(|code| w.text("workload_code") == *code))
    });
    let project_code = StoredValue::new(row.text("project_code"));
    let archive = Callback::new(move |()| ArchiveWorkload {
        p_project_code: project_code.get_value(),
        p_workload_code: code.get_value(),
    });
    let again = Done::new(move |_| workloads.reload());
    let name = Memo::new(move |_| {
        let rows = workloads.all();
        rows.iter().find(|w| code.with_value(|code| w.text("workload_code") == *code)).map(|w| w.text("name"))
    });
    let (renaming, new_name) = (RwSignal::new(false), RwSignal::new(String::new()));
    let rename = Callback::new(move |()| RenameWorkload {
        p_project_code: project_code.get_value(),
        p_workload_code: code.get_value(),
        p_name: new_name.get_untracked().trim().to_owned(),
    });
    let renamed = Done::new(move |_| {
        workloads.reload();
        renaming.try_set(false);
    });
    let begin = move |_| {
        new_name.set(name.get_untracked().unwrap_or_default());
        renaming.update(|open| *open = !*open);
    };
    let clone = {
        let mut query = Query::default();
        query.push("project", &row.text("project_code")).push("workload", &row.text("workload_code"));
        format!("/projects/new{}", query.write())
    };
    // The same model on the same server, judged by what it answers.
    let quality = {
        let mut query = Query::default();
        query.push("project", &row.text("project_code")).push("workload", &row.text("workload_code"));
        query.push("tool", ToolCode::Kyai.as_str());
        format!("/projects/new{}", query.write())
    };
    let judged = ToolCode::of(&row.text("tool_code")).is_some_and(ToolCode::can_be_judged);
    let quantization = row.maybe_text("quantization").unwrap_or_else(|| "as published".to_owned());
    let options = move || {
        servers
            .all()
            .iter()
            .map(|s| {
                let key = s.text("server");
                let words = format!("{}/{} · {}", s.text("config_code"), s.text("hostname"), s.text("state"));
                view! { <option value=key.clone() selected=key == server.get()>{words}</option> }
            })
            .collect_view()
    };
    view! {
        <li class="workload-row" data-testid="workload" data-code=row.text("workload_code")>
            <div>
                <h3 class="key">{swatch(Kind::Model, &row.text("model_code"))}{row.text("workload_code")}</h3>
                {move || name.get().filter(|name| code.with_value(|code| name != code)).map(|name| view! { <p data-testid="workload-title">{name}</p> })}
                <Show when=move || renaming.get()>
                    <div class="actions" data-testid="rename-form">
                        <label>
                            <span class="visually-hidden">"New name"</span>
                            <input class="control" data-testid="workload-name" bind:value=new_name/>
                        </label>
                        <CommandButton word="Save the name" command="rename_workload" arguments=rename done=renamed.clone() testid="rename-workload"/>
                    </div>
                </Show>
                <p class="meta">
                    <span class="key">{row.text("model_code")}</span>
                    {format!(" · {} {} · {quantization} · {} · {}", row.text("framework_code"), row.text("framework_version"), row.text("tool_code"), counted(row.whole("scenarios").unwrap_or(0), "scenario"))}
                </p>
                {move || trouble.get().map(|t| view! {
                    <p role="alert"><span class="status" data-status="failed">{t.error.message}</span>" "<span class="meta">{t.error.hint}</span></p>
                })}
            </div>
            {may.then(|| view! {
                <div class="actions">
                    {judged.then(|| view! { <a class="button" href=quality.clone() data-testid="add-kyai" title="the same model and server, judged by its answers">"Add KYAI"</a> })}
                    <a class="button" href=clone.clone() data-testid="clone-workload" title="the same once more, to change one thing">"Clone"</a>
                    <Show
                        when=move || !archived.get()
                        fallback=|| view! { <span class="status" data-status="queued" data-testid="workload-archived">"archived"</span> }
                    >
                        <button type="button" class="button" data-testid="rename" aria-expanded=move || renaming.get().to_string() title="the display name; the code stays" on:click=begin>"Rename"</button>
                        <CommandButton word="Archive" sure="No more runs of it; its results stay." command="archive_workload" arguments=archive done=again.clone() testid="archive-workload"/>
                        <label>
                            <span class="visually-hidden">"Server"</span>
                            <select class="control control-server" data-testid="run-server" on:change=move |event| server.set(event_target_value(&event))>{options}</select>
                        </label>
                        <button type="button" class="button button-primary" data-testid="start-run" aria-disabled=move || busy.get().to_string() on:click=start.clone()>
                            {move || if busy.get() { "Starting" } else { "Execute" }}
                        </button>
                    </Show>
                </div>
            })}
        </li>
    }
    .into_any()
}

/// What the table of runs can show of each, after its name.
const RUN_COLUMNS: &[Column] = &[
    Column { key: "status", label: "Status", kind: Shown::Status },
    Column { key: "jobs_completed", label: "Jobs completed", kind: Shown::Count },
    Column { key: "jobs_failed", label: "Failed", kind: Shown::Count },
    Column { key: "jobs_cancelled", label: "Cancelled", kind: Shown::Count },
    Column { key: "hostname", label: "Server", kind: Shown::Key },
    Column { key: "created_at", label: "Asked for", kind: Shown::Time },
    Column { key: "started_at", label: "Began", kind: Shown::Time },
    Column { key: "finished_at", label: "Ended", kind: Shown::Time },
    Column { key: "duration", label: "Took", kind: Shown::Count },
];

/// The columns of runs that are shown until others are chosen.
const RUN_COLUMNS_AT_FIRST: &[&str] = &["status", "jobs_completed", "hostname", "created_at", "finished_at"];

/// A cell of a run.
fn run_cell(row: &Row, column: &'static Column, now: f64) -> AnyView {
    match column.key {
        "status" => view! { <td class="card-figure" data-label="Status"><Status row=Signal::stored(row.clone())/></td> }.into_any(),
        "jobs_completed" => {
            let jobs = format!("{} of {}", maybe_count(row.whole("jobs_completed")), maybe_count(row.whole("jobs_total")));
            let failed = row.whole("jobs_failed").filter(|n| *n > 0).map(|n| format!(", {n} failed")).unwrap_or_default();
            view! { <td class="number card-figure" data-label="Jobs">{jobs}{failed}</td> }.into_any()
        }
        "hostname" => view! { <td class="key">{format!("{}/{}", row.text("config_code"), row.text("hostname"))}</td> }.into_any(),
        "duration" => {
            let ends = row.millis("started_at").zip(row.millis("finished_at"));
            let took = ends.map_or_else(|| ABSENT.to_owned(), |(from, to)| duration((to - from) / 1000.0));
            view! { <td class="number">{took}</td> }.into_any()
        }
        key if column.kind == Shown::Time => {
            let at = row.millis(key).map_or_else(|| ABSENT.to_owned(), |at| moment(at, now));
            view! { <td class="number" class:card-figure=key == "created_at" data-label=column.label title=row.text(key)>{at}</td> }.into_any()
        }
        key => view! { <td class="number">{maybe_count(row.whole(key))}</td> }.into_any(),
    }
}

/// The choice of the columns of runs.
fn run_columns() -> ColumnChoice {
    ColumnChoice::in_address(Address::here(), || RUN_COLUMNS.iter().collect(), RUN_COLUMNS_AT_FIRST)
}

fn runs_table(list: &[Row], columns: ColumnChoice) -> AnyView {
    let now = now_ms();
    let shown = columns.shown;
    let lines = list.iter().cloned().map(|row| {
        let path = row.run_path();
        let name = format!("{} / {}", row.text("workload_code"), row.text("run_number"));
        let cells = move || shown.get().into_iter().map(|column| run_cell(&row, column, now)).collect_view();
        view! {
            <tr data-testid="run" data-href=path.clone() tabindex="-1">
                <th scope="row" class="card-title"><a class="key" href=path.clone()>{name}</a></th>
                {cells}
            </tr>
        }
        .into_any()
    });
    let head = |column: &'static Column| {
        let unit = if column.kind == Shown::Time { "UTC" } else { "" };
        view! { <th scope="col" class:number=column.is_number()>{column.label}" "<span class="unit">{unit}</span></th> }
    };
    view! {
        <table class="data-table" data-testid="runs">
            <caption class="visually-hidden">"Runs"</caption>
            <thead>
                <tr>
                    <th scope="col">"Workload / run"</th>
                    {move || shown.get().into_iter().map(head).collect_view()}
                </tr>
            </thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
    }
    .into_any()
}
