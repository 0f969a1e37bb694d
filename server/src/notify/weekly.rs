//! The weekly summary: one message a person and week, on Mondays at 8 UTC.

use std::time::Duration;

use events::timestamp::Timestamp;
use time::{OffsetDateTime, Weekday};
use uuid::Uuid;

use super::collect::put;
use super::message::Activity;
use super::{Content, Kind, NotifyError};
use crate::auth::{Principal, accounts};
use crate::queries::activity;
use crate::state::AppState;

const WEEK: i64 = 7 * 86_400_000_000;
/// The hour of Monday, UTC, at which a week is summed up.
const HOUR: u8 = 8;
/// How long the read tables may take to have the week.
const PATIENCE: Duration = Duration::from_secs(5);

/// The last Monday, 8 UTC, that is not after `now`.
pub(super) fn last_end(now: Timestamp) -> Timestamp {
    let now = OffsetDateTime::from(now);
    let monday = now.date().prev_occurrence(Weekday::Monday);
    let today_or_before =
        if now.weekday() == Weekday::Monday && now.hour() >= HOUR { now.date() } else { monday };
    let end = today_or_before.with_hms(HOUR, 0, 0).expect("there is such an hour").assume_utc();
    Timestamp::try_from(end).expect("a time between two that are")
}

/// Puts the summaries of the week that just ended into the outbox, once, whoever is first.
///
/// # Errors
/// The database does not answer; nothing is moved then.
pub async fn weekly(state: &AppState, now: Timestamp) -> Result<(), NotifyError> {
    let end = last_end(now);
    let mut tx = state.pool.begin().await?;
    let until: Option<OffsetDateTime> =
        sqlx::query_scalar("select weekly_until from vault.notification_cursor for update")
            .fetch_optional(&mut *tx)
            .await?;
    if until.is_none_or(|until| until >= OffsetDateTime::from(end)) {
        return Ok(());
    }
    let head = state.log.head().await?.position;
    if state.projections.wait_for(head, PATIENCE).await.is_err() {
        // Later: a summary of half a week would be a wrong one.
        return Ok(());
    }
    let begin = end.plus_micros(-WEEK);
    let last_day = OffsetDateTime::from(end.plus_micros(-86_400_000_000)).date();
    let wanted: Vec<(String, Uuid, String)> = sqlx::query_as(
        "select p.org, p.user_id, m.role from vault.notification_preferences p
         join vault.memberships m on m.org = p.org and m.user_id = p.user_id
         join vault.users u on u.id = p.user_id and u.disabled_at is null
         where p.weekly_summary",
    )
    .fetch_all(&mut *tx)
    .await?;
    for (org, user, role) in wanted.into_iter().filter(|_| state.config.smtp.is_some()) {
        let Some(role) = accounts::role_of(&role) else { continue };
        let reader = Principal::User { id: user.to_string(), org: org.clone(), role };
        let activity: Activity =
            activity::of_user(&state.reader, &reader.visibility(), &user.to_string(), begin, end).await?;
        let content = Content::Week {
            from: OffsetDateTime::from(begin).date().to_string(),
            to: last_day.to_string(),
            activity,
        };
        put(&mut tx, &org, user, None, Kind::WeeklySummary, &format!("week ending {end}"), &content).await?;
    }
    sqlx::query("update vault.notification_cursor set weekly_until = $1")
        .bind(OffsetDateTime::from(end))
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_ends_on_monday_at_eight() {
        for (now, end) in [
            ("2026-11-30T07:59:59Z", "2026-11-23T08:00:00Z"),
            ("2026-11-30T08:00:00Z", "2026-11-30T08:00:00Z"),
            ("2026-12-06T23:59:59Z", "2026-11-30T08:00:00Z"),
            ("2027-01-01T00:00:00Z", "2026-12-28T08:00:00Z"),
        ] {
            let now: Timestamp = serde_json::from_value(now.into()).unwrap();
            let end: Timestamp = serde_json::from_value(end.into()).unwrap();
            assert_eq!(last_end(now), end, "{now}");
        }
    }
}
