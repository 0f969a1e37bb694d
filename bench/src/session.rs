//! From a command line to an exit code: everything around the work loop that all load generators share.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Command};
use events::summary::{EndpointFigures, PERCENTILE_METHOD, Summary};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::balance::Strategy;
use crate::cli::Common;
use crate::collect::Collector;
use crate::endpoints::{Endpoint, endpoint, parse_file};
use crate::failure::Redactor;
use crate::finish::{
    Cost, EXIT_INTERRUPTED, EXIT_UNFIT, EXIT_USAGE, client, exit_code, raise_flags, readable_id,
    write_summary,
};
use crate::host::{self, CpuTime};
use crate::http::connect::{ConnectOptions, Connector};
use crate::http::pool::{Counters, Pool};
use crate::http::simple;
use crate::pacing::{Pacing, PreciseTimer};
use crate::preflight::{self, Clock, MAX_OFFSET};
use crate::progress;
use crate::request_log::{Anchor, RequestLog};
use crate::run::{Control, Plan, Run, Target};
use crate::stats::{Samples, round};
use crate::workload::Workload;

/// How long requests under way may go on after an interrupt.
const DRAIN_AFTER_INTERRUPT: Duration = Duration::from_secs(2);

/// Connections kept idle where nothing bounds the number under way.
const UNBOUNDED_IDLE: usize = 4096;

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    message: String,
    code: i32,
}

impl Refusal {
    /// Something about the command line, a file or an address.
    pub fn usage(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: EXIT_USAGE }
    }

    /// Something about the machine.
    pub fn unfit(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: EXIT_UNFIT }
    }
}

/// Runs `tool` on a runtime of its own and returns its exit code. A refusal is printed, without secrets.
pub fn block_on<F: Future<Output = Result<i32, Refusal>>>(
    threads: Option<u16>,
    redactor: &Redactor,
    tool: F,
) -> i32 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let threads = threads.map_or((cores / 4).clamp(1, 4), usize::from);
    let runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        _ => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(tool);
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(Refusal::unfit(format!("cannot start the runtime: {error}"))),
    };
    result.unwrap_or_else(|refusal| {
        let _ = writeln!(io::stderr(), "error: {}", redactor.redact(&refusal.message));
        refusal.code
    })
}

/// The endpoints of a run.
pub fn endpoints(common: &Common, path: &str) -> Result<Vec<Endpoint>, Refusal> {
    let key = common.api_key.as_deref().map(str::trim).filter(|key| !key.is_empty());
    if key.is_some_and(|key| key.chars().any(char::is_control)) {
        return Err(Refusal::usage("the API key contains control characters"));
    }
    match &common.endpoints_file {
        None => endpoint(&common.url, path, key.map(str::to_owned), None, 1)
            .map(|endpoint| vec![endpoint])
            .map_err(Refusal::usage),
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Refusal::usage(format!("{}: {error}", file.display())))?;
            parse_file(&text, path, key).map_err(Refusal::usage)
        }
    }
}

/// A redactor for all secrets of a run.
pub fn redactor(common: &Common, endpoints: &[Endpoint]) -> Redactor {
    let sensitive = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["auth", "key", "token", "cookie", "secret", "password"].iter().any(|word| name.contains(word))
    };
    let headers = common.header.iter().filter(|(name, _)| sensitive(name)).map(|(_, value)| value.clone());
    let keys = common.api_key.iter().map(|key| key.trim().to_owned());
    Redactor::new(keys.chain(headers).chain(endpoints.iter().flat_map(Endpoint::secrets)))
}

/// How connections of a run are opened.
pub fn connect_options(common: &Common) -> ConnectOptions {
    ConnectOptions {
        connect_timeout: common.connect_timeout,
        tcp_keepalive: common.tcp_keepalive,
        insecure: common.insecure,
    }
}

/// The model to ask for: the one given, or the only one the first endpoint lists.
pub async fn model(common: &Common, endpoints: &[Endpoint], path: &str) -> Result<String, Refusal> {
    if let Some(model) = &common.model {
        return Ok(model.clone());
    }
    let first = endpoints.first().ok_or_else(|| Refusal::usage("no endpoint"))?;
    let mut url = first.url.clone();
    let base = url.path().trim_end_matches(path).to_owned();
    url.set_path(&format!("{base}models"));
    let options = connect_options(common);
    let limit = common.request_timeout.min(Duration::from_secs(10));
    let advice = "name the model with --model";
    let document = simple::get(&url, first.authorization().as_deref(), options, limit)
        .await
        .map_err(|error| Refusal::usage(format!("cannot list models: {error}; {advice}")))?;
    let listed: Value = serde_json::from_slice(&document.body)
        .map_err(|error| Refusal::usage(format!("the list of models is no JSON: {error}; {advice}")))?;
    let ids: Vec<&str> =
        listed["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str()).collect();
    match ids.as_slice() {
        [only] => Ok((*only).to_owned()),
        [] => Err(Refusal::usage(format!("the endpoint lists no model; {advice}"))),
        several => Err(Refusal::usage(format!("the endpoint serves {}; {advice}", several.join(", ")))),
    }
}

/// What a tool hands over to be run.
pub struct Job<'a, W> {
    /// The tool's name, such as `metrumbench-llm`.
    pub tool: &'static str,
    /// Shared options.
    pub common: &'a Common,
    /// Its command line, for the echo of the configuration.
    pub command: &'a Command,
    /// What was parsed.
    pub matches: &'a ArgMatches,
    /// Settings the tool worked out itself.
    pub derived: Map<String, Value>,
    /// Its requests.
    pub workload: W,
    /// Where they go.
    pub endpoints: Vec<Endpoint>,
    /// Flags to raise in the summary.
    pub flags: Vec<String>,
    /// The schema of its summary.
    pub schema: &'static str,
    /// Where its summary goes; `-` for standard output.
    pub summary_path: PathBuf,
    /// Where a line for each request goes.
    pub request_log: Option<PathBuf>,
    /// How endpoints are picked.
    pub strategy: Strategy,
    /// Further tries of requests that failed for a passing reason, and the wait before the first.
    pub retries: (u32, Duration),
}

/// Does the run and writes its summary, whatever happens. Returns the exit code.
pub async fn measure<W: Workload>(job: Job<'_, W>, redactor: Redactor) -> Result<i32, Refusal> {
    let common = job.common;
    let mut flags = job.flags;
    let most = common.most_in_flight().map_or(1024, u64::from);
    host::allow_open_files(most).map_err(Refusal::unfit)?;
    let clock_offset_ms = check_clock(common, &mut flags).await?;
    check_writable(&job.summary_path)?;
    let output = progress::Output::open(common.progress_file.as_deref(), common.progress_fd, common.quiet)
        .map_err(|error| Refusal::usage(format!("progress output: {error}")))?;
    let anchor = Anchor::now();
    let id = Uuid::now_v7();
    let names = job.endpoints.iter().map(|endpoint| endpoint.name.clone()).collect();
    let log = match &job.request_log {
        Some(path) => Some(
            RequestLog::open(path, anchor, names, redactor.clone())
                .map_err(|error| Refusal::usage(format!("{}: {error}", path.display())))?,
        ),
        None => None,
    };
    let counters = Arc::new(Counters::default());
    let targets = targets(common, &job.endpoints, &job.workload, &counters).await?;
    let plan =
        Plan { strategy: job.strategy, retries: job.retries.0, retry_backoff: job.retries.1, ..plan(common) };
    let collector = Collector::new(targets.len(), common.objectives(), redactor.clone());
    let run = Run::new(job.workload, plan, targets, collector, log, id.simple().to_string());

    watch_signals(run.control.clone(), common.quiet)
        .map_err(|error| Refusal::unfit(format!("cannot watch for signals: {error}")))?;
    let showing = CancellationToken::new();
    let shown = tokio::spawn(progress::show(Arc::clone(&run), output, anchor, showing.clone()));
    let lag = tokio::spawn(measure_lag(showing.clone()));
    let timestamp = OffsetDateTime::now_utc();
    let (began, cpu_before) = (Instant::now(), CpuTime::now());
    run.execute().await;
    let (process, thread) = CpuTime::now().since(&cpu_before);
    let wall = began.elapsed();
    showing.cancel();
    let _ = shown.await;
    let lag = lag.await.unwrap_or_default();
    let log_result = run.close_log();

    let collector = run.collector();
    let threads = usize::from(common.threads.unwrap_or(1)).max(1);
    let cost = Cost { wall, process, busiest: if threads == 1 { thread } else { process / threads as u32 } };
    let client = client(&collector, &counters, run.gauges.max_in_flight.load(Relaxed), &lag, cost);
    let cancelled = run.control.cancelled.load(Relaxed);
    raise_flags(&collector, &client, &mut flags);
    let figures = collector.figures();
    let wanted = common.requests_to_measure();
    let partial = cancelled
        || figures.requests.incomplete > 0
        || common.duration.is_none() && wanted.is_some_and(|wanted| figures.requests.attempted < wanted);
    let mut derived = job.derived;
    if common.num_requests.is_none() && wanted.is_some() {
        derived.insert("num_requests".into(), json!(wanted));
    }
    let summary = Summary {
        schema: job.schema.into(),
        id,
        readable_id: readable_id(job.tool, timestamp, common.concurrency, id),
        timestamp: timestamp.format(&Rfc3339).unwrap_or_default(),
        tool: job.tool.into(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
        rustc_version: env!("BENCH_RUSTC_VERSION").into(),
        host: host::describe(clock_offset_ms),
        config: crate::config::echo(job.command, job.matches, derived, &redactor),
        simulated: run.gauges.simulated.load(Relaxed),
        partial,
        cancelled,
        percentile_method: PERCENTILE_METHOD.into(),
        flags,
        figures,
        endpoints: job
            .endpoints
            .iter()
            .enumerate()
            .map(|(index, endpoint)| EndpointFigures {
                name: endpoint.name.clone(),
                url: simple::without_credentials(&endpoint.url),
                weight: endpoint.weight,
                figures: collector.endpoint_figures(index),
            })
            .collect(),
        client,
    };
    drop(collector);
    let written = write_summary(&summary, common, &job.summary_path);
    Ok(exit_code(&summary, common, written, log_result))
}

fn plan(common: &Common) -> Plan {
    let ramp_up = common.ramp_up_seconds;
    let pacing = match common.request_rate {
        None => Pacing::Closed { concurrency: common.concurrency, ramp_up },
        Some(rate) => {
            Pacing::Open { rate, arrival: common.arrival, max_concurrency: common.max_concurrency, ramp_up }
        }
    };
    Plan {
        pacing,
        requests: common.requests_to_measure(),
        duration: common.duration,
        warmup: common.warmup_requests,
        request_timeout: common.request_timeout,
        seed: common.seed,
        strategy: Strategy::Weighted,
        retries: 0,
        retry_backoff: Duration::ZERO,
    }
}

async fn targets<W: Workload>(
    common: &Common,
    endpoints: &[Endpoint],
    workload: &W,
    counters: &Arc<Counters>,
) -> Result<Vec<Target>, Refusal> {
    let most_idle = common.most_in_flight().map_or(UNBOUNDED_IDLE, |most| most as usize * 2);
    let mut targets = Vec::new();
    for endpoint in endpoints {
        let connector =
            Connector::resolve(&endpoint.url, connect_options(common)).await.map_err(Refusal::usage)?;
        let pool = Pool::new(connector, most_idle, common.pool_idle_timeout, Arc::clone(counters));
        let head = endpoint.request_head(workload.accept(), workload.content_type(), &common.header);
        targets.push(Target { pool: Arc::new(pool), head, weight: endpoint.weight });
    }
    Ok(targets)
}

async fn check_clock(common: &Common, flags: &mut Vec<String>) -> Result<Option<f64>, Refusal> {
    if common.skip_ntp_check {
        flags.push("clock_unchecked".into());
        return Ok(None);
    }
    match preflight::check_clock().await {
        Clock::Offset(offset) if offset.abs() > MAX_OFFSET.as_secs_f64() * 1e3 => {
            Err(Refusal::unfit(format!(
                "this machine's clock is off by {offset:.0} ms; set it, or pass --skip-ntp-check to measure all the same"
            )))
        }
        Clock::Offset(offset) => Ok(Some(round(offset))),
        Clock::Unreachable => {
            let _ = writeln!(
                io::stderr(),
                "warning: no time server answered, the clock is not verified (--skip-ntp-check skips this)"
            );
            flags.push("clock_unverified".into());
            Ok(None)
        }
    }
}

fn check_writable(path: &Path) -> Result<(), Refusal> {
    if path.as_os_str() == "-" {
        return Ok(());
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map(drop)
        .map_err(|error| Refusal::usage(format!("{}: {error}", path.display())))
}

/// The first interrupt drains, the second one ends at once.
fn watch_signals(control: Control, quiet: bool) -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        next().await;
        control.cancelled.store(true, Relaxed);
        control.stop.cancel();
        if !quiet {
            let _ =
                writeln!(io::stderr(), "\ninterrupted: requests under way get 2 s; again to exit at once");
        }
        tokio::select! {
            () = tokio::time::sleep(DRAIN_AFTER_INTERRUPT) => control.abort.cancel(),
            () = next() => std::process::exit(EXIT_INTERRUPTED),
        }
        next().await;
        std::process::exit(EXIT_INTERRUPTED);
    });
    Ok(())
}

/// How late this process wakes up: what a timestamp could be off by at worst.
async fn measure_lag(done: CancellationToken) -> Samples {
    let (timer, mut lag) = (PreciseTimer::new(), Samples::default());
    loop {
        let due = Instant::now() + Duration::from_millis(50);
        tokio::select! {
            biased;
            () = done.cancelled() => return lag,
            () = timer.sleep_until(due) => lag.add(due.elapsed().as_nanos() as u64),
        }
    }
}
