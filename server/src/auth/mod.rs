//! Who is asking: accounts, sessions, tokens, agents; and what they may see.

pub mod accounts;
pub mod agents;
pub mod api_tokens;
mod error;
pub mod oidc;
pub mod password;
mod principal;
pub(crate) mod record;
pub mod sessions;
pub mod throttle;

pub use agents::AgentIdentity;
pub use error::{AuthError, Denied};
pub use principal::{Caller, Principal, Scopes, Visibility};
