//! Relay: tails the log by position and publishes it to a bounded JetStream stream. Losing the stream loses nothing.
//!
//! Of several servers one leads, by an advisory lock. Where it stands is told by the stream itself: its last message
//! names its position. The event's id is the message's id, so that what two leaders both send is kept once.

use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::{self, stream::DiscardPolicy, stream::StorageType};
use events::envelope::Recorded;
use events::subjects::{EVENTS_STREAM, EVENTS_WILDCARD, event_subject};
use sqlx::{Connection, PgConnection, PgPool};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::live::event_view;
use crate::log::{Log, LogError};
use crate::secrets::MessageSeal;

/// Names the event's position in a relayed message.
pub const POSITION_HEADER: &str = "Benchtrail-Position";
/// Names the previous position's chain hash, hexadecimal: who holds both can check the chain.
pub const PREVIOUS_HASH_HEADER: &str = "Benchtrail-Previous-Hash";

/// The control planes' seal of the message, see [`MessageSeal`].
pub const SEAL_HEADER: &str = "Benchtrail-Seal";

/// Events published at a time, before their acknowledgements are awaited.
const BATCH: i64 = 500;
/// Events a new stream begins with, counted from the head.
const BACKLOG: i64 = 10_000;
/// The lock that makes a leader.
const LEADER_LOCK: i64 = 0x6274_0003;
/// How often the log, and the lead, are looked at although nothing woke the relay.
const POLL: Duration = Duration::from_secs(1);

/// How long the relay pauses after an error; twice as long after each further one, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error("the log: {0}")]
    Log(#[from] LogError),
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    #[error("JetStream: {0}")]
    JetStream(String),
}

fn jetstream_error(error: impl std::fmt::Display) -> RelayError {
    RelayError::JetStream(error.to_string())
}

/// Starts relaying until `stop` is cancelled. Of several servers one leads.
pub fn start(
    log: Log,
    pool: PgPool,
    nats: async_nats::Client,
    seal: MessageSeal,
    stop: CancellationToken,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let context = jetstream::new(nats);
        let mut patience = FIRST_PAUSE;
        loop {
            let began = Instant::now();
            let result = tokio::select! {
                () = stop.cancelled() => return,
                result = lead(&log, &pool, &context, &seal) => result,
            };
            if let Err(error) = result {
                tracing::warn!(%error, "the relay pauses; it goes on where it was, and the log has everything");
            }
            // It went well for long: what happened now has nothing to do with the troubles before.
            if began.elapsed() > LONGEST_PAUSE {
                patience = FIRST_PAUSE;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(patience) => {}
            }
            patience = (patience * 2).min(LONGEST_PAUSE);
        }
    })
}

async fn lead(
    log: &Log,
    pool: &PgPool,
    context: &jetstream::Context,
    seal: &MessageSeal,
) -> Result<(), RelayError> {
    let mut lock = pool.acquire().await?.detach();
    loop {
        let leads: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)")
            .bind(LEADER_LOCK)
            .fetch_one(&mut lock)
            .await?;
        if leads {
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    relay(log, context, seal, &mut lock).await
}

async fn relay(
    log: &Log,
    context: &jetstream::Context,
    seal: &MessageSeal,
    lock: &mut PgConnection,
) -> Result<(), RelayError> {
    let head = log.head().await?.position;
    let mut position = open(context, head).await?;
    let mut seen = log.watch();
    // What precedes the first event that will be sent.
    let mut previous_hash = match position {
        0 => events::envelope::GENESIS_HASH,
        _ => log.read_all(position - 1, 1).await?.first().map_or(events::envelope::GENESIS_HASH, |r| r.hash),
    };
    let mut leads = Instant::now();
    loop {
        // The lock goes with its connection: without it another server leads.
        if leads.elapsed() >= POLL {
            lock.ping().await?;
            leads = Instant::now();
        }
        let batch = log.read_all(position, BATCH).await?;
        if batch.is_empty() {
            let _ = tokio::time::timeout(POLL, seen.wait_for(|head| *head > position)).await;
            continue;
        }
        let mut acknowledgements = Vec::with_capacity(batch.len());
        for recorded in &batch {
            acknowledgements.push(publish(context, seal, recorded, &previous_hash).await?);
            previous_hash = recorded.hash;
        }
        for acknowledgement in acknowledgements {
            acknowledgement.await.map_err(jetstream_error)?;
        }
        position = batch.last().map_or(position, |r| r.position);
    }
}

/// Opens the stream, making it where there is none, and finds the position it ends at.
async fn open(context: &jetstream::Context, head: i64) -> Result<i64, RelayError> {
    let stream = context
        .get_or_create_stream(jetstream::stream::Config {
            name: EVENTS_STREAM.to_owned(),
            subjects: vec![EVENTS_WILDCARD.to_owned()],
            storage: StorageType::File,
            discard: DiscardPolicy::Old,
            max_age: Duration::from_secs(24 * 60 * 60),
            max_bytes: 256 << 20,
            duplicate_window: Duration::from_secs(120),
            description: Some("The event log, relayed. A cache: losing it loses nothing.".to_owned()),
            ..Default::default()
        })
        .await
        .map_err(jetstream_error)?;
    let beginning = (head - BACKLOG).max(0);
    let last = stream.get_info().await.map_err(jetstream_error)?.state.last_sequence;
    if last == 0 {
        return Ok(beginning);
    }
    let Ok(message) = stream.get_raw_message(last).await else { return Ok(beginning) };
    let position =
        message.headers.get(POSITION_HEADER).and_then(|v| v.as_str().parse::<i64>().ok()).unwrap_or(0);
    // A stream of another log, or one that fell far behind, begins again near the head.
    Ok(if position > head { beginning } else { position.max(beginning) })
}

async fn publish(
    context: &jetstream::Context,
    seal: &MessageSeal,
    recorded: &Recorded,
    previous_hash: &[u8; 32],
) -> Result<jetstream::context::PublishAckFuture, RelayError> {
    let mut headers = HeaderMap::new();
    headers.insert(async_nats::header::NATS_MESSAGE_ID, recorded.event_id.to_string().as_str());
    headers.insert(POSITION_HEADER, recorded.position.to_string().as_str());
    headers.insert(PREVIOUS_HASH_HEADER, hex::encode(previous_hash).as_str());
    let payload = serde_json::to_vec(&event_view(recorded)).map_err(jetstream_error)?;
    let subject = event_subject(&recorded.stream);
    headers.insert(SEAL_HEADER, seal.of(&subject, &payload).as_str());
    context.publish_with_headers(subject, headers, payload.into()).await.map_err(jetstream_error)
}
