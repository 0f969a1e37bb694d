//! Charts: numbers in, a figure out (plain data, tested natively), and the component that draws it with Plotly.
//!
//! Colours are named by token (`--series-1`, `--ink-3@18` for 18 % over nothing, `--series-1/44` for 44 % over the page);
//! the binding asks the style sheet what each is now, so that one figure serves light and dark.

pub mod category;
pub mod concurrency;
pub mod overlay;
pub mod pareto;
pub mod picked;
mod plot;
pub mod record;
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
    /// What each column of the table is a figure of, where it is one: such a number proves itself.
    pub metrics: Vec<Option<&'static str>>,
    /// The table's rows, as written.
    pub rows: Vec<Vec<String>>,
    /// The job that each row is of, where it is one's.
    pub jobs: Vec<String>,
    /// The name of the point behind each cell of the table, as a click on the point tells it; empty where there is none.
    pub picks: Vec<Vec<String>>,
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

    /// The job and the metric that a number of the table is of; nothing where it has no proof of its own.
    pub fn proof(&self, row: usize, column: usize) -> Option<(&str, &'static str)> {
        let metric = self.metrics.get(column).copied().flatten()?;
        let job = self.jobs.get(row).filter(|job| !job.is_empty())?;
        let measured = self.rows.get(row)?.get(column)? != crate::format::ABSENT;
        measured.then_some((job, metric))
    }
}

impl Figure {
    /// The name of the point behind a cell of the table.
    pub fn pick(&self, row: usize, column: usize) -> Option<&str> {
        self.picks.get(row)?.get(column).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Whether a column of the table holds numbers, which stand right under each other; words begin at the left.
    pub fn is_of_numbers(&self, column: usize) -> bool {
        let number = |text: &str| {
            text.chars().any(|c| c.is_ascii_digit())
                && text.chars().all(|c| c.is_ascii_digit() || "\u{202f} .,:%+-\u{2212}±–e".contains(c))
        };
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        let written = |text: &&String| !text.is_empty() && *text != crate::format::ABSENT;
        self.metrics.get(column).is_some_and(Option::is_some)
            || (cells.clone().any(|text| written(&text)) && cells.all(|text| !written(&text) || number(text)))
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

/// Round ticks for a logarithmic axis from `low` to `high`: 1, 2 and 5 times powers of ten, fewer where those are many, and
/// evenly apart where so short a stretch has hardly one of them.
pub fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let known = low.is_finite() && high.is_finite() && low > 0.0 && high > low;
    if !known {
        return vec![1.0];
    }
    let within = |value: &f64| (low..=high).contains(value);
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let of = |steps: &[f64]| -> Vec<f64> {
        let all = decades.clone().flat_map(|d| steps.iter().map(move |s| s * 10f64.powi(d)));
        all.filter(within).collect()
    };
    match of(&[1.0, 2.0, 5.0]) {
        few if few.len() < 3 => {
            let even = ticks(high - low, 4);
            let step = even.get(1).copied().unwrap_or(high - low);
            let first = (low / step).ceil();
            (0..8).map(|n| (first + f64::from(n)) * step).filter(within).collect()
        }
        many if many.len() > 9 => of(&[1.0]),
        some => some,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_column_of_numbers_is_told_from_words() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let figure = Figure {
            head: row(["Setup", "Seconds", "Output", "Frontier"]),
            metrics: vec![None, None, Some("output_tokens_per_second"), None],
            rows: vec![row(["8×H200", "1\u{202f}204.5", "–", "yes"]), row(["vllm fp8", "–", "–", ""])],
            ..Figure::default()
        };
        let found: Vec<bool> = (0..5).map(|column| figure.is_of_numbers(column)).collect();
        assert_eq!(found, [false, true, true, false, false]);
    }

    #[test]
    fn a_logarithmic_axis_has_ticks_however_short_it_is() {
        assert_eq!(log_ticks(40.0, 2_400.0), [50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0]);
        assert_eq!(log_ticks(1_900.0, 4_400.0), [2000.0, 3000.0, 4000.0]);
        assert_eq!(log_ticks(0.5, 2e6), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
    }

    proptest! {
        #[test]
        fn a_logarithmic_axis_has_two_ticks_at_least(low in 1e-3f64..1e5, times in 1.05f64..1e6) {
            let ticks = log_ticks(low, low * times);
            prop_assert!((2..=10).contains(&ticks.len()), "{ticks:?}");
            prop_assert!(ticks.is_sorted() && ticks.iter().all(|t| *t >= low && *t <= low * times));
        }
    }

    #[test]
    fn a_number_of_a_table_proves_itself_where_it_is_a_jobs_figure() {
        let figure = Figure {
            metrics: vec![None, Some("ttft_p50_ms")],
            rows: vec![
                vec!["a".into(), "12".into()],
                vec!["b".into(), crate::format::ABSENT.into()],
                vec!["c".into(), "7".into()],
            ],
            jobs: vec!["job/a".into(), "job/b".into(), String::new()],
            ..Figure::default()
        };
        assert_eq!(figure.proof(0, 1), Some(("job/a", "ttft_p50_ms")));
        for (row, column) in [(0, 0), (1, 1), (2, 1), (3, 1), (0, 2)] {
            assert_eq!(figure.proof(row, column), None, "{row} {column}");
        }
    }

    #[test]
    fn ticks_are_round_and_cover_the_data() {
        assert_eq!(ticks(587.0, 4), [0.0, 200.0, 400.0, 600.0]);
        assert_eq!(ticks(100.0, 2), [0.0, 50.0, 100.0]);
        assert_eq!(ticks(0.0, 4), [0.0, 1.0]);
    }
}
