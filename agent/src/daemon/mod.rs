//! `benchtrail-agent run`: claims jobs and carries them out, one at a time, until it is told to end.

mod heartbeat;
mod lock;
mod recover;
mod work;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use events::report::ReportBody;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::clock::{self, Offset, Step};
use crate::control::{Control, Https, http_client};
use crate::host;
use crate::identity::Identity;
use crate::job::{Host, Stop, Uploader};
use crate::logs::Secrets;
use crate::policy::Policy;
use crate::spool::{Sender, Spool};
use crate::state_dir::StateDir;
use heartbeat::Heartbeats;
pub use lock::{LockError, SingleInstance};
use work::Work;

/// How long the end of the agent waits for its last reports to be acknowledged. They are kept in any case.
const LAST_REPORTS: Duration = Duration::from_secs(5);
/// How often the host is looked at again for what changed.
const LOOK_AT_HOST: Duration = Duration::from_secs(60);

/// Runs the agent until SIGTERM or SIGINT.
///
/// # Errors
/// When it cannot begin: not enrolled, no valid policy, another agent on the same folder.
pub async fn run(state: StateDir, policy: Policy) -> anyhow::Result<()> {
    let identity = Identity::load(&state.identity())?;
    let key = identity.verifying_key()?;
    state.create().with_context(|| format!("{} cannot be created", state.root().display()))?;
    let _only_one = SingleInstance::lock(&state.lock())?;

    let spool = Arc::new(Spool::open(&state.spool(), policy.max_spool_bytes)?);
    let uploads = Uploader::open(&state.uploads()).context("the list of uploads cannot be opened")?;
    let https = Https::new(&identity.url, &identity.agent_token)?;
    let (send_command, commands) = mpsc::channel(16);
    let control = Arc::new(if policy.use_nats {
        Control::over_both(https, &identity, send_command)
    } else {
        // The channel stays open and silent.
        std::mem::forget(send_command);
        Control::over_https(https)
    });
    let secrets = Secrets::new(policy.secrets().into_iter().chain(identity.secrets()));
    let host = Arc::new(Host {
        accelerators: crate::telemetry::accelerators(),
        http: http_client()?,
        https: control.https().clone(),
        secrets,
        uploads: Arc::clone(&uploads),
        kept: tokio::sync::Mutex::default(),
        state: state.clone(),
        policy,
    });
    tracing::info!(agent = %identity.agent, org = %identity.org, url = %identity.url, waiting = spool.pending(), "the agent runs");

    let left_over = recover::recover(&host, &spool).await?;
    let heartbeats = Heartbeats::new(Arc::clone(&control), Arc::clone(&spool), &host.policy);
    let sender =
        Sender::new(Arc::clone(&spool), Arc::clone(&control), identity.org.clone(), identity.agent.clone());
    let (stop, stopping) = watch::channel(None::<Stop>);
    let background = [
        tokio::spawn(sender.run()),
        tokio::spawn(Arc::clone(&uploads).run(Arc::clone(&control), Arc::clone(&spool))),
        tokio::spawn(report_capabilities(Arc::clone(&host), Arc::clone(&spool), heartbeats.offset())),
        tokio::spawn(on_signal(stop)),
    ];

    let work = Work {
        host,
        control,
        spool: Arc::clone(&spool),
        key,
        server: identity.server,
        heartbeats,
        left_over,
    };
    work.run(commands, stopping).await;

    if !spool.drained(LAST_REPORTS).await {
        tracing::warn!(
            waiting = spool.pending(),
            "ending with reports that are not acknowledged: they are kept and sent at the next start"
        );
    }
    for task in background {
        task.abort();
    }
    tracing::info!("the agent has ended");
    Ok(())
}

async fn on_signal(stop: watch::Sender<Option<Stop>>) {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("signals cannot be received: end the agent with SIGKILL");
        return;
    };
    tokio::select! {
        _ = terminate.recv() => tracing::info!("SIGTERM: ending"),
        _ = interrupt.recv() => tracing::info!("SIGINT: ending"),
    }
    stop.send_replace(Some(Stop::AgentEnds));
    // A second signal must not be swallowed: whoever sends it wants out.
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::warn!("a second signal: ending at once");
    std::process::exit(130);
}

/// Reports what the host is and has: at the start, and when it changes.
async fn report_capabilities(
    host: Arc<Host>,
    spool: Arc<Spool>,
    mut offset: watch::Receiver<Option<Offset>>,
) {
    // The first heartbeat tells how far the clock is off; without an answer the host is reported all the same.
    let _ = tokio::time::timeout(Duration::from_secs(15), offset.wait_for(Option::is_some)).await;
    let mut reported = None;
    loop {
        let now = *offset.borrow();
        let step = now.map(|offset| offset.step());
        say_clock(now);
        let looking = Arc::clone(&host);
        let found =
            tokio::task::spawn_blocking(move || host::capabilities(&looking.policy, &looking.accelerators))
                .await;
        if let Ok(found) = found
            && reported.as_ref() != Some(&(found.clone(), step))
        {
            let mut capabilities = found.clone();
            capabilities.clock_offset_ms = now.map(|offset| offset.ms);
            spool.append(clock::now(), ReportBody::Capabilities { capabilities });
            reported = Some((found, step));
        }
        // A clock that was set right, or went wrong, is told at once: whether the host is given work depends on it.
        let moved = offset.wait_for(|now| now.map(|offset| offset.step()) != step);
        if matches!(tokio::time::timeout(LOOK_AT_HOST, moved).await, Ok(Err(_))) {
            return;
        }
    }
}

/// Says that the clock is off, and what follows from it.
fn say_clock(offset: Option<Offset>) {
    let Some(offset) = offset else { return };
    match offset.step() {
        Step::In => {}
        Step::Nearly => tracing::warn!(
            offset_ms = offset.ms,
            "this host's clock is off. Synchronise it, for example with chrony: when it is off by more, no job is taken"
        ),
        Step::Out => tracing::error!(
            offset_ms = offset.ms,
            "this host's clock is so far off that what a job reports would be refused: no job is taken until it is right. Synchronise it, for example with chrony"
        ),
    }
}
