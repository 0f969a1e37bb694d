//! Named sets of a tool's arguments, which a team keeps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::keys::StreamKey;

/// A person saved a set of a tool's arguments for the organisation, or another one under the same code. A workload that was
/// made from a set holds the values itself. Stream: `tool_args_set/<org>/<tool_code>/<set_code>`. Read by: the sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolArgsSetSaved {
    /// The display name.
    pub name: String,
    /// The arguments: key → typed value.
    pub values: BTreeMap<String, Value>,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// A person removed a set of a tool's arguments. Saving under its code again begins anew; workloads keep their values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolArgsSetRemoved {}

/// The stream of a set.
pub fn stream(org: &str, tool: &str, code: &str) -> StreamKey {
    StreamKey::new("tool_args_set", &[org, tool, code])
}
