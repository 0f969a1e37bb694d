//! The border to `plot.js`.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/src/charts/plot.js")]
extern "C" {
    /// Draws a figure into an element, or redraws it. `zoom` is a [`crate::state::zoom::Zoom`] as it is written, or empty.
    /// Charts of a group share the cross-hair. `tell` hears what the reader does: `zoom` with the new stretch, `pick`
    /// with the name of the point that was clicked: its `customdata`, or its line's `meta` and its x.
    #[wasm_bindgen(catch)]
    pub async fn draw(
        plot: &web_sys::HtmlElement,
        figure: &str,
        zoom: &str,
        group: &str,
        tell: &js_sys::Function,
    ) -> Result<(), JsValue>;

    /// Forgets a chart.
    pub fn purge(plot: &web_sys::HtmlElement);
}
