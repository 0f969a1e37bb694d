//! The border to the browser: requests, the live stream, storage, small helpers. Everything above is plain Rust.

pub mod address;
pub mod api;
pub mod colours;
pub mod first;
pub mod focus;
pub mod live;
pub mod page;
pub mod remote;
pub mod route;
pub mod static_rows;
pub mod table_rows;

/// Milliseconds since 1970.
pub fn now_ms() -> f64 {
    js_sys::Date::now()
}

/// Whether the window is a phone's: tables are cards there, as the style sheet has it.
pub fn is_small() -> bool {
    let width = leptos::prelude::window().inner_width().ok().and_then(|w| w.as_f64());
    width.is_some_and(|width| width <= 720.0)
}

/// Counts from 0 to `last`, a task of the browser's for each number: what is built for one of them is built by itself, and
/// the browser paints and listens in between. Built from the top downwards, nothing moves what is there already.
pub fn in_turns(last: usize) -> leptos::prelude::ReadSignal<usize> {
    use leptos::prelude::*;
    fn next(turn: RwSignal<usize>, last: usize) {
        set_timeout(
            move || {
                if let Some(now) = turn.try_update(|turn| {
                    *turn += 1;
                    *turn
                }) && now < last
                {
                    next(turn, last);
                }
            },
            std::time::Duration::ZERO,
        );
    }
    let turn = RwSignal::new(0);
    if last > 0 {
        next(turn, last);
    }
    turn.read_only()
}

/// A word kept in this browser.
pub fn stored(key: &str) -> Option<String> {
    leptos::prelude::window().local_storage().ok()??.get_item(key).ok()?
}

/// Keeps a word in this browser, or forgets it.
pub fn store(key: &str, value: Option<&str>) {
    if let Ok(Some(storage)) = leptos::prelude::window().local_storage() {
        // A full or forbidden storage costs a preference, nothing else.
        let _ = match value {
            Some(value) => storage.set_item(key, value),
            None => storage.remove_item(key),
        };
    }
}

/// Copies a text.
pub fn copy(text: &str) {
    let _ = leptos::prelude::window().navigator().clipboard().write_text(text);
}

/// Offers a text as a file.
pub fn save_file(name: &str, mime: &str, text: &str) {
    let parts = js_sys::Array::of1(&text.into());
    let options = web_sys::BlobPropertyBag::new();
    options.set_type(mime);
    if let Ok(blob) = web_sys::Blob::new_with_str_sequence_and_options(&parts, &options) {
        save_blob(name, &blob);
    }
}

/// Offers a file.
pub fn save_blob(name: &str, blob: &web_sys::Blob) {
    use leptos::prelude::document;
    use wasm_bindgen::JsCast;
    let Ok(url) = web_sys::Url::create_object_url_with_blob(blob) else { return };
    if let Some(link) =
        document().create_element("a").ok().and_then(|e| e.dyn_into::<web_sys::HtmlAnchorElement>().ok())
    {
        link.set_href(&url);
        link.set_download(name);
        link.click();
    }
    let _ = web_sys::Url::revoke_object_url(&url);
}

/// Moves the keyboard to an element without scrolling there.
pub fn focus_quietly(element: &web_sys::Element) {
    let options = js_sys::Object::new();
    let _ = js_sys::Reflect::set(&options, &"preventScroll".into(), &true.into());
    if let Ok(focus) = js_sys::Reflect::get(element, &"focus".into()) {
        let _ = wasm_bindgen::JsCast::unchecked_into::<js_sys::Function>(focus).call1(element, &options);
    }
}
