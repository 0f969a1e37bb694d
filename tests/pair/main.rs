//! Two control planes on one PostgreSQL and one NATS: both serve, one leads the projections, either is killed in the middle
//! of a run, and nothing is lost or doubled.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use support::agent::Agent;
use support::api::Api;
use support::database::{self, Stored};
use support::live::Live;
use support::services::{Balancer, Server, Services};
use support::{eventually, workloads};

const PASSWORD: &str = "a password that is long enough";

async fn administrator(services: &Services, url: &str) -> Api {
    let args = [
        "user",
        "create",
        "--org",
        "main",
        "--email",
        "admin@example.org",
        "--role",
        "admin",
        "--password-stdin",
    ];
    let mut command = tokio::process::Command::new(support::binaries::binary("benchtrail"));
    command.args(args).arg("--dir").arg(services.folder().join("server-0"));
    command.env("DATABASE_URL", &services.database_url).stdin(std::process::Stdio::piped());
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("benchtrail starts");
    let mut stdin = child.stdin.take().expect("piped");
    tokio::io::AsyncWriteExt::write_all(&mut stdin, format!("{PASSWORD}\n").as_bytes())
        .await
        .expect("written");
    drop(stdin);
    assert!(child.wait().await.expect("waitable").success(), "the account is made");
    Api::sign_in(url, "admin@example.org", PASSWORD).await
}

/// The leader first.
async fn in_order(mut servers: Vec<Server>) -> Vec<Server> {
    eventually("one server to lead", || async {
        let (first, second) = (servers[0].leads().await, servers[1].leads().await);
        (first != second).then_some(())
    })
    .await;
    if !servers[0].leads().await {
        servers.reverse();
    }
    servers
}

/// A project at each of two servers, many at once; every one is there afterwards, at both.
async fn both_serve(admin: &Api, servers: &[Server]) {
    let mut asked = Vec::new();
    for nth in 0..40 {
        let mut api = admin.clone();
        api.url.clone_from(&servers[nth % 2].url);
        asked.push(tokio::spawn(async move {
            let code = format!("both-{nth}");
            api.command("create_project", &json!({"p_project_code": code, "p_name": code})).await.position
        }));
    }
    let mut positions = Vec::new();
    for one in asked {
        positions.push(one.await.expect("it is answered"));
    }
    positions.sort_unstable();
    let last = *positions.last().expect("some");
    positions.dedup();
    assert_eq!(positions.len(), 40, "two commands were given one position");
    for server in servers {
        let mut api = admin.clone();
        api.url.clone_from(&server.url);
        let rows = api.rows_at_least("/api/v_projects?project_code=like.both-*", last).await;
        assert_eq!(rows.len(), 40, "{}", server.url);
    }
    // The same request at the other server: carried out once.
    let keyed = |server: &Server| {
        let mut api = admin.clone();
        api.url.clone_from(&server.url);
        async move {
            let request = api.request(reqwest::Method::POST, "/api/rpc/create_project");
            let args = json!({"p_project_code": "once", "p_name": "Once"});
            api.send(request.header("idempotency-key", "the-same").json(&args)).await.ok::<Value>()
        }
    };
    let first = keyed(&servers[0]).await;
    assert_eq!(first, keyed(&servers[1]).await);
}

/// Starts a run, kills a server in the middle of it, and waits for the run's end.
async fn run_through_a_kill(
    services: &Services,
    balancer: &Balancer,
    admin: &Api,
    agent: &Agent,
    project: &str,
    mut servers: Vec<Server>,
    victim: usize,
) -> (Vec<Server>, String) {
    let (run, _) = agent.execute(admin, project, workloads::slow_refserver(&[1, 2], 30)).await;
    let path = run.trim_start_matches("run/").to_owned();
    let mut watching = admin.clone();
    watching.url.clone_from(&servers[1 - victim].url);
    let mut live = Live::open(&watching, &path, 0).await;
    live.until("the load generator at work", |e| {
        e.event_type == "progress.reported" && e.payload["done"].as_u64() > Some(2)
    })
    .await;
    let mut killed = servers.remove(victim);
    killed.kill();
    balancer.set(&[&servers[0]]);
    eventually("the other server to lead", || async { servers[0].leads().await.then_some(()) }).await;
    let events = live.until("the end of the run", |e| e.event_type == "run.finished").await;
    let finished = events.last().expect("the one that was waited for");
    assert_eq!(finished.payload["outcome"], "completed", "{finished:?}");
    let mut api = admin.clone();
    api.url.clone_from(&servers[0].url);
    let rows = api.rows_at_least(&format!("/api/v_runs?run=eq.{run}"), finished.position).await;
    assert_eq!(rows[0]["status"], "completed");
    assert_once(services, &path).await;
    let name = format!("server-{project}");
    servers.push(services.serve(&name, &balancer.url).await);
    balancer.set(&[&servers[0], &servers[1]]);
    (in_order(servers).await, run)
}

/// Positions without a gap, every sample that the agent took exactly once, no event of a job twice.
async fn assert_once(services: &Services, path: &str) {
    let pool = database::open(&services.database_url).await;
    database::assert_gapless(&pool).await;
    let mut streams: BTreeMap<String, Vec<Stored>> = BTreeMap::new();
    for event in database::events_like(&pool, &format!("%/{path}%")).await {
        streams.entry(event.stream.clone()).or_default().push(event);
    }
    let jobs: Vec<_> = streams.iter().filter(|(stream, _)| stream.starts_with("job/")).collect();
    assert_eq!(jobs.len(), 2);
    for (stream, events) in jobs {
        let types: Vec<&str> =
            events.iter().map(|e| e.event_type.as_str()).filter(|t| !t.starts_with("quality.")).collect();
        let undisturbed = [
            "job.created",
            "job.queued",
            "job.claimed",
            "job.serving",
            "job.running",
            "tool_output.recorded",
            "job.completed",
        ];
        assert_eq!(types, undisturbed, "{stream}");
        let end = events.iter().find(|e| e.event_type == "job.completed").expect("completed");
        let telemetry = format!("telemetry/{}/1", stream.trim_start_matches("job/"));
        let logged: usize =
            streams[&telemetry].iter().map(|e| e.payload["samples"].as_array().map_or(0, Vec::len)).sum();
        assert_eq!(end.payload["telemetry_samples"].as_u64(), Some(logged as u64), "{telemetry}");
    }
    let finished = streams[&format!("run/{path}")].iter().filter(|e| e.event_type == "run.finished").count();
    assert_eq!(finished, 1);
}

// The balancer must go on while this test waits for a program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_the_work_and_either_may_be_killed() {
    let services = Services::start().await;
    let (status, text) = services.command(&["seed"]).await;
    assert!(status.success(), "{text}");
    let balancer = Balancer::start().await;
    let mut servers = Vec::new();
    for name in ["server-a", "server-b"] {
        servers.push(services.serve(name, &balancer.url).await);
    }
    balancer.set(&[&servers[0], &servers[1]]);
    let servers = in_order(servers).await;
    let admin = administrator(&services, &balancer.url).await;
    both_serve(&admin, &servers).await;

    let agent = Agent::start_at(&balancer.url, services.folder(), &admin, "pair-host").await;
    let mut direct = admin.clone();
    direct.url.clone_from(&servers[0].url);
    let mut server = Live::open(&direct, "main:server", 0).await;
    server.until("the server online", |e| e.payload["state"] == "online").await;
    let (servers, first) =
        run_through_a_kill(&services, &balancer, &admin, &agent, "leader-killed", servers, 0).await;
    let (servers, second) =
        run_through_a_kill(&services, &balancer, &admin, &agent, "follower-killed", servers, 1).await;

    // What the survivors show is what the log makes.
    let (status, text) = services.command(&["rebuild"]).await;
    assert!(status.success(), "rebuild: {text}");
    let (status, text) = services.command(&["verify"]).await;
    assert!(status.success(), "verify: {text}");
    for run in [first, second] {
        let rows = admin.rows(&format!("/api/v_benchmark_results?run=eq.{run}&select=job")).await;
        assert_eq!(rows.len(), 2, "{run}");
    }
    drop(agent);
    drop(servers);
}
