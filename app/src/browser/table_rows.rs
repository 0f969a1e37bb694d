//! The rows of a table by keyboard: `j` and `k` go down and up, `Enter` opens, `x` picks, `b` pins, `c` goes to the
//! comparison. A row that takes part has `data-path`, its job's path, and `data-href`, its page.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use wasm_bindgen::JsCast;

use crate::frame::is_typing;

const ROWS: &str = "tr[data-path]";

/// The row that the keyboard is on.
fn row() -> Option<web_sys::Element> {
    document().active_element()?.closest(ROWS).ok().flatten()
}

fn rows() -> Vec<web_sys::HtmlElement> {
    let Ok(list) = document().query_selector_all(ROWS) else { return Vec::new() };
    (0..list.length()).filter_map(|n| list.get(n)?.dyn_into().ok()).collect()
}

fn go(step: isize) {
    let rows = rows();
    let here = row().and_then(|row| rows.iter().position(|r| r.is_same_node(Some(&row))));
    let to = match here {
        Some(place) => place.saturating_add_signed(step).min(rows.len().saturating_sub(1)),
        None => 0,
    };
    if let Some(row) = rows.get(to) {
        let _ = row.focus();
        row.scroll_into_view_with_bool(false);
    }
}

/// Listens as long as the calling component lives.
pub fn listen(pick: impl Fn(String) + 'static, pin: impl Fn(String) + 'static) {
    let navigate = use_navigate();
    let handle = window_event_listener(leptos::ev::keydown, move |event| {
        if event.ctrl_key() || event.meta_key() || event.alt_key() || is_typing() {
            return;
        }
        let path = || row().and_then(|row| row.get_attribute("data-path"));
        match event.key().as_str() {
            "j" => go(1),
            "k" => go(-1),
            "x" => path().into_iter().for_each(&pick),
            "b" => path().into_iter().for_each(&pin),
            "c" => {
                if let Some(tray) = document().get_element_by_id("compare") {
                    tray.scroll_into_view();
                }
            }
            // A link or button in the row does what it does.
            "Enter" if document().active_element().is_some_and(|e| e.has_attribute("data-path")) => {
                if let Some(href) = row().and_then(|row| row.get_attribute("data-href")) {
                    navigate(&href, NavigateOptions::default());
                }
            }
            _ => {}
        }
    });
    on_cleanup(move || handle.remove());
}
