//! The frame around every page: rail, top bar, content, drawer; and the routes.

mod bar;
mod key_list;
mod keys;
mod lazy;
mod rail;

use leptos::prelude::*;

use crate::browser::in_turns;
use crate::browser::page::Page;
use crate::browser::route::{self, use_location};
use crate::drawer::Drawer;
use crate::pages;
use crate::parts::states::Coming;
use crate::state::place::{Key, Place};

pub use bar::{DRAWER_KEYS, drawer_href};
pub use keys::is_typing;
pub use lazy::LazyDrawer;

use lazy::{Lazy, LazyKeys, Loading};

/// The whole page.
#[component]
pub fn App() -> impl IntoView {
    route::provide();
    let page = Page::provide();
    lazy::fetch_the_rest();
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
    // Another page has other buttons: nothing is asked any more.
    let location = use_location();
    Effect::new(move |_| {
        location.pathname.track();
        page.asking.set(None);
    });
    view! {
        <Frame/>
    }
}

#[component]
fn Frame() -> impl IntoView {
    let location = use_location();
    let bare = Memo::new(move |_| location.pathname.get() == "/sign-in");
    let turn = in_turns(1);
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
                <Show when=move || { turn.get() > 0 } fallback=|| view! { <Coming/> }>{page_here()}</Show>
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

/// The page that the address names. Another natural key gets a fresh page, so that nothing of the last one stays.
fn page_here() -> AnyView {
    let location = use_location();
    let place = Memo::new(move |_| location.pathname.with(|path| Place::read(path)));
    (move || {
        let lazy = |load: fn() -> Loading, key: Key| {
            lazy::warm(load);
            view! { <Guard><Lazy load key=key.clone()/></Guard> }.into_any()
        };
        let open = |load| view! { <Lazy load/> }.into_any();
        let plain = |load| lazy(load, Key::default());
        match place.get() {
            Place::Dashboard => view! { <Guard><pages::dashboard::Dashboard/></Guard> }.into_any(),
            Place::SignIn => open(lazy::sign_in),
            Place::Projects => plain(lazy::projects),
            Place::NewProject => plain(lazy::new_project),
            Place::Project(key) => lazy(lazy::project, key),
            Place::Run(key) => lazy(lazy::run, key),
            Place::Job(key) => lazy(lazy::job, key),
            Place::Reporting => plain(lazy::reporting),
            Place::Monitoring => plain(lazy::monitoring),
            Place::Leaderboard => plain(lazy::leaderboard),
            Place::Hardware => plain(lazy::hardware),
            Place::Catalogue => plain(lazy::catalogue),
            Place::Audit => plain(lazy::audit),
            Place::Profile => plain(lazy::profile),
            Place::Import => plain(lazy::import),
            Place::Organization => plain(lazy::organization),
            Place::Invitation => plain(lazy::invitation),
            Place::Unknown => open(lazy::not_found),
        }
    })
    .into_any()
}
