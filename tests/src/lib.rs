//! Support for the black-box tests: the real control plane with its private plant, a real agent, a real model server.
//!
//! Nothing here knows the inside of the product: everything goes through the command line, the HTTP API, the live
//! stream and the log's own table. Processes started here are ended with their whole process group, also when a test
//! panics.

pub mod agent;
pub mod api;
pub mod binaries;
pub mod browser;
pub mod control_plane;
pub mod crowd;
pub mod database;
pub mod fleet;
pub mod imports;
pub mod live;
pub mod log_copy;
pub mod model_server;
pub mod outside;
pub mod plant_nats;
pub mod process;
pub mod proxy;
pub mod services;
pub mod workloads;

use std::time::Duration;

/// How long a test waits for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Polls until `probe` yields something; fails the test after [`PATIENCE`].
///
/// For states that no position announces (a process's exit, a port). Everything in the log is waited for by position.
pub async fn eventually<T, F>(what: &str, mut probe: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "waited {PATIENCE:?} in vain for {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
