//! A log with stories in it, the projections over it, and ways to ask.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::time::Duration;

use events::canonical::CanonicalJson;
use events::catalogue::{ModelRegistered, ToolRegistered};
use events::envelope::{Actor, ActorKind, NewEvent};
use events::job::{
    EngineArgsSetRef, JobClaimed, JobCompleted, JobCreated, JobQueued, JobRunning, JobServing,
    ResolvedCommands,
};
use events::keys::{JobKey, ProjectKey, RunKey, ServerKey, StreamKey};
use events::project::{ProjectCreated, ProjectVisibility, ProjectVisibilityChanged};
use events::quality::QualityFlagged;
use events::run::{RunCreated, RunFinished, RunOutcome};
use events::server_host::{GpuInfo, HostCapabilities, ServerCapabilitiesReported, ServerRegistered};
use events::summary::{
    Client, CountStats, Distribution, Figures, Host, PERCENTILE_METHOD, RequestCounts, SUMMARY_SCHEMA,
    Summary, Throughput,
};
use events::system::BlobStored;
use events::telemetry::{CpuSample, GpuSample, SystemSample, TelemetrySample, TelemetrySampled, TpuSample};
use events::tool_output::{LogLines, LogSource, ProgressReported, ToolInvocation, ToolOutputRecorded};
use events::workload::{ScenarioDefined, ScenarioSpec, WorkloadCreated, WorkloadSpec};
use events::{Event, Timestamp};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use server::auth::{Principal, Visibility};
use server::log::{AppendOutcome, AppendRequest, Expected, Log};
use server::projections::{self, Handle};
use server::queries;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::common::Cluster;

/// A database with a log, projections that follow it, and a reader.
pub struct Read {
    pub log: Log,
    pub pool: PgPool,
    pub reader: PgPool,
    pub projections: Handle,
    pub stop: CancellationToken,
    pub url: String,
}

impl Drop for Read {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Read {
    pub async fn start(cluster: &Cluster, database: &str) -> Self {
        let url = cluster.database(database).await;
        let log = cluster.log(database).await;
        let pool = server::state::pool(&url, "benchtrail_app", 16).await.unwrap();
        let reader = server::state::pool(&url, "benchtrail_reader", 8).await.unwrap();
        let stop = CancellationToken::new();
        let projections = projections::start(pool.clone(), log.clone(), stop.clone()).await.unwrap();
        Self { log, pool, reader, projections, stop, url }
    }

    /// Appends events to one stream and returns the last position.
    pub async fn append(&self, stream: &StreamKey, events: Vec<NewEvent>) -> i64 {
        let request = AppendRequest::one(stream.clone(), Expected::Any, events);
        match self.log.append(request).await.unwrap() {
            AppendOutcome::Appended { last, .. } => last,
            other => panic!("not appended: {other:?}"),
        }
    }

    /// Waits until the read tables have everything.
    pub async fn settle(&self) -> i64 {
        let head = self.log.head().await.unwrap().position;
        let waited = self.projections.wait_for(head, Duration::from_secs(60)).await;
        waited.unwrap_or_else(|behind| panic!("{behind}: {:?}", self.projections.status()));
        head
    }

    /// The answer to a query of a view: status, headers, body.
    pub async fn ask(
        &self,
        who: &Visibility,
        view: &str,
        query: &str,
        headers: &[(&'static str, &str)],
    ) -> (u16, HeaderMap, String) {
        let headers: HeaderMap = headers
            .iter()
            .map(|(k, v)| (HeaderName::from_static(k), HeaderValue::from_str(v).unwrap()))
            .collect();
        let (status, headers, body) = self.bytes(who, view, query, &headers, &http::Method::GET).await;
        (status, headers, String::from_utf8(body).unwrap())
    }

    /// The same, as bytes and by any method.
    pub async fn bytes(
        &self,
        who: &Visibility,
        view: &str,
        query: &str,
        headers: &HeaderMap,
        method: &http::Method,
    ) -> (u16, HeaderMap, Vec<u8>) {
        let source =
            queries::view::Source { reader: &self.reader, log: &self.log, projections: &self.projections };
        let answer = queries::view::query(source, who, view, query, headers, method).await;
        let response = answer.unwrap_or_else(axum::response::IntoResponse::into_response);
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        (parts.status.as_u16(), parts.headers, body.to_vec())
    }

    /// The rows of a view.
    pub async fn rows(&self, who: &Visibility, view: &str, query: &str) -> Vec<Value> {
        let (status, _, body) = self.ask(who, view, query, &[]).await;
        assert!(status < 300, "{view}?{query}: {status} {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// The only row of a view.
    pub async fn row(&self, who: &Visibility, view: &str, query: &str) -> Value {
        let rows = self.rows(who, view, query).await;
        assert_eq!(rows.len(), 1, "{view}?{query}: {rows:?}");
        rows.into_iter().next().unwrap()
    }
}

/// A person of an organisation.
pub fn person(org: &str, user: &str) -> Visibility {
    let role = events::access::Role::Admin;
    Principal::User { id: user.into(), org: org.into(), role }.visibility()
}

pub fn anonymous() -> Visibility {
    Principal::Anonymous.visibility()
}

/// A moment of the story, in seconds after its beginning.
pub fn at(seconds: f64) -> Timestamp {
    Timestamp::from_micros(1_780_000_000_000_000 + (seconds * 1e6) as i64).unwrap()
}

pub fn event(stream: &StreamKey, seconds: f64, event: &Event) -> NewEvent {
    NewEvent {
        event_id: Uuid::now_v7(),
        event_type: event.event_type().to_owned(),
        schema_version: event.schema_version(),
        org: stream.org().to_owned(),
        actor: Actor { kind: ActorKind::User, id: "ada".to_owned() },
        causation_id: None,
        correlation_id: None,
        occurred_at: at(seconds),
        payload: CanonicalJson::of(&event.payload().unwrap()).unwrap(),
    }
}

/// One workload with its scenarios, executed once.
#[derive(Debug, Clone)]
pub struct Story {
    pub org: String,
    pub project: String,
    pub owner: String,
    pub visibility: ProjectVisibility,
    pub concurrencies: Vec<u32>,
    pub gpus: u32,
    /// The tool of its jobs.
    pub tool: &'static str,
    /// An endpoint that runs already.
    pub endpoint: Option<&'static str>,
    /// Seconds of load, and telemetry samples.
    pub seconds: u32,
    /// Watts of each GPU.
    pub watts: f64,
    /// Samples that never arrive.
    pub lost_samples: Vec<u64>,
    /// Samples from which the last GPU is missing.
    pub one_gpu_short: Vec<u64>,
    /// Lines of progress of each job.
    pub progress: u64,
    /// Seconds after the load ended until the agent read its summary, which says when the window was. None: it read it
    /// at once, and the summary says nothing, as the first ones did.
    pub read_late: Option<f64>,
    /// The run's number.
    pub run: u32,
    /// Tokens generated by each job.
    pub tokens: u64,
    /// Whether the reference server answered.
    pub simulated: bool,
    /// Whether the results are doubted.
    pub flagged: bool,
}

impl Default for Story {
    fn default() -> Self {
        Self {
            org: "acme".into(),
            project: "p1".into(),
            owner: "ada".into(),
            visibility: ProjectVisibility::Organization,
            concurrencies: vec![1, 8],
            gpus: 2,
            tool: "metrumbench-llm",
            endpoint: None,
            seconds: 30,
            watts: 300.0,
            lost_samples: Vec::new(),
            one_gpu_short: Vec::new(),
            progress: 5,
            read_late: None,
            run: 1,
            tokens: 50_000,
            simulated: false,
            flagged: true,
        }
    }
}

impl Story {
    pub fn project(&self) -> ProjectKey {
        ProjectKey { org: self.org.clone(), project: self.project.clone() }
    }

    pub fn run(&self) -> RunKey {
        RunKey { org: self.org.clone(), project: self.project.clone(), workload: "w1".into(), run: self.run }
    }

    pub fn server(&self) -> ServerKey {
        ServerKey { org: self.org.clone(), config: "h100x2".into(), hostname: "gpu-1".into() }
    }

    fn scenario(&self, concurrency: u32) -> ScenarioSpec {
        ScenarioSpec {
            concurrency,
            input_sequence_length: Some(512),
            output_sequence_length: Some(256),
            num_requests: 200,
            streaming: Some(true),
            ..ScenarioSpec::default()
        }
    }

    pub fn job(&self, concurrency: u32) -> JobKey {
        self.run().job(&self.scenario(concurrency).code())
    }

    fn spec() -> WorkloadSpec {
        WorkloadSpec {
            model_code: "meta-llama/Llama-3.1-8B".into(),
            framework_code: "vllm".into(),
            framework_version: "0.11".into(),
            tool_code: "metrumbench-llm".into(),
            quantization: Some("fp8".into()),
            engine_args_set_code: None,
            engine_args_set_version: None,
            engine_args: [("tensor_parallel_size".to_owned(), serde_json::json!(2))].into(),
            tool_args: Default::default(),
            endpoint_url: None,
            prompt_source_code: None,
            build_profile: None,
            keep_server: false,
        }
    }

    /// Tells all of it. Returns the last position.
    pub async fn tell(&self, read: &Read) -> i64 {
        self.prologue(read).await;
        self.execute(read).await
    }

    /// The same workload once more, as a run of its own.
    pub async fn again(&self, read: &Read) -> i64 {
        self.create_run(read).await;
        self.execute(read).await
    }

    async fn execute(&self, read: &Read) -> i64 {
        for &concurrency in &self.concurrencies {
            self.begin_job(read, concurrency).await;
            self.load(read, concurrency).await;
            self.end_job(read, concurrency).await;
        }
        let finished = Event::RunFinished(RunFinished {
            outcome: RunOutcome::Completed,
            completed: self.concurrencies.len() as u32,
            failed: 0,
            cancelled: 0,
        });
        let run = self.run().stream();
        read.append(&run, vec![event(&run, 1e5, &finished)]).await
    }

    /// The catalogue, the server, the project, the run and its jobs, nothing started yet.
    pub async fn prologue(&self, read: &Read) {
        let one = async |stream: StreamKey, e: Event| {
            read.append(&stream, vec![event(&stream, 0.0, &e)]).await;
        };
        let model = ModelRegistered {
            display_name: "Llama 3.1 8B".into(),
            modality: "llm".into(),
            family: "llama".into(),
            params_b_total: Some(8.03),
            max_context: Some(131_072),
            attention_heads: Some(32),
            default_precision: None,
            gated: true,
            license: None,
            sources: vec![],
            ..ModelRegistered::default()
        };
        one(
            StreamKey::new("model", &["_", "meta-llama/Llama-3.1-8B"]),
            Event::ModelRegistered(Box::new(model)),
        )
        .await;
        let tool = ToolRegistered {
            display_name: "metrumbench-llm".into(),
            modality: "llm".into(),
            argv: vec!["metrumbench-llm".into()],
            ..ToolRegistered::default()
        };
        one(StreamKey::new("tool", &["_", "metrumbench-llm"]), Event::ToolRegistered(tool)).await;
        let server = self.server().stream();
        let registered = ServerRegistered { cost_per_hour_usd: Some(7.2), ..ServerRegistered::default() };
        one(server.clone(), Event::ServerRegistered(registered)).await;
        let gpu = |n| GpuInfo {
            gpu: n,
            name: "NVIDIA H100".into(),
            memory_total_bytes: Some(80 << 30),
            power_limit_w: Some(700.0),
            compute_capability: None,
        };
        let capabilities = HostCapabilities {
            agent_version: "0.1.0".into(),
            cpus: 96,
            gpus: (0..self.gpus).map(gpu).collect(),
            ..HostCapabilities::default()
        };
        one(server, Event::ServerCapabilitiesReported(ServerCapabilitiesReported { capabilities })).await;
        let project = self.project();
        let created = ProjectCreated {
            name: "A project".into(),
            visibility: self.visibility,
            owner: self.owner.clone(),
        };
        one(project.stream(), Event::ProjectCreated(created)).await;
        let workload = self.run().workload_key();
        one(
            workload.stream(),
            Event::WorkloadCreated(WorkloadCreated {
                name: "A workload".into(),
                spec: Self::spec(),
                cloned_from: None,
            }),
        )
        .await;
        for &c in &self.concurrencies {
            let stream = self.job(c).scenario_key().stream();
            one(stream, Event::ScenarioDefined(ScenarioDefined { spec: self.scenario(c) })).await;
        }
        self.create_run(read).await;
    }

    pub async fn create_run(&self, read: &Read) {
        let one = async |stream: StreamKey, e: Event| {
            read.append(&stream, vec![event(&stream, 0.0, &e)]).await;
        };
        let codes = self.concurrencies.iter().map(|c| self.scenario(*c).code()).collect();
        let created = RunCreated { server: self.server(), scenario_codes: codes, rerun_of: None };
        one(self.run().stream(), Event::RunCreated(created)).await;
        for (ordinal, &c) in self.concurrencies.iter().enumerate() {
            let created = JobCreated {
                server: self.server(),
                ordinal: ordinal as u32,
                workload: WorkloadSpec { tool_code: self.tool.into(), ..Self::spec() },
                scenario: self.scenario(c),
                commands: ResolvedCommands {
                    engine_args: [("tensor_parallel_size".to_owned(), json!(2))].into(),
                    engine_args_set: Some(EngineArgsSetRef {
                        org: "_".into(),
                        set_code: "vllm-llama-tp2".into(),
                        version: 3,
                    }),
                    gpus_per_replica: Some(2).filter(|_| self.endpoint.is_none()),
                    endpoint_url: self.endpoint.map(str::to_owned),
                    ..ResolvedCommands::of(
                        vec!["vllm".into(), "serve".into()],
                        vec!["metrumbench-llm".into()],
                    )
                },
                container_image: Some("vllm/vllm-openai:v0.28.0".into()),
            };
            one(self.job(c).stream(), Event::JobCreated(Box::new(created))).await;
        }
    }

    pub async fn begin_job(&self, read: &Read, concurrency: u32) {
        let job = self.job(concurrency).stream();
        let serving = JobServing {
            attempt: 1,
            serve_argv: vec!["vllm".into(), "serve".into(), "--port=8000".into()],
            endpoint_urls: vec!["http://127.0.0.1:8000".into()],
            kept_from: None,
            further_argv: vec![],
            gpu_sets: vec!["0,1".into()],
        };
        let running = JobRunning {
            attempt: 1,
            tool_argv: vec!["metrumbench-llm".into(), "--concurrency=8".into()],
            tool_version: "0.1.0".into(),
            ready_after_s: 12.5,
            prompt_source_sha256: None,
            weights_revision: Some("ab".repeat(20)),
            weights_sha256: None,
            framework_version: None,
            served_models: vec!["meta-llama/Llama-3.1-8B".into()],
        };
        let claimed = JobClaimed { attempt: 1, agent: self.server().agent(), lease_s: 60 };
        read.append(
            &job,
            vec![
                event(&job, 1.0, &Event::JobQueued(JobQueued { requeued: false })),
                event(&job, 2.0, &Event::JobClaimed(claimed)),
                event(&job, 3.0, &Event::JobServing(serving)),
                event(&job, 20.0, &Event::JobRunning(running)),
            ],
        )
        .await;
    }

    /// One telemetry event: the sample at second `20 + n`, GPU power as the story says.
    pub fn sample(&self, concurrency: u32, n: u64) -> (StreamKey, NewEvent) {
        let stream = self.job(concurrency).telemetry_stream(1);
        let gpu = |gpu| GpuSample {
            gpu,
            power_w: Some(self.watts),
            utilization: Some(0.5 + f64::from(gpu) / 8.0),
            memory_used_bytes: Some((40 << 30) + n * 1024),
            memory_total_bytes: Some(80 << 30),
            temperature_c: Some(61.0),
            sm_clock_mhz: Some(1980),
        };
        let sample = TelemetrySample {
            at: at(20.0 + n as f64),
            gpus: (0..self.gpus - u32::from(self.one_gpu_short.contains(&n))).map(gpu).collect(),
            cpus: vec![CpuSample { socket: 0, utilization: 0.25 }],
            tpus: vec![],
            system: SystemSample {
                ram_used_bytes: Some(100 << 30),
                ram_total_bytes: Some(400 << 30),
                power_w: None,
            },
        };
        let sampled = TelemetrySampled { seq: n + 1, interval_ms: 1000, samples: vec![sample] };
        let e = event(&stream, 20.0 + n as f64, &Event::TelemetrySampled(sampled));
        (stream, e)
    }

    /// Telemetry, progress and logs while the load runs.
    pub async fn load(&self, read: &Read, concurrency: u32) {
        let telemetry = self.job(concurrency).telemetry_stream(1);
        let samples: Vec<NewEvent> = (0..=u64::from(self.seconds))
            .filter(|n| !self.lost_samples.contains(n))
            .map(|n| self.sample(concurrency, n).1)
            .collect();
        for chunk in samples.chunks(200) {
            read.append(&telemetry, chunk.to_vec()).await;
        }
        let progress = self.job(concurrency).progress_stream(1);
        let report = |seq: u64| {
            let reported = ProgressReported {
                seq,
                phase: "running".into(),
                done: seq * 10,
                total: Some(200),
                failed: 0,
                in_flight: 8,
                elapsed_s: seq as f64,
                requests_per_second: Some(10.0),
                completion_tokens_per_second: Some(2500.5),
                ttft_p50_ms: None,
            };
            event(&progress, 20.0 + seq as f64, &Event::ProgressReported(reported))
        };
        read.append(&progress, (1..=self.progress).map(report).collect()).await;
        let logs = self.job(concurrency).logs_stream(1);
        let lines = LogLines {
            source: LogSource::Framework,
            first_line: 1,
            lines: vec!["INFO ready".into(), "with\ttab \\ and ä".into()],
        };
        read.append(&logs, vec![event(&logs, 21.0, &Event::LogLines(lines))]).await;
    }

    /// The result: the window is the last `seconds - 2` seconds before second `20 + seconds`.
    pub async fn end_job(&self, read: &Read, concurrency: u32) -> i64 {
        let job = self.job(concurrency).stream();
        let end = 20.0 + f64::from(self.seconds);
        let window = f64::from(self.seconds) - 2.0;
        let output = ToolOutputRecorded {
            attempt: 1,
            invocation: ToolInvocation {
                tool_code: "metrumbench-llm".into(),
                tool_version: "0.1.0".into(),
                argv: vec!["metrumbench-llm".into()],
                exit_code: Some(0),
                summary_sha256: "ab".repeat(32),
            },
            summary: match self.read_late {
                None => summary(window, self.tokens, self.simulated),
                Some(_) => Summary {
                    window_started_at: Some(at(end - window)),
                    window_ended_at: Some(at(end)),
                    ..summary(window, self.tokens, self.simulated)
                },
            },
        };
        let end = end + self.read_late.unwrap_or(0.0);
        let completed =
            JobCompleted { attempt: 1, telemetry_samples: u64::from(self.seconds) + 1, log_lines: 2 };
        let flagged = QualityFlagged {
            attempt: 1,
            rule: "few_requests".into(),
            message: "200 requests are few; ask for 1,000".into(),
        };
        let mut events = vec![
            event(&job, end, &Event::ToolOutputRecorded(Box::new(output))),
            event(&job, end + 0.5, &Event::JobCompleted(completed)),
        ];
        if self.flagged {
            events.push(event(&job, end + 1.0, &Event::QualityFlagged(flagged)));
        }
        read.append(&job, events).await
    }

    /// What not every job has: a file, and telemetry of a TPU.
    pub async fn leave_behind(&self, read: &Read, concurrency: u32) {
        let (job, sha256) = (self.job(concurrency), "cd".repeat(32));
        let blob = StreamKey::new("blob", &[&self.org, &sha256]);
        let stored = BlobStored {
            sha256,
            size: 7,
            media_type: "application/x-ndjson".into(),
            purpose: "request_log".into(),
            job: Some(job.stream().to_string()),
        };
        read.append(&blob, vec![event(&blob, 50.0, &Event::BlobStored(stored))]).await;
        let stream = job.telemetry_stream(1);
        let tpu = TpuSample {
            chip: 0,
            duty_cycle_pct: Some(50.0),
            tensor_core_utilization_pct: None,
            hbm_used_bytes: None,
            hbm_total_bytes: None,
        };
        let sample = TelemetrySample {
            at: at(20.25),
            gpus: vec![],
            cpus: vec![],
            tpus: vec![tpu],
            system: SystemSample::default(),
        };
        let seq = u64::from(self.seconds) + 2;
        let sampled = TelemetrySampled { seq, interval_ms: 1000, samples: vec![sample] };
        read.append(&stream, vec![event(&stream, 51.0, &Event::TelemetrySampled(sampled))]).await;
    }

    pub async fn show(&self, read: &Read, visibility: ProjectVisibility) -> i64 {
        let stream = self.project().stream();
        let changed = Event::ProjectVisibilityChanged(ProjectVisibilityChanged { visibility });
        read.append(&stream, vec![event(&stream, 0.0, &changed)]).await
    }
}

pub fn summary(window_s: f64, tokens: u64, simulated: bool) -> Summary {
    let distribution = |p50: f64| Distribution {
        n: 200,
        min: Some(p50 / 2.0),
        max: Some(p50 * 4.0),
        avg: Some(p50 * 1.1),
        std: Some(1.0),
        p50: Some(p50),
        p90: Some(p50 * 2.0),
        p95: Some(p50 * 2.5),
        p99: Some(p50 * 3.0),
        p99_9: None,
        unreliable: vec!["p99_9".into()],
        binned: false,
    };
    Summary {
        schema: SUMMARY_SCHEMA.into(),
        id: Uuid::nil(),
        readable_id: "llm-1".into(),
        timestamp: "2026-05-28T20:26:40Z".into(),
        window_started_at: None,
        window_ended_at: None,
        tool: "metrumbench-llm".into(),
        tool_version: "0.1.0".into(),
        rustc_version: "rustc 1.90".into(),
        host: Host::default(),
        config: Value::Null,
        simulated,
        partial: false,
        cancelled: false,
        percentile_method: PERCENTILE_METHOD.into(),
        flags: vec!["few_requests".into()],
        figures: Figures {
            requests: RequestCounts { attempted: 200, succeeded: 199, failed: 1, ..RequestCounts::default() },
            window_s: Some(window_s),
            ttft_ms: Some(distribution(100.0)),
            tpot_ms: Some(distribution(10.0)),
            response_time_ms: Some(distribution(2000.0)),
            completion_tokens: Some(CountStats { n: 199, total: tokens, ..CountStats::default() }),
            throughput: Throughput {
                requests_per_second: Some(199.0 / window_s),
                prompt_tokens_per_second: None,
                completion_tokens_per_second: Some(tokens as f64 / window_s),
                total_tokens_per_second: Some((tokens + 100_000) as f64 / window_s),
            },
            ..Figures::default()
        },
        endpoints: vec![],
        client: Client::default(),
    }
}
