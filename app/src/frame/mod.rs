//! The frame around every page: rail, top bar, content, drawer; and the routes.

mod bar;
mod keys;
mod rail;

use leptos::prelude::*;
use leptos_router::components::{Route, Router, Routes};
use leptos_router::hooks::{use_location, use_params_map};
use leptos_router::path;

use crate::browser::page::Page;
use crate::drawer::Drawer;
use crate::pages;

pub use bar::{DRAWER_KEYS, drawer_href};
pub use keys::is_typing;

/// The whole page.
#[component]
pub fn App() -> impl IntoView {
    let page = Page::provide();
    Effect::new(move |_| {
        let Some(root) = document().document_element() else { return };
        let _ = match page.theme.get() {
            Some(theme) => root.set_attribute("data-theme", &theme),
            None => root.remove_attribute("data-theme"),
        };
    });
    Effect::new(move |_| {
        let Some(root) = document().document_element() else { return };
        let width = window().inner_width().ok().and_then(|w| w.as_f64()).unwrap_or(1440.0);
        // A drawer takes its own column: the rail gives way, unless the reader wants it wide.
        let room = if page.drawer_open.get() { 1640.0 } else { 1360.0 };
        let narrow = page.narrow.get().unwrap_or(width > 720.0 && width < room);
        let _ = if narrow {
            root.set_attribute("data-rail", "narrow")
        } else {
            root.remove_attribute("data-rail")
        };
    });
    view! {
        <Router>
            <Frame/>
        </Router>
    }
}

#[component]
fn Frame() -> impl IntoView {
    let location = use_location();
    let bare = Memo::new(move |_| location.pathname.get() == "/sign-in");
    view! {
        <a class="skip-link" href="#content" rel="external">
            "Skip to content"
        </a>
        <div class="frame" class:frame-bare=move || bare.get()>
            <Show when=move || !bare.get()>
                <rail::Rail/>
                <bar::Bar/>
            </Show>
            <main class="content" id="content" tabindex="-1">
                <Routes fallback=|| view! { <pages::NotFound/> }.into_any()>
                    <Route path=path!("/") view=|| view! { <Guard><pages::dashboard::Dashboard/></Guard> }.into_any()/>
                    <Route path=path!("/sign-in") view=|| view! { <pages::sign_in::SignInPage/> }.into_any()/>
                    <Route path=path!("/projects") view=|| view! { <Guard><pages::projects::Projects/></Guard> }.into_any()/>
                    <Route path=path!("/projects/new") view=|| view! { <Guard><pages::project_new::NewProject/></Guard> }.into_any()/>
                    <Route path=path!("/projects/:org/:project") view=|| keyed(|p| view! { <pages::project::Project org=p(0) project=p(1)/> }.into_any())/>
                    <Route
                        path=path!("/projects/:org/:project/:workload")
                        view=|| keyed(|p| view! { <pages::project::Project org=p(0) project=p(1)/> }.into_any())
                    />
                    <Route
                        path=path!("/projects/:org/:project/:workload/:run")
                        view=|| keyed(|p| view! { <pages::run::Run org=p(0) project=p(1) workload=p(2) run=p(3)/> }.into_any())
                    />
                    <Route
                        path=path!("/projects/:org/:project/:workload/:run/:scenario")
                        view=|| {
                            keyed(|p| view! { <pages::job::Job org=p(0) project=p(1) workload=p(2) run=p(3) scenario=p(4)/> }.into_any())
                        }
                    />
                    <Route path=path!("/reporting") view=|| view! { <Guard><pages::reporting::Reporting/></Guard> }.into_any()/>
                    <Route path=path!("/monitoring") view=|| view! { <Guard><pages::monitoring::Monitoring/></Guard> }.into_any()/>
                    <Route path=path!("/leaderboard") view=|| view! { <Guard><pages::leaderboard::Leaderboard/></Guard> }.into_any()/>
                    <Route path=path!("/hardware") view=|| view! { <Guard><pages::hardware::Hardware/></Guard> }.into_any()/>
                    <Route path=path!("/catalogue") view=|| view! { <Guard><pages::catalogue::Catalogue/></Guard> }.into_any()/>
                    <Route path=path!("/audit") view=|| view! { <Guard><pages::audit::Audit/></Guard> }.into_any()/>
                    <Route path=path!("/profile") view=|| view! { <Guard><pages::profile::Profile/></Guard> }.into_any()/>
                </Routes>
            </main>
            <Show when=move || !bare.get()>
                <Drawer/>
            </Show>
        </div>
        <keys::Keys/>
    }
    .into_any()
}

/// Shows a page once it is known who reads: what it asks for depends on that. Another reader gets a fresh page.
#[component]
fn Guard(children: ChildrenFn) -> impl IntoView {
    let page = Page::expect();
    let reader =
        Memo::new(move |_| page.session.with(|s| s.as_ref().map(|s| (s.user.clone(), s.org.clone()))));
    move || match reader.get() {
        Some(_) => children().into_any(),
        None => view! { <pages::Waiting/> }.into_any(),
    }
}

const PARAMS: [&str; 5] = ["org", "project", "workload", "run", "scenario"];

/// A page of one natural key: another key gets a fresh page, so that nothing of the last one stays.
fn keyed(show: impl Fn(&dyn Fn(usize) -> String) -> AnyView + Copy + Send + Sync + 'static) -> AnyView {
    let params = use_params_map();
    let key = Memo::new(move |_| params.with(|map| PARAMS.map(|name| map.get(name).unwrap_or_default())));
    view! {
        <Guard>
            {move || {
                let parts = key.get();
                show(&|place: usize| parts[place].clone())
            }}
        </Guard>
    }
    .into_any()
}
