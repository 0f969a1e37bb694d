//! The envelope: what every event carries, and how it is hashed.
//!
//! `leaf = SHA-256(label ‖ field ‖ field ‖ …)`, each field preceded by its length in four bytes, big end first, in
//! the order of [`Envelope`]. Numbers are eight bytes, big end first; a UUID is its sixteen bytes; one that is
//! absent has length 0. `hash = SHA-256(hash of the previous position ‖ leaf)`; before position 1 the hash is 32
//! zero bytes. The golden vectors in this module's tests pin both.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::canonical::CanonicalJson;
use crate::keys::StreamKey;
use crate::timestamp::Timestamp;

/// Largest payload of one event, in bytes. Anything bulkier is a blob, named in an event by hash and size.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// The chain hash before the first event.
pub const GENESIS_HASH: [u8; 32] = [0; 32];

/// Which kind of party caused an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// A signed-in person, or a token of theirs.
    User,
    /// An enrolled agent on a GPU host.
    Agent,
    /// The control plane itself.
    System,
    /// Nobody who signed in.
    Anonymous,
}

impl ActorKind {
    /// The stable name that is stored and hashed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::System => "system",
            Self::Anonymous => "anonymous",
        }
    }
}

impl fmt::Display for ActorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is not one of [`ActorKind`]'s.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error("{0:?} is not a kind of actor: user, agent, system or anonymous")]
pub struct UnknownActorKind(pub String);

impl FromStr for ActorKind {
    type Err = UnknownActorKind;
    fn from_str(text: &str) -> Result<Self, UnknownActorKind> {
        match text {
            "user" => Ok(Self::User),
            "agent" => Ok(Self::Agent),
            "system" => Ok(Self::System),
            "anonymous" => Ok(Self::Anonymous),
            other => Err(UnknownActorKind(other.to_owned())),
        }
    }
}

/// Who caused an event. The id is never a name or an e-mail address: those stay in the vault.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Actor {
    /// Which kind of party.
    pub kind: ActorKind,
    /// Its stable id: a user's or an agent's id, or the name of a part of the control plane.
    pub id: String,
}

/// An event as its sender makes it, before the log gives it a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// UUID v7, made once by the sender and kept for every resend: it is what makes an append idempotent.
    pub event_id: Uuid,
    /// Stable dotted name, such as `job.completed`.
    pub event_type: String,
    /// Version of the payload's schema, from 1.
    pub schema_version: u16,
    /// The organisation that owns the event; `_` for the platform's own.
    pub org: String,
    /// Who caused it.
    pub actor: Actor,
    /// The event that caused this one.
    pub causation_id: Option<Uuid>,
    /// The request or workflow this belongs to.
    pub correlation_id: Option<Uuid>,
    /// When it happened, by the sender's clock.
    pub occurred_at: Timestamp,
    /// The payload: at most [`MAX_PAYLOAD_BYTES`] of canonical JSON.
    pub payload: CanonicalJson,
}

/// An event in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recorded {
    /// Place in the one global order, from 1, without a gap.
    pub position: i64,
    /// The stream it belongs to.
    pub stream: StreamKey,
    /// Place in its stream, from 1, without a gap.
    pub version: i64,
    /// The sender's id of the event.
    pub event_id: Uuid,
    /// Stable dotted name, such as `job.completed`.
    pub event_type: String,
    /// Version of the payload's schema, from 1.
    pub schema_version: u16,
    /// The organisation that owns the event; `_` for the platform's own.
    pub org: String,
    /// Who caused it.
    pub actor: Actor,
    /// The event that caused this one.
    pub causation_id: Option<Uuid>,
    /// The request or workflow this belongs to.
    pub correlation_id: Option<Uuid>,
    /// When it happened, by the sender's clock.
    pub occurred_at: Timestamp,
    /// When the control plane took it, by its own clock.
    pub recorded_at: Timestamp,
    /// The exact canonical JSON that was hashed.
    pub payload: String,
    /// SHA-256 of the canonical envelope.
    #[serde(with = "crate::hexadecimal::array")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub leaf: [u8; 32],
    /// The chain hash: SHA-256 of the previous position's hash and the leaf.
    #[serde(with = "crate::hexadecimal::array")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub hash: [u8; 32],
}

/// The fields that are hashed, borrowed, in the order in which they are hashed.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// Place in the global order.
    pub position: i64,
    /// The stream's key as text.
    pub stream: &'a str,
    /// Place in the stream.
    pub version: i64,
    /// The sender's id of the event.
    pub event_id: Uuid,
    /// Stable dotted name.
    pub event_type: &'a str,
    /// Version of the payload's schema.
    pub schema_version: u16,
    /// The owning organisation.
    pub org: &'a str,
    /// Which kind of party caused it.
    pub actor_kind: ActorKind,
    /// Who caused it.
    pub actor_id: &'a str,
    /// The event that caused this one.
    pub causation_id: Option<Uuid>,
    /// The request or workflow this belongs to.
    pub correlation_id: Option<Uuid>,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// The exact canonical JSON.
    pub payload: &'a str,
}

/// First bytes of every leaf, so that no other hash of the system can be taken for one.
const LABEL: &[u8] = b"benchtrail.event.v1\n";

impl Envelope<'_> {
    /// The leaf: SHA-256 of this envelope.
    pub fn leaf(&self) -> [u8; 32] {
        let mut buffer = Vec::with_capacity(320 + self.payload.len());
        self.leaf_with(&mut buffer)
    }

    /// As [`Envelope::leaf`], with a buffer that the caller keeps: for hashing many.
    pub fn leaf_with(&self, buffer: &mut Vec<u8>) -> [u8; 32] {
        fn field(buffer: &mut Vec<u8>, bytes: &[u8]) {
            let length = u32::try_from(bytes.len()).expect("a field of an event is far below 4 GiB");
            buffer.extend_from_slice(&length.to_be_bytes());
            buffer.extend_from_slice(bytes);
        }
        fn uuid(buffer: &mut Vec<u8>, id: Option<Uuid>) {
            match id {
                Some(id) => field(buffer, id.as_bytes()),
                None => field(buffer, &[]),
            }
        }
        buffer.clear();
        buffer.extend_from_slice(LABEL);
        field(buffer, &self.position.to_be_bytes());
        field(buffer, self.stream.as_bytes());
        field(buffer, &self.version.to_be_bytes());
        uuid(buffer, Some(self.event_id));
        field(buffer, self.event_type.as_bytes());
        field(buffer, &u64::from(self.schema_version).to_be_bytes());
        field(buffer, self.org.as_bytes());
        field(buffer, self.actor_kind.as_str().as_bytes());
        field(buffer, self.actor_id.as_bytes());
        uuid(buffer, self.causation_id);
        uuid(buffer, self.correlation_id);
        field(buffer, &self.occurred_at.as_micros().to_be_bytes());
        field(buffer, &self.recorded_at.as_micros().to_be_bytes());
        field(buffer, self.payload.as_bytes());
        Sha256::digest(&*buffer).into()
    }
}

/// The chain hash of a position: SHA-256 of the previous position's hash and this one's leaf.
pub fn chain_hash(previous: &[u8; 32], leaf: &[u8; 32]) -> [u8; 32] {
    Sha256::new().chain_update(previous).chain_update(leaf).finalize().into()
}

impl Recorded {
    /// The hashed fields, borrowed.
    pub fn envelope(&self) -> Envelope<'_> {
        Envelope {
            position: self.position,
            stream: self.stream.as_str(),
            version: self.version,
            event_id: self.event_id,
            event_type: &self.event_type,
            schema_version: self.schema_version,
            org: &self.org,
            actor_kind: self.actor.kind,
            actor_id: &self.actor.id,
            causation_id: self.causation_id,
            correlation_id: self.correlation_id,
            occurred_at: self.occurred_at,
            recorded_at: self.recorded_at,
            payload: &self.payload,
        }
    }

    /// The leaf that the content gives, which is [`Recorded::leaf`] unless something was altered.
    pub fn computed_leaf(&self) -> [u8; 32] {
        self.envelope().leaf()
    }
}
