//! The other load generators against the reference server.

mod support;

use std::time::Duration;

use bench::images::synthetic;
use bench::refserver::Options;
use bench::refserver::media::{LINKED, TRANSCRIPT, linked_image};
use sha2::Digest;
use support::network::Files;
use support::{Bench, Finished, quick};

const VLM: &str = env!("CARGO_BIN_EXE_metrumbench-vlm");
const ASR: &str = env!("CARGO_BIN_EXE_metrumbench-asr");
const IMAGEGEN: &str = env!("CARGO_BIN_EXE_metrumbench-imagegen");

#[test]
fn a_vision_run_reports_its_images() {
    let bench = Bench::new(quick());
    let run = bench
        .run_tool(VLM, &["-n", "4", "-c", "2", "--max-image-dimension", "64", "--num-images-batch", "2"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.line["image_dimensions"]["64x48"], 8);
    assert_eq!(run.line["image_bytes"]["n"], 4);
    assert_eq!(run.line["image_processing_ms"]["n"], 4);
    assert_eq!(run.line["completion_tokens"]["total"], 32);
    assert!(run.stdout.contains("image preparation") && run.stdout.contains("image bytes"), "{}", run.stdout);
}

#[test]
fn a_vision_run_reads_image_files() {
    let bench = Bench::new(quick());
    std::fs::write(bench.file("a.jpg"), synthetic(30, 20, 1).unwrap()).unwrap();
    let line = format!(
        "{{\"prompt\": \"what is it\", \"image_urls\": [\"file://{}\"]}}\n",
        bench.file("a.jpg").display()
    );
    std::fs::write(bench.file("prompts.jsonl"), line).unwrap();
    let run = bench.run_tool(VLM, &["-n", "3", "--prompts", "prompts.jsonl", "--image-detail", "low"]);
    assert_eq!(run.line["image_dimensions"]["30x20"], 3, "{}", run.stderr);
    assert_eq!(run.line["prompt_words"]["total"], 9);
}

#[test]
fn an_image_that_is_missing_is_a_failed_request_not_a_crash() {
    let bench = Bench::new(quick());
    std::fs::write(bench.file("p.jsonl"), "{\"prompt\": \"x\", \"image_urls\": [\"/no/such.png\"]}\n")
        .unwrap();
    let run = bench.run_tool(VLM, &["-n", "2", "--prompts", "p.jsonl"]);
    assert_eq!(run.line["errors"]["by_type"]["request_error"], 2, "{}", run.stderr);
    assert_eq!(run.code, Some(3));
}

#[test]
fn a_client_that_needs_longer_for_its_images_than_the_server_for_its_answers_says_that_it_set_the_pace() {
    let bench = Bench::new(Options { ttft: Duration::from_millis(2), tokens: Some(1), ..quick() });
    let run = bench.run_tool(VLM, &["-n", "6", "--synthetic-image", "1600x1200"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.line["client"]["limited"], true, "{}", run.line["client"]);
    assert!(run.line["client"]["limited_reason"].is_string());
    assert!(run.summary().flags.contains(&"client_limited".to_owned()));
    // One that has time to spare says so, and how much.
    let idle = bench.run(&["-n", "4"]);
    assert!(idle.line["client"]["headroom"].as_f64().unwrap() > 1.0, "{}", idle.line["client"]);
}

#[test]
fn image_detail_is_low_or_high() {
    let bench = Bench::new(quick());
    assert_eq!(bench.run_tool(VLM, &["--image-detail", "auto"]).code, Some(2));
}

fn transcribed(options: Options, arguments: &[&str]) -> (Bench, Finished) {
    let bench = Bench::new(options);
    std::fs::write(bench.file("a.wav"), vec![7u8; 1000]).unwrap();
    std::fs::write(bench.file("b.flac"), vec![8u8; 3000]).unwrap();
    let manifest = "{\"id\": \"a\", \"path\": \"a.wav\", \"format\": \"wav\", \"duration\": 5.0}\n\
                    {\"id\": \"b\", \"path\": \"b.flac\", \"format\": \"flac\", \"duration\": 5.0}\n";
    std::fs::write(bench.file("audio.jsonl"), manifest).unwrap();
    let truth = format!(
        "{{\"id\": \"a\", \"transcript\": \"{}\"}}\n{{\"id\": \"b\", \"transcript\": \"{}\"}}\n",
        TRANSCRIPT.to_uppercase(),
        TRANSCRIPT.replace("quick", "slow")
    );
    std::fs::write(bench.file("truth-text.jsonl"), truth).unwrap();
    let all = [&["--input", "audio.jsonl", "--ground-truth", "truth-text.jsonl"], arguments].concat();
    let run = bench.run_tool(ASR, &all);
    (bench, run)
}

#[test]
fn a_transcription_run_reports_speed_and_accuracy() {
    let (_bench, run) = transcribed(Options { ttft: Duration::from_millis(50), ..quick() }, &[]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.line["requests"]["succeeded"], 2);
    assert_eq!(run.line["inference_time_source"], "wall_clock");
    assert_eq!(run.line["bytes_sent"]["total"], 4000);
    assert_eq!(run.line["formats"]["flac"], 1);
    assert_eq!(run.line["wer"]["min"], 0.0);
    assert!((run.line["wer"]["max"].as_f64().unwrap() - 100.0 / 9.0).abs() < 1e-5);
    let (rtf, time) =
        (run.line["rtf"]["min"].as_f64().unwrap(), run.line["inference_time_ms"]["min"].as_f64().unwrap());
    assert!((rtf - time / 5000.0).abs() < 1e-5, "{rtf} {time}");
    let figure = |name: &str| run.line[name].as_f64().unwrap_or_else(|| panic!("{name}"));
    let in_window = |name: &str| (figure(name) * figure("window_s")).round() as usize;
    assert_eq!(in_window("transcript_words_per_second"), 2 * TRANSCRIPT.split_whitespace().count());
    assert_eq!(in_window("transcript_characters_per_second"), 2 * TRANSCRIPT.chars().count());
    assert!(run.line["ttft_ms"].is_null());
    for shown in ["s of audio a second", "real-time factor", "inference", "word errors, %", "bytes sent"] {
        assert!(run.stdout.contains(shown), "{shown} is not in the table: {}", run.stdout);
    }
    assert!(!run.stdout.contains("tok/s"), "{}", run.stdout);
}

#[test]
fn the_servers_own_inference_time_is_preferred() {
    let options = Options { inference_time: true, ttft: Duration::from_millis(50), ..quick() };
    let (_bench, run) = transcribed(options, &["-n", "4", "-c", "2"]);
    assert_eq!(run.line["inference_time_source"], "server");
    assert_eq!(run.line["rtf"]["p50"], 0.01);
    assert_eq!(run.line["words_per_second"]["p50"], 180.0);
}

#[test]
fn every_response_format_is_read() {
    for format in ["verbose_json", "json", "text", "srt", "vtt"] {
        let (_bench, run) = transcribed(quick(), &["--response-format", format]);
        assert_eq!(run.line["wer"]["min"], 0.0, "{format}: {}", run.stderr);
    }
}

#[test]
fn remote_audio_is_fetched_once_and_kept() {
    let files = Files::serve(vec![("/a.wav", vec![7; 1000])]);
    let bench = Bench::new(quick());
    let line = format!(
        "{{\"id\": \"a\", \"url\": \"{}/a.wav\", \"format\": \"wav\", \"duration\": 5.0}}\n",
        files.url
    );
    std::fs::write(bench.file("m.jsonl"), line).unwrap();
    for _ in 0..2 {
        let run = bench.run_tool(ASR, &["--input", "m.jsonl", "-n", "3", "--cache-dir", "cache"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!(run.line["bytes_sent"]["total"], 3000);
    }
    assert_eq!(files.times_asked(), 1);
}

#[test]
fn remote_images_are_fetched_once_before_the_run() {
    let files = Files::serve(vec![("/a.jpg", synthetic(30, 20, 1).unwrap())]);
    let bench = Bench::new(quick());
    let line = format!("{{\"prompt\": \"what is it\", \"image_urls\": [\"{}/a.jpg\"]}}\n", files.url);
    std::fs::write(bench.file("p.jsonl"), line.repeat(2)).unwrap();
    let run = bench.run_tool(VLM, &["-n", "6", "-c", "2", "--prompts", "p.jsonl"]);
    assert_eq!(run.line["image_dimensions"]["30x20"], 6, "{}", run.stderr);
    assert_eq!(files.times_asked(), 1);
}

#[test]
fn of_images_that_the_server_fetches_itself_size_and_dimensions_are_known_or_why_they_are_not() {
    let image = synthetic(30, 20, 1).unwrap();
    let files = Files::serve(vec![("/a.jpg", image.clone()), ("/page", b"<html>".to_vec())]);
    let bench = Bench::new(quick());
    let line = |names: &[&str]| {
        let urls: Vec<String> = names.iter().map(|name| format!("{}/{name}", files.url)).collect();
        serde_json::json!({"prompt": "what is it", "image_urls": urls}).to_string() + "\n"
    };
    std::fs::write(bench.file("p.jsonl"), line(&["a.jpg", "a.jpg"])).unwrap();
    let arguments = ["-n", "3", "-c", "2", "--prompts", "p.jsonl", "--image-transport", "url"];
    let run = bench.run_tool(VLM, &arguments);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.line["image_dimensions"]["30x20"], 6);
    assert_eq!(run.line["image_bytes"]["total"], 6 * image.len());
    assert_eq!(bench.request_log()[0]["image_bytes"], 2 * image.len());
    assert_eq!(files.times_asked(), 1, "once, whatever the number of requests");

    std::fs::write(bench.file("p.jsonl"), line(&["a.jpg", "gone.jpg", "page"])).unwrap();
    let run = bench.run_tool(VLM, &arguments);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.line["image_bytes"].is_null(),
        "a sum without two of the images: {}",
        run.line["image_bytes"]
    );
    assert_eq!(run.line["image_dimensions"]["30x20"], 3);
    assert_eq!(run.line["image_errors"]["HTTP status 404"], 3);
    assert_eq!(run.line["image_errors"].as_object().unwrap().len(), 2, "{}", run.line["image_errors"]);
    assert!(run.summary().flags.contains(&"images_unknown".to_owned()));
    let line = bench.request_log().pop().unwrap();
    assert!(line["image_bytes"].is_null() && line["image_dimensions"][1].is_null(), "{line}");
    assert_eq!(line["image_unknown_reasons"][0], "HTTP status 404");

    let asked = files.times_asked();
    let run = bench.run_tool(VLM, &[&arguments[..], &["--fetch-timeout", "0"]].concat());
    assert_eq!((run.code, files.times_asked()), (Some(0), asked));
    assert_eq!(run.line["image_errors"]["not fetched (--fetch-timeout 0)"], 9);
}

#[test]
fn where_networks_are_named_nothing_else_is_asked_and_no_server_is_told_to() {
    let files = Files::serve(vec![("/a.jpg", synthetic(30, 20, 1).unwrap()), ("/a.wav", vec![7; 1000])]);
    let bench = Bench::new(quick());
    let image = format!("{{\"prompt\": \"what is it\", \"image_urls\": [\"{}/a.jpg\"]}}\n", files.url);
    std::fs::write(bench.file("p.jsonl"), image).unwrap();
    let audio = format!("{{\"id\": \"a\", \"url\": \"{}/a.wav\", \"format\": \"wav\"}}\n", files.url);
    std::fs::write(bench.file("m.jsonl"), audio).unwrap();
    // The endpoint alone: one port of this host.
    let endpoint = bench.server.address.to_string();
    let only = ["-n", "2", "--allowed-networks", &endpoint];
    for (tool, arguments) in [
        (VLM, &["--prompts", "p.jsonl"][..]),
        (VLM, &["--prompts", "p.jsonl", "--image-transport", "url"]),
        (ASR, &["--input", "m.jsonl", "--cache-dir", "cache"]),
    ] {
        let run = bench.run_tool(tool, &[&only[..], arguments].concat());
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains("127.0.0.1, which is not public"), "{arguments:?}: {}", run.stderr);
    }
    let prompts = format!("{}/p.jsonl", files.url);
    assert_eq!(bench.run(&[&only[..], &["--prompts", &prompts]].concat()).code, Some(2));
    assert_eq!(files.times_asked(), 0);
    assert!(bench.truth().is_empty(), "no request was sent either");

    assert_eq!(bench.run(&only).code, Some(0));
    let elsewhere = bench.run(&["-n", "2", "-m", "x", "--allowed-networks", "10.0.0.0/8"]);
    assert_eq!(elsewhere.code, Some(2), "the endpoint itself: {}", elsewhere.stderr);
    let all = ["-n", "2", "--allowed-networks", "127.0.0.0/8", "--prompts", "p.jsonl"];
    assert_eq!(bench.run_tool(VLM, &all).code, Some(0));
}

#[test]
fn prompts_may_be_at_an_address_and_a_missing_one_is_refused() {
    let files = Files::serve(vec![("/p.jsonl", b"{\"prompt\": \"one two three\"}\n".to_vec())]);
    let bench = Bench::new(quick());
    let place = format!("{}/p.jsonl", files.url);
    let run = bench.run(&["-n", "2", "--prompts", &place]);
    assert_eq!(run.line["prompt_words"]["total"], 6, "{}", run.stderr);
    let missing = bench.run(&["-n", "2", "--prompts", &place.replace("p.jsonl", "q.jsonl")]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("404"), "{}", missing.stderr);
}

#[test]
fn transcripts_of_other_samples_are_refused() {
    let bench = Bench::new(quick());
    std::fs::write(bench.file("a.wav"), [7u8; 10]).unwrap();
    std::fs::write(bench.file("m.jsonl"), "{\"id\": \"a\", \"path\": \"a.wav\"}\n").unwrap();
    std::fs::write(bench.file("t.jsonl"), "{\"id\": \"b\", \"transcript\": \"x\"}\n").unwrap();
    let run = bench.run_tool(ASR, &["--input", "m.jsonl", "--ground-truth", "t.jsonl"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("none of its ids"), "{}", run.stderr);
}

#[test]
fn a_manifest_without_path_or_url_is_refused() {
    let bench = Bench::new(quick());
    std::fs::write(bench.file("m.jsonl"), "{\"id\": \"a\"}\n").unwrap();
    assert_eq!(bench.run_tool(ASR, &["--input", "m.jsonl"]).code, Some(2));
}

#[test]
fn an_image_run_checks_and_keeps_every_image() {
    let bench = Bench::new(quick());
    let arguments = [
        "-c",
        "2",
        "--n",
        "2",
        "--size",
        "64x32",
        "--artifact-dir",
        "images",
        "--save-raw",
        "--summary",
        "summary.jsonl",
        "--data-log",
        "data.jsonl",
    ];
    let run = bench.run_tool(IMAGEGEN, &arguments);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.line["schema"], "metrumbench-imagegen.summary.v1");
    assert_eq!(run.line["requests"]["succeeded"], 8, "max(4, 2 × 4) requests");
    assert_eq!((&run.line["images_requested"], &run.line["images_returned"]), (&16.into(), &16.into()));
    let window = run.line["window_s"].as_f64().unwrap();
    for shown in ["images/s", "megapixels/s", "16 images of 16 asked for", "bytes of an image"] {
        assert!(run.stdout.contains(shown), "{shown} is not in the table: {}", run.stdout);
    }
    let megapixels = run.line["megapixels_per_second"].as_f64().unwrap();
    assert!((megapixels - 16.0 * 64.0 * 32.0 / 1e6 / window).abs() < 1e-3 * megapixels, "{megapixels}");
    let data = std::fs::read_to_string(bench.file("data.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(data.lines().next().unwrap()).unwrap();
    assert_eq!(first["schema"], "metrumbench-imagegen.request.v1");
    let artifact = &first["artifacts"][0];
    let bytes = std::fs::read(bench.file("").join(artifact["path"].as_str().unwrap())).unwrap();
    let hash: String = sha2::Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(artifact["sha256"], hash);
    assert_eq!((&artifact["width"], &artifact["mime_type"]), (&64.into(), &"image/jpeg".into()));
}

/// An image run whose answers hold links.
fn linked(shape: &str, arguments: &[&str]) -> (Bench, Finished) {
    let bench = Bench::new(Options { shape: shape.parse().unwrap(), ..quick() });
    let files = ["--summary", "summary.jsonl", "--data-log", "requests.jsonl", "--artifact-dir", "images"];
    let wanted = ["-c", "2", "--n", "2", "--size", "48x32", "--response-format", "url"];
    let run = bench.run_tool(IMAGEGEN, &[&files[..], &wanted, arguments].concat());
    (bench, run)
}

#[test]
fn linked_images_are_fetched_after_the_load_and_described() {
    let (bench, run) = linked("ok", &["--warmup-requests", "1"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!((&run.line["images_returned"], &run.line["image_size_bytes"]["n"]), (&16.into(), &16.into()));
    let window = run.line["window_s"].as_f64().unwrap();
    let megapixels = run.line["megapixels_per_second"].as_f64().unwrap();
    assert!((megapixels - 16.0 * 48.0 * 32.0 / 1e6 / window).abs() < 1e-3 * megapixels, "{megapixels}");
    let log = bench.request_log();
    assert_eq!(log.len(), 9);
    for line in log.iter().filter(|line| line["phase"] == "measured") {
        for artifact in line["artifacts"].as_array().unwrap() {
            let link = url::Url::parse(artifact["url"].as_str().unwrap()).unwrap();
            assert_eq!(link.query(), Some("[redacted]"), "what signs a link is a credential");
            let image = linked_image(link.path()).unwrap();
            assert_eq!(artifact["sha256"], bench::links::sha256(&image));
            assert_eq!((&artifact["size_bytes"], &artifact["width"]), (&image.len().into(), &48.into()));
            assert_eq!(artifact["mime_type"], "image/jpeg");
            assert_eq!(
                std::fs::read(bench.file("").join(artifact["path"].as_str().unwrap())).unwrap(),
                image
            );
            assert!(artifact["unknown_reason"].is_null());
        }
    }
    // Not one of them while anything was measured; those of the warm-up not at all.
    let ended = log.iter().filter_map(|line| line["ended_unix_ns"].as_u64()).max().unwrap();
    let fetched: Vec<u64> = bench
        .truth()
        .iter()
        .filter(|truth| truth.shape == LINKED)
        .map(|truth| truth.received_unix_ns)
        .collect();
    assert_eq!(fetched.len(), 16);
    assert!(fetched.iter().all(|at| *at >= ended), "{ended}: {fetched:?}");
}

#[test]
fn an_image_that_its_link_does_not_lead_to_is_null_with_a_reason() {
    for (shape, arguments, reason) in [
        ("cut", &[][..], "HTTP status 404"),
        ("bad-json", &[], "169.254.169.254 is not where a link of this endpoint may lead"),
        ("ok", &["--fetch-timeout", "0"], "not fetched (--fetch-timeout 0)"),
        ("stall", &["--fetch-timeout", "0.2"], "there was no time left to fetch it (--fetch-timeout)"),
    ] {
        let (bench, run) = linked(shape, arguments);
        assert_eq!(run.code, Some(0), "{shape}: {}", run.stderr);
        assert_eq!(
            (&run.line["requests"]["succeeded"], &run.line["images_returned"]),
            (&8.into(), &16.into())
        );
        assert_eq!(run.line["artifact_errors"][reason], 16, "{}", run.line["artifact_errors"]);
        for unknown in ["megapixels_per_second", "image_size_bytes"] {
            assert!(run.line[unknown].is_null(), "{unknown}");
        }
        assert!(run.summary().flags.contains(&"images_unknown".to_owned()));
        let artifact = &bench.request_log()[0]["artifacts"][0];
        assert_eq!(artifact["unknown_reason"], reason);
        assert!(artifact["sha256"].is_null() && artifact["url"].is_string(), "{artifact}");
    }
}

#[test]
fn image_failures_have_the_seven_classes() {
    for (shape, kind) in [
        ("bad-json", "decode_error"),
        ("cut", "decode_error"),
        ("empty", "schema_error"),
        ("html", "schema_error"),
        ("status-500", "http_error"),
        ("refuse", "connection_error"),
    ] {
        let bench = Bench::new(Options { shape: shape.parse().unwrap(), ..quick() });
        let run = bench.run_tool(IMAGEGEN, &["-n", "2", "--size", "16x16", "--summary", "summary.jsonl"]);
        assert_eq!(run.line["errors"]["by_type"][kind], 2, "{shape}: {}", run.line["errors"]);
        assert_eq!(run.line["success_rate"], 0.0);
    }
}

#[test]
fn a_failed_image_request_is_tried_again_as_often_as_asked() {
    let bench = Bench::new(Options { shape: "status-503".parse().unwrap(), ..quick() });
    let arguments = [
        "-n",
        "1",
        "--retries",
        "2",
        "--retry-backoff",
        "0.01",
        "--size",
        "16x16",
        "--summary",
        "summary.jsonl",
        "--data-log",
        "data.jsonl",
    ];
    bench.run_tool(IMAGEGEN, &arguments);
    let data = std::fs::read_to_string(bench.file("data.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(data.lines().next().unwrap()).unwrap();
    assert_eq!(line["attempts"].as_array().unwrap().len(), 3);
}
