//! The agent's main loop: idle, claim, carry out, hand in, idle.

use std::sync::Arc;
use std::time::Duration;

use ed25519_dalek::VerifyingKey;
use events::keys::ServerKey;
use events::report::{AgentCommand, AssignedJob, ClaimRequest, HeldAttempt, SignedJob};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use uuid::Uuid;

use super::heartbeat::Heartbeats;
use crate::clock;
use crate::control::Control;
use crate::job::{self, Attempt, Host, Reporter, Stop};
use crate::spool::Spool;
use crate::state_dir::write_atomically;

/// How often an idle agent asks for work although nobody told it of any.
const IDLE_CLAIM: Duration = Duration::from_secs(30);
/// When it asks after a job: the run's next job is queued a moment after the last one ended.
const EAGER_CLAIMS: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(300), Duration::from_millis(700), Duration::from_secs(2)];
/// How long a job's last reports may take before the next job is asked for.
const HAND_IN: Duration = Duration::from_secs(60);

/// What the loop needs.
pub(super) struct Work {
    pub(super) host: Arc<Host>,
    pub(super) control: Arc<Control>,
    pub(super) spool: Arc<Spool>,
    pub(super) key: VerifyingKey,
    pub(super) server: ServerKey,
    pub(super) heartbeats: Heartbeats,
    pub(super) left_over: Option<HeldAttempt>,
}

impl Work {
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::Receiver<AgentCommand>,
        mut stopping: watch::Receiver<Option<Stop>>,
    ) {
        if let Some(held) = self.left_over.take() {
            self.heartbeats.hold(vec![held]);
            self.spool.drained(HAND_IN.min(Duration::from_secs(10))).await;
            self.heartbeats.hold(Vec::new());
        }
        // No job before it is known how far the clock is off.
        let mut offset = self.heartbeats.offset();
        tokio::select! {
            _ = offset.wait_for(Option::is_some) => {}
            _ = stopping.wait_for(Option::is_some) => {}
        }
        let mut eager = EAGER_CLAIMS.iter();
        let mut next_claim = Instant::now();
        while stopping.borrow().is_none() {
            let claim_now = tokio::select! {
                command = commands.recv() => matches!(command, Some(AgentCommand::WorkAvailable)),
                reply = self.heartbeats.reply() => reply.work_waiting,
                () = tokio::time::sleep_until(next_claim) => true,
                _ = stopping.changed() => false,
            };
            if !claim_now {
                continue;
            }
            match self.claim().await {
                Some(attempt) => {
                    self.carry_out(attempt, &mut commands, stopping.clone()).await;
                    eager = EAGER_CLAIMS.iter();
                    next_claim = Instant::now();
                }
                None => {
                    let eagerly = eager.next().copied();
                    if eagerly.is_none() {
                        // The run has no further job for it.
                        self.host.release_server().await;
                    }
                    next_claim = Instant::now() + eagerly.unwrap_or(IDLE_CLAIM);
                }
            }
        }
        self.host.release_server().await;
    }

    /// Asks for a job. The claim's id is on disk first: an agent that dies before the answer asks again by the same id.
    async fn claim(&self) -> Option<Attempt> {
        let offset = *self.heartbeats.offset().borrow();
        if offset.is_some_and(|offset| offset.step() == clock::Step::Out) {
            tracing::debug!("no work is asked for: the clock is off");
            return None;
        }
        let path = self.host.state.claim();
        let claim_id = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        let claim_id = claim_id.unwrap_or_else(Uuid::now_v7);
        if let Err(error) = write_atomically(&path, claim_id.to_string().as_bytes()) {
            tracing::error!(%error, "a claim cannot be written down; no work is taken");
            return None;
        }
        let reply = match self.control.claim(&ClaimRequest { claim_id }).await {
            Ok(reply) => reply,
            Err(error) => {
                tracing::warn!(%error, "no work could be asked for");
                return None;
            }
        };
        let attempt = reply.job.and_then(|signed| self.take(&signed));
        // A refusal takes the place of the claim.
        if attempt.is_none() {
            self.spool.durable(HAND_IN).await;
        }
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::error!(%error, "an answered claim cannot be removed");
        }
        attempt
    }

    /// Verifies a job. One that is refused is reported as such, if it can be told which one it was.
    fn take(&self, signed: &SignedJob) -> Option<Attempt> {
        match job::verify(signed, &self.key, &self.server, clock::now()) {
            Ok(job) => {
                let reporter = Reporter::new(Arc::clone(&self.spool), job.job.clone(), job.attempt);
                Some(Attempt { job, reporter })
            }
            Err(error) => {
                tracing::error!(%error, "a job is refused");
                if let Ok(job) = serde_json::from_str::<AssignedJob>(&signed.payload) {
                    let reporter = Reporter::new(Arc::clone(&self.spool), job.job, job.attempt);
                    reporter.failed("refused", error.to_string(), 0, 0);
                }
                None
            }
        }
    }

    /// Carries out an attempt, listening for its cancellation.
    async fn carry_out(
        &mut self,
        attempt: Attempt,
        commands: &mut mpsc::Receiver<AgentCommand>,
        mut stopping: watch::Receiver<Option<Stop>>,
    ) {
        let held = attempt.reporter.held();
        self.heartbeats.hold(vec![held.clone()]);
        let (stop, stopped) = watch::channel(None);
        let host = Arc::clone(&self.host);
        let mut running = tokio::spawn(async move { job::carry_out(&host, attempt, stopped).await });
        loop {
            let why = tokio::select! {
                ended = &mut running => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "an attempt broke off");
                        self.report_broken(&held);
                    }
                    break;
                }
                command = commands.recv() => match command {
                    Some(AgentCommand::Cancel { held: theirs }) if theirs == held => Stop::Asked,
                    _ => continue,
                },
                reply = self.heartbeats.reply() => {
                    if !reply.stop.contains(&held) {
                        continue;
                    }
                    Stop::Asked
                }
                _ = stopping.wait_for(Option::is_some), if stop.borrow().is_none() => Stop::AgentEnds,
            };
            stop.send_if_modified(|now| {
                let first = now.is_none();
                *now = now.or(Some(why));
                first
            });
        }
        // The lease is kept until the last report has arrived.
        self.spool.drained(HAND_IN).await;
        self.heartbeats.hold(Vec::new());
    }

    /// A defect of ours must not leave the job hanging.
    fn report_broken(&self, held: &HeldAttempt) {
        let reporter = Reporter::new(Arc::clone(&self.spool), held.job.clone(), held.attempt);
        let tally = self.spool.tally(&reporter.id());
        if !tally.ended {
            let lines = tally.framework_lines + tally.tool_lines + tally.agent_lines;
            let message =
                "the agent has a defect and broke the attempt off; its own output says where".into();
            reporter.failed("agent_error", message, tally.telemetry_samples, lines);
        }
    }
}
