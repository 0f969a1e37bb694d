//! Queries: the read tables in PostgREST's dialect, and the audit trail of streams and results.
//!
//! Every query takes a [`Visibility`]: there is no way to ask without saying for whom. The reader's database role and
//! its row policies are the second lock behind the condition that every query carries itself.

pub mod activity;
pub mod as_of;
mod counts;
pub mod encode;
mod export;
pub mod grammar;
pub mod history;
mod leaderboard;
mod leaderboard_past;
pub mod params;
mod parquet;
pub mod past;
pub mod report;
mod request;
pub mod sql;
pub mod view;

use http::StatusCode;

use crate::api::Failure;
use crate::auth::Visibility;

/// A query that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QueryError {
    /// A short stable word.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl QueryError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.code, error.message, error.hint)
    }
}

/// Sets who is reading, for the row policies, until the transaction ends.
///
/// # Errors
/// The database does not answer.
pub async fn act_for(conn: &mut sqlx::PgConnection, visibility: &Visibility) -> Result<(), sqlx::Error> {
    let admin = if visibility.admin { "admin" } else { "" };
    // Compiling a query takes longer than any of these runs, and over a million rows the planner would have it compiled.
    sqlx::query(
        "select set_config('app.org', $1, true), set_config('app.user', $2, true), set_config('app.role', $3, true),
                set_config('app.people', $4, true), set_config('jit', 'off', true)",
    )
    .bind(visibility.org.as_deref().unwrap_or_default())
    .bind(visibility.user.as_deref().unwrap_or_default())
    .bind(admin)
    .bind(visibility.people.as_deref().unwrap_or("{}"))
    .execute(conn)
        .await?;
    Ok(())
}
