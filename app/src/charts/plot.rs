//! The border to `plot.js`.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/src/charts/plot.js")]
extern "C" {
    /// Draws a figure into an element, or redraws it: zoom and selection stay. Charts of a group share cross-hair and zoom.
    #[wasm_bindgen(catch)]
    pub async fn draw(plot: &web_sys::HtmlElement, figure: &str, group: &str) -> Result<(), JsValue>;

    /// Forgets a chart.
    pub fn purge(plot: &web_sys::HtmlElement);
}
