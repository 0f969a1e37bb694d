//! A PostgreSQL and a NATS of nobody's, as a site brings its own, and control planes that share them.

use std::net::TcpListener as StdListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::unistd::{Uid, User, chown};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

use crate::api::http;
use crate::binaries::{binary, cache};
use crate::eventually;
use crate::process::Process;

/// The services, and the folder that everything of this test is in.
pub struct Services {
    folder: tempfile::TempDir,
    _postgres: Process,
    _nats: Process,
    /// The database's address, as its owner.
    pub database_url: String,
    nats_url: String,
}

/// A port that nobody listens on now.
pub fn free_port() -> u16 {
    StdListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port()
}

/// The folder of PostgreSQL's programs.
fn postgres_programs() -> PathBuf {
    let named = std::env::var_os("BENCHTRAIL_PG_BIN").map(PathBuf::from);
    let packaged = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut packaged: Vec<PathBuf> = packaged.map(|entry| entry.path().join("bin")).collect();
    packaged.sort();
    let found = named.into_iter().chain(packaged.into_iter().rev()).find(|bin| bin.join("initdb").is_file());
    found.expect("PostgreSQL is installed (or BENCHTRAIL_PG_BIN names the folder of its programs)")
}

/// PostgreSQL refuses to run as root; then it runs as the user `postgres`.
fn as_database_user(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt as _;
    if let Some(user) = database_user() {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    command
}

fn database_user() -> Option<User> {
    let root = Uid::effective().is_root();
    root.then(|| User::from_name("postgres").expect("readable").expect("there is a user postgres"))
}

impl Services {
    /// Starts both and waits until the database answers; makes its tables.
    pub async fn start() -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::Builder::new().prefix("bt-pair-").tempdir_in("/tmp").expect("a folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("permissions");
        let home = folder.path().join("postgres");
        std::fs::create_dir(&home).expect("a folder");
        if let Some(user) = database_user() {
            chown(&home, Some(user.uid), Some(user.gid)).expect("given to its user");
        }
        let (programs, data) = (postgres_programs(), home.join("data"));
        let mut initdb = Command::new(programs.join("initdb"));
        initdb.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]);
        let made = as_database_user(&mut initdb).arg("--pgdata").arg(&data).current_dir("/tmp").output();
        let made = made.expect("initdb starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = free_port().to_string();
        let mut postgres = Command::new(programs.join("postgres"));
        postgres.arg("-D").arg(&data).arg("-k").arg(&home).args(["-p", &port]).current_dir("/tmp");
        for setting in ["listen_addresses=127.0.0.1", "max_connections=200", "fsync=off"] {
            postgres.args(["-c", setting]);
        }
        as_database_user(&mut postgres);
        let postgres = Process::start("postgres", postgres, &folder.path().join("postgres.log"));

        let nats_port = free_port().to_string();
        let mut nats = Command::new(cache().join("tools/bin/nats-server"));
        nats.args(["-js", "-a", "127.0.0.1", "-p", &nats_port, "-sd"]).arg(folder.path().join("nats"));
        let nats = Process::start("nats-server", nats, &folder.path().join("nats.log"));

        let services = Self {
            _postgres: postgres,
            _nats: nats,
            database_url: format!("postgres://postgres@127.0.0.1:{port}/postgres"),
            nats_url: format!("nats://127.0.0.1:{nats_port}"),
            folder,
        };
        eventually("the database to answer", || async {
            let (status, _) = services.command(&["migrate"]).await;
            status.success().then_some(())
        })
        .await;
        services
    }

    /// The folder of this test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a `benchtrail` subcommand on this database with the servers' keys.
    pub async fn command(&self, args: &[&str]) -> (std::process::ExitStatus, String) {
        let mut command = tokio::process::Command::new(binary("benchtrail"));
        command.args(args).arg("--dir").arg(self.home("server-0"));
        command.env("DATABASE_URL", &self.database_url).env("NATS_URL", &self.nats_url);
        let output = command.output().await.expect("benchtrail starts");
        let text = [output.stdout, output.stderr].map(|t| String::from_utf8_lossy(&t).into_owned()).concat();
        (output.status, text)
    }

    /// A server's folder. Keys and blobs are shared, as a site mounts them.
    fn home(&self, name: &str) -> PathBuf {
        let home = self.folder.path().join(name);
        if !home.exists() {
            std::fs::create_dir(&home).expect("a folder");
            for shared in ["keys", "blobs"] {
                let target = self.folder.path().join(shared);
                std::fs::create_dir_all(&target).expect("a folder");
                std::os::unix::fs::symlink(target, home.join(shared)).expect("a link");
            }
        }
        home
    }

    /// Starts a control plane on these services, known by the balancer's address, and waits until it is ready.
    pub async fn serve(&self, name: &str, public_url: &str) -> Server {
        let (home, port) = (self.home(name), free_port());
        let mut command = Command::new(binary("benchtrail"));
        command.arg("serve").arg("--dir").arg(&home);
        command.args(["--listen", &format!("127.0.0.1:{port}"), "--public-url", public_url]);
        command
            .env("DATABASE_URL", &self.database_url)
            .env("NATS_URL", &self.nats_url)
            .env("BENCHTRAIL_ENDPOINT_ALLOW", "127.0.0.0/8")
            .current_dir(self.folder());
        let log = self.folder.path().join(format!("{name}.log"));
        let mut server = Server {
            process: Process::start(name, command, &log),
            url: format!("http://127.0.0.1:{port}"),
            address: format!("127.0.0.1:{port}"),
        };
        let (url, process) = (server.url.clone(), std::sync::Mutex::new(&mut server.process));
        eventually("the control plane to be ready", || async {
            process.lock().expect("not poisoned").assert_running();
            let answer = http().get(format!("{url}/readyz")).send().await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
        server
    }
}

/// One of several control planes.
pub struct Server {
    process: Process,
    /// Its own address.
    pub url: String,
    /// Where its listener is.
    pub address: String,
}

impl Server {
    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// What `/readyz` says.
    pub async fn ready(&self) -> Option<Value> {
        http().get(format!("{}/readyz", self.url)).send().await.ok()?.json().await.ok()
    }

    /// Whether it folds the projections.
    pub async fn leads(&self) -> bool {
        self.ready().await.is_some_and(|ready| ready["projections"]["leader"] == true)
    }
}

/// What stands before several servers: each connection goes to the next of them that answers.
pub struct Balancer {
    /// Its address.
    pub url: String,
    targets: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Balancer {
    /// Starts one without servers.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let targets: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
        let (known, next) = (targets.clone(), Arc::new(AtomicUsize::new(0)));
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (known, next) = (known.clone(), next.clone());
                tokio::spawn(async move {
                    let targets = known.lock().expect("not poisoned").clone();
                    for _ in 0..targets.len() {
                        let target = &targets[next.fetch_add(1, Ordering::Relaxed) % targets.len()];
                        if let Ok(mut server) = TcpStream::connect(target).await {
                            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { url, targets }
    }

    /// Sends connections to these servers from now on.
    pub fn set(&self, servers: &[&Server]) {
        let addresses = servers.iter().map(|server| server.address.clone()).collect();
        *self.targets.lock().expect("not poisoned") = addresses;
    }
}
