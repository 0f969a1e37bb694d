//! What every handler and task shares.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio_util::sync::CancellationToken;

use crate::api::limits::Limits;
use crate::auth::sessions::SignInThrottle;
use crate::blobs::{BlobError, Blobs};
use crate::config::Config;
use crate::ingest::Rejections;
use crate::live::Hub;
use crate::log::{FLUSH_AS_WRITTEN, Log, LogConfig, LogError};
use crate::plant::NatsEndpoints;
use crate::projections::{self, ProjectionError};
use crate::secrets::{Keys, SecretsError};

/// Everything a request or a task needs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AppState {
    /// The event log.
    pub log: Log,
    /// Connections in the role `benchtrail_app`: the vault, presence, leases, and the projections' tables.
    pub pool: PgPool,
    /// Connections in the role `benchtrail_reader`, which owns nothing and writes nothing: for queries.
    pub reader: PgPool,
    /// What is too large for an event.
    pub blobs: Blobs,
    /// NATS; absent while the control plane runs without it.
    pub nats: Option<async_nats::Client>,
    /// Where agents find NATS, and the key that signs their credentials.
    pub nats_endpoints: Arc<NatsEndpoints>,
    /// The live stream's hub.
    pub hub: Hub,
    /// How far the read tables are.
    pub projections: projections::Handle,
    /// Which streams commands have to look at.
    pub work: crate::commands::WorkIndex,
    /// Signing and sealing.
    pub keys: Keys,
    /// The settings.
    pub config: Arc<Config>,
    /// Limits on asking too much.
    pub limits: Arc<Limits>,
    /// Limits on guessing passwords.
    pub sign_ins: Arc<SignInThrottle>,
    /// Limits on recording refused reports.
    pub rejections: Arc<Rejections>,
    /// Counters for `/metrics`.
    pub metrics: Arc<crate::api::metrics::Metrics>,
    /// Cancelled when this process is to stop; streams that never end by themselves end then.
    pub stop: CancellationToken,
}

/// Why the control plane could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The database's address is not one.
    #[error("DATABASE_URL is not a PostgreSQL address: {0}")]
    DatabaseUrl(sqlx::Error),
    /// The database does not answer.
    #[error("the database does not answer: {0}")]
    Database(#[from] sqlx::Error),
    /// The log cannot be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The projections cannot be started.
    #[error(transparent)]
    Projections(#[from] ProjectionError),
    /// The blobs' folder cannot be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// The keys cannot be read.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// NATS does not answer, or its credentials are not right.
    #[error("NATS at {url}: {reason}")]
    Nats {
        /// Its address.
        url: String,
        /// What went wrong.
        reason: String,
    },
}

impl AppState {
    /// Connects to a migrated database and to NATS, reads the keys, and starts the projections and the hub.
    ///
    /// # Errors
    /// [`OpenError`] names what cannot be reached or read.
    pub async fn open(
        database_url: &str,
        nats_endpoints: NatsEndpoints,
        config: Config,
        stop: CancellationToken,
    ) -> Result<Self, OpenError> {
        let keys = Keys::load(&config.keys_dir())?;
        let pool = pool(database_url, "benchtrail_app", 16).await?;
        let reader = pool_of(database_url, "benchtrail_reader", 16, true).await?;
        let archive = Some(config.archive_dir());
        let log = Log::open(LogConfig { archive, ..LogConfig::new(database_url, config.keys_dir()) }).await?;
        let blobs = Blobs::in_folder(&config.blobs_dir())?;
        let nats = connect(&nats_endpoints).await?;
        let relayed = nats.clone().map(|client| (client, keys.vault().message_seal()));
        let hub = Hub::start(log.clone(), relayed, stop.clone()).await?;
        let projections = projections::start(pool.clone(), log.clone(), stop.clone()).await?;
        let work = crate::commands::WorkIndex::start(log.clone(), stop.clone());
        Ok(Self {
            log,
            pool,
            reader,
            blobs,
            nats,
            nats_endpoints: Arc::new(nats_endpoints),
            hub,
            projections,
            work,
            keys,
            limits: Arc::new(Limits::new(config.rates)),
            config: Arc::new(config),
            sign_ins: Arc::default(),
            rejections: Arc::default(),
            metrics: Arc::default(),
            stop,
        })
    }
}

async fn connect(endpoints: &NatsEndpoints) -> Result<Option<async_nats::Client>, OpenError> {
    if endpoints.url.is_empty() {
        return Ok(None);
    }
    let failed = |reason: String| OpenError::Nats { url: endpoints.url.clone(), reason };
    let options = endpoints.connect_options().map_err(|error| failed(error.to_string()))?;
    let client = options.connect(&*endpoints.url).await.map_err(|error| failed(error.to_string()))?;
    Ok(Some(client))
}

/// A pool whose connections act in `role`.
///
/// # Errors
/// The database cannot be reached, or the role does not exist (the migrations make it).
pub async fn pool(database_url: &str, role: &'static str, most: u32) -> Result<PgPool, OpenError> {
    pool_of(database_url, role, most, false).await
}

async fn pool_of(
    database_url: &str,
    role: &'static str,
    most: u32,
    read_only: bool,
) -> Result<PgPool, OpenError> {
    let mut settings = vec![("role", role), ("timezone", "UTC"), ("statement_timeout", "60s")];
    settings.push(if read_only { ("default_transaction_read_only", "on") } else { FLUSH_AS_WRITTEN });
    let options = PgConnectOptions::from_str(database_url).map_err(OpenError::DatabaseUrl)?.options(settings);
    let pool = PgPoolOptions::new()
        .max_connections(most)
        .acquire_timeout(Duration::from_secs(10))
        .connect_with(options)
        .await?;
    Ok(pool)
}
