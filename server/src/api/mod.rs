//! The HTTP API: thin handlers over commands, queries and the one door for agents.

pub mod agent;
pub mod blobs;
pub mod bootstrap;
pub mod commands;
pub mod contract;
pub mod edge;
pub mod error;
pub mod extract;
mod first_page;
pub mod health;
pub mod history;
pub mod html;
pub mod idempotency;
pub mod limits;
pub mod live;
pub mod metrics;
pub mod oidc;
pub mod openapi;
pub mod page;
pub mod report;
pub mod router;
pub mod rpc;
pub mod session;
pub mod views;

pub use error::Failure;
pub use extract::{ApiJson, ApiPath, ApiQuery, RequestContext};
pub use router::{Access, router};
