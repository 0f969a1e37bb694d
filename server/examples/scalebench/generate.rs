//! The log that is read: servers, projects, workloads, runs with their jobs, results and telemetry.

use std::time::Instant;

use events::Event;
use events::envelope::NewEvent;
use events::job::{
    JobClaimed, JobCompleted, JobCreated, JobQueued, JobRunning, JobServing, ResolvedCommands,
};
use events::keys::{ProjectKey, RunKey, ServerKey, StreamKey};
use events::project::{ProjectCreated, ProjectVisibility};
use events::run::{RunCreated, RunFinished, RunOutcome};
use events::server_host::{GpuInfo, HostCapabilities, ServerCapabilitiesReported, ServerRegistered};
use events::summary::Summary;
use events::telemetry::{CpuSample, GpuSample, SystemSample, TelemetrySample, TelemetrySampled};
use events::tool_output::{ToolInvocation, ToolOutputRecorded};
use events::workload::{ScenarioDefined, ScenarioSpec, WorkloadCreated, WorkloadSpec};
use server::log::{AppendOutcome, AppendRequest, Expected, Log, StreamWrite};

use crate::reading::{at, event, summary};
use crate::row;

const SCENARIOS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const RUNS: u32 = 50;
/// One run in so many has telemetry.
const MEASURED: u32 = 10;
const WORKLOADS_A_PROJECT: u32 = 100;
pub const MODELS: [&str; 10] = [
    "meta-llama/Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-8B",
    "google/gemma-3-27b",
    "mistralai/Mistral-Small",
    "openai/gpt-oss-120b",
    "openai/gpt-oss-20b",
    "deepseek-ai/DeepSeek-R1",
    "microsoft/phi-4",
];
const FRAMEWORKS: [(&str, &str); 4] =
    [("vllm", "0.11"), ("sglang", "0.5"), ("trt-llm", "1.0"), ("tgi", "3.3")];
const SERVERS: u32 = 20;

/// A number that follows from others, between 0 and 1.
fn chance(seed: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    x ^= x >> 31;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 29;
    (x >> 11) as f64 / (1_u64 << 53) as f64
}

/// Writes the log. Gives the number of samples in it.
pub async fn generate(log: &Log, results: u64, samples: u64) -> u64 {
    let workloads = results.div_ceil(u64::from(RUNS) * SCENARIOS.len() as u64) as u32;
    let seconds = (samples / results.max(1)).max(1) as u32;
    let began = Instant::now();
    setting(log, workloads).await;
    let jobs = u64::from(workloads) * u64::from(RUNS) * SCENARIOS.len() as u64;
    let mut tasks = Vec::new();
    for worker in 0..16 {
        let log = log.clone();
        tasks.push(tokio::spawn(async move {
            for workload in (0..workloads).filter(|w| w % 16 == worker) {
                for run in 1..=RUNS {
                    let [before, after] = run_of(workload, run, seconds);
                    append(&log, before).await;
                    append(&log, after).await;
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let took = began.elapsed().as_secs_f64();
    let head = log.head().await.unwrap().position;
    let samples = jobs / u64::from(MEASURED) * u64::from(seconds) * 10;
    row(
        &format!("{jobs} results and {samples} samples generated as {head} events"),
        format!("{:.0} events/s appended ({took:.0} s)", head as f64 / took),
        "–",
    );
    samples
}

async fn append(log: &Log, writes: Vec<(StreamKey, Vec<NewEvent>)>) {
    let writes = writes
        .into_iter()
        .map(|(stream, events)| StreamWrite { stream, expected: Expected::Any, events })
        .collect();
    match log.append(AppendRequest { writes }).await.unwrap() {
        AppendOutcome::Appended { .. } => {}
        other => panic!("not appended: {other:?}"),
    }
}

fn project_of(workload: u32) -> ProjectKey {
    ProjectKey { org: "acme".into(), project: format!("p{}", workload / WORKLOADS_A_PROJECT) }
}

fn server_of(workload: u32) -> ServerKey {
    let nth = workload % SERVERS;
    ServerKey {
        org: "acme".into(),
        config: format!("h100x{}", 1 << (nth % 4)),
        hostname: format!("gpu-{nth}"),
    }
}

fn run_key(workload: u32, run: u32) -> RunKey {
    let project = project_of(workload);
    RunKey { org: project.org, project: project.project, workload: format!("w{workload}"), run }
}

fn spec_of(workload: u32) -> WorkloadSpec {
    let (framework, version) = FRAMEWORKS[(workload / 7) as usize % FRAMEWORKS.len()];
    WorkloadSpec {
        model_code: MODELS[workload as usize % MODELS.len()].into(),
        framework_code: framework.into(),
        framework_version: version.into(),
        tool_code: "metrumbench-llm".into(),
        quantization: workload.is_multiple_of(3).then(|| "fp8".into()),
        engine_args_set_code: None,
        engine_args_set_version: None,
        engine_args: Default::default(),
        tool_args: Default::default(),
        endpoint_url: None,
        prompt_source_code: None,
        build_profile: None,
        keep_server: false,
    }
}

fn scenario(concurrency: u32) -> ScenarioSpec {
    ScenarioSpec {
        concurrency,
        input_sequence_length: Some(512),
        output_sequence_length: Some(256),
        num_requests: 200,
        max_tokens: None,
        streaming: Some(true),
        ..ScenarioSpec::default()
    }
}

/// Servers, projects, workloads, scenarios.
async fn setting(log: &Log, workloads: u32) {
    for nth in 0..SERVERS.min(workloads) {
        let stream = server_of(nth).stream();
        let gpu = |gpu| GpuInfo {
            gpu,
            name: "NVIDIA H100".into(),
            memory_total_bytes: Some(80 << 30),
            power_limit_w: Some(700.0),
            compute_capability: None,
        };
        let capabilities = HostCapabilities {
            agent_version: "0.1.0".into(),
            cpus: 96,
            gpus: (0..2).map(gpu).collect(),
            ..HostCapabilities::default()
        };
        let registered =
            ServerRegistered { cost_per_hour_usd: Some(2.0 + f64::from(nth % 4)), ..Default::default() };
        let events = vec![
            event(&stream, 0.0, &Event::ServerRegistered(registered)),
            event(
                &stream,
                0.0,
                &Event::ServerCapabilitiesReported(ServerCapabilitiesReported { capabilities }),
            ),
        ];
        append(log, vec![(stream, events)]).await;
    }
    for workload in 0..workloads {
        let mut writes = Vec::new();
        if workload.is_multiple_of(WORKLOADS_A_PROJECT) {
            let stream = project_of(workload).stream();
            // One in ten is private, and not the reader's.
            let private = (workload / WORKLOADS_A_PROJECT) % 10 == 9;
            let created = ProjectCreated {
                name: "A project".into(),
                visibility: if private {
                    ProjectVisibility::Private
                } else {
                    ProjectVisibility::Organization
                },
                owner: "bob".into(),
            };
            let events = vec![event(&stream, 0.0, &Event::ProjectCreated(created))];
            writes.push((stream, events));
        }
        let key = run_key(workload, 1).workload_key();
        let created = WorkloadCreated {
            name: format!("Workload {workload}"),
            spec: spec_of(workload),
            cloned_from: None,
        };
        let stream = key.stream();
        let events = vec![event(&stream, 0.0, &Event::WorkloadCreated(created))];
        writes.push((stream, events));
        for concurrency in SCENARIOS {
            let spec = scenario(concurrency);
            let stream = run_key(workload, 1).job(&spec.code()).scenario_key().stream();
            let events = vec![event(&stream, 0.0, &Event::ScenarioDefined(ScenarioDefined { spec }))];
            writes.push((stream, events));
        }
        append(log, writes).await;
    }
}

/// A whole run, up to its jobs' results and from there. Where it is measured each job has its telemetry, ten samples an
/// event.
fn run_of(workload: u32, run: u32, seconds: u32) -> [Vec<(StreamKey, Vec<NewEvent>)>; 2] {
    let (key, server) = (run_key(workload, run), server_of(workload));
    let samples = if run.is_multiple_of(MEASURED) { seconds * 10 } else { 0 };
    let window = f64::from(seconds);
    let stream = key.stream();
    let codes: Vec<String> = SCENARIOS.iter().map(|c| scenario(*c).code()).collect();
    let created = RunCreated { server: server.clone(), scenario_codes: codes.clone(), rerun_of: None };
    let mut writes = vec![(stream.clone(), vec![event(&stream, 0.0, &Event::RunCreated(created))])];
    let mut ends = Vec::new();
    for (ordinal, (&concurrency, code)) in SCENARIOS.iter().zip(&codes).enumerate() {
        let job = key.job(code);
        let stream = job.stream();
        let start =
            100.0 + (ordinal as f64 + f64::from(run) * 10.0) * (window + 30.0) + f64::from(workload) * 0.01;
        let seed = u64::from(workload) << 32 | u64::from(run) << 8 | ordinal as u64;
        let tokens = (1000.0 * f64::from(concurrency).powf(0.8) * (0.9 + 0.2 * chance(seed)) * window) as u64;
        let created = JobCreated {
            server: server.clone(),
            ordinal: ordinal as u32,
            workload: spec_of(workload),
            scenario: scenario(concurrency),
            commands: ResolvedCommands::of(
                vec!["vllm".into(), "serve".into()],
                vec!["metrumbench-llm".into()],
            ),
            container_image: None,
        };
        let output = ToolOutputRecorded {
            attempt: 1,
            invocation: ToolInvocation {
                tool_code: "metrumbench-llm".into(),
                tool_version: "0.1.0".into(),
                argv: vec!["metrumbench-llm".into()],
                exit_code: Some(0),
                summary_sha256: "ab".repeat(32),
            },
            summary: told(window, tokens, 0.5 + chance(seed ^ 0xa5a5)),
        };
        let claimed = JobClaimed { attempt: 1, agent: server.agent(), lease_s: 60 };
        let serving = JobServing {
            attempt: 1,
            serve_argv: vec!["vllm".into(), "serve".into()],
            endpoint_urls: vec!["http://127.0.0.1:8000".into()],
            kept_from: None,
            further_argv: vec![],
            gpu_sets: vec![],
        };
        let running = JobRunning {
            prompt_source_sha256: None,
            weights_revision: None,
            weights_sha256: None,
            attempt: 1,
            tool_argv: vec!["metrumbench-llm".into()],
            tool_version: "0.1.0".into(),
            ready_after_s: 12.5,
            framework_version: None,
            served_models: vec![],
        };
        let completed = JobCompleted { attempt: 1, telemetry_samples: u64::from(samples), log_lines: 0 };
        writes.push((
            stream.clone(),
            vec![
                event(&stream, start - 20.0, &Event::JobCreated(Box::new(created))),
                event(&stream, start - 19.0, &Event::JobQueued(JobQueued { requeued: false })),
                event(&stream, start - 18.0, &Event::JobClaimed(claimed)),
                event(&stream, start - 17.0, &Event::JobServing(serving)),
                event(&stream, start, &Event::JobRunning(running)),
            ],
        ));
        let telemetry = job.telemetry_stream(1);
        let events =
            (0..samples.div_ceil(10)).map(|nth| sampled(&telemetry, start, nth, samples)).collect::<Vec<_>>();
        if !events.is_empty() {
            writes.push((telemetry, events));
        }
        ends.push((
            stream.clone(),
            vec![
                event(&stream, start + window, &Event::ToolOutputRecorded(Box::new(output))),
                event(&stream, start + window, &Event::JobCompleted(completed)),
            ],
        ));
    }
    let finished = RunFinished { outcome: RunOutcome::Completed, completed: 8, failed: 0, cancelled: 0 };
    ends.push((stream.clone(), vec![event(&stream, 1e7, &Event::RunFinished(finished))]));
    [writes, ends]
}

/// A summary whose latencies are so many times the usual: no two jobs are alike.
fn told(window: f64, tokens: u64, times: f64) -> Summary {
    let mut told = summary(window, tokens, false);
    let figures = &mut told.figures;
    for spread in
        [&mut figures.ttft_ms, &mut figures.tpot_ms, &mut figures.response_time_ms].into_iter().flatten()
    {
        for figure in [
            &mut spread.min,
            &mut spread.max,
            &mut spread.avg,
            &mut spread.p50,
            &mut spread.p90,
            &mut spread.p95,
            &mut spread.p99,
        ]
        .into_iter()
        .flatten()
        {
            *figure *= times;
        }
    }
    told
}

fn sampled(stream: &StreamKey, start: f64, nth: u32, samples: u32) -> NewEvent {
    let sample = |n: u32| TelemetrySample {
        at: at(start + f64::from(n) * 0.1),
        gpus: (0..2)
            .map(|gpu| GpuSample {
                gpu,
                power_w: Some(300.0 + f64::from(n % 7)),
                utilization: Some(0.75),
                memory_used_bytes: Some(40 << 30),
                memory_total_bytes: Some(80 << 30),
                temperature_c: Some(61.0),
                sm_clock_mhz: Some(1980),
            })
            .collect(),
        cpus: vec![CpuSample { socket: 0, utilization: 0.25 }],
        tpus: vec![],
        system: SystemSample {
            ram_used_bytes: Some(100 << 30),
            ram_total_bytes: Some(400 << 30),
            power_w: None,
        },
    };
    let samples = (nth * 10..samples.min(nth * 10 + 10)).map(sample).collect();
    let event_of = TelemetrySampled { seq: u64::from(nth) + 1, interval_ms: 100, samples };
    event(stream, start + f64::from(nth), &Event::TelemetrySampled(event_of))
}
