//! Charts: numbers in, a figure out (plain data, tested natively), and the component that draws it with Plotly.
//!
//! Colours are named by token (`--series-1`, `--ink-3@18` for 18 % over nothing, `--series-1/44` for 44 % over the page);
//! the binding asks the style sheet what each is now, so that one figure serves light and dark.

pub mod category;
pub mod concurrency;
pub mod overlay;
pub mod pareto;
mod plot;
pub mod saturation;
pub mod telemetry;
pub mod view;
pub mod waterfall;

use serde_json::{Value, json};

use crate::state::colours::Colour;

/// Everything a chart shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figure {
    /// Plotly's traces.
    pub traces: Vec<Value>,
    /// Plotly's layout.
    pub layout: Value,
    /// The table beside the chart: its head.
    pub head: Vec<String>,
    /// The table's rows, as written.
    pub rows: Vec<Vec<String>>,
    /// The lines' names and colours, where they do not stand beside the lines.
    pub legend: Vec<(String, Colour)>,
    /// The chart in a sentence, for those who do not see it.
    pub summary: String,
}

impl Figure {
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.traces.is_empty()
    }
}

/// The shapes of points; by place in the chart, so that no two lines of one chart share a shape.
pub const MARKERS: [&str; 6] = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down"];

/// An axis in the page's theme, with what is particular to it.
pub fn axis(particular: Value) -> Value {
    merged(
        json!({
            "gridcolor": "--hairline", "linecolor": "--hairline-strong", "tickcolor": "--hairline-strong",
            "tickfont": {"color": "--ink-3", "size": 12}, "zeroline": false, "ticks": "", "automargin": false,
            "separatethousands": true, "fixedrange": false, "spikecolor": "--ink-3", "spikethickness": 1,
            "spikedash": "solid", "spikemode": "across", "spikesnap": "cursor",
        }),
        particular,
    )
}

/// A layout in the page's theme, with what is particular to it.
pub fn layout(particular: Value) -> Value {
    merged(
        json!({
            "autosize": true, "uirevision": "kept", "paper_bgcolor": "transparent", "plot_bgcolor": "transparent",
            "showlegend": false, "hovermode": "x unified", "dragmode": "zoom", "separators": ".\u{202f}",
            "margin": {"l": 44, "r": 12, "t": 8, "b": 36},
            "font": {"family": "--words", "size": 12, "color": "--ink-2"},
            "modebar": {"bgcolor": "transparent", "color": "--ink-3", "activecolor": "--ink"},
            "hoverlabel": {"bgcolor": "--raised", "bordercolor": "--hairline-strong", "font": {"size": 12, "color": "--ink"}},
        }),
        particular,
    )
}

/// A note on the chart.
pub fn note(text: &str, at: Value) -> Value {
    merged(json!({"text": text, "showarrow": false, "font": {"size": 12, "color": "--ink-2"}}), at)
}

fn merged(mut base: Value, over: Value) -> Value {
    if let (Value::Object(base), Value::Object(over)) = (&mut base, over) {
        base.extend(over);
    }
    base
}

/// Round ticks from 0 to a little over `most`: the step is 1, 2, 2.5 or 5 times a power of ten.
pub fn ticks(most: f64, about: usize) -> Vec<f64> {
    if !most.is_finite() || most <= 0.0 {
        return vec![0.0, 1.0];
    }
    let rough = most / about.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|s| s * power)
        .find(|s| *s >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let count = (most / step * 0.999_999).ceil() as usize;
    (0..=count).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_data() {
        assert_eq!(ticks(587.0, 4), [0.0, 200.0, 400.0, 600.0]);
        assert_eq!(ticks(100.0, 2), [0.0, 50.0, 100.0]);
        assert_eq!(ticks(0.0, 4), [0.0, 1.0]);
    }
}
