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
    add("GPUs", &|s| match (s.result.whole("gpu_count"), s.result.maybe_text("gpu_name")) {
        (Some(n), Some(name)) if n > 0 => format!("{n}×{}", name.trim_start_matches("NVIDIA ")),
        _ => "CPU".to_owned(),
    });
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn row(value: Value) -> Row {
        serde_json::from_value(value).expect("a row")
    }

    fn side(framework: &str, throughput: f64, argv: &[&str]) -> Side {
        Side {
            result: row(
                json!({"framework_code": framework, "framework_version": "1", "concurrency": 8, "output_tokens_per_second": throughput}),
            ),
            job: row(json!({"serve_argv": argv, "num_requests": 200})),
            ..Side::default()
        }
    }

    fn argv(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn only_what_differs_is_marked() {
        let sides = [
            side("vllm", 500.0, &["vllm", "serve", "--max-num-seqs", "64", "--port", "8001"]),
            side("vllm", 520.0, &["vllm", "serve", "--max-num-seqs", "128", "--port", "8002"]),
        ];
        let comparison = Comparison::of(&sides);
        let differing: Vec<&str> =
            comparison.settings.iter().filter(|l| l.differs()).map(|l| l.label.as_str()).collect();
        assert_eq!(differing, ["max-num-seqs"]);
        assert_eq!(comparison.differing().0, 1);
    }

    #[test]
    fn two_sets_of_engine_arguments_are_named() {
        let named = |code: Option<&str>| {
            let mut side = side("vllm", 1.0, &[]);
            side.workload = row(json!({"engine_args_set_code": code}));
            side
        };
        let sides = [named(Some("a")), named(Some("a")), named(Some("b"))];
        assert_eq!(two_sets(&sides), Some(("a".into(), "b".into())));
        assert_eq!(two_sets(&sides[..2]), None);
        assert_eq!(two_sets(&[named(None), named(Some("b"))]), None);
        let lines = Comparison::of(&sides).settings;
        assert!(lines.iter().any(|l| l.label == "Engine args set" && l.differs()));
    }

    #[test]
    fn an_argument_one_side_does_not_name_is_the_default_there() {
        let sides = [
            side("llama-cpp", 1.0, &["llama-server"]),
            side("llama-cpp", 1.0, &["llama-server", "--flash-attn"]),
        ];
        let line =
            Comparison::of(&sides).settings.into_iter().find(|l| l.label == "flash-attn").expect("a line");
        assert_eq!(line.cells.iter().map(|c| c.text.as_str()).collect::<Vec<_>>(), ["default", "on"]);
    }

    #[test]
    fn figures_differ_from_the_pinned_one_in_per_cent() {
        let comparison = Comparison::of(&[side("a", 500.0, &[]), side("b", 520.0, &[])]);
        let cell = &comparison.figures[0].cells[1];
        assert!((cell.delta.expect("a delta") - 0.04).abs() < 1e-9);
        assert_eq!(comparison.figures[0].cells[0].delta, None);
        assert!(!cell.noise, "one run has no interval");
    }

    #[test]
    fn a_difference_within_the_interval_is_noise() {
        let mut pinned = side("a", 500.0, &[]);
        pinned.repeats = [490.0, 500.0, 510.0].map(|v| row(json!({"output_tokens_per_second": v}))).to_vec();
        let comparison = Comparison::of(&[pinned, side("b", 505.0, &[]), side("c", 900.0, &[])]);
        let noise: Vec<bool> = comparison.figures[0].cells.iter().map(|c| c.noise).collect();
        assert_eq!(noise, [true, true, false]);
        assert_eq!(comparison.figures[1].cells[0].text, "±24.8");
        assert_eq!(comparison.figures[1].cells[1].text, ABSENT);
    }

    #[test]
    fn the_interval_is_students() {
        let interval = Interval::of(&[10.0, 12.0]).expect("an interval");
        assert_eq!(interval.mean, 11.0);
        assert!((interval.half - 12.706).abs() < 1e-9, "{interval:?}");
        assert_eq!(Interval::of(&[1.0]), None);
    }

    #[test]
    fn flags_are_read_however_they_are_written() {
        let found = flags(&argv(&[
            "x", "serve", "--a", "1", "--b=2", "-c", "-3", "--on", "--d_e", "f", "--port", "9",
        ]));
        let pairs: Vec<(&str, &str)> = found.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(pairs, [("a", "1"), ("b", "2"), ("c", "-3"), ("d-e", "f"), ("on", "on")]);
    }

    #[test]
    fn better_goes_by_the_metric() {
        assert_eq!(is_better("output_tokens_per_second", 0.1), Some(true));
        assert_eq!(is_better("ttft_p50_ms", 0.1), Some(false));
    }

    proptest! {
        #[test]
        fn a_side_never_differs_from_its_twin(words in proptest::collection::vec("-{0,2}[a-c]{1,2}(=[0-9])?", 0..8), value in 0.1f64..1e6) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let one = side("vllm", value, &[&["vllm"], words.as_slice()].concat());
            let comparison = Comparison::of(&[one.clone(), one]);
            prop_assert_eq!(comparison.differing().0, 0);
            prop_assert!(comparison.figures.iter().flat_map(|l| &l.cells).all(|c| c.delta.is_none_or(|d| d == 0.0)));
        }
    }
}
