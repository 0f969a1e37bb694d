//! The door over HTTPS, for sites that allow only 443.

use crate::api::error::Failure;
use crate::auth::AgentIdentity;

pub async fn reports(_: AgentIdentity) -> Result<(), Failure> {
    Err(Failure::unavailable(&"not yet"))
}
pub async fn heartbeat(_: AgentIdentity) -> Result<(), Failure> {
    Err(Failure::unavailable(&"not yet"))
}
pub async fn claim(_: AgentIdentity) -> Result<(), Failure> {
    Err(Failure::unavailable(&"not yet"))
}
