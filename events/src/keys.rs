//! Natural keys: the identity of everything, and at the same time the names of the log's streams.
//!
//! A stream key is `kind/part/part…`. A part is percent-encoded where it holds `/` or `%` (model codes do);
//! in a NATS subject also where it holds `.`, `*`, `>` or a space (see [`crate::subjects`]).
//! Codes are immutable; renaming a thing changes only its display name.

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The organisation of platform-wide streams (frameworks, models, tools, accounts).
pub const PLATFORM_ORG: &str = "_";

/// The characters that are percent-encoded in one part of a stream key.
const PART: &AsciiSet = &CONTROLS.add(b'/').add(b'%');

/// What was wrong with a key or a code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The code is empty, too long or holds a character that codes may not hold.
    #[error(
        "{what} {value:?} is not a valid code: use 1 to {max} characters of a-z, 0-9, '.', '_' and '-', starting with a letter or digit"
    )]
    Code {
        /// What the code names, for example `project code`.
        what: &'static str,
        /// The offending value.
        value: String,
        /// The longest code allowed.
        max: usize,
    },
    /// The stream key has another shape than its kind asks for.
    #[error("{key:?} is not a {kind} key: expected {expected}")]
    Shape {
        /// The offending key.
        key: String,
        /// The kind that was expected.
        kind: &'static str,
        /// The shape that was expected.
        expected: &'static str,
    },
}

/// The longest code: project, workload, organisation and the like.
pub const MAX_CODE: usize = 100;

/// Checks a user-made code (organisation, project, workload, server configuration, hostname).
///
/// # Errors
/// [`KeyError::Code`] names the rule that was broken.
pub fn check_code(what: &'static str, value: &str) -> Result<(), KeyError> {
    let fine = !value.is_empty()
        && value.len() <= MAX_CODE
        && value.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && value.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
    if fine { Ok(()) } else { Err(KeyError::Code { what, value: value.to_owned(), max: MAX_CODE }) }
}

/// Makes a code out of a display name: lower case, runs of other characters become one `-`.
pub fn code_from_name(name: &str) -> String {
    let mut code = String::with_capacity(name.len());
    for c in name.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '_' {
            code.push(c);
        } else if !code.ends_with('-') && !code.is_empty() {
            code.push('-');
        }
    }
    code.truncate(MAX_CODE);
    code.trim_matches(['-', '.', '_']).to_owned()
}

/// The kinds of stream the log holds.
pub const KINDS: &[&str] = &[
    "project",
    "workload",
    "scenario",
    "run",
    "job",
    "telemetry",
    "progress",
    "logs",
    "server",
    "config",
    "model",
    "framework",
    "tool",
    "org",
    "user",
    "access",
    "blob",
    "system",
];

/// The name of one stream: `kind/part/part…`, every part percent-encoded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey(String);

impl StreamKey {
    /// Builds a key of raw (not yet encoded) parts.
    pub fn new(kind: &str, parts: &[&str]) -> Self {
        let mut key = String::from(kind);
        for part in parts {
            key.push('/');
            key.extend(utf8_percent_encode(part, PART));
        }
        Self(key)
    }

    /// The key as it stands in the log, the API and the page.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The kind of stream, the part before the first `/`.
    pub fn kind(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// The organisation, the first part; [`PLATFORM_ORG`] for platform-wide streams.
    pub fn org(&self) -> &str {
        self.0.split('/').nth(1).unwrap_or(PLATFORM_ORG)
    }

    /// The decoded parts after the kind.
    pub fn parts(&self) -> Vec<String> {
        self.0.split('/').skip(1).map(|p| percent_decode_str(p).decode_utf8_lossy().into_owned()).collect()
    }

    /// The parts after the kind as they stand in the key, for example `acme/p1/w1/3`: the path that live topics match.
    pub fn path(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, path)| path)
    }
}

impl fmt::Display for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for StreamKey {
    type Err = KeyError;

    fn from_str(key: &str) -> Result<Self, KeyError> {
        let shape =
            |expected| KeyError::Shape { key: key.chars().take(200).collect(), kind: "stream", expected };
        let mut parts = key.split('/');
        let kind = parts.next().unwrap_or_default();
        if !KINDS.contains(&kind) {
            return Err(shape("one of the known kinds, then '/'"));
        }
        let rest: Vec<&str> = parts.collect();
        if rest.is_empty() || rest.iter().any(|p| p.is_empty()) {
            return Err(shape("kind/part/part…, no part empty"));
        }
        if key.len() > 1000 {
            return Err(shape("at most 1000 bytes"));
        }
        if key.chars().any(char::is_control) {
            return Err(shape("no control characters"));
        }
        // One spelling a key: what is encoded must be what we would encode.
        let canonical =
            Self::new(kind, &Self(key.to_owned()).parts().iter().map(String::as_str).collect::<Vec<_>>());
        if canonical.0 != key {
            return Err(shape("percent-encoding of '/' and '%' and control characters only"));
        }
        Ok(canonical)
    }
}

impl Serialize for StreamKey {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for StreamKey {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A project: `project/<org>/<project_code>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProjectKey {
    /// The organisation that owns the project.
    pub org: String,
    /// The project's code.
    pub project: String,
}

/// A workload: `workload/<org>/<project>/<workload_code>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkloadKey {
    /// The organisation that owns the project.
    pub org: String,
    /// The project's code.
    pub project: String,
    /// The workload's code.
    pub workload: String,
}

/// A scenario: `scenario/<org>/<project>/<workload>/<scenario_code>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScenarioKey {
    /// The organisation that owns the project.
    pub org: String,
    /// The project's code.
    pub project: String,
    /// The workload's code.
    pub workload: String,
    /// The scenario's code, for example `c8-isl512-osl256`.
    pub scenario: String,
}

/// A run: `run/<org>/<project>/<workload>/<n>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// The organisation that owns the project.
    pub org: String,
    /// The project's code.
    pub project: String,
    /// The workload's code.
    pub workload: String,
    /// The run's number within the workload, from 1.
    pub run: u32,
}

/// A job: `job/<org>/<project>/<workload>/<n>/<scenario_code>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobKey {
    /// The organisation that owns the project.
    pub org: String,
    /// The project's code.
    pub project: String,
    /// The workload's code.
    pub workload: String,
    /// The run's number within the workload, from 1.
    pub run: u32,
    /// The scenario's code.
    pub scenario: String,
}

/// A server: `server/<org>/<config_code>/<hostname>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerKey {
    /// The organisation that owns the server.
    pub org: String,
    /// The code of the server's configuration, for example `h100x8`.
    pub config: String,
    /// The server's host name.
    pub hostname: String,
}

fn exactly<const N: usize>(
    key: &StreamKey,
    kind: &'static str,
    expected: &'static str,
) -> Result<[String; N], KeyError> {
    let error = || KeyError::Shape { key: key.to_string(), kind, expected };
    if key.kind() != kind {
        return Err(error());
    }
    key.parts().try_into().map_err(|_| error())
}

impl ProjectKey {
    /// The stream of this project.
    pub fn stream(&self) -> StreamKey {
        StreamKey::new("project", &[&self.org, &self.project])
    }

    /// Reads the key back from its stream.
    ///
    /// # Errors
    /// [`KeyError::Shape`] when the stream is of another kind or shape.
    pub fn from_stream(key: &StreamKey) -> Result<Self, KeyError> {
        let [org, project] = exactly(key, "project", "project/<org>/<project>")?;
        Ok(Self { org, project })
    }
}

impl WorkloadKey {
    /// The stream of this workload.
    pub fn stream(&self) -> StreamKey {
        StreamKey::new("workload", &[&self.org, &self.project, &self.workload])
    }

    /// The project this workload belongs to.
    pub fn project_key(&self) -> ProjectKey {
        ProjectKey { org: self.org.clone(), project: self.project.clone() }
    }

    /// Reads the key back from its stream.
    ///
    /// # Errors
    /// [`KeyError::Shape`] when the stream is of another kind or shape.
    pub fn from_stream(key: &StreamKey) -> Result<Self, KeyError> {
        let [org, project, workload] = exactly(key, "workload", "workload/<org>/<project>/<workload>")?;
        Ok(Self { org, project, workload })
    }
}

impl ScenarioKey {
    /// The stream of this scenario.
    pub fn stream(&self) -> StreamKey {
        StreamKey::new("scenario", &[&self.org, &self.project, &self.workload, &self.scenario])
    }

    /// The workload this scenario belongs to.
    pub fn workload_key(&self) -> WorkloadKey {
        WorkloadKey { org: self.org.clone(), project: self.project.clone(), workload: self.workload.clone() }
    }

    /// Reads the key back from its stream.
    ///
    /// # Errors
    /// [`KeyError::Shape`] when the stream is of another kind or shape.
    pub fn from_stream(key: &StreamKey) -> Result<Self, KeyError> {
        let [org, project, workload, scenario] =
            exactly(key, "scenario", "scenario/<org>/<project>/<workload>/<scenario>")?;
        Ok(Self { org, project, workload, scenario })
    }
}

impl RunKey {
    /// The stream of this run.
    pub fn stream(&self) -> StreamKey {
        StreamKey::new("run", &[&self.org, &self.project, &self.workload, &self.run.to_string()])
    }

    /// The workload this run belongs to.
    pub fn workload_key(&self) -> WorkloadKey {
        WorkloadKey { org: self.org.clone(), project: self.project.clone(), workload: self.workload.clone() }
    }

    /// The job of this run for a scenario.
    pub fn job(&self, scenario: &str) -> JobKey {
        JobKey {
            org: self.org.clone(),
            project: self.project.clone(),
            workload: self.workload.clone(),
            run: self.run,
            scenario: scenario.to_owned(),
        }
    }

    /// Reads the key back from its stream.
    ///
    /// # Errors
    /// [`KeyError::Shape`] when the stream is of another kind or shape.
    pub fn from_stream(key: &StreamKey) -> Result<Self, KeyError> {
        const EXPECTED: &str = "run/<org>/<project>/<workload>/<n>";
        let [org, project, workload, run] = exactly(key, "run", EXPECTED)?;
        let run = number(key, "run", EXPECTED, &run)?;
        Ok(Self { org, project, workload, run })
    }
}

fn number(key: &StreamKey, kind: &'static str, expected: &'static str, text: &str) -> Result<u32, KeyError> {
    match text.parse::<u32>() {
        Ok(n) if n.to_string() == text => Ok(n),
        _ => Err(KeyError::Shape { key: key.to_string(), kind, expected }),
    }
}

impl JobKey {
    /// The stream of this job.
    pub fn stream(&self) -> StreamKey {
        self.of_kind("job", None)
    }

    /// The stream of this job's telemetry samples in one attempt.
    pub fn telemetry_stream(&self, attempt: u32) -> StreamKey {
        self.of_kind("telemetry", Some(attempt))
    }

    /// The stream of the load generator's progress in one attempt.
    pub fn progress_stream(&self, attempt: u32) -> StreamKey {
        self.of_kind("progress", Some(attempt))
    }

    /// The stream of the job's log lines in one attempt.
    pub fn logs_stream(&self, attempt: u32) -> StreamKey {
        self.of_kind("logs", Some(attempt))
    }

    fn of_kind(&self, kind: &str, attempt: Option<u32>) -> StreamKey {
        let run = self.run.to_string();
        let attempt = attempt.map(|a| a.to_string());
        let mut parts = vec![&*self.org, &*self.project, &*self.workload, &*run, &*self.scenario];
        parts.extend(attempt.as_deref());
        StreamKey::new(kind, &parts)
    }

    /// The run this job belongs to.
    pub fn run_key(&self) -> RunKey {
        RunKey {
            org: self.org.clone(),
            project: self.project.clone(),
            workload: self.workload.clone(),
            run: self.run,
        }
    }

    /// The scenario this job executes.
    pub fn scenario_key(&self) -> ScenarioKey {
        ScenarioKey {
            org: self.org.clone(),
            project: self.project.clone(),
            workload: self.workload.clone(),
            scenario: self.scenario.clone(),
        }
    }

    /// Reads the key back from the job's stream, or from its telemetry, progress or logs stream.
    ///
    /// # Errors
    /// [`KeyError::Shape`] when the stream is of another kind or shape.
    pub fn from_stream(key: &StreamKey) -> Result<Self, KeyError> {
        Self::with_attempt(key).map(|(job, _)| job)
    }

    /// Like [`JobKey::from_stream`], with the attempt where the stream has one.
    ///
    /// # Errors
    /// [`KeyError::Shape`] when the stream is of another kind or shape.
    pub fn with_attempt(key: &StreamKey) -> Result<(Self, Option<u32>), KeyError> {
        const EXPECTED: &str =
            "job/<org>/<project>/<workload>/<n>/<scenario>, or a stream of one of its attempts";
        let per_attempt = match key.kind() {
            "job" => false,
            "telemetry" | "progress" | "logs" => true,
            _ => return Err(KeyError::Shape { key: key.to_string(), kind: "job", expected: EXPECTED }),
        };
        let mut parts = key.parts();
        if parts.len() != if per_attempt { 6 } else { 5 } {
            return Err(KeyError::Shape { key: key.to_string(), kind: "job", expected: EXPECTED });
        }
        let attempt = match per_attempt.then(|| parts.pop()).flatten() {
            Some(text) => Some(number(key, "job", EXPECTED, &text)?),
            None => None,
        };
        let run = number(key, "job", EXPECTED, &parts[3])?;
        let [org, project, workload, _, scenario] =
            <[String; 5]>::try_from(parts).expect("five parts, checked above");
        Ok((Self { org, project, workload, run, scenario }, attempt))
    }
}

impl ServerKey {
    /// The stream of this server.
    pub fn stream(&self) -> StreamKey {
        StreamKey::new("server", &[&self.org, &self.config, &self.hostname])
    }

    /// The name the agent on this server goes by in NATS subjects and reports: `<config>.<hostname>` is not
    /// unique across organisations, so the organisation always stands beside it.
    pub fn agent(&self) -> String {
        format!("{}~{}", self.config, self.hostname)
    }

    /// Reads the server back from an agent's name; the reverse of [`ServerKey::agent`].
    pub fn from_agent(org: &str, agent: &str) -> Option<Self> {
        let (config, hostname) = agent.split_once('~')?;
        Some(Self { org: org.to_owned(), config: config.to_owned(), hostname: hostname.to_owned() })
    }

    /// Reads the key back from its stream.
    ///
    /// # Errors
    /// [`KeyError::Shape`] when the stream is of another kind or shape.
    pub fn from_stream(key: &StreamKey) -> Result<Self, KeyError> {
        let [org, config, hostname] = exactly(key, "server", "server/<org>/<config>/<hostname>")?;
        Ok(Self { org, config, hostname })
    }
}

macro_rules! display_as_stream {
    ($($key:ty),*) => {$(
        impl fmt::Display for $key {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.stream(), f)
            }
        }
    )*};
}
display_as_stream!(ProjectKey, WorkloadKey, ScenarioKey, RunKey, JobKey, ServerKey);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_job_key_survives_its_stream() {
        let job = JobKey {
            org: "acme".into(),
            project: "p".into(),
            workload: "w".into(),
            run: 3,
            scenario: "c8-isl512-osl256".into(),
        };
        assert_eq!(job.stream().as_str(), "job/acme/p/w/3/c8-isl512-osl256");
        assert_eq!(JobKey::from_stream(&job.stream()), Ok(job.clone()));
        assert_eq!(JobKey::with_attempt(&job.telemetry_stream(2)), Ok((job, Some(2))));
    }

    #[test]
    fn a_key_has_one_spelling() {
        assert!("model/_/meta-llama%2FLlama-3.1-8B".parse::<StreamKey>().is_ok());
        assert!("model/_/meta%2DLlama".parse::<StreamKey>().is_err());
        assert!("job/a/b/c/03/d".parse::<StreamKey>().is_ok_and(|k| JobKey::from_stream(&k).is_err()));
    }

    #[test]
    fn a_name_becomes_a_code() {
        assert_eq!(code_from_name("  Llama 3.3, 70B (fp8)! "), "llama-3.3-70b-fp8");
    }

    proptest! {
        #[test]
        fn parts_survive_encoding(parts in proptest::collection::vec("[^\\p{C}]{1,20}", 1..6)) {
            let key = StreamKey::new("model", &parts.iter().map(String::as_str).collect::<Vec<_>>());
            prop_assert_eq!(key.parts(), parts);
            prop_assert_eq!(key.as_str().parse::<StreamKey>(), Ok(key.clone()));
        }

        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = text.parse::<StreamKey>();
        }
    }
}
