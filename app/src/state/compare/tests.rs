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
    let line = Comparison::of(&sides).settings.into_iter().find(|l| l.label == "flash-attn").expect("a line");
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
    let found =
        flags(&argv(&["x", "serve", "--a", "1", "--b=2", "-c", "-3", "--on", "--d_e", "f", "--port", "9"]));
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
