//! What stands in the way of a run, and its cures.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::WorkloadInput;
use crate::access::Role;
use crate::job::ResolvedCommands;
use crate::workload::ScenarioSpec;

/// `POST /api/rpc/check_readiness` and `POST /api/rpc/preview_commands`: a workload that need not be saved, on a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckReadiness {
    /// The workload.
    pub p_workload: WorkloadInput,
    /// The server's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_config_code: Option<String>,
    /// The server's host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_hostname: Option<String>,
}

/// One way out of a finding, so that the page can offer it as a button.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cure {
    /// Set a field of the workload, for example `p_engine_args.tensor_parallel_size`.
    Set {
        /// The field: the path in the arguments of `check_readiness`' `p_workload`.
        field: String,
        /// Its new value; null takes an argument of the set away.
        value: Value,
        /// The cure as a sentence.
        label: String,
    },
    /// Take a field of the workload out.
    Unset {
        /// The field.
        field: String,
        /// The cure as a sentence.
        label: String,
    },
    /// Go to a page.
    Link {
        /// Where: a path of the page.
        href: String,
        /// The cure as a sentence.
        label: String,
    },
    /// Send a command.
    Command {
        /// The command.
        command: String,
        /// Its arguments.
        args: Value,
        /// The role it needs.
        role: Role,
        /// The cure as a sentence.
        label: String,
    },
    /// Do something on the host by hand.
    Host {
        /// A line to run there, or to write into `agent.toml`.
        line: String,
        /// The cure as a sentence.
        label: String,
    },
    /// Decide something that no button can.
    Advice {
        /// The cure as a sentence.
        label: String,
    },
}

impl Cure {
    /// The cure as a sentence.
    pub fn label(&self) -> &str {
        match self {
            Self::Set { label, .. }
            | Self::Unset { label, .. }
            | Self::Link { label, .. }
            | Self::Command { label, .. }
            | Self::Host { label, .. }
            | Self::Advice { label } => label,
        }
    }
}

/// One readiness rule's finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadinessCheck {
    /// A short stable word, for example `server_online`.
    pub rule: String,
    /// What is checked, for people.
    pub title: String,
    /// `ok`, `warning`, `fails` or `unknown` (the facts are missing).
    pub result: String,
    /// The finding with its numbers.
    pub message: String,
    /// What would cure it, each a sentence.
    #[serde(default)]
    pub cures: Vec<String>,
    /// The same cures, for programs.
    #[serde(default)]
    pub cure: Vec<Cure>,
}

/// The answer of `check_readiness`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Readiness {
    /// True when no rule fails.
    pub ready: bool,
    /// Every rule's finding.
    pub checks: Vec<ReadinessCheck>,
    /// The scenarios as they roll out.
    pub scenarios: Vec<ScenarioSpec>,
    /// The commands for the first scenario; absent where they cannot be resolved (a check says why).
    #[serde(default)]
    pub commands: Option<ResolvedCommands>,
}
