//! Where the page is: its address as signals, links that open within the page, the way back and forward. Which page an
//! address names, [`crate::state::place`] says; a router's own types for that would be a tenth of the first page's program.

use leptos::prelude::*;
use wasm_bindgen::{JsCast, JsValue};

/// The address, in two parts that change on their own.
#[derive(Clone, Copy)]
pub struct Location {
    /// The path: `/projects/acme/p`.
    pub pathname: Memo<String>,
    /// What stands after the `?`, without it.
    pub search: Memo<String>,
}

/// How one goes to an address.
#[derive(Debug, Clone, Copy)]
pub struct NavigateOptions {
    /// In the place of the present address: the way back leads past it.
    pub replace: bool,
    /// To the top of the page, or to what the `#` names.
    pub scroll: bool,
}

impl Default for NavigateOptions {
    fn default() -> Self {
        Self { replace: false, scroll: true }
    }
}

/// Path and query.
type Here = (String, String);

#[derive(Clone, Copy)]
struct Route {
    here: RwSignal<Here>,
    location: Location,
}

/// Follows the address from now on, for everything below the calling component.
pub fn provide() {
    let here = RwSignal::new(now());
    let location = Location {
        pathname: Memo::new(move |_| here.with(|here| here.0.clone())),
        search: Memo::new(move |_| here.with(|here| here.1.clone())),
    };
    provide_context(Route { here, location });
    let back = window_event_listener(leptos::ev::popstate, move |_| here.set(now()));
    let click = window_event_listener(leptos::ev::click, move |event| {
        if let Some((to, options)) = followed(&event) {
            event.prevent_default();
            go(here, &to, options);
        }
    });
    on_cleanup(move || {
        back.remove();
        click.remove();
    });
}

/// The address.
///
/// # Panics
/// Outside the page: a mistake in the program.
pub fn use_location() -> Location {
    expect_context::<Route>().location
}

/// Goes to an address of the page.
///
/// # Panics
/// Outside the page: a mistake in the program.
pub fn use_navigate() -> impl Fn(&str, NavigateOptions) + Clone + 'static {
    let here = expect_context::<Route>().here;
    move |to: &str, options: NavigateOptions| go(here, to, options)
}

fn now() -> Here {
    let location = window().location();
    let search = location.search().unwrap_or_default();
    (location.pathname().unwrap_or_default(), search.trim_start_matches('?').to_owned())
}

fn go(here: RwSignal<Here>, to: &str, options: NavigateOptions) {
    let base = window().location().href().unwrap_or_default();
    let Ok(url) = web_sys::Url::new_with_base(to, &base) else { return };
    let full = format!("{}{}{}", url.pathname(), url.search(), url.hash());
    if let Ok(history) = window().history() {
        let _ = if options.replace {
            history.replace_state_with_url(&JsValue::NULL, "", Some(&full))
        } else {
            history.push_state_with_url(&JsValue::NULL, "", Some(&full))
        };
    }
    here.set(now());
    if options.scroll {
        let hash = url.hash();
        match document().get_element_by_id(hash.trim_start_matches('#')).filter(|_| !hash.is_empty()) {
            Some(element) => element.scroll_into_view(),
            None => window().scroll_to_with_x_and_y(0.0, 0.0),
        }
    }
}

/// The address of the link that was clicked, where it is one of ours and the browser need not do anything else with it.
fn followed(event: &web_sys::MouseEvent) -> Option<(String, NavigateOptions)> {
    let modified = event.meta_key() || event.alt_key() || event.ctrl_key() || event.shift_key();
    if event.default_prevented() || event.button() != 0 || modified {
        return None;
    }
    let element = event.target()?.dyn_into::<web_sys::Element>().ok()?;
    let link = element.closest("a[href]").ok()??.dyn_into::<web_sys::HtmlAnchorElement>().ok()?;
    let elsewhere =
        link.get_attribute("rel").is_some_and(|rel| rel.split(' ').any(|word| word == "external"));
    if elsewhere || !link.target().is_empty() || link.has_attribute("download") {
        return None;
    }
    let url = web_sys::Url::new(&link.href()).ok()?;
    if url.origin() != window().location().origin().ok()? {
        return None;
    }
    let to = format!("{}{}{}", url.pathname(), url.search(), url.hash());
    Some((to, NavigateOptions { scroll: !link.has_attribute("data-noscroll"), ..NavigateOptions::default() }))
}
