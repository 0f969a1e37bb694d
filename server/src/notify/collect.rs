//! From the log into the outbox.

use events::Event;
use events::access::Role;
use events::envelope::Recorded;
use events::keys::{RunKey, StreamKey};
use events::run::RunOutcome;
use sqlx::{PgConnection, Postgres, Transaction};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Content, Kind, NotifyError};
use crate::auth::{Principal, accounts};
use crate::clock;
use crate::commands::event_id_of;
use crate::domain::decode;
use crate::state::AppState;

/// Positions looked through at once.
const STRETCH: i64 = 50_000;

/// Puts the messages of the next stretch of the log into the outbox. True when there is more.
///
/// # Errors
/// The database or the log does not answer; nothing is moved then.
pub async fn collect(state: &AppState) -> Result<bool, NotifyError> {
    let head = state.log.head().await?.position;
    let mut tx = state.pool.begin().await?;
    let from = cursor(state, &mut tx, head).await?;
    if from >= head {
        return Ok(false);
    }
    let to = head.min(from + STRETCH);
    // By the type alone: what is between is telemetry, mostly, and need not be read.
    let found: Vec<i64> = sqlx::query_scalar(
        "select position from events where position > $1 and position <= $2 and event_type in ('run.finished', 'quota.level_changed')
         order by position",
    )
    .bind(from)
    .bind(to)
    .fetch_all(&mut *tx)
    .await?;
    for position in found {
        for recorded in state.log.read_all(position - 1, 1).await? {
            match recorded.event_type.as_str() {
                "quota.level_changed" => quota_reached(state, &mut tx, &recorded).await?,
                _ => run_finished(state, &mut tx, &recorded).await?,
            }
        }
    }
    sqlx::query("update vault.notification_cursor set position = $1").bind(to).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(to < head)
}

/// The cursor, locked. A new one begins at the head and with the present week: nobody is told of what is long past.
async fn cursor(
    state: &AppState,
    tx: &mut Transaction<'static, Postgres>,
    head: i64,
) -> Result<i64, NotifyError> {
    let begin = super::weekly::last_end(clock::now());
    sqlx::query(
        "insert into vault.notification_cursor (position, weekly_until) values ($1, $2) on conflict do nothing",
    )
    .bind(head)
    .bind(OffsetDateTime::from(begin))
    .execute(&state.pool)
    .await?;
    Ok(sqlx::query_scalar("select position from vault.notification_cursor for update")
        .fetch_one(&mut **tx)
        .await?)
}

/// What a member wants to hear of runs: of which ones, by e-mail.
#[derive(sqlx::FromRow)]
struct Wish {
    user_id: Uuid,
    role: String,
    run_completed: String,
    run_failed: String,
}

async fn run_finished(
    state: &AppState,
    conn: &mut PgConnection,
    recorded: &Recorded,
) -> Result<(), NotifyError> {
    let odd =
        |error: &dyn std::fmt::Display| NotifyError::Odd(format!("position {}: {error}", recorded.position));
    let Ok(Event::RunFinished(finished)) = decode(recorded) else { return Ok(()) };
    let kind = match finished.outcome {
        RunOutcome::Completed => Kind::RunCompleted,
        RunOutcome::Failed => Kind::RunFailed,
        // Somebody stopped it, and knows.
        RunOutcome::Cancelled => return Ok(()),
    };
    let run = RunKey::from_stream(&recorded.stream).map_err(|error| odd(&error))?;
    let created = state.log.read_stream(&recorded.stream, 1, 1).await?;
    let starter = created.first().map(|created| created.actor.id.clone()).unwrap_or_default();
    let content = Content::Run { run: run.clone(), finished, position: recorded.position };
    let source = recorded.event_id.to_string();
    let concerns = |wish: &str, user: Uuid, role: &str| match wish {
        "own" => user.to_string() == starter,
        "all" => user.to_string() == starter || sees(state, &run.org, user, role, &recorded.stream),
        _ => false,
    };
    let wishes: Vec<Wish> = sqlx::query_as(
        "select m.user_id, m.role, coalesce(p.run_completed, 'own') as run_completed,
                coalesce(p.run_failed, 'own') as run_failed
         from vault.memberships m
         join vault.users u on u.id = m.user_id and u.disabled_at is null
         left join vault.notification_preferences p on p.org = m.org and p.user_id = m.user_id
         where m.org = $1",
    )
    .bind(&run.org)
    .fetch_all(&mut *conn)
    .await?;
    for wish in wishes.iter().filter(|_| state.config.smtp.is_some()) {
        let wanted = if kind == Kind::RunCompleted { &wish.run_completed } else { &wish.run_failed };
        if concerns(wanted, wish.user_id, &wish.role) {
            put(conn, &run.org, wish.user_id, None, kind, &source, &content).await?;
        }
    }
    let webhooks: Vec<(Uuid, Uuid, String, String)> = sqlx::query_as(
        "select w.id, w.user_id, w.runs, m.role from vault.webhooks w
         join vault.memberships m on m.org = w.org and m.user_id = w.user_id
         where w.org = $1 and $2 = any(w.kinds) and w.disabled_at is null",
    )
    .bind(&run.org)
    .bind(kind.as_str())
    .fetch_all(&mut *conn)
    .await?;
    for (webhook, user, runs, role) in webhooks {
        if concerns(&runs, user, &role) {
            put(conn, &run.org, user, Some(webhook), kind, &source, &content).await?;
        }
    }
    Ok(())
}

/// Tells the administrators who want it, once for each level that is reached. That one is left is no news.
async fn quota_reached(
    state: &AppState,
    conn: &mut PgConnection,
    recorded: &Recorded,
) -> Result<(), NotifyError> {
    let Ok(Event::QuotaLevelChanged(changed)) = decode(recorded) else { return Ok(()) };
    if changed.percent <= changed.previous_percent {
        return Ok(());
    }
    let org = recorded.stream.org().to_owned();
    let source = recorded.event_id.to_string();
    let content = Content::Quota { org: org.clone(), changed, position: recorded.position };
    let by_mail: Vec<Uuid> = sqlx::query_scalar(
        "select m.user_id from vault.memberships m
         join vault.users u on u.id = m.user_id and u.disabled_at is null
         left join vault.notification_preferences p on p.org = m.org and p.user_id = m.user_id
         where m.org = $1 and m.role = 'admin' and coalesce(p.quota, true)",
    )
    .bind(&org)
    .fetch_all(&mut *conn)
    .await?;
    for user in by_mail.into_iter().filter(|_| state.config.smtp.is_some()) {
        put(conn, &org, user, None, Kind::Quota, &source, &content).await?;
    }
    let webhooks: Vec<(Uuid, Uuid)> = sqlx::query_as(
        "select w.id, w.user_id from vault.webhooks w
         join vault.memberships m on m.org = w.org and m.user_id = w.user_id and m.role = 'admin'
         where w.org = $1 and $2 = any(w.kinds) and w.disabled_at is null",
    )
    .bind(&org)
    .bind(Kind::Quota.as_str())
    .fetch_all(&mut *conn)
    .await?;
    for (webhook, user) in webhooks {
        put(conn, &org, user, Some(webhook), Kind::Quota, &source, &content).await?;
    }
    Ok(())
}

/// Whether a member may see a stream, judged now: whoever may not see a run is not told of it.
fn sees(state: &AppState, org: &str, user: Uuid, role: &str, stream: &StreamKey) -> bool {
    let role = accounts::role_of(role).unwrap_or(Role::Viewer);
    let reader = Principal::User { id: user.to_string(), org: org.to_owned(), role };
    state.hub.access().sees_stream(&reader.visibility(), stream)
}

/// Puts a message into the outbox, once: its id follows from what it is about, for whom, and on which channel.
pub(crate) async fn put(
    conn: &mut PgConnection,
    org: &str,
    user: Uuid,
    webhook: Option<Uuid>,
    kind: Kind,
    source: &str,
    content: &Content,
) -> Result<(), NotifyError> {
    let channel = webhook.map_or_else(|| "email".to_owned(), |id| id.to_string());
    let id = event_id_of(&["notification", source, org, &user.to_string(), &channel, kind.as_str()]);
    let content = serde_json::to_value(content).map_err(|error| NotifyError::Odd(error.to_string()))?;
    sqlx::query(
        "insert into vault.outbox (id, org, user_id, webhook, kind, source, content, created_at, due_at)
         values ($1, $2, $3, $4, $5, $6, $7, now(), now()) on conflict (id) do nothing",
    )
    .bind(id)
    .bind(org)
    .bind(user)
    .bind(webhook)
    .bind(kind.as_str())
    .bind(source)
    .bind(content)
    .execute(conn)
    .await?;
    Ok(())
}
