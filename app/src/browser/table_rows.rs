//! The rows of a table by keyboard. A row that takes part has `data-href`, the page it opens, and a tabindex.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use crate::frame::is_typing;

const ROWS: &str = "tr[data-href]";

/// The row that the keyboard is on.
fn row() -> Option<web_sys::Element> {
    document().active_element()?.closest(ROWS).ok().flatten()
}

fn rows() -> Vec<web_sys::HtmlElement> {
    let Ok(list) = document().query_selector_all(ROWS) else { return Vec::new() };
    (0..list.length()).filter_map(|n| list.get(n)?.dyn_into().ok()).collect()
}

/// Goes so many rows down, or up; to the first where none has the keyboard.
pub fn go(step: isize) {
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

/// The page that the row with the keyboard opens; nothing where a link or button in it has the keyboard.
pub fn opened() -> Option<String> {
    let element = document().active_element()?;
    element.matches(ROWS).ok()?.then(|| element.get_attribute("data-href")).flatten()
}

/// Listens to `x`, `b` and `c` on rows with `data-path`, as long as the calling component lives.
pub fn listen(pick: impl Fn(String) + 'static, pin: impl Fn(String) + 'static) {
    let handle = window_event_listener(leptos::ev::keydown, move |event| {
        if event.ctrl_key() || event.meta_key() || event.alt_key() || is_typing() {
            return;
        }
        let path = || row().and_then(|row| row.get_attribute("data-path"));
        match event.key().as_str() {
            "x" => path().into_iter().for_each(&pick),
            "b" => path().into_iter().for_each(&pin),
            "c" => {
                if let Some(tray) = document().get_element_by_id("compare") {
                    tray.scroll_into_view();
                }
            }
            _ => {}
        }
    });
    on_cleanup(move || handle.remove());
}
