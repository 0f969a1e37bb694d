//! Figures of the whole system, for `make bench`: live lag, the agent's own cost, the page. Not a test: nothing passes
//! or fails, the figures are printed; `scripts/bench` says the machine and the commit.

mod page;
mod table;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use events::telemetry::TelemetrySampled;
use futures::StreamExt as _;
use serde_json::json;
use support::agent::Agent;
use support::api::Api;
use support::control_plane::ControlPlane;
use support::live::{Live, Message};
use support::workloads;

#[tokio::main]
async fn main() {
    println!("| figure | value | aim |");
    println!("|---|---|---|");
    match std::env::args().nth(1).as_deref() {
        Some("page") => page::measure(&std::env::args().skip(2).collect::<Vec<_>>()).await,
        Some("commands") => commands(&ControlPlane::start().await.admin().await).await,
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
    many_live_clients(&plane, &admin, &agent).await;
    commands(&admin).await;
}

/// 500 clients follow one run while its agent reports every second; they count bytes, so that the machine is the server's.
async fn many_live_clients(plane: &ControlPlane, admin: &Api, agent: &Agent) {
    const CLIENTS: usize = 500;
    let (run, _) = agent.execute(admin, "many-live", workloads::slow_refserver(&[1], 160)).await;
    let topics = run.trim_start_matches("run/").to_owned();
    let mut watching = Vec::new();
    for _ in 0..CLIENTS {
        let request = admin
            .request(reqwest::Method::GET, "/api/live")
            .query(&[("topics", topics.as_str()), ("after", "0")]);
        watching.push(tokio::spawn(async move {
            let mut stream = request.send().await.expect("the live stream answers").bytes_stream();
            let mut bytes = 0_usize;
            let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
            while let Ok(Some(Ok(chunk))) = tokio::time::timeout_at(deadline, stream.next()).await {
                bytes += chunk.len();
            }
            bytes
        }));
    }
    // Everything that was there before has been sent by then.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let share = cpu_share(plane.pid(), Duration::from_secs(20)).await;
    let mut least = usize::MAX;
    for client in watching {
        least = least.min(client.await.expect("a client"));
    }
    row(
        &format!("{CLIENTS} live clients on one run: the control plane's share of one core"),
        format!("{:.1} % (each got at least {:.0} kB)", share * 100.0, least as f64 / 1e3),
        "≤ 100 %",
    );
}

/// 64 clients give one command after another, each in a project of its own, over a few API tokens: one principal alone may
/// ask 2,000 times a second.
async fn commands(admin: &Api) {
    const CLIENTS: usize = 64;
    const TOKENS: usize = 8;
    let mut speakers = Vec::new();
    for nth in 0..TOKENS {
        let args =
            json!({"p_name": format!("commands-{nth}"), "p_scopes": ["admin"], "p_expires_in_days": 1});
        let reply = admin.command("create_api_token", &args).await;
        speakers.push(Api::with_token(&admin.url, reply.keys["token"].as_str().expect("a token")));
    }
    for nth in 0..CLIENTS {
        let code = format!("commands-{nth}");
        admin.command("create_project", &json!({"p_project_code": code, "p_name": code})).await;
    }
    let began = Instant::now();
    let until = began + Duration::from_secs(15);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|nth| {
            let speaker = speakers[nth % TOKENS].clone();
            tokio::spawn(async move {
                let (code, mut waits) = (format!("commands-{nth}"), Vec::new());
                while Instant::now() < until {
                    let args = json!({"p_project_code": code, "p_name": format!("Name {}", waits.len())});
                    let asked = Instant::now();
                    speaker.command("rename_project", &args).await;
                    waits.push(asked.elapsed().as_secs_f64() * 1e3);
                }
                waits
            })
        })
        .collect();
    let mut waits = Vec::new();
    for client in clients {
        waits.extend(client.await.expect("a client"));
    }
    let took = began.elapsed().as_secs_f64();
    waits.sort_by(f64::total_cmp);
    row(
        &format!("commands from {CLIENTS} clients on the same machine"),
        format!(
            "{:.0} commands/s, p50 {:.1} ms, p99 {:.1} ms (n {})",
            waits.len() as f64 / took,
            percentile(&waits, 50.0),
            percentile(&waits, 99.0),
            waits.len()
        ),
        "≥ 1,000 commands/s, p99 ≤ 50 ms",
    );
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

/// A number of the environment: shorter forms, to see that a part runs.
fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
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
