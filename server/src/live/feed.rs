//! Where the hub's events come from: the relay's JetStream stream, and the log for whatever is missing there.
//!
//! A relayed event is taken only where a control plane sealed it, it is the very next one and its hash follows from the
//! one before it, so that what NATS holds can delay an event but never add, change or lose one. A gap, an outage, a stream that was thrown
//! away, a message that does not fit: each is filled from the log.

use std::pin::Pin;
use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::{self, Message};
use events::api::EventView;
use events::envelope::chain_hash;
use events::hexadecimal;
use events::subjects::EVENTS_STREAM;
use futures::{FutureExt, Stream, StreamExt};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{BATCH, Hub, Shown};
use crate::log::Head;
use crate::relay::SEAL_HEADER;
use crate::secrets::MessageSeal;

/// How long a committed event may take by way of the relay before it is read from the log.
const GRACE: Duration = Duration::from_millis(100);

/// How long the hub waits for a sign of new events before it looks by itself.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How long a lost stream is left alone before it is opened again.
const OPEN_AGAIN: Duration = Duration::from_secs(1);

type Messages = Pin<Box<dyn Stream<Item = Result<Message, String>> + Send>>;

/// What a relayed event is to someone who stands at a head.
#[derive(Debug, PartialEq, Eq)]
enum Fit {
    /// The next one.
    Next(Head),
    /// Had already.
    Old,
    /// Something is missing before it, or it is of another log.
    Missing,
}

/// Judges a relayed event.
fn fit(at: &Head, view: &EventView) -> Fit {
    if view.position <= at.position {
        return Fit::Old;
    }
    let (Some(leaf), Some(hash)) = (hexadecimal::decode(&view.leaf), hexadecimal::decode(&view.hash)) else {
        return Fit::Missing;
    };
    if view.position == at.position + 1 && chain_hash(&at.hash, &leaf) == hash {
        return Fit::Next(Head { position: view.position, hash });
    }
    Fit::Missing
}

/// Follows the log until `stop` is cancelled, and tells the clients how far the hub is.
pub(super) async fn follow(
    hub: Hub,
    at: Head,
    tell: watch::Sender<i64>,
    relayed: Option<(async_nats::Client, MessageSeal)>,
    stop: CancellationToken,
) {
    let mut committed = hub.log.watch();
    let (nats, seal) = relayed.unzip();
    let context = nats.map(jetstream::new);
    let mut feed = Feed { hub, at, tell, seal, messages: None, relay_keeps_up: false };
    let mut open_at = Instant::now();
    // What was committed must have come by way of the relay until then.
    let mut due: Option<(i64, Instant)> = None;
    loop {
        if let Some(context) = &context
            && feed.messages.is_none()
            && Instant::now() >= open_at
        {
            open_at = Instant::now() + OPEN_AGAIN;
            feed.messages = open(context).await;
        }
        if !feed.relay_keeps_up {
            feed.read_log().await;
        }
        let known = *committed.borrow_and_update();
        if due.is_none_or(|(position, _)| position <= feed.at.position) {
            let waiting = feed.relay_keeps_up && known > feed.at.position;
            due = waiting.then(|| (known, Instant::now() + GRACE));
        }
        let until = due.map_or_else(|| Instant::now() + LOOK_AGAIN, |(_, until)| until);
        tokio::select! {
            () = stop.cancelled() => return,
            message = next(&mut feed.messages) => feed.relayed(message),
            changed = committed.changed() => if changed.is_err() { return },
            () = tokio::time::sleep_until(until) => if due.take().is_some() { feed.relay_keeps_up = false },
        }
    }
}

struct Feed {
    hub: Hub,
    at: Head,
    tell: watch::Sender<i64>,
    /// What a control plane's messages are known by.
    seal: Option<MessageSeal>,
    messages: Option<Messages>,
    /// Whether the relay has delivered all that the hub has: the log is then read only when something does not come.
    relay_keeps_up: bool,
}

impl Feed {
    /// Takes a message, and whatever else has arrived with it.
    fn relayed(&mut self, first: Option<Result<Message, String>>) {
        let mut events = Vec::new();
        let mut message = first;
        loop {
            match message {
                Some(Ok(message)) => match self.read(&message) {
                    Some(shown) => match fit(&self.at, &shown.view) {
                        Fit::Next(head) => {
                            self.at = head;
                            self.relay_keeps_up = true;
                            events.push(shown);
                        }
                        Fit::Old => self.relay_keeps_up |= shown.position() == self.at.position,
                        Fit::Missing => self.relay_keeps_up = false,
                    },
                    None => self.relay_keeps_up = false,
                },
                Some(Err(error)) => {
                    tracing::warn!(error, "the relay's stream is lost for now; the log is read instead");
                    (self.messages, self.relay_keeps_up) = (None, false);
                }
                None => (self.messages, self.relay_keeps_up) = (None, false),
            }
            if !self.relay_keeps_up || events.len() as i64 >= BATCH {
                break;
            }
            match next(&mut self.messages).now_or_never() {
                Some(more) => message = more,
                None => break,
            }
        }
        self.take_in(events);
    }

    /// Reads everything the log has after where the hub stands.
    async fn read_log(&mut self) {
        loop {
            match self.hub.log.read_all(self.at.position, BATCH).await {
                Ok(events) => {
                    let Some(last) = events.last() else { return };
                    self.at = Head { position: last.position, hash: last.hash };
                    self.take_in(events.iter().map(Shown::of_log).collect());
                }
                // The database is away: clients stay connected and catch up when it is back.
                Err(error) => {
                    tracing::warn!(%error, position = self.at.position, "the live stream cannot read the log");
                    return;
                }
            }
        }
    }

    /// A relayed event; nothing where the message is not one, or no control plane sent it.
    fn read(&self, message: &Message) -> Option<Shown> {
        let seal = message.headers.as_ref()?.get(SEAL_HEADER)?.as_str();
        if !self.seal.as_ref()?.holds(seal, &message.subject, &message.payload) {
            tracing::warn!(subject = %message.subject, "somebody else publishes under the relay's subjects");
            return None;
        }
        let view: EventView = serde_json::from_slice(&message.payload).ok()?;
        Some(Shown::new(view.stream.parse().ok()?, view))
    }

    fn take_in(&self, events: Vec<Shown>) {
        if let Some(last) = events.last().map(Shown::position) {
            self.hub.take_in(events);
            self.tell.send_replace(last);
        }
    }
}

async fn next(messages: &mut Option<Messages>) -> Option<Result<Message, String>> {
    match messages {
        Some(messages) => messages.next().await,
        None => std::future::pending().await,
    }
}

/// Opens the relay's stream at its end; nothing while there is none.
async fn open(context: &jetstream::Context) -> Option<Messages> {
    let stream = context.get_stream(EVENTS_STREAM).await.ok()?;
    let config = pull::OrderedConfig { deliver_policy: DeliverPolicy::New, ..Default::default() };
    let messages = stream.create_consumer(config).await.ok()?.messages().await.ok()?;
    Some(Box::pin(messages.map(|message| message.map_err(|error| error.to_string()))))
}

#[cfg(test)]
mod tests {
    use events::envelope::GENESIS_HASH;

    use super::*;
    use crate::live::testing;

    fn event(position: i64, previous: &[u8; 32]) -> EventView {
        let leaf = [u8::try_from(position).unwrap(); 32];
        EventView {
            leaf: hexadecimal::encode(&leaf),
            hash: hexadecimal::encode(&chain_hash(previous, &leaf)),
            ..testing::view(position, "project/acme/p1", "project.renamed")
        }
    }

    #[test]
    fn only_the_next_event_of_the_same_chain_is_taken() {
        let start = Head { position: 0, hash: GENESIS_HASH };
        let first = event(1, &start.hash);
        let Fit::Next(head) = fit(&start, &first) else { panic!("the next event is taken") };
        assert_eq!(head, Head { position: 1, hash: chain_hash(&GENESIS_HASH, &[1; 32]) });
        assert_eq!(fit(&head, &first), Fit::Old);
        assert_eq!(fit(&start, &event(2, &head.hash)), Fit::Missing, "a gap");
        assert_eq!(fit(&head, &event(2, &[9; 32])), Fit::Missing, "another log's event");
        let mut changed = event(2, &head.hash);
        changed.leaf = hexadecimal::encode(&[7; 32]);
        assert_eq!(fit(&head, &changed), Fit::Missing, "a leaf that does not give the hash");
        changed.leaf = "not hexadecimal".to_owned();
        assert_eq!(fit(&head, &changed), Fit::Missing);
    }
}
