//! One try at appending a batch: what is remembered is trusted first, looked up after a miss, and locked after two.

use events::keys::StreamKey;
use sqlx::postgres::PgArguments;
use sqlx::{Arguments, Connection, PgConnection, Row};
use uuid::Uuid;

use super::{Appender, Attempt, Waiting, answered, appended};
use crate::clock;
use crate::log::LogError;
use crate::log::database::{self, HeadState, Meaning, StreamState};
use crate::log::plan::{Plan, holds, plan};
use crate::log::request::{AppendOutcome, AppendRequest, Placed};
use crate::log::rows::{RowArray, RowType};
use crate::log::same::same_content;

impl Appender {
    pub(super) async fn attempt_optimistic(
        &mut self,
        connection: &mut PgConnection,
        batch: &mut Vec<Waiting>,
        look_up: bool,
    ) -> Result<Attempt, LogError> {
        if look_up {
            self.look_up(connection, batch).await?;
            self.head = Some(answered(database::head(connection)).await?);
        } else {
            self.learn_unknown_streams(connection, batch).await?;
        }
        let head = self.head.expect("read by connect");
        let requests: Vec<&AppendRequest> = batch.iter().map(|waiting| &waiting.request).collect();
        let plan = plan(&requests, &self.streams, head, clock::now());
        if plan.accepted.is_empty() {
            drop(plan);
            // Nothing to append: whatever is left was doubted only because of what is remembered.
            if !look_up {
                self.look_up(connection, batch).await?;
            }
            return Ok(Attempt::Committed);
        }
        let arguments = arguments(&plan, self.row_type)?;
        let appended = match answered(send(connection, arguments)).await {
            Ok(appended) => appended,
            Err(error) => {
                if database::meaning(&error) == Meaning::Lost {
                    let tried = plan.accepted;
                    remember_tries(batch, tried);
                }
                return Err(error);
            }
        };
        if !appended {
            return Ok(Attempt::Overtaken);
        }
        let done = Done::of(plan);
        self.advance(&done);
        self.committed(batch, done);
        if !batch.is_empty() {
            self.look_up(connection, batch).await?;
        }
        Ok(Attempt::Committed)
    }

    pub(super) async fn attempt_locked(
        &mut self,
        connection: &mut PgConnection,
        batch: &mut Vec<Waiting>,
    ) -> Result<Attempt, LogError> {
        let mut transaction = answered(async { Ok(connection.begin().await?) }).await?;
        let head = answered(database::lock_head(&mut transaction)).await?;
        self.head = Some(head);
        self.look_up(&mut transaction, batch).await?;
        let requests: Vec<&AppendRequest> = batch.iter().map(|waiting| &waiting.request).collect();
        let plan = plan(&requests, &self.streams, head, clock::now());
        if plan.accepted.is_empty() {
            drop(plan);
            answered(async { Ok(transaction.rollback().await?) }).await?;
            return Ok(Attempt::Committed);
        }
        let arguments = arguments(&plan, self.row_type)?;
        let sent = answered(async {
            let appended = send(&mut transaction, arguments).await?;
            transaction.commit().await?;
            Ok(appended)
        });
        match sent.await {
            Ok(true) => {}
            Ok(false) => return Ok(Attempt::Overtaken),
            Err(error) => {
                if database::meaning(&error) == Meaning::Lost {
                    let tried = plan.accepted;
                    remember_tries(batch, tried);
                }
                return Err(error);
            }
        }
        let done = Done::of(plan);
        self.advance(&done);
        self.committed(batch, done);
        Ok(Attempt::Committed)
    }

    /// Looks up the streams that the batch needs and that are not remembered. A stream believed to be new is not
    /// looked up: the database refuses it if it is not.
    pub(super) async fn learn_unknown_streams(
        &mut self,
        connection: &mut PgConnection,
        batch: &[Waiting],
    ) -> Result<(), LogError> {
        let mut unknown: Vec<&str> = batch
            .iter()
            .flat_map(|waiting| &waiting.request.writes)
            .filter(|write| !holds(write.expected, 0) || write.expected == crate::log::Expected::Any)
            .filter(|write| self.streams.get(&write.stream).is_none())
            .map(|write| write.stream.as_str())
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        unknown.sort_unstable();
        unknown.dedup();
        for (key, state) in answered(database::streams(connection, &unknown)).await? {
            self.streams.insert(key, state);
        }
        Ok(())
    }

    /// Looks up every stream and every id of the batch, and answers the requests whose fate that decides: resends,
    /// reused ids and conflicts. Those that are left fit.
    async fn look_up(
        &mut self,
        connection: &mut PgConnection,
        batch: &mut Vec<Waiting>,
    ) -> Result<(), LogError> {
        let writes = || batch.iter().flat_map(|waiting| &waiting.request.writes);
        let mut keys: Vec<&str> = writes().map(|write| write.stream.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        // The streams before the ids: if an id is not there afterwards, its request was not yet appended when the
        // versions were read, so that a version that does not fit is a conflict and not the request's own doing.
        let found = answered(database::streams(connection, &keys)).await?;
        for write in writes() {
            self.streams.forget(&write.stream);
        }
        for (key, state) in found {
            self.streams.insert(key, state);
        }
        let ids: Vec<Uuid> = batch.iter().flat_map(Waiting::ids).collect();
        let positions = answered(database::positions(connection, &ids)).await?;

        // All outcomes before the first answer: an error on the way must leave the batch whole.
        let mut outcomes = Vec::with_capacity(batch.len());
        for waiting in batch.iter() {
            let places: Vec<Option<i64>> = waiting.ids().map(|id| positions.get(&id).copied()).collect();
            outcomes.push(if places.iter().any(Option::is_some) {
                Some(judge_known(connection, waiting, &places).await?)
            } else {
                self.conflict(&waiting.request)
            });
        }
        for (waiting, outcome) in std::mem::take(batch).into_iter().zip(outcomes) {
            match outcome {
                Some(outcome) => waiting.answer(outcome),
                None => batch.push(waiting),
            }
        }
        Ok(())
    }

    /// The conflict of a request with what is remembered, if there is one.
    fn conflict(&self, request: &AppendRequest) -> Option<AppendOutcome> {
        request.writes.iter().find_map(|write| {
            let actual = self.streams.get(&write.stream).map_or(0, |stream| stream.version);
            (!holds(write.expected, actual)).then(|| AppendOutcome::VersionConflict {
                stream: write.stream.clone(),
                expected: write.expected,
                actual,
            })
        })
    }
}

/// What a plan leaves behind once it is committed, free of the batch it borrowed from.
pub(super) struct Done {
    pub(super) accepted: Vec<(usize, Vec<Placed>)>,
    pub(super) streams: Vec<(StreamKey, StreamState)>,
    pub(super) leaves: Vec<[u8; 32]>,
    pub(super) old: HeadState,
    pub(super) new: HeadState,
}

impl Done {
    pub(super) fn of(plan: Plan<'_>) -> Self {
        Self {
            accepted: plan.accepted,
            streams: plan.streams.into_iter().map(|(key, state)| (key.clone(), state)).collect(),
            leaves: plan.leaves,
            old: plan.old,
            new: plan.new,
        }
    }
}

pub(super) fn remember_tries(batch: &mut [Waiting], tried: Vec<(usize, Vec<Placed>)>) {
    for (index, places) in tried {
        batch[index].tried.push(places);
    }
}

/// The outcome of a request some of whose ids are in the log already.
async fn judge_known(
    connection: &mut PgConnection,
    waiting: &Waiting,
    places: &[Option<i64>],
) -> Result<AppendOutcome, LogError> {
    let Some(positions) = places.iter().copied().collect::<Option<Vec<i64>>>() else {
        let (id, position) = waiting
            .ids()
            .zip(places)
            .find_map(|(id, place)| place.map(|position| (id, position)))
            .expect("some id is known");
        return Ok(AppendOutcome::Rejected {
            reason: format!(
                "event id {id} is at position {position} already, but others of this request are not in the log: \
                 an id belongs to one request; make new ids for new events"
            ),
        });
    };
    if let Some(events) =
        waiting.tried.iter().find(|tried| tried.iter().map(|p| p.position).eq(positions.iter().copied()))
    {
        // This very request: it had been committed when the connection was lost.
        return Ok(appended(events.clone()));
    }
    if let Some(id) = answered(same_content(connection, &waiting.request, &positions)).await? {
        return Ok(AppendOutcome::Rejected {
            reason: format!(
                "event id {id} is in the log already with other content; make a new id for a new event"
            ),
        });
    }
    Ok(AppendOutcome::AlreadyAppended { positions })
}

/// What `log_append` is called with for a plan, encoded and free of the batch it borrowed from.
pub(super) fn arguments(plan: &Plan<'_>, row_type: RowType) -> Result<PgArguments, LogError> {
    let columns = &plan.columns;
    let mut arguments = PgArguments::default();
    let mut add = || {
        arguments.add(plan.old.position)?;
        arguments.add(&plan.old.hash[..])?;
        arguments.add(plan.old.streams)?;
        arguments.add(&plan.new.hash[..])?;
        arguments.add(database::PgTimestamp(plan.recorded_at))?;
        arguments.add(&columns.created_no)?;
        arguments.add(&columns.created_key)?;
        arguments.add(&columns.created_version)?;
        arguments.add(&columns.moved_no)?;
        arguments.add(&columns.moved_from)?;
        arguments.add(&columns.moved_to)?;
        arguments.add(RowArray { rows: &columns.rows, row_type })
    };
    add().map_err(|error| LogError::Database(sqlx::Error::Encode(error)))?;
    Ok(arguments)
}

/// Calls `log_append`; false where the head was overtaken.
pub(super) async fn send(connection: &mut PgConnection, arguments: PgArguments) -> Result<bool, LogError> {
    let row =
        sqlx::query_with("select log_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)", arguments)
            .fetch_one(connection)
            .await?;
    Ok(row.try_get(0)?)
}
