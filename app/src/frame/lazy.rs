//! Pages that come when they are opened. The program is split at the functions here: what only they lead to is in files
//! of its own, so that the first page has little to load. Once that page stands, the rest is fetched in the background.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use leptos::html::Button;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;
use wasm_split_helpers::{SplitLoaderError, wasm_split};

use super::key_list;
use crate::browser::api::Trouble;
use crate::drawer::show as show_drawer;
use crate::pages;
use crate::parts::states::{Coming, Skeleton, trouble_view};
use crate::state::place::Key;
use crate::state::query::Query;

/// Builds a page, once its part of the program is there.
pub type Show = fn(&Key) -> AnyView;

/// What [`Lazy`] waits for.
pub type Loading = Pin<Box<dyn Future<Output = Result<Show, SplitLoaderError>>>>;

/// Pages of one file each, by name: `name => part, builder`.
macro_rules! lazy_pages {
    ($($(#[$doc:meta])* $name:ident in $part:ident: |$key:ident| $view:expr;)*) => {
        /// Which part of the program each page is in.
        #[cfg(test)]
        const PARTS: &[(&str, &str)] = &[$((stringify!($name), stringify!($part))),*];
    $(
        $(#[$doc])*
        pub fn $name() -> Loading {
            #[wasm_split($part, fallible)]
            fn $name() -> Result<Show, SplitLoaderError> {
                fn show($key: &Key) -> AnyView {
                    $view
                }
                Ok(show)
            }
            Box::pin($name())
        }
    )*};
}

lazy_pages! {
    /// The list of projects.
    projects in plan: |_key| view! { <pages::projects::Projects/> }.into_any();
    /// A new project or workload.
    new_project in plan: |_key| view! { <pages::project_new::NewProject/> }.into_any();
    /// Results of other tools, brought in.
    import in manage: |_key| view! { <pages::import::Import/> }.into_any();
    /// A project.
    project in plan: |key| view! { <pages::project::Project org=key[0].clone() project=key[1].clone()/> }.into_any();
    /// A run.
    run in work: |key| {
        let [org, project, workload, run, _] = key.clone();
        view! { <pages::run::Run org project workload run/> }.into_any()
    };
    /// A job.
    job in work: |key| {
        let [org, project, workload, run, scenario] = key.clone();
        view! { <pages::job::Job org project workload run scenario/> }.into_any()
    };
    /// What runs now, watched.
    monitoring in work: |_key| view! { <pages::monitoring::Monitoring/> }.into_any();
    /// Every result.
    reporting in compare: |_key| view! { <pages::reporting::Reporting/> }.into_any();
    /// Ranks.
    leaderboard in compare: |_key| view! { <pages::leaderboard::Leaderboard/> }.into_any();
    /// Signing in.
    sign_in in manage: |_key| view! { <pages::sign_in::SignInPage/> }.into_any();
    /// No page has this address.
    not_found in manage: |_key| view! { <pages::NotFound/> }.into_any();
    /// Servers.
    hardware in manage: |_key| view! { <pages::hardware::Hardware/> }.into_any();
    /// Models, frameworks, tools, metrics.
    catalogue in manage: |_key| view! { <pages::catalogue::Catalogue/> }.into_any();
    /// The log.
    audit in manage: |_key| view! { <pages::audit::Audit/> }.into_any();
    /// Who works together.
    organization in manage: |_key| view! { <pages::organization::Organization/> }.into_any();
    /// An invitation's link.
    invitation in manage: |_key| view! { <pages::invitation::Invitation/> }.into_any();
    /// Who is signed in.
    profile in manage: |_key| view! { <pages::profile::Profile/> }.into_any();
}

/// The drawer's content.
#[wasm_split(details, fallible)]
fn load_drawer() -> Result<fn(&Query) -> AnyView, SplitLoaderError> {
    Ok(show_drawer)
}

/// Builds the list of keys.
type ShowKeys = fn(RwSignal<bool>, NodeRef<Button>) -> AnyView;

/// The list of keys.
#[wasm_split(details, fallible)]
fn load_keys() -> Result<ShowKeys, SplitLoaderError> {
    Ok(key_list::show)
}

/// A part of the program that did not come.
fn not_loaded() -> Trouble {
    Trouble::of_page(
        "page_not_loaded",
        "This part of the page could not be loaded.",
        "Check the connection and try again. After an upgrade of the control plane, reload the page.",
    )
}

/// Begins to load a page's part of the program, while it is still being asked who reads.
pub fn warm(load: fn() -> Loading) {
    spawn_local(async move {
        // What does not come is asked for again when it is shown, and says so.
        let _ = load().await;
    });
}

/// What builds something, once its part of the program is there.
type Builder = Rc<dyn Fn() -> AnyView>;

/// What loads it.
type Arriving = Pin<Box<dyn Future<Output = Result<Builder, SplitLoaderError>>>>;

/// Begins to load what builds it.
type Load = Rc<dyn Fn() -> Arriving>;

/// Something whose part of the program may have to be loaded first; `coming` stands there meanwhile.
fn later(load: Load, coming: fn() -> AnyView) -> AnyView {
    let load = StoredValue::new_local(load);
    let show = RwSignal::new_local(None::<Result<Builder, ()>>);
    let fetch = move || {
        show.set(None);
        let loading = load.with_value(|load| load());
        spawn_local(async move {
            let loaded = loading.await.map_err(|_| ());
            show.try_set(Some(loaded));
        });
    };
    fetch();
    (move || match show.get() {
        Some(Ok(show)) => untrack(|| show()),
        Some(Err(())) => trouble_view(&not_loaded(), fetch),
        None => coming(),
    })
    .into_any()
}

/// A page whose part of the program may have to be loaded first.
#[component]
pub fn Lazy(
    /// Loads it.
    load: fn() -> Loading,
    /// What it shows.
    #[prop(default = Key::default())]
    key: Key,
) -> impl IntoView {
    let load: Load = Rc::new(move || {
        let key = key.clone();
        Box::pin(async move { load().await.map(|show| Rc::new(move || show(&key)) as Builder) })
    });
    later(load, || view! { <Coming/> }.into_any())
}

/// What the drawer shows, loaded first where it must be.
#[component]
pub fn LazyDrawer(
    /// What it shows, as the address says it.
    shown: Query,
) -> impl IntoView {
    let load: Load = Rc::new(move || {
        let shown = shown.clone();
        Box::pin(async move { load_drawer().await.map(|show| Rc::new(move || show(&shown)) as Builder) })
    });
    later(load, || view! { <Skeleton lines=4/> }.into_any())
}

/// The list of keys, loaded first where it must be.
#[component]
pub fn LazyKeys(
    /// Whether it is shown: to close it.
    shown: RwSignal<bool>,
    /// Where its button to close it will be.
    close: NodeRef<Button>,
) -> impl IntoView {
    let load: Load = Rc::new(move || {
        Box::pin(async move { load_keys().await.map(|show| Rc::new(move || show(shown, close)) as Builder) })
    });
    later(load, || view! { <Skeleton lines=4/> }.into_any())
}

/// How long the first page has the line for itself.
const HEAD_START: Duration = Duration::from_secs(3);

/// Fetches what is left of the program: the next page is there at once, also when the connection is not.
pub fn fetch_the_rest() {
    set_timeout(
        || {
            spawn_local(async {
                // What does not come now is loaded when it is wanted.
                let _ = load_drawer().await;
                for load in [projects, run, reporting, hardware] {
                    let _ = load().await;
                }
            });
        },
        HEAD_START,
    );
}

#[cfg(test)]
mod tests {
    use super::PARTS;
    use events::first_page::part;

    #[test]
    fn the_part_that_comes_with_an_address_is_the_one_its_page_is_in() {
        let pages = [
            ("/projects", "projects"),
            ("/projects/new", "new_project"),
            ("/projects/import", "import"),
            ("/projects/acme/p", "project"),
            ("/projects/acme/p/w", "project"),
            ("/projects/acme/p/w/3", "run"),
            ("/projects/acme/p/w/3/c8", "job"),
            ("/projects/acme", "not_found"),
            ("/monitoring", "monitoring"),
            ("/reporting", "reporting"),
            ("/leaderboard", "leaderboard"),
            ("/sign-in", "sign_in"),
            ("/nowhere", "not_found"),
            ("/hardware", "hardware"),
            ("/catalogue", "catalogue"),
            ("/audit", "audit"),
            ("/organization", "organization"),
            ("/invitation", "invitation"),
            ("/profile", "profile"),
        ];
        for (path, name) in pages {
            let own = PARTS.iter().find(|(page, _)| *page == name).map(|(_, part)| *part);
            assert_eq!(part(path), own, "{path}");
        }
        assert!(PARTS.iter().all(|(name, _)| pages.iter().any(|(_, page)| page == name)));
        assert_eq!(part("/"), None, "the dashboard is in the first part");
    }
}
