//! Batches that are under way: sent, and not yet known to be committed.

use std::collections::{HashSet, VecDeque};

use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, StreamExt};
use sqlx::PgConnection;
use uuid::Uuid;

use super::attempt::{Done, arguments, remember_tries, send};
use super::waiting::Gathered;
use super::{Appender, Waiting, answered};
use crate::clock;
use crate::log::LogError;
use crate::log::database::{self, Meaning};
use crate::log::plan::plan;
use crate::log::request::AppendRequest;

/// Most batches under way at once: while one is flushed, the next writes.
pub(super) const MOST: usize = 2;

/// Events that are worth a batch beside another. Fewer are better off in one commit with those that come meanwhile: a
/// commit costs as much as some ten events.
const WORTH_A_COMMIT: usize = 64;

/// How a batch that was under way ended.
pub(super) struct Landed {
    connection: PgConnection,
    batch: Vec<Waiting>,
    done: Done,
    /// False where the head had been overtaken.
    appended: Result<bool, LogError>,
}

/// The batches that are under way, in the order in which they were sent.
#[derive(Default)]
pub(super) struct InFlight {
    batches: FuturesOrdered<BoxFuture<'static, Landed>>,
    /// The ids of the events of each, the oldest first.
    ids: VecDeque<HashSet<Uuid>>,
}

impl InFlight {
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Waits for the oldest batch.
    ///
    /// # Panics
    /// When nothing is under way.
    pub async fn next(&mut self) -> Landed {
        let landed = self.batches.next().await.expect("something is under way");
        self.ids.pop_front();
        landed
    }

    /// How many events of what has gathered are to be sent now; `None` where they are to wait. With nothing under way all
    /// of them, or half where either half is worth a commit of its own: then one writes while the other is flushed and
    /// its callers come back. Beside another batch only what is worth a commit, and not what sends again what is just
    /// being appended: the database would have one wait for the other.
    pub fn room(&self, gathered: &Gathered) -> Option<usize> {
        let events = gathered.events();
        match self.batches.len() {
            0 if events >= 2 * WORTH_A_COMMIT => Some(events.div_ceil(2)),
            0 => Some(events),
            MOST.. => None,
            _ if events < WORTH_A_COMMIT => None,
            _ => (!gathered.ids().any(|id| self.ids.iter().any(|ids| ids.contains(&id)))).then_some(events),
        }
    }
}

impl Appender {
    /// Sends a batch without waiting for it; gives it back where it has to be settled the slow way.
    pub(super) async fn launch(
        &mut self,
        batch: Vec<Waiting>,
        in_flight: &mut InFlight,
    ) -> Result<(), Vec<Waiting>> {
        if let Err(error) = self.connect().await {
            tracing::debug!(%error, "no connection to append by");
            return Err(batch);
        }
        let mut connection = self.idle.pop().expect("connected above");
        if let Err(error) = self.learn_unknown_streams(&mut connection, &batch).await {
            tracing::debug!(%error, "the streams could not be looked up");
            return Err(batch);
        }
        let head = self.head.expect("read by connect");
        let requests: Vec<&AppendRequest> = batch.iter().map(|waiting| &waiting.request).collect();
        let plan = plan(&requests, &self.streams, head, clock::now());
        if plan.accepted.is_empty() {
            drop(plan);
            self.idle.push(connection);
            return Err(batch);
        }
        let arguments = match arguments(&plan, self.row_type) {
            Ok(arguments) => arguments,
            Err(_) => {
                drop(plan);
                self.idle.push(connection);
                return Err(batch);
            }
        };
        let done = Done::of(plan);
        self.advance(&done);
        in_flight.ids.push_back(batch.iter().flat_map(Waiting::ids).collect());
        in_flight.batches.push_back(Box::pin(async move {
            let appended = answered(send(&mut connection, arguments)).await;
            Landed { connection, batch, done, appended }
        }));
        Ok(())
    }

    /// Answers what a batch that was under way appended, and puts the rest where it is settled.
    pub(super) fn landed(&mut self, landed: Landed, unsettled: &mut Vec<Vec<Waiting>>) {
        let Landed { connection, mut batch, done, appended } = landed;
        match appended {
            Ok(true) => {
                self.idle.push(connection);
                self.committed(&mut batch, done);
            }
            Ok(false) => self.idle.push(connection),
            Err(error) if database::meaning(&error) == Meaning::Lost => {
                tracing::warn!(%error, "the connection was lost during an append");
                remember_tries(&mut batch, done.accepted);
            }
            // The connection still has the turn to write: it goes with it.
            Err(error) => tracing::debug!(%error, "a batch did not go through as prepared"),
        }
        if !batch.is_empty() {
            unsettled.push(batch);
        }
    }
}
