//! Reading the log without the types of events that are nearly all of it.

use events::envelope::Recorded;
use sqlx::AssertSqlSafe;

use super::{MOST_EVENTS, Reader};
use crate::log::LogError;
use crate::log::raw::{COLUMNS, RawEvent};

/// A stretch of the log, read without some types of events.
#[derive(Debug)]
pub struct Stretch {
    /// The events of the other types, in order.
    pub events: Vec<Recorded>,
    /// The last position that was looked at.
    pub last: i64,
    /// Where the log ended when it was read.
    pub head: i64,
}

impl Reader {
    /// The events of up to `span` positions (10,000 at most) after `after` whose types are not among `without`.
    pub async fn read_without(&self, after: i64, span: i64, without: &[&str]) -> Result<Stretch, LogError> {
        let mut tx = self.pool.begin().await?;
        let head: i64 = sqlx::query_scalar("select position from log_head").fetch_one(&mut *tx).await?;
        let last = after.saturating_add(span.clamp(0, MOST_EVENTS)).min(head);
        if last <= after {
            return Ok(Stretch { events: Vec::new(), last: after, head });
        }
        let held: i64 =
            sqlx::query_scalar("select count(*) from events where position > $1 and position <= $2")
                .bind(after)
                .bind(last)
                .fetch_one(&mut *tx)
                .await?;
        if held < last - after {
            // A part of it is archived. That what is missing is there is the whole read's to see.
            tx.rollback().await?;
            let mut events = self.read_all(after, last - after).await?;
            let last = events.last().map_or(last, |event| event.position);
            events.retain(|event| !without.contains(&event.event_type.as_str()));
            return Ok(Stretch { events, last, head });
        }
        let sql = format!(
            "select {COLUMNS} from events where position > $1 and position <= $2 and event_type <> all($3) \
             order by position"
        );
        let rows =
            sqlx::query(AssertSqlSafe(sql)).bind(after).bind(last).bind(without).fetch_all(&mut *tx).await?;
        tx.commit().await?;
        let events = self.recorded(rows.iter().map(RawEvent::of_row)).await?;
        Ok(Stretch { events, last, head })
    }
}
