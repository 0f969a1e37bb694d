//! Merkle trees over the leaves of events, and the proof that one event belongs to a signed checkpoint.
//!
//! The tree is that of RFC 6962, section 2.1: a leaf is `SHA-256(0x00 ‖ leaf)`, an inner node
//! `SHA-256(0x01 ‖ left ‖ right)`, and a tree of n leaves splits at the largest power of two below n. The two
//! prefixes keep an inner node from being passed off as a leaf. Everything here is pure, so that a proof can be
//! checked without the server, in a browser too.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::envelope::Recorded;

/// SHA-256 of a leaf, with the prefix of RFC 6962.
fn leaf_node(leaf: &[u8; 32]) -> [u8; 32] {
    Sha256::new().chain_update([0]).chain_update(leaf).finalize().into()
}

fn inner_node(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

/// Where a tree of `n` > 1 leaves is split: the largest power of two below `n`.
fn split(n: usize) -> usize {
    n.next_power_of_two() / 2
}

/// The root of the tree over `leaves`. Of no leaves it is SHA-256 of nothing, as in RFC 6962.
pub fn root(leaves: &[[u8; 32]]) -> [u8; 32] {
    match leaves {
        [] => Sha256::digest([]).into(),
        [leaf] => leaf_node(leaf),
        _ => {
            let (left, right) = leaves.split_at(split(leaves.len()));
            inner_node(&root(left), &root(right))
        }
    }
}

/// The audit path of leaf `index`: the nodes that, with the leaf, give the root, lowest first.
/// `None` where there is no such leaf.
pub fn path(leaves: &[[u8; 32]], index: usize) -> Option<Vec<[u8; 32]>> {
    if index >= leaves.len() {
        return None;
    }
    if leaves.len() == 1 {
        return Some(Vec::new());
    }
    let (left, right) = leaves.split_at(split(leaves.len()));
    let (mut nodes, other) = if index < left.len() {
        (path(left, index)?, root(right))
    } else {
        (path(right, index - left.len())?, root(left))
    };
    nodes.push(other);
    Some(nodes)
}

/// The root that `leaf`, at `index` of `count` leaves, gives with `path`; `None` where the path has the wrong
/// length for that place.
pub fn root_of_path(leaf: &[u8; 32], index: u64, count: u64, path: &[[u8; 32]]) -> Option<[u8; 32]> {
    if index >= count {
        return None;
    }
    let (mut at, mut last) = (index, count - 1);
    let mut node = leaf_node(leaf);
    for other in path {
        if last == 0 {
            return None;
        }
        if at % 2 == 1 || at == last {
            node = inner_node(other, &node);
            // A node without a right neighbour moves up unchanged until it has one.
            while at % 2 == 0 && at != 0 {
                at /= 2;
                last /= 2;
            }
        } else {
            node = inner_node(&node, other);
        }
        at /= 2;
        last /= 2;
    }
    (last == 0).then_some(node)
}

/// What the control plane signs: the state of the log at one position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// The position this checkpoint closes.
    pub position: i64,
    /// The chain hash at that position.
    #[serde(with = "crate::hexadecimal::array")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub hash: [u8; 32],
    /// The position of the checkpoint before, 0 for the first: the tree holds the leaves after it.
    pub previous_position: i64,
    /// Root of the Merkle tree over the leaves of `previous_position + 1 ..= position`.
    #[serde(with = "crate::hexadecimal::array")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub root: [u8; 32],
    /// The Ed25519 public key that signed.
    #[serde(with = "crate::hexadecimal::array")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub public_key: [u8; 32],
    /// The Ed25519 signature over [`Checkpoint::signed_bytes`].
    #[serde(with = "crate::hexadecimal::array")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub signature: [u8; 64],
}

impl Checkpoint {
    /// The bytes that are signed: a label, then position, hash, previous position and root.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut bytes = b"benchtrail.checkpoint.v1\n".to_vec();
        bytes.extend_from_slice(&self.position.to_be_bytes());
        bytes.extend_from_slice(&self.hash);
        bytes.extend_from_slice(&self.previous_position.to_be_bytes());
        bytes.extend_from_slice(&self.root);
        bytes
    }
}

/// The proof that one event is in the log: the event, its Merkle path and a signed checkpoint. It shows nothing of
/// any other event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// The event.
    pub event: Recorded,
    /// The nodes beside the event's way to the root, lowest first, each in hexadecimal.
    pub path: Vec<ProofNode>,
    /// The checkpoint that closes the tree.
    pub checkpoint: Checkpoint,
}

/// One node of a [`Proof`]'s path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ProofNode(
    #[serde(with = "crate::hexadecimal::array")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub [u8; 32],
);

/// Why a [`Proof`] does not hold.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum ProofError {
    /// The event's position is not between the two checkpoints.
    #[error("position {position} is not covered by the checkpoint over {first} to {last}")]
    NotCovered {
        /// The event's position.
        position: i64,
        /// First position the checkpoint covers.
        first: i64,
        /// Last position the checkpoint covers.
        last: i64,
    },
    /// The event's content does not give the leaf it claims.
    #[error("the content of the event does not match its leaf hash")]
    Leaf,
    /// The path does not lead to the checkpoint's root.
    #[error("the Merkle path does not lead to the checkpoint's root")]
    Path,
}

impl Proof {
    /// Checks the event's leaf and its path to the checkpoint's root. The checkpoint's signature is the caller's to
    /// check, over [`Checkpoint::signed_bytes`], against a public key it trusts.
    ///
    /// # Errors
    /// See [`ProofError`].
    pub fn verify(&self) -> Result<(), ProofError> {
        let (first, last) = (self.checkpoint.previous_position + 1, self.checkpoint.position);
        let position = self.event.position;
        if first < 1 || position < first || position > last {
            return Err(ProofError::NotCovered { position, first, last });
        }
        let leaf = self.event.computed_leaf();
        if leaf != self.event.leaf {
            return Err(ProofError::Leaf);
        }
        let nodes: Vec<[u8; 32]> = self.path.iter().map(|node| node.0).collect();
        // Both are positive: checked above.
        let (index, count) = ((position - first) as u64, (last - first + 1) as u64);
        match root_of_path(&leaf, index, count, &nodes) {
            Some(root) if root == self.checkpoint.root => Ok(()),
            _ => Err(ProofError::Path),
        }
    }
}
