//! Notifications by e-mail and webhook: collected from the log into an outbox, sent from there.
//!
//! [`collect`] follows the log with a cursor of its own and puts one row into the outbox for each message, in the
//! transaction that moves the cursor: whatever dies when, a message is there once. [`deliver`] takes the rows that are due,
//! each locked while it is sent, so that of several control planes one sends it. That it was sent is an event whose id
//! follows from the message's; before a message is sent again, the log is asked for it. What is left is the moment between a
//! mail server's "accepted" and that event: a control plane killed there sends the message once more under the same id.

mod collect;
mod deliver;
mod mail;
mod message;
mod webhook;
mod weekly;

use std::time::Duration;

use events::timestamp::Timestamp;

pub use collect::collect;
pub(crate) use collect::put;
pub use deliver::deliver;
pub(crate) use deliver::{secret_place, url_place};
pub use mail::check as check_smtp;
pub use message::{Activity, Content, Kind};
pub use webhook::{new_secret, sign};
pub use weekly::weekly;

use crate::clock;
use crate::log::LogError;
use crate::secrets::{Hidden, SecretsError};
use crate::state::AppState;

/// How e-mail leaves.
#[derive(Debug, Clone)]
pub struct SmtpConfig {
    /// The server, with name and password: `smtps://user:password@host`, or `smtp://host:587?tls=required`.
    pub url: Hidden,
    /// Whom it is from, for example `Benchtrail <benchtrail@example.org>`.
    pub from: String,
}

/// How often is looked, and how often tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between two looks when nothing happens.
    pub look: Duration,
    /// Before the second try; doubled before each further one.
    pub first_retry: Duration,
    /// The longest wait between two tries.
    pub longest_retry: Duration,
    /// Tries in all.
    pub tries: u32,
}

impl Default for Pace {
    /// 14 tries over about a day and a half.
    fn default() -> Self {
        Self {
            look: Duration::from_secs(5),
            first_retry: Duration::from_secs(30),
            longest_retry: Duration::from_secs(6 * 3600),
            tries: 14,
        }
    }
}

impl Pace {
    /// When the next try is due after `attempts` that failed; nothing when those were enough.
    pub fn next(&self, attempts: u32, now: Timestamp) -> Option<Timestamp> {
        if attempts >= self.tries {
            return None;
        }
        let wait =
            self.first_retry.saturating_mul(1 << attempts.saturating_sub(1).min(20)).min(self.longest_retry);
        Some(now.plus_micros(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX / 2)))
    }
}

/// What can go wrong beside a message that cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// The database does not answer.
    #[error("the outbox's database: {0}")]
    Database(#[from] sqlx::Error),
    /// The log does not answer.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A sealed value does not open.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// Something that should be there is not.
    #[error("{0}")]
    Odd(String),
}

/// Collects and sends until the control plane stops.
pub async fn run(state: AppState) {
    let mut head = state.log.watch();
    loop {
        if let Err(error) = look(&state).await {
            tracing::warn!(%error, "notifications stand still; trying again");
        }
        tokio::select! {
            () = state.stop.cancelled() => return,
            _ = head.changed() => {}
            () = tokio::time::sleep(state.config.notify.look) => {}
        }
    }
}

async fn look(state: &AppState) -> Result<(), NotifyError> {
    while collect(state).await? {}
    weekly(state, clock::now()).await?;
    while !state.stop.is_cancelled() && deliver(state).await? {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_come_ever_more_seldom_and_end() {
        let pace = Pace::default();
        let now = Timestamp::from_micros(0).unwrap();
        let waits: Vec<i64> = (1..)
            .map_while(|attempts| Some(pace.next(attempts, now)?.micros_since(now) / 1_000_000))
            .collect();
        assert_eq!(&waits[..4], [30, 60, 120, 240]);
        assert_eq!((waits.len(), waits.last()), (13, Some(&21_600)));
    }
}
