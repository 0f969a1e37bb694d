//! The private PostgreSQL and NATS, with the real programs.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use async_nats::ConnectOptions;
use futures::StreamExt;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use nkeys::KeyPair;
use server::plant::{Plant, PlantConfig, PlantError, issue_agent_user};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

/// A folder that the database's user can enter, also when the tests run as root.
fn folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::with_prefix("plant").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn config(dir: &Path) -> PlantConfig {
    PlantConfig { durable: false, ..PlantConfig::new(dir) }
}

async fn start(dir: &Path) -> Plant {
    Plant::start(config(dir)).await.unwrap_or_else(|error| panic!("{error}"))
}

fn postmaster(dir: &Path) -> Option<Pid> {
    let text = std::fs::read_to_string(dir.join("postgres/data/postmaster.pid")).ok()?;
    text.lines().next()?.parse().ok().map(Pid::from_raw)
}

/// Waits until `what` gives something; fails after half a minute.
async fn eventually<T>(mut what: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = what().await {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "it did not happen in time");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The processes with `path` on their command line. (A zombie has an empty one.)
fn processes_of(path: &Path) -> Vec<Pid> {
    let path = path.to_str().unwrap().as_bytes();
    let names = |pid: i32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.windows(path.len()).any(|part| part == path))
    };
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| names(*pid)).map(Pid::from_raw).collect()
}

#[tokio::test]
async fn a_second_start_keeps_the_data_and_the_addresses() {
    let dir = folder();
    let plant = start(dir.path()).await;
    let (database, nats) = (plant.database_url.clone(), plant.nats.url.clone());
    let mut connection = PgConnection::connect(&database).await.unwrap();
    sqlx::raw_sql("create table kept (n int); insert into kept values (7)")
        .execute(&mut connection)
        .await
        .unwrap();
    drop(connection);
    plant.stop().await;
    assert_eq!(processes_of(dir.path()), [], "stop() left a process behind");

    let plant = start(dir.path()).await;
    assert_eq!((&plant.database_url, &plant.nats.url), (&database, &nats));
    let mut connection = PgConnection::connect(&database).await.unwrap();
    let kept: i32 = sqlx::query_scalar("select n from kept").fetch_one(&mut connection).await.unwrap();
    assert_eq!(kept, 7);
    plant.stop().await;
}

#[tokio::test]
async fn a_killed_database_comes_back_on_the_same_socket() {
    let dir = folder();
    let plant = start(dir.path()).await;
    let first = postmaster(dir.path()).unwrap();
    kill(first, Signal::SIGKILL).unwrap();
    eventually(async || postmaster(dir.path()).filter(|pid| *pid != first)).await;
    eventually(async || PgConnection::connect(&plant.database_url).await.ok()).await;
    plant.stop().await;
}

#[tokio::test]
async fn a_killed_nats_comes_back_on_the_same_port_and_clients_reconnect() {
    let dir = folder();
    let plant = start(dir.path()).await;
    let client = plant.nats.connect_options().unwrap().connect(&plant.nats.url).await.unwrap();
    let configuration = dir.path().join("nats/nats.conf").canonicalize().unwrap();
    let first = processes_of(&configuration)[0];
    kill(first, Signal::SIGKILL).unwrap();
    eventually(async || processes_of(&configuration).into_iter().find(|pid| *pid != first)).await;
    eventually(async || {
        let streams = async_nats::jetstream::new(client.clone());
        streams.query_account().await.ok()
    })
    .await;
    plant.stop().await;
}

#[tokio::test]
async fn only_one_plant_runs_on_a_folder() {
    let dir = folder();
    let plant = start(dir.path()).await;
    let second = Plant::start(config(dir.path())).await;
    let Err(PlantError::InUse { pid, .. }) = second else { panic!("a second plant started") };
    assert_eq!(pid, std::process::id().to_string());
    plant.stop().await;
}

#[tokio::test]
async fn with_addresses_of_your_own_nothing_is_started() {
    let dir = folder();
    let given = PlantConfig {
        database_url: Some("postgres://elsewhere/db".into()),
        nats_url: Some("nats://elsewhere:4222".into()),
        ..config(&dir.path().join("var"))
    };
    let plant = Plant::start(given).await.unwrap();
    assert_eq!(plant.database_url, "postgres://elsewhere/db");
    assert_eq!(plant.nats.url, "nats://elsewhere:4222");
    assert!(!dir.path().join("var").exists());
}

#[tokio::test]
async fn a_socket_path_that_is_too_long_is_put_elsewhere() {
    let dir = folder();
    let long = dir.path().join("a-folder-with-a-long-name".repeat(4));
    let plant = start(&long).await;
    PgConnection::connect(&plant.database_url).await.unwrap();
    let socket = plant.database_url.split(['@', ':']).nth(2).unwrap().replace("%2F", "/");
    assert!(socket.starts_with("/tmp/benchtrail-"), "{}", plant.database_url);
    plant.stop().await;
    std::fs::remove_dir_all(socket).unwrap();
}

#[tokio::test]
async fn an_agent_speaks_on_its_own_subjects_only() {
    let dir = folder();
    let plant = start(dir.path()).await;
    let server = plant.nats.connect_options().unwrap().connect(&plant.nats.url).await.unwrap();
    let mut reports = server.subscribe("ingest.>").await.unwrap();
    server.flush().await.unwrap();

    let (events, mut errors) = tokio::sync::mpsc::unbounded_channel();
    let agent = agent_options(&plant, "a7", Duration::from_secs(60))
        .event_callback(move |event| {
            let _ = events.send(event.to_string());
            async {}
        })
        .connect(&plant.nats.url)
        .await
        .unwrap();

    agent.publish("ingest.acme.a8.progress", "not mine".into()).await.unwrap();
    agent.publish("ingest.acme.a7.progress", "mine".into()).await.unwrap();
    agent.flush().await.unwrap();
    let report = reports.next().await.unwrap();
    assert_eq!(
        (report.subject.as_str(), report.payload.as_ref()),
        ("ingest.acme.a7.progress", b"mine".as_ref())
    );
    let refused =
        eventually(async || errors.try_recv().ok().filter(|event| event.contains("ermission"))).await;
    assert!(refused.contains("ingest.acme.a8.progress"), "{refused}");

    // A request works: the reply comes to the agent's own inbox.
    let request = tokio::spawn({
        let agent = agent.clone();
        async move { agent.request("ingest.acme.a7.progress", "mine too".into()).await }
    });
    let report = reports.next().await.unwrap();
    server.publish(report.reply.unwrap(), "accepted".into()).await.unwrap();
    assert_eq!(request.await.unwrap().unwrap().payload.as_ref(), b"accepted");
    plant.stop().await;
}

#[tokio::test]
async fn an_agent_cannot_reach_the_events_or_jetstream() {
    let dir = folder();
    let plant = start(dir.path()).await;
    let server = plant.nats.connect_options().unwrap().connect(&plant.nats.url).await.unwrap();
    let agent = agent_options(&plant, "a7", Duration::from_secs(60)).connect(&plant.nats.url).await.unwrap();
    let mut everything = agent.subscribe(">").await.unwrap();
    agent.flush().await.unwrap();
    server.publish("events.acme.run", "secret".into()).await.unwrap();
    server.publish("agent.acme.a8.cmd", "another's".into()).await.unwrap();
    server.flush().await.unwrap();
    let heard = tokio::time::timeout(Duration::from_millis(300), everything.next()).await;
    assert!(!matches!(heard, Ok(Some(_))), "the agent heard {heard:?}");

    let streams = async_nats::jetstream::new(agent);
    let refused = tokio::time::timeout(Duration::from_secs(2), streams.get_stream("events")).await;
    assert!(!matches!(refused, Ok(Ok(_))));
    plant.stop().await;
}

#[tokio::test]
async fn an_expired_token_is_refused() {
    let dir = folder();
    let plant = start(dir.path()).await;
    let options = agent_options(&plant, "a7", Duration::ZERO);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert!(options.connect(&plant.nats.url).await.is_err());
    plant.stop().await;
}

#[tokio::test]
async fn a_stranger_is_refused() {
    let dir = folder();
    let plant = start(dir.path()).await;
    assert!(async_nats::connect(&plant.nats.url).await.is_err());
    plant.stop().await;
}

#[tokio::test]
async fn the_control_plane_can_keep_streams() {
    let dir = folder();
    let plant = start(dir.path()).await;
    let client = plant.nats.connect_options().unwrap().connect(&plant.nats.url).await.unwrap();
    let streams = async_nats::jetstream::new(client);
    let config = async_nats::jetstream::stream::Config {
        name: "events".into(),
        subjects: vec!["events.>".into()],
        ..Default::default()
    };
    streams.create_stream(config).await.unwrap();
    let ack = streams.publish("events.acme.run", "1".into()).await.unwrap().await.unwrap();
    assert_eq!(ack.sequence, 1);
    plant.stop().await;
}

fn agent_options(plant: &Plant, agent: &str, ttl: Duration) -> ConnectOptions {
    let key = KeyPair::new_user();
    let account = plant.nats.account.as_ref().unwrap();
    let jwt = issue_agent_user(account, "acme", agent, &key.public_key(), ttl).unwrap();
    let seed = key.seed().unwrap();
    ConnectOptions::with_jwt(jwt, move |nonce| {
        let key = KeyPair::from_seed(&seed).unwrap();
        async move { key.sign(&nonce).map_err(async_nats::AuthError::new) }
    })
    .custom_inbox_prefix(events::subjects::inbox_prefix("acme", agent))
    .max_reconnects(1)
}

/// Not a test of its own: the next one runs it as the process that it kills.
#[tokio::test]
#[ignore = "a helper of the next test"]
async fn hold_a_plant() {
    let Some(dir) = std::env::var_os("PLANT_TO_HOLD") else { return };
    let dir = PathBuf::from(dir);
    let _plant = start(&dir).await;
    std::fs::write(dir.join("held"), "").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_killed_control_plane_leaves_no_process_and_loses_no_data() {
    let dir = folder();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold_a_plant", "--ignored"])
        .env("PLANT_TO_HOLD", dir.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually(async || dir.path().join("held").exists().then_some(())).await;
    assert!(!processes_of(dir.path()).is_empty());
    holder.kill().unwrap();
    holder.wait().unwrap();
    eventually(async || processes_of(dir.path()).is_empty().then_some(())).await;
    start(dir.path()).await.stop().await;
}
