//! An agent as the door sees one: enrolled, reporting by hand.

use events::access::Role;
use events::keys::{JobKey, ServerKey};
use events::report::{AgentCredentials, AssignedJob, ItemOutcome};
use events::subjects::{self, IngestKind};
use events::timestamp::Timestamp;
use serde_json::{Value, json};
use server::clock;
use uuid::Uuid;

use super::{Answer, Client, ORG, Plane};

pub const CONFIG: &str = "local-cpu";

/// An enrolled agent.
pub struct Agent {
    pub server: ServerKey,
    pub client: Client,
    key: nkeys::KeyPair,
}

/// A job that the agent holds.
pub struct Held {
    pub job: JobKey,
    pub attempt: u32,
    pub claimed_at: Timestamp,
}

impl Agent {
    /// Registers a server, enrols its agent and lets it be heard once, so that it is online.
    pub async fn enrol(plane: &Plane, hostname: &str) -> Self {
        let agent = Self::enrol_silent(plane, hostname).await;
        agent.beat(&[]).await.ok();
        let capabilities = json!({"kind": "capabilities", "capabilities": {
            "agent_version": "0.1.0", "os": "Linux", "hostname": hostname, "cpu_model": "test", "cpus": 4, "cpu_sockets": 1,
            "ram_total_bytes": 16_000_000_000_u64,
            "executables": ["benchtrail-refserver", "metrumbench-llm"], "models": [],
        }});
        let outcomes = agent.report(&[(clock::now(), capabilities)]).await;
        assert!(matches!(outcomes[0], ItemOutcome::Accepted { .. }), "{outcomes:?}");
        agent
    }

    pub async fn enrol_silent(plane: &Plane, hostname: &str) -> Self {
        let admin = plane.client(Role::Admin).await;
        let args = json!({"p_config_code": CONFIG, "p_hostname": hostname});
        let reply = admin.rpc("create_server_config_instance", &args).await.ok();
        let key = nkeys::KeyPair::new_user();
        let enrolled = plane
            .anonymous()
            .post(
                "/api/agent/enrol",
                &json!({
                    "token": reply["enrol_token"], "nats_public_key": key.public_key(), "agent_version": "0.1.0"
                }),
            )
            .await
            .ok();
        let server: ServerKey = serde_json::from_value(enrolled["server"].clone()).unwrap();
        let client = Client::with_token(&plane.url, enrolled["agent_token"].as_str().unwrap());
        Self { server, client, key }
    }

    pub fn name(&self) -> String {
        self.server.agent()
    }

    /// A heartbeat.
    pub async fn beat(&self, holding: &[&Held]) -> Answer {
        let holding: Vec<Value> =
            holding.iter().map(|held| json!({"job": held.job, "attempt": held.attempt})).collect();
        self.client.post("/api/agent/heartbeat", &json!({"at": clock::now(), "holding": holding})).await
    }

    /// Claims the job that waits.
    pub async fn claim(&self) -> Option<Held> {
        let reply = self.client.post("/api/agent/claim", &json!({"claim_id": Uuid::now_v7()})).await.ok();
        let payload = reply["job"]["payload"].as_str()?;
        let assigned: AssignedJob = serde_json::from_str(payload).unwrap();
        Some(Held { job: assigned.job, attempt: assigned.attempt, claimed_at: assigned.claimed_at })
    }

    /// A batch of items, each a time and a body.
    pub fn batch(&self, items: &[(Timestamp, Value)]) -> Value {
        let items: Vec<Value> = items
            .iter()
            .map(|(at, body)| json!({"event_id": Uuid::now_v7(), "at": at, "body": body}))
            .collect();
        json!({"org": ORG, "agent": self.name(), "items": items})
    }

    /// Reports over HTTPS; gives the outcomes.
    pub async fn report(&self, items: &[(Timestamp, Value)]) -> Vec<ItemOutcome> {
        self.send(&self.batch(items)).await
    }

    pub async fn send(&self, batch: &Value) -> Vec<ItemOutcome> {
        outcomes(&self.client.post("/api/agent/reports", batch).await.ok())
    }

    /// A connection to NATS with this agent's own credentials.
    pub async fn nats(&self) -> async_nats::Client {
        let credentials = self.client.post("/api/agent/credentials", &json!({})).await.ok();
        let credentials: AgentCredentials = serde_json::from_value(credentials).unwrap();
        let key = std::sync::Arc::new(nkeys::KeyPair::from_seed(&self.key.seed().unwrap()).unwrap());
        async_nats::ConnectOptions::with_jwt(credentials.jwt.unwrap(), move |nonce| {
            let key = key.clone();
            async move { key.sign(&nonce).map_err(async_nats::AuthError::new) }
        })
        .custom_inbox_prefix(subjects::inbox_prefix(ORG, &self.name()))
        .connect(credentials.nats_url.unwrap())
        .await
        .unwrap()
    }

    /// A request over NATS on this agent's own subject.
    pub async fn ask(&self, nats: &async_nats::Client, kind: IngestKind, body: &Value) -> Value {
        let subject = subjects::ingest_subject(ORG, &self.name(), kind);
        let message = nats.request(subject, body.to_string().into()).await.unwrap();
        serde_json::from_slice(&message.payload).unwrap()
    }
}

pub fn outcomes(reply: &Value) -> Vec<ItemOutcome> {
    serde_json::from_value(reply["results"].clone()).unwrap()
}

/// The code of a rejection.
#[track_caller]
pub fn rejected(outcome: &ItemOutcome) -> &str {
    match outcome {
        ItemOutcome::Rejected { code, message, hint } => {
            assert!(!message.is_empty() && !hint.is_empty(), "{outcome:?}");
            code
        }
        other => panic!("expected a rejection: {other:?}"),
    }
}

/// Creates a project with one workload of `scenarios` scenarios on the simulator; gives its code.
pub async fn project(member: &Client, code: &str, scenarios: u32) {
    project_with(member, code, scenarios, "google/gemma-3-270m").await;
}

/// The same, of another model.
pub async fn project_with(member: &Client, code: &str, scenarios: u32, model: &str) {
    let concurrency: Vec<u32> = (1..=scenarios).collect();
    let workload = json!({
        "p_workload_code": "w", "p_model_code": model, "p_framework_code": "refserver",
        "p_framework_version": "0.1.0", "p_tool_code": "metrumbench-llm",
        "p_scenarios": {"p_concurrency": concurrency, "p_input_sequence_length": [64], "p_output_sequence_length": [16],
                        "p_num_requests": 4},
    });
    let args = json!({"p_project_code": code, "p_name": code, "p_workloads": [workload]});
    member.rpc("create_project", &args).await.ok();
}

/// Executes the project's workload on an agent's server.
pub async fn start_run(member: &Client, agent: &Agent, code: &str) -> Value {
    let args = json!({"p_project_code": code, "p_workload_code": "w", "p_config_code": CONFIG,
                      "p_hostname": agent.server.hostname});
    member.rpc("start_run", &args).await.ok()
}

/// A telemetry report of one sample.
pub fn telemetry(held: &Held, seq: u64, at: Timestamp) -> Value {
    json!({"kind": "telemetry", "job": held.job, "attempt": held.attempt, "telemetry": {
        "seq": seq, "interval_ms": 1000,
        "samples": [{"at": at, "cpus": [{"socket": 0, "utilization": 0.5}], "system": {"ram_used_bytes": 1, "ram_total_bytes": 2}}],
    }})
}

pub fn serving(held: &Held) -> Value {
    json!({"kind": "serving", "job": held.job,
           "serving": {"attempt": held.attempt, "serve_argv": ["benchtrail-refserver"], "endpoint_urls": ["http://127.0.0.1:1"]}})
}

pub fn running(held: &Held) -> Value {
    json!({"kind": "running", "job": held.job,
           "running": {"attempt": held.attempt, "tool_argv": ["metrumbench-llm"], "tool_version": "0.1.0", "ready_after_s": 0.5}})
}

pub fn failed(held: &Held) -> Value {
    json!({"kind": "failed", "job": held.job,
           "failed": {"attempt": held.attempt, "code": "tool_failed", "message": "it failed"}})
}

pub fn lines(held: &Held, first_line: u64, lines: &[&str]) -> Value {
    json!({"kind": "log", "job": held.job, "attempt": held.attempt,
           "log": {"source": "agent", "first_line": first_line, "lines": lines}})
}

impl Plane {
    /// An agent that holds the one job of a run.
    pub async fn held(&self, hostname: &str) -> (Agent, Held) {
        let (agent, held, _) = self.held_of(hostname).await;
        (agent, held)
    }

    /// The same, with the member whose project it is.
    pub async fn held_of(&self, hostname: &str) -> (Agent, Held, Client) {
        let agent = Agent::enrol(self, hostname).await;
        let member = self.client(Role::Member).await;
        project(&member, "p", 1).await;
        start_run(&member, &agent, "p").await;
        let held = agent.claim().await.expect("a job waits");
        (agent, held, member)
    }

    /// Waits until an event of this type stands after a position.
    pub async fn until_type_after(&self, position: i64, event_type: &str) {
        self.until_types_after(position, event_type, 1).await;
    }

    /// Waits until so many events of this type stand after a position.
    pub async fn until_types_after(&self, position: i64, event_type: &str, count: usize) {
        let mut head = self.state.log.watch();
        let waiting = async {
            loop {
                head.mark_unchanged();
                if self.types_after(position).await.iter().filter(|found| *found == event_type).count()
                    >= count
                {
                    return;
                }
                head.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(std::time::Duration::from_secs(20), waiting).await;
        waited.unwrap_or_else(|_| panic!("no {event_type} after {position}"));
    }

    /// The head once the run is over: what follows from a job's end is in the log.
    pub async fn settled_head(&self) -> i64 {
        self.until_type_after(0, "run.finished").await;
        self.head().await
    }
}
