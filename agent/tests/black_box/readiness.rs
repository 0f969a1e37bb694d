//! When a model server counts as ready: stand-ins that answer what each kind of real server answers, and nothing else.

use events::report::ReportBody;
use events::tool_output::LogSource;
use serde_json::{Value, json};

use crate::support::agent::Agent;
use crate::support::control_plane::ControlPlane;
use crate::support::jobs::{job, tool};

/// A server of speech, of images, of text by name, one that has to fetch its model first, or one that needs another
/// process beside it.
const SERVER: &str = r#"#!/usr/bin/env python3
import http.server, json, os, sys, time, urllib.request
kind = sys.argv[1]
if kind == "pull":
    print("pulling", sys.argv[2], "into", os.environ["FETCHED"], flush=True)
    if sys.argv[2] == "nowhere":
        sys.exit("no such model")
    open(os.environ["FETCHED"], "w").write(sys.argv[2])
    sys.exit(0)
port = int(sys.argv[sys.argv.index("--port") + 1])
if kind == "slow":
    time.sleep(0.7)
if kind == "beside":
    # As a connector that wants its cache server now.
    urllib.request.urlopen(sys.argv[sys.argv.index("--needs") + 1])
def models():
    if kind != "fetches":
        return ["test/model"]
    try:
        return [open(os.environ["FETCHED"]).read()]
    except FileNotFoundError:
        return []
class Handler(http.server.BaseHTTPRequestHandler):
    def say(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        if self.path in ("/health", "/api/version"):
            return self.say(200, {})
        if self.path == "/v1/models":
            return self.say(200, {"data": [{"id": name} for name in models()]})
        self.say(404, {})
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if kind == "speech" and self.path == "/v1/audio/transcriptions":
            form = "multipart/form-data; boundary=" in self.headers["content-type"]
            if form and b"RIFF" in body and b'name="model"\r\n\r\ntest/model\r\n' in body:
                return self.say(200, {"text": ""})
        if kind == "images" and self.path == "/v1/images/generations":
            if json.loads(body)["size"] == "512x512":
                return self.say(200, {"data": [{"b64_json": ""}]})
        if kind in ("text", "fetches", "beside") and self.path == "/v1/chat/completions":
            name = json.loads(body)["model"]
            if name in models() or name + ":latest" in models():
                return self.say(200, {"choices": [{}]})
        self.say(400, {"error": "The model does not support this"})
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"#;

fn served(tool_code: &str, kind: &str, commands: Value) -> Value {
    let mut all = json!({
        "serve_argv": ["llama-server", kind, "--port", "{agent.port}"],
        "tool_argv": ["metrumbench-llm", "--url={agent.base_url}", "--model=test/model"],
        "readiness_path": "/health", "readiness_timeout_s": 20, "job_timeout_s": 120, "templates": []
    });
    for (key, value) in commands.as_object().unwrap() {
        all[key] = value.clone();
    }
    let mut job = job("c1", all);
    job["workload"]["tool_code"] = json!(tool_code);
    job
}

/// The report that says that the load began.
async fn running(job: &Value) -> (ControlPlane, Agent) {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool("summary"), SERVER).await;
    plane.queue(job);
    agent.run();
    let ReportBody::Running { running, .. } = plane.until_reported("running").await.body else { panic!() };
    assert!(running.ready_after_s > 0.0);
    (plane, agent)
}

async fn failed(job: &Value) -> (String, String) {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool("summary"), SERVER).await;
    plane.queue(job);
    agent.run();
    let ReportBody::Failed { failed, .. } = plane.until_reported("failed").await.body else { panic!() };
    (failed.code, failed.message)
}

#[tokio::test]
async fn a_server_of_speech_is_ready_when_it_has_transcribed() {
    running(&served("metrumbench-asr", "speech", json!({}))).await;
}

#[tokio::test]
async fn a_server_of_images_is_ready_when_it_has_made_one_of_the_size_that_is_measured() {
    let mut job = served("metrumbench-imagegen", "images", json!({}));
    job["scenario"]["image_size"] = json!("512x512");
    running(&job).await;
}

#[tokio::test]
async fn a_server_that_cannot_do_what_is_measured_does_not_become_ready() {
    let (code, message) =
        failed(&served("metrumbench-llm", "speech", json!({"readiness_timeout_s": 2}))).await;
    assert_eq!(code, "server_not_ready");
    assert!(message.contains("/v1/chat/completions answered 400"), "{message}");
}

#[tokio::test]
async fn a_server_of_another_model_does_not_become_ready() {
    let commands = json!({
        "tool_argv": ["metrumbench-llm", "--url={agent.base_url}", "--model=another"], "readiness_timeout_s": 2
    });
    let (code, message) = failed(&served("metrumbench-llm", "text", commands)).await;
    assert!(code == "server_not_ready" && message.contains("answered 400"), "{message}");
}

#[tokio::test]
async fn a_model_that_the_server_does_not_list_is_fetched_once_it_is_up() {
    let folder = tempfile::tempdir().unwrap();
    let fetched = folder.path().join("fetched");
    let job = |model: &str| {
        let mut job = served(
            "metrumbench-llm",
            "fetches",
            json!({
                "serve_env": {"FETCHED": fetched}, "readiness_path": "/api/version",
                "fetch_argv": ["llama-server", "pull", model],
                "tool_argv": ["metrumbench-llm", "--url={agent.base_url}", format!("--model={model}")],
            }),
        );
        job["workload"]["framework_code"] = json!("ollama");
        job
    };
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool("summary"), SERVER).await;
    agent.allow_env("FETCHED");
    plane.queue(&job("smollm2:135m"));
    agent.run();
    let ReportBody::Running { running, .. } = plane.until_reported("running").await.body else { panic!() };
    assert_eq!(running.served_models, ["smollm2:135m"]);
    assert_eq!(std::fs::read_to_string(&fetched).unwrap(), "smollm2:135m");
    plane.until_reported("completed").await;

    // One that is there is not fetched again; one that is nowhere says so.
    std::fs::write(&fetched, "nowhere:latest").unwrap();
    let there = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&there, &tool("summary"), SERVER).await;
    agent.allow_env("FETCHED");
    there.queue(&job("nowhere"));
    agent.run();
    there.until_reported("completed").await;
    assert!(!there.kept().lines(LogSource::Framework).iter().any(|line| line.contains("pulling")));
    std::fs::remove_file(&fetched).unwrap();
    let nowhere = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&nowhere, &tool("summary"), SERVER).await;
    agent.allow_env("FETCHED");
    nowhere.queue(&job("nowhere"));
    agent.run();
    let ReportBody::Failed { failed, .. } = nowhere.until_reported("failed").await.body else { panic!() };
    assert!(failed.message.contains("could not be fetched (exit code 1)"), "{}", failed.message);
    assert!(failed.message.contains("no such model"), "{}", failed.message);
}

#[tokio::test]
async fn a_model_server_starts_when_what_runs_beside_it_is_ready() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/health");
    let commands = |kind: &str| {
        json!({
            "serve_argv": ["llama-server", "beside", "--port", "{agent.port}", "--needs", url],
            "companions": [{
                "name": "cache", "argv": ["llama-server", kind, "--port", port.to_string()],
                "readiness_url": url, "readiness_timeout_s": 10
            }],
        })
    };
    let (plane, _agent) = running(&served("metrumbench-llm", "beside", commands("slow"))).await;
    plane.until_reported("completed").await;
    let (code, message) = failed(&served("metrumbench-llm", "beside", commands("pull"))).await;
    assert!(code == "server_exited" && message.contains("before it was started"), "{message}");
}
