//! A private PostgreSQL for tests of the log, and events to put into it.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use events::canonical::CanonicalJson;
use events::envelope::{Actor, ActorKind, NewEvent};
use events::keys::StreamKey;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, User, chown};
use serde_json::json;
use server::log::{AppendOutcome, AppendRequest, Expected, Log, LogConfig};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

/// A PostgreSQL cluster in a folder of its own, reached over a Unix socket, stopped when dropped.
pub struct Cluster {
    dir: TempDir,
    programs: PathBuf,
    settings: Vec<String>,
    postgres: Option<Child>,
}

fn programs() -> PathBuf {
    let named = std::env::var_os("BENCHTRAIL_PG_BIN").map(PathBuf::from);
    let mut packaged: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    packaged.sort();
    packaged.reverse();
    let on_path = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .filter_map(|dir| std::fs::canonicalize(dir.join("postgres")).ok()?.parent().map(Path::to_owned))
        .collect::<Vec<_>>();
    named
        .into_iter()
        .chain(packaged)
        .chain(on_path)
        .find(|bin| bin.join("initdb").is_file())
        .expect("PostgreSQL is installed (or BENCHTRAIL_PG_BIN names the folder of its programs)")
}

/// PostgreSQL refuses to run as root; then it runs as the user `postgres`.
fn as_database_user(command: &mut Command) -> &mut Command {
    if let Some(user) = database_user() {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    command
}

fn database_user() -> Option<User> {
    Uid::effective()
        .is_root()
        .then(|| User::from_name("postgres").unwrap().expect("there is a user postgres"))
}

impl Cluster {
    /// One that does not flush to disk: quick, and safe for everything but a power failure.
    pub async fn start() -> Self {
        Self::start_with(&["fsync=off", "synchronous_commit=off", "full_page_writes=off"]).await
    }

    pub async fn start_with(settings: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("btlog").tempdir_in("/tmp").unwrap();
        if let Some(user) = database_user() {
            chown(dir.path(), Some(user.uid), Some(user.gid)).unwrap();
        }
        let programs = programs();
        let output = as_database_user(&mut Command::new(programs.join("initdb")))
            .args([
                "--no-sync",
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C",
                "--pgdata",
            ])
            .arg(dir.path().join("data"))
            .current_dir("/tmp")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut cluster = Self { dir, programs, settings, postgres: None };
        cluster.restart().await;
        cluster
    }

    /// Starts it again after [`Cluster::kill`].
    pub async fn restart(&mut self) {
        assert!(self.postgres.is_none());
        // A postmaster that was killed leaves children who hold on for a moment.
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let mut command = Command::new(self.programs.join("postgres"));
            command.arg("-D").arg(self.dir.path().join("data")).arg("-k").arg(self.dir.path());
            for setting in ["listen_addresses=", "max_connections=100"] {
                command.args(["-c", setting]);
            }
            for setting in &self.settings {
                command.args(["-c", setting]);
            }
            let log =
                std::fs::File::options().create(true).append(true).open(self.dir.path().join("log")).unwrap();
            let mut child = as_database_user(&mut command)
                .current_dir("/tmp")
                .stdin(Stdio::null())
                .stdout(log.try_clone().unwrap())
                .stderr(log)
                .spawn()
                .unwrap();
            loop {
                if let Ok(connection) = PgConnection::connect(&self.url("postgres")).await {
                    connection.close().await.unwrap();
                    self.postgres = Some(child);
                    return;
                }
                if child.try_wait().unwrap().is_some() {
                    break;
                }
                assert!(Instant::now() < deadline, "{}", self.server_log());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert!(Instant::now() < deadline, "{}", self.server_log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// What the server wrote down.
    pub fn server_log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// SIGKILL, in the middle of whatever it is doing.
    pub fn kill(&mut self) {
        let mut child = self.postgres.take().expect("it is running");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// The URL of a database, as superuser.
    pub fn url(&self, database: &str) -> String {
        let dir = self.dir.path().display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{dir}:5432/{database}")
    }

    /// A new database with the migrations applied; returns its URL, as superuser.
    pub async fn database(&self, name: &str) -> String {
        self.execute("postgres", &format!("create database {name}")).await.unwrap();
        let url = self.url(name);
        server::log::migrate(&url).await.unwrap();
        url
    }

    pub async fn connect(&self, database: &str) -> PgConnection {
        PgConnection::connect(&self.url(database)).await.unwrap()
    }

    /// Runs SQL as superuser.
    pub async fn execute(&self, database: &str, sql: &str) -> Result<(), sqlx::Error> {
        let mut connection = self.connect(database).await;
        let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.map(|_| ());
        connection.close().await.unwrap();
        done
    }

    /// Settings for a log in a database of this cluster. Every log of a cluster has the same key.
    pub fn config(&self, database: &str) -> LogConfig {
        let keys = self.dir.path().join("keys");
        LogConfig { poll: Duration::from_millis(20), ..LogConfig::new(self.url(database), keys) }
    }

    pub async fn log(&self, database: &str) -> Log {
        Log::open(self.config(database)).await.unwrap()
    }

    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.env("PGHOST", self.dir.path()).env("PGPORT", "5432").env("PGUSER", "postgres");
        command
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut child) = self.postgres.take() {
            // Immediate shutdown: every process of the cluster ends at once.
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGQUIT);
            let _ = child.wait();
        }
    }
}

pub fn stream(name: &str) -> StreamKey {
    StreamKey::new("project", &["acme", name])
}

/// An event with a number in its payload.
pub fn event(number: i64) -> NewEvent {
    NewEvent {
        event_id: Uuid::now_v7(),
        event_type: "test.happened".to_owned(),
        schema_version: 1,
        org: "acme".to_owned(),
        actor: Actor { kind: ActorKind::System, id: "test".to_owned() },
        causation_id: None,
        correlation_id: None,
        occurred_at: server::clock::now(),
        payload: CanonicalJson::of(&json!({"number": number, "text": "ä\u{1f680}\n"})).unwrap(),
    }
}

pub fn events(numbers: std::ops::Range<i64>) -> Vec<NewEvent> {
    numbers.map(event).collect()
}

pub fn request(name: &str, expected: Expected, events: Vec<NewEvent>) -> AppendRequest {
    AppendRequest::one(stream(name), expected, events)
}

/// Appends events to a stream whatever its version, and expects no trouble.
pub async fn append(log: &Log, name: &str, numbers: std::ops::Range<i64>) -> (i64, i64) {
    match log.append(request(name, Expected::Any, events(numbers))).await.unwrap() {
        AppendOutcome::Appended { first, last, .. } => (first, last),
        other => panic!("not appended: {other:?}"),
    }
}

/// Reads the whole log and checks what must always hold of it: positions 1..=n, versions of each stream 1..=m, the
/// chain, and no event twice. Returns the events.
pub async fn read_and_check(log: &Log) -> Vec<events::envelope::Recorded> {
    use std::collections::{HashMap, HashSet};
    let mut all = Vec::new();
    loop {
        let batch = log.read_all(all.len() as i64, 10_000).await.unwrap();
        if batch.is_empty() {
            break;
        }
        all.extend(batch);
    }
    let mut versions: HashMap<&StreamKey, i64> = HashMap::new();
    let mut ids = HashSet::new();
    let mut hash = events::envelope::GENESIS_HASH;
    for (at, event) in all.iter().enumerate() {
        assert_eq!(event.position, at as i64 + 1, "positions have no gaps");
        let version = versions.entry(&event.stream).or_default();
        *version += 1;
        assert_eq!(event.version, *version, "versions of {} have no gaps", event.stream);
        assert!(ids.insert(event.event_id), "{} stands twice", event.event_id);
        hash = events::envelope::chain_hash(&hash, &event.computed_leaf());
        assert_eq!(event.hash, hash, "the chain holds at {}", event.position);
    }
    let head = log.head().await.unwrap();
    assert_eq!((head.position, head.hash), (all.len() as i64, hash), "the head is the end of the chain");
    all
}
