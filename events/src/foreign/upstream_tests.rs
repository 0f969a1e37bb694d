//! Files with exactly the keys that other tools' sources write; `captures/README.md` says which and how they came to be.

use serde_json::{Value, json};

use super::*;

fn one(format: Format, file: &str) -> ForeignResult {
    let mut results = read(format, file.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(results.len(), 1);
    results.remove(0)
}

fn close(found: Option<f64>, wanted: f64) -> bool {
    found.is_some_and(|found| (found / wanted - 1.0).abs() < 1e-9)
}

const VLLM: &str = include_str!("captures/vllm-bench-serve.keys.json");
const RESULT: &str = include_str!("captures/inferencex-result.keys.json");

#[test]
fn what_vllms_source_writes_by_default_is_read() {
    let result = one(Format::VllmBenchServe, VLLM);
    let figures = &result.figures;
    assert_eq!((figures.requests_succeeded, figures.requests_failed), (Some(20), Some(0)));
    assert_eq!((figures.prompt_tokens_total, figures.completion_tokens_total), (Some(20_480), Some(2560)));
    assert!(close(figures.completion_tokens_per_second, 400.0));
    assert!(close(figures.total_tokens_per_second, 3600.0));
    let ttft = figures.ttft_ms.as_ref().expect("streamed");
    assert!(close(ttft.avg, 59.5) && close(ttft.p50, 59.5) && close(ttft.p99, 68.81), "{ttft:?}");
    assert!(close(figures.tpot_excl_first_ms.as_ref().and_then(|s| s.avg), 10.95));
    assert_eq!(figures.response_time_ms, None, "it does not write e2el unless asked");
    assert_eq!((figures.goodput_requests_per_second, figures.audio_seconds_per_second), (None, None));
    assert_eq!(result.load.concurrency, Some(4));
    assert_eq!(result.load.input_sequence_length, None, "the lengths are only in detailed files");
}

#[test]
fn answers_that_vllm_did_not_count_are_not_one_token_each() {
    let mut file: Value = serde_json::from_str(VLLM).unwrap();
    file["total_output_tokens"] = json!(20);
    file["output_throughput"] = json!(20.0 / 6.4);
    file["total_token_throughput"] = json!((20_480.0 + 20.0) / 6.4);
    let counted = one(Format::VllmBenchServe, &file.to_string()).figures;
    assert!(close(counted.completion_tokens_per_second, 3.125), "with a tokenizer it counted them");
    // `--skip-tokenizer-init`, and a server that gives no usage.
    file["tokenizer_id"] = Value::Null;
    let figures = one(Format::VllmBenchServe, &file.to_string()).figures;
    assert_eq!((figures.completion_tokens_total, figures.completion_tokens_per_second), (None, None));
    assert_eq!(figures.total_tokens_per_second, None);
    assert_eq!(figures.prompt_tokens_total, Some(20_480));
}

#[test]
fn a_file_that_vllm_appended_to_holds_a_result_a_line() {
    let line = serde_json::from_str::<Value>(VLLM).unwrap().to_string();
    let results = read(Format::VllmBenchServe, format!("{line}\n{line}").as_bytes()).unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0], results[1]);
    let broken = line.replace("\"completed\":20", "\"completed\":0");
    let error = read(Format::VllmBenchServe, format!("{line}\n{broken}").as_bytes()).unwrap_err();
    assert_eq!(error.place, "result 2.completed");
}

#[test]
fn what_inferencexs_source_writes_is_read() {
    let result = one(Format::InferencexResult, RESULT);
    let figures = &result.figures;
    assert_eq!((figures.requests_succeeded, figures.requests_failed), (Some(20), Some(0)));
    let (ttft, e2el) = (figures.ttft_ms.clone().unwrap(), figures.response_time_ms.clone().unwrap());
    assert!(close(ttft.p90, 67.1) && close(ttft.p99_9, 68.981) && close(e2el.avg, 1450.15));
    let load = &result.load;
    assert_eq!((load.input_sequence_length, load.output_sequence_length), (Some(1024), Some(128)));
    assert_eq!((load.concurrency, load.request_rate), (Some(4), None));
}

#[test]
fn what_inferencexs_aggregation_made_is_multiplied_back_to_the_result_it_was_made_of() {
    let of = one(Format::InferencexResult, RESULT).figures;
    for (file, gpus, prefill, decode) in [
        (include_str!("captures/inferencex-agg-single.json"), 4, None, None),
        (include_str!("captures/inferencex-agg-disagg.json"), 12, Some(4), Some(8)),
        (include_str!("captures/inferencex-agg-nodecode.json"), 16, Some(16), Some(0)),
    ] {
        let result = one(Format::Inferencex, file);
        let figures = &result.figures;
        let dimensions = result.inferencex.as_ref().expect("dimensions");
        assert_eq!(dimensions.gpu_count, Some(gpus));
        assert_eq!((dimensions.prefill_gpu_count, dimensions.decode_gpu_count), (prefill, decode));
        for (found, wanted) in [
            (figures.total_tokens_per_second, of.total_tokens_per_second),
            (figures.completion_tokens_per_second, of.completion_tokens_per_second),
            (figures.prompt_tokens_per_second, of.prompt_tokens_per_second),
        ] {
            assert!(close(found, wanted.unwrap()), "{found:?} {wanted:?} of {gpus} GPUs");
        }
        for (found, wanted) in [
            (&figures.ttft_ms, &of.ttft_ms),
            (&figures.tpot_excl_first_ms, &of.tpot_excl_first_ms),
            (&figures.inter_chunk_ms, &of.inter_chunk_ms),
            (&figures.response_time_ms, &of.response_time_ms),
        ] {
            let (found, wanted) = (found.as_ref().unwrap(), wanted.as_ref().unwrap());
            let pairs = [(found.avg, wanted.avg), (found.p99, wanted.p99), (found.p99_9, wanted.p99_9)];
            assert!(pairs.into_iter().all(|(found, wanted)| close(found, wanted.unwrap())), "{found:?}");
        }
        assert_eq!((result.load.concurrency, result.load.output_sequence_length), (Some(4), Some(128)));
    }
}

#[test]
fn several_nodes_that_are_not_disaggregated_have_rates_of_either_kind_of_gpu_too() {
    let mut file: Value = serde_json::from_str(include_str!("captures/inferencex-agg-disagg.json")).unwrap();
    file["disagg"] = json!(false);
    let figures = one(Format::Inferencex, &file.to_string()).figures;
    assert!(close(figures.completion_tokens_per_second, 400.0), "{:?}", figures.completion_tokens_per_second);
    assert!(close(figures.prompt_tokens_per_second, 3200.0));
}

#[test]
fn a_disaggregated_run_that_does_not_say_how_it_is_divided_has_no_rates_of_its_parts() {
    let mut file: Value = serde_json::from_str(include_str!("captures/inferencex-agg-single.json")).unwrap();
    file["disagg"] = json!(true);
    let figures = one(Format::Inferencex, &file.to_string()).figures;
    assert!(close(figures.total_tokens_per_second, 3600.0));
    assert_eq!((figures.completion_tokens_per_second, figures.prompt_tokens_per_second), (None, None));
}

#[test]
fn what_guidellms_schema_holds_is_read() {
    let result = one(Format::Guidellm, include_str!("captures/guidellm.keys.json"));
    let figures = &result.figures;
    assert_eq!((figures.requests_succeeded, figures.requests_failed), (Some(100), Some(2)));
    assert!(close(figures.window_s, 8.0) && close(figures.requests_per_second, 12.5));
    assert!(
        close(figures.completion_tokens_per_second, 800.0) && close(figures.total_tokens_per_second, 4000.0)
    );
    assert!(close(figures.prompt_tokens_per_second, 3200.0));
    assert_eq!((figures.prompt_tokens_total, figures.completion_tokens_total), (Some(25_600), Some(6400)));
    let latency = figures.response_time_ms.as_ref().unwrap();
    assert!(
        close(latency.avg, 640.0) && close(latency.p25, 608.0) && close(latency.p1, 577.28),
        "{latency:?}"
    );
    let (ttft, itl) = (figures.ttft_ms.as_ref().unwrap(), figures.tpot_excl_first_ms.as_ref().unwrap());
    assert!(close(ttft.p50, 80.0) && close(ttft.p99_9, 87.984) && close(itl.avg, 8.75));
    assert_eq!((result.load.concurrency, result.load.tool_version.as_deref()), (Some(8), Some("0.8.1")));
}

#[test]
fn what_guidellm_wrote_of_a_real_server_is_read_as_its_console_says() {
    let result = one(Format::Guidellm, include_str!("captures/guidellm-0.8.1-llama-cpp.json"));
    let (figures, load) = (&result.figures, &result.load);
    assert_eq!((figures.requests_succeeded, figures.requests_failed), (Some(16), Some(0)));
    assert_eq!((figures.prompt_tokens_total, figures.completion_tokens_total), (Some(838), Some(384)));
    // Its table of throughputs, rounded as there.
    let shown = |value: Option<f64>| value.map(|value| format!("{value:.1}")).unwrap_or_default();
    assert_eq!(shown(figures.requests_per_second), "0.8");
    assert_eq!(shown(figures.prompt_tokens_per_second), "44.1");
    assert_eq!(shown(figures.completion_tokens_per_second), "20.2");
    assert_eq!(shown(figures.total_tokens_per_second), "64.2");
    let (ttft, itl) = (figures.ttft_ms.as_ref().unwrap(), figures.tpot_excl_first_ms.as_ref().unwrap());
    assert_eq!([shown(ttft.avg), shown(ttft.p50), shown(ttft.p95)], ["668.7", "589.0", "992.5"]);
    assert_eq!([shown(itl.avg), shown(itl.p50), shown(itl.p95)], ["73.8", "67.3", "102.5"]);
    let latency = figures.response_time_ms.as_ref().unwrap();
    let seconds = |value: Option<f64>| shown(value.map(|ms| ms / 1000.0));
    assert_eq!([seconds(latency.avg), seconds(latency.p50), seconds(latency.p95)], ["2.4", "2.1", "3.3"]);
    assert_eq!((load.concurrency, load.model_id.as_deref()), (Some(2), Some("google/gemma-3-270m")));
    assert_eq!(load.tool_version.as_deref(), Some("0.8.1"));
    let ended = figures.window_ended_at.unwrap().as_micros();
    assert_eq!(ended / 1000, 1_796_141_141_924, "in its JSON as seconds since 1970");
}

#[test]
fn what_aiperf_wrote_of_a_real_server_is_read_as_its_console_says() {
    let result = one(Format::Aiperf, include_str!("captures/aiperf-0.13.0-llama-cpp.json"));
    let (figures, load) = (&result.figures, &result.load);
    assert_eq!((figures.requests_succeeded, figures.requests_failed), (Some(16), Some(0)));
    assert_eq!((figures.prompt_tokens_total, figures.completion_tokens_total), (Some(853), Some(384)));
    let shown = |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
    assert_eq!(shown(figures.window_s), "40.10");
    assert_eq!(shown(figures.requests_per_second), "0.40");
    assert_eq!(shown(figures.prompt_tokens_per_second), "21.27");
    assert_eq!(shown(figures.completion_tokens_per_second), "9.57");
    let (ttft, itl) = (figures.ttft_ms.as_ref().unwrap(), figures.tpot_excl_first_ms.as_ref().unwrap());
    assert_eq!(
        [
            shown(ttft.avg),
            shown(ttft.min),
            shown(ttft.max),
            shown(ttft.p99),
            shown(ttft.p50),
            shown(ttft.std)
        ],
        ["1491.43", "689.14", "1872.71", "1858.98", "1537.47", "309.70"]
    );
    assert_eq!([shown(itl.avg), shown(itl.p99), shown(itl.p90)], ["152.60", "178.53", "175.47"]);
    let latency = figures.response_time_ms.as_ref().unwrap();
    assert_eq!(
        [shown(latency.avg), shown(latency.p90), shown(latency.p50)],
        ["5001.18", "5583.76", "5182.53"]
    );
    assert_eq!((load.concurrency, load.model_id.as_deref()), (Some(2), Some("google/gemma-3-270m")));
    assert_eq!((load.input_sequence_length, load.output_sequence_length), (Some(48), Some(24)));
}
