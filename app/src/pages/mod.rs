//! The pages, one file each.

pub mod audit;
pub mod catalogue;
pub mod dashboard;
pub mod hardware;
pub mod job;
pub mod leaderboard;
pub mod monitoring;
pub mod profile;
pub mod project;
pub mod project_new;
pub mod projects;
pub mod reporting;
pub mod run;
pub mod sign_in;
pub mod strip;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::browser::page::Page;
use crate::parts::PageHead;
use crate::parts::states::{Empty, Skeleton, trouble_view};

/// While it is not known who reads.
#[component]
pub fn Waiting() -> impl IntoView {
    let page = Page::expect();
    move || match page.trouble.get() {
        Some(trouble) => trouble_view(&trouble, move || page.read_session()),
        None => view! { <Skeleton lines=6/> }.into_any(),
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

/// Nothing has this key, or the reader may not see it: the same answer, so that nothing is given away.
pub fn unknown_key(what: &str, key: &str) -> AnyView {
    let page = Page::expect();
    let words = format!("There is no {what} {key}, or you may not see it.");
    let up = key.rsplit_once('/').map(|(up, _)| up.to_owned()).filter(|up| up.contains('/'));
    view! {
        <div data-testid="not-found">
            <Empty words>
                {up.map(|up| view! { <a class="button" href=format!("/projects/{up}")>{up.clone()}</a> })}
                <a class="button" href="/projects">"All projects"</a>
                {(!untrack(|| page.signed_in())).then(|| view! { <a class="button button-primary" href="/sign-in">"Sign in"</a> })}
            </Empty>
        </div>
    }
    .into_any()
}
