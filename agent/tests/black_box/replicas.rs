//! Several model servers on one host: real processes, each with GPUs and a port of its own, and the load on all of them.

use events::report::ReportBody;
use events::tool_output::LogSource;
use serde_json::{Value, json};

use crate::nvml::standin;
use crate::support::agent::Agent;
use crate::support::control_plane::ControlPlane;
use crate::support::jobs::{job, tool};

/// A model server that answers what readiness asks, writes down which GPUs it sees, and ends when it is told to.
const SERVER: &str = r#"#!/usr/bin/env python3
import http.server, json, os, sys
port = int(sys.argv[sys.argv.index("--port") + 1])
print("port", port, "sees", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def say(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        if self.path == "/end":
            os._exit(3)
        self.say({"data": [{"id": "test-model"}]})
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.say({"choices": [{}]})
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"#;

/// A load generator that shows which addresses it was given.
const SHOWS_ENDPOINTS: &str = r#"for a in "$@"; do case $a in --endpoints-file=*) cat "${a#*=}"; echo;; esac; done
progress 3; summary"#;

fn two_replicas(companion: &str) -> Value {
    job(
        "c1",
        json!({
            "serve_argv": ["llama-server", "--gpus={agent.gpus}", "--port", "{agent.port}"],
            "tool_argv": [
                "metrumbench-llm", "--url={agent.base_url}", "--endpoints-file={agent.endpoints}",
                "--data-log={agent.data_log}", "--progress-file={agent.progress}"
            ],
            "readiness_path": "/health", "readiness_timeout_s": 60, "job_timeout_s": 120, "templates": [],
            "replicas": 2, "gpus_per_replica": 2,
            "companions": [{"name": "companion", "argv": ["llama-server", "--port", companion]}],
        }),
    )
}

async fn on_four_gpus(plane: &ControlPlane, tool_body: &str) -> Agent {
    let mut agent = Agent::enrolled(plane, &tool(tool_body), SERVER).await;
    let values = agent.folder().join("values");
    std::fs::write(&values, "gpus 4\nname NVIDIA H100\nmemory_total 85899345920\n").unwrap();
    agent.set_env("BENCHTRAIL_NVML_LIB", standin(agent.folder()).to_str().unwrap());
    agent.set_env("NVML_STANDIN_VALUES", values.to_str().unwrap());
    agent
}

fn free_port() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

#[tokio::test]
async fn a_host_of_four_gpus_serves_two_replicas_of_two_and_loads_both() {
    let plane = ControlPlane::start().await;
    let mut agent = on_four_gpus(&plane, SHOWS_ENDPOINTS).await;
    plane.queue(&two_replicas(&free_port()));
    agent.run();
    let ReportBody::Serving { serving, .. } = plane.until_reported("serving").await.body else { panic!() };
    plane.until_reported("completed").await;
    assert_eq!(serving.gpu_sets, ["0,1", "2,3"]);
    let ports: Vec<u16> = serving
        .endpoint_urls
        .iter()
        .map(|url| url.strip_prefix("http://127.0.0.1:").unwrap().parse().unwrap())
        .collect();
    assert_eq!(ports, [ports[0], ports[0] + 1], "the base port and the replica's index");
    assert_eq!(serving.serve_argv[1..], ["--gpus=0,1".to_owned(), "--port".into(), ports[0].to_string()]);
    // The companion, then the second replica.
    assert_eq!(serving.further_argv.len(), 2);
    assert_eq!(
        serving.further_argv[1][1..],
        ["--gpus=2,3".to_owned(), "--port".into(), ports[1].to_string()]
    );

    let kept = plane.kept();
    let framework = kept.lines(LogSource::Framework);
    for (port, gpus) in ports.iter().zip(["0,1", "2,3"]) {
        assert!(framework.contains(&format!("port {port} sees {gpus}")), "{framework:?}");
    }
    let shown: Vec<Value> = serde_json::from_str(&kept.lines(LogSource::Tool)[0]).unwrap();
    let urls: Vec<&str> = shown.iter().map(|endpoint| endpoint["url"].as_str().unwrap()).collect();
    assert_eq!(urls, serving.endpoint_urls);
    for port in ports {
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "{port} is still served");
    }
}

#[tokio::test]
async fn a_replica_that_ends_while_the_load_runs_fails_the_job() {
    let plane = ControlPlane::start().await;
    // The load generator tells the last server in its file to end, and waits for what never comes.
    let ends_one = r#"for a in "$@"; do case $a in --endpoints-file=*) file=${a#*=};; esac; done
url=$(grep -o 'http://[0-9.:]*' "$file" | tail -1)
python3 -c "import urllib.request,sys; urllib.request.urlopen(sys.argv[1])" "$url/end" 2>/dev/null
trap 'summary; exit 0' INT
while :; do sleep 0.2; done"#;
    let mut agent = on_four_gpus(&plane, ends_one).await;
    let mut job = two_replicas("0");
    job["commands"]["companions"] = json!([]);
    job["commands"]["job_timeout_s"] = json!(100);
    plane.queue(&job);
    agent.run();
    let ReportBody::Failed { failed, .. } = plane.until_reported("failed").await.body else { panic!() };
    assert_eq!(failed.code, "server_exited");
    assert!(failed.message.contains("exit code 3"), "{}", failed.message);
}

#[tokio::test]
async fn a_host_with_too_few_gpus_refuses_and_starts_nothing() {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool("summary"), SERVER).await;
    let mut job = two_replicas("0");
    job["commands"]["companions"] = json!([]);
    plane.queue(&job);
    agent.run();
    let ReportBody::Failed { failed, .. } = plane.until_reported("failed").await.body else { panic!() };
    assert_eq!(failed.code, "refused");
    assert!(failed.message.contains("2 replicas of 2 GPUs"), "{}", failed.message);
}
