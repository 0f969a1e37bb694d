//! The proof of a figure as a file of its own: the calculation, the chain, and of every event its content, its path in the
//! Merkle tree and the signed checkpoint. Nothing else is needed to check it.

use events::api::ChainLink;
use events::merkle::{Proof, ProofError};
use serde::{Deserialize, Serialize};

/// What the first line of the file says it is.
pub const FORMAT: &str = "benchtrail.proof.v1";

/// The proof of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProofFile {
    /// [`FORMAT`].
    pub format: String,
    /// The job's stream key.
    pub result: String,
    /// The metric.
    pub metric: String,
    /// Its value, every digit.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// The calculation written out.
    pub calculation: Option<String>,
    /// The command line of the tool.
    pub command: Vec<String>,
    /// The chain from the project to the metrics.
    pub chain: Vec<ChainLink>,
    /// The events, each with its proof, in order of position.
    pub proofs: Vec<Proof>,
}

/// Why a proof does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// An event does not lead to its checkpoint.
    #[error("position {position}: {error}")]
    Event {
        /// Where.
        position: i64,
        /// Why.
        error: ProofError,
    },
    /// The chain names an event that is not in the file, or is another one there.
    #[error("the chain's {link} at position {position} is not among the events with that hash")]
    Chain {
        /// Which link.
        link: String,
        /// Where.
        position: i64,
    },
    /// There is no event.
    #[error("the proof holds no event")]
    Empty,
}

/// What a proof that holds shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// How many events lead to a signed checkpoint.
    pub events: usize,
    /// The last position of those checkpoints.
    pub checkpoint: i64,
    /// The key that signed them, hexadecimal.
    pub key: String,
}

impl ProofFile {
    /// Works every hash out again: each event's leaf from its content, each path to its checkpoint's root, each link of the
    /// chain to its event. The signature of the checkpoints is for whoever has the public key from elsewhere.
    ///
    /// # Errors
    /// [`Doubt`] names the first thing that does not fit.
    pub fn check(&self) -> Result<Held, Doubt> {
        for proof in &self.proofs {
            proof.verify().map_err(|error| Doubt::Event { position: proof.event.position, error })?;
        }
        for link in &self.chain {
            let found = self
                .proofs
                .iter()
                .any(|p| p.event.position == link.position && hexadecimal(&p.event.hash) == link.hash);
            if !found {
                return Err(Doubt::Chain { link: link.link.clone(), position: link.position });
            }
        }
        let last =
            self.proofs.iter().map(|p| &p.checkpoint).max_by_key(|c| c.position).ok_or(Doubt::Empty)?;
        Ok(Held { events: self.proofs.len(), checkpoint: last.position, key: hexadecimal(&last.public_key) })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::merkle::{self, ProofNode};
    use serde_json::json;

    /// Three events in one tree, with the proof of each.
    fn file() -> ProofFile {
        let zeros = "0".repeat(64);
        let mut events: Vec<events::envelope::Recorded> = (1..=3)
            .map(|position| {
                serde_json::from_value(json!({
                    "position": position, "stream": "job/o/p/w/1/c1", "version": position, "event_id": format!("00000000-0000-7000-8000-00000000000{position}"),
                    "event_type": "job.queued", "schema_version": 1, "org": "o", "actor": {"kind": "system", "id": "x"},
                    "causation_id": null, "correlation_id": null, "occurred_at": "2026-11-29T20:41:07.409Z",
                    "recorded_at": "2026-11-29T20:41:07.500Z", "payload": "{}", "leaf": zeros, "hash": format!("{position:064x}")
                }))
                .expect("an event")
            })
            .collect();
        for event in &mut events {
            event.leaf = event.computed_leaf();
        }
        let leaves: Vec<[u8; 32]> = events.iter().map(|e| e.leaf).collect();
        let checkpoint: merkle::Checkpoint = serde_json::from_value(json!({
            "position": 3, "hash": zeros, "previous_position": 0, "root": hexadecimal(&merkle::root(&leaves)),
            "public_key": "ab".repeat(32), "signature": "0".repeat(128)
        }))
        .expect("a checkpoint");
        let chain = vec![ChainLink {
            link: "job".into(),
            key: "job/o/p/w/1/c1".into(),
            position: 2,
            hash: format!("{:064x}", 2),
            recorded_at: events[1].recorded_at,
        }];
        let proofs = events.into_iter().enumerate().map(|(place, event)| {
            let path = merkle::path(&leaves, place).expect("a path").into_iter().map(ProofNode).collect();
            Proof { event, path, checkpoint: checkpoint.clone() }
        });
        ProofFile {
            format: FORMAT.into(),
            result: "job/o/p/w/1/c1".into(),
            metric: "output_tokens_per_second".into(),
            value: Some(3955.9912),
            unit: "tok/s".into(),
            calculation: None,
            command: Vec::new(),
            chain,
            proofs: proofs.collect(),
        }
    }

    #[test]
    fn a_proof_holds_also_after_it_was_copied() {
        let text = serde_json::to_string(&file()).expect("text");
        let read: ProofFile = serde_json::from_str(&text).expect("a proof");
        assert_eq!(read, file());
        assert_eq!(read.check(), Ok(Held { events: 3, checkpoint: 3, key: "ab".repeat(32) }));
    }

    #[test]
    fn a_changed_payload_is_found_at_its_position() {
        let mut file = file();
        file.proofs[1].event.payload = "{\"a\":1}".into();
        assert_eq!(file.check(), Err(Doubt::Event { position: 2, error: ProofError::Leaf }));
    }

    #[test]
    fn a_chain_that_names_another_event_is_found() {
        let mut file = file();
        file.chain[0].hash = "f".repeat(64);
        assert!(matches!(file.check(), Err(Doubt::Chain { position: 2, .. })));
    }

    #[test]
    fn a_proof_without_events_proves_nothing() {
        assert_eq!(ProofFile { chain: Vec::new(), proofs: Vec::new(), ..file() }.check(), Err(Doubt::Empty));
    }
}
