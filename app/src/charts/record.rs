//! Who led: the best figure so far, a step each time it was beaten.

use serde_json::{Value, json};

use super::{Figure, axis, layout, note, ticks};
use crate::format::{day, significant, stamp};
use crate::metrics::Column;
use crate::state::colours::Colour;

/// A result that was the best until the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// When it ended, milliseconds since 1970.
    pub at: f64,
    /// The figure.
    pub value: f64,
    /// What it is called.
    pub name: String,
    /// Its job.
    pub job: String,
    /// Its model's colour.
    pub colour: Colour,
}

/// Draws the steps, the first record first; the last one holds until `now`.
pub fn figure(steps: &[Step], metric: &Column, now: f64) -> Figure {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return Figure::default() };
    let until = |nth: usize| steps.get(nth + 1).map_or(now.max(last.at), |next| next.at);
    let traces: Vec<Value> = steps
        .iter()
        .enumerate()
        .map(|(nth, step)| {
            json!({
                "x": [step.at, until(nth)], "y": [step.value, step.value], "name": step.name, "mode": "lines+markers",
                "customdata": [step.job, step.job], "marker": {"size": [7, 0], "color": step.colour.token()},
                "line": {"width": 2.5, "color": step.colour.token()},
                "hovertemplate": format!("%{{y:.3~s}} {}<extra>{}</extra>", metric.unit(), step.name),
            })
        })
        .collect();
    let shapes: Vec<Value> = steps
        .windows(2)
        .map(|pair| {
            json!({"type": "line", "x0": pair[1].at, "x1": pair[1].at, "y0": pair[0].value, "y1": pair[1].value,
                "line": {"width": 1, "dash": "dot", "color": "--ink-2"}})
        })
        .collect();
    let span = (now.max(last.at) - first.at).max(60_000.0);
    let most = steps.iter().map(|step| step.value).fold(0.0, f64::max);
    let heights = ticks(most, 4);
    let top = heights.last().copied().unwrap_or(most).max(most) * 1.12;
    // A name stands below its step where the step is wide enough to hold it; the last one, whose step ends the chart, above.
    let wide =
        |nth: usize, name: &str| (until(nth) - steps[nth].at) / span > 0.008 * name.chars().count() as f64;
    let notes: Vec<Value> = steps
        .iter()
        .enumerate()
        .filter_map(|(nth, step)| {
            let text = format!("{} {}", step.name, significant(step.value));
            let newest = nth + 1 == steps.len();
            (newest || wide(nth, &text)).then(|| {
                let (x, side, edge, shift) =
                    if newest { (until(nth), "right", "bottom", 2) } else { (step.at, "left", "top", -2) };
                note(
                    &text,
                    json!({"x": x, "y": step.value, "xanchor": side, "yanchor": edge, "yshift": shift,
                    "font": {"size": 12, "color": step.colour.token()}}),
                )
            })
        })
        .collect();
    Figure {
        traces,
        layout: layout(json!({
            "hovermode": "closest", "shapes": shapes, "annotations": notes, "margin": {"l": 48, "r": 12, "t": 8, "b": 40},
            "xaxis": axis(json!({"type": "date", "showgrid": false, "fixedrange": true, "nticks": 7,
                "range": [first.at - 0.02 * span, first.at + 1.02 * span]})),
            "yaxis": axis(json!({"range": [0, top], "tickvals": heights, "fixedrange": true})),
        })),
        head: vec!["Since, UTC".into(), "Result".into(), format!("{}, {}", metric.label, metric.unit())],
        metrics: vec![None, None, Some(metric.key)],
        jobs: steps.iter().map(|step| step.job.clone()).collect(),
        rows: steps
            .iter()
            .map(|step| {
                vec![
                    stamp(step.at).replace('T', " ").replace('Z', ""),
                    step.name.clone(),
                    significant(step.value),
                ]
            })
            .collect(),
        summary: format!(
            "Who led: {} held the record {} times from {} on, last {} with {} {}",
            if steps.len() == 1 { "one result" } else { "results" },
            steps.len(),
            day(first.at, now),
            last.name,
            significant(last.value),
            metric.unit()
        ),
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::column;

    fn step(at: f64, value: f64) -> Step {
        Step { at, value, name: format!("w / {value}"), job: format!("job/{value}"), colour: Colour::nth(0) }
    }

    #[test]
    fn a_record_holds_until_it_is_beaten() {
        let metric = column("output_tokens_per_second").expect("a column");
        let figure = figure(&[step(1e12, 100.0), step(1.1e12, 250.0)], metric, 1.2e12);
        let ends: Vec<f64> = figure.traces.iter().filter_map(|trace| trace["x"][1].as_f64()).collect();
        assert_eq!(ends, [1.1e12, 1.2e12]);
        assert_eq!(figure.layout["shapes"].as_array().map(Vec::len), Some(1));
        assert_eq!(figure.proof(1, 2), Some(("job/250", "output_tokens_per_second")));
        assert_eq!(figure.rows[0][0], "2001-09-09 01:46:40.000");
        assert!(super::figure(&[], metric, 0.0).is_empty());
    }
}
