//! What can go wrong with the log.

use events::canonical::CanonicalError;

/// An error of the log. A refused append is not one: see [`super::AppendOutcome`].
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The database answered with an error or not at all.
    #[error("the event log's database: {0}")]
    Database(#[from] sqlx::Error),
    /// The migrations could not be applied.
    #[error("migrating the event log: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// The database could not be reached for long enough that the caller is told. Whether the events were appended
    /// is not known; sending them again under the same ids is always safe.
    #[error("the event log cannot be reached ({0}); send the same events again under the same ids")]
    Unavailable(String),
    /// The log is being closed.
    #[error("the event log is closed")]
    Closed,
    /// Something in the database does not have the form the log gave it.
    #[error("the event log is damaged at position {position}: {what}; run `benchtrail verify`")]
    Damaged {
        /// Where.
        position: i64,
        /// What does not fit.
        what: String,
    },
    /// No such position.
    #[error("there is no event at position {0}")]
    NoSuchPosition(i64),
    /// The key file, an archive or another file.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The key file does not hold a key.
    #[error(
        "{path} does not hold an Ed25519 key: {what}; restore it from a backup, or move it away to make a new one"
    )]
    Key {
        /// Which file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// A payload has no canonical JSON.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}
