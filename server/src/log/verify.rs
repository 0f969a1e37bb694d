//! Verifying the log: walks the hash chain and names the first position that does not fit.

use std::collections::HashMap;

use events::envelope::{GENESIS_HASH, chain_hash};
use events::hexadecimal;
use events::merkle::{self, Checkpoint};
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Row};

use super::LogError;
use super::checkpoint::{checkpoint_of, from_position};
use super::database::hash_of;
use super::raw::RawEvent;
use super::read::{MOST_EVENTS, Reader};
use super::signing::signature_holds;

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
    let reader = Reader::new(pool.clone());
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

fn signature_fault(checkpoint: &Checkpoint, trusted: &[[u8; 32]]) -> Option<String> {
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
    /// Checkpoints still ahead, in reverse order.
    checkpoints: Vec<Checkpoint>,
    /// Leaves since the last checkpoint, from `leaves_from + 1` on.
    leaves: Vec<[u8; 32]>,
    leaves_from: i64,
    external_seen: bool,
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
            let stored: Option<Vec<u8>> = sqlx::query_scalar("select hash from events where position = $1")
                .bind(from - 1)
                .fetch_optional(reader.pool())
                .await?;
            hash = hash_of(from - 1, &stored.ok_or(LogError::NoSuchPosition(from - 1))?)?;
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
            checkpoints,
            leaves: Vec::new(),
            leaves_from: from - 1,
            external_seen: false,
        })
    }

    /// Looks at the next few thousand positions.
    async fn step(
        &mut self,
        to: i64,
        report: &mut VerifyReport,
        faults: &mut Vec<Fault>,
    ) -> Result<(), LogError> {
        let last = to.min(self.position + MOST_EVENTS / 2);
        let raw = self.reader.raw_range(self.position, last).await?;
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
            let expected = self.position + 1;
            if row.position != expected {
                return self.stop(expected, "the event is missing".to_owned(), faults);
            }
            let leaf = row.envelope(keys[&row.stream_no].as_str()).leaf_with(&mut buffer);
            let hash = chain_hash(&self.hash, &leaf);
            if hash != row.hash {
                let what =
                    "the content of the event, or of the one before, does not give its hash".to_owned();
                return self.stop(expected, what, faults);
            }
            let before = self.versions.insert(row.stream_no, row.version);
            let follows = match before {
                Some(before) => row.version == before + 1,
                None => report.from > 1 || row.version == 1,
            };
            if !follows {
                let what = format!("version {} of {} comes out of turn", row.version, keys[&row.stream_no]);
                return self.stop(expected, what, faults);
            }
            self.position = expected;
            self.hash = hash;
            self.leaves.push(leaf);
            report.events += 1;
            self.check_checkpoints(report, faults);
        }
        match unreadable {
            Some(what) => self.stop(self.position + 1, what, faults),
            None if self.position < last => {
                self.stop(self.position + 1, "the event is missing".to_owned(), faults)
            }
            None => Ok(()),
        }
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
             where i.position <= $1 and e.event_id is distinct from i.event_id",
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
