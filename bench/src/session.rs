//! From a command line to an exit code: everything around the work loop that all load generators share.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Command};
use events::Timestamp;
use events::summary::{Client, EndpointFigures, PERCENTILE_METHOD, Summary};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::balance::Strategy;
use crate::certify::{Cost, client};
use crate::cli::Common;
use crate::collect::Collector;
use crate::endpoints::Endpoint;
use crate::failure::Redactor;
use crate::finish::{SummaryFile, exit_code, raise_flags, readable_id, write_summary};
use crate::host::{self, CpuTime};
use crate::http::arrival::begin_stamping;
use crate::http::connect::Connector;
use crate::http::pool::{Counters, Pool};
use crate::http::simple;
use crate::pacing::{Pacing, PreciseTimer};
use crate::progress;
use crate::request_log::{Anchor, RequestLog};
use crate::run::{Plan, Run, Target};
use crate::setup::{self, Refusal, check_clock, check_writable, connect_options};
use crate::signals::{self, Control};
use crate::stats::Samples;
use crate::wake;
use crate::workload::Workload;

/// Connections kept idle where nothing bounds the number under way.
const UNBOUNDED_IDLE: usize = 4096;

/// The calendar clock was set if it moved so much against the one that only counts.
const CLOCK_STEP: Duration = Duration::from_millis(100);

/// Runs `tool` on a runtime of its own and returns its exit code. A refusal is printed, without secrets.
pub fn block_on<F: Future<Output = Result<i32, Refusal>>>(
    common: &Common,
    redactor: &Redactor,
    tool: impl FnOnce(Control) -> F,
) -> i32 {
    begin_stamping();
    let control = Control::default();
    let watching = signals::watch(control.clone(), common.quiet); // before the runtime starts its threads
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let threads = common.threads.map_or((cores / 4).clamp(1, 4), usize::from);
    let runtime = match threads {
        1 => {
            wake::be_punctual();
            tokio::runtime::Builder::new_current_thread()
                .on_thread_park(wake::before_park)
                .on_thread_unpark(wake::after_park)
                .enable_all()
                .build()
        }
        _ => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    let result = match (watching, runtime) {
        (Ok(()), Ok(runtime)) => {
            let result = runtime.block_on(tool(control));
            runtime.shutdown_background();
            result
        }
        (Err(error), _) => Err(Refusal::unfit(format!("cannot watch for signals: {error}"))),
        (_, Err(error)) => Err(Refusal::unfit(format!("cannot start the runtime: {error}"))),
    };
    result.unwrap_or_else(|refusal| {
        let _ = writeln!(io::stderr(), "error: {}", redactor.redact(&refusal.message));
        refusal.code
    })
}

/// What is known of a run from its command line alone.
pub struct Program<'a> {
    /// The tool's name, such as `metrumbench-llm`.
    pub tool: &'static str,
    /// Shared options.
    pub common: &'a Common,
    /// Its command line, for the echo of the configuration.
    pub command: &'a Command,
    /// What was parsed.
    pub matches: &'a ArgMatches,
    /// Where requests go.
    pub endpoints: Vec<Endpoint>,
    /// The path of its API below `/v1`.
    pub path: &'static str,
    /// Files and schema of its results.
    pub outputs: Outputs,
    /// How endpoints are picked.
    pub strategy: Strategy,
    /// Further tries of requests that failed for a passing reason, and the wait before the first.
    pub retries: (u32, Duration),
    /// Secrets, to be taken out of everything that is shown.
    pub redactor: Redactor,
}

/// Where results go.
pub struct Outputs {
    /// The schema of the summary.
    pub schema: &'static str,
    /// Where the summary goes.
    pub summary: SummaryFile,
    /// Where a line for each request goes.
    pub request_log: Option<PathBuf>,
}

/// What a tool prepares for its run.
pub struct Preparation<W> {
    /// Its requests.
    pub workload: W,
    /// Settings the tool worked out itself.
    pub derived: Map<String, Value>,
    /// Requests where the command line names neither them nor a time. Default: 10 × concurrency.
    pub default_requests: Option<u64>,
    /// Different inputs there are; none when each request has its own.
    pub distinct: Option<u64>,
}

/// What becomes part of the summary besides the figures.
struct Circumstances {
    timestamp: OffsetDateTime,
    anchor: Anchor,
    id: Uuid,
    clock_offset_ms: Option<f64>,
    flags: Vec<String>,
    derived: Map<String, Value>,
    simulated: bool,
    partial: bool,
    cancelled: bool,
}

/// Prepares and does the run and writes its summary, whatever happens. Returns the exit code.
pub async fn measure<W: Workload>(
    program: &Program<'_>,
    control: Control,
    prepare: impl AsyncFnOnce(&str) -> Result<Preparation<W>, Refusal>,
) -> Result<i32, Refusal> {
    let common = program.common;
    host::allow_open_files(common.most_in_flight().map(u64::from)).map_err(Refusal::unfit)?;
    check_writable(&program.outputs.summary.path)?;
    let output = progress::Output::open(common.progress_file.as_deref(), common.progress_fd, common.quiet)
        .map_err(|error| Refusal::usage(format!("progress output: {error}")))?;
    let anchor = Anchor::now();
    let log = open_request_log(program, anchor)?;
    let mut circumstances = Circumstances {
        timestamp: OffsetDateTime::now_utc(),
        anchor,
        id: Uuid::now_v7(),
        clock_offset_ms: None,
        flags: Vec::new(),
        derived: Map::new(),
        simulated: false,
        partial: true,
        cancelled: true,
    };
    let counters = Arc::new(Counters::default());
    let preparing = async {
        circumstances.clock_offset_ms = check_clock(common, &mut circumstances.flags).await?;
        let model = setup::model(common, &program.endpoints, program.path).await?;
        if common.model.is_none() {
            circumstances.derived.insert("model".into(), json!(model));
        }
        let preparation = prepare(&model).await?;
        let targets = targets(program, &preparation.workload, &counters).await?;
        Ok::<_, Refusal>((preparation, targets))
    };
    // An interrupt before the first request leaves a summary too: it says that nothing was measured.
    let Some(prepared) = control.stop.run_until_cancelled(preparing).await else {
        let collector =
            Collector::new(program.endpoints.len(), common.objectives(), program.redactor.clone());
        return Ok(conclude(program, &collector, Client::default(), circumstances, Ok(())));
    };
    let (preparation, targets) = prepared?;

    let default = preparation.default_requests.unwrap_or(10 * u64::from(common.concurrency));
    let wanted = common.requests_to_measure(default);
    circumstances.derived.extend(preparation.derived);
    if common.num_requests.is_none() && wanted.is_some() {
        circumstances.derived.insert("num_requests".into(), json!(wanted));
    }
    if let Some(distinct) = preparation.distinct {
        circumstances.derived.insert("distinct_prompts".into(), json!(distinct));
        if wanted.is_none_or(|requests| requests > distinct) {
            circumstances.flags.push("prompts_reused".into());
        }
    }
    let plan = plan(program, wanted);
    let collector = Collector::new(targets.len(), common.objectives(), program.redactor.clone());
    let tag = circumstances.id.simple().to_string();
    let run = Run::new(preparation.workload, plan, targets, collector, log, tag, control);

    let showing = CancellationToken::new();
    let shown = tokio::spawn(progress::show(Arc::clone(&run), output, anchor, showing.clone()));
    let loading = CancellationToken::new();
    let lag = tokio::spawn(measure_lag(loading.clone()));
    let (began, cpu_before) = (Instant::now(), CpuTime::now());
    run.execute().await;
    let (process, busiest) = CpuTime::now().since(&cpu_before);
    let wall = began.elapsed();
    loading.cancel();
    let lag = lag.await.unwrap_or_default();
    run.finish().await;
    showing.cancel();
    let _ = shown.await;
    let log_result = run.close_log();

    let collector = run.collector();
    let cost = Cost { wall, process, busiest };
    let client = client(&collector, &counters, run.gauges.max_in_flight.load(Relaxed), &lag, cost);
    let requests = collector.requests();
    circumstances.simulated = run.gauges.simulated.load(Relaxed);
    circumstances.cancelled = run.control.cancelled.is_cancelled();
    circumstances.partial = circumstances.cancelled
        || requests.incomplete > 0
        || common.duration.is_none() && wanted.is_some_and(|wanted| requests.attempted < wanted);
    Ok(conclude(program, &collector, client, circumstances, log_result))
}

/// Writes the summary and gives the exit code.
fn conclude(
    program: &Program<'_>,
    collector: &Collector,
    client: Client,
    mut circumstances: Circumstances,
    log_result: io::Result<()>,
) -> i32 {
    let Program { tool, common, command, matches, redactor, outputs, .. } = program;
    raise_flags(collector, &client, &mut circumstances.flags);
    let anchor = circumstances.anchor;
    if anchor.apart_from(Anchor::now()) > CLOCK_STEP {
        circumstances.flags.push("clock_stepped".into());
    }
    let window = collector.window().and_then(|(opens, closes)| {
        let moment = |at| Timestamp::from_micros((anchor.unix_ns(at) / 1000) as i64).ok();
        moment(opens).zip(moment(closes))
    });
    let endpoints = program.endpoints.iter().enumerate();
    let summary = Summary {
        schema: outputs.schema.into(),
        id: circumstances.id,
        readable_id: readable_id(tool, circumstances.timestamp, common.concurrency, circumstances.id),
        timestamp: circumstances.timestamp.format(&Rfc3339).unwrap_or_default(),
        window_started_at: window.map(|(opened, _)| opened),
        window_ended_at: window.map(|(_, closed)| closed),
        tool: (*tool).into(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
        rustc_version: env!("BENCH_RUSTC_VERSION").into(),
        host: host::describe(circumstances.clock_offset_ms),
        config: crate::config::echo(command, matches, circumstances.derived, redactor),
        simulated: circumstances.simulated,
        partial: circumstances.partial,
        cancelled: circumstances.cancelled,
        percentile_method: PERCENTILE_METHOD.into(),
        flags: circumstances.flags,
        figures: collector.figures(),
        endpoints: endpoints
            .map(|(index, endpoint)| EndpointFigures {
                name: redactor.redact(&endpoint.name),
                url: simple::without_credentials(&endpoint.url),
                weight: endpoint.weight,
                figures: collector.endpoint_figures(index),
            })
            .collect(),
        client,
    };
    let written = write_summary(&summary, common, &outputs.summary);
    exit_code(&summary, common, written, log_result)
}

fn open_request_log(program: &Program<'_>, anchor: Anchor) -> Result<Option<RequestLog>, Refusal> {
    let Some(path) = &program.outputs.request_log else { return Ok(None) };
    let names = program.endpoints.iter().map(|endpoint| endpoint.name.clone()).collect();
    RequestLog::open(path, anchor, names, program.redactor.clone())
        .map(Some)
        .map_err(|error| Refusal::usage(format!("{}: {error}", path.display())))
}

fn plan(program: &Program<'_>, requests: Option<u64>) -> Plan {
    let common = program.common;
    let ramp_up = common.ramp_up_seconds;
    let pacing = match common.request_rate {
        None => Pacing::Closed { concurrency: common.concurrency, ramp_up },
        Some(rate) => {
            Pacing::Open { rate, arrival: common.arrival, max_concurrency: common.max_concurrency, ramp_up }
        }
    };
    Plan {
        pacing,
        requests,
        duration: common.duration,
        warmup: common.warmup_requests,
        request_timeout: common.request_timeout,
        seed: common.seed,
        strategy: program.strategy,
        retries: program.retries.0,
        retry_backoff: program.retries.1,
    }
}

async fn targets<W: Workload>(
    program: &Program<'_>,
    workload: &W,
    counters: &Arc<Counters>,
) -> Result<Vec<Target>, Refusal> {
    let common = program.common;
    let most_idle = common.most_in_flight().map_or(UNBOUNDED_IDLE, |most| most as usize * 2);
    let mut targets = Vec::new();
    for endpoint in &program.endpoints {
        let connector =
            Connector::resolve(&endpoint.url, connect_options(common)).await.map_err(Refusal::usage)?;
        let (accept, content_type) = (workload.accept(), workload.content_type());
        let head = endpoint.request_head(accept, content_type, &common.header, connector.forwarder());
        let pool = Pool::new(connector, most_idle, common.pool_idle_timeout, Arc::clone(counters));
        targets.push(Target { pool: Arc::new(pool), head, weight: endpoint.weight });
    }
    Ok(targets)
}

/// How often the lateness of the event loop is measured: often enough for a short run, seldom enough to cost nothing.
const LAG_EVERY: Duration = Duration::from_millis(200);

/// How late this process wakes up: what a timestamp could be off by at worst.
async fn measure_lag(done: CancellationToken) -> Samples {
    let (timer, mut lag) = (PreciseTimer::new(), Samples::default());
    loop {
        let due = Instant::now() + LAG_EVERY;
        tokio::select! {
            biased;
            () = done.cancelled() => return lag,
            () = timer.sleep_until(due) => lag.add(due.elapsed().as_nanos() as u64),
        }
    }
}
