//! The proof of a figure as a file of its own: the calculation, the chain, and of every event its content, its path in the
//! Merkle tree and the signed checkpoint. Nothing else is needed to check it.

use serde::{Deserialize, Serialize};

use crate::Event;
use crate::api::ChainLink;
use crate::envelope::Recorded;
use crate::hexadecimal;
use crate::keys::{ImportKey, JobKey, StreamKey};
use crate::merkle::{Proof, ProofError};
use crate::metrics;
use crate::summary_columns;
use crate::tools::ToolCode;

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
    /// The chain's link is not what the result's key says, or stands for an event of another stream.
    #[error("the chain's {link} is {key}, which is not the {link} of {result}")]
    Link {
        /// Which link.
        link: String,
        /// What the file says it is.
        key: String,
        /// The result.
        result: String,
    },
    /// A link that every such result has is missing.
    #[error("the chain of {result} has no {link}")]
    Missing {
        /// Which link.
        link: String,
        /// The result.
        result: String,
    },
    /// The file holds no event with the result's figures.
    #[error("no event here holds figures of {0}")]
    NoFigures(String),
    /// The command line is not the one that was run.
    #[error("the command line in the file is not the one at position {position}")]
    Command {
        /// The position of the event that has the command line.
        position: i64,
    },
    /// The unit is another.
    #[error("{metric} is in {unit:?}, not in {claimed:?}")]
    Unit {
        /// The metric.
        metric: String,
        /// What the file says.
        claimed: String,
        /// What the metric catalogue says.
        unit: String,
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
    /// The position of the event that has the result's figures.
    pub figures_at: i64,
    /// Whether the figure itself was worked out again, from that event. Figures that need more (energy, cost, per GPU, those
    /// of third-party tools) are not: then the file proves what happened, and its figure is only said.
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
    /// Works every hash out again: each event's leaf from its content, each path to its checkpoint's root. Each link of the
    /// chain has to be what the result's key says, and an event of this file; the command line, the unit and, where the
    /// tool's summary gives it, the figure have to be those of the events. The signature of the checkpoints is for whoever
    /// has the public key from elsewhere. An event's chain hash takes those before it: it is compared within the file only.
    ///
    /// # Errors
    /// [`Doubt`] names the first thing that does not fit.
    pub fn check(&self) -> Result<Held, Doubt> {
        if self.format != FORMAT {
            return Err(Doubt::Format(self.format.clone()));
        }
        let (checkpoint, key) = lead_to(&self.proofs)?;
        self.check_chain()?;
        let event = self.figures_event()?;
        let value_checked = self.check_figure(event)?;
        Ok(Held { events: self.proofs.len(), checkpoint, key, figures_at: event.position, value_checked })
    }

    fn check_chain(&self) -> Result<(), Doubt> {
        let expected = expected_links(&self.result).ok_or_else(|| Doubt::NoFigures(self.result.clone()))?;
        for (link, _) in &expected {
            if !self.chain.iter().any(|l| l.link == *link) {
                return Err(Doubt::Missing { link: (*link).to_owned(), result: self.result.clone() });
            }
        }
        for link in &self.chain {
            let found = self.proofs.iter().map(|p| &p.event).find(|event| {
                event.position == link.position
                    && hexadecimal::encode(&event.hash) == link.hash
                    && event.recorded_at == link.recorded_at
            });
            let Some(event) = found else {
                return Err(Doubt::Chain { link: link.link.clone(), position: link.position });
            };
            // The invocation, the file and the metrics stand in the result's own stream, under names of their own.
            let (key, stream) = match expected.iter().find(|(name, _)| *name == link.link) {
                Some((_, key)) => (key.as_str(), key.as_str()),
                None => (link.key.as_str(), self.result.as_str()),
            };
            if link.key != key || event.stream.as_str() != stream {
                let (link, key) = (link.link.clone(), link.key.clone());
                return Err(Doubt::Link { link, key, result: self.result.clone() });
            }
        }
        Ok(())
    }

    /// The event that the chain says the figures are in.
    fn figures_event(&self) -> Result<&Recorded, Doubt> {
        let link = self.chain.iter().find(|link| link.link == "metrics");
        let at = link.and_then(|link| self.proofs.iter().find(|p| p.event.position == link.position));
        at.map(|proof| &proof.event)
            .filter(|event| event.event_type.starts_with("tool_output."))
            .ok_or_else(|| Doubt::NoFigures(self.result.clone()))
    }

    /// Compares command line and unit, and works the figure out again where the summary alone gives it.
    fn check_figure(&self, event: &Recorded) -> Result<bool, Doubt> {
        let unit = metrics::metric(&self.metric).map(|metric| metric.unit.to_owned());
        if let Some(unit) = unit.filter(|unit| *unit != self.unit) {
            return Err(Doubt::Unit { metric: self.metric.clone(), claimed: self.unit.clone(), unit });
        }
        let decoded = Event::decode(&event.event_type, event.schema_version, &event.payload);
        let (argv, columns) = match decoded {
            Ok(Event::ToolOutputRecorded(output)) => {
                let summary = &output.summary;
                let columns = ToolCode::of(&summary.tool)
                    .map_or_else(Vec::new, |tool| summary_columns::columns_of(tool, &summary.figures));
                (output.invocation.argv, columns)
            }
            Ok(Event::ExternalOutputRecorded(output)) => (output.invocation.argv, Vec::new()),
            Ok(Event::ToolOutputImported(_)) => (Vec::new(), Vec::new()),
            _ => return Err(Doubt::NoFigures(self.result.clone())),
        };
        if !self.command.is_empty() && self.command != argv {
            return Err(Doubt::Command { position: event.position });
        }
        let Some(found) = figure(&columns, &self.metric) else { return Ok(false) };
        if found == self.value {
            return Ok(true);
        }
        let (metric, claimed, position) = (self.metric.clone(), self.value, event.position);
        Err(Doubt::Value { metric, claimed, found, position })
    }
}

/// The links that the chain of such a result must have, with their stream keys; nothing where the key is of no result.
fn expected_links(result: &str) -> Option<Vec<(&'static str, String)>> {
    let stream: StreamKey = result.parse().ok()?;
    if stream.kind() == "import" {
        let import = ImportKey::from_stream(&stream).ok()?;
        return Some(vec![("project", import.project_key().stream().to_string())]);
    }
    let job = JobKey::from_stream(&stream).ok().filter(|_| stream.kind() == "job")?;
    let scenario = job.scenario_key();
    let workload = scenario.workload_key();
    Some(vec![
        ("project", workload.project_key().stream().to_string()),
        ("workload", workload.stream().to_string()),
        ("scenario", scenario.stream().to_string()),
        ("run", job.run_key().stream().to_string()),
        ("job", result.to_owned()),
    ])
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
    use crate::envelope::Recorded;
    use crate::merkle::{self, ProofNode};
    use crate::tool_output::ToolOutputRecorded;
    use serde_json::json;

    const RESULT: &str = "job/o/p/w/1/c1";

    fn golden() -> String {
        let golden = include_str!("../tests/golden/tool_output.recorded.v2.json");
        serde_json::from_str::<serde_json::Value>(golden).expect("JSON").to_string()
    }

    fn event(position: i64, stream: &str, event_type: &str, schema_version: i32, payload: &str) -> Recorded {
        let mut event: Recorded = serde_json::from_value(json!({
            "position": position, "stream": stream, "version": 1, "event_id": format!("00000000-0000-7000-8000-00000000000{position}"),
            "event_type": event_type, "schema_version": schema_version, "org": "o", "actor": {"kind": "system", "id": "x"},
            "causation_id": null, "correlation_id": null, "occurred_at": "2026-11-29T20:41:07.409Z",
            "recorded_at": "2026-11-29T20:41:07.500Z", "payload": payload, "leaf": "0".repeat(64), "hash": format!("{position:064x}")
        }))
        .expect("an event");
        event.leaf = event.computed_leaf();
        event
    }

    /// The file about these events, of which each but the last stands for the link of the same place.
    fn of(events: Vec<Recorded>, links: &[&str]) -> ProofFile {
        let leaves: Vec<[u8; 32]> = events.iter().map(|e| e.leaf).collect();
        let checkpoint: merkle::Checkpoint = serde_json::from_value(json!({
            "position": events.len(), "hash": "0".repeat(64), "previous_position": 0,
            "root": hexadecimal::encode(&merkle::root(&leaves)), "public_key": "ab".repeat(32), "signature": "0".repeat(128)
        }))
        .expect("a checkpoint");
        let chain = links.iter().zip(&events).map(|(link, event)| ChainLink {
            link: (*link).to_owned(),
            key: event.stream.to_string(),
            position: event.position,
            hash: hexadecimal::encode(&event.hash),
            recorded_at: event.recorded_at,
        });
        let chain = chain.collect();
        let proofs = events.into_iter().enumerate().map(|(place, event)| {
            let path = merkle::path(&leaves, place).expect("a path").into_iter().map(ProofNode).collect();
            Proof { event, path, checkpoint: checkpoint.clone() }
        });
        let output: ToolOutputRecorded = serde_json::from_str(&golden()).expect("an output");
        ProofFile {
            format: FORMAT.into(),
            result: RESULT.into(),
            metric: "ttft_p50_ms".into(),
            value: output.summary.figures.ttft_ms.and_then(|ttft| ttft.p50),
            unit: "ms".into(),
            calculation: None,
            command: output.invocation.argv,
            chain,
            proofs: proofs.collect(),
        }
    }

    const LINKS: [&str; 6] = ["project", "workload", "scenario", "run", "job", "metrics"];

    fn events() -> Vec<Recorded> {
        vec![
            event(1, "project/o/p", "project.created", 1, "{}"),
            event(2, "workload/o/p/w", "workload.created", 1, "{}"),
            event(3, "scenario/o/p/w/c1", "scenario.defined", 1, "{}"),
            event(4, "run/o/p/w/1", "run.created", 1, "{}"),
            event(5, RESULT, "job.created", 1, "{}"),
            event(6, RESULT, "tool_output.recorded", 2, &golden()),
        ]
    }

    fn file() -> ProofFile {
        of(events(), &LINKS)
    }

    #[test]
    fn a_proof_holds_also_after_it_was_copied() {
        let text = serde_json::to_string(&file()).expect("text");
        let read: ProofFile = serde_json::from_str(&text).expect("a proof");
        assert_eq!(read, file());
        let held =
            Held { events: 6, checkpoint: 6, key: "ab".repeat(32), figures_at: 6, value_checked: true };
        assert_eq!(read.check(), Ok(held));
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
        file.chain[1].hash = "f".repeat(64);
        assert!(matches!(file.check(), Err(Doubt::Chain { position: 2, .. })));
        let mut file = self::file();
        file.chain[1].key = "workload/o/p/other".into();
        assert!(matches!(file.check(), Err(Doubt::Link { .. })));
        let file = ProofFile { result: "job/o/p/w/2/c1".into(), ..self::file() };
        assert!(matches!(file.check(), Err(Doubt::Link { .. })), "the events are of another run");
    }

    #[test]
    fn a_proof_without_events_proves_nothing() {
        assert_eq!(ProofFile { chain: Vec::new(), proofs: Vec::new(), ..file() }.check(), Err(Doubt::Empty));
    }

    #[test]
    fn a_proof_without_the_event_of_its_figures_does_not_hold() {
        let without = of(events().into_iter().take(5).collect(), &LINKS[..5]);
        assert_eq!(without.check(), Err(Doubt::NoFigures(RESULT.into())));
        let mut elsewhere = file();
        elsewhere.chain[5].position = 5;
        elsewhere.chain[5].hash = format!("{:064x}", 5);
        assert_eq!(elsewhere.check(), Err(Doubt::NoFigures(RESULT.into())));
        let mut short = file();
        short.chain.remove(3);
        assert!(matches!(short.check(), Err(Doubt::Missing { link, .. }) if link == "run"));
    }

    #[test]
    fn a_figure_a_unit_or_a_command_line_that_is_not_the_events_is_found() {
        let doubled = ProofFile { value: file().value.map(|value| value * 2.0), ..file() };
        assert!(matches!(doubled.check(), Err(Doubt::Value { position: 6, .. })));
        let in_seconds = ProofFile { unit: "s".into(), ..file() };
        assert!(matches!(in_seconds.check(), Err(Doubt::Unit { .. })));
        let otherwise = ProofFile { command: vec!["metrumbench-llm".into(), "--cheat".into()], ..file() };
        assert_eq!(otherwise.check(), Err(Doubt::Command { position: 6 }));
    }

    #[test]
    fn a_figure_that_takes_more_than_the_summary_is_not_called_checked() {
        let metric = "cost_per_million_output_tokens_usd";
        let unit = metrics::metric(metric).expect("a metric").unit.to_owned();
        let cost = ProofFile { metric: metric.into(), value: Some(0.01), unit, ..file() };
        assert!(matches!(cost.check(), Ok(Held { value_checked: false, .. })));
    }

    #[test]
    fn another_form_of_file_is_named() {
        let other = ProofFile { format: "benchtrail.proof.v2".into(), ..file() };
        assert_eq!(other.check(), Err(Doubt::Format("benchtrail.proof.v2".into())));
    }
}
