//! The catalogue that every installation begins with, from the data files in `server/data/catalogue/`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use events::canonical::{CanonicalError, CanonicalJson};
use events::catalogue::{
    AcceleratorRegistered, EngineArgsSetRegistered, FrameworkRegistered, ModelRegistered,
    ServerConfigRegistered, ToolRegistered,
};
use events::envelope::{Actor, ActorKind, NewEvent, Recorded};
use events::keys::PLATFORM_ORG;
use events::prompt_source::PromptSourceCreated;
use events::{Event, StreamKey};
use serde::Deserialize;
use uuid::Uuid;

use crate::clock;
use crate::log::{AppendOutcome, AppendRequest, Expected, Log, LogError, StreamWrite};

/// How many events are appended at once.
const A_REQUEST: usize = 200;
/// Who seeds.
const SEEDER: &str = "seed";

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
    /// Entries that somebody else changed since: they stay as they are.
    pub kept: usize,
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
struct Accelerator {
    accelerator_code: String,
    #[serde(flatten)]
    facts: AcceleratorRegistered,
}

#[derive(Debug, Deserialize)]
struct EngineArgsSet {
    set_code: String,
    #[serde(flatten)]
    facts: EngineArgsSetRegistered,
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

#[derive(Debug, Deserialize)]
struct Source {
    prompt_source_code: String,
    #[serde(flatten)]
    facts: PromptSourceCreated,
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
    let accelerators: Vec<Accelerator> =
        read("accelerators.json", include_str!("../data/catalogue/accelerators.json"))?;
    let sets: Vec<EngineArgsSet> =
        read("engine_args_sets.json", include_str!("../data/catalogue/engine_args_sets.json"))?;
    let tools: Vec<Tool> = read("tools.json", include_str!("../data/catalogue/tools.json"))?;
    let sources: Vec<Source> =
        read("prompt_sources.json", include_str!("../data/catalogue/prompt_sources.json"))?;
    let mut entries = BTreeMap::new();
    let mut add = |file, kind, parts: &[&str], event| {
        let stream = StreamKey::new(kind, parts);
        match entries.insert(stream.clone(), event) {
            None => Ok(()),
            Some(_) => Err(SeedError::Data { file, reason: format!("{stream} occurs twice") }),
        }
    };
    for entry in models {
        let event = Event::ModelRegistered(Box::new(entry.facts));
        add("models.json", "model", &[PLATFORM_ORG, &entry.model_code], event)?;
    }
    for entry in frameworks {
        let event = Event::FrameworkRegistered(Box::new(entry.facts));
        add("frameworks.json", "framework", &[PLATFORM_ORG, &entry.framework_code, &entry.version], event)?;
    }
    for entry in accelerators {
        let event = Event::AcceleratorRegistered(Box::new(entry.facts));
        add("accelerators.json", "accelerator", &[PLATFORM_ORG, &entry.accelerator_code], event)?;
    }
    for entry in sets {
        let event = Event::EngineArgsSetRegistered(Box::new(entry.facts));
        add("engine_args_sets.json", "engine_args_set", &[PLATFORM_ORG, &entry.set_code], event)?;
    }
    for entry in configs {
        let event = Event::ServerConfigRegistered(entry.facts);
        add("server_configs.json", "config", &[PLATFORM_ORG, &entry.config_code], event)?;
    }
    for entry in tools {
        let event = Event::ToolRegistered(entry.facts);
        add("tools.json", "tool", &[PLATFORM_ORG, &entry.tool_code], event)?;
    }
    for entry in sources {
        let event = Event::PromptSourceCreated(Box::new(entry.facts));
        add("prompt_sources.json", "prompt_source", &[PLATFORM_ORG, &entry.prompt_source_code], event)?;
    }
    Ok(entries)
}

/// Registers what is new in the catalogue, and what changed in the files. Idempotent: a second call appends nothing. What
/// somebody else changed in the log stays, until its file changes.
///
/// # Errors
/// [`SeedError`].
pub async fn seed(log: &Log) -> Result<Seeded, SeedError> {
    let entries = catalogue()?;
    let known = Known::read(log, &entries).await?;
    let mut seeded = Seeded::default();
    let mut writes = Vec::new();
    for (stream, event) in entries {
        let payload = event.payload().map_err(|error| SeedError::Refused(error.to_string()))?;
        let payload = CanonicalJson::of(&payload)?;
        let expected = match known.0.get(&stream) {
            None => {
                seeded.added += 1;
                Expected::NoStream
            }
            Some(last) if last.seeded.as_deref() == Some(payload.as_str()) => {
                if last.is_the_seeders {
                    seeded.unchanged += 1
                } else {
                    seeded.kept += 1
                }
                continue;
            }
            Some(last) => {
                seeded.changed += 1;
                Expected::Exact(last.version)
            }
        };
        let new = NewEvent {
            event_id: Uuid::now_v7(),
            event_type: event.event_type().to_owned(),
            schema_version: event.schema_version(),
            org: PLATFORM_ORG.to_owned(),
            actor: Actor { kind: ActorKind::System, id: SEEDER.to_owned() },
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

/// What the log has of an entry.
#[derive(Debug, Default)]
struct Standing {
    /// The version of its stream.
    version: i64,
    /// What was seeded last.
    seeded: Option<String>,
    /// Whether that is also its last event.
    is_the_seeders: bool,
}

/// What the log has of every entry.
struct Known(HashMap<StreamKey, Standing>);

impl Known {
    /// One read a kind of stream, however many entries there are: seeding is part of every start.
    async fn read(log: &Log, entries: &BTreeMap<StreamKey, Event>) -> Result<Self, LogError> {
        let kinds: BTreeSet<&str> = entries.keys().map(StreamKey::kind).collect();
        let mut known = Self(HashMap::new());
        for kind in kinds {
            for event in log.read_kind(kind).await? {
                known.take(event);
            }
        }
        Ok(known)
    }

    fn take(&mut self, event: Recorded) {
        let standing = self.0.entry(event.stream).or_default();
        standing.version = event.version;
        standing.is_the_seeders = event.actor.kind == ActorKind::System && event.actor.id == SEEDER;
        if standing.is_the_seeders {
            standing.seeded = Some(event.payload);
        }
    }
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
            let templates: Vec<&Vec<String>> = match &event {
                Event::FrameworkRegistered(framework) => {
                    let companions = framework.companions.iter().map(|companion| &companion.argv);
                    std::iter::once(&framework.serve_argv).chain(companions).collect()
                }
                Event::ToolRegistered(tool) => vec![&tool.argv],
                _ => vec![],
            };
            for template in templates {
                assert_eq!(check_template(template), Ok(()), "{stream}");
            }
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
            let mut flags = BTreeSet::new();
            for (key, arg) in args {
                let known = ["int", "float", "string", "bool", "choice", "json"].contains(&&*arg.arg_type);
                assert!(known, "{stream} {key}: {}", arg.arg_type);
                assert!(arg.env || arg.cli_flag.starts_with("--"), "{stream} {key}: {}", arg.cli_flag);
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
