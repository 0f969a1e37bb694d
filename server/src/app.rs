//! The running control plane: the service and the tasks beside it.

use std::net::SocketAddr;
use std::time::Duration;

use events::envelope::{Actor, ActorKind};
use events::keys::PLATFORM_ORG;
use events::system::ControlPlaneStarted;
use events::{Event, StreamKey};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::auth::record::record;
use crate::auth::{AuthError, accounts, sessions};
use crate::log::Expected;
use crate::state::AppState;
use crate::{api, clock, commands, ingest, relay};

/// How long requests that are being answered may take to end once the process is to stop.
const DRAIN: Duration = Duration::from_secs(8);

/// What ended the service early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The listener failed.
    #[error("serving requests: {0}")]
    Serve(#[from] std::io::Error),
    /// The start could not be recorded.
    #[error(transparent)]
    Start(#[from] AuthError),
}

/// Serves until [`AppState::stop`] is cancelled, then lets running requests end.
///
/// # Errors
/// The start cannot be recorded in the log, or the listener fails.
pub async fn run(state: AppState, listener: TcpListener) -> Result<(), RunError> {
    begin(&state).await?;
    let mut tasks = JoinSet::new();
    tasks.spawn(clean_up(state.clone()));
    tasks.spawn(commands::watch::watch(state.clone()));
    if let Some(nats) = state.nats.clone() {
        let relay = relay::start(state.log.clone(), state.pool.clone(), nats.clone(), state.stop.clone());
        tasks.spawn(ingest::nats::listen(state.clone(), nats));
        tasks.spawn(async move {
            if let Err(error) = relay.await {
                tracing::error!(%error, "the relay ended; live pages still follow the log itself");
            }
        });
    }

    let stop = state.stop.clone();
    let service = api::router(state.clone()).into_make_service_with_connect_info::<SocketAddr>();
    let serving = axum::serve(listener, service).with_graceful_shutdown(stop.clone().cancelled_owned());
    let drained = async {
        stop.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    let served = tokio::select! {
        served = async { serving.await } => served,
        () = drained => {
            tracing::warn!("some requests did not end in {DRAIN:?} and are cut off");
            Ok(())
        }
    };
    state.stop.cancel();
    let ended = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, ended).await.is_err() {
        tracing::warn!("some tasks did not end in {DRAIN:?} and are dropped");
    }
    Ok(served?)
}

/// What every start does: it says so in the log, and makes good what an earlier process may have left half done.
async fn begin(state: &AppState) -> Result<(), AuthError> {
    let now = clock::now();
    accounts::fold_all_memberships(&state.log, &state.pool).await?;
    let event = Event::ControlPlaneStarted(ControlPlaneStarted {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("BENCHTRAIL_COMMIT").map(str::to_owned),
    });
    let actor = Actor { kind: ActorKind::System, id: "control-plane".to_owned() };
    let stream = StreamKey::new("system", &[PLATFORM_ORG, "control-plane"]);
    record(&state.log, stream, Expected::Any, &event, actor, None, now).await?;
    Ok(())
}

/// Once an hour removes what is of no more use.
async fn clean_up(state: AppState) {
    let mut hourly = tokio::time::interval(Duration::from_secs(3600));
    loop {
        tokio::select! {
            () = state.stop.cancelled() => return,
            _ = hourly.tick() => {}
        }
        if let Err(error) = sessions::clean_up(&state.pool, clock::now()).await {
            tracing::warn!(%error, "expired sessions could not be removed; trying again in an hour");
        }
    }
}
