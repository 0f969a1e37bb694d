//! Texts that the log cannot keep (U+0000, more than an event holds), in every place of every command that takes free texts:
//! the caller is told, and what was written is whole.

mod plane;

use events::access::Role;
use plane::{Client, Plane};
use serde_json::{Value, json};
use server::api::limits::{Rate, Rates};

/// The ways to every text and every name in a value.
fn places(value: &Value, at: &str, found: &mut Vec<(String, bool)>) {
    match value {
        Value::String(_) => found.push((at.to_owned(), false)),
        Value::Array(values) => {
            for (nth, value) in values.iter().enumerate() {
                places(value, &format!("{at}/{nth}"), found);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                if !name.starts_with("p_") {
                    found.push((at.clone(), true));
                }
                places(value, &at, found);
            }
        }
        _ => {}
    }
}

/// The value with a text, or the name of a member, followed by something else.
fn changed(value: &Value, at: &str, is_name: bool, odd: &str) -> Value {
    let mut value = value.clone();
    if is_name {
        let (parent, name) = at.rsplit_once('/').unwrap();
        let name = name.replace("~1", "/").replace("~0", "~");
        let members = value.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        let inner = members.remove(&name).unwrap();
        members.insert(format!("{name}{odd}"), inner);
    } else {
        let text = value.pointer_mut(at).unwrap();
        *text = json!(format!("{}{odd}", text.as_str().unwrap()));
    }
    value
}

/// Commands with all their texts, each of which is carried out as it stands.
fn commands() -> Vec<(&'static str, Value)> {
    let facts =
        |name: &str| json!({"display_name": name, "modality": "llm", "gated": false, "sources": ["a page"]});
    let framework = json!({
        "display_name": "F", "serve_argv": ["serve", "--port={agent.port}", "--model={model}"],
        "flag_style": "equals", "readiness_path": "/health", "readiness_timeout_s": 60, "support_level": "ours",
        "engine_args": {"word": {"cli_flag": "--word", "type": "string", "meaning": "A word.", "default": "a"}},
        "container_images": {"nvidia": "an/image"}, "sources": ["a page"],
    });
    let workload = json!({
        "p_workload_code": "w", "p_name": "W", "p_model_code": "google/gemma-3-270m", "p_framework_code": "f",
        "p_framework_version": "1", "p_engine_args": {"word": "x"}, "p_tool_args": {"mode": "chat"},
        "p_quantization": "bf16",
        "p_scenarios": {"p_concurrency": [1], "p_input_sequence_length": [64], "p_output_sequence_length": [16]},
    });
    vec![
        (
            "register_framework_version",
            json!({"p_framework_code": "f", "p_framework_version": "1", "p_facts": framework}),
        ),
        ("register_model", json!({"p_model_code": "m", "p_facts": facts("M")})),
        (
            "register_accelerator",
            json!({"p_accelerator_code": "a", "p_facts": {"display_name": "A", "vendor": "X", "memory_gb": 48, "notes": "n"}}),
        ),
        (
            "register_server_config",
            json!({"p_config_code": "c", "p_facts": {"display_name": "C", "gpu_count": 0}}),
        ),
        (
            "create_engine_args_set",
            json!({"p_set_code": "s", "p_display_name": "S", "p_framework_code": "f",
            "p_framework_version": "1", "p_values": {"word": "x"}, "p_precision": "bf16", "p_notes": "n"}),
        ),
        (
            "save_tool_args_set",
            json!({"p_tool_code": "metrumbench-llm", "p_name": "T", "p_set_code": "t",
            "p_values": {"mode": "chat"}, "p_notes": "n"}),
        ),
        ("create_project", json!({"p_project_code": "p", "p_name": "P", "p_workloads": [workload]})),
        ("rename_project", json!({"p_project_code": "p", "p_name": "Q"})),
        ("save_view", json!({"p_name": "V", "p_page": "/reporting", "p_query": "a=b"})),
        ("create_server_config_instance", json!({"p_config_code": "local-cpu", "p_hostname": "h"})),
        (
            "approve_dangerous_args",
            json!({"p_program_code": "metrumbench-llm", "p_model_code": "m",
            "p_args": {"insecure": true}, "p_reason": "r"}),
        ),
        (
            "create_prompt_source",
            json!({"p_prompt_source_code": "ps", "p_type": "prompt_library", "p_name": "PS",
            "p_description": "d", "p_content": "{\"prompt\": \"What?\"}\n"}),
        ),
        (
            "import_results",
            json!({"p_project_code": "p", "p_format": "vllm_bench_serve", "p_model_code": "m",
            "p_framework_code": "f", "p_framework_version": "1", "p_gpu_name": "G",
            "p_content": json!({"model_id": "m", "num_prompts": 100, "max_concurrency": 8, "duration": 8.0, "completed": 100,
                "total_input_tokens": 6400, "total_output_tokens": 6400, "request_throughput": 12.5,
                "output_throughput": 800.0, "total_token_throughput": 1600.0}).to_string()}),
        ),
    ]
}

#[tokio::test]
async fn what_the_log_cannot_keep_is_the_callers_to_mend_wherever_it_stands() {
    let plane = Plane::start_with(|config| {
        let rate = Rate::new(1_000_000, 1_000_000);
        config.rates = Rates { person: rate, anonymous: rate, agent: rate };
    })
    .await;
    let admin: Client = plane.client(Role::Admin).await;
    let (nul, long) = ("\u{0}".to_owned(), "x".repeat(70_000));
    let mut refused = 0;
    for (command, args) in commands() {
        let mut found = Vec::new();
        places(&args, "", &mut found);
        for (at, is_name) in found {
            for odd in [&nul, &long] {
                let answer = admin.rpc(command, &changed(&args, &at, is_name, odd)).await;
                let status = answer.status.as_u16();
                assert!(status < 500, "{command} {at} {}: {}", odd.len(), answer.text);
                if status >= 400 {
                    let error = answer.refused();
                    assert!(
                        error.hint.is_some() && answer.text.len() < 10_000,
                        "{command} {at}: {}",
                        answer.text
                    );
                    refused += 1;
                }
            }
        }
        admin.rpc(command, &args).await.ok();
    }
    assert!(refused > 100, "{refused} were refused");
    plane.stop().await;
}
