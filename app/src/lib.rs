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

/// Takes the placeholder away and mounts the page.
pub fn mount() {
    if let Some(placeholder) = leptos::prelude::document().get_element_by_id("placeholder") {
        placeholder.remove();
    }
    leptos::mount::mount_to_body(frame::App);
}
