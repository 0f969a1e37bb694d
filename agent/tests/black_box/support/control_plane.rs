//! A STAND-IN for the control plane, for the agent's tests only: the agent's routes over HTTP, in memory. The real one is
//! tested with the real agent elsewhere. It also answers as an OpenAI-compatible endpoint, so that a job has something to use.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use ed25519_dalek::{Signer, SigningKey};
use events::Timestamp;
use events::keys::ServerKey;
use events::report::{
    AgentCredentials, ClaimReply, ClaimRequest, EnrolReply, EnrolRequest, Heartbeat, HeartbeatReply,
    HeldAttempt, ItemOutcome, ReportBatch, ReportBody, ReportItem, ReportReply, SignedJob,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use uuid::Uuid;

/// How long a test waits for something before it says that it never happened.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the stand-in keeps.
#[derive(Default)]
pub struct Kept {
    /// Accepted reports in the order of acceptance.
    pub accepted: Vec<ReportItem>,
    /// How often each report was sent.
    pub times_sent: BTreeMap<Uuid, u32>,
    /// Uploaded blobs by their hash.
    pub blobs: BTreeMap<String, Vec<u8>>,
    /// Heartbeats.
    pub heartbeats: u64,
    jobs: VecDeque<SignedJob>,
    claims: BTreeMap<Uuid, Option<SignedJob>>,
    stop: Vec<HeldAttempt>,
    /// How far the control plane's clock is from this host's, microseconds.
    clock_off: i64,
    down: bool,
    swallow_answers: bool,
    reject: Option<&'static str>,
}

/// The stand-in.
#[derive(Clone)]
pub struct ControlPlane {
    kept: Arc<Mutex<Kept>>,
    changed: Arc<watch::Sender<u64>>,
    key: SigningKey,
    /// Its address.
    pub url: String,
}

/// Now, as the stand-in's clock has it.
pub fn now() -> Timestamp {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    Timestamp::from_micros(i64::try_from(micros).unwrap()).unwrap()
}

impl ControlPlane {
    /// Starts it on a free port.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let plane = Self {
            kept: Arc::default(),
            changed: Arc::new(watch::Sender::new(0)),
            key: SigningKey::from_bytes(&[42; 32]),
            url: format!("http://{}", listener.local_addr().unwrap()),
        };
        let router = axum::Router::new()
            .route("/healthz", get(async || "ok"))
            .route("/api/agent/enrol", post(enrol))
            .route("/api/agent/credentials", post(credentials))
            .route("/api/agent/heartbeat", post(heartbeat))
            .route("/api/agent/claim", post(claim))
            .route("/api/agent/reports", post(reports))
            .route("/api/agent/blobs/{sha256}", put(blob))
            .route("/v1/models", get(async || Json(json!({"data": [{"id": "test-model"}]}))))
            .route("/v1/chat/completions", post(async || Json(json!({"choices": [{}]}))))
            .layer(axum::extract::DefaultBodyLimit::max(64 << 20))
            .with_state(plane.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        plane
    }

    /// What it keeps.
    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }

    fn change<T>(&self, how: impl FnOnce(&mut Kept) -> T) -> T {
        let outcome = how(&mut self.kept());
        self.changed.send_modify(|n| *n += 1);
        outcome
    }

    /// Signs a job and queues it.
    pub fn queue(&self, job: &Value) {
        let payload = job.to_string();
        let signature = hex::encode(self.key.sign(payload.as_bytes()).to_bytes());
        self.change(|kept| kept.jobs.push_back(SignedJob { payload, signature }));
    }

    /// Queues a job whose signature is of another text.
    pub fn queue_forged(&self, job: &Value) {
        let signature = hex::encode(self.key.sign(b"another text").to_bytes());
        self.change(|kept| kept.jobs.push_back(SignedJob { payload: job.to_string(), signature }));
    }

    /// From now on nothing is answered but 503.
    pub fn go_down(&self) {
        self.change(|kept| kept.down = true);
    }

    /// Tells from now on a time that is so many microseconds ahead of this host's.
    pub fn set_clock_off(&self, micros: i64) {
        self.change(|kept| kept.clock_off = micros);
    }

    /// Answers again.
    pub fn come_back(&self) {
        self.change(|kept| kept.down = false);
    }

    /// Takes reports and loses the answers.
    pub fn swallow_answers(&self, yes: bool) {
        self.change(|kept| kept.swallow_answers = yes);
    }

    /// Rejects every report of a kind.
    pub fn reject(&self, kind: &'static str) {
        self.change(|kept| kept.reject = Some(kind));
    }

    /// Tells the agent with its next heartbeat to stop an attempt.
    pub fn stop(&self, held: HeldAttempt) {
        self.change(|kept| kept.stop.push(held));
    }

    /// Waits until something is so.
    pub async fn until<T>(&self, what: &str, mut look: impl FnMut(&Kept) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        let found = async {
            loop {
                if let Some(found) = look(&self.kept()) {
                    return found;
                }
                changed.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(PATIENCE, found).await {
            Ok(found) => found,
            Err(_) => panic!("{what} did not happen; there were: {:?}", self.kinds()),
        }
    }

    /// Waits for a report of a kind and gives it.
    pub async fn until_reported(&self, kind: &str) -> ReportItem {
        self.until(kind, |kept| kept.accepted.iter().find(|item| item.body.kind() == kind).cloned()).await
    }

    /// The kinds of the accepted reports, in order, each run of equal ones as one.
    pub fn kinds(&self) -> Vec<&'static str> {
        let mut kinds: Vec<&'static str> = self.kept().accepted.iter().map(|i| i.body.kind()).collect();
        kinds.dedup();
        kinds
    }
}

impl Kept {
    /// How often work was asked for.
    pub fn claims(&self) -> usize {
        self.claims.len()
    }

    /// The `seq` of every accepted telemetry report, in order of acceptance.
    pub fn telemetry_seqs(&self) -> Vec<u64> {
        let seq = |item: &ReportItem| match &item.body {
            ReportBody::Telemetry { telemetry, .. } => Some(telemetry.seq),
            _ => None,
        };
        self.accepted.iter().filter_map(seq).collect()
    }

    /// The lines of a log, in order.
    pub fn lines(&self, source: events::tool_output::LogSource) -> Vec<String> {
        let mut lines = Vec::new();
        for item in &self.accepted {
            if let ReportBody::Log { log, .. } = &item.body
                && log.source == source
            {
                assert_eq!(log.first_line, lines.len() as u64 + 1, "line numbers have a gap");
                lines.extend(log.lines.iter().cloned());
            }
        }
        lines
    }
}

fn unavailable() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"code": "down", "message": "down for a test"})))
        .into_response()
}

async fn enrol(State(plane): State<ControlPlane>, Json(ask): Json<EnrolRequest>) -> Response {
    if ask.token != "bt_e_good" || !ask.nats_public_key.starts_with('U') {
        let error = json!({"code": "token_unknown", "message": "no such token", "hint": "make a new one"});
        return (StatusCode::UNAUTHORIZED, Json(error)).into_response();
    }
    Json(EnrolReply {
        org: "acme".into(),
        agent: "cpu~host".into(),
        server: ServerKey { org: "acme".into(), config: "cpu".into(), hostname: "host".into() },
        agent_token: "bt_a_secret-of-the-agent".into(),
        job_signing_key: hex::encode(plane.key.verifying_key().to_bytes()),
    })
    .into_response()
}

async fn credentials() -> Json<AgentCredentials> {
    Json(AgentCredentials { nats_url: None, jwt: None, expires_at: now() })
}

async fn heartbeat(State(plane): State<ControlPlane>, Json(_): Json<Heartbeat>) -> Response {
    if plane.kept().down {
        return unavailable();
    }
    let (stop, work_waiting, clock_off) = plane.change(|kept| {
        kept.heartbeats += 1;
        (kept.stop.clone(), !kept.jobs.is_empty(), kept.clock_off)
    });
    Json(HeartbeatReply { at: now().plus_micros(clock_off), stop, work_waiting, error: None }).into_response()
}

async fn claim(State(plane): State<ControlPlane>, Json(ask): Json<ClaimRequest>) -> Response {
    if plane.kept().down {
        return unavailable();
    }
    let job = plane.change(|kept| {
        if let Some(again) = kept.claims.get(&ask.claim_id) {
            return again.clone();
        }
        let job = kept.jobs.pop_front();
        kept.claims.insert(ask.claim_id, job.clone());
        job
    });
    Json(ClaimReply { job, error: None }).into_response()
}

async fn reports(State(plane): State<ControlPlane>, Json(batch): Json<ReportBatch>) -> Response {
    if plane.kept().down {
        return unavailable();
    }
    let (results, swallow) = plane.change(|kept| {
        let results = batch.items.into_iter().map(|item| take(kept, item)).collect();
        (results, kept.swallow_answers)
    });
    if swallow {
        return unavailable();
    }
    Json(ReportReply { results, error: None }).into_response()
}

fn take(kept: &mut Kept, item: ReportItem) -> ItemOutcome {
    *kept.times_sent.entry(item.event_id).or_default() += 1;
    if let Some(at) = kept.accepted.iter().position(|known| known.event_id == item.event_id) {
        assert_eq!(kept.accepted[at], item, "the same id came with other content");
        return ItemOutcome::Duplicate { position: at as i64 + 1 };
    }
    if kept.reject == Some(item.body.kind()) {
        return ItemOutcome::Rejected {
            code: "for_a_test".into(),
            message: "rejected for a test".into(),
            hint: String::new(),
        };
    }
    if let ReportBody::Blob { blob, .. } = &item.body {
        assert!(kept.blobs.contains_key(&blob.sha256), "a blob was reported before it was stored");
    }
    kept.accepted.push(item);
    ItemOutcome::Accepted { position: kept.accepted.len() as i64 }
}

async fn blob(State(plane): State<ControlPlane>, Path(sha256): Path<String>, body: Bytes) -> Response {
    if plane.kept().down {
        return unavailable();
    }
    if hex::encode(Sha256::digest(&body)) != sha256 {
        return (StatusCode::BAD_REQUEST, Json(json!({"code": "hash", "message": "not its hash"})))
            .into_response();
    }
    plane.change(|kept| kept.blobs.insert(sha256, body.to_vec()));
    StatusCode::CREATED.into_response()
}
