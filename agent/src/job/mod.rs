//! One attempt at one job: verify, plan, serve, load, measure, report.

mod attempt;
mod kept;
mod place;
mod placeholders;
mod plan;
mod progress;
mod record;
mod reporter;
mod serve;
mod sources;
mod steps;
mod uploads;
mod verify;
mod weights;

pub(crate) use attempt::stamped;
pub use attempt::{Attempt, Host, Stop, carry_out};
pub use kept::Kept;
pub use place::Place;
pub use plan::Refusal;
pub use record::{Record, RecordError};
pub use reporter::Reporter;
pub use sources::snapshots_present;
pub use uploads::{Upload, Uploader};
pub use verify::{NotVerified, verify};
