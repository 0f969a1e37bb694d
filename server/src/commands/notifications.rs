//! `set_notification_preferences`, `create_webhook`, `remove_webhook`, `test_notification`: who is told what, and where.

use events::Event;
use events::access::{NotificationPreferencesSet, Role, WebhookCreated, WebhookRemoved};
use events::api::{CommandReply, CreateWebhook, RemoveWebhook, SetNotificationPreferences, TestNotification};
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::append::{Maker, append};
use super::{CommandError, RequestMeta, reply};
use crate::auth::sessions::access_stream;
use crate::auth::{AuthError, Caller, Principal};
use crate::domain::Refusal;
use crate::log::Expected;
use crate::notify::{self, Content, Kind};
use crate::outbound::OutboundError;
use crate::state::AppState;

/// More webhooks than this nobody has.
const MOST_WEBHOOKS: i64 = 10;

fn caller_of(principal: &Principal) -> Result<(Caller, Uuid), CommandError> {
    let caller = principal.require(Role::Viewer)?;
    let user = caller.user.parse().map_err(|_| AuthError::NotFound("account"))?;
    Ok((caller, user))
}

async fn note(
    state: &AppState,
    principal: &Principal,
    caller: &Caller,
    command: &str,
    event: Event,
    meta: &RequestMeta,
) -> Result<i64, CommandError> {
    let stream = access_stream(&caller.org, &caller.user);
    let write = Maker::of(principal, command, meta).write(stream, Expected::Any, &[event], 0)?;
    Ok(append(&state.log, vec![write]).await?)
}

/// Sets which e-mails the caller gets in this organisation; what is left out stays as it is.
///
/// # Errors
/// The database does not answer.
pub async fn set_notification_preferences(
    state: &AppState,
    principal: &Principal,
    args: SetNotificationPreferences,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let (caller, user) = caller_of(principal)?;
    let mut tx = state.pool.begin().await?;
    let (run_completed, run_failed, weekly_summary, quota): (String, String, bool, bool) = sqlx::query_as(
        "insert into vault.notification_preferences as p (org, user_id, run_completed, run_failed, weekly_summary, quota)
         values ($1, $2, coalesce($3, 'own'), coalesce($4, 'own'), coalesce($5, false), coalesce($6, true))
         on conflict (org, user_id) do update set run_completed = coalesce($3, p.run_completed),
            run_failed = coalesce($4, p.run_failed), weekly_summary = coalesce($5, p.weekly_summary),
            quota = coalesce($6, p.quota)
         returning run_completed, run_failed, weekly_summary, quota",
    )
    .bind(&caller.org)
    .bind(user)
    .bind(args.p_run_completed.map(|runs| runs.as_str()))
    .bind(args.p_run_failed.map(|runs| runs.as_str()))
    .bind(args.p_weekly_summary)
    .bind(args.p_quota)
    .fetch_one(&mut *tx)
    .await?;
    let event = NotificationPreferencesSet { run_completed, run_failed, weekly_summary, quota };
    let event = Event::NotificationPreferencesSet(event);
    let position = note(state, principal, &caller, "set_notification_preferences", event, &meta).await?;
    tx.commit().await?;
    Ok(reply(position, []))
}

/// Adds a receiver of the caller's own. Keys in the answer: `webhook_id`, `secret` (shown once).
///
/// # Errors
/// `bad_address`, `bad_kinds`, `too_many_webhooks`.
pub async fn create_webhook(
    state: &AppState,
    principal: &Principal,
    args: CreateWebhook,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let (caller, user) = caller_of(principal)?;
    let mut kinds: Vec<String> = args.p_kinds;
    kinds.sort_unstable();
    kinds.dedup();
    let known = [Kind::RunCompleted, Kind::RunFailed, Kind::Quota].map(Kind::as_str);
    if kinds.is_empty() || kinds.iter().any(|kind| !known.contains(&kind.as_str())) {
        return Err(Refusal::invalid("bad_kinds", "p_kinds names what a webhook is not sent, or nothing")
            .hint(format!("use one or more of {}", known.join(", ")))
            .into());
    }
    if args.p_url.len() > 2000 {
        return Err(Refusal::invalid("bad_address", "the address is longer than 2000 characters").into());
    }
    let target = state.config.outbound.resolve(args.p_url.trim()).await.map_err(|error| match error {
        OutboundError::Refused(why) => {
            Refusal::invalid("bad_address", format!("the address cannot be used: {why}"))
        }
        OutboundError::Unreachable(why) => {
            Refusal::invalid("bad_address", why).hint("check the address, then send it again")
        }
    })?;
    let id = Uuid::now_v7();
    let secret = notify::new_secret();
    let vault = state.keys.vault();
    let mut tx = state.pool.begin().await?;
    let have: i64 = sqlx::query_scalar(
        "select count(*) from vault.webhooks where org = $1 and user_id = $2 and disabled_at is null",
    )
    .bind(&caller.org)
    .bind(user)
    .fetch_one(&mut *tx)
    .await?;
    if have >= MOST_WEBHOOKS {
        return Err(Refusal::conflict("too_many_webhooks", format!("you have {have} webhooks already"))
            .hint("remove one with remove_webhook")
            .into());
    }
    sqlx::query(
        "insert into vault.webhooks (id, org, user_id, url_sealed, host, secret_sealed, kinds, runs, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(id)
    .bind(&caller.org)
    .bind(user)
    .bind(vault.seal(&notify::url_place(id), target.url.as_str()))
    .bind(target.url.host_str().unwrap_or_default())
    .bind(vault.seal(&notify::secret_place(id), secret.reveal()))
    .bind(&kinds)
    .bind(args.p_runs.as_str())
    .bind(OffsetDateTime::from(meta.now))
    .execute(&mut *tx)
    .await?;
    let event = WebhookCreated { webhook: id.to_string(), kinds, runs: args.p_runs.as_str().to_owned() };
    let position =
        note(state, principal, &caller, "create_webhook", Event::WebhookCreated(event), &meta).await?;
    tx.commit().await?;
    Ok(reply(position, [("webhook_id", json!(id)), ("secret", json!(secret.reveal()))]))
}

fn webhook_not_found() -> Refusal {
    Refusal::not_found("webhook_not_found", "you have no such webhook").hint("GET /api/v_webhooks lists them")
}

/// Removes a receiver, and what was still to be sent there. Keys in the answer: `webhook_id`.
///
/// # Errors
/// `webhook_not_found`.
pub async fn remove_webhook(
    state: &AppState,
    principal: &Principal,
    args: RemoveWebhook,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let (caller, user) = caller_of(principal)?;
    let id: Uuid = args.p_webhook_id.parse().map_err(|_| webhook_not_found())?;
    let mut tx = state.pool.begin().await?;
    let removed = sqlx::query("delete from vault.webhooks where id = $1 and org = $2 and user_id = $3")
        .bind(id)
        .bind(&caller.org)
        .bind(user)
        .execute(&mut *tx)
        .await?;
    if removed.rows_affected() == 0 {
        return Err(webhook_not_found().into());
    }
    let event =
        Event::WebhookRemoved(WebhookRemoved { webhook: id.to_string(), reason: "removed".to_owned() });
    let position = note(state, principal, &caller, "remove_webhook", event, &meta).await?;
    tx.commit().await?;
    Ok(reply(position, [("webhook_id", json!(id))]))
}

/// Sends the caller a message to see whether it arrives: by e-mail, or to one webhook. Keys in the answer: `channel`.
///
/// # Errors
/// `no_mail_server`, `webhook_not_found`.
pub async fn test_notification(
    state: &AppState,
    principal: &Principal,
    args: TestNotification,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let (caller, user) = caller_of(principal)?;
    let webhook = match &args.p_webhook_id {
        None if state.config.smtp.is_none() => {
            return Err(Refusal::unready("no_mail_server", "no mail server is configured")
                .hint("the operator sets BENCHTRAIL_SMTP_URL and --smtp-from")
                .into());
        }
        None => None,
        Some(id) => {
            let id: Uuid = id.parse().map_err(|_| webhook_not_found())?;
            let mine: bool = sqlx::query_scalar(
                "select exists (select from vault.webhooks
                  where id = $1 and org = $2 and user_id = $3 and disabled_at is null)",
            )
            .bind(id)
            .bind(&caller.org)
            .bind(user)
            .fetch_one(&state.pool)
            .await?;
            Some(id).filter(|_| mine).ok_or_else(webhook_not_found).map(Some)?
        }
    };
    let source = format!("test {}", meta.correlation_id);
    let mut conn = state.pool.acquire().await?;
    notify::put(&mut conn, &caller.org, user, webhook, Kind::Test, &source, &Content::Test)
        .await
        .map_err(|error| CommandError::unavailable(&error))?;
    let channel = webhook.map_or_else(|| json!("email"), |id| json!(id));
    Ok(reply(state.log.head().await?.position, [("channel", channel)]))
}
