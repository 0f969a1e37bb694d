//! What a person did in a stretch of time, for the weekly summary.

use events::timestamp::Timestamp;
use sqlx::PgPool;
use time::OffsetDateTime;

use super::act_for;
use crate::auth::Visibility;
use crate::notify::Activity;

/// The runs that a person started or that ended between two moments, as the reader may see them.
///
/// # Errors
/// The database does not answer.
pub async fn of_user(
    reader: &PgPool,
    visibility: &Visibility,
    user: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Activity, sqlx::Error> {
    let mut tx = reader.begin().await?;
    act_for(&mut tx, visibility).await?;
    let (started, completed, failed, cancelled, jobs_completed, jobs_failed): (i64, i64, i64, i64, i64, i64) =
        sqlx::query_as(
            "with mine as (
                select status, created_at >= $2 and created_at < $3 as started,
                       finished_at >= $2 and finished_at < $3 as ended, jobs_completed, jobs_failed
                  from read.v_runs where created_by = $1)
             select count(*) filter (where started), count(*) filter (where ended and status = 'completed'),
                    count(*) filter (where ended and status = 'failed'),
                    count(*) filter (where ended and status = 'cancelled'),
                    coalesce(sum(jobs_completed) filter (where ended), 0)::bigint,
                    coalesce(sum(jobs_failed) filter (where ended), 0)::bigint
               from mine",
        )
        .bind(user)
        .bind(OffsetDateTime::from(from))
        .bind(OffsetDateTime::from(to))
        .fetch_one(&mut *tx)
        .await?;
    Ok(Activity {
        runs_started: started,
        runs_completed: completed,
        runs_failed: failed,
        runs_cancelled: cancelled,
        jobs_completed,
        jobs_failed,
    })
}
