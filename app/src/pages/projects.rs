//! All projects.

use events::first_page;
use leptos::prelude::*;

use crate::browser::address::Address;
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::browser::route::use_location;
use crate::format::{ABSENT, full, maybe_count, moment, significant};
use crate::parts::states::{Empty, when_there};
use crate::parts::{PageHead, SortHead, tables};
use crate::row::Row;
use crate::state::live;
use crate::state::order::Order;
use crate::state::query::Query;

/// The list of projects.
#[component]
pub fn Projects() -> impl IntoView {
    let page = Page::expect();
    let location = use_location();
    let find = Memo::new(move |_| location.search.with(|s| Query::parse(s).get("q").map(str::to_owned)));
    let address = Address::here();
    let order = Memo::new(move |_| address.query.with(|query| Order::read(query, &SORTED)));
    let projects = use_rows(move || Some(request(order.get().as_ref())));
    let best = use_rows(|| Some(BEST.to_owned()));
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
                let list: Vec<Row> = list.into_iter().filter(|r| find.is_empty() || found(r)).collect();
                table(&list, best, order, address)
            },
        )}
    }
    .into_any()
}

/// The best of each project: its entry of the leaderboard with the highest throughput, real and not doubted.
const BEST: &str = "/api/v_leaderboard?category=eq.throughput&simulated=is.false&select=project_code,job,value,runs&limit=5000";

/// The columns that the list can be sorted by.
const SORTED: [&str; 5] = ["project_code", "workloads", "runs", "last_run_at", "created_at"];

fn request(order: Option<&Order>) -> String {
    let by = match order {
        Some(order) => format!("{}.{}.nullslast", order.key, if order.descending { "desc" } else { "asc" }),
        None => "last_run_at.desc.nullslast".to_owned(),
    };
    format!("/api/v_projects?archived=is.false&order={by},position.desc&limit=500")
}

/// The highest value of a project, and the job behind it: the newest of its runs.
fn best_of(best: &[Row], project: &str) -> Option<(f64, i64, String)> {
    best.iter()
        .filter(|row| row.text("project_code") == project)
        .filter_map(|row| Some((row.number("value")?, row.whole("runs").unwrap_or(1), row.text("job"))))
        .max_by(|a, b| a.0.total_cmp(&b.0))
}

fn table(list: &[Row], best: Rows, order: Memo<Option<Order>>, address: Address) -> AnyView {
    let now = now_ms();
    let lines = list.iter().map(|row| {
        let status = row.maybe_text("last_run_status").map(|status| {
            let mut run = Row::default();
            run.set("status", status);
            view! { <crate::parts::Status row=Signal::stored(run)/> }
        });
        let code = row.text("project_code");
        let figure = move || {
            let (value, runs, job) = best.rows.with(|rows| best_of(rows.as_deref()?, &code))?;
            let title = match runs {
                1 => format!("{}: show what made this number", full(value)),
                _ => format!("{}: the mean of {runs} runs; show what made the newest", full(value)),
            };
            let href = tables::proof_href(&job, "output_tokens_per_second");
            Some(view! { <a href=href data-noscroll="" data-testid="best" data-value=full(value) title=title>{significant(value)}</a> })
        };
        let figure = move || match figure() {
            Some(figure) => figure.into_any(),
            None => view! { <span class="quiet" title="nothing is ranked by throughput here: no real run that nobody doubts">{ABSENT}</span> }.into_any(),
        };
        view! {
            <tr data-testid="project" data-code=row.text("project_code") data-href=row.project_path() tabindex="-1">
                <th scope="row" class="card-title"><a class="key strong" href=row.project_path()>{row.text("project_code")}</a></th>
                <td class="clip" title=row.text("name")>{row.text("name")}</td>
                <td class="card-figure" data-label="Visible to">{visible_to(&row.text("visibility"))}</td>
                <td class="number card-figure" data-label="Workloads">{maybe_count(row.whole("workloads"))}</td>
                <td class="number">{maybe_count(row.whole("runs"))}</td>
                <td class="number" data-label="Best ↑" data-unit="tok/s">{figure}</td>
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
                        <SortHead address order key="project_code" label="Project"/>
                        <th scope="col">"Name"</th>
                        <th scope="col">"Visible to"</th>
                        <SortHead address order key="workloads" label="Workloads" class="number"/>
                        <SortHead address order key="runs" label="Runs" class="number"/>
                        <th scope="col" class="number" title="the highest output throughput of the leaderboard">"Best\u{a0}↑ "<span class="unit">"tok/s"</span></th>
                        <th scope="col">"Last run"</th>
                        <SortHead address order key="last_run_at" label="Last started" unit="UTC" class="number"/>
                        <SortHead address order key="created_at" label="Created" unit="UTC" class="number"/>
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_best_of_a_project_is_its_highest_and_of_no_other() {
        let row = |project: &str, value: f64, job: &str| -> Row {
            let row = json!({"project_code": project, "value": value, "runs": 2, "job": job});
            serde_json::from_value(row).expect("a row")
        };
        let rows = [row("a", 10.0, "job/1"), row("b", 99.0, "job/2"), row("a", 20.0, "job/3")];
        assert_eq!(best_of(&rows, "a"), Some((20.0, 2, "job/3".to_owned())));
        assert_eq!(best_of(&rows, "c"), None);
    }

    #[test]
    fn the_order_is_asked_of_the_view() {
        let order = Order { key: "runs".to_owned(), descending: true };
        assert!(request(Some(&order)).contains("&order=runs.desc.nullslast,position.desc&"));
        assert!(request(None).contains("&order=last_run_at.desc.nullslast,position.desc&"));
    }
}
