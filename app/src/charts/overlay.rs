//! Several results over each other: their latency percentiles, and a quantity over the time of each job.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::telemetry::mode;
use super::{Figure, MARKERS, axis, layout, log_ticks, ticks};
use crate::format::{ABSENT, significant};
use crate::row::Row;
use crate::state::colours::Colour;
use crate::state::job_feed::Point;

/// The percentiles of a latency that results have.
const PERCENTILES: [(&str, &str); 4] =
    [("p50", "ttft_p50_ms"), ("p90", "ttft_p90_ms"), ("p95", "ttft_p95_ms"), ("p99", "ttft_p99_ms")];

/// Draws the percentiles of the time to first token of each result, by name.
pub fn percentiles(sides: &[(String, Row)]) -> Figure {
    let values: Vec<Vec<Option<f64>>> =
        sides.iter().map(|(_, row)| PERCENTILES.iter().map(|(_, key)| row.number(key)).collect()).collect();
    let known = || values.iter().flatten().flatten().copied().filter(|v| *v > 0.0);
    if known().next().is_none() {
        return Figure::default();
    }
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    let (low, high) = (least * 0.8, most * 1.25);
    let traces = sides.iter().zip(&values).enumerate().map(|(place, ((name, _), values))| {
        let ink = Colour::nth(place).token();
        json!({"x": (0..PERCENTILES.len()).collect::<Vec<_>>(), "y": values, "name": name, "mode": "lines+markers",
            "line": {"color": ink, "width": 1.75}, "marker": {"color": ink, "size": 7, "symbol": MARKERS[place % MARKERS.len()]},
            "hovertemplate": "%{y:.3~s} ms"})
    });
    Figure {
        traces: traces.collect(),
        layout: layout(json!({
            "margin": {"l": 48, "r": 12, "t": 8, "b": 24},
            "xaxis": axis(json!({"tickvals": (0..PERCENTILES.len()).collect::<Vec<_>>(), "ticktext": PERCENTILES.map(|(name, _)| name), "range": [-0.2, 3.2], "fixedrange": true})),
            "yaxis": axis(json!({"type": "log", "tickvals": log_ticks(low, high), "tickformat": ",~g", "range": [low.log10(), high.log10()]})),
        })),
        picks: Vec::new(),
        head: std::iter::once("Result".to_owned())
            .chain(PERCENTILES.map(|(name, _)| name.to_owned()))
            .collect(),
        metrics: std::iter::once(None).chain(PERCENTILES.map(|(_, key)| Some(key))).collect(),
        jobs: sides.iter().map(|(_, row)| row.text("job")).collect(),
        rows: sides
            .iter()
            .zip(&values)
            .map(|((name, _), values)| {
                let cells = values.iter().map(|v| v.map_or_else(|| ABSENT.to_owned(), significant));
                std::iter::once(name.clone()).chain(cells).collect()
            })
            .collect(),
        legend: legend(sides.iter().map(|(name, _)| name)),
        summary: format!(
            "Time to first token of {} results, from {} to {} ms",
            sides.len(),
            significant(least),
            significant(most)
        ),
    }
}

fn legend<'a>(names: impl Iterator<Item = &'a String>) -> Vec<(String, Colour)> {
    names.enumerate().map(|(place, name)| (name.clone(), Colour::nth(place))).collect()
}

/// A quantity that jobs can be laid over each other by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measure {
    /// Its word in the page.
    pub word: &'static str,
    /// What its sources' names begin with.
    pub source: &'static str,
    /// The metric of `v_telemetry_series`.
    pub metric: &'static str,
    /// Its unit as shown.
    pub unit: &'static str,
    /// From the unit of the log to the unit shown.
    pub scale: f64,
    /// Whether sources add up; otherwise their mean is shown.
    pub sum: bool,
}

/// What can be laid over each other.
pub const MEASURES: [Measure; 4] = [
    Measure {
        word: "GPU power",
        source: "gpu",
        metric: "power_w",
        unit: "W, all GPUs",
        scale: 1.0,
        sum: true,
    },
    Measure {
        word: "GPU utilization",
        source: "gpu",
        metric: "utilization",
        unit: "%, mean",
        scale: 100.0,
        sum: false,
    },
    Measure { word: "CPU", source: "cpu", metric: "utilization", unit: "%, mean", scale: 100.0, sum: false },
    Measure {
        word: "System RAM",
        source: "system",
        metric: "ram_used_bytes",
        unit: "GB",
        scale: 1e-9,
        sum: true,
    },
];

impl Measure {
    /// The condition of `v_telemetry_series` for its rows.
    pub fn condition(&self) -> String {
        format!("bucket_s=eq.6&metric=eq.{}&source=like.{}*", self.metric, self.source)
    }

    /// One line of a job's lines: their sum or mean at each time, in seconds since the first.
    pub fn joined(&self, lines: &[&[Point]]) -> Vec<(f64, f64)> {
        let mut at: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
        for point in lines.iter().flat_map(|line| line.iter()) {
            let entry = at.entry(point.at as i64).or_default();
            *entry = (entry.0 + point.avg * self.scale, entry.1 + 1);
        }
        let first = at.keys().next().copied().unwrap_or(0);
        at.into_iter()
            .map(|(ms, (sum, sources))| {
                let value = if self.sum { sum } else { sum / sources as f64 };
                ((ms - first) as f64 / 1000.0, value)
            })
            .collect()
    }
}

/// Draws the lines of the jobs, each from its own first second.
pub fn over_time(lines: &[(String, Vec<(f64, f64)>)], measure: &Measure) -> Figure {
    if lines.iter().all(|(_, line)| line.is_empty()) {
        return Figure::default();
    }
    let points = || lines.iter().flat_map(|(_, line)| line);
    let (span, most) = points().fold((10.0f64, 0.0f64), |(s, m), (x, y)| (s.max(*x), m.max(*y)));
    let scale = ticks(most, 4);
    let traces: Vec<Value> = lines
        .iter()
        .enumerate()
        .map(|(place, (name, line))| {
            json!({"x": line.iter().map(|p| p.0).collect::<Vec<_>>(), "y": line.iter().map(|p| (p.1 * 1000.0).round() / 1000.0).collect::<Vec<_>>(),
                "name": name, "mode": mode(line.len()), "line": {"color": Colour::nth(place).token(), "width": 1.5},
                "marker": {"color": Colour::nth(place).token(), "size": 7, "symbol": MARKERS[place % MARKERS.len()]},
                "hovertemplate": format!("%{{y:.3~s}} {}", measure.unit)})
        })
        .collect();
    let means = lines.iter().map(|(name, line)| {
        let mean = line.iter().map(|p| p.1).sum::<f64>() / line.len().max(1) as f64;
        let peak = line.iter().map(|p| p.1).fold(0.0, f64::max);
        let seconds = line.last().map_or(0.0, |p| p.0);
        vec![name.clone(), significant(mean), significant(peak), format!("{seconds:.0}")]
    });
    Figure {
        traces,
        layout: layout(json!({
            "margin": {"l": 48, "r": 12, "t": 8, "b": 24},
            "xaxis": axis(json!({"showgrid": false, "range": [0, span], "ticksuffix": " s", "nticks": 6})),
            "yaxis": axis(json!({"range": [0, scale.last().copied().unwrap_or(1.0) * 1.05], "tickvals": scale, "fixedrange": true})),
        })),
        head: ["Result", "Mean", "Peak", "Seconds"].map(str::to_owned).to_vec(),
        rows: means.collect(),
        legend: legend(lines.iter().map(|(name, _)| name)),
        summary: format!(
            "{} of {} jobs over their time, highest {} {}",
            measure.word,
            lines.len(),
            significant(most),
            measure.unit
        ),
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[f64]) -> Vec<Point> {
        values.iter().enumerate().map(|(n, v)| Point::sample(1000.0 + n as f64 * 6000.0, *v)).collect()
    }

    #[test]
    fn the_power_of_gpus_adds_up_and_their_utilization_is_a_mean() {
        let (a, b) = (line(&[100.0, 200.0]), line(&[300.0, 400.0]));
        assert_eq!(MEASURES[0].joined(&[&a, &b]), [(0.0, 400.0), (6.0, 600.0)]);
        assert_eq!(MEASURES[1].joined(&[&a, &b]), [(0.0, 20_000.0), (6.0, 30_000.0)]);
    }

    #[test]
    fn jobs_are_laid_over_each_other_from_their_first_second() {
        let lines = vec![("a".to_owned(), vec![(0.0, 1.0), (6.0, 3.0)]), ("b".to_owned(), vec![(0.0, 2.0)])];
        let figure = over_time(&lines, &MEASURES[2]);
        assert_eq!(figure.traces.len(), 2);
        // One point is no line: it is seen as a mark.
        assert_eq!(
            (&figure.traces[0]["mode"], &figure.traces[1]["mode"]),
            (&json!("lines"), &json!("markers"))
        );
        assert_eq!(figure.rows[0], ["a", "2.00", "3.00", "6"]);
        assert!(over_time(&[("a".to_owned(), Vec::new())], &MEASURES[2]).is_empty());
    }

    #[test]
    fn a_percentile_that_was_not_measured_leaves_a_gap() {
        let row: Row =
            serde_json::from_value(json!({"ttft_p50_ms": 100.0, "ttft_p99_ms": 400.0})).expect("a row");
        let figure = percentiles(&[("a".to_owned(), row)]);
        assert_eq!(figure.traces[0]["y"], json!([100.0, null, null, 400.0]));
        assert!(percentiles(&[("a".to_owned(), Row::default())]).is_empty());
    }
}
