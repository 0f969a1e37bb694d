//! Commands, one file each: authorise → load → decide → append.
//!
//! Every command takes the state, who is asking, its arguments by natural key, and [`RequestMeta`]; it answers with the
//! log position of its last event. Decisions are made on streams and guarded by the version they were made on;
//! [`WorkIndex`] only says which streams to look at.

mod addresses;
mod append;
mod calibration;
mod catalogue;
mod error;
mod kept;
pub(crate) mod load;
mod nudge;
mod quota_index;

pub mod account;
pub mod advance_run;
pub mod approvals;
pub mod cancel_job;
pub mod cancel_run;
pub mod cancel_stale_jobs;
pub mod change_project;
pub mod change_workload;
pub mod check_readiness;
pub mod claim_job;
pub mod clone_workload;
pub mod create_project;
pub mod create_prompt_source;
pub mod create_server_config_instance;
pub mod create_workload;
pub mod diff_engine_args_sets;
pub mod engine_args_sets;
pub mod flag_result;
pub mod hf_token;
pub mod import_results;
pub mod ingest_results;
pub mod invitations;
pub mod keep_upload;
pub mod leases;
pub mod notifications;
pub mod organizations;
pub mod preview_commands;
pub mod quotas;
pub mod register_entry;
pub mod remove_server;
pub mod rerun;
pub mod retry_job;
pub mod saved_views;
pub mod set_server_maintenance;
pub mod start_run;
pub mod tool_args_sets;
pub mod watch;
pub mod work_index;

use std::collections::BTreeMap;

use events::api::CommandReply;
use events::timestamp::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::domain::server::Silence;

pub use append::event_id_of;
pub use error::CommandError;
pub use work_index::WorkIndex;

/// What surrounds a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestMeta {
    /// The request's id: every event of the command carries it.
    pub correlation_id: Uuid,
    /// The caller's key for this very request: sent again, it appends nothing again.
    pub idempotency_key: Option<String>,
    /// The time now.
    pub now: Timestamp,
}

/// How long the control plane waits for what. Tests shorten it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Seconds of an agent's silence after which its attempt is lost. Heartbeats come every 5 seconds.
    pub lease_s: u32,
    /// Silence after which a server is stale and offline.
    pub silence: Silence,
    /// Milliseconds between two looks at leases and servers.
    pub tick_ms: u64,
    /// Milliseconds between telemetry samples.
    pub sample_interval_ms: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self { lease_s: 30, silence: Silence::default(), tick_ms: 1000, sample_interval_ms: 1000 }
    }
}

/// A command's answer.
fn reply<const N: usize>(position: i64, keys: [(&str, Value); N]) -> CommandReply {
    let keys: BTreeMap<String, Value> =
        keys.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    CommandReply { position, keys }
}
