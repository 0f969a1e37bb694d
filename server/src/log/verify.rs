//! Verifying the log: walks the hash chain and names the first position that does not fit.

use std::collections::HashMap;

use events::envelope::{GENESIS_HASH, Recorded, chain_hash};
use events::hexadecimal;
use events::keys::StreamKey;
use events::merkle::{self, Checkpoint};
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Row};
use tokio::task::JoinHandle;

use super::LogError;
use super::archive::Archive;
use super::checkpoint::{checkpoint_of, from_position};
use super::database::hash_of;
use super::raw::RawEvent;
use super::read::{MOST_EVENTS, RawRows, Reader};
use super::signing::signature_holds;

/// Positions looked at in one step.
const STEP: i64 = MOST_EVENTS / 2;

/// What is to be verified, and against what.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// First position to look at; 0 or 1 for all. A later one takes the hash before it on trust.
    pub from: i64,
    /// Last position to look at; `None` for all.
    pub to: Option<i64>,
    /// A checkpoint that was kept elsewhere. It finds even a log that was rewritten as a whole.
    pub checkpoint: Option<Checkpoint>,
    /// Public keys that may sign; empty: any key, as long as the signature is its own.
    pub trusted_keys: Vec<[u8; 32]>,
    /// Archived ranges, for positions that the database no longer holds.
    pub archive: Archive,
}

/// The first thing that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The first position that does not fit.
    pub position: i64,
    /// What does not fit there.
    pub what: String,
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyReport {
    /// First position looked at.
    pub from: i64,
    /// Last position looked at.
    pub to: i64,
    /// Events whose content, place and hash fit.
    pub events: i64,
    /// Checkpoints whose signature, hash and Merkle root fit.
    pub checkpoints: i64,
    /// Public keys that signed them.
    pub keys: Vec<[u8; 32]>,
    /// Whether the checkpoint kept elsewhere was looked at and fits.
    pub external_checkpoint: bool,
    /// The first thing that does not fit; `None`: everything fits.
    pub fault: Option<Fault>,
}

/// Verifies the log of a database, telling `progress` the position reached now and then.
///
/// Looked at are: every position of the range is there; the content of each event gives its leaf and the leaf the
/// chain's hash; versions of each stream go up by one; each event id is where the id table says; the head is the
/// chain's end; every signed checkpoint has a valid signature and the chain's hash and Merkle root; and a checkpoint
/// kept elsewhere says the same as the log.
///
/// # Errors
/// The database cannot be read. That something does not fit is no error but a [`Fault`].
pub async fn verify(
    pool: &PgPool,
    options: &VerifyOptions,
    mut progress: impl FnMut(i64),
) -> Result<VerifyReport, LogError> {
    let reader = Reader::with_archive(pool.clone(), options.archive.clone());
    let head = sqlx::query("select position, hash from log_head").fetch_one(pool).await?;
    let head_position: i64 = head.try_get(0)?;
    let head_hash = hash_of(head_position, head.try_get(1)?);
    let from = options.from.max(1);
    let to = options.to.unwrap_or(head_position).min(head_position);
    let whole = from == 1 && to == head_position;

    let mut report = VerifyReport {
        from,
        to,
        events: 0,
        checkpoints: 0,
        keys: Vec::new(),
        external_checkpoint: false,
        fault: None,
    };
    let mut faults = Vec::new();
    if let Some(external) = &options.checkpoint {
        check_external_alone(external, options, head_position, &mut faults);
    }

    let mut walk = Walk::start(&reader, from, from_position(pool, from).await?, options, &mut faults).await?;
    while walk.position < to && !walk.broken {
        walk.step(to, &mut report, &mut faults).await?;
        progress(walk.position);
    }
    report.external_checkpoint = walk.external_seen;
    if let Some(external) = &options.checkpoint
        && !(from..=to).contains(&external.position)
        && external.position <= head_position
    {
        let what = "a checkpoint kept elsewhere is of a position that was not looked at: nothing was compared with it";
        faults.push(Fault { position: external.position, what: what.to_owned() });
    }
    if whole && !walk.broken {
        match head_hash {
            Ok(hash) if hash == walk.hash => {}
            _ => faults
                .push(Fault { position: to, what: "the head's hash is not the end of the chain".to_owned() }),
        }
        check_other_tables(pool, head_position, &walk.versions, &mut faults).await?;
    }
    // Stable: of several things wrong at one position the one found first is named.
    report.fault = faults.into_iter().min_by_key(|fault| fault.position);
    Ok(report)
}

/// What can be said of a checkpoint kept elsewhere without looking at the events.
fn check_external_alone(external: &Checkpoint, options: &VerifyOptions, head: i64, faults: &mut Vec<Fault>) {
    if let Some(what) = signature_fault(external, &options.trusted_keys) {
        faults.push(Fault {
            position: external.position,
            what: format!("the checkpoint kept elsewhere: {what}"),
        });
    }
    if external.position > head {
        let what = format!(
            "the log ends at {head}, but a checkpoint kept elsewhere was signed at {}: events were cut off",
            external.position
        );
        faults.push(Fault { position: head + 1, what });
    }
}

/// What is wrong with a checkpoint's signature, if anything; with keys to trust, another's is wrong too.
pub fn signature_fault(checkpoint: &Checkpoint, trusted: &[[u8; 32]]) -> Option<String> {
    if !signature_holds(checkpoint) {
        return Some("its signature does not hold".to_owned());
    }
    if !trusted.is_empty() && !trusted.contains(&checkpoint.public_key) {
        return Some(format!(
            "it was signed by the key {}, which is not trusted",
            hexadecimal::encode(&checkpoint.public_key)
        ));
    }
    None
}

/// What is looked at of an event.
struct Seen<'a> {
    position: i64,
    leaf: [u8; 32],
    hash: [u8; 32],
    /// Version of the event before it in its stream, where that was seen.
    before: Option<i64>,
    version: i64,
    stream: &'a StreamKey,
}

/// A walk along the chain.
struct Walk<'a> {
    reader: &'a Reader,
    options: &'a VerifyOptions,
    /// The last position that was looked at, and the chain's hash there.
    position: i64,
    hash: [u8; 32],
    /// The chain is broken: what comes after it would be compared with nothing.
    broken: bool,
    versions: HashMap<i64, i64>,
    archived_versions: HashMap<StreamKey, i64>,
    /// Checkpoints still ahead, in reverse order.
    checkpoints: Vec<Checkpoint>,
    /// Leaves since the last checkpoint, from `leaves_from + 1` on.
    leaves: Vec<[u8; 32]>,
    leaves_from: i64,
    external_seen: bool,
    /// The rows after a position, on their way.
    ahead: Option<(i64, JoinHandle<Result<RawRows, LogError>>)>,
}

impl<'a> Walk<'a> {
    async fn start(
        reader: &'a Reader,
        from: i64,
        rows: Vec<sqlx::postgres::PgRow>,
        options: &'a VerifyOptions,
        faults: &mut Vec<Fault>,
    ) -> Result<Self, LogError> {
        let mut hash = GENESIS_HASH;
        if from > 1 {
            let before =
                reader.read_all(from - 2, 1).await?.pop().ok_or(LogError::NoSuchPosition(from - 1))?;
            hash = before.hash;
        }
        let mut checkpoints = Vec::with_capacity(rows.len());
        for row in rows.iter().rev() {
            match checkpoint_of(row) {
                Ok(checkpoint) => checkpoints.push(checkpoint),
                Err(LogError::Damaged { position, what }) => faults.push(Fault { position, what }),
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            reader,
            options,
            position: from - 1,
            hash,
            broken: false,
            versions: HashMap::new(),
            archived_versions: HashMap::new(),
            checkpoints,
            leaves: Vec::new(),
            leaves_from: from - 1,
            external_seen: false,
            ahead: None,
        })
    }

    /// Looks at the next few thousand positions.
    async fn step(
        &mut self,
        to: i64,
        report: &mut VerifyReport,
        faults: &mut Vec<Fault>,
    ) -> Result<(), LogError> {
        let last = to.min(self.position + STEP);
        let raw = match self.ahead.take().filter(|(after, _)| *after == self.position) {
            Some((_, reading)) => reading.await.map_err(|_| LogError::Closed)??,
            None => self.reader.raw_range(self.position, last).await?,
        };
        // The database reads the next rows while these are hashed.
        if last < to {
            let (reader, next) = (self.reader.clone(), to.min(last + STEP));
            self.ahead = Some((last, tokio::spawn(async move { reader.raw_range(last, next).await })));
        }
        let mut rows: Vec<RawEvent<'_>> = Vec::new();
        let mut unreadable = None;
        for row in raw.iter() {
            match row {
                Ok(row) => rows.push(row),
                Err(LogError::Damaged { what, .. }) => {
                    unreadable = Some(what);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        // The archive is asked only where the database has nothing: a partition that was detached.
        if rows.first().is_none_or(|row| row.position > self.position + 1) && unreadable.is_none() {
            let archived = self.reader.archived(self.position, STEP).await;
            return self.step_archived(archived, to, report, faults);
        }
        let keys = loop {
            match self.reader.keys_of(&rows).await {
                Ok(keys) => break keys,
                // The row whose stream is missing, and all after it, are left out; what comes before is still judged.
                Err(LogError::Damaged { position, what }) => {
                    rows.truncate(rows.iter().position(|row| row.position == position).unwrap_or(0));
                    unreadable = Some(what);
                }
                Err(error) => return Err(error),
            }
        };
        let mut buffer = Vec::with_capacity(2048);
        for row in &rows {
            let key = &keys[&row.stream_no];
            let leaf = row.envelope(key.as_str()).leaf_with(&mut buffer);
            let before = self
                .versions
                .get(&row.stream_no)
                .copied()
                .or_else(|| self.archived_versions.get(key).copied());
            let seen = Seen {
                position: row.position,
                leaf,
                hash: row.hash,
                before,
                version: row.version,
                stream: key,
            };
            if let Some(fault) = self.fault(&seen, report.from) {
                return self.stop(self.position + 1, fault, faults);
            }
            self.versions.insert(row.stream_no, row.version);
            self.pass(leaf, row.hash, report, faults);
        }
        match unreadable {
            Some(what) => self.stop(self.position + 1, what, faults),
            None if self.position < last => {
                self.stop(self.position + 1, "the event is missing".to_owned(), faults)
            }
            None => Ok(()),
        }
    }

    /// Looks at events that came from the archive.
    fn step_archived(
        &mut self,
        archived: Result<Vec<Recorded>, LogError>,
        to: i64,
        report: &mut VerifyReport,
        faults: &mut Vec<Fault>,
    ) -> Result<(), LogError> {
        let events = match archived {
            Ok(events) => events,
            Err(LogError::Damaged { position, what }) => return self.stop(position, what, faults),
            Err(error) => return Err(error),
        };
        if events.is_empty() {
            return self.stop(self.position + 1, "the event is missing".to_owned(), faults);
        }
        for event in events.iter().filter(|event| event.position <= to) {
            let before = self.archived_versions.get(&event.stream).copied();
            let (leaf, hash, version) = (event.leaf, event.hash, event.version);
            let seen = Seen { position: event.position, leaf, hash, before, version, stream: &event.stream };
            if let Some(fault) = self.fault(&seen, report.from) {
                return self.stop(self.position + 1, fault, faults);
            }
            self.archived_versions.insert(event.stream.clone(), version);
            self.pass(leaf, hash, report, faults);
        }
        Ok(())
    }

    /// What does not fit of the event that comes next, if anything.
    fn fault(&self, seen: &Seen<'_>, from: i64) -> Option<String> {
        if seen.position != self.position + 1 {
            return Some("the event is missing".to_owned());
        }
        if chain_hash(&self.hash, &seen.leaf) != seen.hash {
            return Some("the content of the event, or of the one before, does not give its hash".to_owned());
        }
        let follows = match seen.before {
            Some(before) => seen.version == before + 1,
            None => from > 1 || seen.version == 1,
        };
        (!follows).then(|| format!("version {} of {} comes out of turn", seen.version, seen.stream))
    }

    /// Takes an event that fits as the end of the chain so far.
    fn pass(&mut self, leaf: [u8; 32], hash: [u8; 32], report: &mut VerifyReport, faults: &mut Vec<Fault>) {
        self.position += 1;
        self.hash = hash;
        self.leaves.push(leaf);
        report.events += 1;
        self.check_checkpoints(report, faults);
    }

    fn stop(&mut self, position: i64, what: String, faults: &mut Vec<Fault>) -> Result<(), LogError> {
        self.broken = true;
        faults.push(Fault { position, what });
        Ok(())
    }

    /// Compares what was signed at this position with the chain.
    fn check_checkpoints(&mut self, report: &mut VerifyReport, faults: &mut Vec<Fault>) {
        if let Some(external) = self.options.checkpoint.as_ref().filter(|c| c.position == self.position) {
            if external.hash == self.hash {
                self.external_seen = true;
            } else {
                let what =
                    "a checkpoint kept elsewhere has another hash: the log was rewritten here or before";
                faults.push(Fault { position: self.position, what: what.to_owned() });
            }
        }
        if self.checkpoints.last().is_none_or(|next| next.position != self.position) {
            return;
        }
        let checkpoint = self.checkpoints.pop().expect("looked at above");
        let mut fault = |what: String| {
            faults.push(Fault {
                position: checkpoint.position,
                what: format!("the checkpoint stored here: {what}"),
            });
        };
        let trusted = signature_fault(&checkpoint, &self.options.trusted_keys);
        let leaves = std::mem::take(&mut self.leaves);
        let leaves_from = std::mem::replace(&mut self.leaves_from, self.position);
        if let Some(what) = trusted {
            fault(what);
        } else if checkpoint.hash != self.hash {
            fault("it has another hash than the chain".to_owned());
        } else if checkpoint.previous_position > leaves_from
            || (report.from == 1 && checkpoint.previous_position < leaves_from)
        {
            fault("it does not follow on the checkpoint before".to_owned());
        } else if checkpoint.previous_position == leaves_from && checkpoint.root != merkle::root(&leaves) {
            fault("it has another Merkle root than the events".to_owned());
        } else {
            report.checkpoints += 1;
            if !report.keys.contains(&checkpoint.public_key) {
                report.keys.push(checkpoint.public_key);
            }
        }
    }
}

/// The tables beside the chain say the same as the chain.
async fn check_other_tables(
    pool: &PgPool,
    head: i64,
    versions: &HashMap<i64, i64>,
    faults: &mut Vec<Fault>,
) -> Result<(), LogError> {
    // The head was read first, so that events appended meanwhile lie beyond it.
    let queries = [
        (
            "select min(e.position) from events e left join event_ids i on i.event_id = e.event_id \
             where e.position <= $1 and i.position is distinct from e.position",
            "the id table does not hold the event's id",
        ),
        (
            "select min(i.position) from event_ids i left join events e on e.position = i.position \
             where i.position <= $1 and i.position >= (select min(position) from events) \
             and e.event_id is distinct from i.event_id",
            "the id table holds an id that no event has",
        ),
    ];
    for (sql, what) in queries {
        let position: Option<i64> = sqlx::query_scalar(AssertSqlSafe(sql)).bind(head).fetch_one(pool).await?;
        if let Some(position) = position {
            faults.push(Fault { position, what: what.to_owned() });
        }
    }
    // A stream's row may have moved on since, but never back.
    let rows = sqlx::query("select stream_no, stream_key, version from streams").fetch_all(pool).await?;
    let known: HashMap<i64, i64> =
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(2)?))).collect::<Result<_, LogError>>()?;
    for (number, version) in versions {
        if known.get(number).is_none_or(|known| known < version) {
            let what = format!("the stream table is behind version {version} of stream number {number}");
            faults.push(Fault { position: head, what });
        }
    }
    Ok(())
}
