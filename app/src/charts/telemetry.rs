//! A quantity over the time of a job: a line a source, the band from lowest to highest, the phases behind.

use serde_json::{Value, json};

use super::picked::{PROGRESS, name_of, throughput_begins};
use super::{Figure, axis, layout, note, ticks};
use crate::format::{duration, significant};
use crate::state::job_feed::{JobFeed, Point, thin};

/// Points drawn a line at most; a line of more is joined.
pub const MOST_POINTS: usize = 600;

/// The height of the axis over the highest value.
const HEADROOM: f64 = 1.26;

/// What a chart of telemetry shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    /// The beginning of the sources' names: `gpu`, `cpu`, `system`.
    pub prefix: &'static str,
    /// The metric: `power_w`, `utilization`, `memory_used_bytes`, `ram_used_bytes`.
    pub metric: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// Its unit as shown.
    pub unit: &'static str,
    /// From the unit of the log to the unit shown.
    pub scale: f64,
    /// A fixed top of the axis, such as 100 %.
    pub top: Option<f64>,
    /// A limit drawn as a dotted line, in the unit shown, and its name.
    pub limit: Option<(f64, &'static str)>,
}

impl Quantity {
    /// Power of each GPU, against its limit where that is known.
    pub fn gpu_power() -> Self {
        Self {
            prefix: "gpu",
            metric: "power_w",
            title: "GPU power",
            unit: "W",
            scale: 1.0,
            top: None,
            limit: None,
        }
    }

    /// Utilization of each GPU.
    pub fn gpu_utilization() -> Self {
        Self {
            prefix: "gpu",
            metric: "utilization",
            title: "GPU utilization",
            unit: "%",
            scale: 100.0,
            top: Some(100.0),
            limit: None,
        }
    }

    /// Memory in use of each GPU, against what it has.
    pub fn gpu_memory(total_bytes: Option<f64>) -> Self {
        Self {
            prefix: "gpu",
            metric: "memory_used_bytes",
            title: "GPU memory used",
            unit: "GB",
            scale: 1e-9,
            top: total_bytes.map(|b| b * 1e-9),
            limit: total_bytes.map(|b| (b * 1e-9, "installed")),
        }
    }

    /// Utilization of each CPU socket.
    pub fn cpu() -> Self {
        Self {
            prefix: "cpu",
            metric: "utilization",
            title: "CPU",
            unit: "%",
            scale: 100.0,
            top: Some(100.0),
            limit: None,
        }
    }

    /// Memory in use of the host, against what it has.
    pub fn ram(total_bytes: Option<f64>) -> Self {
        Self {
            prefix: "system",
            metric: "ram_used_bytes",
            title: "System RAM used",
            unit: "GB",
            scale: 1e-9,
            top: total_bytes.map(|b| b * 1e-9),
            limit: total_bytes.map(|b| (b * 1e-9, "installed")),
        }
    }
}

impl Quantity {
    /// The quantity that a source's metric is; nothing where it is drawn in no chart.
    pub fn of(source: &str, metric: &str) -> Option<Self> {
        let known = [
            Self::gpu_power(),
            Self::gpu_utilization(),
            Self::gpu_memory(None),
            Self::cpu(),
            Self::ram(None),
        ];
        known.into_iter().find(|quantity| source.starts_with(quantity.prefix) && quantity.metric == metric)
    }
}

/// `gpu3` as people say it: `GPU 3`.
pub fn source_name(source: &str) -> String {
    if source == "system" {
        return "System".to_owned();
    }
    let split = source.find(|c: char| c.is_ascii_digit()).unwrap_or(source.len());
    let (word, index) = source.split_at(split);
    format!("{} {index}", word.to_uppercase()).trim_end().to_owned()
}

/// The seconds across, at least ten: a job that just began is no full width of noise.
fn span(begin: f64, end: f64) -> f64 {
    ((end - begin) / 1000.0).max(10.0)
}

/// The bands of a job's phases, in seconds since `begin`.
fn bands(feed: &JobFeed, begin: f64, end: f64) -> Vec<Value> {
    let seconds = |at: f64| (at - begin) / 1000.0;
    let mut bands = Vec::new();
    let stretches = feed.stretches();
    for (place, (at, name)) in stretches.iter().enumerate() {
        let until = stretches.get(place + 1).map_or(end.max(*at), |(next, _)| *next);
        if *name == "ended" || until <= *at {
            continue;
        }
        let shade = match *name {
            "running" | "measured" => 0,
            "serving" | "ramp-up" | "warm-up" => 8,
            _ => 16,
        };
        // A band too narrow for its name goes without.
        let wide = (until - at) / 1000.0 / span(begin, end) > 0.09;
        bands.push(json!({
            "type": "rect", "layer": "below", "xref": "x", "yref": "paper", "x0": seconds(*at), "x1": seconds(until), "y0": 0, "y1": 1,
            "line": {"width": 0}, "fillcolor": format!("--ink-3@{shade}"),
            "label": {"text": if wide { *name } else { "" }, "textposition": "top left", "padding": 3,
                "font": {"size": 12, "color": "--ink-3"}},
        }));
    }
    bands
}

/// A single point is no line.
pub(super) fn mode(points: usize) -> &'static str {
    if points == 1 { "markers" } else { "lines" }
}

/// Draws a quantity of an attempt. `colour` is the server's token. Nothing is drawn where nothing was sampled.
pub fn figure(feed: &JobFeed, quantity: &Quantity, colour: &str) -> Figure {
    let (sources, lines): (Vec<String>, Vec<(String, Vec<Point>)>) = feed
        .sources(quantity.prefix, quantity.metric)
        .into_iter()
        .map(|(source, line)| {
            (name_of(&source, quantity.metric), (source_name(&source), thin(line, MOST_POINTS)))
        })
        .unzip();
    let (Some(begin), Some(end)) = (feed.begins(), feed.ends()) else { return Figure::default() };
    if lines.is_empty() {
        return Figure::default();
    }
    let seconds =
        |line: &[Point]| line.iter().map(|p| ((p.at - begin) / 100.0).round() / 10.0).collect::<Vec<f64>>();
    let shown = |value: f64| (value * quantity.scale * 1000.0).round() / 1000.0;

    let many = lines.len() > 2;
    let mut traces = Vec::new();
    if many {
        // The band follows the first line's times; the sources of one host are sampled together.
        let x = seconds(&lines[0].1);
        let across = |pick: fn(f64, f64) -> f64, of: fn(&Point) -> f64| -> Vec<f64> {
            (0..x.len())
                .map(|i| lines.iter().filter_map(|(_, l)| l.get(i)).map(of).reduce(pick).map_or(0.0, shown))
                .collect()
        };
        let edge = |y: Vec<f64>, fill: bool| {
            let mut trace =
                json!({"x": x, "y": y, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"});
            if fill {
                trace["fill"] = json!("tonexty");
                trace["fillcolor"] = json!(format!("{colour}@18"));
            }
            trace
        };
        traces.push(edge(across(f64::max, |p| p.max), false));
        traces.push(edge(across(f64::min, |p| p.min), true));
    }
    for (place, (name, line)) in lines.iter().enumerate() {
        let shade = if many { 44 + place * 56 / (lines.len() - 1) } else { 100 };
        let colour = if !many && place == 1 { "--ink-3".to_owned() } else { format!("{colour}/{shade}") };
        traces.push(json!({
            "x": seconds(line), "y": line.iter().map(|p| shown(p.avg)).collect::<Vec<_>>(), "name": name, "mode": mode(line.len()),
            "meta": sources[place],
            "hovertemplate": format!("%{{y:.3~s}} {}", quantity.unit), "marker": {"size": 5, "color": colour}, "line": {"width": if many { 1.0 } else { 1.5 }, "color": colour},
        }));
    }

    let most = lines.iter().flat_map(|(_, l)| l).map(|p| shown(p.max)).fold(0.0, f64::max);
    let top = quantity.top.map_or(most, |top| top.max(most));
    let mut tick_values = ticks(top, 4);
    if quantity.top.is_some() {
        tick_values.retain(|tick| *tick <= top * 1.02);
    }
    let limit = quantity.limit.filter(|(at, _)| *at <= top * 1.2);
    // Above the highest tick there is room for the phases' names.
    let range_top = tick_values.last().copied().unwrap_or(top).max(top) * HEADROOM;
    let mut shapes = bands(feed, begin, end);
    let mut notes = Vec::new();
    if let Some((at, name)) = limit {
        shapes.push(json!({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": at, "y1": at,
            "line": {"width": 1, "dash": "dot", "color": "--ink-3"}}));
        notes.push(note(
            &format!("{} {} {name}", significant(at), quantity.unit),
            json!({"xref": "paper", "x": 1, "y": at, "xanchor": "right", "yanchor": "bottom",
            "font": {"size": 12, "color": "--ink-3"}}),
        ));
    }
    let span = span(begin, end);
    Figure {
        traces,
        layout: layout(json!({
            "shapes": shapes, "annotations": notes, "margin": {"l": 40, "r": 4, "t": 4, "b": 22},
            "xaxis": axis(json!({"showgrid": false, "range": [0, span], "ticksuffix": " s", "nticks": 8, "showspikes": true})),
            "yaxis": axis(json!({"range": [0, range_top], "tickvals": tick_values, "fixedrange": true})),
        })),
        head: std::iter::once("Second".to_owned())
            .chain(lines.iter().map(|(name, _)| name.clone()))
            .collect(),
        picks: picks(&sources, &lines, begin),
        rows: table(&lines, begin, quantity.scale),
        legend: Vec::new(),
        summary: summary(&lines, quantity, (end - begin) / 1000.0),
        ..Figure::default()
    }
}

/// The points of [`table`]'s cells, as [`picked`] reads them.
fn picks(sources: &[String], lines: &[(String, Vec<Point>)], begin: f64) -> Vec<Vec<String>> {
    shown(lines)
        .map(|i| {
            let of = |(source, (_, line)): (&String, &(String, Vec<Point>))| {
                line.get(i).map_or_else(String::new, |p| format!("{source} {}", (p.at - begin) / 1000.0))
            };
            std::iter::once(String::new()).chain(sources.iter().zip(lines).map(of)).collect()
        })
        .collect()
}

/// The points of the lines that the table shows: about thirty, every nth.
fn shown(lines: &[(String, Vec<Point>)]) -> impl Iterator<Item = usize> {
    let points = lines.first().map_or(0, |(_, line)| line.len());
    (0..points).step_by(points.div_ceil(30).max(1))
}

/// About thirty rows: every nth point of each line.
fn table(lines: &[(String, Vec<Point>)], begin: f64, scale: f64) -> Vec<Vec<String>> {
    let first = &lines[0].1;
    shown(lines)
        .map(|i| {
            let mut row = vec![format!("{:.0}", (first[i].at - begin) / 1000.0)];
            row.extend(lines.iter().map(|(_, line)| {
                line.get(i).map_or_else(|| crate::format::ABSENT.to_owned(), |p| significant(p.avg * scale))
            }));
            row
        })
        .collect()
}

fn summary(lines: &[(String, Vec<Point>)], quantity: &Quantity, span_s: f64) -> String {
    let values = || lines.iter().flat_map(|(_, l)| l).map(|p| p.avg * quantity.scale);
    let count = values().count().max(1) as f64;
    format!(
        "{} of {} {} over {}: mean {}, peak {} {}",
        quantity.title,
        lines.len(),
        if lines.len() == 1 { "source" } else { "sources" },
        duration(span_s),
        significant(values().sum::<f64>() / count),
        significant(values().fold(0.0, f64::max)),
        quantity.unit
    )
}

/// What the bands behind the charts are, in words: `shaded: claimed, serving`; nothing where there is none.
pub fn shaded(feed: &JobFeed) -> Option<String> {
    let mut names: Vec<&str> = feed.stretches().into_iter().map(|(_, name)| name).collect();
    names.retain(|name| !matches!(*name, "running" | "measured" | "ended"));
    (!names.is_empty()).then(|| format!("shaded: {}", names.join(", ")))
}

/// The load generator's running throughput, tokens (or requests) a second against seconds of the job.
pub fn throughput(feed: &JobFeed, colour: &str) -> Figure {
    let points = feed.running_throughput();
    let Some(begin) = throughput_begins(feed) else { return Figure::default() };
    if points.is_empty() {
        return Figure::default();
    }
    let end = feed.ends().unwrap_or(begin).max(points.last().map_or(begin, |p| p.at));
    let thinned = thin(&points, MOST_POINTS);
    let most = thinned.iter().map(|p| p.avg).fold(0.0, f64::max);
    let tick_values = ticks(most, 4);
    let lines = [("Output".to_owned(), thinned)];
    let unit = feed.running_unit();
    let quantity = Quantity { title: "Running throughput", unit, ..Quantity::gpu_power() };
    Figure {
        traces: vec![json!({
            "x": lines[0].1.iter().map(|p| ((p.at - begin) / 100.0).round() / 10.0).collect::<Vec<_>>(),
            "y": lines[0].1.iter().map(|p| (p.avg * 10.0).round() / 10.0).collect::<Vec<_>>(), "name": "Output", "mode": "lines",
            "meta": PROGRESS, "hovertemplate": format!("%{{y:.3~s}} {unit}"), "line": {"width": 1.5, "color": colour},
        })],
        layout: layout(json!({
            "shapes": bands(feed, begin, end), "margin": {"l": 40, "r": 4, "t": 4, "b": 22},
            "xaxis": axis(json!({"showgrid": false, "range": [0, span(begin, end)], "ticksuffix": " s", "nticks": 8, "showspikes": true})),
            "yaxis": axis(json!({"range": [0, tick_values.last().copied().unwrap_or(1.0) * HEADROOM], "tickvals": tick_values, "fixedrange": true})),
        })),
        head: vec!["Second".to_owned(), unit.to_owned()],
        picks: picks(&[PROGRESS.to_owned()], &lines, begin),
        rows: table(&lines, begin, 1.0),
        legend: Vec::new(),
        summary: summary(&lines, &quantity, (end - begin) / 1000.0),
        ..Figure::default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn feed(gpus: usize, seconds: usize) -> JobFeed {
        let mut feed = JobFeed::default();
        for gpu in 0..gpus {
            let line = feed.lines.entry((format!("gpu{gpu}"), "utilization".into())).or_default();
            for second in 0..seconds {
                line.add(second as i64 + 1, second as f64 * 1000.0, 0.5);
            }
        }
        feed
    }

    #[test]
    fn eight_gpus_are_eight_lines_and_a_band() {
        let figure = figure(&feed(8, 60), &Quantity::gpu_utilization(), "--series-1");
        assert_eq!(figure.traces.len(), 10);
        assert_eq!(figure.traces[2]["y"][0], json!(50.0));
    }

    #[test]
    fn an_hour_is_drawn_with_few_points() {
        let figure = figure(&feed(1, 3600), &Quantity::gpu_utilization(), "--series-1");
        assert!(figure.traces[0]["x"].as_array().is_some_and(|x| x.len() <= MOST_POINTS));
    }

    #[test]
    fn a_host_without_gpus_draws_no_gpu_chart() {
        assert!(figure(&feed(0, 60), &Quantity::gpu_power(), "--series-1").is_empty());
    }

    #[test]
    fn a_ramp_up_is_a_band_of_its_own_and_named() {
        use events::api::EventView;
        let event = |position: i64, second: u32, phase: &str| -> EventView {
            let payload =
                json!({"phase": phase, "done": 1, "elapsed_s": second, "completion_tokens_per_second": 5.0});
            let mut event = crate::state::live::tests::event_at(
                position,
                "progress/o/p/w/1/c8/1",
                "progress.reported",
                payload,
            );
            event.occurred_at = format!("2026-11-29T20:41:{second:02}Z").parse().expect("a time");
            event
        };
        let mut feed = JobFeed::default();
        for (position, second, phase) in
            [(1, 0, "ramp_up"), (2, 20, "running"), (3, 50, "drain"), (4, 59, "drain")]
        {
            feed.fold(&event(position, second, phase));
        }
        let figure = throughput(&feed, "--series-1");
        let bands: Vec<(f64, f64, &str)> = figure.layout["shapes"]
            .as_array()
            .expect("bands")
            .iter()
            .map(|b| {
                let at = |end: &str| b[end].as_f64().expect("a second");
                (at("x0"), at("x1"), b["label"]["text"].as_str().expect("a name"))
            })
            .collect();
        assert_eq!(bands[0], (0.0, 20.0, "ramp-up"));
        assert_eq!(bands[1], (20.0, 50.0, "measured"));
        assert_eq!(bands[2].2, "drain");
        assert_eq!(shaded(&feed).as_deref(), Some("shaded: ramp-up, drain"));
    }

    #[test]
    fn sources_are_named_for_people() {
        assert_eq!((source_name("gpu10"), source_name("system")), ("GPU 10".to_owned(), "System".to_owned()));
    }
}
