//! Projections: read tables that can be thrown away and made again from the log, byte for byte.
//!
//! A projection is a pure fold: it sees events in the order of the log and changes rows; it reads no clock and no
//! table but its own. The [`runner`] loads the rows a batch touches, folds, writes them and moves the checkpoint in
//! one transaction; [`rebuild`] runs the same fold from position 0 into fresh tables and proves that they are equal.

mod any_table;
mod batch;
mod catalogue_views;
mod handle;
pub mod models;
pub mod rebuild;
pub mod refold;
mod runner;
pub mod schema;
mod store;
mod table;
mod text;
pub mod views;

use events::Event;
use events::envelope::Recorded;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::log::{Log, LogError};

pub use any_table::{AnyTable, StoreError, relation};
pub use handle::{Behind, Handle, ProjectionState, ProjectionStatus, Status};
pub use models::registry;
pub use runner::run_to;
pub use table::{Access, Key, Row, Table};
pub use text::{Column, Kind};

/// One read model: a fold of events into the rows of its own tables.
pub trait Projection: Send {
    /// Its name, as `rebuild --projection` takes it.
    fn name(&self) -> &'static str;
    /// The version of this code. Raise it when rows would come out differently: the tables are then rebuilt.
    fn version(&self) -> i32;
    /// The types of the events it folds.
    fn interests(&self) -> &'static [&'static str];
    /// The rows it works on.
    fn tables(&mut self) -> Vec<&mut dyn AnyTable>;
    /// Says which rows [`Projection::fold`] will look at. Called again after rows were loaded, so that the keys of
    /// further rows may be taken from them.
    fn wants(&mut self, recorded: &Recorded, event: &Event);
    /// Folds one event in. An error must come before any change.
    ///
    /// # Errors
    /// The event does not fit what came before it. It is quarantined, and the rest goes on.
    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError>;
}

/// Why an event could not be folded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FoldError(pub String);

impl From<events::keys::KeyError> for FoldError {
    fn from(error: events::keys::KeyError) -> Self {
        Self(error.to_string())
    }
}

/// What can go wrong with the projections as a whole.
#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    /// The database answered with an error or not at all.
    #[error("the read tables' database: {0}")]
    Database(#[from] sqlx::Error),
    /// Rows could not be loaded or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// No projection of that name.
    #[error("there is no projection {name:?}; there are: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Another process rebuilds the same projection.
    #[error("projection {0} is being rebuilt by another process; wait for it or stop it")]
    Busy(String),
    /// Something has read the views for as long as the flip waits.
    #[error(
        "projection {0} is rebuilt, but its views were being read all the while (by an export or a report?), so that they \
         still show the tables of before; run `benchtrail rebuild --projection {0}` when that has ended"
    )]
    BeingRead(String),
    /// The work was cancelled; starting it again begins afresh.
    #[error("cancelled; the live tables are as they were, and starting again begins afresh")]
    Cancelled,
}

/// Makes the tables and views that are missing, then folds the log into them until `stop` is cancelled.
/// Several servers may do so side by side: one of them leads, the others follow its checkpoints.
///
/// `pool` acts as the role `benchtrail_app`, which owns the schema `read`.
///
/// # Errors
/// The database cannot be reached or the migrations have not been applied.
pub async fn start(pool: PgPool, log: Log, stop: CancellationToken) -> Result<Handle, ProjectionError> {
    schema::ensure(&pool).await?;
    Ok(runner::start(pool, log, stop))
}
