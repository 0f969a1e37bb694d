//! Each of our own tools through the real plant and agent, against the reference server: what it measured is in its own
//! view and beside the others in `v_benchmark_results`.

use events::api::EventView;
use serde_json::{Value, json};
use support::agent::Agent;
use support::api::Api;
use support::control_plane::{ControlPlane, ORG};
use support::live::Live;
use support::workloads;

use super::{failures, number};

struct World {
    _plane: ControlPlane,
    admin: Api,
    agent: Agent,
}

impl World {
    async fn start(accept_dangerous: bool) -> Self {
        let plane = ControlPlane::start().await;
        let admin = plane.admin().await;
        let agent = match accept_dangerous {
            true => Agent::start_accepting_dangerous(&plane, &admin, "flow-host").await,
            false => Agent::start(&plane, &admin, "flow-host").await,
        };
        let mut server = Live::open(&admin, &format!("{ORG}:server"), 0).await;
        server.until("the server online", |e| e.payload["state"] == "online").await;
        Self { _plane: plane, admin, agent }
    }

    /// Executes the workload to its end; the rows of the tool's own view and those of all tools.
    async fn measure(&self, workload: Value, view: &str) -> (Vec<Value>, Vec<Value>) {
        let (run, _) = self.agent.execute(&self.admin, "tools", workload).await;
        let mut live = Live::open(&self.admin, run.trim_start_matches("run/"), 0).await;
        let seen: Vec<EventView> = live.until("the end of the run", |e| e.event_type == "run.finished").await;
        let finished = seen.last().expect("run.finished");
        assert_eq!(finished.payload["outcome"], "completed", "{:?}", failures(&seen));
        let path = format!("/api/{view}?project_code=eq.tools&order=position");
        let outputs = self.admin.rows_at_least(&path, finished.position).await;
        let path = "/api/v_benchmark_results?project_code=eq.tools&order=position";
        let results = self.admin.rows(path).await;
        assert_eq!(outputs.len(), results.len());
        for (output, result) in outputs.iter().zip(&results) {
            assert_eq!(output["job"], result["job"]);
            assert_eq!(output["tool_code"], result["tool_code"]);
            assert_eq!((&output["simulated"], &result["simulated"]), (&json!(true), &json!(true)));
            for same in ["requests_per_second", "response_time_p50_ms", "response_time_p99_ms", "window_s"] {
                assert_eq!(output[same], result[same], "{same}");
            }
            assert_eq!(result["imported"], json!(false));
        }
        (outputs, results)
    }
}

fn scenario_codes(rows: &[Value]) -> Vec<&str> {
    rows.iter().filter_map(|row| row["scenario_code"].as_str()).collect()
}

#[tokio::test]
async fn images_and_text_are_measured_with_their_processing() {
    let world = World::start(false).await;
    let scenarios = json!({
        "p_concurrency": [2], "p_output_sequence_length": [8], "p_num_requests": 6,
        "p_num_images_batch": [1, 2], "p_image_detail": ["low"],
    });
    let mut workload = workloads::of_modality("vlm", scenarios);
    workload["p_tool_args"] = json!({"synthetic_image": "64x48", "seed": 7});
    let (outputs, results) = world.measure(workload, "v_metrumbench_vlm_outputs").await;
    assert_eq!(scenario_codes(&outputs), ["c2-osl8-low", "c2-osl8-n2-low"]);
    for (output, images) in outputs.iter().zip([1, 2]) {
        assert_eq!(output["num_images_batch"], json!(images));
        assert_eq!(output["image_detail"], json!("low"));
        assert_eq!(output["image_dimensions"], json!({"64x48": 6 * images}));
        assert_eq!(number(output, "requests_succeeded"), 6.0);
        assert!(number(output, "image_processing_p50_ms") >= 0.0);
        assert!(number(output, "ttft_p50_ms") > 0.0);
        assert_eq!(number(output, "completion_tokens_total"), 48.0);
    }
    assert_eq!(results[1]["num_images_batch"], json!(2));
    assert!(number(&results[0], "output_tokens_per_second") > 0.0);
    assert!(results[0]["images_per_second"].is_null(), "no image was generated");
}

#[tokio::test]
async fn transcription_is_measured_in_speed_and_in_accuracy() {
    let world = World::start(true).await;
    let folder = world.agent.state_dir().join("audio");
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut manifest = String::new();
    let mut references = String::new();
    // What the reference server says of any audio, and the same with one word of nine wrong.
    let said = "the quick brown fox jumps over the lazy dog";
    for (id, reference) in [("a", said.to_owned()), ("b", said.replace("quick", "slow"))] {
        std::fs::write(folder.join(format!("{id}.wav")), [7; 1000]).expect("audio");
        manifest.push_str(&format!("{}\n", json!({"id": id, "path": format!("{id}.wav"), "duration": 5.0})));
        references.push_str(&format!("{}\n", json!({"id": id, "transcript": reference})));
    }
    std::fs::write(folder.join("audio.jsonl"), manifest).expect("a manifest");
    std::fs::write(folder.join("truth.jsonl"), references).expect("references");
    let scenarios = json!({"p_concurrency": [2], "p_num_requests": 4});
    let mut workload = workloads::of_modality("asr", scenarios);
    // They name files of the host: an administrator approves exactly these.
    let paths = json!({"input": folder.join("audio.jsonl"), "ground_truth": folder.join("truth.jsonl")});
    let approve = json!({
        "p_program_code": "metrumbench-asr", "p_model_code": workload["p_model_code"], "p_args": paths,
    });
    world.admin.command("approve_dangerous_args", &approve).await;
    workload["p_tool_args"] = paths;
    workload["p_tool_args"]["response_format"] = json!("json");
    let (outputs, results) = world.measure(workload, "v_metrumbench_asr_outputs").await;
    assert_eq!(scenario_codes(&outputs), ["c2"]);
    let (output, result) = (&outputs[0], &results[0]);
    assert_eq!(output["response_format"], json!("json"));
    assert_eq!(output["formats"], json!({"wav": 4}));
    assert_eq!(number(output, "wer_min"), 0.0);
    assert!((number(output, "wer_max") - 100.0 / 9.0).abs() < 1e-5, "one word of nine");
    assert_eq!(result["wer_avg"], output["wer_avg"]);
    let (rtf, time) = (number(output, "rtf_min"), number(output, "inference_time_min_ms"));
    assert!((rtf - time / 5000.0).abs() < 1e-5, "{rtf} is {time} ms of 5 s");
    let (audio, window) = (number(output, "audio_seconds_per_second"), number(output, "window_s"));
    assert!((audio * window - 20.0).abs() < 1e-3, "four files of 5 s");
    for none in ["output_tokens_per_second", "ttft_p50_ms", "streaming", "input_sequence_length"] {
        assert!(result[none].is_null(), "{none} of a transcription: {}", result[none]);
    }
    let flags = result["flags"].as_array().expect("flags");
    assert!(!flags.contains(&json!("token_counts_missing")), "transcriptions have no tokens: {flags:?}");
}

#[tokio::test]
async fn image_generation_is_measured_in_images_and_megapixels() {
    let world = World::start(false).await;
    let scenarios = json!({"p_concurrency": [1], "p_num_images_batch": [2], "p_image_size": ["64x32"]});
    let (outputs, results) =
        world.measure(workloads::of_modality("imagegen", scenarios), "v_metrumbench_imagegen_outputs").await;
    assert_eq!(scenario_codes(&outputs), ["c1-n2-64x32"]);
    let (output, result) = (&outputs[0], &results[0]);
    assert_eq!(number(output, "requests_succeeded"), 4.0, "max(4, 4 × concurrency)");
    assert_eq!((number(output, "images_requested"), number(output, "images_returned")), (8.0, 8.0));
    assert_eq!(number(output, "success_rate"), 1.0);
    let (images, window) = (number(output, "images_per_second"), number(output, "window_s"));
    assert!((images * window - 8.0).abs() < 1e-3);
    let megapixels = number(output, "megapixels_per_second") * window;
    assert!((megapixels - 8.0 * 64.0 * 32.0 / 1e6).abs() < 1e-6, "{megapixels}");
    assert_eq!(result["images_per_second"], output["images_per_second"]);
    assert_eq!(result["image_size"], json!("64x32"));
    assert!(!result["flags"].as_array().expect("flags").contains(&json!("too_few_requests")), "{result}");
    for none in ["output_tokens_per_second", "total_tokens_per_second", "streaming"] {
        assert!(result[none].is_null(), "{none}: {}", result[none]);
    }
}

#[tokio::test]
async fn every_argument_of_the_catalogue_is_an_option_of_its_tool() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    for tool in admin.rows("/api/v_tools").await {
        let code = tool["tool_code"].as_str().expect("a code");
        if !code.starts_with("metrumbench-") {
            continue;
        }
        let help = std::process::Command::new(support::binaries::binary(code)).arg("--help").output();
        let help = String::from_utf8(help.expect("the tool starts").stdout).expect("UTF-8");
        let options: Vec<&str> =
            help.split([' ', '\n', ',', '=', '[', '<']).filter(|word| word.starts_with("--")).collect();
        for (key, argument) in tool["args"].as_object().expect("arguments") {
            let flag = argument["cli_flag"].as_str().expect("a flag");
            assert!(options.contains(&flag), "{code} has no {flag} ({key})");
        }
        for element in tool["argv"].as_array().expect("a template").iter().skip(1) {
            let flag = element.as_str().expect("text").split('=').next().unwrap_or_default();
            assert!(flag.starts_with('{') || options.contains(&flag), "{code} has no {flag}");
        }
    }
}

#[tokio::test]
async fn a_library_is_sent_and_what_was_learnt_of_it_serves_the_next_run() {
    let world = World::start(false).await;
    let prompts: String =
        (1..=40).map(|n| format!("{}\n", json!({"prompt": vec!["word"; n * 4].join(" ")}))).collect();
    let create = json!({"p_prompt_source_code": "words", "p_type": "prompt_library", "p_content": prompts});
    let reply = world.admin.command("create_prompt_source", &create).await;
    let sha256 = reply.keys["sha256"].clone();
    let mut workload = workloads::refserver(&[2], 8, 8);
    workload["p_prompt_source_code"] = json!("words");
    workload["p_tool_args"] = json!({"calibrate": true});
    workload["p_scenarios"]["p_input_sequence_length"] = json!([32]);
    let (outputs, results) = world.measure(workload.clone(), "v_metrumbench_llm_outputs").await;
    assert_eq!(results[0]["prompt_source_code"], json!("words"));
    assert_eq!(results[0]["prompt_source_sha256"], sha256, "a result cites what was sent");
    // Of prompts of 4 to 160 words the sixteen nearest to 32 tokens were sampled, and no longer ones.
    let most = number(&outputs[0], "prompt_words_max");
    assert!(most <= 72.0, "{most} words in a prompt for 32 tokens");

    let learnt = support::eventually("the calibration to be kept", || async {
        world
            .admin
            .rows("/api/v_prompt_source_calibrations?prompt_source_code=eq.words")
            .await
            .into_iter()
            .next()
    })
    .await;
    assert_eq!(learnt["model_code"], json!("google/gemma-3-270m"));
    let per_token = number(&learnt, "words_per_token");
    workload["p_tool_args"] = json!({});
    let preview = world.admin.command_json("preview_commands", &json!({"p_workload": workload})).await;
    let argv = preview["scenarios"][0]["commands"]["tool_argv"].to_string();
    assert!(argv.contains(&format!("--words-per-token={per_token}")), "{argv}");
}

#[tokio::test]
async fn a_snapshot_of_the_hosts_own_is_sent_and_hashed() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = "the quick brown fox jumps over the lazy dog";
    std::fs::write(folder.path().join("1.wav"), [7; 1000]).expect("audio");
    let manifest = format!("{}\n", json!({"id": "1", "path": "1.wav", "duration": 4.0}));
    std::fs::write(folder.path().join("manifest.jsonl"), &manifest).expect("a manifest");
    let transcript = format!("{}\n", json!({"id": "1", "transcript": said}));
    std::fs::write(folder.path().join("transcripts.jsonl"), transcript).expect("transcripts");

    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let line = format!("[snapshots]\nlibrispeech-test-clean = {:?}", folder.path());
    let agent =
        Agent::start_with(&plane, &admin, "flow-host", |policy| policy.replace("[snapshots]", &line)).await;
    let mut server = Live::open(&admin, &format!("{ORG}:server"), 0).await;
    server.until("the server online", |e| e.payload["state"] == "online").await;
    let world = World { _plane: plane, admin, agent };
    let mut workload = workloads::of_modality("asr", json!({"p_concurrency": [1], "p_num_requests": 3}));
    workload["p_prompt_source_code"] = json!("librispeech-test-clean");
    let (outputs, results) = world.measure(workload, "v_metrumbench_asr_outputs").await;
    assert_eq!(number(&outputs[0], "wer_max"), 0.0);
    use sha2::Digest;
    let hash: String = sha2::Sha256::digest(&manifest).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        results[0]["prompt_source_sha256"],
        json!(hash),
        "what lies on the host is proven all the same"
    );
}
