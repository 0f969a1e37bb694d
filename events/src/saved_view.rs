//! Saved views: an address of the page under a name, for oneself or for the whole organisation.

use serde::{Deserialize, Serialize};

use crate::keys::StreamKey;

/// The part of a saved view's key that stands in the place of its owner where the whole organisation shares it.
pub const SHARED: &str = "_";

/// A person saved a view, or saved another one under the same code. Stream: `saved_view/<org>/<user id, or _>/<code>`;
/// `_` is the organisation's own, anything else that user's alone. Read by: saved views.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ViewSaved {
    /// The display name.
    pub name: String,
    /// The page, as the path of its address: `/reporting`.
    pub page: String,
    /// What the page is set to, as the part of the address after `?`; empty for the page as it opens.
    pub query: String,
}

/// A person removed a saved view. Saving under its code again begins anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ViewRemoved {}

/// The stream of a saved view: `owner` is a user's id, or [`SHARED`].
pub fn stream(org: &str, owner: &str, code: &str) -> StreamKey {
    StreamKey::new("saved_view", &[org, owner, code])
}
