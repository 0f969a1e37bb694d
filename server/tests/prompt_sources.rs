//! Prompt sources through the API, and workloads that send them; drafts, clones, and what is saved and executed at once.

mod plane;

use events::access::Role;
use plane::agent::{Agent, CONFIG, project, start_run};
use plane::{Answer, Client, Plane};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

async fn rows(client: &Client, plane: &Plane, path: &str) -> Vec<Value> {
    let head = plane.head().await;
    let request = client.request(Method::GET, path).header("prefer", format!("at-least={head}"));
    client.send(request).await.ok().as_array().unwrap().clone()
}

const PROMPTS: &str = "{\"prompt\": \"one two three\"}\n{\"prompt\": \"four five\"}\n";

async fn library(member: &Client, code: &str, content: &str) -> Answer {
    let args = json!({"p_prompt_source_code": code, "p_type": "prompt_library", "p_content": content});
    member.rpc("create_prompt_source", &args).await
}

fn workload(source: Option<&str>) -> Value {
    json!({
        "p_workload_code": "w", "p_model_code": "google/gemma-3-270m", "p_framework_code": "refserver",
        "p_framework_version": "0.1.0", "p_prompt_source_code": source, "p_tool_args": {"seed": 3},
        "p_scenarios": {"p_concurrency": [1, 2], "p_input_sequence_length": [64], "p_output_sequence_length": [16],
                        "p_num_requests": 4},
    })
}

async fn create(member: &Client, code: &str, workload: Value) -> Answer {
    let args = json!({"p_project_code": code, "p_name": code, "p_workloads": [workload]});
    member.rpc("create_project", &args).await
}

#[tokio::test]
async fn a_library_is_counted_and_proven_by_its_hash() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let sha256 = hex::encode(Sha256::digest(PROMPTS.as_bytes()));
    let reply = library(&member, "support", PROMPTS).await.ok();
    assert_eq!((&reply["rows"], &reply["sha256"]), (&json!(2), &json!(sha256)));
    let found = rows(&member, &plane, "/api/v_prompt_libraries_with_prompt_count").await;
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0]["prompt_count"], &found[0]["words_max"]), (&json!(2), &json!(3)));
    // What is the platform's is everyone's, what is an organisation's is its own.
    let all = rows(&plane.anonymous(), &plane, "/api/v_prompt_sources?order=prompt_source_code").await;
    let codes: Vec<&str> = all.iter().map(|row| row["prompt_source_code"].as_str().unwrap()).collect();
    let platform = [
        "librispeech-test-clean",
        "librispeech-test-other",
        "metrumbench-vlm-4k-v1",
        "text2image-multiprompt-1024",
    ];
    assert_eq!(codes, platform);
    plane.account_in("other", "x@other.org", Role::Member).await;
    let read = member.get(&format!("/api/blobs/acme/{sha256}")).await;
    assert_eq!(read.text, PROMPTS, "its members read it back");
    assert_eq!(plane.anonymous().get(&format!("/api/blobs/acme/{sha256}")).await.status.as_u16(), 404);
    plane.stop().await;
}

#[tokio::test]
async fn faulty_lines_are_named_and_nothing_is_kept() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let head = plane.head().await;
    let refused = library(&member, "bad", "{\"prompt\": \"a\"}\n{\"prompt\": 7}\nnonsense\n").await.refused();
    assert_eq!(refused.code, "bad_rows");
    assert!(refused.message.contains("line 2"), "{refused:?}");
    assert!(refused.details.unwrap().contains("line 3"));
    assert_eq!(library(&member, "a/b", PROMPTS).await.refused().code, "bad_code");
    assert_eq!(
        library(&member, "librispeech-test-clean", PROMPTS).await.refused().code,
        "prompt_source_exists"
    );
    assert_eq!(plane.head().await, head, "nothing was written");
    library(&member, "good", PROMPTS).await.ok();
    let again = library(&member, "good", "{\"prompt\": \"other\"}\n").await.refused();
    assert_eq!(again.code, "prompt_source_exists", "what a code stands for never changes");
    plane.stop().await;
}

#[tokio::test]
async fn questions_come_as_csv_and_audio_with_its_transcripts() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let create = async |args: Value| member.rpc("create_prompt_source", &args).await;
    let csv = "instruction,ground_truth_response\nWhat?,This\n";
    let mut args = json!({"p_prompt_source_code": "faq", "p_type": "kyai_dataset", "p_content": csv});
    assert_eq!(create(args.clone()).await.refused().code, "bad_rows", "it is no JSONL");
    args["p_content_format"] = json!("csv");
    create(args).await.ok();
    let audio = "{\"id\": \"a\", \"path\": \"a.wav\", \"duration\": 2.5}\n";
    let mut args = json!({
        "p_prompt_source_code": "calls", "p_type": "metrumbench_asr_snapshot", "p_content": audio,
        "p_ground_truth_content": "{\"id\": \"b\", \"transcript\": \"hello\"}\n",
    });
    assert!(create(args.clone()).await.refused().message.contains("line 1"));
    args["p_ground_truth_content"] = json!("{\"id\": \"a\", \"transcript\": \"hello\"}\n");
    create(args).await.ok();
    let found =
        rows(&member, &plane, "/api/v_prompt_sources?prompt_source_code=in.(faq,calls)&order=position").await;
    assert_eq!((&found[0]["prompt_count"], &found[0]["source_type"]), (&json!(1), &json!("kyai_dataset")));
    assert_eq!((&found[1]["audio_s"], &found[1]["ground_truth"]), (&json!(2.5), &json!(true)));
    assert_eq!(found[1]["local_paths"], json!(true));
    plane.stop().await;
}

#[tokio::test]
async fn a_job_names_the_source_it_sends_and_its_agent_may_fetch_that_alone() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let sha256 = library(&member, "support", PROMPTS).await.ok()["sha256"].as_str().unwrap().to_owned();
    let agent = Agent::enrol(&plane, "h1").await;
    create(&member, "p", workload(Some("support"))).await.ok();
    start_run(&member, &agent, "p").await;
    let jobs = rows(&member, &plane, "/api/v_jobs?project_code=eq.p&order=ordinal").await;
    let argv: Vec<&str> =
        jobs[0]["resolved_tool_argv"].as_array().unwrap().iter().map(|e| e.as_str().unwrap()).collect();
    assert!(argv.contains(&"--prompts={agent.prompts}"), "{argv:?}");
    let job = jobs[0]["job"].as_str().unwrap();
    let history = member.get(&format!("/api/history?stream={job}")).await.ok();
    let source = &history["events"][0]["payload"]["commands"]["prompt_source"];
    assert_eq!(
        source,
        &json!({"org": "acme", "code": "support", "type": "prompt_library", "sha256": sha256})
    );

    let fetched = agent.client.get(&format!("/api/agent/sources/{sha256}")).await;
    assert_eq!(fetched.text, PROMPTS);
    assert_eq!(member.get(&format!("/api/agent/sources/{sha256}")).await.status.as_u16(), 401);
    // A file that is no source is not an agent's to read.
    let other = hex::encode(Sha256::digest(b"secret"));
    let put = member.request(Method::PUT, &format!("/api/uploads/{other}")).body("secret");
    member.send(put).await.ok();
    assert_eq!(agent.client.get(&format!("/api/agent/sources/{other}")).await.status.as_u16(), 404);
    plane.stop().await;
}

#[tokio::test]
async fn a_source_that_does_not_fit_or_is_not_there_is_refused() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    library(&member, "support", PROMPTS).await.ok();
    let code = async |workload: Value| create(&member, "p", workload).await.refused().code;
    assert_eq!(code(workload(Some("nowhere"))).await, "unknown_prompt_source");
    assert_eq!(code(workload(Some("librispeech-test-clean"))).await, "wrong_prompt_source");
    let mut twice = workload(Some("support"));
    twice["p_tool_args"] = json!({"prompts": "/p.jsonl"});
    assert_eq!(code(twice).await, "prompt_source_twice");
    let mut genai = workload(Some("support"));
    (genai["p_tool_code"], genai["p_tool_args"]) = (json!("genai-perf"), json!({}));
    assert_eq!(code(genai).await, "wrong_prompt_source");
    let mut asr = workload(None);
    asr["p_model_code"] = json!("openai/whisper-tiny");
    (asr["p_tool_args"], asr["p_scenarios"]) = (json!({}), json!({"p_concurrency": [1]}));
    assert_eq!(code(asr.clone()).await, "prompts_missing");
    asr["p_framework_code"] = json!("llama-cpp");
    asr["p_framework_version"] = json!("0.7.0");
    assert_eq!(code(asr.clone()).await, "wrong_framework");
    asr["p_scenarios"] = json!({"p_concurrency": [1], "p_input_sequence_length": [64]});
    assert_eq!(code(asr).await, "foreign_axis");
    plane.stop().await;
}

#[tokio::test]
async fn a_snapshot_that_only_hosts_have_must_be_on_the_host() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let agent = Agent::enrol(&plane, "h1").await;
    let asr = json!({
        "p_model_code": "openai/whisper-tiny", "p_framework_code": "refserver", "p_framework_version": "0.1.0",
        "p_prompt_source_code": "librispeech-test-clean", "p_scenarios": {"p_concurrency": [1]},
    });
    let args = json!({"p_workload": asr, "p_config_code": CONFIG, "p_hostname": "h1"});
    let result = async || {
        let readiness = member.rpc("check_readiness", &args).await.ok();
        let checks = readiness["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["rule"] == "snapshot_present").expect("the rule")
    };
    let found = result().await;
    assert_eq!(found["result"], json!("fails"));
    assert!(found["cures"][0].as_str().unwrap().contains("[snapshots]"), "{found}");
    let capabilities = json!({"kind": "capabilities", "capabilities": {
        "agent_version": "0.1.0", "executables": ["benchtrail-refserver", "metrumbench-asr"],
        "snapshots": ["librispeech-test-clean"],
    }});
    agent.report(&[(server::clock::now(), capabilities)]).await;
    assert_eq!(result().await["result"], json!("ok"));
    plane.stop().await;
}

#[tokio::test]
async fn several_workloads_are_a_draft_and_one_alone_is_saved_and_executed() {
    let plane = Plane::start().await;
    let member = plane.client(Role::Member).await;
    let agent = Agent::enrol(&plane, "h1").await;
    let mut second = workload(None);
    second["p_workload_code"] = json!("v");
    let place = json!({"p_config_code": CONFIG, "p_hostname": "h1"});
    let head = plane.head().await;
    let both = json!({"p_project_code": "p", "p_name": "p", "p_workloads": [workload(None), second], "p_execute": place});
    assert_eq!(member.rpc("create_project", &both).await.refused().code, "one_workload_only");
    let elsewhere = json!({"p_project_code": "p", "p_name": "p", "p_workloads": [workload(None)],
                           "p_execute": {"p_config_code": CONFIG, "p_hostname": "nowhere"}});
    assert_eq!(member.rpc("create_project", &elsewhere).await.refused().code, "server_not_found");
    assert_eq!(plane.head().await, head, "nothing was saved either");

    let mut draft = both.clone();
    draft["p_execute"] = json!(null);
    member.rpc("create_project", &draft).await.ok();
    let status = async |code: &str| {
        rows(&member, &plane, &format!("/api/v_projects?project_code=eq.{code}")).await[0]["status"].clone()
    };
    assert_eq!(status("p").await, json!("draft"));
    start_run(&member, &agent, "p").await;
    assert_eq!(status("p").await, json!("active"), "its workloads are executed one by one");

    let mut one = elsewhere;
    (one["p_project_code"], one["p_execute"]) = (json!("q"), place);
    let reply = member.rpc("create_project", &one).await.ok();
    assert_eq!((&reply["run"], &reply["run_number"]), (&json!("run/acme/q/w/1"), &json!(1)));
    assert_eq!(status("q").await, json!("active"));
    let jobs = rows(&member, &plane, "/api/v_jobs?project_code=eq.q&order=ordinal").await;
    let statuses: Vec<&Value> = jobs.iter().map(|job| &job["status"]).collect();
    assert_eq!(statuses, [&json!("queued"), &json!("pending")]);
    plane.stop().await;
}

#[tokio::test]
async fn a_clone_is_the_same_workload_but_for_what_was_changed() {
    let plane = Plane::start().await;
    let (member, other) = (plane.client(Role::Member).await, plane.client(Role::Member).await);
    library(&member, "support", PROMPTS).await.ok();
    create(&member, "p", workload(None)).await.ok();
    project(&other, "q", 1).await;
    let clone = async |client: &Client, change: fn(&mut Value)| {
        let mut args = json!({"p_project_code": "p", "p_workload_code": "w", "p_new_workload_code": "w2",
                              "p_tool_args": {"temperature": 0.5, "seed": null}, "p_prompt_source_code": "support"});
        change(&mut args);
        client.rpc("clone_workload", &args).await
    };
    let reply = clone(&member, |_| ()).await.ok();
    assert_eq!(reply["scenario_codes"], json!(["c1-isl64-osl16", "c2-isl64-osl16"]));
    let found = rows(&member, &plane, "/api/v_workloads?project_code=eq.p&order=position").await;
    let (first, second) = (&found[0], &found[1]);
    for same in ["model_code", "framework_code", "framework_version", "tool_code", "engine_args", "scenarios"]
    {
        assert_eq!(first[same], second[same], "{same}");
    }
    assert_eq!(second["tool_args"], json!({"temperature": 0.5}));
    assert_eq!(second["cloned_from"], json!("workload/acme/p/w"));
    assert_eq!((&second["prompt_source_code"], &second["runs"]), (&json!("support"), &json!(0)));
    assert_eq!(clone(&member, |_| ()).await.refused().code, "workload_exists");
    // Into another project; a change that is wrong is refused as for a new workload.
    clone(&other, |args| args["p_target_project_code"] = json!("q")).await.ok();
    let wrong = clone(&member, |args| {
        args["p_new_workload_code"] = json!("w3");
        args["p_tool_args"] = json!({"temperature": 9});
    });
    assert_eq!(wrong.await.refused().code, "bad_argument");
    let private = json!({"p_project_code": "p", "p_visibility": "private"});
    member.rpc("set_project_visibility", &private).await.ok();
    let unseen = clone(&other, |args| args["p_target_project_code"] = json!("q")).await.refused();
    assert_eq!(unseen.code, "project_not_found");
    plane.stop().await;
}
