//! All projects.

use events::first_page;
use leptos::prelude::*;

use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::{keep_live, use_rows};
use crate::browser::route::use_location;
use crate::format::{ABSENT, maybe_count, moment};
use crate::parts::PageHead;
use crate::parts::states::{Empty, when_there};
use crate::row::Row;
use crate::state::live;
use crate::state::query::Query;

/// The list of projects.
#[component]
pub fn Projects() -> impl IntoView {
    let page = Page::expect();
    let location = use_location();
    let find = Memo::new(move |_| location.search.with(|s| Query::parse(s).get("q").map(str::to_owned)));
    let projects = use_rows(|| {
        Some(
            "/api/v_projects?archived=is.false&order=last_run_at.desc.nullslast,position.desc&limit=500"
                .into(),
        )
    });
    let org = page.org_now();
    if !org.is_empty() {
        keep_live(
            projects,
            vec![format!("{org}:project+run+workload")],
            |_, _| false,
            |e| matches!(live::kind(e), "project" | "run" | "workload"),
        );
    }
    view! {
        <PageHead
            title=first_page::PROJECTS_HEAD.title
            meta=move || {
                match find.get() {
                    Some(q) => view! { "found for “"{q}"” · "<a class="link" href="/projects">"show all"</a> }.into_any(),
                    None => "each a folder for one question".into_any(),
                }
            }
        >
            <a class="button button-primary" href="/projects/new" data-testid="new-project">"New project"</a>
        </PageHead>
        {when_there(
            projects,
            6,
            || {
                view! {
                    <Empty words="No project here yet. A project asks one question: which framework, which precision, how many users.">
                        <a class="button button-primary" href="/projects/new">"New project"</a>
                    </Empty>
                }
                .into_any()
            },
            move |list| {
                let find = find.get().unwrap_or_default().to_lowercase();
                let found = |r: &Row| r.text("project_code").contains(&find) || r.text("name").to_lowercase().contains(&find);
                table(&list.into_iter().filter(|r| find.is_empty() || found(r)).collect::<Vec<_>>())
            },
        )}
    }
    .into_any()
}

fn table(list: &[Row]) -> AnyView {
    let now = now_ms();
    let lines = list.iter().map(|row| {
        let status = row.maybe_text("last_run_status").map(|status| {
            let mut run = Row::default();
            run.set("status", status);
            view! { <crate::parts::Status row=Signal::stored(run)/> }
        });
        view! {
            <tr data-testid="project" data-code=row.text("project_code") data-href=row.project_path() tabindex="-1">
                <th scope="row" class="card-title"><a class="key strong" href=row.project_path()>{row.text("project_code")}</a></th>
                <td class="clip" title=row.text("name")>{row.text("name")}</td>
                <td class="card-figure" data-label="Visible to">{visible_to(&row.text("visibility"))}</td>
                <td class="number card-figure" data-label="Workloads">{maybe_count(row.whole("workloads"))}</td>
                <td class="number">{maybe_count(row.whole("runs"))}</td>
                <td class="card-figure" data-label="Last run">{status}</td>
                <td class="number">{row.millis("last_run_at").map_or_else(|| ABSENT.to_owned(), |at| moment(at, now))}</td>
                <td class="number">{row.millis("created_at").map_or_else(|| ABSENT.to_owned(), |at| moment(at, now))}</td>
            </tr>
        }
        .into_any()
    });
    view! {
        <div class="table-scroll">
            <table class="data-table" data-testid="projects">
                <caption class="visually-hidden">"Projects"</caption>
                <thead>
                    <tr>
                        <th scope="col">"Project"</th>
                        <th scope="col">"Name"</th>
                        <th scope="col">"Visible to"</th>
                        <th scope="col" class="number">"Workloads"</th>
                        <th scope="col" class="number">"Runs"</th>
                        <th scope="col">"Last run"</th>
                        <th scope="col" class="number">"Started "<span class="unit">"UTC"</span></th>
                        <th scope="col" class="number">"Created "<span class="unit">"UTC"</span></th>
                    </tr>
                </thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
        <p class="table-foot">{format!("1–{} of {}", list.len(), list.len())}</p>
    }
    .into_any()
}

/// The visibility in words.
pub fn visible_to(visibility: &str) -> &'static str {
    match visibility {
        "private" => "me",
        "public" => "everyone",
        _ => "organization",
    }
}
