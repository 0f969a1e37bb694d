use super::*;
use proptest::prelude::*;
use serde_json::json;

fn row(value: Value) -> Row {
    serde_json::from_value(value).expect("a row")
}

#[test]
fn what_is_missing_is_said_in_sentences() {
    let missing = Draft { concurrency: BTreeSet::new(), requests: "many".into(), ..Draft::default() }
        .input()
        .expect_err("missing");
    assert_eq!(missing.len(), 5);
}

#[test]
fn a_clone_makes_the_same_workload_again() {
    let workload = row(
        json!({"model_code": "google/gemma-3-270m-it", "framework_code": "llama-cpp", "framework_version": "b6000",
        "quantization": "q8_0", "tool_code": "metrumbench-llm", "engine_args": {"ctx_size": 4096, "flash_attn": true}}),
    );
    let scenario = |c: u32| {
        row(
            json!({"concurrency": c, "input_sequence_length": 128, "output_sequence_length": 64, "num_requests": 50, "streaming": true}),
        )
    };
    let input = Draft::of(&workload, &[scenario(1), scenario(8)]).input().expect("complete");
    assert_eq!((input.p_scenarios.p_concurrency, input.p_scenarios.p_num_requests), (vec![1, 8], Some(50)));
    assert_eq!(input.p_quantization.as_deref(), Some("q8_0"));
    assert_eq!(
        input.p_engine_args,
        BTreeMap::from([("ctx_size".into(), json!(4096)), ("flash_attn".into(), json!(true))])
    );
}

#[test]
fn engine_arguments_keep_their_types() {
    let arguments = arguments("ctx_size=4096\n--flash-attn\ncache_type_k=q8_0").expect("arguments");
    assert_eq!(arguments["ctx_size"], json!(4096));
    assert_eq!(arguments["flash_attn"], json!(true));
    assert_eq!(arguments["cache_type_k"], json!("q8_0"));
}

#[test]
fn a_word_that_looks_like_a_number_stays_a_word() {
    let arguments =
        arguments("revision=\"123\"\nkv_cache_dtype=null\nrope_scaling={\"factor\": 2}").expect("arguments");
    assert_eq!(arguments["revision"], json!("123"));
    assert_eq!(arguments["kv_cache_dtype"], Value::Null);
    assert_eq!(arguments["rope_scaling"], json!({"factor": 2}));
}

#[test]
fn an_argument_is_written_down_once() {
    let mut draft = Draft { engine_args: "a=1".into(), ..Draft::default() };
    draft.add_engine_arg("max_model_len", &json!(4096));
    draft.add_engine_arg("a", &json!(2));
    assert_eq!(draft.engine_args, "a=1\nmax_model_len=4096");
}

proptest! {
    #[test]
    fn arguments_that_are_typed_are_read_as_the_same(values in proptest::collection::btree_map("[a-z][a-z_]{0,12}", any_value(), 0..6)) {
        prop_assert_eq!(arguments(&typed(&values)), Ok(values));
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        proptest::collection::vec(any::<u32>(), 0..3).prop_map(Value::from),
    ]
}

fn complete(tool: &str) -> Draft {
    Draft {
        model: "m".into(),
        framework: "vllm".into(),
        version: "1".into(),
        tool: tool.into(),
        ..Draft::default()
    }
}

#[test]
fn a_tool_is_asked_for_its_own_axes_alone() {
    for &tool in ToolCode::ALL {
        let mut draft = complete(tool.as_str());
        (draft.rounds, draft.images) = (BTreeSet::from([25]), BTreeSet::from([1, 2]));
        draft.image_sizes = BTreeSet::from(["512x512".to_owned()]);
        draft.image_details = BTreeSet::from(["low".to_owned()]);
        let scenarios = draft.input().expect("complete").p_scenarios;
        assert_eq!(scenarios.foreign_axis(tool), None, "{tool}");
        assert!(!scenarios.roll_out(tool).is_empty(), "{tool}");
    }
    let image = complete("metrumbench-imagegen");
    assert_eq!(image.input().expect("complete").p_scenarios.p_streaming, None);
}

#[test]
fn what_is_asked_for_makes_the_same_draft_again() {
    for &tool in ToolCode::ALL {
        let mut draft = complete(tool.as_str());
        draft.engine_args = "kv_cache_dtype=fp8\ntensor_parallel_size=2".into();
        draft.set_tool_arg("seed", Some(json!(7)));
        let input = draft.input().expect("complete");
        assert_eq!(Draft::of_input(&input).input().expect("complete"), input, "{tool}");
    }
}

#[test]
fn a_cure_changes_one_field() {
    let mut draft = complete("metrumbench-llm");
    assert!(draft.set("p_engine_args.tensor_parallel_size", Some(json!(4))));
    assert!(draft.set("p_quantization", Some(json!("fp8"))));
    assert_eq!((draft.engine_args.as_str(), draft.quantization.as_str()), ("tensor_parallel_size=4", "fp8"));
    assert!(draft.set("p_engine_args.tensor_parallel_size", None));
    assert!(draft.set("p_scenarios.p_num_requests", Some(json!(400))));
    assert_eq!((draft.engine_args.as_str(), draft.requests.as_str()), ("", "400"));
    assert!(draft.set("p_engine_args.kv_cache_dtype", Some(Value::Null)));
    assert_eq!(draft.input().expect("complete").p_engine_args["kv_cache_dtype"], Value::Null);
    let before = draft.clone();
    assert!(!draft.set("p_nothing", Some(json!(1))) && !draft.set("p_quantization", Some(json!([1]))));
    assert_eq!(draft, before);
}
