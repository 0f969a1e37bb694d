//! The running control plane: the service and the tasks beside it.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use events::envelope::{Actor, ActorKind};
use events::keys::PLATFORM_ORG;
use events::system::ControlPlaneStarted;
use events::{Event, StreamKey};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::auth::record::record;
use crate::auth::{AuthError, accounts, sessions};
use crate::log::Expected;
use crate::state::AppState;
use crate::{api, clock, commands, ingest, notify, relay};

/// How long requests that are being answered may take to end once the process is to stop.
const DRAIN: Duration = Duration::from_secs(8);

/// What ended the service early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
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
    tasks.spawn(notify::run(state.clone()));
    if let Some(nats) = state.nats.clone() {
        let seal = state.keys.vault().message_seal();
        let relay =
            relay::start(state.log.clone(), state.pool.clone(), nats.clone(), seal, state.stop.clone());
        tasks.spawn(ingest::nats::listen(state.clone(), nats));
        tasks.spawn(async move {
            if let Err(error) = relay.await {
                tracing::error!(%error, "the relay ended; live pages still follow the log itself");
            }
        });
    }

    let stop = state.stop.clone();
    let serving = serve(listener, api::router(state.clone()), state.config.headers_within, stop.clone());
    let drained = async {
        stop.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        () = serving => {}
        () = drained => tracing::warn!("some requests did not end in {DRAIN:?} and are cut off"),
    }
    state.stop.cancel();
    let ended = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, ended).await.is_err() {
        tracing::warn!("some tasks did not end in {DRAIN:?} and are dropped");
    }
    Ok(())
}

/// Serves connections until `stop`, then lets the requests that are being answered end. Unlike axum's own loop it gives
/// a client a time to send its headers in, so that connections which say nothing do not use up the open files.
async fn serve(listener: TcpListener, router: Router, headers_within: Duration, stop: CancellationToken) {
    // HTTP/1.1 only, as a proxy in front speaks it: to tell HTTP/2 apart, the first bytes would be waited for without a
    // limit.
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(headers_within);
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::error!(%error, "a connection cannot be accepted");
                // Out of open files, mostly: some will be closed soon.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = service_fn(move |mut request: http::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(address));
            router.clone().oneshot(request.map(Body::new))
        });
        let connection = server.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, %address, "a connection ended early");
            }
        });
    }
    drop(listener);
    graceful.shutdown().await;
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
        state.limits.clean_up();
        if let Err(error) = sessions::clean_up(&state.pool, clock::now()).await {
            tracing::warn!(%error, "expired sessions could not be removed; trying again in an hour");
        }
    }
}
