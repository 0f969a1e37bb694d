//! The catalogue that every installation begins with, from the data files in `server/data/catalogue/`.

use std::collections::BTreeMap;

use events::canonical::{CanonicalError, CanonicalJson};
use events::catalogue::{FrameworkRegistered, ModelRegistered, ServerConfigRegistered, ToolRegistered};
use events::envelope::{Actor, ActorKind, NewEvent};
use events::keys::PLATFORM_ORG;
use events::{Event, StreamKey};
use futures::{StreamExt, TryStreamExt};
use serde::Deserialize;
use uuid::Uuid;

use crate::clock;
use crate::log::{AppendOutcome, AppendRequest, Expected, Log, LogError, StreamWrite};

/// How many streams are read at once, and how many events are appended at once.
const AT_ONCE: usize = 8;
const A_REQUEST: usize = 100;

/// Why the catalogue could not be seeded.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// A data file is at fault.
    #[error("the catalogue's file {file}: {reason}")]
    Data {
        /// Which file.
        file: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The log does not answer.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log refused an entry.
    #[error("the log refused the catalogue: {0}")]
    Refused(String),
    /// An entry has no canonical JSON.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

/// What seeding did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seeded {
    /// Entries that are new.
    pub added: usize,
    /// Entries whose facts changed.
    pub changed: usize,
    /// Entries that were there already.
    pub unchanged: usize,
}

#[derive(Debug, Deserialize)]
struct Model {
    model_code: String,
    #[serde(flatten)]
    facts: ModelRegistered,
}

#[derive(Debug, Deserialize)]
struct Framework {
    framework_code: String,
    version: String,
    #[serde(flatten)]
    facts: FrameworkRegistered,
}

#[derive(Debug, Deserialize)]
struct ServerConfig {
    config_code: String,
    #[serde(flatten)]
    facts: ServerConfigRegistered,
}

#[derive(Debug, Deserialize)]
struct Tool {
    tool_code: String,
    #[serde(flatten)]
    facts: ToolRegistered,
}

fn read<T: for<'de> Deserialize<'de>>(file: &'static str, text: &str) -> Result<Vec<T>, SeedError> {
    serde_json::from_str(text).map_err(|error| SeedError::Data { file, reason: error.to_string() })
}

/// Every entry, by its stream.
///
/// # Errors
/// A data file cannot be read, or holds an entry twice.
pub fn catalogue() -> Result<BTreeMap<StreamKey, Event>, SeedError> {
    let models: Vec<Model> = read("models.json", include_str!("../data/catalogue/models.json"))?;
    let frameworks: Vec<Framework> =
        read("frameworks.json", include_str!("../data/catalogue/frameworks.json"))?;
    let configs: Vec<ServerConfig> =
        read("server_configs.json", include_str!("../data/catalogue/server_configs.json"))?;
    let tools: Vec<Tool> = read("tools.json", include_str!("../data/catalogue/tools.json"))?;
    let mut entries = BTreeMap::new();
    let mut add = |file, kind, parts: &[&str], event| {
        let stream = StreamKey::new(kind, parts);
        match entries.insert(stream.clone(), event) {
            None => Ok(()),
            Some(_) => Err(SeedError::Data { file, reason: format!("{stream} occurs twice") }),
        }
    };
    for entry in models {
        let event = Event::ModelRegistered(entry.facts);
        add("models.json", "model", &[PLATFORM_ORG, &entry.model_code], event)?;
    }
    for entry in frameworks {
        let event = Event::FrameworkRegistered(entry.facts);
        add("frameworks.json", "framework", &[PLATFORM_ORG, &entry.framework_code, &entry.version], event)?;
    }
    for entry in configs {
        let event = Event::ServerConfigRegistered(entry.facts);
        add("server_configs.json", "config", &[PLATFORM_ORG, &entry.config_code], event)?;
    }
    for entry in tools {
        let event = Event::ToolRegistered(entry.facts);
        add("tools.json", "tool", &[PLATFORM_ORG, &entry.tool_code], event)?;
    }
    Ok(entries)
}

/// Registers what is new in the catalogue, and what changed. Idempotent: a second call appends nothing.
///
/// # Errors
/// [`SeedError`].
pub async fn seed(log: &Log) -> Result<Seeded, SeedError> {
    let judged: Vec<Judged> =
        futures::stream::iter(catalogue()?.into_iter().map(|(stream, event)| judge(log, stream, event)))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
    let mut seeded = Seeded::default();
    let mut writes = Vec::new();
    for Judged { stream, event, payload, version, same } in judged {
        let expected = match (version, same) {
            (_, true) => {
                seeded.unchanged += 1;
                continue;
            }
            (1.., false) => {
                seeded.changed += 1;
                Expected::Exact(version)
            }
            _ => {
                seeded.added += 1;
                Expected::NoStream
            }
        };
        let new = NewEvent {
            event_id: Uuid::now_v7(),
            event_type: event.event_type().to_owned(),
            schema_version: event.schema_version(),
            org: PLATFORM_ORG.to_owned(),
            actor: Actor { kind: ActorKind::System, id: "seed".to_owned() },
            causation_id: None,
            correlation_id: None,
            occurred_at: clock::now(),
            payload,
        };
        writes.push(StreamWrite { stream, expected, events: vec![new] });
    }
    for request in writes.chunks(A_REQUEST) {
        match log.append(AppendRequest { writes: request.to_vec() }).await? {
            AppendOutcome::Appended { .. } | AppendOutcome::AlreadyAppended { .. } => {}
            // Another control plane seeds at the same moment, and does the same.
            AppendOutcome::VersionConflict { stream, .. } => {
                tracing::info!(%stream, "the catalogue is being seeded by another process too");
            }
            AppendOutcome::Rejected { reason } => return Err(SeedError::Refused(reason)),
        }
    }
    Ok(seeded)
}

/// An entry beside what the log has of it.
struct Judged {
    stream: StreamKey,
    event: Event,
    payload: CanonicalJson,
    /// The version of its stream; 0 where there is none.
    version: i64,
    /// Whether the log has the same facts.
    same: bool,
}

async fn judge(log: &Log, stream: StreamKey, event: Event) -> Result<Judged, SeedError> {
    let payload = event.payload().map_err(|error| SeedError::Refused(error.to_string()))?;
    let payload = CanonicalJson::of(&payload)?;
    let version = log.stream_version(&stream).await?;
    let last = if version == 0 { Vec::new() } else { log.read_stream(&stream, version, 1).await? };
    let same = last.last().is_some_and(|recorded| recorded.payload == payload.as_str());
    Ok(Judged { stream, event, payload, version, same })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{FlagStyle, check_template};

    fn of<T>(pick: impl Fn(&Event) -> Option<T>) -> Vec<(StreamKey, T)> {
        catalogue().unwrap().into_iter().filter_map(|(stream, event)| Some((stream, pick(&event)?))).collect()
    }

    #[test]
    fn every_template_can_be_filled() {
        for (stream, event) in catalogue().unwrap() {
            let checked = match &event {
                Event::FrameworkRegistered(framework) => check_template(&framework.serve_argv),
                Event::ToolRegistered(tool) => check_template(&tool.argv),
                _ => Ok(()),
            };
            assert_eq!(checked, Ok(()), "{stream}");
        }
    }

    #[test]
    fn every_argument_has_a_type_that_can_be_read_and_a_flag_of_its_own() {
        let frameworks = of(|event| match event {
            Event::FrameworkRegistered(framework) => {
                FlagStyle::parse(&framework.flag_style).unwrap();
                Some(framework.engine_args.clone())
            }
            Event::ToolRegistered(tool) => Some(tool.args.clone()),
            _ => None,
        });
        for (stream, args) in frameworks {
            let mut flags = std::collections::BTreeSet::new();
            for (key, arg) in args {
                let known = ["int", "float", "string", "bool", "choice", "json"].contains(&&*arg.arg_type);
                assert!(known, "{stream} {key}: {}", arg.arg_type);
                assert!(arg.cli_flag.starts_with("--"), "{stream} {key}: {}", arg.cli_flag);
                assert!(!arg.cli_flag.contains(['=', ' ']), "{stream} {key}: {}", arg.cli_flag);
                assert!((arg.arg_type == "choice") != arg.choices.is_empty(), "{stream} {key}: choices");
                assert!(flags.insert(arg.cli_flag.clone()), "{stream} {key}: {} occurs twice", arg.cli_flag);
                let secret = key.contains("api_key") || key.ends_with("hf_token");
                assert!(!secret, "{stream} {key}: secrets stay out of the log");
            }
        }
    }

    #[test]
    fn flags_that_load_code_are_marked() {
        for (stream, args) in of(|event| match event {
            Event::FrameworkRegistered(framework) => Some(framework.engine_args.clone()),
            _ => None,
        }) {
            for key in ["trust_remote_code", "chat_template", "lora", "download_dir"] {
                assert!(args.get(key).is_none_or(|arg| arg.dangerous), "{stream} {key}");
            }
        }
    }

    #[test]
    fn what_the_first_benchmark_needs_is_there() {
        let catalogue = catalogue().unwrap();
        for key in [
            "model/_/google%2Fgemma-3-270m",
            "framework/_/llama-cpp/0.7.0",
            "framework/_/refserver/0.1.0",
            "framework/_/openai/v1",
            "tool/_/metrumbench-llm",
            "config/_/local-cpu",
            "config/_/h100x8",
        ] {
            assert!(catalogue.keys().any(|stream| stream.as_str() == key), "{key}");
        }
    }

    #[test]
    fn every_model_says_where_its_facts_come_from() {
        for (stream, sources) in of(|event| match event {
            Event::ModelRegistered(model) => Some(model.sources.clone()),
            _ => None,
        }) {
            assert!(!sources.is_empty(), "{stream}");
        }
    }
}
