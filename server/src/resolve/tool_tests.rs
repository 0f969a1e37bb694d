//! Golden command lines of every tool, and what cannot be resolved for it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use events::Event;
use events::api::ScenarioMatrix;
use events::catalogue::{FrameworkRegistered, ToolRegistered};
use events::tools::ToolCode;
use events::workload::{ScenarioSpec, WorkloadSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::domain::testing::workload;
use crate::seed::catalogue;

fn entry(stream: &str) -> Event {
    static ENTRIES: LazyLock<BTreeMap<events::StreamKey, Event>> = LazyLock::new(|| catalogue().unwrap());
    ENTRIES.get(&stream.parse().unwrap()).expect("it is in the catalogue").clone()
}

fn tool(code: ToolCode) -> ToolRegistered {
    let Event::ToolRegistered(tool) = entry(&format!("tool/_/{code}")) else { panic!("a tool") };
    tool
}

fn refserver() -> FrameworkRegistered {
    let Event::FrameworkRegistered(framework) = entry("framework/_/refserver/0.1.0") else { panic!() };
    *framework
}

fn spec(code: ToolCode, model: &str, args: Value) -> WorkloadSpec {
    let Value::Object(args) = args else { panic!("an object") };
    WorkloadSpec {
        framework_code: "refserver".into(),
        framework_version: "0.1.0".into(),
        model_code: model.into(),
        tool_code: code.as_str().into(),
        tool_args: args.into_iter().collect(),
        ..workload()
    }
}

/// The first scenario of a matrix with concurrency 8 and what is set.
fn scenario(code: ToolCode, set: impl FnOnce(&mut ScenarioMatrix)) -> ScenarioSpec {
    let mut matrix = ScenarioMatrix { p_concurrency: vec![8], ..ScenarioMatrix::default() };
    set(&mut matrix);
    assert_eq!(matrix.foreign_axis(code), None);
    matrix.roll_out(code).remove(0)
}

fn resolved(spec: &WorkloadSpec, scenario: &ScenarioSpec) -> Result<Vec<String>, Refusal> {
    let tool = tool(ToolCode::of(&spec.tool_code).unwrap());
    let inputs = Inputs {
        workload: spec,
        scenario,
        run_scenarios: &[],
        framework: &refserver(),
        tool: &tool,
        set: None,
        sidecars: &BTreeMap::new(),
        gpus: None,
    };
    resolve(&inputs).map(|commands| commands.tool_argv)
}

fn golden(code: ToolCode, model: &str, args: Value, set: impl FnOnce(&mut ScenarioMatrix)) -> Vec<String> {
    resolved(&spec(code, model, args), &scenario(code, set)).unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

#[test]
fn metrumbench_vlm() {
    let args = json!({"max_image_dimension": 1024, "temperature": 0.1});
    insta::assert_json_snapshot!(golden(ToolCode::MetrumbenchVlm, "Qwen/Qwen3-VL-2B-Instruct", args, |m| {
        m.p_input_sequence_length = vec![256];
        m.p_output_sequence_length = vec![128];
        m.p_num_images_batch = vec![2];
        m.p_image_detail = vec!["low".into()];
    }));
}

#[test]
fn metrumbench_asr() {
    let args = json!({"response_format": "json", "language": "de"});
    insta::assert_json_snapshot!(golden(ToolCode::MetrumbenchAsr, "openai/whisper-large-v3", args, |_| ()));
}

#[test]
fn metrumbench_imagegen() {
    let args = json!({"steps": 8, "guidance_scale": 1.5, "seed": 7});
    insta::assert_json_snapshot!(golden(
        ToolCode::MetrumbenchImagegen,
        "Tongyi-MAI/Z-Image-Turbo",
        args,
        |m| {
            m.p_image_size = vec!["768x512".into()];
        }
    ));
}

#[test]
fn inferencex() {
    let args = json!({"num_warmups": 16});
    insta::assert_json_snapshot!(golden(
        ToolCode::Inferencex,
        "meta-llama/Llama-3.1-8B-Instruct",
        args,
        |m| {
            m.p_input_sequence_length = vec![512];
            m.p_output_sequence_length = vec![256];
        }
    ));
}

#[test]
fn genai_perf_streams_by_a_flag_and_else_does_not() {
    let args = json!({"tokenizer": "other/tokenizer"});
    let model = "meta-llama/Llama-3.1-8B-Instruct";
    insta::assert_json_snapshot!(golden(ToolCode::GenaiPerf, model, args, |m| {
        m.p_input_sequence_length = vec![512];
        m.p_output_sequence_length = vec![256];
    }));
    let whole = golden(ToolCode::GenaiPerf, model, json!({}), |m| m.p_streaming = Some(false));
    assert!(!whole.iter().any(|element| element.contains("streaming")), "{whole:?}");
}

#[test]
fn kv_cache_offload() {
    let args = json!({"tier": "nvme", "dataset": "tau2-bench-v1", "disk": "nvme0n1"});
    insta::assert_json_snapshot!(golden(ToolCode::KvCacheOffload, "m/a", args, |m| m.p_num_rounds = vec![5]));
}

#[test]
fn kyai() {
    let args = json!({"dataset": "mmlu-pro"});
    insta::assert_json_snapshot!(golden(ToolCode::Kyai, "m/a", args, |_| ()));
}

#[test]
fn the_cap_on_kyais_answers_is_the_workloads() {
    let argv = golden(ToolCode::Kyai, "m/a", json!({"max_tokens": 4096}), |_| ());
    assert!(argv.contains(&"--max-tokens=4096".to_owned()), "{argv:?}");
    let argv = golden(ToolCode::Kyai, "m/a", json!({}), |_| ());
    assert!(!argv.iter().any(|element| element.starts_with("--max-tokens")), "{argv:?}");
}

#[test]
fn a_default_of_the_control_plane_gives_way_to_the_workload() {
    let timeout = |args: Value| {
        let argv = golden(ToolCode::MetrumbenchAsr, "openai/whisper-tiny", args, |_| ());
        argv.into_iter().find(|element| element.starts_with("--request-timeout"))
    };
    assert_eq!(timeout(json!({})).as_deref(), Some("--request-timeout=300"));
    assert_eq!(timeout(json!({"request_timeout": 60})).as_deref(), Some("--request-timeout=60"));
}

#[test]
fn an_axis_of_the_scenario_is_not_the_tools_to_change() {
    for (code, key, value) in [
        (ToolCode::MetrumbenchVlm, "image_detail", json!("low")),
        (ToolCode::MetrumbenchImagegen, "image_size", json!("1x1")),
        (ToolCode::MetrumbenchImagegen, "num_images_batch", json!(3)),
        (ToolCode::KvCacheOffload, "num_rounds", json!(7)),
        (ToolCode::GenaiPerf, "streaming", json!(true)),
        (ToolCode::MetrumbenchLlm, "max_tokens", json!(64)),
    ] {
        let refusal = resolved(&spec(code, "m/a", json!({key: value})), &scenario(code, |_| ())).unwrap_err();
        assert_eq!(refusal.code, "scenario_axis", "{code} {key}");
    }
}

#[test]
fn an_argument_out_of_its_range_or_unknown_is_refused_by_name() {
    for (code, args, word) in [
        (ToolCode::MetrumbenchAsr, json!({"response_format": "xml"}), "response_format"),
        (ToolCode::MetrumbenchImagegen, json!({"response_format": "file"}), "response_format"),
        (ToolCode::MetrumbenchLlm, json!({"temperature": 3}), "temperature"),
        (ToolCode::Inferencex, json!({"random_range_ratio": 1.5}), "random_range_ratio"),
        (ToolCode::KvCacheOffload, json!({"tier": "tape"}), "tier"),
        (ToolCode::MetrumbenchLlm, json!({"tokenizer": "x"}), "tokenizer"),
        (ToolCode::MetrumbenchAsr, json!({"temperature": 0}), "temperature"),
    ] {
        let refusal = resolved(&spec(code, "m/a", args), &scenario(code, |_| ())).unwrap_err();
        assert!(refusal.message.contains(word), "{code}: {}", refusal.message);
        assert_eq!(refusal.class.status(), 400);
    }
}

proptest! {
    #[test]
    fn no_text_changes_the_number_of_elements_or_adds_an_option(
        text in ".{0,40}", model in ".{1,40}", which in 0usize..8,
    ) {
        let code = ToolCode::ALL[which];
        let scenario = scenario(code, |_| ());
        let free = |key: &str| !code.is_of_scenarios(key);
        let argument =
            tool(code).args.into_iter().find(|(key, argument)| argument.arg_type == "string" && free(key));
        let args = |value: &str| match &argument {
            Some((key, _)) => json!({key.as_str(): value}),
            None => json!({}),
        };
        let plain = resolved(&spec(code, "m", args("x")), &scenario).unwrap();
        if let Ok(argv) = resolved(&spec(code, &model, args(&text)), &scenario) {
            let options = |argv: &[String]| -> Vec<String> {
                let flags = argv.iter().filter(|element| element.starts_with('-'));
                flags.map(|element| element.split('=').next().unwrap_or_default().to_owned()).collect()
            };
            prop_assert_eq!(argv.len(), plain.len());
            prop_assert_eq!(options(&argv), options(&plain));
            prop_assert_eq!(&argv[0], &plain[0]);
        }
    }
}
