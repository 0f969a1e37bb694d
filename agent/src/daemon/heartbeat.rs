//! Says every few seconds that the agent is alive, and hands on what the control plane answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use events::report::{Heartbeat, HeartbeatReply, HeldAttempt};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use crate::clock::{self, Offset};
use crate::control::Control;
use crate::policy::Policy;
use crate::spool::Spool;

/// The heartbeat, in a task of its own: a slow answer must not hold up the work, nor the work the heartbeat.
pub(super) struct Heartbeats {
    holding: Arc<Mutex<Vec<HeldAttempt>>>,
    replies: mpsc::Receiver<HeartbeatReply>,
    offset: watch::Receiver<Option<Offset>>,
    task: tokio::task::JoinHandle<()>,
}

impl Heartbeats {
    pub(super) fn new(control: Arc<Control>, spool: Arc<Spool>, policy: &Policy) -> Self {
        let holding = Arc::new(Mutex::new(Vec::new()));
        let (send_reply, replies) = mpsc::channel(4);
        let (send_offset, offset) = watch::channel(None);
        let beat = Beat { control, spool, holding: Arc::clone(&holding), send_reply, send_offset };
        let task = tokio::spawn(beat.run(Duration::from_secs(policy.heartbeat_s)));
        Self { holding, replies, offset, task }
    }

    /// Says from now on that these attempts are worked on.
    pub(super) fn hold(&self, held: Vec<HeldAttempt>) {
        *self.holding.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// How far this host's clock is from the control plane's, once that is known.
    pub(super) fn offset(&self) -> watch::Receiver<Option<Offset>> {
        self.offset.clone()
    }

    /// The next answer.
    pub(super) async fn reply(&mut self) -> HeartbeatReply {
        match self.replies.recv().await {
            Some(reply) => reply,
            // The task runs for as long as we do.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Heartbeats {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Beat {
    control: Arc<Control>,
    spool: Arc<Spool>,
    holding: Arc<Mutex<Vec<HeldAttempt>>>,
    send_reply: mpsc::Sender<HeartbeatReply>,
    send_offset: watch::Sender<Option<Offset>>,
}

impl Beat {
    async fn run(self, every: Duration) {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            ticks.tick().await;
            let (asked, began) = (clock::now(), Instant::now());
            let holding = self.holding.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let heartbeat = Heartbeat { at: asked, holding, spooled: self.spool.pending() };
            match self.control.heartbeat(&heartbeat).await {
                Ok(reply) => {
                    if failing {
                        tracing::info!("the control plane answers again");
                    }
                    failing = false;
                    let ms = clock::offset_ms(asked, clock::now(), reply.at);
                    let measured = Offset { ms, round_trip: began.elapsed() };
                    self.send_offset.send_if_modified(|known| {
                        let better = measured.replaces(known.as_ref());
                        if better {
                            *known = Some(measured);
                        }
                        better
                    });
                    // An answer that finds no room will be given again.
                    let _ = self.send_reply.try_send(reply);
                }
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(%error, "no heartbeat; the work goes on and reports are kept");
                }
                Err(error) => tracing::debug!(%error, "no heartbeat"),
            }
        }
    }
}
