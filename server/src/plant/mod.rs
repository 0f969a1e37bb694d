//! The plant: a private PostgreSQL and a private NATS, owned by the control plane and kept in one folder.
//!
//! They are started as children, watched, started again when they die, and stopped with the control plane, also when
//! that is killed. With a `DATABASE_URL` or `NATS_URL` of your own the plant starts nothing in their place.

mod error;
mod files;
mod nats;
pub mod nats_credentials;
mod postgres;
mod supervisor;

use std::path::PathBuf;

use files::Lock;
use supervisor::Supervisor;

pub use error::PlantError;
pub use nats::NatsEndpoints;
pub use nats_credentials::{AccountKey, issue_agent_user, issue_server_user};

/// What the plant is to start, and where it keeps its data.
#[derive(Clone, Debug)]
pub struct PlantConfig {
    /// The folder for data, keys and logs; `./var` by default.
    pub dir: PathBuf,
    /// A database of your own. None: a private PostgreSQL.
    pub database_url: Option<String>,
    /// A NATS of your own. None: a private one.
    pub nats_url: Option<String>,
    /// For a NATS of your own: the text of the `.creds` file that the control plane connects with.
    pub nats_credentials: Option<String>,
    /// For a NATS of your own: the seed of the account that agents' tokens are signed with. Without it agents use HTTPS.
    pub nats_account_seed: Option<String>,
    /// The address the private NATS listens on: `127.0.0.1` unless agents run on other machines.
    pub nats_host: String,
    /// False only in tests: skips the disk flushes that make a commit survive a power failure.
    pub durable: bool,
}

impl PlantConfig {
    /// Everything private, on this machine only, in `dir`.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            database_url: None,
            nats_url: None,
            nats_credentials: None,
            nats_account_seed: None,
            nats_host: "127.0.0.1".into(),
            durable: true,
        }
    }

    /// Like [`PlantConfig::new`], with `DATABASE_URL`, `NATS_URL`, `NATS_CREDENTIALS` (a file), `NATS_ACCOUNT_SEED` and
    /// `BENCHTRAIL_NATS_HOST` from the environment.
    pub fn from_env(dir: impl Into<PathBuf>) -> Result<Self, PlantError> {
        let var = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut config = Self::new(dir);
        config.database_url = var("DATABASE_URL");
        config.nats_url = var("NATS_URL");
        config.nats_account_seed = var("NATS_ACCOUNT_SEED");
        if let Some(path) = var("NATS_CREDENTIALS") {
            let text =
                std::fs::read_to_string(&path).map_err(PlantError::io("reading NATS_CREDENTIALS", path))?;
            config.nats_credentials = Some(text);
        }
        if let Some(host) = var("BENCHTRAIL_NATS_HOST") {
            config.nats_host = host;
        }
        Ok(config)
    }
}

/// The running plant. Dropping it stops its children without waiting; [`Plant::stop`] waits.
#[derive(Debug)]
pub struct Plant {
    /// Connects as the database's owner: for migrations, and to make the roles that everything else uses.
    pub database_url: String,
    /// Where NATS is and how to speak to it.
    pub nats: NatsEndpoints,
    /// None when nothing was started.
    supervisor: Option<Supervisor>,
    /// Held until everything has stopped.
    _lock: Option<Lock>,
}

impl Plant {
    /// Starts what `config` does not name, and returns when it answers.
    ///
    /// # Errors
    /// A program is missing, the folder cannot be used or is in use, or a service did not become ready in time.
    pub async fn start(config: PlantConfig) -> Result<Self, PlantError> {
        let external_nats = config.nats_url.as_ref().map(|_| NatsEndpoints::external(&config)).transpose()?;
        let (database_url, nats) = match (config.database_url.clone(), external_nats) {
            (Some(database_url), Some(nats)) => {
                return Ok(Self { database_url, nats, supervisor: None, _lock: None });
            }
            given => given,
        };

        files::private_dir(&config.dir)?;
        files::private_dir(&config.dir.join("log"))?;
        let dir = config.dir.canonicalize().map_err(PlantError::io("finding the folder", &config.dir))?;
        let config = PlantConfig { dir, ..config };
        let lock = Lock::take(&config.dir)?;
        let supervisor = Supervisor::start().map_err(PlantError::io("starting a thread", &config.dir))?;

        let started = async {
            // Both at once: each takes a moment.
            let database = async {
                match database_url {
                    Some(url) => Ok(url),
                    None => postgres::start(&config, &supervisor).await,
                }
            };
            let messages = async {
                match nats {
                    Some(nats) => Ok(nats),
                    None => nats::start(&config, &supervisor).await,
                }
            };
            tokio::try_join!(database, messages)
        };
        match started.await {
            Ok((database_url, nats)) => {
                Ok(Self { database_url, nats, supervisor: Some(supervisor), _lock: Some(lock) })
            }
            Err(error) => {
                supervisor.stop().await;
                Err(error)
            }
        }
    }

    /// Stops what was started, in order, and returns when it has ended.
    pub async fn stop(mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.stop().await;
        }
    }
}
