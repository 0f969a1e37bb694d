//! The keys of the things that benchmarks are made of.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{KeyError, StreamKey};

/// A project: `project/<org>/<project_code>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProjectKey {
    /// The organisation that owns the project.
    pub org: String,
    /// The project's code.
    pub project: String,
}

/// A workload: `workload/<org>/<project>/<workload_code>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// An imported result: `import/<org>/<project>/<import_code>/<n>/<scenario_code>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ImportKey {
    /// The organisation that owns the project.
    pub org: String,
    /// The project's code.
    pub project: String,
    /// The import's code: what was brought in one file.
    pub import: String,
    /// The result's place in the file, from 1.
    pub number: u32,
    /// The traffic's code, for example `c8-isl512-osl256`, as far as the file tells it.
    pub scenario: String,
}

/// A server: `server/<org>/<config_code>/<hostname>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl ImportKey {
    /// The stream of this imported result.
    pub fn stream(&self) -> StreamKey {
        let number = self.number.to_string();
        StreamKey::new("import", &[&self.org, &self.project, &self.import, &number, &self.scenario])
    }

    /// The project it was brought into.
    pub fn project_key(&self) -> ProjectKey {
        ProjectKey { org: self.org.clone(), project: self.project.clone() }
    }

    /// Reads the key back from its stream.
    ///
    /// # Errors
    /// [`KeyError::Shape`] when the stream is of another kind or shape.
    pub fn from_stream(key: &StreamKey) -> Result<Self, KeyError> {
        const EXPECTED: &str = "import/<org>/<project>/<import>/<n>/<scenario>";
        let [org, project, import, number_text, scenario] = exactly(key, "import", EXPECTED)?;
        let number = number(key, "import", EXPECTED, &number_text)?;
        Ok(Self { org, project, import, number, scenario })
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
display_as_stream!(ProjectKey, WorkloadKey, ScenarioKey, RunKey, JobKey, ImportKey, ServerKey);
