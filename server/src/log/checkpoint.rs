//! Signed checkpoints: one every [`EVERY`] positions and on request; and the proofs that rest on them.

use ed25519_dalek::SigningKey;
use events::envelope::{GENESIS_HASH, chain_hash};
use events::merkle::{self, Checkpoint, Proof, ProofNode};
use sqlx::Row;
use sqlx::postgres::{PgPool, PgRow};
use tokio::sync::Mutex;

use super::appender::Committed;
use super::database::hash_of;
use super::read::{MOST_EVENTS, Reader};
use super::signing::sign;
use super::{Head, LogError};

/// Positions between two checkpoints at most.
pub const EVERY: i64 = 4096;
/// Most leaves kept in memory while no checkpoint can be signed.
const MOST_LEAVES: usize = 1 << 18;

/// Signs checkpoints; one at a time within a process. Between processes the table's unique constraints decide.
#[derive(Debug)]
pub(super) struct Checkpointer {
    reader: Reader,
    key: SigningKey,
    state: Mutex<State>,
}

/// The last checkpoint known, and the leaves after it that this process appended itself.
#[derive(Debug, Clone)]
struct State {
    position: i64,
    hash: [u8; 32],
    leaves: Vec<[u8; 32]>,
}

impl State {
    fn at(position: i64, hash: [u8; 32]) -> Self {
        Self { position, hash, leaves: Vec::new() }
    }

    /// Takes the leaves of a commit that follows what is held. Where somebody else appended in between, or nothing could be
    /// signed for long, those held are let go of: they are read when they are needed.
    fn take(&mut self, committed: &Committed) {
        let known = self.position + self.leaves.len() as i64;
        if committed.first == known + 1 && self.leaves.len() < MOST_LEAVES {
            self.leaves.extend_from_slice(&committed.leaves);
        } else {
            self.leaves.clear();
        }
    }

    /// Where nothing is held, takes what of a commit lies after the checkpoint, so that the next commit follows again.
    fn take_rest(&mut self, committed: &Committed) {
        if !self.leaves.is_empty() {
            return;
        }
        if let Ok(before) = usize::try_from(self.position + 1 - committed.first)
            && let Some(rest) = committed.leaves.get(before..)
        {
            self.leaves.extend_from_slice(rest);
        }
    }
}

impl Checkpointer {
    pub async fn open(reader: Reader, key: SigningKey) -> Result<Self, LogError> {
        let state = match last(reader.pool()).await? {
            Some(last) => State::at(last.position, last.hash),
            None => State::at(0, GENESIS_HASH),
        };
        Ok(Self { reader, key, state: Mutex::new(state) })
    }

    pub fn public_key(&self) -> [u8; 32] {
        self.key.verifying_key().to_bytes()
    }

    /// Takes note of leaves that were just committed, and signs the checkpoints that have come due.
    pub async fn committed(&self, committed: Committed) -> Result<(), LogError> {
        let mut state = self.state.lock().await;
        let end = committed.first + i64::try_from(committed.leaves.len()).unwrap_or(0) - 1;
        state.take(&committed);
        loop {
            let due = (state.position / EVERY + 1) * EVERY;
            if due > end {
                break;
            }
            self.sign_to(&mut state, due).await?;
        }
        state.take_rest(&committed);
        Ok(())
    }

    /// Signs a checkpoint at `head`, unless one stands there.
    pub async fn now(&self, head: Head) -> Result<Option<Checkpoint>, LogError> {
        if head.position == 0 {
            return Ok(None);
        }
        let mut state = self.state.lock().await;
        if state.position < head.position {
            return Ok(Some(self.sign_to(&mut state, head.position).await?));
        }
        drop(state);
        covering(self.reader.pool(), head.position).await
    }

    /// Signs the checkpoint over everything from the last one to `to`.
    async fn sign_to(&self, state: &mut State, to: i64) -> Result<Checkpoint, LogError> {
        let count = usize::try_from(to - state.position).unwrap_or(0);
        let (hash, root) = if state.leaves.len() >= count {
            let leaves = &state.leaves[..count];
            let hash = leaves.iter().fold(state.hash, |hash, leaf| chain_hash(&hash, leaf));
            let stored: Option<Vec<u8>> = sqlx::query_scalar("select hash from events where position = $1")
                .bind(to)
                .fetch_optional(self.reader.pool())
                .await?;
            if stored.as_deref() != Some(&hash[..]) {
                let what = format!("the hash is not the one that follows from checkpoint {}", state.position);
                return Err(LogError::Damaged { position: to, what });
            }
            (hash, merkle::root(leaves))
        } else {
            let leaves = self.read_leaves(state.position, to).await?;
            let hash = leaves.iter().fold(state.hash, |hash, (leaf, _)| chain_hash(&hash, leaf));
            // Never sign what does not fit.
            if leaves.last().map(|(_, stored)| *stored) != Some(hash) {
                let what = format!("the chain from checkpoint {} to {to} does not fit", state.position);
                return Err(LogError::Damaged { position: to, what });
            }
            let leaves: Vec<[u8; 32]> = leaves.into_iter().map(|(leaf, _)| leaf).collect();
            (hash, merkle::root(&leaves))
        };
        let checkpoint = sign(&self.key, state.position, to, hash, root);
        if insert(self.reader.pool(), &checkpoint).await? {
            let kept = state.leaves.split_off(count.min(state.leaves.len()));
            *state = State { position: to, hash, leaves: kept };
            return Ok(checkpoint);
        }
        // Another server was quicker. Go on from its checkpoint, which may lie before or after `to`.
        let Some(theirs) = last(self.reader.pool()).await? else {
            return Err(LogError::Damaged { position: to, what: "a checkpoint came and went".to_owned() });
        };
        *state = State::at(theirs.position, theirs.hash);
        if theirs.position < to {
            return Box::pin(self.sign_to(state, to)).await;
        }
        Ok(theirs)
    }

    /// Leaf and stored hash of each position after `after`, up to `last`.
    async fn read_leaves(&self, after: i64, last: i64) -> Result<Vec<([u8; 32], [u8; 32])>, LogError> {
        let mut leaves = Vec::new();
        let mut at = after;
        while at < last {
            let to = last.min(at + MOST_EVENTS);
            let rows = self.reader.raw_range(at, to).await?;
            let rows = rows.iter().collect::<Result<Vec<_>, _>>()?;
            let keys = self.reader.keys_of(&rows).await?;
            for row in &rows {
                at += 1;
                if row.position != at {
                    return Err(LogError::Damaged { position: at, what: "the event is missing".to_owned() });
                }
                leaves.push((row.envelope(keys[&row.stream_no].as_str()).leaf(), row.hash));
            }
            if at < to {
                return Err(LogError::Damaged { position: at + 1, what: "the event is missing".to_owned() });
            }
        }
        Ok(leaves)
    }

    /// The proof that the event at `position` is in the log, resting on a checkpoint that stands already.
    pub async fn proof(&self, position: i64) -> Result<Option<Proof>, LogError> {
        let Some(checkpoint) = covering(self.reader.pool(), position).await? else { return Ok(None) };
        let first = checkpoint.previous_position;
        let leaves = self.read_leaves(first, checkpoint.position).await?;
        let leaves: Vec<[u8; 32]> = leaves.into_iter().map(|(leaf, _)| leaf).collect();
        let index = usize::try_from(position - first - 1).map_err(|_| LogError::NoSuchPosition(position))?;
        let path = merkle::path(&leaves, index).ok_or(LogError::NoSuchPosition(position))?;
        let event =
            self.reader.read_all(position - 1, 1).await?.pop().ok_or(LogError::NoSuchPosition(position))?;
        let proof = Proof { event, path: path.into_iter().map(ProofNode).collect(), checkpoint };
        proof.verify().map_err(|error| LogError::Damaged { position, what: error.to_string() })?;
        Ok(Some(proof))
    }
}

const SELECT: &str = "select position, previous_position, hash, root, public_key, signature from checkpoints";

pub(super) fn checkpoint_of(row: &PgRow) -> Result<Checkpoint, LogError> {
    let position = row.try_get(0)?;
    let signature: &[u8] = row.try_get(5)?;
    Ok(Checkpoint {
        position,
        previous_position: row.try_get(1)?,
        hash: hash_of(position, row.try_get(2)?)?,
        root: hash_of(position, row.try_get(3)?)?,
        public_key: hash_of(position, row.try_get(4)?)?,
        signature: signature.try_into().map_err(|_| LogError::Damaged {
            position,
            what: "a signature that is not 64 bytes long".to_owned(),
        })?,
    })
}

async fn last(pool: &PgPool) -> Result<Option<Checkpoint>, LogError> {
    let sql = select(" order by position desc limit 1");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_optional(pool).await?;
    row.as_ref().map(checkpoint_of).transpose()
}

/// The checkpoint whose tree holds `position`.
async fn covering(pool: &PgPool, position: i64) -> Result<Option<Checkpoint>, LogError> {
    let sql = select(" where position >= $1 order by position limit 1");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(position).fetch_optional(pool).await?;
    row.as_ref().map(checkpoint_of).transpose()
}

/// Every checkpoint from position `from` on, in order.
pub(super) async fn from_position(pool: &PgPool, from: i64) -> Result<Vec<PgRow>, LogError> {
    let sql = select(" where position >= $1 order by position");
    Ok(sqlx::query(sqlx::AssertSqlSafe(sql)).bind(from).fetch_all(pool).await?)
}

fn select(rest: &str) -> String {
    format!("{SELECT}{rest}")
}

/// Stores a checkpoint; false where another one stands in its place.
async fn insert(pool: &PgPool, checkpoint: &Checkpoint) -> Result<bool, LogError> {
    let inserted = sqlx::query(
        "insert into checkpoints (position, previous_position, hash, root, public_key, signature) \
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind(checkpoint.position)
    .bind(checkpoint.previous_position)
    .bind(&checkpoint.hash[..])
    .bind(&checkpoint.root[..])
    .bind(&checkpoint.public_key[..])
    .bind(&checkpoint.signature[..])
    .execute(pool)
    .await;
    match inserted {
        Ok(_) => Ok(true),
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(positions: std::ops::RangeInclusive<u8>) -> Committed {
        Committed { first: i64::from(*positions.start()), leaves: positions.map(|n| [n; 32]).collect() }
    }

    fn held(state: &State) -> Vec<u8> {
        state.leaves.iter().map(|leaf| leaf[0]).collect()
    }

    #[test]
    fn one_that_was_out_of_step_is_in_step_again_after_the_next_checkpoint() {
        let mut state = State::at(8, [0; 32]);
        // Somebody else has appended 9 and 10.
        state.take(&committed(11..=13));
        state.take_rest(&committed(11..=13));
        assert_eq!(held(&state), [0; 0]);
        // This commit crosses a position at which a checkpoint was due; it was signed from what the database holds.
        state.take(&committed(14..=18));
        state.position = 16;
        state.take_rest(&committed(14..=18));
        assert_eq!(held(&state), [17, 18]);
        state.take(&committed(19..=20));
        state.take_rest(&committed(19..=20));
        assert_eq!(held(&state), [17, 18, 19, 20]);
    }

    #[test]
    fn one_that_begins_at_a_checkpoint_takes_the_first_commit_whole() {
        let mut state = State::at(8, [0; 32]);
        state.take(&committed(9..=10));
        state.take_rest(&committed(9..=10));
        assert_eq!(held(&state), [9, 10]);
        // Another server's checkpoint lies beyond this commit.
        let mut state = State::at(30, [0; 32]);
        state.take_rest(&committed(9..=10));
        assert_eq!(held(&state), [0; 0]);
    }
}
