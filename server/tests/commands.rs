//! Commands against a real PostgreSQL: runs, claims, leases and what two of them at once may not do.

mod common;

use common::Cluster;
use events::access::Role;
use events::api::{CancelRun, CreateProject, CreateServer, ScenarioMatrix, StartRun, WorkloadInput};
use events::job::{JobCompleted, JobFailed, JobPhase, JobRunning, JobServing};
use events::keys::{JobKey, RunKey, ServerKey};
use events::project::ProjectVisibility;
use events::report::{
    AssignedJob, ClaimRequest, Heartbeat, ItemOutcome, ReportBatch, ReportBody, ReportItem,
};
use events::run::RunOutcome;
use events::server_host::HostCapabilities;
use events::summary::{
    CountStats, Distribution, Figures, PERCENTILE_METHOD, RequestCounts, SUMMARY_SCHEMA, Summary,
};
use events::timestamp::Timestamp;
use events::tool_output::{ToolInvocation, ToolOutputRecorded};
use server::auth::{AgentIdentity, Principal};
use server::clock;
use server::commands::{
    CommandError, RequestMeta, Timing, advance_run, cancel_run, claim_job, create_project,
    create_server_config_instance, start_run, watch,
};
use server::config::Config;
use server::domain::server::Silence;
use server::domain::{Aggregate, Job, Run};
use server::ingest;
use server::log::{AppendRequest, Expected};
use server::plant::NatsEndpoints;
use server::seed::seed;
use server::state::AppState;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const ORG: &str = "acme";

/// A control plane with a seeded catalogue and one online server.
struct World {
    state: AppState,
    agent: AgentIdentity,
    _cluster: Cluster,
    _dir: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Timing)) -> Self {
        let cluster = Cluster::start().await;
        let url = cluster.database("commands").await;
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new(dir.path(), "127.0.0.1:0".parse().unwrap());
        change(&mut config.timing);
        let nats = NatsEndpoints { url: String::new(), credentials: None, account: None };
        let state = AppState::open(&url, nats, config, CancellationToken::new()).await.unwrap();
        seed(&state.log).await.unwrap();
        let server = ServerKey { org: ORG.into(), config: "local-cpu".into(), hostname: "host-1".into() };
        let args = CreateServer {
            p_config_code: server.config.clone(),
            p_hostname: server.hostname.clone(),
            p_ip_address: None,
            p_bootstrap_script_filename: None,
            p_comment: None,
            p_cost_per_hour_usd: None,
        };
        create_server_config_instance::create_server_config_instance(&state, &admin(), args, meta())
            .await
            .unwrap();
        let world = Self { state, agent: AgentIdentity::of(server), _cluster: cluster, _dir: dir };
        world.enrol().await;
        world
    }

    /// What an enrolment and a first heartbeat leave in the log.
    async fn enrol(&self) {
        use events::Event;
        use events::server_host::ServerEnrolled;
        let enrolled = Event::ServerEnrolled(ServerEnrolled {
            agent: self.agent.agent.clone(),
            agent_version: "0.1.0".into(),
            nats_public_key: "U".into(),
        });
        common_append(&self.state, &self.agent.server.stream(), enrolled).await;
        let beat = Heartbeat { at: clock::now(), holding: vec![], spooled: 0 };
        let reply = ingest::heartbeat::heartbeat(&self.state, &self.agent, beat, clock::now()).await;
        assert_eq!(reply.error, None);
        let capabilities = HostCapabilities {
            agent_version: "0.1.0".into(),
            executables: vec!["benchtrail-refserver".into(), "metrumbench-llm".into()],
            ram_total_bytes: 8_000_000_000,
            ..HostCapabilities::default()
        };
        self.report(ReportBody::Capabilities { capabilities }).await;
    }

    async fn report(&self, body: ReportBody) -> ItemOutcome {
        self.report_at(body, clock::now()).await
    }

    async fn report_at(&self, body: ReportBody, at: Timestamp) -> ItemOutcome {
        let item = ReportItem { event_id: Uuid::now_v7(), at, body };
        let batch = ReportBatch { org: ORG.into(), agent: self.agent.agent.clone(), items: vec![item] };
        let reply = ingest::accept::accept(&self.state, &self.agent, batch, clock::now()).await;
        assert_eq!(reply.error, None);
        reply.results.into_iter().next().expect("one outcome")
    }

    async fn accepted(&self, body: ReportBody) {
        let outcome = self.report(body).await;
        assert!(matches!(outcome, ItemOutcome::Accepted { .. }), "{outcome:?}");
    }

    async fn project(&self, code: &str, concurrency: &[u32]) {
        self.try_project(code, concurrency, Default::default()).await.unwrap();
    }

    async fn try_project(
        &self,
        code: &str,
        concurrency: &[u32],
        engine_args: std::collections::BTreeMap<String, serde_json::Value>,
    ) -> Result<(), CommandError> {
        let workload = WorkloadInput {
            p_workload_code: Some("w".into()),
            p_name: None,
            p_model_code: "google/gemma-3-270m".into(),
            p_framework_code: "refserver".into(),
            p_framework_version: "0.1.0".into(),
            p_tool_code: None,
            p_quantization: None,
            p_engine_args_set_code: None,
            p_engine_args: engine_args,
            p_tool_args: Default::default(),
            p_endpoint_url: None,
            p_prompt_source_code: None,
            p_build_profile: None,
            p_keep_server: false,
            p_scenarios: ScenarioMatrix {
                p_concurrency: concurrency.to_vec(),
                p_input_sequence_length: vec![64],
                p_output_sequence_length: vec![8],
                p_num_requests: Some(200),
                ..ScenarioMatrix::default()
            },
        };
        let args = CreateProject {
            p_project_code: Some(code.into()),
            p_name: code.into(),
            p_visibility: ProjectVisibility::Organization,
            p_workloads: vec![workload],
            p_execute: None,
        };
        create_project::create_project(&self.state, &member(), args, meta()).await.map(|_| ())
    }

    async fn start_run(&self, project: &str) -> RunKey {
        self.try_start_run(&member(), project, meta()).await.unwrap()
    }

    async fn try_start_run(
        &self,
        who: &Principal,
        project: &str,
        meta: RequestMeta,
    ) -> Result<RunKey, CommandError> {
        let args = StartRun {
            p_project_code: project.into(),
            p_workload_code: "w".into(),
            p_config_code: self.agent.server.config.clone(),
            p_hostname: self.agent.server.hostname.clone(),
            p_scenario_codes: None,
        };
        let reply = start_run::start_run(&self.state, who, args, meta).await?;
        let stream: events::StreamKey = reply.keys["run"].as_str().unwrap().parse().unwrap();
        Ok(RunKey::from_stream(&stream).unwrap())
    }

    async fn claim(&self) -> Option<AssignedJob> {
        self.claim_with(Uuid::now_v7()).await.map(|signed| serde_json::from_str(&signed.payload).unwrap())
    }

    async fn claim_with(&self, claim_id: Uuid) -> Option<events::report::SignedJob> {
        let request = ClaimRequest { claim_id };
        claim_job::claim_job(&self.state, &self.agent, &request, clock::now()).await.unwrap()
    }

    async fn job(&self, key: &JobKey) -> Job {
        Job::load(&self.state.log.read_stream(&key.stream(), 1, 500).await.unwrap()).unwrap().unwrap()
    }

    async fn run(&self, key: &RunKey) -> Run {
        Run::load(&self.state.log.read_stream(&key.stream(), 1, 500).await.unwrap()).unwrap().unwrap()
    }

    /// Reports a whole attempt, and waits for what follows from its end.
    async fn complete(&self, job: &AssignedJob) {
        let AssignedJob { job: key, attempt, .. } = job;
        let attempt = *attempt;
        let serving = JobServing {
            attempt,
            serve_argv: vec![],
            endpoint_urls: vec![],
            kept_from: None,
            further_argv: vec![],
            gpu_sets: vec![],
        };
        self.accepted(ReportBody::Serving { job: key.clone(), serving }).await;
        let running = JobRunning {
            attempt,
            tool_argv: vec![],
            tool_version: "0.1.0".into(),
            ready_after_s: 0.1,
            prompt_source_sha256: None,
            weights_revision: None,
            weights_sha256: None,
            framework_version: None,
            served_models: vec![],
        };
        self.accepted(ReportBody::Running { job: key.clone(), running }).await;
        self.finish(key, attempt).await;
    }

    async fn finish(&self, key: &JobKey, attempt: u32) {
        self.accepted(ReportBody::ToolOutput { job: key.clone(), output: Box::new(output(attempt)) }).await;
        let completed = JobCompleted { attempt, telemetry_samples: 0, log_lines: 0 };
        self.accepted(ReportBody::Completed { job: key.clone(), completed }).await;
        self.ended(key).await;
    }

    /// The follow-up of a job's end, whether or not the door's own has run.
    async fn ended(&self, key: &JobKey) {
        advance_run::job_ended(&self.state, key, None, clock::now()).await.unwrap();
    }
}

async fn common_append(state: &AppState, stream: &events::StreamKey, event: events::Event) {
    use events::canonical::CanonicalJson;
    use events::envelope::{Actor, ActorKind, NewEvent};
    use server::log::{AppendRequest, Expected};
    let new = NewEvent {
        event_id: Uuid::now_v7(),
        event_type: event.event_type().to_owned(),
        schema_version: event.schema_version(),
        org: stream.org().to_owned(),
        actor: Actor { kind: ActorKind::System, id: "test".into() },
        causation_id: None,
        correlation_id: None,
        occurred_at: clock::now(),
        payload: CanonicalJson::of(&event.payload().unwrap()).unwrap(),
    };
    let outcome =
        state.log.append(AppendRequest::one(stream.clone(), Expected::Any, vec![new])).await.unwrap();
    assert!(outcome.position().is_some());
}

fn admin() -> Principal {
    Principal::User { id: "ann".into(), org: ORG.into(), role: Role::Admin }
}

fn member() -> Principal {
    Principal::User { id: "bob".into(), org: ORG.into(), role: Role::Member }
}

fn meta() -> RequestMeta {
    RequestMeta { correlation_id: Uuid::now_v7(), idempotency_key: None, now: clock::now() }
}

fn output(attempt: u32) -> ToolOutputRecorded {
    let tokens = CountStats { n: 200, total: 1600, max: Some(8), avg: Some(8.0), ..CountStats::default() };
    let times = Distribution { n: 200, max: Some(90.0), avg: Some(80.0), ..Distribution::default() };
    let figures = Figures {
        requests: RequestCounts { attempted: 200, succeeded: 200, ..RequestCounts::default() },
        window_s: Some(10.0),
        response_time_ms: Some(times),
        completion_tokens: Some(tokens),
        ..Figures::default()
    };
    let summary = Summary {
        schema: SUMMARY_SCHEMA.into(),
        id: Uuid::now_v7(),
        readable_id: "llm-x".into(),
        timestamp: "2026-11-29T22:00:00Z".into(),
        window_started_at: None,
        window_ended_at: None,
        tool: "metrumbench-llm".into(),
        tool_version: "0.1.0".into(),
        rustc_version: "rustc".into(),
        host: Default::default(),
        config: serde_json::Value::Null,
        simulated: true,
        partial: false,
        cancelled: false,
        percentile_method: PERCENTILE_METHOD.into(),
        flags: vec![],
        figures,
        endpoints: vec![],
        client: Default::default(),
    };
    let invocation = ToolInvocation {
        tool_code: "metrumbench-llm".into(),
        tool_version: "0.1.0".into(),
        argv: vec![],
        exit_code: Some(0),
        summary_sha256: String::new(),
    };
    ToolOutputRecorded { attempt, invocation, summary }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_from_job_to_job_and_finishes() {
    let world = World::start().await;
    world.project("p", &[1, 4]).await;
    let run = world.start_run("p").await;
    assert_eq!(run.run, 1);

    let first = world.claim().await.expect("the first job waits");
    assert_eq!(first.job.scenario, "c1-isl64-osl8");
    assert_eq!((first.attempt, &first.server), (1, &world.agent.server));
    assert!(world.claim().await.is_none(), "one attempt a server at a time");
    assert_eq!(world.job(&run.job("c4-isl64-osl8")).await.phase, JobPhase::Pending);
    world.complete(&first).await;

    let second = world.claim().await.expect("the second job waits");
    assert_eq!(second.job.scenario, "c4-isl64-osl8");
    world.complete(&second).await;

    let finished = world.run(&run).await.finished.expect("the run is finished");
    assert_eq!((finished.outcome, finished.completed), (RunOutcome::Completed, 2));
    let job = world.job(&first.job).await;
    assert_eq!(job.flags.keys().collect::<Vec<_>>(), ["missing_telemetry"]);
    world.ended(&first.job).await;
    assert_eq!(world.job(&first.job).await.version, job.version, "asked again, nothing is appended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_sent_again_gets_the_same_signed_answer() {
    let world = World::start().await;
    world.project("p", &[1]).await;
    world.start_run("p").await;
    let claim_id = Uuid::now_v7();
    let signed = world.claim_with(claim_id).await.expect("a job");
    assert_eq!(world.claim_with(claim_id).await.as_ref(), Some(&signed));

    use ed25519_dalek::{Signature, Verifier, VerifyingKey};
    let key = hex::decode(world.state.keys.job_signing_public_key()).unwrap();
    let key = VerifyingKey::from_bytes(&key.try_into().unwrap()).unwrap();
    let signature = Signature::from_slice(&hex::decode(&signed.signature).unwrap()).unwrap();
    assert!(key.verify(signed.payload.as_bytes(), &signature).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_claims_at_once_one_gets_a_job() {
    let world = World::start().await;
    for project in ["p", "q", "r"] {
        world.project(project, &[1]).await;
        world.start_run(project).await;
    }
    let claims = futures::future::join_all((0..8).map(|_| world.claim())).await;
    let got: Vec<_> = claims.into_iter().flatten().collect();
    assert_eq!(got.len(), 1, "{got:?}");
    assert_eq!(got[0].job.project, "p", "the one that waits longest");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_started_at_once_get_numbers_without_a_gap() {
    let world = World::start().await;
    world.project("p", &[1, 2]).await;
    let mut numbers: Vec<u32> = futures::future::join_all((0..6).map(|_| world.start_run("p")))
        .await
        .into_iter()
        .map(|run| run.run)
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_started_twice_under_one_key_is_one_run() {
    let world = World::start().await;
    world.project("p", &[1]).await;
    let meta = RequestMeta { idempotency_key: Some("k".into()), ..meta() };
    let first = world.try_start_run(&member(), "p", meta.clone()).await.unwrap();
    let again = RequestMeta { correlation_id: Uuid::now_v7(), now: clock::now(), ..meta };
    assert_eq!(world.try_start_run(&member(), "p", again).await.unwrap(), first);
    assert_eq!(world.start_run("p").await.run, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_code_is_used_once() {
    let world = World::start().await;
    world.project("p", &[1]).await;
    let error = world.try_project("p", &[1], Default::default()).await.unwrap_err();
    assert_eq!((error.status, error.error.code.as_str()), (409, "project_exists"));
    let unknown = [("ttftms".to_owned(), serde_json::json!(1))].into();
    let error = world.try_project("q", &[1], unknown).await.unwrap_err();
    assert_eq!((error.status, error.error.code.as_str()), (400, "unknown_argument"));
    assert!(error.error.hint.unwrap().contains("ttft_ms"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_agent_loses_its_attempt_once_and_then_for_good() {
    let world = World::with(|timing| timing.lease_s = 0).await;
    world.project("p", &[1]).await;
    let run = world.start_run("p").await;
    let look = async || {
        // Time passes for the lease, which is the database's to measure.
        sqlx::query("update leases set expires_at = now() - interval '1 second'")
            .execute(&world.state.pool)
            .await
            .unwrap();
        watch::look(&world.state, clock::now(), true).await.unwrap();
    };
    let first = world.claim().await.expect("a job");
    look().await;
    assert_eq!(world.job(&first.job).await.phase, JobPhase::Queued);

    let second = world.claim().await.expect("the job is queued again");
    assert_eq!(second.attempt, 2);
    look().await;
    assert_eq!(world.job(&first.job).await.phase, JobPhase::Lost);
    let failed = world.run(&run).await.finished.expect("the run is finished");
    assert_eq!(failed.outcome, RunOutcome::Failed);

    world.finish(&second.job, 2).await;
    assert_eq!(world.job(&first.job).await.phase, JobPhase::Completed);
    let completed = world.run(&run).await.finished.expect("the run is finished anew");
    assert_eq!((completed.outcome, completed.completed), (RunOutcome::Completed, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_keeps_an_attempt_and_says_when_to_stop_it() {
    let world = World::start().await;
    world.project("p", &[1]).await;
    let run = world.start_run("p").await;
    let job = world.claim().await.expect("a job");
    let held = events::report::HeldAttempt { job: job.job.clone(), attempt: job.attempt };
    let beat = async || {
        let beat = Heartbeat { at: clock::now(), holding: vec![held.clone()], spooled: 0 };
        ingest::heartbeat::heartbeat(&world.state, &world.agent, beat, clock::now()).await
    };
    assert!(beat().await.stop.is_empty());
    watch::look(&world.state, clock::now(), true).await.unwrap();
    assert_eq!(world.job(&job.job).await.phase, JobPhase::Claimed);

    let args = CancelRun { p_project_code: "p".into(), p_workload_code: "w".into(), p_run_number: 1 };
    cancel_run::cancel_run(&world.state, &member(), args.clone(), meta()).await.unwrap();
    // A heartbeat goes by the map, which is told a moment later.
    world.state.work.catch_up().await.unwrap();
    assert_eq!(beat().await.stop, std::slice::from_ref(&held));
    let cancelled = events::job::JobCancelled { attempt: 1 };
    world.accepted(ReportBody::Cancelled { job: job.job.clone(), cancelled }).await;
    world.ended(&job.job).await;
    assert_eq!(world.run(&run).await.finished.unwrap().outcome, RunOutcome::Cancelled);
    let error = cancel_run::cancel_run(&world.state, &member(), args, meta()).await.unwrap_err();
    assert_eq!((error.status, error.error.code.as_str()), (409, "run_finished"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_superseded_attempt_that_ends_leaves_the_newer_ones_lease_alone() {
    let world = World::start().await;
    world.project("p", &[1]).await;
    world.start_run("p").await;
    let first = world.claim().await.expect("a job");
    sqlx::query("update leases set expires_at = now() - interval '1 second'")
        .execute(&world.state.pool)
        .await
        .unwrap();
    watch::look(&world.state, clock::now(), true).await.unwrap();
    let second = world.claim().await.expect("the job is queued again");

    let before = second.claimed_at.plus_micros(-1);
    let output = ReportBody::ToolOutput { job: first.job.clone(), output: Box::new(output(1)) };
    let completed = JobCompleted { attempt: 1, telemetry_samples: 0, log_lines: 0 };
    let completed = ReportBody::Completed { job: first.job.clone(), completed };
    for body in [output, completed] {
        let outcome = world.report_at(body, before).await;
        assert!(matches!(outcome, ItemOutcome::Accepted { .. }), "kept: {outcome:?}");
    }
    world.ended(&first.job).await;
    watch::look(&world.state, clock::now().plus_micros(-3_600_000_000), true).await.unwrap();
    let job = world.job(&first.job).await;
    assert_eq!((job.phase, job.attempt(), job.result_attempt), (JobPhase::Claimed, 2, None));
    let leases: i64 = sqlx::query_scalar("select count(*) from leases where attempt = 2")
        .fetch_one(&world.state.pool)
        .await
        .unwrap();
    assert_eq!(leases, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_run_that_waits_ends_it_at_once() {
    let world = World::start().await;
    world.project("p", &[1, 2, 4]).await;
    let run = world.start_run("p").await;
    let args = CancelRun { p_project_code: "p".into(), p_workload_code: "w".into(), p_run_number: 1 };
    cancel_run::cancel_run(&world.state, &member(), args, meta()).await.unwrap();
    let finished = world.run(&run).await.finished.expect("the run is finished");
    assert_eq!((finished.outcome, finished.cancelled), (RunOutcome::Cancelled, 3));
    assert!(world.claim().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_job_does_not_stop_the_next() {
    let world = World::start().await;
    world.project("p", &[1, 2]).await;
    let run = world.start_run("p").await;
    let first = world.claim().await.expect("a job");
    let failed = JobFailed {
        attempt: 1,
        code: "server_exited".into(),
        message: "it exited".into(),
        telemetry_samples: 0,
        log_lines: 0,
    };
    world.accepted(ReportBody::Failed { job: first.job.clone(), failed }).await;
    world.ended(&first.job).await;
    let second = world.claim().await.expect("the next job");
    world.complete(&second).await;
    let finished = world.run(&run).await.finished.unwrap();
    assert_eq!((finished.outcome, finished.completed, finished.failed), (RunOutcome::Failed, 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fell_silent_is_stale_then_offline_and_refuses_runs() {
    let world =
        World::with(|timing| timing.silence = Silence { stale_after_s: 60, ..Silence::default() }).await;
    world.project("p", &[1]).await;
    let long_ago = clock::now().plus_micros(-3_600_000_000);
    let silent_for = async |seconds: i32| {
        sqlx::query("update presence set last_seen = now() - make_interval(secs => $1)")
            .bind(f64::from(seconds))
            .execute(&world.state.pool)
            .await
            .unwrap();
        watch::look(&world.state, long_ago, false).await.unwrap();
        world.try_start_run(&member(), "p", meta()).await.map_err(|error| error.error)
    };
    assert!(silent_for(90).await.is_ok(), "a stale server's jobs wait");
    let error = silent_for(700).await.unwrap_err();
    assert_eq!(error.code, "not_ready");
    assert!(error.message.contains("offline"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_events_cannot_be_read_keeps_the_watch_from_nothing_else() {
    let world =
        World::with(|timing| timing.silence = Silence { stale_after_s: 60, ..Silence::default() }).await;
    world.project("p", &[1]).await;
    world.start_run("p").await;
    let held = world.claim().await.expect("a job");
    // A payload of another shape, as a newer version might write it.
    let mut newer = common::event(1);
    newer.event_type = "job.running".into();
    newer.org = ORG.into();
    let request = AppendRequest::one(held.job.stream(), Expected::Any, vec![newer]);
    world.state.log.append(request).await.unwrap();
    let error = cancel_run::cancel_run(
        &world.state,
        &member(),
        CancelRun { p_project_code: "p".into(), p_workload_code: "w".into(), p_run_number: 1 },
        meta(),
    )
    .await
    .unwrap_err();
    assert_eq!((error.status, error.error.code.as_str()), (503, "unreadable"));

    for sql in [
        "update leases set expires_at = now() - interval '1 second'",
        "update presence set last_seen = now() - interval '1 hour'",
    ] {
        sqlx::query(sql).execute(&world.state.pool).await.unwrap();
    }
    let long_ago = clock::now().plus_micros(-7_200_000_000);
    watch::look(&world.state, long_ago, true).await.unwrap();
    let events = world.state.log.read_stream(&world.agent.server.stream(), 1, 100).await.unwrap();
    let last = events.last().unwrap();
    assert_eq!(last.event_type, "server.state_changed", "its server's silence is seen all the same");
    assert!(last.payload.contains("offline"), "{}", last.payload);
}

#[tokio::test(flavor = "multi_thread")]
async fn seeding_again_appends_nothing() {
    let world = World::start().await;
    let before = world.state.log.head().await.unwrap().position;
    let seeded = seed(&world.state.log).await.unwrap();
    assert_eq!((seeded.added, seeded.changed), (0, 0));
    assert_eq!(world.state.log.head().await.unwrap().position, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_starts_a_run_in_another_persons_private_project() {
    let world = World::start().await;
    let args = CreateProject {
        p_project_code: Some("mine".into()),
        p_name: "Mine".into(),
        p_visibility: ProjectVisibility::Private,
        p_workloads: vec![],
        p_execute: None,
    };
    create_project::create_project(&world.state, &member(), args, meta()).await.unwrap();
    let error = world.try_start_run(&admin(), "mine", meta()).await.unwrap_err();
    assert_eq!((error.status, error.error.code.as_str()), (404, "project_not_found"));
}
