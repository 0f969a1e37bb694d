//! Figures of the whole system, for `make bench`: live lag, the agent's own cost, the page. Not a test: nothing passes
//! or fails, the figures are printed; `scripts/bench` says the machine and the commit.

mod page;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use events::telemetry::TelemetrySampled;
use support::agent::Agent;
use support::control_plane::ControlPlane;
use support::live::{Live, Message};
use support::workloads;

#[tokio::main]
async fn main() {
    println!("| figure | value | aim |");
    println!("|---|---|---|");
    match std::env::args().nth(1).as_deref() {
        Some("page") => page::measure().await,
        _ => system().await,
    }
}

async fn system() {
    let began = Instant::now();
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    let agent = Agent::start(&plane, &admin, "perf-host").await;
    let mut server = Live::open(&admin, "main:server", 0).await;
    server.until("the server online", |e| e.payload["state"] == "online").await;
    row(
        "control plane and agent, first start in an empty folder",
        format!("{:.1} s", began.elapsed().as_secs_f64()),
        "–",
    );

    let idle = cpu_share(agent.pid(), Duration::from_secs(20)).await;
    row("agent, idle: share of one core", format!("{:.2} %", idle * 100.0), "≤ 1 %");

    for clients in [1_usize, 50] {
        let project = format!("lag-{clients}");
        let workload = workloads::slow_refserver(&[1], 120);
        let (run, _) = agent.execute(&admin, &project, workload).await;
        let path = run.trim_start_matches("run/").to_owned();
        let watching = (0..clients).map(|_| {
            let (admin, path) = (admin.clone(), path.clone());
            tokio::spawn(async move { lags(Live::open(&admin, &path, 0).await).await })
        });
        let watching: Vec<_> = watching.collect();
        let share = cpu_share(agent.pid(), Duration::from_secs(20));
        let share = share.await;
        let mut all: Vec<f64> = Vec::new();
        for client in watching {
            all.extend(client.await.expect("a client"));
        }
        all.sort_by(f64::total_cmp);
        let figures = format!(
            "p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms (n {})",
            percentile(&all, 50.0),
            percentile(&all, 99.0),
            percentile(&all, 100.0),
            all.len()
        );
        row(&format!("agent's sample → event in a client, {clients} clients"), figures, "p99 ≤ 250 ms");
        if clients == 1 {
            row("agent, one job at 1 Hz: share of one core", format!("{:.2} %", share * 100.0), "≤ 1 %");
        }
    }
}

/// Milliseconds from each sample's own time to its arrival here, until the run ends. Same host, same clock.
async fn lags(mut live: Live) -> Vec<f64> {
    let mut lags = Vec::new();
    // What was there before is a replay, not live.
    let opened = now_ms();
    while let Some(message) = live.next().await {
        let Message::Event(event) = message else { continue };
        if event.event.event_type == "run.finished" {
            break;
        }
        if event.event.event_type != "telemetry.sampled" {
            continue;
        }
        let arrived = now_ms();
        let sampled: TelemetrySampled = serde_json::from_value(event.event.payload).expect("a sample");
        for sample in sampled.samples {
            let at = sample.at.as_micros() as f64 / 1000.0;
            if at > opened {
                lags.push(arrived - at);
            }
        }
    }
    lags
}

fn row(figure: &str, value: String, aim: &str) {
    println!("| {figure} | {value} | {aim} |");
}

fn percentile(sorted: &[f64], p: f64) -> f64 {
    let rank = (p * sorted.len() as f64 / 100.0).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64() * 1000.0
}

/// Processor time of a process over an interval, as a share of one core.
async fn cpu_share(pid: u32, interval: Duration) -> f64 {
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
        let fields: Vec<&str> = stat[stat.rfind(')').expect("a name") + 2..].split_whitespace().collect();
        let ticks: f64 =
            fields[11].parse::<f64>().expect("utime") + fields[12].parse::<f64>().expect("stime");
        ticks / 100.0
    };
    let (before, began) = (used(), Instant::now());
    tokio::time::sleep(interval).await;
    (used() - before) / began.elapsed().as_secs_f64()
}
