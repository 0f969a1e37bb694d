//! The proof of a figure as a file of its own: the calculation, the chain, and of every event its content, its path in the
//! Merkle tree and the signed checkpoint. Nothing else is needed to check it.

use serde::{Deserialize, Serialize};

use crate::api::ChainLink;
use crate::hexadecimal;
use crate::merkle::{Proof, ProofError};
use crate::summary_columns;
use crate::tool_output::ToolOutputRecorded;

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
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
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
    /// It says it is something else.
    #[error("the file says it is {0:?}, not benchtrail.proof.v1")]
    Format(String),
    /// The figure is not the one that the load generator's summary gives.
    #[error("{metric} is {claimed:?} in the file, and {found:?} by the summary at position {position}")]
    Value {
        /// The metric.
        metric: String,
        /// What the file says.
        claimed: Option<f64>,
        /// What the event says.
        found: Option<f64>,
        /// The event's position.
        position: i64,
    },
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
    /// Whether the figure was worked out again from the load generator's summary. Figures that need more than that event
    /// (energy, cost, per GPU) are shown by the chain, not worked out here.
    pub value_checked: bool,
}

/// Works every event's hash and path out again, and gives the last checkpoint that they lead to: its position, and the key
/// that signed it, hexadecimal.
///
/// # Errors
/// [`Doubt::Event`] for the first that does not lead there, [`Doubt::Empty`] where there is none.
pub fn lead_to(proofs: &[Proof]) -> Result<(i64, String), Doubt> {
    for proof in proofs {
        proof.verify().map_err(|error| Doubt::Event { position: proof.event.position, error })?;
    }
    let last = proofs.iter().map(|p| &p.checkpoint).max_by_key(|c| c.position).ok_or(Doubt::Empty)?;
    Ok((last.position, hexadecimal::encode(&last.public_key)))
}

impl ProofFile {
    /// Works every hash out again: each event's leaf from its content, each path to its checkpoint's root, each link of the
    /// chain to its event. The signature of the checkpoints is for whoever has the public key from elsewhere.
    ///
    /// # Errors
    /// [`Doubt`] names the first thing that does not fit.
    pub fn check(&self) -> Result<Held, Doubt> {
        if self.format != FORMAT {
            return Err(Doubt::Format(self.format.clone()));
        }
        let (checkpoint, key) = lead_to(&self.proofs)?;
        for link in &self.chain {
            let found = self.proofs.iter().any(|p| {
                p.event.position == link.position && hexadecimal::encode(&p.event.hash) == link.hash
            });
            if !found {
                return Err(Doubt::Chain { link: link.link.clone(), position: link.position });
            }
        }
        let value_checked = self.check_value()?;
        Ok(Held { events: self.proofs.len(), checkpoint, key, value_checked })
    }

    /// Works the figure out again, where the summary alone gives it.
    fn check_value(&self) -> Result<bool, Doubt> {
        let outputs = self.proofs.iter().map(|proof| &proof.event);
        let output = outputs
            .filter(|event| {
                event.event_type == "tool_output.recorded" && event.stream.as_str() == self.result
            })
            .max_by_key(|event| event.position);
        let Some(event) = output else { return Ok(false) };
        let Ok(output) = serde_json::from_str::<ToolOutputRecorded>(&event.payload) else { return Ok(false) };
        let Some(found) = figure(&summary_columns::columns(&output.summary.figures), &self.metric) else {
            return Ok(false);
        };
        if found == self.value {
            return Ok(true);
        }
        let (metric, claimed, position) = (self.metric.clone(), self.value, event.position);
        Err(Doubt::Value { metric, claimed, found, position })
    }
}

/// A figure of a result by its summary's columns; nothing where it takes more than those.
fn figure(columns: &[summary_columns::Column], metric: &str) -> Option<Option<f64>> {
    let column = |name: &str| columns.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    match metric {
        "output_tokens_per_second" => column("completion_tokens_per_second"),
        "interactivity_tps" => {
            column("tpot_avg_ms").map(|avg| avg.filter(|avg| *avg > 0.0).map(|avg| 1000.0 / avg))
        }
        name => column(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merkle::{self, ProofNode};
    use serde_json::json;

    /// Three events in one tree, with the proof of each.
    fn file() -> ProofFile {
        let zeros = "0".repeat(64);
        let mut events: Vec<crate::envelope::Recorded> = (1..=3)
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
            "position": 3, "hash": zeros, "previous_position": 0, "root": hexadecimal::encode(&merkle::root(&leaves)),
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
        assert_eq!(
            read.check(),
            Ok(Held { events: 3, checkpoint: 3, key: "ab".repeat(32), value_checked: false })
        );
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

    #[test]
    fn a_figure_that_is_not_the_summarys_is_found() {
        let mut file = file();
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../tests/golden/tool_output.recorded.v1.json")).expect("JSON");
        let event = &mut file.proofs[2].event;
        event.event_type = "tool_output.recorded".into();
        event.payload = golden.to_string();
        event.leaf = event.computed_leaf();
        let output: ToolOutputRecorded = serde_json::from_str(&event.payload).expect("an output");
        file.metric = "ttft_p50_ms".into();
        file.value = output.summary.figures.ttft_ms.and_then(|ttft| ttft.p50);
        assert_eq!(file.check_value(), Ok(true));
        file.value = file.value.map(|value| value / 2.0);
        assert!(matches!(file.check_value(), Err(Doubt::Value { position: 3, .. })));
        file.metric = "cost_per_million_output_tokens_usd".into();
        assert_eq!(file.check_value(), Ok(false));
    }

    #[test]
    fn another_form_of_file_is_named() {
        let other = ProofFile { format: "benchtrail.proof.v2".into(), ..file() };
        assert_eq!(other.check(), Err(Doubt::Format("benchtrail.proof.v2".into())));
    }
}
