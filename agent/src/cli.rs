//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use events::networks::Networks;
use url::Url;

/// The worker on a GPU host: serves models, generates load, samples telemetry and reports.
#[derive(Debug, Parser)]
#[command(
    name = "benchtrail-agent",
    version,
    arg_required_else_help = true,
    after_help = "First steps:
  1. Register this server in Benchtrail; the page shows a one-time token (bt_e_…).
  2. benchtrail-agent enrol --url https://benchtrail.example --token bt_e_…
  3. Read agent.toml: it says which programs this host may start, and which models it has.
  4. benchtrail-agent doctor
  5. benchtrail-agent run

Exit codes: 0 done; 1 failed (the message says what to do); 2 wrong usage; 3 not enrolled, or enrolled already;
4 another agent runs on the same state folder."
)]
pub struct Cli {
    /// The folder with identity, policy and unacknowledged reports [default: /var/lib/benchtrail-agent for root,
    /// ~/.local/state/benchtrail-agent otherwise]
    #[arg(long, global = true, env = "BENCHTRAIL_AGENT_STATE_DIR", value_name = "DIR")]
    pub state_dir: Option<PathBuf>,

    /// The policy [default: agent.toml in the state folder]
    #[arg(long, global = true, env = "BENCHTRAIL_AGENT_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// What the agent prints of itself, for example `debug` or `agent::spool=debug`
    #[arg(
        long,
        global = true,
        env = "BENCHTRAIL_LOG",
        default_value = "info,async_nats=warn",
        value_name = "FILTER"
    )]
    pub log: String,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Trade a one-time token for this host's identity, and write a commented policy if there is none.
    Enrol(EnrolArgs),
    /// Claim jobs and carry them out until SIGTERM or Ctrl-C.
    Run,
    /// Check everything a job needs and name the cure for what is missing.
    Doctor,
}

/// What `enrol` needs.
#[derive(Debug, Args)]
pub struct EnrolArgs {
    /// The control plane's address, for example https://benchtrail.example
    #[arg(long, env = "BENCHTRAIL_URL")]
    pub url: Url,

    /// The one-time token (bt_e_…). Better given by the environment than on a shared host's command line
    #[arg(long, env = "BENCHTRAIL_ENROL_TOKEN", hide_env_values = true)]
    pub token: String,

    /// A folder with allowed executables, for the policy's `search_dirs`; may be repeated
    #[arg(long = "bin-dir", value_name = "DIR")]
    pub bin_dirs: Vec<PathBuf>,

    /// A model on this host, for the policy: its code in the catalogue and its path or id; may be repeated
    #[arg(long = "model", value_name = "CODE=PATH", value_parser = code_and_path)]
    pub models: Vec<(String, String)>,

    /// A range or service that is not public and that jobs may have this host connect to, for the policy's
    /// `allowed_networks`, for example 10.20.0.0/16; may be repeated
    #[arg(long = "allow-network", value_name = "RANGE", value_parser = network)]
    pub networks: Vec<String>,

    /// Enrol although this host is enrolled
    #[arg(long)]
    pub force: bool,

    /// Write the policy anew although there is one
    #[arg(long)]
    pub replace_policy: bool,
}

fn code_and_path(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((code, path)) if !code.is_empty() && !path.is_empty() => Ok((code.into(), path.into())),
        _ => Err("expected CODE=PATH, for example google/gemma-3-270m=/models/gemma.gguf".into()),
    }
}

fn network(text: &str) -> Result<String, String> {
    text.parse::<Networks>().map(|networks| networks.to_string()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_model_is_its_code_and_its_path() {
        assert_eq!(code_and_path("a/b=/c=d").unwrap(), ("a/b".into(), "/c=d".into()));
        assert!(code_and_path("a/b").is_err());
    }
}
