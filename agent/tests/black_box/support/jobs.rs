//! Jobs, and scripts that stand in for a model server and a load generator.

use serde_json::{Value, json};

use super::control_plane::{ControlPlane, now};

/// A load generator's script: it writes progress and writes a real summary line.
pub fn tool(body: &str) -> String {
    format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo 'metrumbench-llm 9.9.9'; exit 0; }}\n\
         for a in \"$@\"; do case $a in --data-log=*) data=${{a#*=}};; --progress-file=*) progress=${{a#*=}};; \
         --request-log=*) requests=${{a#*=}};; esac; done\n\
         summary() {{ printf '%s\\n' '{}' >> \"$data\"; }}\n\
         progress() {{ printf '{{\"phase\":\"running\",\"done\":%s,\"total\":3,\"elapsed_s\":%s.5}}\\n' $1 $1 >> \"$progress\"; }}\n{body}\n",
        summary_line()
    )
}

/// A summary line as the real tool writes it.
pub fn summary_line() -> String {
    let golden = include_str!("../../../../events/tests/golden/tool_output.recorded.v2.json");
    let golden: Value = serde_json::from_str(golden).unwrap();
    let line = golden["summary"].to_string();
    assert!(!line.contains('\''), "the line has to pass through a shell script");
    line
}

/// A job on an endpoint that runs already: the stand-in itself.
pub fn endpoint_job(plane: &ControlPlane, scenario: &str) -> Value {
    job(
        scenario,
        json!({
            "serve_argv": [],
            "tool_argv": [
                "metrumbench-llm", "--url={agent.base_url}", "--data-log={agent.data_log}",
                "--progress-file={agent.progress}", "--request-log={agent.request_log}"
            ],
            "readiness_path": "", "readiness_timeout_s": 20, "job_timeout_s": 120,
            "endpoint_url": plane.url, "templates": []
        }),
    )
}

/// A job with a model server.
pub fn server_job(scenario: &str, readiness_timeout_s: u32) -> Value {
    job(
        scenario,
        json!({
            "serve_argv": ["llama-server", "--model", "{agent.model}", "--port", "{agent.port}"],
            "tool_argv": ["metrumbench-llm", "--url={agent.base_url}"],
            "readiness_path": "/health", "readiness_timeout_s": readiness_timeout_s, "job_timeout_s": 120,
            "templates": []
        }),
    )
}

/// A job with these commands.
pub fn job(scenario: &str, commands: Value) -> Value {
    json!({
        "job": {"org": "acme", "project": "p", "workload": "w", "run": 1, "scenario": scenario},
        "attempt": 1,
        "server": {"org": "acme", "config": "cpu", "hostname": "host"},
        "claimed_at": now(),
        "expires_at": now().plus_micros(600_000_000),
        "workload": {
            "model_code": "test/model", "framework_code": "openai", "framework_version": "1",
            "tool_code": "metrumbench-llm"
        },
        "scenario": {"concurrency": 1, "num_requests": 3, "streaming": true},
        "commands": commands,
        "sample_interval_ms": 200,
    })
}
