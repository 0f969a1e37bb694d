use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::job::ResolvedCommands;
use crate::summary::{Distribution, Summary};

fn one(format: Format, value: &Value) -> ForeignResult {
    let mut results = read(format, value.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(results.len(), 1);
    results.remove(0)
}

fn place(format: Format, value: &Value) -> String {
    read(format, value.to_string().as_bytes()).expect_err("it is refused").place
}

/// 100 requests of 128 tokens each in 8 s, 64 of them generated.
fn vllm() -> Value {
    json!({
        "date": "20260830-101500", "backend": "vllm", "model_id": "m/a", "tokenizer_id": "m/a", "num_prompts": 102,
        "request_rate": "inf", "burstiness": 1.0, "max_concurrency": 8, "duration": 8.0, "completed": 100,
        "total_input_tokens": 6400, "total_output_tokens": 6400, "request_throughput": 12.5, "request_goodput": null,
        "output_throughput": 800.0, "total_token_throughput": 1600.0, "input_lens": [64, 64, 64],
        "output_lens": [64, 63, 64],
        "mean_ttft_ms": 21.5, "median_ttft_ms": 20.0, "std_ttft_ms": 1.5, "p99_ttft_ms": 40.25, "p99.9_ttft_ms": 41.0,
        "mean_tpot_ms": 9.5, "median_tpot_ms": 9.25, "std_tpot_ms": 0.5, "p99_tpot_ms": 11.0,
        "mean_itl_ms": 9.0, "median_itl_ms": 8.75, "std_itl_ms": 1.0, "p99_itl_ms": 15.0,
        "mean_e2el_ms": 630.0, "median_e2el_ms": 620.0, "std_e2el_ms": 30.0, "p99_e2el_ms": 700.0,
    })
}

#[test]
fn vllms_result_is_read_in_the_usual_definitions() {
    let result = one(Format::VllmBenchServe, &vllm());
    let figures = &result.figures;
    assert_eq!((figures.requests_succeeded, figures.requests_failed), (Some(100), Some(2)));
    assert_eq!(figures.completion_tokens_per_second, Some(800.0));
    assert_eq!(figures.ttft_ms.as_ref().and_then(|s| s.p99), Some(40.25));
    assert_eq!(figures.ttft_ms.as_ref().and_then(|s| s.p99_9), Some(41.0));
    assert_eq!(figures.ttft_ms.as_ref().and_then(|s| s.p95), None, "not in the file");
    assert_eq!(figures.tpot_excl_first_ms.as_ref().and_then(|s| s.avg), Some(9.5));
    assert_eq!(figures.tpot_ms, None, "the methodology's is another definition");
    assert_eq!(figures.goodput_requests_per_second, None);
    assert_eq!((result.load.concurrency, result.load.request_rate), (Some(8), None));
    assert_eq!(result.load.input_sequence_length, Some(64));
    assert_eq!(result.load.output_sequence_length, None, "not all answers were as long");
    assert_eq!(result.load.model_id.as_deref(), Some("m/a"));
}

#[test]
fn what_vllm_did_not_measure_is_nothing_and_not_zero() {
    let mut file = vllm();
    for statistic in ["mean", "median", "std", "p99"] {
        for metric in ["ttft", "tpot", "itl"] {
            file[format!("{statistic}_{metric}_ms")] = json!(0.0);
        }
    }
    file["p99.9_ttft_ms"] = json!(0.0);
    for zero in ["total_output_tokens", "output_throughput", "total_token_throughput", "rtfx"] {
        file[zero] = json!(0);
    }
    let figures = one(Format::VllmBenchServe, &file).figures;
    assert_eq!((&figures.ttft_ms, &figures.tpot_excl_first_ms), (&None, &None));
    assert!(figures.response_time_ms.is_some());
    assert_eq!((figures.completion_tokens_total, figures.completion_tokens_per_second), (None, None));
    assert_eq!((figures.total_tokens_per_second, figures.audio_seconds_per_second), (None, None));
}

#[test]
fn the_field_that_is_wrong_is_named() {
    let with = |field: &str, value: Value| {
        let mut file = vllm();
        file[field] = value;
        place(Format::VllmBenchServe, &file)
    };
    assert_eq!(with("duration", json!(null)), "duration");
    assert_eq!(with("duration", json!("8 s")), "duration");
    assert_eq!(with("duration", json!(0)), "duration");
    assert_eq!(with("completed", json!(0)), "completed");
    assert_eq!(with("completed", json!(1.5)), "completed");
    assert_eq!(with("completed", json!(103)), "completed");
    assert_eq!(with("mean_ttft_ms", json!(-1.0)), "mean_ttft_ms");
    assert_eq!(with("max_concurrency", json!(0)), "max_concurrency");
    assert_eq!(with("total_output_tokens", json!(1e300)), "total_output_tokens");
    assert_eq!(with("model_id", json!(7)), "model_id");
    // Milliseconds where seconds belong: the file's own figures do not fit each other.
    assert_eq!(with("duration", json!(8000.0)), "request_throughput");
    assert_eq!(with("output_throughput", json!(8.0)), "output_throughput");
}

#[test]
fn what_is_no_json_is_refused_by_its_line() {
    let refused = |bytes: &[u8]| read(Format::VllmBenchServe, bytes).expect_err("it is refused").place;
    assert_eq!(refused(b"{\"duration\": 8,\n \"completed\": NaN}"), "line 2, column 15");
    assert_eq!(refused(b""), "line 1, column 0");
    assert_eq!(refused(b"{\n\xff}"), "line 2");
    assert_eq!(refused(b"[1]"), "the file");
}

fn genai_perf() -> Value {
    json!({
        "request_throughput": {"unit": "requests/sec", "avg": 12.5},
        "request_latency": {"unit": "ms", "avg": 630.0, "p1": 500.0, "p50": 620.0, "p90": 650.0, "p95": 660.0,
                            "p99": 700.0, "min": 400.0, "max": 710.0, "std": 30.0},
        "request_count": {"unit": "count", "avg": 100.0},
        "time_to_first_token": {"unit": "ms", "avg": 21.5, "p50": 20.0, "p99": 40.25},
        "inter_token_latency": {"unit": "ms", "avg": 9.5, "p50": 9.25, "p99": 11.0},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 800.0},
        "input_config": {"model_names": ["m/a"], "perf_analyzer": {"stimulus": {"concurrency": 8}},
                         "input": {"synthetic_tokens": {"mean": 64}, "output_tokens": {"mean": 64}}},
    })
}

#[test]
fn genai_perfs_metrics_are_read_with_their_units() {
    let result = one(Format::GenaiPerf, &genai_perf());
    assert_eq!(result.tool_code, "genai-perf");
    assert_eq!(result.figures.requests_succeeded, Some(100));
    assert_eq!(result.figures.completion_tokens_per_second, Some(800.0));
    assert_eq!(result.figures.response_time_ms.as_ref().and_then(|s| s.p95), Some(660.0));
    assert_eq!((result.figures.window_s, result.figures.requests_failed), (None, None), "it does not say");
    let load = &result.load;
    assert_eq!((load.concurrency, load.input_sequence_length), (Some(8), Some(64)));
    // Not streamed: the keys are not there.
    let mut whole = genai_perf();
    for key in ["time_to_first_token", "inter_token_latency"] {
        whole.as_object_mut().unwrap().remove(key);
    }
    assert_eq!(one(Format::GenaiPerf, &whole).figures.ttft_ms, None);
}

#[test]
fn units_are_converted_and_unknown_ones_refused() {
    let mut file = genai_perf();
    file["request_latency"] = json!({"unit": "ns", "avg": 630_000_000, "p50": 620_000_000});
    file["benchmark_duration"] = json!({"unit": "sec", "avg": 8.0});
    let figures = one(Format::Aiperf, &file_as_aiperf(&file)).figures;
    let latency = figures.response_time_ms.expect("a latency");
    assert!((latency.avg.unwrap() - 630.0).abs() < 1e-9 && (latency.p50.unwrap() - 620.0).abs() < 1e-9);
    assert_eq!(figures.window_s, Some(8.0));
    file["request_latency"]["unit"] = json!("fortnights");
    assert_eq!(place(Format::GenaiPerf, &file), "request_latency.unit");
    let mut file = genai_perf();
    file["output_token_throughput"]["unit"] = json!("tokens/min");
    assert_eq!(place(Format::GenaiPerf, &file), "output_token_throughput.unit");
    file.as_object_mut().unwrap().remove("request_latency");
    assert_eq!(place(Format::GenaiPerf, &file), "request_latency");
}

fn file_as_aiperf(file: &Value) -> Value {
    let mut file = file.clone();
    file["aiperf_version"] = json!("0.13.0");
    file["request_count"]["unit"] = json!("requests");
    file
}

/// What AIPerf 0.13.0 wrote, see `captures/README.md`.
fn captured(name: &str) -> Value {
    let text = match name {
        "aiperf" => include_str!("captures/aiperf-0.13.0.json"),
        _ => include_str!("captures/aiperf-0.13.0-other-tokenizer.json"),
    };
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_aiperf_writes_is_read_with_the_load_that_its_configuration_names() {
    let result = one(Format::Aiperf, &captured("aiperf"));
    let load = &result.load;
    assert_eq!((load.tool_version.as_deref(), load.model_id.as_deref()), (Some("0.13.0"), Some("sim")));
    assert_eq!(
        (load.concurrency, load.input_sequence_length, load.output_sequence_length),
        (Some(4), Some(64), Some(32))
    );
    let figures = &result.figures;
    assert_eq!((figures.requests_succeeded, figures.completion_tokens_total), (Some(40), Some(1280)));
    assert_eq!(figures.prompt_tokens_total, Some(2133));
    let (window, rate) = (figures.window_s.unwrap(), figures.completion_tokens_per_second.unwrap());
    // Its duration and the one that it divides by differ by some milliseconds.
    assert!((1280.0 / window / rate - 1.0).abs() < 0.01, "{window} {rate}");
    // The server waits 50 ms, and then 5 ms a token.
    let (ttft, itl) = (figures.ttft_ms.clone().unwrap(), figures.tpot_excl_first_ms.clone().unwrap());
    assert!((50.0..60.0).contains(&ttft.p50.unwrap()) && (4.5..5.5).contains(&itl.p50.unwrap()));
    assert!((205.0..230.0).contains(&figures.response_time_ms.clone().unwrap().p50.unwrap()));
    assert_eq!(figures.tpot_ms, None);
}

#[test]
fn tokens_that_another_tokenizer_counted_are_no_figures_of_the_model() {
    let error = read(Format::Aiperf, captured("other").to_string().as_bytes()).unwrap_err();
    assert_eq!(error.place, "total_osl");
    assert!(error.message.contains("2560 tokens") && error.message.contains("1280"), "{}", error.message);
    // A few more or less are what the end of an answer makes.
    let mut file = captured("aiperf");
    file["total_usage_completion_tokens"]["avg"] = json!(1300.0);
    one(Format::Aiperf, &file);
}

#[test]
fn a_load_that_varies_is_not_named() {
    let mut file = captured("aiperf");
    file["input_config"]["datasets"][0]["prompts"]["isl"]["stddev"] = json!(8.0);
    let warmup = json!({"name": "warmup", "kind": "warmup", "concurrency": 2});
    file["input_config"]["phases"].as_array_mut().unwrap().insert(0, warmup);
    let load = one(Format::Aiperf, &file).load;
    assert_eq!((load.concurrency, load.input_sequence_length), (Some(4), None));
    let again = file["input_config"]["phases"][1].clone();
    file["input_config"]["phases"].as_array_mut().unwrap().push(again);
    file["input_config"]["models"]["items"].as_array_mut().unwrap().push(json!({"name": "other"}));
    let load = one(Format::Aiperf, &file).load;
    assert_eq!((load.concurrency, load.model_id), (None, None));
}

#[test]
fn an_aiperf_run_that_did_not_get_to_its_end_is_no_result() {
    let mut file = captured("aiperf");
    file["is_complete"] = json!(false);
    file["incomplete_reason"] = json!("records stalled");
    let error = read(Format::Aiperf, file.to_string().as_bytes()).unwrap_err();
    assert!(error.place == "is_complete" && error.message.contains("records stalled"), "{}", error.message);
}

#[test]
fn a_cancelled_aiperf_run_is_no_result() {
    let mut file = file_as_aiperf(&genai_perf());
    let result = one(Format::Aiperf, &file);
    assert_eq!((result.tool_code.as_str(), result.load.tool_version.as_deref()), ("aiperf", Some("0.13.0")));
    file["was_cancelled"] = json!(true);
    assert_eq!(place(Format::Aiperf, &file), "was_cancelled");
}

fn guidellm() -> Value {
    let spread = |count: u64, mean: f64| {
        json!({"successful": {"mean": mean, "median": mean, "std_dev": 0.5, "min": mean, "max": mean, "count": count,
               "total_sum": mean * count as f64,
               "percentiles": {"p90": mean, "p95": mean, "p99": mean * 2.0, "p999": mean * 3.0}}})
    };
    let benchmark = |streams: u64| {
        json!({"type_": "generative_benchmark", "duration": 8.0,
               "config": {"strategy": {"type_": "concurrent", "streams": streams}},
               "metrics": {"request_totals": {"successful": 100, "errored": 3, "incomplete": 1, "total": 104},
                   "requests_per_second": spread(100, 12.5), "request_latency": spread(100, 0.63),
                   "time_to_first_token_ms": spread(0, 0.0), "inter_token_latency_ms": spread(100, 9.5),
                   "time_per_output_token_ms": spread(100, 9.8), "output_tokens_per_second": spread(100, 800.0),
                   "tokens_per_second": spread(100, 1600.0), "output_token_count": spread(100, 64.0)}})
    };
    json!({"metadata": {"guidellm_version": "0.8.1"}, "benchmarks": [benchmark(8), benchmark(16)]})
}

#[test]
fn guidellms_benchmarks_are_results_each() {
    let results = read(Format::Guidellm, guidellm().to_string().as_bytes()).unwrap();
    let streams: Vec<_> = results.iter().map(|result| result.load.concurrency).collect();
    assert_eq!(streams, [Some(8), Some(16)]);
    let figures = &results[0].figures;
    assert_eq!(
        figures.response_time_ms.as_ref().and_then(|s| s.avg),
        Some(630.0),
        "seconds became milliseconds"
    );
    assert_eq!(figures.ttft_ms, None, "a distribution without a sample is no distribution");
    assert_eq!(figures.tpot_excl_first_ms.as_ref().and_then(|s| s.p99_9), Some(28.5));
    assert_eq!((figures.requests_failed, figures.completion_tokens_total), (Some(3), Some(6400)));
    assert_eq!(results[0].load.tool_version.as_deref(), Some("0.8.1"));
    let mut file = guidellm();
    file["benchmarks"][1]["metrics"]["request_latency"]["successful"]["mean"] = json!("fast");
    assert_eq!(place(Format::Guidellm, &file), "benchmarks[1].metrics.request_latency.successful.mean");
    file["benchmarks"] = json!([]);
    assert_eq!(place(Format::Guidellm, &file), "the file");
}

fn aggregate() -> Value {
    json!({"hw": "h200", "conc": 64, "image": "vllm/vllm-openai:v0.28.0", "model": "m/a", "framework": "vllm",
           "precision": "fp8", "spec_decoding": "none", "disagg": "false", "isl": 1024, "osl": 1024,
           "is_multinode": false, "tp": 8, "ep": 1, "dp_attention": "false", "tput_per_gpu": 1000.0,
           "output_tput_per_gpu": 500.0, "input_tput_per_gpu": 500.0, "mean_ttft": 0.25, "median_ttft": 0.2,
           "p99_ttft": 0.5, "p99.9_ttft": 0.75, "mean_tpot": 0.02, "median_tpot": 0.0195, "p90_tpot": 0.021,
           "mean_intvty": 50.0, "mean_e2el": 20.5, "p90_e2el": 22.0})
}

#[test]
fn an_inferencex_aggregate_is_multiplied_back_by_its_gpus() {
    let result = one(Format::Inferencex, &aggregate());
    assert_eq!(result.figures.total_tokens_per_second, Some(8000.0));
    assert_eq!(result.figures.completion_tokens_per_second, Some(4000.0));
    assert_eq!(result.per_gpu.and_then(|each| each.tokens_per_second), Some(1000.0));
    assert_eq!(result.figures.ttft_ms.as_ref().and_then(|s| s.avg), Some(250.0));
    assert_eq!(result.figures.tpot_excl_first_ms.as_ref().and_then(|s| s.p90), Some(21.0));
    let dimensions = result.inferencex.expect("dimensions");
    assert_eq!((dimensions.gpu_count, dimensions.disaggregated), (Some(8), Some(false)));
    assert_eq!((result.load.concurrency, result.load.input_sequence_length), (Some(64), Some(1024)));
}

#[test]
fn a_disaggregated_run_has_rates_of_either_kind_of_gpu() {
    let mut file = aggregate();
    file["disagg"] = json!(true);
    file["is_multinode"] = json!("true");
    (file["num_prefill_gpu"], file["num_decode_gpu"]) = (json!(4), json!(12));
    let result = one(Format::Inferencex, &file);
    assert_eq!(result.figures.total_tokens_per_second, Some(16_000.0));
    assert_eq!(result.figures.completion_tokens_per_second, Some(6000.0), "12 decode GPUs");
    assert_eq!(result.figures.prompt_tokens_per_second, Some(2000.0), "4 prefill GPUs");
    file["dp_attention"] = json!("perhaps");
    assert_eq!(place(Format::Inferencex, &json!([aggregate(), file])), "[1].dp_attention");
}

#[test]
fn an_inferencex_result_is_read_as_its_ancestors() {
    let mut file = vllm();
    file["request_goodput:"] = json!(10.0);
    file["p90_tpot_ms"] = json!(10.0);
    let result = one(Format::InferencexResult, &file);
    assert_eq!(result.tool_code, "inferencex");
    assert_eq!(result.figures.goodput_requests_per_second, Some(10.0), "the colon is part of the key");
    let per_gpu = PerGpu::of(&result.figures, Some(4));
    assert_eq!(per_gpu.tokens_per_second, Some(400.0));
    assert_eq!(PerGpu::of(&result.figures, None), PerGpu::default());
}

#[test]
fn the_gpus_of_a_run_are_those_its_model_server_was_given_or_else_the_hosts() {
    let of = |engine_args: Value, gpus_per_replica, host| {
        let workload = json!({"model_code": "m/a", "framework_code": "sglang", "framework_version": "0.5.15.post1",
                              "tool_code": "inferencex"});
        let commands = ResolvedCommands {
            engine_args: serde_json::from_value(engine_args).unwrap(),
            gpus_per_replica,
            ..ResolvedCommands::of(vec!["sglang".into()], vec![])
        };
        InferencexDimensions::of_job(&serde_json::from_value(workload).unwrap(), &commands, host)
    };
    assert_eq!(of(json!({"tp_size": 4, "dp_size": 2}), Some(8), 16).gpu_count, Some(8));
    assert_eq!((of(json!({}), None, 8).gpu_count, of(json!({}), None, 0).gpu_count), (Some(8), None));
    let shared = json!({"tp_size": 8, "dp_size": 8, "ep_size": 8, "enable_dp_attention": true});
    let shared = of(shared, Some(8), 8);
    assert_eq!((shared.gpu_count, shared.tp, shared.ep), (Some(8), Some(8), Some(8)));
    assert_eq!(shared.dp_attention, Some(true));
    let speculation = |args| of(args, None, 8).spec_decoding.unwrap();
    assert_eq!(speculation(json!({})), "none");
    assert_eq!(speculation(json!({"speculative_algorithm": "EAGLE3"})), "eagle3");
    assert_eq!(speculation(json!({"speculative_config": "{\"method\": \"mtp\"}"})), "mtp");
    assert_eq!(speculation(json!({"speculative_config": {"model": "m/draft"}})), "draft_model");
}

#[test]
fn what_only_speech_and_images_have_is_imported_too() {
    let golden = include_str!("../../tests/golden/tool_output.recorded.v2.json");
    let recorded: Value = serde_json::from_str(golden).unwrap();
    let mut summary: Summary = serde_json::from_value(recorded["summary"].clone()).unwrap();
    let of = |avg| Some(Distribution { avg: Some(avg), ..Distribution::default() });
    summary.tool = "metrumbench-asr".to_owned();
    let asr = &mut summary.figures.asr;
    (asr.rtf, asr.wer, asr.cer) = (of(0.2), of(0.08), of(0.03));
    summary.figures.imagegen.success_rate = Some(0.75);
    let line = serde_json::to_string(&summary).unwrap();
    let figures = read(Format::Metrumbench, line.as_bytes()).unwrap().remove(0).figures;
    let avg = |spread: &Option<Spread>| spread.as_ref().and_then(|spread| spread.avg);
    assert_eq!(
        (avg(&figures.rtf), avg(&figures.wer), avg(&figures.cer)),
        (Some(0.2), Some(0.08), Some(0.03))
    );
    assert_eq!(figures.success_rate, Some(0.75));
}

#[test]
fn our_own_summaries_are_read_line_by_line() {
    let golden = include_str!("../../tests/golden/tool_output.recorded.v1.json");
    let recorded: Value = serde_json::from_str(golden).unwrap();
    let line = recorded["summary"].to_string();
    let results = read(Format::Metrumbench, format!("{line}\n\n{line}\n").as_bytes()).unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0].tool_code, "metrumbench-llm");
    let tokens = recorded["summary"]["throughput"]["completion_tokens_per_second"].as_f64();
    assert_eq!(results[0].figures.completion_tokens_per_second, tokens);
    let broken = format!("{line}\n{{\"schema\": 1}}\n");
    assert_eq!(read(Format::Metrumbench, broken.as_bytes()).unwrap_err().place, "line 2");
    assert_eq!(read(Format::Metrumbench, b"\n").unwrap_err().place, "the file");
    let places = |format, text: &str| -> Vec<String> {
        faults(format, text.as_bytes()).into_iter().map(|fault| fault.place).collect()
    };
    assert_eq!(places(Format::Metrumbench, &format!("{{}}\n{line}\nx\n")), ["line 1", "line 3"]);
    assert_eq!(places(Format::Metrumbench, &line), Vec::<String>::new());
    assert_eq!(places(Format::VllmBenchServe, "{}").len(), 1);
}

/// Any JSON, of the depth and the keys that the readers look at.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let keys = prop::sample::select(vec![
            "unit",
            "avg",
            "mean",
            "successful",
            "count",
            "percentiles",
            "p99",
            "strategy",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.prop_map(str::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn figures_are_sound(figures: &ForeignFigures) -> bool {
    fn sound(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.as_f64().is_some_and(|n| n.is_finite() && n >= 0.0),
            Value::Object(map) => map.values().all(sound),
            Value::Null => false,
            _ => true,
        }
    }
    sound(&serde_json::to_value(figures).unwrap())
}

proptest! {
    #[test]
    fn no_bytes_break_a_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for &format in Format::ALL {
            let _ = read(format, &bytes);
        }
    }

    #[test]
    fn any_value_in_any_place_is_read_soundly_or_refused_with_a_place(
        value in any_json(), number in 0usize..8, field in any::<prop::sample::Index>(),
    ) {
        let files = [
            (Format::VllmBenchServe, vllm()), (Format::InferencexResult, vllm()), (Format::GenaiPerf, genai_perf()),
            (Format::Aiperf, file_as_aiperf(&genai_perf())), (Format::Guidellm, guidellm()),
            (Format::Inferencex, aggregate()),
        ];
        let (format, mut file) = files[number % files.len()].clone();
        let keys: Vec<String> = file.as_object().unwrap().keys().cloned().collect();
        file[field.get(&keys)] = value;
        match read(format, file.to_string().as_bytes()) {
            Ok(results) => prop_assert!(results.iter().all(|result| figures_are_sound(&result.figures))),
            Err(error) => prop_assert!(!error.place.is_empty() && !error.message.is_empty()),
        }
    }

    #[test]
    fn a_figure_that_is_left_out_stays_out(field in any::<prop::sample::Index>()) {
        let mut file = vllm();
        let keys: Vec<String> = file.as_object().unwrap().keys().cloned().collect();
        let key = field.get(&keys);
        file.as_object_mut().unwrap().remove(key);
        let Ok(results) = read(Format::VllmBenchServe, file.to_string().as_bytes()) else { return Ok(()) };
        let whole = serde_json::to_value(&one(Format::VllmBenchServe, &vllm()).figures).unwrap();
        let less = serde_json::to_value(&results[0].figures).unwrap();
        // What is there is as it was; nothing came into being.
        for (name, value) in less.as_object().unwrap() {
            let before = &whole[name];
            if let (Value::Object(value), Value::Object(before)) = (value, before) {
                prop_assert!(value.iter().all(|(name, value)| before.get(name) == Some(value)));
            } else if name != "prompt_tokens_per_second" {
                prop_assert_eq!(value, before);
            }
        }
    }
}
