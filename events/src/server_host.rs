//! Servers: the GPU hosts that serve models and generate load, and the agents on them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Whether a server can take work, by its last heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Registered; its agent has not enrolled yet.
    Registered,
    /// A heartbeat within the last 2 minutes.
    Online,
    /// No heartbeat for 2 to 10 minutes.
    Stale,
    /// No heartbeat for 10 minutes or more.
    Offline,
    /// The agent must be bootstrapped again.
    RequiresReonboarding,
}

impl ServerState {
    /// The word used in SQL, the API and the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Online => "online",
            Self::Stale => "stale",
            Self::Offline => "offline",
            Self::RequiresReonboarding => "requires_reonboarding",
        }
    }
}

/// A person registered a server. Stream: the server's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerRegistered {
    /// A free comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// What an hour of this server costs, US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_hour_usd: Option<f64>,
    /// The host's address, as the person knows it: a note. Agents connect to the control plane, never it to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
}

/// The server's agent enrolled with its one-time token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerEnrolled {
    /// The agent's name, see [`crate::keys::ServerKey::agent`].
    pub agent: String,
    /// The agent's version.
    pub agent_version: String,
    /// The agent's public NATS key.
    pub nats_public_key: String,
}

/// One accelerator of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuInfo {
    /// Its index on the host, from 0.
    pub gpu: u32,
    /// Its product name, as the driver says it.
    pub name: String,
    /// Memory in all, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_total_bytes: Option<u64>,
    /// Power limit, watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// Compute capability, for example `9.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
}

/// What a host is and has, as its agent found it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostCapabilities {
    /// The agent's version.
    pub agent_version: String,
    /// Operating system and version.
    #[serde(default)]
    pub os: String,
    /// Kernel release.
    #[serde(default)]
    pub kernel: String,
    /// CPU model.
    #[serde(default)]
    pub cpu_model: String,
    /// Logical CPUs.
    #[serde(default)]
    pub cpus: u32,
    /// CPU sockets.
    #[serde(default)]
    pub cpu_sockets: u32,
    /// Memory in all, bytes.
    #[serde(default)]
    pub ram_total_bytes: u64,
    /// Accelerators, by index.
    #[serde(default)]
    pub gpus: Vec<GpuInfo>,
    /// NVIDIA driver version, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// Executables the agent's policy allows and that exist, by name.
    #[serde(default)]
    pub executables: Vec<String>,
    /// Models present on the host, by code.
    #[serde(default)]
    pub models: Vec<String>,
    /// The file of each of them that is one, by code, without its folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub model_files: BTreeMap<String, String>,
    /// Whether the agent's policy takes jobs with flags that load code or read paths; absent where it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_dangerous: Option<bool>,
    /// Names of environment variables that the policy lets a job set; absent where the agent did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<String>>,
    /// Names of the secret environment variables that are set on the host, never their values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<String>>,
    /// Snapshots of inputs present on the host, by code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<String>,
    /// Milliseconds the host's clock is off, where the agent could tell; positive means ahead of the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ms: Option<f64>,
}

/// The agent reported what its host is and has; sent at start and when it changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerCapabilitiesReported {
    /// The host.
    pub capabilities: HostCapabilities,
}

/// The server's state changed. Appended by the control plane; heartbeats themselves are not events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerStateChanged {
    /// The new state.
    pub state: ServerState,
}

/// A person removed the server. Its history stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerRemoved {}

/// An administrator put the server into maintenance: it gets no new job until that ends. A job that runs goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerMaintenanceStarted {
    /// Why.
    pub reason: String,
}

/// The server takes jobs again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerMaintenanceEnded {}
