//! The keyboard: `?` lists what there is.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use crate::browser::route::{NavigateOptions, use_location, use_navigate};
use crate::browser::table_rows;

/// Whether the keyboard is in a field.
pub fn is_typing() -> bool {
    document().active_element().is_some_and(|element| {
        matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT")
            && element
                .get_attribute("type")
                .is_none_or(|t| !matches!(t.as_str(), "checkbox" | "radio" | "range"))
    })
}

/// Listens for keys and shows the list of them.
#[component]
pub fn Keys() -> impl IntoView {
    let page = crate::browser::page::Page::expect();
    let location = use_location();
    let navigate = use_navigate();
    let shown = RwSignal::new(false);
    let going = StoredValue::new(0.0f64);
    let handle = window_event_listener(leptos::ev::keydown, move |event| {
        if event.ctrl_key() || event.meta_key() || event.alt_key() {
            return;
        }
        let key = event.key();
        if key == "Escape" {
            if is_typing() {
                if let Some(field) =
                    document().active_element().and_then(|e| e.dyn_into::<web_sys::HtmlElement>().ok())
                {
                    let _ = field.blur();
                }
            } else if shown.get_untracked() {
                shown.set(false);
            } else if location.search.get_untracked().contains("drawer") {
                let to = super::bar::drawer_href(
                    &location.pathname.get_untracked(),
                    &location.search.get_untracked(),
                    &[],
                );
                navigate(&to, NavigateOptions { scroll: false, ..NavigateOptions::default() });
            }
            return;
        }
        if is_typing() {
            return;
        }
        let now = crate::browser::now_ms();
        if now - going.get_value() < 1000.0 {
            going.set_value(0.0);
            let to = match key.as_str() {
                "d" => "/",
                "p" => "/projects",
                "r" => "/reporting",
                "m" => "/monitoring",
                "l" => "/leaderboard",
                "h" => "/hardware",
                "c" => "/catalogue",
                "a" => "/audit",
                _ => return,
            };
            navigate(to, NavigateOptions::default());
            return;
        }
        match key.as_str() {
            "?" => shown.update(|s| *s = !*s),
            "g" => going.set_value(now),
            "t" => page.switch_theme(),
            "j" => table_rows::go(1),
            "k" => table_rows::go(-1),
            "Enter" => {
                if let Some(href) = table_rows::opened() {
                    navigate(&href, NavigateOptions::default());
                }
            }
            _ => {}
        }
    });
    on_cleanup(move || handle.remove());
    // The focus goes into the list, and back to where it was.
    let close = NodeRef::<leptos::html::Button>::new();
    let before = StoredValue::new_local(None::<web_sys::HtmlElement>);
    Effect::new(move |_| {
        if shown.get() {
            if let Some(close) = close.get() {
                before.set_value(document().active_element().and_then(|e| e.dyn_into().ok()));
                let _ = close.focus();
            }
        } else if let Some(before) = before.try_update_value(Option::take).flatten() {
            let _ = before.focus();
        }
    });
    view! {
        <Show when=move || shown.get()>
            <div class="dialog" role="dialog" aria-modal="true" aria-label="Keys" data-testid="keys">
                <super::LazyKeys shown close/>
            </div>
        </Show>
    }
}
