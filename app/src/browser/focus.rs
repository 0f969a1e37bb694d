//! Where the keyboard is, kept over a list that is drawn anew.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::focus_quietly;

/// Where in the page's content the keyboard was.
pub struct Focus {
    tag: String,
    mark: String,
}

impl Focus {
    /// Where it is now; nothing where it is on nothing.
    pub fn held() -> Option<Self> {
        let element = document().active_element().filter(|e| e.closest("main").ok().flatten().is_some())?;
        Some(Self { tag: element.tag_name(), mark: mark(&element) })
    }

    /// Gives it back to the element that looks the same, once what is being drawn is there; unless it is somewhere by then.
    pub fn give_back_soon(self) {
        queue_microtask(move || {
            let nowhere = document().active_element().is_none_or(|e| e.tag_name() == "BODY");
            if !nowhere {
                return;
            }
            let Ok(alike) = document().query_selector_all(&format!("main {}", self.tag)) else { return };
            let found = (0..alike.length())
                .filter_map(|n| alike.get(n)?.dyn_into::<web_sys::Element>().ok())
                .find(|element| mark(element) == self.mark);
            if let Some(found) = found {
                focus_quietly(&found);
            }
        });
    }
}

/// What tells an element from others: its names, where it leads, its words, and the row it stands in.
fn mark(element: &web_sys::Element) -> String {
    let row = element.closest("tr, li").ok().flatten();
    let head =
        row.and_then(|row| row.query_selector("th, .key").ok().flatten()).and_then(|h| h.text_content());
    let named = ["id", "data-testid", "href", "aria-label", "name"].map(|name| element.get_attribute(name));
    let words = element.text_content().filter(|words| words.len() < 80);
    format!("{named:?} {words:?} {head:?}")
}
