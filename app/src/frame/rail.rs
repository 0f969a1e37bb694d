//! The rail: words, with live counts; on a phone it docks at the bottom.

use events::first_page;
use leptos::prelude::*;

use crate::browser::page::Page;
use crate::browser::remote::{keep_live, use_rows, use_rows_counted};
use crate::browser::route::use_location;
use crate::browser::store;
use crate::format::count;
use crate::state::live;

/// Path, word, short word.
const PLACES: [(&str, &str, &str); 8] = [
    ("/", "Dashboard", "Home"),
    ("/projects", "Projects", "Projects"),
    ("/reporting", "Reporting", "Reports"),
    ("/monitoring", "Monitoring", "Monitor"),
    ("/leaderboard", "Leaderboard", "Ranks"),
    ("/hardware", "Hardware", "Hardware"),
    ("/catalogue", "Catalogue", "Catalog"),
    ("/audit", "Audit", "Audit"),
];

/// The rail.
#[component]
pub fn Rail() -> impl IntoView {
    let page = Page::expect();
    let open = RwSignal::new(false);
    view! {
        <nav class="rail" aria-label="Main" data-testid="rail" data-open=move || open.get().then_some("")>
            <a class="rail-brand" href="/" title="Dashboard">
                <span class="rail-long">"Benchtrail"</span>
                <span class="rail-short">"Bench"</span>
            </a>
            <Places open/>
            <div class="rail-foot">
                <a href="/profile" data-testid="rail-user">
                    {move || page.session.with(|s| s.as_ref().and_then(|s| s.name.clone()).unwrap_or_else(|| "visitor".to_owned()))}
                    <span class="rail-long quiet">{move || format!(" · {}", page.org()).trim_end_matches(" · ").to_owned()}</span>
                </a>
                <button
                    type="button"
                    class="figure-toggle"
                    data-testid="rail-width"
                    on:click=move |_| {
                        let narrow = document().document_element().is_some_and(|r| r.has_attribute("data-rail"));
                        store("rail", Some(if narrow { "wide" } else { "narrow" }));
                        page.narrow.set(Some(!narrow));
                    }
                >
                    <span class="rail-long">"Narrow"</span>
                    <span class="rail-short">"Widen"</span>
                </button>
            </div>
        </nav>
    }
    .into_any()
}

#[component]
fn Places(open: RwSignal<bool>) -> impl IntoView {
    let page = Page::expect();
    let location = use_location();
    let counts = Counts::read();
    let places = PLACES.map(|(path, word, short)| {
        let here = move || {
            let at = location.pathname.get();
            if path == "/" { at == "/" } else { at.starts_with(path) }
        };
        view! {
            <li>
                <a href=path aria-current=move || here().then_some("page") on:click=move |_| open.set(false)>
                    <span class="rail-long">{word}</span>
                    <span class="rail-short">{short}</span>
                    <span class="rail-count">{move || counts.of(path, page)}</span>
                </a>
            </li>
        }
    });
    view! {
        <ul>
            {places.collect_view()}
            <li class="rail-more">
                <button type="button" aria-expanded=move || open.get().to_string() on:click=move |_| open.update(|o| *o = !*o)>
                    "More"
                </button>
            </li>
        </ul>
    }
}

/// The numbers in the rail.
#[derive(Clone, Copy)]
struct Counts {
    projects: RwSignal<Option<usize>>,
    results: RwSignal<Option<usize>>,
    running: RwSignal<Option<usize>>,
    servers: RwSignal<Option<Vec<crate::row::Row>>>,
}

impl Counts {
    fn read() -> Self {
        let page = Page::expect();
        // Only who may see something asks for it; another reader asks again.
        let known = move || page.session.with(Option::is_some);
        let projects = use_rows_counted(move || known().then(|| first_page::PROJECTS.path.to_owned()));
        let results = use_rows_counted(move || known().then(|| first_page::EVERYTHING.path.to_owned()));
        let running = use_rows_counted(move || known().then(|| first_page::JOBS.path.to_owned()));
        let servers = use_rows(move || known().then(|| first_page::STATES.path.to_owned()));
        Effect::new(move |_| {
            let org = page.org();
            if !org.is_empty() {
                let topics = vec![format!("{org}:project+run+job+server")];
                keep_live(projects, topics.clone(), |_, _| false, |e| live::kind(e) == "project");
                keep_live(
                    results,
                    topics.clone(),
                    |_, _| false,
                    |e| e.event_type.starts_with("tool_output."),
                );
                keep_live(running, topics.clone(), |_, _| false, |e| live::kind(e) == "job");
                keep_live(servers, topics, live::fold_server, |e| live::kind(e) == "server");
            }
        });
        Self {
            projects: projects.total,
            results: results.total,
            running: running.total,
            servers: servers.rows,
        }
    }

    fn of(self, path: &str, page: Page) -> String {
        let shown = |n: Option<usize>| n.map_or_else(String::new, |n| count(n as i64));
        match path {
            "/projects" => shown(self.projects.get()),
            "/reporting" => shown(self.results.get()),
            "/monitoring" => {
                self.running.get().filter(|n| *n > 0).map_or_else(String::new, |n| format!("{n} running"))
            }
            "/hardware" => self.servers.with(|rows| {
                let Some(rows) = rows.as_ref().filter(|r| !r.is_empty()) else { return String::new() };
                format!("{} of {}", rows.iter().filter(|r| r.text("state") == "online").count(), rows.len())
            }),
            "/audit" => Some(page.live.head.get()).filter(|h| *h > 0).map_or_else(String::new, count),
            _ => String::new(),
        }
    }
}
