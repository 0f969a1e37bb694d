//! The pages, one file each.

pub mod audit;
pub mod catalogue;
pub mod dashboard;
pub mod hardware;
pub mod import;
pub mod invitation;
pub mod job;
pub mod leaderboard;
pub mod monitoring;
pub mod organization;
pub mod profile;
pub mod project;
pub mod project_new;
pub mod project_settings;
pub mod projects;
pub mod reporting;
pub mod run;
pub mod sign_in;
pub mod strip;
mod today;

use leptos::prelude::*;

use crate::browser::page::Page;
use crate::browser::remote::use_rows;
use crate::browser::route::use_location;
use crate::parts::PageHead;
use crate::parts::states::{Coming, Empty, trouble_view};
use crate::state::nearest::nearest;

/// While it is not known who reads.
#[component]
pub fn Waiting() -> impl IntoView {
    let page = Page::expect();
    move || match page.trouble.get() {
        Some(trouble) => trouble_view(&trouble, move || page.read_session()),
        None => view! { <Coming/> }.into_any(),
    }
}

/// No page has this address.
#[component]
pub fn NotFound() -> impl IntoView {
    let location = use_location();
    view! {
        <PageHead title="Not found" meta=move || view! { <code>{location.pathname}</code> }.into_any()/>
        <Empty words="No page has this address. Keys are organisation / project / workload / run / scenario, as they stand in the log.">
            <a class="button" href="/projects">"All projects"</a>
            <a class="button" href="/">"Dashboard"</a>
        </Empty>
    }
}

/// The keys of what there is of a kind, for those who mistyped one.
fn known_keys(what: &str) -> (&'static str, &'static [&'static str]) {
    match what {
        "job" => (
            "/api/v_jobs?select=org,project_code,workload_code,run_number,scenario_code&order=position.desc&limit=2000",
            &["org", "project_code", "workload_code", "run_number", "scenario_code"],
        ),
        "run" => (
            "/api/v_runs?select=org,project_code,workload_code,run_number&order=position.desc&limit=2000",
            &["org", "project_code", "workload_code", "run_number"],
        ),
        _ => ("/api/v_projects?select=org,project_code&limit=2000", &["org", "project_code"]),
    }
}

/// Nothing has this key, or the reader may not see it: the same answer, so that nothing is given away. What the reader
/// may see and is most alike is offered.
pub fn unknown_key(what: &str, key: &str) -> AnyView {
    let page = Page::expect();
    let words = format!("There is no {what} {key}, or you may not see it.");
    let up = key.rsplit_once('/').map(|(up, _)| up.to_owned()).filter(|up| up.contains('/'));
    let (request, parts) = known_keys(what);
    let known = use_rows(move || Some(request.to_owned()));
    let wanted = key.to_owned();
    let alike = move || {
        let rows = known.all();
        let keys =
            rows.iter().map(|row| parts.iter().map(|part| row.text(part)).collect::<Vec<_>>().join("/"));
        let found = nearest(&wanted, keys, 3);
        (!found.is_empty()).then(|| {
            let links = found.into_iter().map(|key| view! { <li><a class="key link" href=format!("/projects/{key}")>{key.clone()}</a></li> });
            view! {
                <div class="nearest" data-testid="nearest">
                    <p>"Did you mean"</p>
                    <ul>{links.collect_view()}</ul>
                </div>
            }
        })
    };
    view! {
        <div class="empty" data-testid="not-found">
            <p>{words}</p>
            {alike}
            <div class="actions">
                {up.map(|up| view! { <a class="button" href=format!("/projects/{up}")>{up.clone()}</a> })}
                <a class="button" href="/projects">"All projects"</a>
                {(!untrack(|| page.signed_in())).then(|| view! { <a class="button button-primary" href="/sign-in">"Sign in"</a> })}
            </div>
        </div>
    }
    .into_any()
}
