//! Live: the same log, tailed, as server-sent events.
//!
//! One task per process follows the relay's stream, fills from the log what is missing there, and keeps the newest
//! events in a window ([`feed`]). Each client has a cursor and pulls what lies between it and the head: from the
//! window, or from the log where it is further behind. So no queue exists that a slow client could fill, and there is
//! no hole and no double.

mod access;
mod feed;
mod join;
pub mod stream;
#[cfg(test)]
mod testing;
mod topics;
mod view;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use events::api::EventView;
use events::envelope::Recorded;
use events::keys::StreamKey;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::log::{Log, LogError};
use crate::secrets::MessageSeal;

pub use access::Access;
pub use topics::{TopicError, Topics};
pub use view::{decode, event_view};

/// Events kept in memory for clients near the head.
const WINDOW: usize = 4096;

/// The most bytes that their payloads may take there, about.
const WINDOW_BYTES: usize = 64 << 20;

/// Events read at once.
const BATCH: i64 = 500;

/// One event, ready to be shown.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its stream, parsed.
    pub stream: StreamKey,
    /// The stream whose readers see it: its own, the job's that a blob belongs to, or an upload's sender.
    pub seen_with: StreamKey,
    /// As clients see it.
    pub view: Arc<EventView>,
    /// Bytes that its payload takes in memory, about.
    weight: usize,
}

impl Shown {
    fn new(stream: StreamKey, view: EventView) -> Self {
        let seen_with = access::seen_with(&stream, &view);
        let weight = weight(&view.payload);
        Self { stream, seen_with, view: Arc::new(view), weight }
    }

    fn of_log(recorded: &Recorded) -> Self {
        Self::new(recorded.stream.clone(), event_view(recorded))
    }

    /// Its place in the log.
    pub fn position(&self) -> i64 {
        self.view.position
    }
}

/// The newest events, without a gap.
#[derive(Debug, Default)]
struct Window {
    events: VecDeque<Shown>,
    weight: usize,
}

impl Window {
    /// Takes the next event, and lets go of the oldest ones beyond what is kept.
    fn push(&mut self, event: Shown) {
        self.weight += event.weight;
        self.events.push_back(event);
        while self.events.len() > WINDOW || (self.weight > WINDOW_BYTES && self.events.len() > 1) {
            self.weight -= self.events.pop_front().map_or(0, |event| event.weight);
        }
    }
}

/// About how many bytes a value takes in memory.
fn weight(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(weight).sum(),
            Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + 32 + weight(value)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

/// The live hub of this process: it follows the log once for all clients. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub {
    log: Log,
    access: Access,
    window: Arc<Mutex<Window>>,
    head: watch::Receiver<i64>,
}

impl Hub {
    /// Starts following the log: by the relay's stream where there is NATS, and by the log itself.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn start(
        log: Log,
        relayed: Option<(async_nats::Client, MessageSeal)>,
        stop: CancellationToken,
    ) -> Result<Self, LogError> {
        let head = log.head().await?;
        let access = Access::load(&log).await?;
        let (tell, heard) = watch::channel(head.position);
        let hub = Self { log, access, window: Arc::default(), head: heard };
        tokio::spawn(feed::follow(hub.clone(), head, tell, relayed, stop));
        Ok(hub)
    }

    /// Who may see what, kept up to date by the tail.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The last position clients can get.
    pub fn head(&self) -> i64 {
        *self.head.borrow()
    }

    /// Follows the head.
    pub fn watch(&self) -> watch::Receiver<i64> {
        self.head.clone()
    }

    /// The events after a position, oldest first, at most [`BATCH`]; empty at the head.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn after(&self, position: i64) -> Result<Vec<Shown>, LogError> {
        let head = self.head();
        if position >= head {
            return Ok(Vec::new());
        }
        if let Some(shown) = self.window_after(position) {
            return Ok(shown);
        }
        let recorded = self.log.read_all(position, BATCH).await?;
        Ok(recorded.iter().filter(|e| e.position <= head).map(Shown::of_log).collect())
    }

    fn window_after(&self, position: i64) -> Option<Vec<Shown>> {
        let window = self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let first = window.events.front()?.position();
        if first > position + 1 {
            return None;
        }
        // Positions have no gaps: the index is arithmetic.
        let skip = usize::try_from(position + 1 - first).ok()?;
        Some(window.events.iter().skip(skip).take(BATCH as usize).cloned().collect())
    }

    /// Puts the next events into the window and their projects' visibility into force.
    fn take_in(&self, events: Vec<Shown>) {
        let mut window = self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for event in events {
            self.access.fold(&event.stream, &event.view);
            window.push(event);
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn shown(position: i64, bytes: usize) -> Shown {
        let view = EventView {
            payload: Value::String("x".repeat(bytes)),
            ..testing::view(position, "project/acme/p1", "log.lines")
        };
        Shown::new(view.stream.parse().unwrap(), view)
    }

    #[test]
    fn the_window_is_bounded_by_events_and_by_bytes() {
        let mut window = Window::default();
        let last = WINDOW as i64 + 100;
        (1..=last).for_each(|position| window.push(shown(position, 10)));
        assert_eq!(window.events.len(), WINDOW);
        assert_eq!(window.events.back().unwrap().position(), last);

        (1..=200).for_each(|n| window.push(shown(last + n, 1 << 20)));
        let (oldest, newest) = (window.events.front().unwrap(), window.events.back().unwrap());
        assert_eq!(newest.position() - oldest.position() + 1, window.events.len() as i64, "without a gap");
        assert_eq!(window.events.len(), 63, "a mebibyte each, and a little");
        assert_eq!(window.weight, window.events.iter().map(|event| event.weight).sum::<usize>());

        window.push(shown(last + 201, WINDOW_BYTES + 1));
        assert_eq!(window.events.len(), 1, "the newest is kept whatever it takes");
    }
}
