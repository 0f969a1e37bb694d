//! From the outbox to the receiver.

use events::access::{NotificationAbandoned, NotificationSent, WebhookRemoved};
use events::canonical::CanonicalJson;
use events::envelope::{Actor, ActorKind, NewEvent};
use events::timestamp::Timestamp;
use events::{Event, StreamKey};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Content, Kind, NotifyError, mail, webhook};
use crate::auth::accounts;
use crate::auth::sessions::access_stream;
use crate::clock;
use crate::commands::event_id_of;
use crate::log::{AppendOutcome, AppendRequest, Expected};
use crate::secrets::Hidden;
use crate::state::AppState;

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is there.
    Sent,
    /// It may arrive another time.
    Later(String),
    /// It will not, however often it is tried.
    Never(String),
    /// The receiver wants no more of them.
    Gone,
}

#[derive(sqlx::FromRow)]
struct Message {
    id: Uuid,
    org: String,
    user_id: Uuid,
    webhook: Option<Uuid>,
    kind: String,
    source: String,
    content: Value,
    attempts: i32,
}

impl Message {
    fn channel(&self) -> String {
        self.webhook.map_or_else(|| "email".to_owned(), |id| format!("webhook {id}"))
    }

    /// The id of the event that says that it was sent: whoever asks the log for it knows.
    fn sent_id(&self) -> Uuid {
        event_id_of(&["notification sent", &self.id.to_string()])
    }
}

/// Tries one message that is due. True when there was one.
///
/// # Errors
/// The database or the log does not answer.
pub async fn deliver(state: &AppState) -> Result<bool, NotifyError> {
    let now = clock::now();
    let mut tx = state.pool.begin().await?;
    // Locked until it is done with: another control plane takes the next one.
    let due: Option<Message> = sqlx::query_as(
        "select id, org, user_id, webhook, kind, source, content, attempts from vault.outbox
         where sent_at is null and given_up_at is null and due_at <= $1
         order by due_at, id limit 1 for update skip locked",
    )
    .bind(OffsetDateTime::from(now))
    .fetch_optional(&mut *tx)
    .await?;
    let Some(message) = due else { return Ok(false) };
    let sent_before = state.log.event_by_id(message.sent_id()).await?.is_some();
    let outcome = if sent_before { Outcome::Sent } else { send(state, &message, now).await? };
    let attempts = message.attempts + 1;
    let next = state.config.notify.next(attempts.unsigned_abs(), now);
    let (sent, given_up, due, error) = match outcome {
        Outcome::Sent => {
            let event = Event::NotificationSent(NotificationSent {
                notification: message.id.to_string(),
                kind: message.kind.clone(),
                channel: message.channel(),
                source: message.source.clone(),
                attempts: attempts.unsigned_abs(),
            });
            note(state, &message, message.sent_id(), event, now).await?;
            (Some(now), None, now, None)
        }
        Outcome::Later(why) => match next {
            Some(next) => {
                tracing::warn!(channel = %message.channel(), attempts, %why, "a notification was not sent; it is tried again");
                (None, None, next, Some(why))
            }
            None => (None, Some(now), now, Some(why)),
        },
        Outcome::Never(why) => (None, Some(now), now, Some(why)),
        Outcome::Gone => {
            disable(state, &mut tx, &message, now).await?;
            (None, Some(now), now, Some("the receiver wants no more messages (410 Gone)".to_owned()))
        }
    };
    if given_up.is_some() {
        let reason = error.clone().unwrap_or_default();
        tracing::warn!(channel = %message.channel(), attempts, why = %reason, "a notification is given up");
        let event = Event::NotificationAbandoned(NotificationAbandoned {
            notification: message.id.to_string(),
            kind: message.kind.clone(),
            channel: message.channel(),
            source: message.source.clone(),
            attempts: attempts.unsigned_abs(),
            reason,
        });
        let id = event_id_of(&["notification abandoned", &message.id.to_string()]);
        note(state, &message, id, event, now).await?;
    }
    sqlx::query(
        "update vault.outbox set attempts = $2, sent_at = $3, given_up_at = $4, due_at = $5, last_error = $6 where id = $1",
    )
    .bind(message.id)
    .bind(attempts)
    .bind(sent.map(OffsetDateTime::from))
    .bind(given_up.map(OffsetDateTime::from))
    .bind(OffsetDateTime::from(due))
    .bind(error)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(true)
}

async fn send(state: &AppState, message: &Message, now: Timestamp) -> Result<Outcome, NotifyError> {
    let odd = |what: &str| Ok(Outcome::Never(what.to_owned()));
    let Some(kind) = Kind::of(&message.kind) else { return odd("its kind is unknown to this version") };
    let Ok(content) = serde_json::from_value::<Content>(message.content.clone()) else {
        return odd("its content is unknown to this version");
    };
    let base = &state.config.public_url;
    let vault = state.keys.vault();
    let Some(webhook) = message.webhook else {
        let Some(smtp) = &state.config.smtp else {
            return Ok(Outcome::Later("no mail server is configured".to_owned()));
        };
        let Ok([to, _]) = accounts::known(&state.pool, vault, message.user_id).await else {
            return odd("the account is gone");
        };
        return Ok(mail::send(smtp, &to, message.id, &content.words(kind, base)).await);
    };
    let row: Option<(Vec<u8>, Vec<u8>, bool)> = sqlx::query_as(
        "select url_sealed, secret_sealed, disabled_at is null from vault.webhooks where id = $1",
    )
    .bind(webhook)
    .fetch_optional(&state.pool)
    .await?;
    let Some((url, secret, true)) = row else { return odd("the webhook was removed") };
    let url = vault.open(&url_place(webhook), &url)?;
    let secret = Hidden::new(vault.open(&secret_place(webhook), &secret)?);
    let body = content.body(kind, base, now);
    Ok(webhook::send(&state.config.outbound, &url, &secret, message.id, &body, now).await)
}

/// Where a webhook's address is sealed to.
pub(crate) fn url_place(webhook: Uuid) -> String {
    format!("webhooks.url/{webhook}")
}

/// Where a webhook's secret is sealed to.
pub(crate) fn secret_place(webhook: Uuid) -> String {
    format!("webhooks.secret/{webhook}")
}

async fn disable(
    state: &AppState,
    conn: &mut sqlx::PgConnection,
    message: &Message,
    now: Timestamp,
) -> Result<(), NotifyError> {
    let Some(webhook) = message.webhook else { return Ok(()) };
    sqlx::query("update vault.webhooks set disabled_at = $2 where id = $1 and disabled_at is null")
        .bind(webhook)
        .bind(OffsetDateTime::from(now))
        .execute(conn)
        .await?;
    let event =
        Event::WebhookRemoved(WebhookRemoved { webhook: webhook.to_string(), reason: "gone".to_owned() });
    note(state, message, event_id_of(&["webhook gone", &webhook.to_string()]), event, now).await
}

/// Appends an event under an id that always is the same: a second time changes nothing.
async fn note(
    state: &AppState,
    message: &Message,
    id: Uuid,
    event: Event,
    now: Timestamp,
) -> Result<(), NotifyError> {
    let odd = |error: &dyn std::fmt::Display| NotifyError::Odd(error.to_string());
    let stream: StreamKey = access_stream(&message.org, message.user_id);
    let payload = event.payload().map_err(|error| odd(&error))?;
    let new = NewEvent {
        event_id: id,
        event_type: event.event_type().to_owned(),
        schema_version: event.schema_version(),
        org: message.org.clone(),
        actor: Actor { kind: ActorKind::System, id: "control-plane".to_owned() },
        causation_id: message.source.parse().ok(),
        correlation_id: None,
        occurred_at: now,
        payload: CanonicalJson::of(&payload).map_err(|error| odd(&error))?,
    };
    let outcome = state.log.append(AppendRequest::one(stream, Expected::Any, vec![new])).await?;
    // Refused where it was appended before, at another moment, by a process that died.
    if let AppendOutcome::Rejected { reason } = outcome
        && state.log.event_by_id(id).await?.is_none()
    {
        return Err(NotifyError::Odd(format!("the log refused the event: {reason}")));
    }
    Ok(())
}
