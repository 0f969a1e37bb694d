//! Sends what the spool keeps, oldest first, one batch at a time, until somebody says stop.

use std::sync::Arc;
use std::time::Duration;

use events::report::{ItemOutcome, MAX_BATCH_ITEMS, ReportBatch, ReportItem};
use rand::Rng;

use super::{Batch, Spool};
use crate::control::{Control, ControlError};

/// The most bytes of one batch; NATS carries a megabyte by default.
const MAX_BATCH_BYTES: usize = 512 << 10;
/// The first pause after a failure; it doubles up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause after failures.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Sends the reports of one spool.
pub struct Sender {
    spool: Arc<Spool>,
    control: Arc<Control>,
    org: String,
    agent: String,
    /// How many reports the next batch may have; halved to find the one at fault when a batch is refused.
    batch_items: usize,
    pause: Duration,
}

impl Sender {
    /// A sender for the agent's reports.
    pub fn new(spool: Arc<Spool>, control: Arc<Control>, org: String, agent: String) -> Self {
        Self { spool, control, org, agent, batch_items: MAX_BATCH_ITEMS, pause: FIRST_PAUSE }
    }

    /// Sends for ever; drop the future to stop. Nothing is lost by stopping anywhere.
    pub async fn run(mut self) {
        let mut changes = self.spool.changes();
        loop {
            changes.mark_unchanged();
            let batch = self.spool.next_batch(self.batch_items, MAX_BATCH_BYTES);
            if batch.items.is_empty() {
                if changes.changed().await.is_err() {
                    return;
                }
                continue;
            }
            if !self.send(&batch).await {
                // Spread out, so that many agents do not come back in the same instant.
                let jitter = rand::rng().random_range(0.5..1.0);
                tokio::time::sleep(self.pause.mul_f64(jitter)).await;
                self.pause = (self.pause * 2).min(MAX_PAUSE);
            }
        }
    }

    /// Sends one batch and settles what was answered. Tells whether it got anywhere.
    async fn send(&mut self, batch: &Batch) -> bool {
        let request =
            ReportBatch { org: self.org.clone(), agent: self.agent.clone(), items: batch.items.clone() };
        match self.control.report(&request).await {
            Ok(reply) if reply.results.len() == batch.items.len() => self.settle(batch, &reply.results),
            Ok(reply) => {
                tracing::error!(
                    sent = batch.items.len(),
                    answered = reply.results.len(),
                    "the answer does not match the reports: sending them again"
                );
                false
            }
            Err(error) if error.is_permanent() => self.narrow_down(batch, &error),
            Err(error) => {
                tracing::warn!(%error, waiting = self.spool.pending(), "reports are kept and will be sent again");
                false
            }
        }
    }

    fn settle(&mut self, batch: &Batch, results: &[ItemOutcome]) -> bool {
        let mut settled = 0;
        let mut rejected = Vec::new();
        for (item, outcome) in batch.items.iter().zip(results) {
            match outcome {
                ItemOutcome::Accepted { .. } | ItemOutcome::Duplicate { .. } => {}
                ItemOutcome::Rejected { code, message, hint } => {
                    tracing::warn!(kind = item.body.kind(), event_id = %item.event_id, code, message, hint, "a report was rejected");
                    rejected.push((settled, item, format!("{code}: {message}")));
                }
                // Order is kept: what comes after it is sent again with it, and recognised by its id.
                ItemOutcome::Retry { message } => {
                    tracing::warn!(kind = item.body.kind(), message, "a report has to be sent again");
                    break;
                }
            }
            settled += 1;
        }
        if let Some(first) = rejected.first().map(|(at, ..)| *at)
            && !self.set_aside(rejected.into_iter().map(|(_, item, why)| (item, why)))
        {
            settled = first;
        }
        self.spool.settle(batch, settled);
        if settled > 0 {
            self.pause = FIRST_PAUSE;
        }
        if settled == batch.items.len() {
            self.batch_items = (self.batch_items * 2).min(MAX_BATCH_ITEMS);
        }
        settled == batch.items.len()
    }

    /// A whole batch was refused for what is in it: smaller batches find the report at fault, which is set aside.
    fn narrow_down(&mut self, batch: &Batch, error: &ControlError) -> bool {
        if batch.items.len() > 1 {
            self.batch_items = (batch.items.len() / 2).max(1);
            return true;
        }
        tracing::error!(%error, kind = batch.items[0].body.kind(), "a report was refused for good");
        let aside = self.set_aside([(&batch.items[0], error.to_string())]);
        if aside {
            self.spool.settle(batch, 1);
        }
        aside
    }

    /// Sets rejected reports aside. Those that the disk does not take stay in the spool, and are tried again.
    fn set_aside<'a>(&self, rejected: impl IntoIterator<Item = (&'a ReportItem, String)>) -> bool {
        let aside = self.spool.set_aside(rejected);
        if let Err(error) = &aside {
            tracing::error!(%error, "rejected reports could not be set aside: they are kept and tried again. Free some room");
        }
        aside.is_ok()
    }
}
