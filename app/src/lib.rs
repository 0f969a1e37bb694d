//! The page of Benchtrail.
//!
//! Plain Rust, tested natively: [`format`], [`row`], [`metrics`], [`state`] (URL codec, live folds) and the figures in
//! [`charts`]. The border to the browser is [`browser`]; [`frame`], [`parts`], [`drawer`] and [`pages`] are Leptos components.

#![recursion_limit = "256"]

pub mod browser;
pub mod charts;
pub mod drawer;
pub mod format;
pub mod frame;
pub mod metrics;
pub mod pages;
pub mod parts;
pub mod row;
pub mod state;

/// Mounts the page below its placeholder, and takes that away once a frame was drawn: what the browser painted first counts
/// as painted, and nothing flickers.
pub fn mount() {
    use leptos::prelude::{document, request_animation_frame, set_timeout};
    let placeholder = document().get_element_by_id("placeholder");
    leptos::mount::mount_to_body(frame::App);
    if let Some(placeholder) = placeholder {
        request_animation_frame(move || set_timeout(move || placeholder.remove(), std::time::Duration::ZERO));
    }
}
