//! Many agents at once, reporting by hand over HTTPS: what a page looks at while a large installation works. There are
//! no such GPUs here: the samples are made up, and each sample's figures say which it is.

use std::time::{SystemTime, UNIX_EPOCH};

use events::report::{AssignedJob, EnrolReply};
use events::timestamp::Timestamp;
use futures::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::CONFIG;
use crate::api::Api;
use crate::control_plane::{ControlPlane, ORG};
use crate::workloads::refserver;

/// The project that the fleet works for.
pub const PROJECT: &str = "fleet";

/// Many agents, a running job each.
pub struct Fleet {
    members: Vec<Member>,
    gpus: u32,
    /// Samples sent so far, of each job.
    pub sent: u64,
}

/// One agent and its job.
struct Member {
    api: Api,
    name: String,
    job: Value,
    attempt: u32,
    path: String,
    /// When each of its samples was taken, milliseconds since 1970.
    sampled_at: Vec<f64>,
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Timestamp::from_micros(since.as_micros() as i64).expect("before 9999")
}

impl Fleet {
    /// Enrols `jobs` agents of hosts with `gpus` GPUs and lets each run a job of its own.
    pub async fn start(plane: &ControlPlane, admin: &Api, jobs: u32, gpus: u32) -> Self {
        let create =
            json!({"p_project_code": PROJECT, "p_name": PROJECT, "p_workloads": [refserver(&[8], 1000, 64)]});
        admin.command("create_project", &create).await;
        let mut members = Vec::new();
        for n in 0..jobs {
            members.push(Member::enrol(plane, admin, n, gpus).await);
        }
        for member in &mut members {
            member.begin(admin).await;
        }
        Self { members, gpus, sent: 0 }
    }

    /// The jobs: `org/project/workload/run/scenario`.
    pub fn jobs(&self) -> Vec<String> {
        self.members.iter().map(|m| m.path.clone()).collect()
    }

    /// Values that the page keeps of one sample of one job.
    pub fn values_of_a_sample(&self) -> u64 {
        u64::from(self.gpus) * 3 + 2
    }

    /// When each sample of a job was taken, milliseconds since 1970.
    pub fn sampled_at(&self, job: &str) -> Vec<f64> {
        self.members.iter().find(|m| m.path == job).map(|m| m.sampled_at.clone()).unwrap_or_default()
    }

    /// Every agent reports one sample and the progress of its load generator.
    pub async fn report(&mut self) {
        self.sent += 1;
        let (sent, gpus) = (self.sent, self.gpus);
        join_all(self.members.iter_mut().map(|m| m.sample(sent, gpus))).await;
    }

    /// Every agent says that it is alive and holds its job.
    pub async fn beat(&self) {
        join_all(self.members.iter().map(Member::beat)).await;
    }
}

impl Member {
    async fn enrol(plane: &ControlPlane, admin: &Api, n: u32, gpus: u32) -> Self {
        let hostname = format!("fleet-{n:02}");
        let reply = admin
            .command(
                "create_server_config_instance",
                &json!({"p_config_code": CONFIG, "p_hostname": hostname}),
            )
            .await;
        let key = nkeys::KeyPair::new_user();
        let enrolled: EnrolReply = Api::anonymous(&plane.url)
            .post(
                "/api/agent/enrol",
                &json!({"token": reply.keys["enrol_token"], "nats_public_key": key.public_key(), "agent_version": "0.1.0"}),
            )
            .await
            .ok();
        let enrolled = serde_json::to_value(enrolled).expect("JSON");
        let token = enrolled["agent_token"].as_str().expect("a token");
        let member = Self {
            api: Api::with_token(&plane.url, token),
            name: format!("{CONFIG}~{hostname}"),
            job: Value::Null,
            attempt: 0,
            path: String::new(),
            sampled_at: Vec::new(),
        };
        member.beat().await;
        let host: Vec<Value> = (0..gpus)
            .map(|gpu| json!({"gpu": gpu, "name": "Made-up GPU", "memory_total_bytes": 80_000_000_000_u64}))
            .collect();
        member
            .send(&[json!({"kind": "capabilities", "capabilities": {
                "agent_version": "0.1.0", "os": "Linux", "hostname": hostname, "cpu_model": "made up", "cpus": 64,
                "cpu_sockets": 1, "ram_total_bytes": 512_000_000_000_u64, "gpus": host,
                "executables": ["benchtrail-refserver", "metrumbench-llm"], "models": [],
            }})])
            .await;
        member
    }

    /// Starts a run on its server, claims the job and says that it runs.
    async fn begin(&mut self, admin: &Api) {
        let hostname = self.name.split('~').nth(1).unwrap_or_default();
        let start = json!({"p_project_code": PROJECT, "p_workload_code": "reference", "p_config_code": CONFIG, "p_hostname": hostname});
        admin.command("start_run", &start).await;
        let reply: Value = self.api.post("/api/agent/claim", &json!({"claim_id": Uuid::now_v7()})).await.ok();
        let payload = reply["job"]["payload"].as_str().unwrap_or_else(|| panic!("no job: {reply}"));
        let assigned: AssignedJob = serde_json::from_str(payload).expect("a job");
        (self.attempt, self.path) =
            (assigned.attempt, assigned.job.stream().as_str().trim_start_matches("job/").to_owned());
        self.job = serde_json::to_value(&assigned.job).expect("JSON");
        let attempt = self.attempt;
        self.send(&[
            json!({"kind": "serving", "job": self.job, "serving": {"attempt": attempt,
                "serve_argv": ["benchtrail-refserver"], "endpoint_urls": ["http://127.0.0.1:1"]}}),
            json!({"kind": "running", "job": self.job, "running": {"attempt": attempt,
                "tool_argv": ["metrumbench-llm"], "tool_version": "0.1.0", "ready_after_s": 0.5}}),
        ])
        .await;
    }

    async fn sample(&mut self, seq: u64, gpus: u32) {
        let at = now();
        self.sampled_at.push(at.as_micros() as f64 / 1000.0);
        let wave = |gpu: u32| 400.0 + 200.0 * ((seq as f64) / 5.0 + f64::from(gpu)).sin();
        let gpus: Vec<Value> = (0..gpus)
            .map(|gpu| {
                json!({"gpu": gpu, "power_w": wave(gpu), "utilization": 0.5, "memory_used_bytes": 60_000_000_000_u64 + seq,
                       "memory_total_bytes": 80_000_000_000_u64})
            })
            .collect();
        self.send(&[
            json!({"kind": "telemetry", "job": self.job, "attempt": self.attempt, "telemetry": {"seq": seq, "interval_ms": 1000,
                "samples": [{"at": at, "gpus": gpus, "cpus": [{"socket": 0, "utilization": 0.25}],
                             "system": {"ram_used_bytes": 90_000_000_000_u64 + seq, "ram_total_bytes": 512_000_000_000_u64}}]}}),
            json!({"kind": "progress", "job": self.job, "attempt": self.attempt, "progress": {
                "seq": seq, "phase": "running", "done": seq, "total": 1000, "failed": 0, "in_flight": 8,
                "elapsed_s": seq as f64, "completion_tokens_per_second": 1000.0 + wave(0)}}),
        ])
        .await;
    }

    async fn beat(&self) {
        let holding =
            if self.attempt > 0 { json!([{"job": self.job, "attempt": self.attempt}]) } else { json!([]) };
        let answer = self.api.post("/api/agent/heartbeat", &json!({"at": now(), "holding": holding})).await;
        assert!(answer.status.is_success(), "{answer:?}");
    }

    /// Reports, each of which must be taken.
    async fn send(&self, bodies: &[Value]) {
        let items: Vec<Value> = bodies
            .iter()
            .map(|body| json!({"event_id": Uuid::now_v7(), "at": now(), "body": body}))
            .collect();
        let batch = json!({"org": ORG, "agent": self.name, "items": items});
        let reply: Value = self.api.post("/api/agent/reports", &batch).await.ok();
        for result in reply["results"].as_array().into_iter().flatten() {
            assert!(result.to_string().contains("accepted"), "{reply} for {batch}");
        }
    }
}
