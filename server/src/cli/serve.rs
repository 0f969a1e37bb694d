//! `benchtrail up` and `benchtrail serve`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use events::access::Role;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::connect::ConnectArgs;
use super::locate::{ServerFile, process_began};
use super::{DEFAULT_ADMIN, DEFAULT_ORG, DirArgs};
use crate::auth::accounts::{self, NewAccount};
use crate::auth::{Principal, password};
use crate::config::{Config, url_of};
use crate::plant::{Plant, PlantConfig};
use crate::secrets::write_private;
use crate::state::AppState;
use crate::{app, clock, log};

/// How it is reached.
#[derive(Debug, Clone, Args)]
struct ListenArgs {
    /// The address to listen on. Port 0 takes a free one, which is written to FOLDER/server.json.
    #[arg(long, default_value = "127.0.0.1:8080", env = "BENCHTRAIL_LISTEN", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// The folder of the built page. Without it: frontend/dist where there is one, else the API alone.
    #[arg(long, visible_alias = "page", env = "BENCHTRAIL_PAGE_DIR", value_name = "FOLDER")]
    page_dir: Option<PathBuf>,
    /// The address people and agents reach it by, when it is another than the listener's (https makes cookies secure).
    #[arg(long, env = "BENCHTRAIL_PUBLIC_URL", value_name = "URL")]
    public_url: Option<Url>,
    /// The address agents reach NATS by, when it is another than ours.
    #[arg(long, env = "BENCHTRAIL_NATS_PUBLIC_URL", value_name = "URL")]
    nats_public_url: Option<String>,
    /// A proxy stands in front and sets X-Forwarded-For: take the client's address from there.
    #[arg(long, env = "BENCHTRAIL_BEHIND_PROXY")]
    behind_proxy: bool,
}

impl ListenArgs {
    async fn bind(&self) -> anyhow::Result<TcpListener> {
        TcpListener::bind(self.listen).await.with_context(|| {
            format!(
                "cannot listen on {}. Something else may: see `ss -ltnp`, or choose a free port with --listen 127.0.0.1:0",
                self.listen
            )
        })
    }

    fn config(&self, dir: &Path, address: SocketAddr) -> Config {
        let mut config = Config::new(dir, address);
        let page = self.page_dir.clone().unwrap_or_else(|| PathBuf::from("frontend/dist"));
        // Built later, the page appears without a restart.
        if self.page_dir.is_some() || page.join("index.html").is_file() {
            if !page.join("index.html").is_file() {
                tracing::warn!(
                    "{} holds no index.html yet: build the page with scripts/build page",
                    page.display()
                );
            }
            config.page_dir = Some(page);
        }
        config.public_url = self.public_url.clone().unwrap_or_else(|| url_of(address));
        config.nats_public_url.clone_from(&self.nats_public_url);
        config.behind_proxy = self.behind_proxy;
        config
    }
}

/// Start everything on this machine: a private PostgreSQL and NATS, the control plane and the page.
///
/// The first start makes an account and prints its password; it is kept in FOLDER/first-sign-in.txt.
/// With DATABASE_URL or NATS_URL set, that service is used and no private one is started in its place.
/// Ctrl-C stops everything; the data stays in the folder.
#[derive(Debug, Args)]
pub struct Up {
    #[command(flatten)]
    dir: DirArgs,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    /// The organisation of the first account.
    #[arg(long, default_value = DEFAULT_ORG, value_name = "CODE")]
    org: String,
    /// The e-mail of the first account.
    #[arg(long, default_value = DEFAULT_ADMIN, value_name = "E-MAIL")]
    admin_email: String,
}

impl Up {
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let stop = on_signal()?;
        let dir = self.dir.dir;
        // Before anything is started: a taken port is the usual surprise.
        let listener = self.listen.bind().await?;
        let plant = tokio::select! {
            plant = async { Plant::start(PlantConfig::from_env(&dir)?).await } => plant?,
            () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
        };
        let database_url = plant.database_url.clone();
        let nats_url = plant.nats.url.clone();
        let nats = plant.nats.clone();
        let ran = async {
            log::migrate(&database_url).await?;
            let mut config = self.listen.config(&dir, listener.local_addr()?);
            self.connect.apply(&mut config)?;
            let state = AppState::open(&database_url, nats, config, stop.clone()).await?;
            super::ops::seed_catalogue(&state).await?;
            let first = first_account(&state, &self.org, &self.admin_email).await?;
            let file = server_file(&state, &database_url, &nats_url);
            file.write(&dir)?;
            say_up(&state, &dir, first.as_ref());
            let ran = app::run(state, listener).await;
            file.remove(&dir);
            anyhow::Ok(ran?)
        }
        .await;
        plant.stop().await;
        ran?;
        println!("Stopped. The data is kept in {}.", dir.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// Start the control plane on a PostgreSQL and NATS of your own.
///
/// DATABASE_URL must name a database whose owner may make roles and schemas, or one that `benchtrail migrate` has
/// prepared; NATS_URL a NATS with JetStream (NATS_CREDENTIALS: a .creds file; NATS_ACCOUNT_SEED: what signs agents'
/// credentials; without it agents use HTTPS). Several may run side by side with the same FOLDER/keys.
#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    dir: DirArgs,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Serve {
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let stop = on_signal()?;
        let config = PlantConfig::from_env(&self.dir.dir)?;
        if config.database_url.is_none() || config.nats_url.is_none() {
            bail!("set DATABASE_URL and NATS_URL, or run `benchtrail up`, which brings its own");
        }
        let listener = self.listen.bind().await?;
        let plant = Plant::start(config).await?;
        let (database_url, nats_url) = (plant.database_url.clone(), plant.nats.url.clone());
        let nats = plant.nats.clone();
        let dir = self.dir.dir;
        std::fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
        let mut config = self.listen.config(&dir, listener.local_addr()?);
        self.connect.apply(&mut config)?;
        let state = AppState::open(&database_url, nats, config, stop).await?;
        let file = server_file(&state, &database_url, &nats_url);
        file.write(&dir)?;
        say_up(&state, &dir, None);
        let ran = app::run(state, listener).await;
        file.remove(&dir);
        ran?;
        Ok(ExitCode::SUCCESS)
    }
}

fn server_file(state: &AppState, database_url: &str, nats_url: &str) -> ServerFile {
    ServerFile {
        url: state.config.public_url.as_str().trim_end_matches('/').to_owned(),
        pid: std::process::id(),
        began: process_began(std::process::id()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        database_url: database_url.to_owned(),
        nats_url: nats_url.to_owned(),
    }
}

/// Cancelled by Ctrl-C or SIGTERM; a second Ctrl-C ends the process at once.
fn on_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = stop.clone();
    tokio::spawn(async move {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        eprintln!("benchtrail: stopping; once more Ctrl-C ends it at once");
        token.cancel();
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        std::process::exit(1);
    });
    Ok(stop)
}

/// The first account's e-mail and password.
struct FirstAccount {
    email: String,
    password: String,
}

/// Makes the first account, and keeps its password in a file for its owner alone.
async fn first_account(state: &AppState, org: &str, email: &str) -> anyhow::Result<Option<FirstAccount>> {
    if accounts::any_account(&state.pool).await? {
        return Ok(None);
    }
    let now = clock::now();
    let actor = Principal::operator(org).actor();
    let password = password::generate();
    let path = state.config.dir.join("first-sign-in.txt");
    // The file first: a crash in between must not leave an account that nobody can open.
    write_private(&path, &format!("email: {email}\npassword: {password}\n"))
        .with_context(|| format!("writing {}", path.display()))?;
    accounts::ensure_org(&state.log, org, org, actor.clone(), now).await?;
    let new = NewAccount {
        email: email.to_owned(),
        name: "Administrator".to_owned(),
        password: password.clone(),
        org: org.to_owned(),
        role: Role::Admin,
    };
    accounts::create_account(&state.log, &state.pool, state.keys.vault(), new, actor, now).await?;
    Ok(Some(FirstAccount { email: email.to_owned(), password }))
}

fn say_up(state: &AppState, dir: &Path, first: Option<&FirstAccount>) {
    let config = &state.config;
    println!("Benchtrail {} is up.", env!("CARGO_PKG_VERSION"));
    println!("  page      {}", config.public_url);
    let kept = dir.join("first-sign-in.txt");
    match first {
        Some(first) => {
            println!("  sign in   {}   {}", first.email, first.password);
            println!("            (shown once; kept in {})", kept.display());
        }
        None if kept.exists() => println!("  sign in   see {}", kept.display()),
        None => println!("  sign in   with your account; `benchtrail user create` makes one"),
    }
    if config.page_dir.is_none() {
        println!("  note      the page is not built (scripts/build page); the API answers under /api");
    }
    println!("  data      {}", dir.display());
    println!("Ctrl-C stops it.");
}
