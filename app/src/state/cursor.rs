//! Where a tab stands in the log, and whether it lost something on the way.

use events::api::{LiveEvent, LiveHead};

/// What to do with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// New: take it.
    Take,
    /// Seen before: leave it.
    Seen,
    /// Something before it never came: read everything again.
    Lost,
}

/// A reader's place in the log, on one connection or over several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    /// The last matching event that came, or what the page read at the start; nothing before the first message.
    pub position: Option<i64>,
    /// The log's last position, as far as is known.
    pub head: i64,
    /// Every matching event up to here has come: once the next head message is here, everything up to the one before
    /// was looked at. Never behind `position`; where the next connection resumes.
    confirmed: i64,
    /// The head of the last head message of this connection.
    told: Option<i64>,
}

impl Cursor {
    /// A new connection begins.
    pub fn connect(&mut self) {
        self.told = None;
    }

    /// Where to resume; nothing before the first message.
    pub fn resume(&self) -> Option<i64> {
        self.position.map(|position| position.max(self.confirmed))
    }

    /// Whether this connection has said where the head is.
    pub fn greeted(&self) -> bool {
        self.told.is_some()
    }

    /// Whether everything up to the head is known to have come.
    pub fn at_head(&self) -> bool {
        self.told.is_some() && self.resume().is_some_and(|here| here >= self.head)
    }

    /// Judges an event by the arithmetic of positions and moves on.
    pub fn event(&mut self, event: &LiveEvent) -> Verdict {
        let position = event.event.position;
        self.head = self.head.max(position);
        let Some(here) = self.position else {
            self.position = Some(position);
            return Verdict::Take;
        };
        if position <= here {
            return Verdict::Seen;
        }
        self.position = Some(position);
        // The event before it is behind us, or it is one that never came.
        if event.previous > here.max(self.confirmed) { Verdict::Lost } else { Verdict::Take }
    }

    /// Judges a head message and moves on. The head itself says nothing of what has come: it may be ahead of the
    /// events that are still on their way.
    pub fn head(&mut self, head: &LiveHead) -> Verdict {
        self.head = self.head.max(head.position);
        let here = *self.position.get_or_insert(head.previous);
        let lost = head.previous > here.max(self.confirmed);
        if lost {
            self.position = Some(head.previous);
        }
        if let Some(told) = self.told.replace(head.position) {
            self.confirmed = self.confirmed.max(told);
        }
        if lost { Verdict::Lost } else { Verdict::Take }
    }

    /// Goes to a place that a fresh reading of everything covers.
    pub fn jump(&mut self, position: i64) {
        self.position = Some(position);
        self.head = self.head.max(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn event(position: i64, previous: i64) -> LiveEvent {
        serde_json::from_value(json!({
            "previous": previous, "position": position, "stream": "job/o/p/w/1/c1", "version": 1,
            "event_id": "e", "type": "job.queued", "schema_version": 1, "occurred_at": "2026-11-29T20:41:07.409Z",
            "recorded_at": "2026-11-29T20:41:07.409Z", "actor_kind": "system", "actor_id": "x", "leaf": "", "hash": "", "payload": {}
        }))
        .expect("an event")
    }

    fn at(position: i64) -> Cursor {
        let mut cursor = Cursor::default();
        cursor.head(&LiveHead { position, previous: position });
        cursor
    }

    #[test]
    fn events_in_order_are_taken() {
        let mut cursor = at(10);
        assert_eq!(cursor.event(&event(12, 10)), Verdict::Take);
        assert_eq!(cursor.event(&event(15, 12)), Verdict::Take);
        assert_eq!(cursor.position, Some(15));
    }

    #[test]
    fn a_repeated_event_is_left() {
        assert_eq!(at(12).event(&event(12, 7)), Verdict::Seen);
    }

    #[test]
    fn a_hole_is_seen_by_arithmetic() {
        assert_eq!(at(12).event(&event(18, 15)), Verdict::Lost);
        assert_eq!(at(12).head(&LiveHead { position: 40, previous: 33 }), Verdict::Lost);
    }

    #[test]
    fn a_head_does_not_hide_the_events_still_on_their_way() {
        let mut cursor = at(12);
        assert_eq!(cursor.head(&LiveHead { position: 40, previous: 12 }), Verdict::Take);
        assert_eq!(cursor.event(&event(38, 12)), Verdict::Take);
    }

    #[test]
    fn a_second_head_confirms_the_first() {
        let mut cursor = at(12);
        assert_eq!(cursor.resume(), Some(12));
        cursor.head(&LiveHead { position: 40, previous: 12 });
        cursor.head(&LiveHead { position: 55, previous: 12 });
        assert_eq!(cursor.resume(), Some(40));
    }

    #[test]
    fn a_new_connection_catches_up_before_it_is_at_the_head() {
        let mut cursor = at(12);
        cursor.connect();
        assert_eq!(cursor.head(&LiveHead { position: 33, previous: 12 }), Verdict::Take);
        assert!(!cursor.at_head());
        assert_eq!(cursor.event(&event(20, 12)), Verdict::Take);
        assert_eq!(cursor.event(&event(33, 20)), Verdict::Take);
        assert!(cursor.at_head());
    }

    proptest! {
        #[test]
        fn a_lost_event_never_goes_unseen(gaps in proptest::collection::vec(1i64..5, 2..40), lost in 0usize..39) {
            let lost = lost % (gaps.len() - 1);
            let mut positions = Vec::new();
            let mut here = 0;
            for gap in gaps { here += gap; positions.push(here); }
            let mut cursor = at(0);
            let mut noticed = false;
            for (place, position) in positions.iter().enumerate() {
                if place == lost { continue }
                let previous = if place == 0 { 0 } else { positions[place - 1] };
                noticed |= cursor.event(&event(*position, previous)) == Verdict::Lost;
            }
            prop_assert!(noticed);
        }
    }
}
