//! The workloads the tests measure.

use serde_json::{Value, json};

/// Gemma 3 270M by llama.cpp's own server.
pub fn llama_cpp(concurrency: &[u32], requests: u32, osl: u32) -> Value {
    json!({
        "p_workload_code": "gemma-llama-cpp",
        "p_model_code": "google/gemma-3-270m",
        "p_framework_code": "llama-cpp",
        "p_framework_version": framework_version("llama-cpp"),
        "p_tool_code": "metrumbench-llm",
        "p_scenarios": {
            "p_concurrency": concurrency,
            "p_input_sequence_length": [64],
            "p_output_sequence_length": [osl],
            "p_num_requests": requests,
            "p_streaming": true,
        },
    })
}

/// The built-in reference server: exact timing, results marked simulated.
pub fn refserver(concurrency: &[u32], requests: u32, osl: u32) -> Value {
    let mut workload = llama_cpp(concurrency, requests, osl);
    workload["p_workload_code"] = json!("reference");
    workload["p_framework_code"] = json!("refserver");
    workload["p_framework_version"] = json!(framework_version("refserver"));
    workload
}

/// A model of another modality, by the reference server: the tool follows from the model.
pub fn of_modality(modality: &str, scenarios: Value) -> Value {
    let model = match modality {
        "vlm" => "Qwen/Qwen3-VL-2B-Instruct",
        "asr" => "openai/whisper-tiny",
        "imagegen" => "Tongyi-MAI/Z-Image-Turbo",
        other => panic!("no model known of modality {other}"),
    };
    json!({
        "p_workload_code": modality,
        "p_model_code": model,
        "p_framework_code": "refserver",
        "p_framework_version": framework_version("refserver"),
        "p_engine_args": {"ttft_ms": 20, "itl_ms": 1},
        "p_scenarios": scenarios,
    })
}

/// An endpoint that somebody else runs: no server is started for it.
pub fn endpoint(url: &str, concurrency: &[u32], requests: u32, osl: u32) -> Value {
    let mut workload = llama_cpp(concurrency, requests, osl);
    workload["p_workload_code"] = json!("endpoint");
    workload["p_framework_code"] = json!("openai");
    workload["p_framework_version"] = json!("v1");
    workload["p_endpoint_url"] = json!(url);
    workload
}

/// The version the catalogue is seeded with.
pub fn framework_version(framework: &str) -> &'static str {
    match framework {
        "llama-cpp" => "0.7.0",
        "refserver" => "0.1.0",
        other => panic!("no version known for {other}"),
    }
}

/// The reference server at about a quarter of a second a request.
pub fn slow_refserver(concurrency: &[u32], requests: u32) -> Value {
    let mut workload = refserver(concurrency, requests, 8);
    workload["p_engine_args"] = json!({"ttft_ms": 100, "itl_ms": 20});
    workload
}
