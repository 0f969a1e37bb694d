//! A metric against concurrency, one line a traffic shape, growing point by point; the elbow ([`super::saturation`]) is ringed.

use serde_json::json;

use super::{Figure, MARKERS, axis, layout, log_ticks, note, ticks};
use crate::format::significant;
use crate::row::Row;
use crate::state::colours::Colour;

/// A point of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The job it is of.
    pub job: String,
    /// Requests in flight.
    pub concurrency: f64,
    /// The metric.
    pub value: f64,
    /// Whether the job still runs: the value is what its load generator last said.
    pub running: bool,
}

/// The jobs of one traffic shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// The scenario's code without its concurrency: `isl512-osl256`.
    pub name: String,
    /// By concurrency.
    pub points: Vec<Measured>,
}

/// The traffic of a scenario code: all but its concurrency.
pub fn traffic(scenario: &str) -> &str {
    scenario.split_once('-').map_or("all traffic", |(_, rest)| rest)
}

/// Sorts a run's rows into lines, in the order in which the traffic first appears.
pub fn lines(rows: &[Row], value: impl Fn(&Row) -> Option<(f64, bool)>) -> Vec<Traffic> {
    lines_by(rows, |row| traffic(&row.text("scenario_code")).to_owned(), value)
}

/// Sorts rows into lines by name, in the order in which the names first appear.
pub fn lines_by(
    rows: &[Row],
    name: impl Fn(&Row) -> String,
    value: impl Fn(&Row) -> Option<(f64, bool)>,
) -> Vec<Traffic> {
    let mut lines: Vec<Traffic> = Vec::new();
    for row in rows {
        let name = name(row);
        let place = lines.iter().position(|l| l.name == name).unwrap_or_else(|| {
            lines.push(Traffic { name, points: Vec::new() });
            lines.len() - 1
        });
        if let (Some(concurrency), Some((value, running))) = (row.number("concurrency"), value(row)) {
            lines[place].points.push(Measured { job: row.text("job"), concurrency, value, running });
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
    }
    lines
}

/// How the chart is drawn.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// What it is called.
    pub title: &'a str,
    /// Its unit.
    pub unit: &'a str,
    /// What its numbers are figures of.
    pub metric: Option<&'static str>,
    /// Whether the value's axis is logarithmic.
    pub log: bool,
    /// The elbows to ring: concurrency, value, and the words beside it (those of the first alone have room).
    pub elbows: Vec<(f64, f64, String)>,
    /// Whether the names stand in a legend, not beside the lines.
    pub legend: bool,
}

/// Draws the lines.
pub fn figure(lines: &[Traffic], options: &Options<'_>) -> Figure {
    let all = || lines.iter().flat_map(|l| &l.points);
    if all().next().is_none() {
        return Figure::default();
    }
    let (mut traces, mut notes, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
    let height = |value: f64| if options.log { value.max(1e-9).log10() } else { value };
    let heights = || all().map(|p| height(p.value));
    let span = heights().fold(f64::NEG_INFINITY, f64::max)
        - if options.log { heights().fold(f64::INFINITY, f64::min) } else { 0.0 };
    for (place, line) in lines.iter().enumerate().filter(|(_, l)| !l.points.is_empty()) {
        let ink = Colour::nth(place).token();
        let symbol = MARKERS[place % MARKERS.len()];
        let done: Vec<&Measured> = line.points.iter().filter(|p| !p.running).collect();
        let hover = format!("%{{y:.3~s}} {}", options.unit);
        traces.push(json!({
            "x": done.iter().map(|p| p.concurrency.log2()).collect::<Vec<_>>(), "y": done.iter().map(|p| p.value).collect::<Vec<_>>(),
            "name": line.name, "mode": "lines+markers", "line": {"color": ink, "width": 1.75},
            "marker": {"color": ink, "size": 7, "symbol": symbol}, "hovertemplate": hover,
            "customdata": done.iter().map(|p| p.job.as_str()).collect::<Vec<_>>(),
        }));
        for growing in line.points.iter().filter(|p| p.running) {
            let before = done.iter().rev().find(|p| p.concurrency < growing.concurrency);
            let from = before.map(|p| (p.concurrency.log2(), p.value));
            let (mut x, mut y, mut sizes) = (vec![growing.concurrency.log2()], vec![growing.value], vec![9]);
            if let Some((fx, fy)) = from {
                x.insert(0, fx);
                y.insert(0, fy);
                sizes.insert(0, 0);
            }
            traces.push(json!({
                "x": x, "y": y, "name": format!("{}, so far", line.name), "mode": "lines+markers",
                "line": {"color": ink, "width": 1.25, "dash": "dot"}, "hovertemplate": format!("{hover}, running"),
                "marker": {"size": sizes, "color": "--page", "symbol": symbol, "line": {"color": ink, "width": 1.75}},
            }));
        }
        if lines.len() > 1
            && !options.legend
            && let Some(last) = line.points.last()
        {
            // The name stands after the last point; of two that end close together, one above and one below.
            let near = |other: &Traffic| {
                let end = other
                    .points
                    .last()
                    .filter(|p| other.name != line.name && p.concurrency == last.concurrency)?;
                let gap = height(last.value) - height(end.value);
                (gap.abs() < span * 0.1).then_some(gap)
            };
            let anchor = match lines.iter().find_map(near) {
                Some(gap) if gap >= 0.0 => "bottom",
                Some(_) => "top",
                None => "middle",
            };
            notes.push(note(
                &line.name,
                json!({"x": last.concurrency.log2(), "y": height(last.value), "xanchor": "left",
                "yanchor": anchor, "xshift": 8, "font": {"size": 12, "color": ink}}),
            ));
        }
    }
    for (nth, (x, y, words)) in options.elbows.iter().enumerate() {
        traces
            .push(json!({"x": [x.log2()], "y": [y], "name": "elbow", "mode": "markers", "hoverinfo": "skip",
            "marker": {"size": 16, "symbol": "circle-open", "color": "--ink", "line": {"width": 1.5}}}));
        shapes
            .push(json!({"type": "line", "x0": x.log2(), "x1": x.log2(), "yref": "paper", "y0": 0, "y1": 1,
            "line": {"color": "--ink-3", "width": 1, "dash": "dot"}}));
        if nth == 0 && !words.is_empty() {
            notes.push(note(
                &words.replace(": ", ":<br>").replace(" and makes", "<br>and makes"),
                json!({"x": x.log2(), "yref": "paper", "y": 1,
                "xanchor": "right", "yanchor": "top", "xshift": -14, "align": "right"}),
            ));
        }
    }

    let mut chips: Vec<f64> = all().map(|p| p.concurrency).collect();
    chips.sort_by(f64::total_cmp);
    chips.dedup();
    let (first, last) = (chips[0].log2(), chips[chips.len() - 1].log2());
    // Room for the names after the last points.
    let room = if lines.len() > 1 && !options.legend { 0.3 + (last - first).max(1.0) * 0.28 } else { 0.3 };
    let most = all().map(|p| p.value).fold(0.0, f64::max);
    let least = all().map(|p| p.value).filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
    let tick_values = ticks(most, 5);
    let vertical = if options.log && least.is_finite() {
        let (low, high) = (least * 0.7, most * 1.6);
        json!({"type": "log", "tickvals": log_ticks(low, high), "tickformat": ",~g", "range": [low.log10(), high.log10()]})
    } else {
        json!({"range": [0, tick_values.last().copied().unwrap_or(1.0) * 1.1], "tickvals": tick_values})
    };
    Figure {
        traces,
        layout: layout(json!({
            "annotations": notes, "shapes": shapes, "margin": {"l": 48, "r": 16, "t": 8, "b": 40},
            "xaxis": axis(json!({"tickvals": chips.iter().map(|c| c.log2()).collect::<Vec<_>>(), "ticktext": chips, "range": [first - 0.25, last + room],
                "hoverformat": "", "unifiedhovertitle": {"text": ""},
                "title": {"text": "Concurrency, requests in flight", "font": {"size": 12, "color": "--ink-3"}, "standoff": 8}})),
            "yaxis": axis(vertical),
        })),
        picks: Vec::new(),
        head: vec!["Traffic".into(), "Concurrency".into(), options.unit.into()],
        metrics: vec![None, None, options.metric],
        // What a running job's load generator says is no result yet.
        jobs: all().map(|p| if p.running { String::new() } else { p.job.clone() }).collect(),
        rows: lines
            .iter()
            .flat_map(|line| line.points.iter().map(move |p| (line, p)))
            .map(|(line, p)| {
                vec![
                    if p.running { format!("{}, running", line.name) } else { line.name.clone() },
                    format!("{}", p.concurrency),
                    significant(p.value),
                ]
            })
            .collect(),
        legend: Vec::new(),
        summary: format!(
            "{} in {} against concurrency {} to {}, highest {}",
            options.title,
            options.unit,
            chips[0],
            chips[chips.len() - 1],
            significant(most)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_keeps_the_order_of_the_run() {
        let row = |scenario: &str, concurrency: u32| -> Row {
            serde_json::from_value(json!({"scenario_code": scenario, "concurrency": concurrency, "v": 1.0}))
                .expect("a row")
        };
        let rows = [row("c8-isl2048", 8), row("c1-isl512", 1), row("c1-isl2048", 1)];
        let lines = lines(&rows, |r| r.number("v").map(|v| (v, false)));
        assert_eq!(lines.iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), ["isl2048", "isl512"]);
        assert_eq!(lines[0].points[0].concurrency, 1.0);
    }
}
