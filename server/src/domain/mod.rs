//! What may happen, and what it makes of the state: pure `decide` and `evolve`, one file per kind of stream.
//!
//! No I/O and no clock: time is an argument. A decision takes the state that a stream's events made and answers with
//! the events to append, or with a [`Refusal`] that says what to do. `evolve` never refuses: what is in the log happened.

pub mod approval;
pub mod blob;
pub mod catalogue_entry;
pub mod engine_args_set;
pub mod job;
pub mod org;
pub mod project;
pub mod prompt_source;
pub mod quota;
pub mod refusal;
pub mod run;
pub mod saved_view;
pub mod scenario;
pub mod server;
pub mod tool_args_set;
pub mod workload;

use events::Event;
use events::catalog::DecodeError;
use events::envelope::Recorded;

pub use approval::Approvals;
pub use engine_args_set::EngineArgsSet;
pub use job::Job;
pub use org::Org;
pub use project::Project;
pub use quota::Quota;
pub use refusal::{Refusal, RefusalClass};
pub use run::Run;
pub use scenario::Scenario;
pub use server::Server;
pub use workload::Workload;

/// The state that a stream's events make.
pub trait Aggregate: Clone + Send + Sync + 'static {
    /// What the first event of a stream makes.
    ///
    /// # Errors
    /// The event cannot be read, or is not what streams of this kind begin with.
    fn begin(first: &Recorded) -> Result<Self, LoadError>;

    /// What a later event makes of it.
    ///
    /// # Errors
    /// The event cannot be read.
    fn follow(&mut self, recorded: &Recorded) -> Result<(), LoadError>;

    /// One event further, from `None` on.
    ///
    /// # Errors
    /// As [`Aggregate::begin`] and [`Aggregate::follow`].
    fn step(before: Option<Self>, recorded: &Recorded) -> Result<Self, LoadError> {
        let Some(mut state) = before else { return Self::begin(recorded) };
        state.follow(recorded)?;
        Ok(state)
    }

    /// Of all events of a stream; `None` where it has none.
    ///
    /// # Errors
    /// As [`Aggregate::begin`] and [`Aggregate::follow`].
    fn load(events: &[Recorded]) -> Result<Option<Self>, LoadError> {
        events.iter().try_fold(None, |before, recorded| Self::step(before, recorded).map(Some))
    }
}

/// Why a stream's state could not be made of its events.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// An event could not be read.
    #[error("position {position}: {source}")]
    Decode {
        /// Where the event stands.
        position: i64,
        /// Why.
        source: DecodeError,
    },
    /// The stream does not begin with the event that streams of its kind begin with.
    #[error("position {position}: a {kind} stream begins with {expected}, not with {found}")]
    Beginning {
        /// Where the event stands.
        position: i64,
        /// The kind of stream.
        kind: &'static str,
        /// The event it should begin with.
        expected: &'static str,
        /// The event it begins with.
        found: String,
    },
}

/// The event of a recorded one.
///
/// # Errors
/// [`LoadError::Decode`]: a newer version wrote it, or it does not fit its type.
pub fn decode(recorded: &Recorded) -> Result<Event, LoadError> {
    Event::decode(&recorded.event_type, recorded.schema_version, &recorded.payload)
        .map_err(|source| LoadError::Decode { position: recorded.position, source })
}

/// The error for a stream that begins with another event than its kind asks for.
fn wrong_beginning(recorded: &Recorded, kind: &'static str, expected: &'static str) -> LoadError {
    LoadError::Beginning { position: recorded.position, kind, expected, found: recorded.event_type.clone() }
}

#[cfg(test)]
pub(crate) mod testing;
