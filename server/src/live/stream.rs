//! One client's stream: from its cursor to the head, and on.

use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event as Sse;
use events::api::{EventView, LiveEvent, LiveHead};
use futures::Stream;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::access::seen_with;
use super::join::join;
use super::{Hub, Topics};
use crate::auth::Visibility;

/// How often the head is told.
const HEAD_EVERY: Duration = Duration::from_secs(15);

/// How long one connection may last: afterwards the client comes again and is authenticated anew.
const LONGEST: Duration = Duration::from_secs(3600);

/// A client more positions behind than this is asked to fetch the state afresh.
pub const TOO_FAR: i64 = 200_000;

/// Milliseconds a browser waits before it reconnects.
const RETRY_MS: u64 = 1000;

/// How often it is looked whether a reader may still read.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Says whether the reader may go on.
pub type StillAllowed = Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// What a client follows and how far it is.
pub struct Client {
    /// Where events come from.
    pub hub: Hub,
    /// Who reads.
    pub reader: Visibility,
    /// Whether the reader may go on; absent for readers without a session or token, who cannot lose any.
    pub still_allowed: Option<StillAllowed>,
    /// What is wanted.
    pub topics: Topics,
    /// The last position the client has.
    pub after: i64,
    /// How many positions it may be behind; further behind it is asked to fetch the state afresh. [`TOO_FAR`] but in tests.
    pub too_far: i64,
    /// Ends every stream.
    pub stop: CancellationToken,
}

/// The messages of one client. Ends when the control plane stops, or after an hour. A client that is too far behind,
/// when it comes or because it reads too slowly, gets `resync` and goes on from the head.
pub fn stream(client: Client) -> impl Stream<Item = Result<Sse, std::convert::Infallible>> {
    let until = tokio::time::Instant::now() + LONGEST;
    let cursor = Cursor {
        previous: client.after,
        position: client.after,
        client,
        until,
        looked: tokio::time::Instant::now(),
        pending: Vec::new(),
        state: State::Begin,
    };
    futures::stream::unfold(cursor, |mut cursor| async move {
        let message = cursor.next().await?;
        Some((Ok(message), cursor))
    })
}

#[derive(Debug, PartialEq)]
enum State {
    Begin,
    Following,
    Resynced,
}

struct Cursor {
    client: Client,
    /// Everything up to here was looked at.
    position: i64,
    /// The last position that matched and was sent; at the start what the client says it has.
    previous: i64,
    /// Matched and not sent yet, the next one last.
    pending: Vec<Arc<EventView>>,
    until: tokio::time::Instant,
    /// When it was last looked whether the reader may go on.
    looked: tokio::time::Instant,
    state: State,
}

impl Cursor {
    async fn next(&mut self) -> Option<Sse> {
        match self.state {
            State::Begin => {
                self.state = State::Following;
                if let Some(resync) = self.resync() {
                    return Some(resync);
                }
                // The first bytes at once, so that no proxy holds the stream back.
                return Some(self.head().retry(Duration::from_millis(RETRY_MS)));
            }
            State::Resynced => {
                self.state = State::Following;
                return Some(self.head());
            }
            State::Following => {}
        }
        let mut head = self.client.hub.watch();
        let tell_head = tokio::time::Instant::now() + HEAD_EVERY;
        loop {
            if let Some(allowed) = &self.client.still_allowed
                && self.looked.elapsed() >= LOOK_AGAIN
            {
                if !allowed().await {
                    return None;
                }
                self.looked = tokio::time::Instant::now();
            }
            if let Some(resync) = self.resync() {
                return Some(resync);
            }
            // Judged once more: a slow reader may come to it long after it was read, when the project is private.
            while let Some(view) = self.pending.pop() {
                if self.still_sees(&view) {
                    return Some(self.event(&view));
                }
            }
            match self.client.hub.after(self.position).await {
                Ok(shown) if !shown.is_empty() => {
                    self.position = shown.last().map_or(self.position, super::Shown::position);
                    let Client { hub, reader, topics, .. } = &self.client;
                    let wanted = shown
                        .into_iter()
                        .filter(|s| topics.want(&s.stream) && hub.access().sees_stream(reader, &s.seen_with))
                        .map(|s| s.view)
                        .collect();
                    self.pending = join(wanted);
                    self.pending.reverse();
                    continue;
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "a live client waits for the log"),
            }
            tokio::select! {
                () = self.client.stop.cancelled() => return None,
                changed = head.changed() => if changed.is_err() { return None },
                () = tokio::time::sleep_until(self.looked + LOOK_AGAIN), if self.client.still_allowed.is_some() => {}
                () = tokio::time::sleep_until(tell_head) => return Some(self.head()),
                () = tokio::time::sleep_until(self.until) => return None,
            }
        }
    }

    fn event(&mut self, view: &EventView) -> Sse {
        let live = LiveEvent { previous: self.previous, event: view.clone() };
        self.previous = view.position;
        json("event", &live).id(view.position.to_string())
    }

    /// How far this client is. Not the log's own head: what lies between them is still to come, and a client that took
    /// the head for its place would pass it over.
    fn head(&self) -> Sse {
        json("head", &LiveHead { position: self.position, previous: self.previous })
    }

    /// Whether the reader may see an event now that it is sent.
    fn still_sees(&self, view: &EventView) -> bool {
        let Ok(stream) = view.stream.parse() else { return false };
        let Client { hub, reader, .. } = &self.client;
        hub.access().sees_stream(reader, &seen_with(&stream, view))
    }

    /// Where the client is too far behind: it fetches the state afresh, and goes on from the head.
    fn resync(&mut self) -> Option<Sse> {
        let head = self.client.hub.head();
        if head - self.position <= self.client.too_far {
            return None;
        }
        self.state = State::Resynced;
        (self.position, self.previous) = (head, 0);
        self.pending.clear();
        Some(json("resync", &LiveHead { position: self.position, previous: self.previous }))
    }
}

fn json(name: &str, data: &impl serde::Serialize) -> Sse {
    match Sse::default().event(name).json_data(data) {
        Ok(message) => message,
        // Numbers and text only: cannot fail, and must not end the stream if it did.
        Err(error) => Sse::default().comment(error.to_string().replace(['\n', '\r'], " ")),
    }
}
