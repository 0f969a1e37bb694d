//! Results side by side: which settings differ, what each measured, by how much it differs from the pinned one, and
//! whether that is more than the noise between repeated runs.

use std::collections::{BTreeMap, BTreeSet};

use events::metrics::Direction;
use events::ranking::Interval;
use serde_json::Value;

use crate::format::{ABSENT, full, significant};
use crate::metrics::column;
use crate::row::Row;

/// One result of a comparison, with what is known of how it was made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Side {
    /// Its row of `v_benchmark_results`.
    pub result: Row,
    /// Its workload.
    pub workload: Row,
    /// Its job, with the commands as they ran.
    pub job: Row,
    /// The results of the same scenario on the same server, itself among them.
    pub repeats: Vec<Row>,
}

impl Side {
    /// Whether a result repeats this one: same scenario, same server.
    pub fn is_repeat(&self, other: &Row) -> bool {
        ["org", "project_code", "workload_code", "scenario_code", "config_code", "hostname"]
            .iter()
            .all(|key| self.result.text(key) == other.text(key))
    }

    /// The 95 % interval of a metric over the repeated runs; nothing where it ran once.
    pub fn interval(&self, metric: &str) -> Option<Interval> {
        Interval::of(&self.repeats.iter().filter_map(|row| row.number(metric)).collect::<Vec<f64>>())
    }
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// As written.
    pub text: String,
    /// Every digit, for hover.
    pub full: String,
    /// Whether it differs from the pinned one.
    pub differs: bool,
    /// By how much a figure differs from the pinned one: 0.04 is +4 %.
    pub delta: Option<f64>,
    /// Whether that is no more than the pinned one's own interval.
    pub noise: bool,
}

/// One row of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The setting or figure, with its better direction.
    pub label: String,
    /// Its unit.
    pub unit: &'static str,
    /// What its cells are values of, where each has a proof.
    pub metric: Option<&'static str>,
    /// A cell a side.
    pub cells: Vec<Cell>,
}

impl Line {
    /// Whether not all sides are alike.
    pub fn differs(&self) -> bool {
        self.cells.iter().any(|cell| cell.differs)
    }
}

/// Results side by side; the first one is the pinned one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// How they were made.
    pub settings: Vec<Line>,
    /// What they measured.
    pub figures: Vec<Line>,
}

/// The figures compared.
const FIGURES: [&str; 13] = [
    "output_tokens_per_second",
    "output_tokens_per_second_per_gpu",
    "interactivity_tps",
    "requests_per_second",
    "ttft_p50_ms",
    "ttft_p99_ms",
    "tpot_avg_ms",
    "response_time_p50_ms",
    "response_time_p99_ms",
    "error_rate_pct",
    "gpu_power_avg_w",
    "output_tokens_per_joule",
    "cost_per_million_output_tokens_usd",
];

/// Flags whose values are another in every job and say nothing about how it was made.
const PASSING: [&str; 10] =
    ["port", "host", "url", "base-url", "log-file", "request-log", "data-log", "summary", "progress", "out"];

impl Comparison {
    /// Compares; the first side is the pinned one.
    pub fn of(sides: &[Side]) -> Self {
        Self { settings: settings(sides), figures: figures(sides) }
    }

    /// How many settings there are, and how many differ.
    pub fn differing(&self) -> (usize, usize) {
        (self.settings.iter().filter(|line| line.differs()).count(), self.settings.len())
    }
}

fn line(label: String, values: Vec<String>) -> Line {
    let first = values.first().cloned().unwrap_or_default();
    let cells = values
        .into_iter()
        .map(|text| Cell { differs: text != first, full: text.clone(), text, ..Cell::default() })
        .collect();
    Line { label, unit: "", metric: None, cells }
}

fn settings(sides: &[Side]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |label: &str, of: &dyn Fn(&Side) -> String| {
        lines.push(line(label.to_owned(), sides.iter().map(of).collect()));
    };
    let word = |row: &Row, key: &str| row.maybe_text(key).unwrap_or_else(|| ABSENT.to_owned());
    add("Model", &|s| s.result.text("model_code"));
    add("Framework", &|s| {
        format!("{} {}", s.result.text("framework_code"), s.result.text("framework_version"))
    });
    add("Quantization", &|s| {
        s.result.maybe_text("quantization").unwrap_or_else(|| "as published".to_owned())
    });
    add("GPUs", &|s| s.result.hardware());
    add("Server", &|s| format!("{}/{}", s.result.text("config_code"), s.result.text("hostname")));
    add("Concurrency", &|s| word(&s.result, "concurrency"));
    add("ISL", &|s| word(&s.result, "input_sequence_length"));
    add("OSL", &|s| word(&s.result, "output_sequence_length"));
    add("Requests", &|s| word(&s.job, "num_requests"));
    add("Streaming", &|s| if s.result.is("streaming") { "on" } else { "off" }.to_owned());
    add("Prompts", &|s| {
        s.workload.maybe_text("prompt_source_code").unwrap_or_else(|| "synthetic".to_owned())
    });
    add("Tool", &|s| {
        format!("{} {}", s.result.text("tool_code"), s.job.text("tool_version")).trim().to_owned()
    });
    lines.push(line(
        "Engine args set".to_owned(),
        sides.iter().map(|s| set_of(s).unwrap_or_else(|| "none".to_owned())).collect(),
    ));
    lines.extend(by_name(sides, &|side| arguments(side)));
    lines
}

/// The set of engine arguments that a side's workload names.
fn set_of(side: &Side) -> Option<String> {
    side.workload.maybe_text("engine_args_set_code").filter(|code| !code.is_empty())
}

/// The two sets of engine arguments that the first sides name, where they are two: in the catalogue they stand key by key.
pub fn two_sets(sides: &[Side]) -> Option<(String, String)> {
    let first = set_of(sides.first()?)?;
    let other = sides.iter().skip(1).filter_map(set_of).find(|code| *code != first)?;
    Some((first, other))
}

/// Every named argument of any side, in order of its name; "default" where a side does not name it.
fn by_name(sides: &[Side], of: &dyn Fn(&Side) -> BTreeMap<String, String>) -> Vec<Line> {
    let all: Vec<BTreeMap<String, String>> = sides.iter().map(of).collect();
    let names: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    names
        .into_iter()
        .map(|name| {
            let values = all.iter().map(|a| a.get(name).cloned().unwrap_or_else(|| "default".to_owned()));
            line(name.clone(), values.collect())
        })
        .collect()
}

/// The engine arguments of the workload, and the flags of the command that ran, each once.
fn arguments(side: &Side) -> BTreeMap<String, String> {
    let argv = match side.job.list("serve_argv") {
        ran if !ran.is_empty() => ran,
        _ => side.job.list("resolved_serve_argv"),
    };
    let mut found = flags(&argv);
    if let Some(Value::Object(named)) = side.workload.value("engine_args") {
        for (key, value) in named {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            found.entry(key.replace('_', "-")).or_insert(text);
        }
    }
    found
}

/// The flags of a command line: `--ctx-size 4096`, `--ctx-size=4096`, `-c 4096`, `--flash-attn`.
pub fn flags(argv: &[String]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut words = argv.iter().skip(1).peekable();
    while let Some(word) = words.next() {
        let name = word.trim_start_matches('-');
        if name.len() == word.len() || name.is_empty() || name.parse::<f64>().is_ok() {
            continue;
        }
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => {
                let value = words.next_if(|next| !next.starts_with('-') || next[1..].parse::<f64>().is_ok());
                (name, value.cloned().unwrap_or_else(|| "on".to_owned()))
            }
        };
        if !PASSING.contains(&name) {
            found.insert(name.replace('_', "-"), value);
        }
    }
    found
}

fn figures(sides: &[Side]) -> Vec<Line> {
    let Some(pinned) = sides.first() else { return Vec::new() };
    let mut lines = Vec::new();
    for metric in FIGURES.iter().filter_map(|key| column(key)) {
        let values: Vec<Option<f64>> = sides.iter().map(|s| s.result.number(metric.key)).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let noise = pinned.interval(metric.key);
        let cells = values.iter().enumerate().map(|(place, value)| {
            let delta =
                value.zip(values[0]).filter(|(_, base)| place > 0 && *base != 0.0).map(|(v, b)| v / b - 1.0);
            Cell {
                text: value.map_or_else(|| ABSENT.to_owned(), significant),
                full: value.map_or_else(|| "not measured".to_owned(), full),
                differs: place > 0 && *value != values[0],
                delta,
                noise: value.zip(noise).is_some_and(|(v, i)| (v - i.mean).abs() <= i.half),
            }
        });
        lines.push(Line {
            label: metric.head(),
            unit: metric.unit(),
            metric: Some(metric.key),
            cells: cells.collect(),
        });
        // How sure the first figure is: it is what results are chosen by.
        if metric.key == FIGURES[0] {
            lines.push(intervals(sides, metric.key, metric.unit()));
        }
    }
    lines
}

fn intervals(sides: &[Side], metric: &str, unit: &'static str) -> Line {
    let cells = sides.iter().map(|side| match side.interval(metric) {
        Some(i) => Cell {
            text: format!("±{}", significant(i.half)),
            full: format!("mean {} of {} runs", full(i.mean), i.runs),
            ..Cell::default()
        },
        None => Cell {
            text: ABSENT.to_owned(),
            full: "ran once: repeat the run for an interval".to_owned(),
            ..Cell::default()
        },
    });
    Line { label: "95 % interval".to_owned(), unit, metric: None, cells: cells.collect() }
}

/// Whether a change of a metric is for the better.
pub fn is_better(metric: &str, delta: f64) -> Option<bool> {
    match column(metric)?.direction() {
        Direction::Higher => Some(delta > 0.0),
        Direction::Lower => Some(delta < 0.0),
        Direction::Neutral => None,
    }
}

#[cfg(test)]
mod tests;
