//! Reading the log.

mod except;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, RwLock, RwLockReadGuard};

use bytes::Bytes;
use events::envelope::Recorded;
use events::keys::StreamKey;
use futures::TryStreamExt;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPool, PgRow};
use sqlx::{AssertSqlSafe, Postgres, Row};
use uuid::Uuid;

use super::LogError;
use super::archive::Archive;
use super::database;
use super::raw::{COLUMNS, RawEvent, copied_row};
pub use except::Stretch;

/// Most stream keys remembered.
const MOST_KEYS: usize = 200_000;
/// From this many events on, a range is copied out rather than selected: cheaper for each row, dearer to start.
const COPY_FROM: i64 = 200;
/// Most events read at once.
pub(super) const MOST_EVENTS: i64 = 10_000;

/// Reads events. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    pool: PgPool,
    keys: Arc<RwLock<HashMap<i64, StreamKey>>>,
    archive: Archive,
}

/// Rows of a range as the database sent them, in order.
#[derive(Debug, Default)]
pub(super) struct RawRows(Vec<Bytes>);

impl RawRows {
    /// The events. A row that cannot be read is an error of its own, and the rows after it are still there.
    pub fn iter(&self) -> impl Iterator<Item = Result<RawEvent<'_>, LogError>> {
        self.0
            .iter()
            .enumerate()
            .filter_map(|(at, message)| copied_row(message, at == 0))
            .map(RawEvent::of_copied)
    }
}

impl Reader {
    pub fn new(pool: PgPool) -> Self {
        Self::with_archive(pool, Archive::default())
    }

    /// Reads positions that the database no longer holds from an archive.
    pub fn with_archive(pool: PgPool, archive: Archive) -> Self {
        Self { pool, keys: Arc::default(), archive }
    }

    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// The rows of the positions after `after`, up to `last`.
    pub async fn raw_range(&self, after: i64, last: i64) -> Result<RawRows, LogError> {
        self.raw_within(after, last, usize::MAX).await
    }

    /// The first rows of a range that take `bytes` in all, and at least one.
    async fn raw_within(&self, after: i64, last: i64, bytes: usize) -> Result<RawRows, LogError> {
        // COPY takes no parameters; two numbers are safe to write out.
        let sql = format!(
            "copy (select {COLUMNS} from events where position > {after} and position <= {last} order by position) \
             to stdout (format binary)"
        );
        let mut borrowed = Borrowed(Some(self.pool.acquire().await?));
        let connection = borrowed.0.as_mut().expect("acquired above");
        let mut messages =
            Vec::with_capacity(usize::try_from((last - after).clamp(0, MOST_EVENTS)).unwrap_or(0));
        let mut stream = connection.copy_out_raw(&sql).await?;
        let (mut taken, mut to_the_end) = (0, true);
        while let Some(message) = stream.try_next().await? {
            taken += message.len();
            if taken > bytes && !messages.is_empty() {
                to_the_end = false;
                break;
            }
            messages.push(message);
        }
        drop(stream);
        // A connection with rows still on their way is closed: cheaper than to read them to no end.
        if to_the_end {
            borrowed.give_back();
        }
        Ok(RawRows(messages))
    }

    pub async fn read_all(&self, after: i64, limit: i64) -> Result<Vec<Recorded>, LogError> {
        let limit = limit.clamp(0, MOST_EVENTS);
        let (mut events, mut archived) = self.read_some(after.max(0), limit, usize::MAX).await?;
        // An archived file ends somewhere: the rest is in the next one, or in the database.
        while archived && (events.len() as i64) < limit {
            let at = events.last().map_or(after, |event| event.position);
            let (more, more_archived) = self.read_some(at, limit - events.len() as i64, usize::MAX).await?;
            events.extend(more);
            archived = more_archived;
        }
        Ok(events)
    }

    /// As [`Self::read_all`], of about `bytes` in all: fewer than `limit` do not mean that there are no more.
    pub async fn read_within(&self, after: i64, limit: i64, bytes: usize) -> Result<Vec<Recorded>, LogError> {
        let (mut events, archived) = self.read_some(after.max(0), limit.clamp(0, MOST_EVENTS), bytes).await?;
        if archived {
            let mut taken = 0;
            let fits = events.iter().take_while(|event| {
                taken += event.payload.len();
                taken <= bytes
            });
            let fits = fits.count().max(1);
            events.truncate(fits);
        }
        Ok(events)
    }

    /// Events from one place, and whether that was the archive, which may have more elsewhere.
    async fn read_some(
        &self,
        after: i64,
        limit: i64,
        bytes: usize,
    ) -> Result<(Vec<Recorded>, bool), LogError> {
        let events = if limit >= COPY_FROM {
            // Positions have no gaps, so a number of events is a range of positions.
            let rows = self.raw_within(after, after.saturating_add(limit), bytes).await?;
            self.recorded(rows.iter()).await?
        } else {
            let sql = format!("select {COLUMNS} from events where position > $1 order by position limit $2");
            let rows = sqlx::query(AssertSqlSafe(sql)).bind(after).bind(limit).fetch_all(&self.pool).await?;
            self.recorded(rows.iter().map(RawEvent::of_row)).await?
        };
        let first = events.first().map(|event| event.position);
        if limit == 0 || first == Some(after + 1) {
            return Ok((events, false));
        }
        let archived = self.archived(after, limit).await?;
        if !archived.is_empty() {
            return Ok((archived, true));
        }
        let next = match first {
            Some(first) => Some(first),
            // Nothing up to the limit may be the end of the log, or a hole wider than the limit.
            None => {
                sqlx::query_scalar("select min(position) from events where position > $1")
                    .bind(after)
                    .fetch_one(&self.pool)
                    .await?
            }
        };
        match next {
            None => Ok((events, false)),
            Some(next) if next == after + 1 => Ok((events, false)),
            // A hole would go unnoticed by whoever counts on there being none.
            Some(_) => {
                let what = "the event is neither in the database nor in the archive".to_owned();
                Err(LogError::Damaged { position: after + 1, what })
            }
        }
    }

    /// Events from the archive; empty where it does not hold the position after `after`.
    pub async fn archived(&self, after: i64, limit: i64) -> Result<Vec<Recorded>, LogError> {
        if self.archive.covering(after + 1).is_none() {
            return Ok(Vec::new());
        }
        let archive = self.archive.clone();
        let limit = usize::try_from(limit).unwrap_or(0);
        let read = tokio::task::spawn_blocking(move || archive.read_after(after, limit)).await;
        read.map_err(|_| LogError::Closed)?
    }

    pub async fn read_stream(
        &self,
        stream: &StreamKey,
        from_version: i64,
        limit: i64,
    ) -> Result<Vec<Recorded>, LogError> {
        let (from_version, limit) = (from_version.max(1), limit.clamp(0, MOST_EVENTS));
        let sql = format!(
            "select {COLUMNS} from events where stream_no = (select stream_no from streams where stream_key = $1) \
             and version >= $2 order by version limit $3"
        );
        let rows: Vec<PgRow> = sqlx::query(AssertSqlSafe(sql))
            .bind(stream.as_str())
            .bind(from_version)
            .bind(limit)
            .fetch_all(&self.pool)
            .await?;
        let events: Vec<Recorded> = rows
            .iter()
            .map(|row| Ok(RawEvent::of_row(row)?.recorded(stream.clone())))
            .collect::<Result<_, LogError>>()?;
        let next = events.first().map(|event| event.version);
        if limit == 0 || next == Some(from_version) {
            return Ok(events);
        }
        // Versions have no gaps: what precedes the first one here is archived, or there is nothing.
        let missing = match next {
            Some(next) => next - from_version,
            None => self.archived_versions(stream).await? - from_version + 1,
        };
        if missing <= 0 {
            return Ok(events);
        }
        let mut whole = self.archived_stream(stream, from_version, missing.min(limit)).await?;
        whole.extend(events);
        whole.truncate(usize::try_from(limit).unwrap_or(0));
        Ok(whole)
    }

    /// The last version of a stream that only the archive holds; 0 where the database holds all of it. Asked in one
    /// statement: what is appended meanwhile must not look like something that is gone.
    async fn archived_versions(&self, stream: &StreamKey) -> Result<i64, LogError> {
        let archived = sqlx::query_scalar(
            "select coalesce((select min(e.version) - 1 from events e where e.stream_no = s.stream_no), s.version) \
             from streams s where s.stream_key = $1",
        )
        .bind(stream.as_str())
        .fetch_optional(&self.pool)
        .await?;
        Ok(archived.unwrap_or(0))
    }

    /// `count` events of a stream that the database no longer holds.
    async fn archived_stream(
        &self,
        stream: &StreamKey,
        from_version: i64,
        count: i64,
    ) -> Result<Vec<Recorded>, LogError> {
        let (archive, key) = (self.archive.clone(), stream.clone());
        let read = tokio::task::spawn_blocking(move || archive.read_stream(&key, from_version, count)).await;
        let events = read.map_err(|_| LogError::Closed)??;
        if events.len() as i64 == count {
            return Ok(events);
        }
        let version = from_version + events.len() as i64;
        let what = format!("version {version} of {stream} is neither in the database nor in the archive");
        Err(LogError::Damaged { position: 0, what })
    }

    /// Every event of every stream of a kind, in the order of the log.
    pub async fn read_kind(&self, kind: &str) -> Result<Vec<Recorded>, LogError> {
        // Keys of a kind start with its name and a slash, and `0` is the character after the slash.
        let streams = "select stream_no, stream_key from streams where stream_key >= $1 || '/' and stream_key < $1 || '0'";
        let named =
            COLUMNS.split(',').map(|column| format!("e.{}", column.trim())).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "select {named} from ({streams}) s join events e using (stream_no) order by e.stream_no, e.version"
        );
        // The versions first: a stream that begins meanwhile must not look like one that is gone.
        let versions: Vec<(String, i64)> =
            sqlx::query_as(AssertSqlSafe(streams.replace("stream_no, stream_key", "stream_key, version")))
                .bind(kind)
                .fetch_all(&self.pool)
                .await?;
        let rows = sqlx::query(AssertSqlSafe(sql)).bind(kind).fetch_all(&self.pool).await?;
        let mut events = self.recorded(rows.iter().map(RawEvent::of_row)).await?;
        let held: HashMap<StreamKey, i64> =
            events.iter().rev().map(|event| (event.stream.clone(), event.version)).collect();
        for (key, version) in versions {
            let stream = database::stream_key(&key)?;
            let archived = held.get(&stream).map_or(version, |first| first - 1);
            if archived > 0 {
                events.extend(self.archived_stream(&stream, 1, archived).await?);
            }
        }
        events.sort_by_key(|event| event.position);
        Ok(events)
    }

    pub async fn event_by_id(&self, event_id: Uuid) -> Result<Option<Recorded>, LogError> {
        let Some(position) = self.positions_of(&[event_id]).await?.remove(&event_id) else { return Ok(None) };
        Ok(self.read_all(position - 1, 1).await?.pop())
    }

    pub async fn positions_of(&self, ids: &[Uuid]) -> Result<HashMap<Uuid, i64>, LogError> {
        let rows: Vec<(Uuid, i64)> =
            sqlx::query_as("select event_id, position from event_ids where event_id = any($1)")
                .bind(ids)
                .fetch_all(&self.pool)
                .await?;
        Ok(rows.into_iter().collect())
    }

    pub async fn stream_version(&self, stream: &StreamKey) -> Result<i64, LogError> {
        let version = sqlx::query_scalar("select version from streams where stream_key = $1")
            .bind(stream.as_str())
            .fetch_optional(&self.pool)
            .await?;
        Ok(version.unwrap_or(0))
    }

    /// Owned events of rows that were read.
    async fn recorded<'a>(
        &self,
        rows: impl Iterator<Item = Result<RawEvent<'a>, LogError>>,
    ) -> Result<Vec<Recorded>, LogError> {
        let rows: Vec<RawEvent<'_>> = rows.collect::<Result<_, _>>()?;
        let keys = self.keys_of(&rows).await?;
        Ok(rows.iter().map(|row| row.recorded(keys[&row.stream_no].clone())).collect())
    }

    /// The memory of stream keys, with at least those of `rows` in it.
    pub async fn keys_of(
        &self,
        rows: &[RawEvent<'_>],
    ) -> Result<RwLockReadGuard<'_, HashMap<i64, StreamKey>>, LogError> {
        loop {
            let unknown: HashSet<i64> = {
                let keys = self.keys.read().expect("no holder of this lock panics");
                let unknown: HashSet<i64> = rows
                    .iter()
                    .map(|row| row.stream_no)
                    .filter(|number| !keys.contains_key(number))
                    .collect();
                if unknown.is_empty() {
                    return Ok(keys);
                }
                unknown
            };
            self.learn_keys(rows, &unknown).await?;
        }
    }

    async fn learn_keys(&self, rows: &[RawEvent<'_>], unknown: &HashSet<i64>) -> Result<(), LogError> {
        let numbers: Vec<i64> = unknown.iter().copied().collect();
        let found = sqlx::query("select stream_no, stream_key from streams where stream_no = any($1)")
            .bind(&numbers)
            .fetch_all(&self.pool)
            .await?;
        let found: HashMap<i64, StreamKey> = found
            .iter()
            .map(|row| Ok((row.try_get(0)?, database::stream_key(row.try_get(1)?)?)))
            .collect::<Result<_, LogError>>()?;
        if let Some(row) =
            rows.iter().find(|row| unknown.contains(&row.stream_no) && !found.contains_key(&row.stream_no))
        {
            let what = format!("there is no stream with number {}", row.stream_no);
            return Err(LogError::Damaged { position: row.position, what });
        }
        let mut keys = self.keys.write().expect("no holder of this lock panics");
        if keys.len() + found.len() > MOST_KEYS {
            // Emptied of everything but what these rows need, or they would never find all their keys at once.
            let wanted: HashSet<i64> = rows.iter().map(|row| row.stream_no).collect();
            keys.retain(|number, _| wanted.contains(number));
        }
        keys.extend(found);
        Ok(())
    }
}

/// A connection that goes back to the pool only when its answer was read to the end: one left in the middle of a
/// COPY would give the next borrower the rest of it.
struct Borrowed(Option<PoolConnection<Postgres>>);

impl Borrowed {
    fn give_back(mut self) {
        self.0 = None;
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}
