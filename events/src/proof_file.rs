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
use crate::proof_parts::{FileLine, LineDoubt, Samples};
use crate::summary_columns;
use crate::tools::ToolCode;

/// What the first line of the file says it is.
pub const FORMAT: &str = "benchtrail.proof.v1";

/// The proof of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProofFile {
    /// [`FORMAT`].
    pub format: String,
    /// The job's stream key; of samples their telemetry's.
    pub result: String,
    /// The metric; of a line the name of the number it holds.
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
    /// The samples whose mean the value is, where it is no figure of a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// The line of a file that holds the value, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<FileLine>,
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
    /// The events hold other samples.
    #[error(
        "{metric} is {claimed:?} over {count} samples in the file, and {found:?} over {there} by its events"
    )]
    Samples {
        /// The metric.
        metric: String,
        /// What the file says.
        claimed: Option<f64>,
        /// Over how many samples.
        count: usize,
        /// What the events say.
        found: Option<f64>,
        /// How many samples they hold.
        there: usize,
    },
    /// The line is not that line of the file that an event names.
    #[error(transparent)]
    Line(#[from] LineDoubt),
    /// The line holds another number.
    #[error("{metric} is {claimed:?} in the file, and {found:?} by the line itself")]
    LineValue {
        /// The metric.
        metric: String,
        /// What the file says.
        claimed: Option<f64>,
        /// What the line says.
        found: Option<f64>,
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
    /// The position of the event that has the figure: the result's, the samples', or the one that names the file.
    pub figures_at: i64,
    /// Whether the figure itself was worked out again: from that event's summary, from the samples, or from the line in its
    /// file. Figures that need more than the summary (energy, cost, per GPU, those of third-party tools) are not: then the
    /// file proves what happened, and its figure is only said; nor is a line of a file that is not at hand.
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
        self.check_with(None)
    }

    /// As [`ProofFile::check`], with the file whose line is proved, where the proof does not hold it itself.
    ///
    /// # Errors
    /// As [`ProofFile::check`].
    pub fn check_with(&self, beside: Option<&[u8]>) -> Result<Held, Doubt> {
        if self.format != FORMAT {
            return Err(Doubt::Format(self.format.clone()));
        }
        let (checkpoint, key) = lead_to(&self.proofs)?;
        let (figures_at, value_checked) = match (&self.samples, &self.line) {
            (Some(samples), _) => (self.check_links(&[])?, self.check_samples(samples)?),
            (None, Some(line)) => (self.check_links(&[])?, self.check_line(line, beside)?),
            (None, None) => {
                self.check_chain()?;
                let event = self.figures_event()?;
                (event.position, self.check_figure(event)?)
            }
        };
        Ok(Held { events: self.proofs.len(), checkpoint, key, figures_at, value_checked })
    }

    fn check_chain(&self) -> Result<(), Doubt> {
        let expected = expected_links(&self.result).ok_or_else(|| Doubt::NoFigures(self.result.clone()))?;
        for (link, _) in &expected {
            if !self.chain.iter().any(|l| l.link == *link) {
                return Err(Doubt::Missing { link: (*link).to_owned(), result: self.result.clone() });
            }
        }
        self.check_links(&expected).map(|_| ())
    }

    /// Whether every link of the chain is an event of the file, and gives the position of the file's first event.
    fn check_links(&self, expected: &[(&'static str, String)]) -> Result<i64, Doubt> {
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
        self.proofs.first().map(|proof| proof.event.position).ok_or(Doubt::Empty)
    }

    /// Nothing of a command line is in what is proved, and the unit is the log's.
    fn check_said(&self, unit: &str) -> Result<(), Doubt> {
        if self.unit != unit {
            let (metric, claimed) = (self.metric.clone(), self.unit.clone());
            return Err(Doubt::Unit { metric, claimed, unit: unit.to_owned() });
        }
        match self.proofs.first() {
            Some(proof) if !self.command.is_empty() => Err(Doubt::Command { position: proof.event.position }),
            _ => Ok(()),
        }
    }

    fn check_samples(&self, samples: &Samples) -> Result<bool, Doubt> {
        self.check_said(samples.unit())?;
        let (there, found) = samples.found(self.proofs.iter().map(|proof| &proof.event), &self.result);
        // Sums of the same numbers in another order differ in their last digits.
        let same = found
            .zip(self.value)
            .is_some_and(|(found, value)| (found - value).abs() <= 1e-9 * found.abs().max(value.abs()));
        if same && there == samples.count && self.metric == samples.metric {
            return Ok(true);
        }
        let (metric, claimed, count) = (self.metric.clone(), self.value, samples.count);
        Err(Doubt::Samples { metric, claimed, count, found, there })
    }

    fn check_line(&self, line: &FileLine, beside: Option<&[u8]>) -> Result<bool, Doubt> {
        self.check_said("ms")?;
        let events = self.proofs.iter().map(|proof| &proof.event);
        let looked_at = line.check(events, &self.result, beside)?;
        let found = line.figure(&self.metric);
        if found != self.value {
            let (metric, claimed) = (self.metric.clone(), self.value);
            return Err(Doubt::LineValue { metric, claimed, found });
        }
        Ok(looked_at)
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
mod tests;
