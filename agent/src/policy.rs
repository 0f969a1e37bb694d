//! What this host allows: `agent.toml`, local and authoritative. Nothing the control plane sends can widen it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use events::networks::Networks;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::state_dir::StateDir;

/// The policy file, read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The folder that model servers and tools work in.
    pub work_dir: PathBuf,
    /// The folder that logs and summaries are written to.
    pub log_dir: PathBuf,
    /// The executables that may be started: name → absolute paths, tried in order; an empty list means
    /// that the name is looked for in `search_dirs`.
    #[serde(default)]
    pub executables: BTreeMap<String, Vec<PathBuf>>,
    /// The folders allowed executables are looked for in.
    #[serde(default)]
    pub search_dirs: Vec<PathBuf>,
    /// Models on this host: code → path or id that replaces `{agent.model}`.
    #[serde(default)]
    pub models: BTreeMap<String, String>,
    /// Snapshots of inputs on this host: code → the folder that holds their rows (`manifest.jsonl` or `prompts.jsonl`).
    #[serde(default)]
    pub snapshots: BTreeMap<String, PathBuf>,
    /// Names of environment variables that a started process may have.
    #[serde(default)]
    pub env: Vec<String>,
    /// Like `env`, but their values are redacted from everything that leaves the host.
    #[serde(default)]
    pub secret_env: Vec<String>,
    /// Where jobs may have this host connect to beside the public internet: endpoints that run already, and images and
    /// audio behind addresses. Model servers of this host's own are always reached.
    #[serde(default, deserialize_with = "networks")]
    pub allowed_networks: Networks,
    /// Whether jobs with flags that load code or read paths are accepted.
    #[serde(default)]
    pub accept_dangerous: bool,
    /// The longest a job may take, seconds.
    #[serde(default = "max_job_duration_s")]
    pub max_job_duration_s: u64,
    /// Milliseconds between telemetry samples; absent means as the job asks (1000 unless it says otherwise).
    #[serde(default)]
    pub sample_interval_ms: Option<u32>,
    /// Whether NATS is used where the control plane offers it. HTTPS always works.
    #[serde(default = "yes")]
    pub use_nats: bool,
    /// Seconds between heartbeats.
    #[serde(default = "heartbeat_s")]
    pub heartbeat_s: u64,
    /// Lines of each log that are reported live; the rest is only in the log file that is uploaded at the end.
    #[serde(default = "live_log_lines")]
    pub live_log_lines: u64,
    /// The most bytes of one log file that are kept.
    #[serde(default = "max_log_bytes")]
    pub max_log_bytes: u64,
    /// The most bytes of unacknowledged reports that are kept on disk.
    #[serde(default = "max_spool_bytes")]
    pub max_spool_bytes: u64,
    /// Seconds a process has to end after SIGTERM before it gets SIGKILL.
    #[serde(default = "stop_grace_s")]
    pub stop_grace_s: u64,
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Networks, D::Error> {
    let ranges = Vec::<String>::deserialize(deserializer)?;
    ranges.join(",").parse().map_err(D::Error::custom)
}
fn yes() -> bool {
    true
}
fn max_job_duration_s() -> u64 {
    24 * 3600
}
fn heartbeat_s() -> u64 {
    5
}
fn live_log_lines() -> u64 {
    5_000
}
fn max_log_bytes() -> u64 {
    256 << 20
}
fn max_spool_bytes() -> u64 {
    4 << 30
}
fn stop_grace_s() -> u64 {
    10
}

/// What can be wrong with the policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It cannot be read.
    #[error("the policy {path} cannot be read: {source}. `benchtrail-agent enrol` writes one with comments")]
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not valid.
    #[error("the policy {path} is not valid: {message}")]
    Invalid {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
}

/// Why an executable may not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutableError {
    /// The policy does not name it.
    #[error(
        "the executable {name:?} is not allowed by this host's policy: add it under [executables] in agent.toml, for example `{name} = [\"/absolute/path\"]`"
    )]
    NotAllowed {
        /// The executable, as the command names it.
        name: String,
    },
    /// It is allowed but not there.
    #[error(
        "the executable {name:?} is allowed but not installed: looked in {looked}. Install it, or correct agent.toml"
    )]
    NotFound {
        /// Its name.
        name: String,
        /// Where it was looked for.
        looked: String,
    },
}

impl Policy {
    /// Reads and checks the policy.
    ///
    /// # Errors
    /// [`PolicyError`] names the file and the line.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PolicyError::Unreadable { path: path.to_owned(), source })?;
        let invalid = |message: String| PolicyError::Invalid { path: path.to_owned(), message };
        let policy: Self = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        policy.check().map_err(invalid)?;
        Ok(policy)
    }

    fn check(&self) -> Result<(), String> {
        let all = [&self.work_dir, &self.log_dir]
            .into_iter()
            .chain(&self.search_dirs)
            .chain(self.snapshots.values());
        if let Some(relative) = all.chain(self.executables.values().flatten()).find(|p| p.is_relative()) {
            return Err(format!("{} is a relative path: write an absolute one", relative.display()));
        }
        if let Some(name) = self.executables.keys().find(|name| name.is_empty() || name.contains('/')) {
            return Err(format!("{name:?} under [executables] is not a plain file name"));
        }
        if self.heartbeat_s == 0 || self.heartbeat_s > 60 {
            return Err("heartbeat_s must be 1 to 60: an agent silent for longer loses its job".into());
        }
        if self.sample_interval_ms.is_some_and(|ms| !(100..=60_000).contains(&ms)) {
            return Err("sample_interval_ms must be 100 to 60000".into());
        }
        Ok(())
    }

    /// The absolute path of an executable that a command names by plain name or by one of its allowed paths.
    ///
    /// # Errors
    /// [`ExecutableError`] says what to add to the policy or what to install.
    pub fn executable(&self, name: &str) -> Result<PathBuf, ExecutableError> {
        if name.contains('/') {
            let path = Path::new(name);
            let allowed = self.executables.keys().any(|n| self.candidates(n).iter().any(|c| c == path));
            return match (allowed, is_executable(path)) {
                (true, true) => Ok(path.to_owned()),
                (true, false) => {
                    Err(ExecutableError::NotFound { name: name.to_owned(), looked: name.to_owned() })
                }
                (false, _) => Err(ExecutableError::NotAllowed { name: name.to_owned() }),
            };
        }
        if !self.executables.contains_key(name) {
            return Err(ExecutableError::NotAllowed { name: name.to_owned() });
        }
        let candidates = self.candidates(name);
        candidates.iter().find(|path| is_executable(path)).cloned().ok_or_else(|| ExecutableError::NotFound {
            name: name.to_owned(),
            looked: candidates.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "),
        })
    }

    fn candidates(&self, name: &str) -> Vec<PathBuf> {
        match self.executables.get(name) {
            Some(paths) if !paths.is_empty() => paths.clone(),
            Some(_) => self.search_dirs.iter().map(|dir| dir.join(name)).collect(),
            None => Vec::new(),
        }
    }

    /// Whether a started process may have this environment variable.
    pub fn allows_env(&self, name: &str) -> bool {
        self.env.iter().chain(&self.secret_env).any(|allowed| allowed == name)
    }

    /// The values of the secret environment variables that are set.
    pub fn secrets(&self) -> Vec<String> {
        self.secret_env.iter().filter_map(|name| std::env::var(name).ok()).filter(|v| !v.is_empty()).collect()
    }

    /// The names of the secret environment variables that are set.
    pub fn secrets_present(&self) -> Vec<String> {
        let is_set = |name: &&String| std::env::var(name).is_ok_and(|value| !value.is_empty());
        self.secret_env.iter().filter(is_set).cloned().collect()
    }

    /// The allowed executables that are there.
    pub fn executables_present(&self) -> Vec<String> {
        self.executables.keys().filter(|name| self.executable(name).is_ok()).cloned().collect()
    }

    /// The models that are there: those whose value is an existing path, or an id rather than a path.
    pub fn models_present(&self) -> Vec<String> {
        let present = |value: &str| !value.starts_with('/') || Path::new(value).exists();
        self.models.iter().filter(|(_, value)| present(value)).map(|(code, _)| code.clone()).collect()
    }
}

impl Policy {
    /// The names of those models that are files, by code: they say the precision that is served.
    pub fn model_files(&self) -> BTreeMap<String, String> {
        let file = |(code, value): (&String, &String)| {
            let path = Path::new(value);
            let name = path.file_name()?.to_str().filter(|_| path.is_file())?;
            Some((code.clone(), name.to_owned()))
        };
        self.models.iter().filter_map(file).collect()
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The commented policy that `enrol` writes.
pub fn template(
    state: &StateDir,
    bin_dirs: &[PathBuf],
    models: &[(String, String)],
    networks: &[String],
) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let path = |path: &Path| quoted(&path.display().to_string());
    let dirs: Vec<String> = bin_dirs.iter().map(|dir| path(dir)).collect();
    let networks: Vec<String> = networks.iter().map(|network| quoted(network)).collect();
    let models: String =
        models.iter().map(|(code, at)| format!("{} = {}\n", quoted(code), quoted(at))).collect();
    format!(
        r#"# What this host allows. Local and authoritative: nothing the control plane sends can widen it.
# Restart the agent after a change; `benchtrail-agent doctor` checks it.

# Model servers and tools run in here, logs and summaries are written there.
work_dir = {work}
log_dir = {log}

# Where allowed executables are looked for.
search_dirs = [{dirs}]

# Environment variables that a started process may have; everything else is cleared. Recipes that tune an engine by
# its environment, and Ollama, need their variables named here, for example VLLM_USE_V2_MODEL_RUNNER or OLLAMA_HOST.
# Each tool of ours compares the clock with public time servers first; METRUM_SKIP_NTP_CHECK=true in the agent's environment
# leaves that out where there is no way to them.
env = ["PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "HF_HOME", "HF_HUB_OFFLINE", "METRUM_SKIP_NTP_CHECK"]
# The same, but their values are redacted from every log, summary and message that leaves this host.
secret_env = ["HF_TOKEN", "OPENAI_API_KEY"]

# Where jobs may have this host connect to although it is not public: endpoints that run already, images and audio behind
# addresses, for example ["10.20.0.0/16"] or one service, "127.0.0.1:8000". Whoever may start runs can send requests there.
# Model servers that a job starts on this host are reached in any case; a cloud's metadata service should never be.
allowed_networks = [{networks}]

# Whether jobs may use flags that load code or read paths (an administrator must approve them as well).
accept_dangerous = false

# The longest a job may take, seconds.
max_job_duration_s = 86400

# Milliseconds between telemetry samples, 100 to 60000. Unset: as the job asks.
# sample_interval_ms = 1000

# Use NATS where the control plane offers it; HTTPS is used whenever NATS does not answer.
use_nats = true

# The executables that may be started. A list of absolute paths, or [] to look in search_dirs.
# An interpreter runs whatever it is handed: allow python3 only where every workload of your organisation is trusted.
[executables]
metrumbench-llm = []
metrumbench-vlm = []
metrumbench-asr = []
metrumbench-imagegen = []
benchtrail-refserver = []
llama-server = []
vllm = []
# sglang = []
# trtllm-serve = []
# text-generation-launcher = []
# ollama = []
# lmcache = []
# Third-party tools, once they are installed on this host:
# genai-perf = []
# inferencex = []
# kv-cache-offload = []
# kyai = []
# python3 = ["/usr/bin/python3"]

# Inputs on this host: the prompt source's code = the folder with its rows. For audio: manifest.jsonl and transcripts.jsonl,
# else prompts.jsonl; relative paths in the rows count from the folder.
[snapshots]
# librispeech-test-clean = "/data/librispeech/test-clean"

# Models on this host: the code in the catalogue = a path, or the id the framework loads by itself.
[models]
{models}"#,
        work = path(&state.root().join("work")),
        log = path(&state.root().join("logs")),
        dirs = dirs.join(", "),
        networks = networks.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(extra: &str) -> Policy {
        toml::from_str(&format!("work_dir = '/w'\nlog_dir = '/l'\n{extra}")).unwrap()
    }

    #[test]
    fn the_template_is_a_valid_policy() {
        let state = StateDir::new("/var/lib/a \"quoted\" place");
        let models = [("meta/llama".to_owned(), "/models/llama.gguf".to_owned())];
        let networks = ["127.0.0.0/8".to_owned(), "[::1]:8000".to_owned()];
        let text = template(&state, &[PathBuf::from("/opt/bin")], &models, &networks);
        let policy: Policy = toml::from_str(&text).unwrap();
        policy.check().unwrap();
        assert_eq!(policy.models["meta/llama"], "/models/llama.gguf");
        assert_eq!(policy.search_dirs, [PathBuf::from("/opt/bin")]);
        assert_eq!(policy.allowed_networks.to_string(), "127.0.0.0/8,[::1]:8000");
    }

    #[test]
    fn only_an_executable_that_the_policy_names_may_be_started() {
        let policy = policy("search_dirs = ['/bin']\n[executables]\nsh = []\nmissing = []");
        assert_eq!(policy.executable("sh").unwrap(), PathBuf::from("/bin/sh"));
        assert_eq!(policy.executable("/bin/sh").unwrap(), PathBuf::from("/bin/sh"));
        assert!(matches!(policy.executable("ls"), Err(ExecutableError::NotAllowed { .. })));
        assert!(matches!(policy.executable("/bin/ls"), Err(ExecutableError::NotAllowed { .. })));
        assert!(matches!(policy.executable("/bin/../bin/sh"), Err(ExecutableError::NotAllowed { .. })));
        assert!(matches!(policy.executable("missing"), Err(ExecutableError::NotFound { .. })));
    }

    #[test]
    fn a_policy_with_an_unknown_key_or_a_relative_path_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.toml");
        for text in [
            "work_dir='/w'\nlog_dir='/l'\nuse_natz=true",
            "work_dir='w'\nlog_dir='/l'",
            "work_dir='/w'\nlog_dir='/l'\nallowed_networks=['localhost']",
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(Policy::load(&path), Err(PolicyError::Invalid { .. })), "{text}");
        }
    }
}
