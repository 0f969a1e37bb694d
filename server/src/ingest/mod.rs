//! The one door for agents: what they claim is judged here, and only what is accepted becomes events.
//!
//! [`accept::accept`] is the door; [`http`] and [`nats`] are its two thin bindings.

pub mod accept;
pub mod batch;
mod bounds;
mod error;
mod follow_up;
pub mod heartbeat;
pub mod http;
mod jobs;
mod judge;
pub mod nats;
mod numbers;
mod rejections;
mod request;

pub use bounds::is_sha256;
pub use error::Refused;
pub use rejections::Rejections;

use crate::blobs::BlobError;
use crate::domain::LoadError;
use crate::log::LogError;

/// Something passing went wrong: the report is to be kept and sent again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Retry(String);

impl Retry {
    fn because(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "a report could not be judged or appended; its agent will send it again");
        Self("the control plane could not finish this; its log has the cause".to_owned())
    }
}

impl From<LogError> for Retry {
    fn from(error: LogError) -> Self {
        Self::because(&error)
    }
}

impl From<LoadError> for Retry {
    fn from(error: LoadError) -> Self {
        Self::because(&error)
    }
}

impl From<BlobError> for Retry {
    fn from(error: BlobError) -> Self {
        Self::because(&error)
    }
}

impl From<sqlx::Error> for Retry {
    fn from(error: sqlx::Error) -> Self {
        Self::because(&error)
    }
}
