//! A client of the live stream (server-sent events), as strict as the page's.

use std::time::Duration;

use events::api::{EventView, LiveEvent, LiveHead};
use futures::StreamExt;
use reqwest::Method;

use crate::PATIENCE;
use crate::api::Api;

/// One message of the stream.
#[derive(Debug, Clone)]
pub enum Message {
    /// An event that matched the topics.
    Event(Box<LiveEvent>),
    /// Where the log's head is.
    Head(LiveHead),
    /// The server asks to fetch the state afresh.
    Resync,
}

/// An open stream.
pub struct Live {
    bytes: std::pin::Pin<Box<dyn futures::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    buffer: String,
    /// The position of the last event seen, 0 for none.
    pub last: i64,
}

impl Live {
    /// Opens the stream; events after `after` are sent first.
    pub async fn open(api: &Api, topics: &str, after: i64) -> Self {
        let request =
            api.request(Method::GET, "/api/live").query(&[("topics", topics), ("after", &after.to_string())]);
        let response = request.send().await.expect("the live stream answers");
        assert!(response.status().is_success(), "live: {} {:?}", response.status(), response.text().await);
        let kind = response.headers()["content-type"].to_str().expect("ASCII").to_owned();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        Self { bytes: Box::pin(response.bytes_stream()), buffer: String::new(), last: 0 }
    }

    /// The next message; nothing when the server ended the stream.
    pub async fn next(&mut self) -> Option<Message> {
        let wait = tokio::time::timeout(PATIENCE, self.next_message()).await;
        wait.unwrap_or_else(|_| {
            panic!("nothing on the live stream for {PATIENCE:?} after position {}", self.last)
        })
    }

    /// The next message, or nothing within `limit`.
    pub async fn next_within(&mut self, limit: Duration) -> Option<Message> {
        tokio::time::timeout(limit, self.next_message()).await.ok().flatten()
    }

    async fn next_message(&mut self) -> Option<Message> {
        loop {
            while let Some(end) = self.buffer.find("\n\n") {
                let block: String = self.buffer.drain(..end + 2).collect();
                if let Some(message) = self.read(&block) {
                    return Some(message);
                }
            }
            let bytes = self.bytes.next().await?.ok()?;
            self.buffer.push_str(&String::from_utf8_lossy(&bytes).replace("\r\n", "\n"));
        }
    }

    fn read(&mut self, block: &str) -> Option<Message> {
        let field = |name: &str| {
            block.lines().find_map(|l| l.strip_prefix(name).and_then(|r| r.strip_prefix(':')).map(str::trim))
        };
        match field("event")? {
            "event" => {
                let event: LiveEvent = serde_json::from_str(field("data")?).expect("a live event");
                assert_eq!(
                    field("id"),
                    Some(event.event.position.to_string().as_str()),
                    "id is the position"
                );
                assert!(
                    event.event.position > self.last,
                    "positions go up: {} after {}",
                    event.event.position,
                    self.last
                );
                if self.last > 0 {
                    assert_eq!(event.previous, self.last, "an event between them was lost");
                }
                self.last = event.event.position;
                Some(Message::Event(Box::new(event)))
            }
            "head" => Some(Message::Head(serde_json::from_str(field("data")?).expect("a head"))),
            "resync" => Some(Message::Resync),
            other => panic!("unknown message {other:?}"),
        }
    }

    /// The next event, heads skipped.
    pub async fn event(&mut self) -> EventView {
        loop {
            match self.next().await {
                Some(Message::Event(event)) => return event.event,
                Some(Message::Head(_)) => {}
                other => panic!("the live stream ended: {other:?} after position {}", self.last),
            }
        }
    }

    /// Reads events until one satisfies `wanted`; all that were read, the wanted one last.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&EventView) -> bool) -> Vec<EventView> {
        let mut seen: Vec<EventView> = Vec::new();
        let deadline = tokio::time::Instant::now() + PATIENCE * 2;
        loop {
            assert!(
                tokio::time::Instant::now() < deadline,
                "{what} did not come; seen: {:?}",
                seen.iter().map(|e| &e.event_type).collect::<Vec<_>>()
            );
            let event = self.event().await;
            let done = wanted(&event);
            seen.push(event);
            if done {
                return seen;
            }
        }
    }
}
