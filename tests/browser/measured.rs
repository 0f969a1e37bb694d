//! A plant with results: the reference server measured at several concurrencies, twice, and with another setting.

use serde_json::{Value, json};
use support::agent::Agent;
use support::api::Api;
use support::browser::{Browser, Window};
use support::control_plane::ControlPlane;
use support::live::Live;
use support::workloads::refserver;

/// The project that was measured.
pub const PROJECT: &str = "sizing";
/// The host it was measured on.
pub const HOST: &str = "bench-host";

/// A plant, its agent, and who reads.
pub struct Measured {
    pub plane: ControlPlane,
    pub admin: Api,
    _agent: Agent,
}

impl Measured {
    /// Measures: `fast` at concurrency 1, 2 and 4 in two runs, `slow` at 1 and 2 in one.
    pub async fn start() -> Self {
        let plane = ControlPlane::start().await;
        let admin = plane.admin().await;
        let agent = Agent::start(&plane, &admin, HOST).await;
        let mut server = Live::open(&admin, "main:server", 0).await;
        server.until("the server online", |e| e.payload["state"] == "online").await;
        let workload = |code: &str, concurrency: &[u32], itl_ms: u32| {
            let mut workload = refserver(concurrency, 24, 8);
            workload["p_workload_code"] = json!(code);
            workload["p_engine_args"] = json!({"ttft_ms": 20, "itl_ms": itl_ms});
            workload
        };
        let (run, position) = agent.execute(&admin, PROJECT, workload("fast", &[1, 2, 4], 3)).await;
        finished(&admin, &run, position).await;
        let add = json!({"p_project_code": PROJECT, "p_workload": workload("slow", &[1, 2], 12)});
        admin.command("create_workload", &add).await;
        for code in ["fast", "slow"] {
            let start = json!({"p_project_code": PROJECT, "p_workload_code": code, "p_config_code": "local-cpu", "p_hostname": HOST});
            let reply = admin.command("start_run", &start).await;
            finished(&admin, reply.keys["run"].as_str().expect("a run"), reply.position).await;
        }
        Self { plane, admin, _agent: agent }
    }

    /// A signed-in browser.
    pub async fn browser(&self, window: Window) -> Browser {
        let browser = Browser::open(&self.plane.url, window).await;
        let (email, password) = self.plane.first_sign_in();
        browser.sign_in(&email, &password).await;
        browser
    }
}

/// Waits for the end of a run.
pub async fn finished(admin: &Api, run: &str, position: i64) {
    let mut live = Live::open(admin, &format!("main/{PROJECT}:run"), position).await;
    let events =
        live.until("the end of the run", |e| e.event_type == "run.finished" && e.stream == run).await;
    let end = events.last().expect("the end");
    assert_eq!(end.payload["outcome"], Value::from("completed"), "{end:?}");
}
