//! Live: the same log, tailed, as server-sent events.
//!
//! One task per process reads the log as it grows and keeps the newest events in a window. Each client has a cursor and
//! pulls what lies between it and the head: from the window, or from the log where it is further behind. So there is
//! nothing to splice, no queue a slow client could fill, no hole and no double.

mod access;
mod join;
pub mod stream;
mod topics;
mod view;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use events::api::EventView;
use events::envelope::Recorded;
use events::keys::StreamKey;
use futures::StreamExt;
use sqlx::PgPool;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::log::{Log, LogError};

pub use access::Access;
pub use topics::{TopicError, Topics};
pub use view::event_view;

/// Events kept in memory for clients near the head.
const WINDOW: usize = 4096;

/// Events read at once.
const BATCH: i64 = 500;

/// How long the hub waits for a sign of new events before it looks by itself.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// One event, ready to be shown.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its stream, parsed.
    pub stream: StreamKey,
    /// As it stands in the log.
    pub recorded: Arc<Recorded>,
    /// As clients see it.
    pub view: Arc<EventView>,
}

impl Shown {
    fn new(recorded: Recorded) -> Self {
        let view = Arc::new(event_view(&recorded));
        Self { stream: recorded.stream.clone(), recorded: Arc::new(recorded), view }
    }
}

/// The live hub of this process: it tails the log once for all clients. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub {
    log: Log,
    access: Access,
    window: Arc<Mutex<VecDeque<Shown>>>,
    head: watch::Receiver<i64>,
}

impl Hub {
    /// Starts tailing. The log is the delivery; NATS, where there is one, only wakes the hub sooner when another
    /// server appended.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn start(
        log: Log,
        pool: PgPool,
        nats: Option<async_nats::Client>,
        stop: CancellationToken,
    ) -> Result<Self, LogError> {
        let head = log.head().await?.position;
        let access = Access::load(&log, &pool).await?;
        let (tell, heard) = watch::channel(head);
        let hub = Self { log, access, window: Arc::default(), head: heard };
        tokio::spawn(tail(hub.clone(), tell, nats, stop));
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
        Ok(recorded.into_iter().filter(|e| e.position <= head).map(Shown::new).collect())
    }

    fn window_after(&self, position: i64) -> Option<Vec<Shown>> {
        let window = self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let first = window.front()?.recorded.position;
        if first > position + 1 {
            return None;
        }
        // Positions have no gaps: the index is arithmetic.
        let skip = usize::try_from(position + 1 - first).ok()?;
        Some(window.iter().skip(skip).take(BATCH as usize).cloned().collect())
    }

    fn take_in(&self, events: Vec<Recorded>) {
        let mut window = self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for event in events {
            self.access.fold(&event);
            window.push_back(Shown::new(event));
        }
        while window.len() > WINDOW {
            window.pop_front();
        }
    }
}

/// Reads the log as it grows and tells the clients.
async fn tail(hub: Hub, tell: watch::Sender<i64>, nats: Option<async_nats::Client>, stop: CancellationToken) {
    let mut committed = hub.log.watch();
    let mut relayed = match nats {
        Some(nats) => nats.subscribe(events::subjects::EVENTS_WILDCARD).await.ok(),
        None => None,
    };
    let mut at = *tell.borrow();
    loop {
        match hub.log.read_all(at, BATCH).await {
            Ok(events) if !events.is_empty() => {
                at = events.last().map_or(at, |e| e.position);
                hub.take_in(events);
                tell.send_replace(at);
                continue;
            }
            Ok(_) => {}
            // The database is away: clients stay connected and catch up when it is back.
            Err(error) => tracing::warn!(%error, position = at, "the live stream cannot read the log"),
        }
        let wake = async {
            match relayed.as_mut() {
                Some(messages) => drop(messages.next().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            changed = committed.changed() => if changed.is_err() { return },
            () = wake => {}
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}
