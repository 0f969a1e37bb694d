//! Results that were measured elsewhere, imported by the file: how a plant comes to many results, each an event, without
//! measuring for days. The figures are made up, and the page marks them as imported.

use events::api::CommandReply;
use serde_json::{Value, json};

use crate::api::Api;

/// Results of one file.
pub const OF_A_FILE: usize = 200;

/// A result as InferenceX aggregates it; each its own.
fn aggregate(nth: usize) -> Value {
    let concurrency = 1 << (nth % 9);
    // No two alike, and in no order.
    let spread = (nth * 7_919) % 10_007;
    let per_gpu = 100.0 + spread as f64 / 7.0;
    let ttft = 0.02 + ((nth * 104_729) % 10_007) as f64 / 20_000.0;
    json!({
        "hw": "h200", "framework": "vllm", "precision": "fp8", "tp": 8, "conc": concurrency, "isl": 1024, "osl": 1024,
        "tput_per_gpu": per_gpu, "output_tput_per_gpu": per_gpu / 2.0, "input_tput_per_gpu": per_gpu / 2.0,
        "mean_ttft": ttft, "median_ttft": ttft * 0.9, "p99_ttft": ttft * 3.0, "mean_tpot": 0.012, "median_tpot": 0.011,
        "p99_tpot": 0.03, "mean_itl": 0.012, "median_itl": 0.011, "p99_itl": 0.04, "mean_e2el": 12.0 + ttft,
        "median_e2el": 11.0 + ttft, "p99_e2el": 20.0 + ttft,
    })
}

/// Imports a file of results into a project.
pub async fn import(admin: &Api, project: &str, code: &str, results: &[Value]) -> CommandReply {
    let args = json!({
        "p_project_code": project, "p_format": "inferencex", "p_import_code": code,
        "p_content": Value::from(results.to_vec()).to_string(), "p_model_code": "google/gemma-3-270m",
        "p_framework_code": "vllm", "p_framework_version": "0.28.0", "p_quantization": "fp8",
        "p_gpu_name": "NVIDIA H200", "p_cost_per_hour_usd": 28.8,
    });
    admin.command("import_results", &args).await
}

/// Makes a project with so many imported results, and says the position of the last.
pub async fn import_many(admin: &Api, project: &str, results: usize) -> i64 {
    admin.command("create_project", &json!({"p_project_code": project, "p_name": project})).await;
    let mut position = 0;
    let all: Vec<Value> = (0..results).map(aggregate).collect();
    for (nth, file) in all.chunks(OF_A_FILE).enumerate() {
        position = import(admin, project, &format!("file-{nth:03}"), file).await.position;
    }
    position
}
