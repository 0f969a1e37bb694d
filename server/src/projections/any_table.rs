//! Any table, as the runner and the rebuild see it, and what can go wrong with one.

use futures::future::BoxFuture;
use sqlx::PgConnection;

use super::text::{Column, TextError};

/// A table of one generation.
pub fn relation(table: &str, generation: i32) -> String {
    format!("read.{table}_v{generation}")
}

/// Rows that could not be loaded or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// A row's type does not fit its columns.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A stored row does not have the shape this version reads.
    #[error("a row of {table} does not have the shape this version reads: {what}; run `benchtrail rebuild`")]
    Shape {
        /// The table.
        table: &'static str,
        /// What does not fit.
        what: String,
    },
}

impl StoreError {
    pub(super) fn shape(table: &'static str, error: &serde_json::Error) -> Self {
        Self::Shape { table, what: error.to_string() }
    }

    /// Whether the database refused the data itself, so that trying again cannot help.
    pub fn is_refusal(&self) -> bool {
        match self {
            // Class 22: data exception; class 23: integrity constraint; 54: a limit of the program.
            Self::Database(sqlx::Error::Database(error)) => error
                .code()
                .is_some_and(|code| ["22", "23", "54"].iter().any(|class| code.starts_with(class))),
            Self::Database(_) => false,
            Self::Text(_) | Self::Shape { .. } => true,
        }
    }
}

/// What the runner does with any table.
pub trait AnyTable: Send + Sync {
    /// The table's name, without its generation.
    fn name(&self) -> &'static str;
    /// The columns.
    fn columns(&self) -> &[Column];
    /// The primary key's columns.
    fn primary_key(&self) -> Vec<&'static str>;
    /// Columns of further indexes.
    fn indexes(&self) -> &'static [&'static str];
    /// Whether old versions are kept.
    fn versioned(&self) -> bool;
    /// Loads the rows that are wanted; false when there was nothing to load.
    fn load<'a>(
        &'a mut self,
        conn: &'a mut PgConnection,
        generation: i32,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
    /// Writes what changed.
    fn flush<'a>(
        &'a mut self,
        conn: &'a mut PgConnection,
        generation: i32,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
    /// Writes what changed by COPY into a table that holds none of these rows yet.
    fn copy<'a>(
        &'a mut self,
        conn: &'a mut PgConnection,
        generation: i32,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
    /// The rows held as JSON objects, a field a column. Of a table that keeps old versions, the last ones.
    fn rows(&self) -> Result<Vec<serde_json::Value>, StoreError>;
    /// Forgets every row held.
    fn clear(&mut self);
    /// From here on the rows held are all there are (`true`), or are loaded as they are wanted.
    fn set_complete(&mut self, complete: bool);
    /// Rows held in memory.
    fn held(&self) -> usize;
}
