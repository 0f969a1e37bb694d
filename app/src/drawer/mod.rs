//! The drawer at the right: the one place for details. Its address says what it shows; it never covers what it explains.

mod check;
mod doubts;
mod event;
mod job_events;
mod proof;

use leptos::prelude::*;

use crate::browser::route::use_location;
use crate::frame::{LazyDrawer, drawer_href};
use crate::state::query::Query;

/// What the drawer shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// What made a figure of a job.
    Proof {
        /// The job's path: `org/project/workload/run/scenario`.
        job: String,
        /// The figure's column.
        metric: String,
    },
    /// The events of a job.
    Events {
        /// The job's path.
        job: String,
    },
    /// One event of the log.
    Event {
        /// Its position.
        position: i64,
    },
}

impl Shown {
    /// Reads the address.
    pub fn read(query: &Query) -> Option<Self> {
        let job = || query.get("job").filter(|j| !j.is_empty()).map(str::to_owned);
        match query.get("drawer")? {
            "proof" => Some(Self::Proof {
                job: job()?,
                metric: query.get("metric").unwrap_or("output_tokens_per_second").to_owned(),
            }),
            "events" => Some(Self::Events { job: job()? }),
            "event" => Some(Self::Event { position: query.get("position")?.parse().ok()? }),
            _ => None,
        }
    }
}

/// The drawer.
#[component]
pub fn Drawer() -> impl IntoView {
    let location = use_location();
    let shown = Memo::new(move |_| location.search.with(|s| Shown::read(&Query::parse(s))));
    let page = crate::browser::page::Page::expect();
    Effect::new(move |_| page.drawer_open.set(shown.with(Option::is_some)));
    move || {
        shown.get().map(|shown| {
            view! {
                <aside class="drawer" aria-label="Details" data-testid="drawer">
                    <LazyDrawer shown/>
                </aside>
            }
        })
    }
}

/// The drawer's content.
pub fn show(shown: Shown) -> AnyView {
    match shown {
        Shown::Proof { job, metric } => view! { <proof::Proof job metric/> }.into_any(),
        Shown::Events { job } => view! { <job_events::JobEvents job/> }.into_any(),
        Shown::Event { position } => view! { <event::OneEvent position/> }.into_any(),
    }
}

/// A tab of the drawer: its name, its address keys, whether it is this one.
type Tab = (&'static str, Vec<(&'static str, String)>, bool);

/// The drawer's head: what it is about, and the way out.
#[component]
fn Head(
    /// What it is about.
    #[prop(into)]
    title: String,
    /// More about it.
    #[prop(into)]
    note: Signal<String>,
    /// Tabs: name, address keys, whether it is this one.
    #[prop(default = Vec::new())]
    tabs: Vec<Tab>,
) -> impl IntoView {
    let location = use_location();
    let to = move |pairs: &[(&str, &str)]| {
        location.pathname.with(|p| location.search.with(|s| drawer_href(p, s, pairs)))
    };
    let tab_views = tabs
        .into_iter()
        .map(|(name, pairs, here)| {
            let href = move || {
                let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (*k, v.as_str())).collect();
                to(&pairs)
            };
            view! { <a href=href data-noscroll="" aria-current=here.then_some("true")>{name}</a> }
        })
        .collect::<Vec<_>>();
    view! {
        <div class="drawer-head">
            <div class="drawer-title">
                <div>
                    <h2 data-testid="drawer-title">{title}</h2>
                    <p class="meta">{note}</p>
                </div>
                <a class="button button-quiet" href=move || to(&[]) data-noscroll="" data-testid="close-drawer">"Close"</a>
            </div>
            {(!tab_views.is_empty()).then(|| view! { <nav class="tabs" aria-label="Details">{tab_views}</nav> })}
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_says_what_is_shown() {
        let read = |search: &str| Shown::read(&Query::parse(search));
        assert_eq!(
            read("?drawer=proof&job=acme/p/w/3/c8&metric=ttft_p50_ms"),
            Some(Shown::Proof { job: "acme/p/w/3/c8".into(), metric: "ttft_p50_ms".into() })
        );
        assert_eq!(read("?drawer=event&position=184066"), Some(Shown::Event { position: 184_066 }));
        assert_eq!(read("?drawer=event&position=x"), None);
        assert_eq!(read("?status=failed"), None);
    }
}
