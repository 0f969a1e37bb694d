//! HTTP/2 (`--http2`): the streams of a few connections instead of a connection for each request.
//!
//! The crate `h2` speaks the protocol. It reads through [`Arrivals`], which notes when bytes arrived, so that times mean
//! the same as with HTTP/1.1: a frame's moment is that of the read that completed it.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Mutex;

use super::connect::{ConnectError, Connector, Stream};
use super::exchange::ExchangeError;
use super::pool::{Counters, SendError, Sent};
use super::request::Request;
use super::response::{Head, Progress, Sink};

/// Room for what a server sends ahead: it must never wait for this client.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 256 << 20;

/// How long the rest of a body whose answer is complete may take before its stream is reset.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What the requests on one connection share.
#[derive(Debug, Default)]
struct Shared {
    /// Streams open now.
    streams: AtomicUsize,
    /// Requests sent so far.
    requests: AtomicU64,
    /// It ended, or is about to: no more requests.
    closed: AtomicBool,
    /// When bytes last arrived, in nanoseconds since [`EPOCH`].
    last_arrival: AtomicU64,
}

impl Shared {
    fn last_arrival(&self) -> Instant {
        *EPOCH + Duration::from_nanos(self.last_arrival.load(Relaxed))
    }
}

/// A stream that notes when bytes arrive.
struct Arrivals {
    stream: Stream,
    shared: Arc<Shared>,
}

impl AsyncRead for Arrivals {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = self.stream.poll_receive(cx, buffer.initialize_unfilled());
        polled.map_ok(|(count, at)| {
            let since = at.saturating_duration_since(*EPOCH).as_nanos() as u64;
            self.shared.last_arrival.store(since, Relaxed);
            buffer.advance(count);
        })
    }
}

impl AsyncWrite for Arrivals {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_shutdown(cx)
    }
}

#[derive(Clone)]
struct Connection {
    sender: SendRequest<Bytes>,
    shared: Arc<Shared>,
}

/// A place on a connection, given back when dropped.
struct Place {
    connection: Connection,
    reused: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connection.shared.streams.fetch_sub(1, Relaxed);
    }
}

/// The connections of one origin.
#[derive(Default)]
pub(super) struct Http2 {
    connections: Mutex<Vec<Connection>>,
}

/// How far a request got.
#[derive(Default)]
struct Reached {
    sent_at: Option<Instant>,
    ended_at: Option<Instant>,
    any_answer: bool,
}

impl Http2 {
    /// Opens as many connections as `requests` at once need.
    pub(super) async fn open_ahead(
        &self,
        connector: &Connector,
        counters: &Counters,
        requests: usize,
    ) -> Result<(), ConnectError> {
        let mut places = Vec::new(); // held together, so that each takes room of its own
        for _ in 0..requests {
            places.push(self.place(connector, counters).await?);
        }
        Ok(())
    }

    /// Sends `request` on a connection with room, or a new one; once more if an old connection turned it away.
    pub(super) async fn send<S: Sink>(
        &self,
        connector: &Connector,
        counters: &Counters,
        request: &Request<'_>,
        sink: &mut S,
        deadline: Instant,
    ) -> Result<Sent, SendError> {
        let head = request.http2().map_err(|error| ConnectError::Address(error.to_string()))?;
        let mut reached = Reached::default();
        let whole = self.send_or_again(connector, counters, &head, request.body, sink, &mut reached);
        let (reused, retried) = match tokio::time::timeout_at(deadline.into(), whole).await {
            Ok(result) => result?,
            Err(_) => return Err(ExchangeError::Timeout.into()),
        };
        let now = Instant::now();
        Ok(Sent {
            sent_at: reached.sent_at.unwrap_or(now),
            ended_at: reached.ended_at.unwrap_or(now),
            reused,
            retried,
        })
    }

    async fn send_or_again<S: Sink>(
        &self,
        connector: &Connector,
        counters: &Counters,
        head: &http::Request<()>,
        body: &[u8],
        sink: &mut S,
        reached: &mut Reached,
    ) -> Result<(bool, bool), SendError> {
        let mut retried = false;
        loop {
            let place = self.place(connector, counters).await?;
            counters.reused.fetch_add(u64::from(place.reused && !retried), Relaxed);
            match exchange(&place, head.clone(), body, sink, reached).await {
                Ok(()) => return Ok((place.reused && !retried, retried)),
                Err(error) => {
                    if error.is_io() || error.is_go_away() {
                        place.connection.shared.closed.store(true, Relaxed);
                    }
                    if !place.reused || retried || reached.any_answer {
                        return Err(ExchangeError::Http2(error).into());
                    }
                    counters.retried.fetch_add(1, Relaxed);
                    place.connection.shared.closed.store(true, Relaxed);
                    retried = true;
                }
            }
        }
    }

    /// A place on a connection that takes more streams; opens one where there is none.
    async fn place(&self, connector: &Connector, counters: &Counters) -> Result<Place, ConnectError> {
        let mut connections = self.connections.lock().await;
        connections.retain(|connection| !connection.shared.closed.load(Relaxed));
        let room = |connection: &&Connection| {
            connection.shared.streams.load(Relaxed) < connection.sender.current_max_send_streams()
        };
        let connection = match connections.iter().find(room) {
            Some(connection) => connection.clone(),
            None => {
                let opened = open(connector).await?;
                counters.opened.fetch_add(1, Relaxed);
                connections.push(opened.clone());
                opened
            }
        };
        connection.shared.streams.fetch_add(1, Relaxed);
        let reused = connection.shared.requests.load(Relaxed) > 0;
        Ok(Place { connection, reused })
    }
}

async fn open(connector: &Connector) -> Result<Connection, ConnectError> {
    let shared = Arc::new(Shared::default());
    let io = Arrivals { stream: connector.open().await?, shared: Arc::clone(&shared) };
    let (sender, mut driver) = h2::client::Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .enable_push(false)
        .handshake::<_, Bytes>(io)
        .await
        .map_err(|error| ConnectError::NoHttp2(error.to_string()))?;
    let ping = driver.ping_pong();
    let ending = Arc::clone(&shared);
    tokio::spawn(async move {
        let _ = driver.await; // each request on it hears why
        ending.closed.store(true, Relaxed);
    });
    if let Some(mut ping) = ping {
        // The answer comes after the server's settings, which say how many streams it takes; and a server that speaks
        // something else gives itself away.
        let answered = ping.ping(h2::Ping::opaque()).await;
        answered.map_err(|error| ConnectError::NoHttp2(error.to_string()))?;
    }
    Ok(Connection { sender, shared })
}

async fn exchange<S: Sink>(
    place: &Place,
    head: http::Request<()>,
    body: &[u8],
    sink: &mut S,
    reached: &mut Reached,
) -> Result<(), h2::Error> {
    let shared = &place.connection.shared;
    let mut sender = place.connection.sender.clone().ready().await?;
    let (response, mut out) = sender.send_request(head, body.is_empty())?;
    shared.requests.fetch_add(1, Relaxed);
    if !body.is_empty() {
        out.send_data(Bytes::copy_from_slice(body), true)?;
    }
    reached.sent_at = Some(Instant::now());
    let response = response.await?;
    reached.any_answer = true;
    let at = shared.last_arrival();
    reached.ended_at = Some(at);
    let (parts, mut body) = response.into_parts();
    sink.head(head_of(&parts), at);
    loop {
        let piece = match sink.complete_after_silence() {
            None => body.data().await,
            Some(silence) => match tokio::time::timeout(silence, body.data()).await {
                Ok(piece) => piece,
                Err(_) => return Ok(()),
            },
        };
        let Some(piece) = piece else { return Ok(()) };
        let (piece, at) = (piece?, shared.last_arrival());
        reached.ended_at = Some(at);
        body.flow_control().release_capacity(piece.len())?;
        if !piece.is_empty() && sink.body(&piece, at) == Progress::Complete {
            tokio::spawn(drain(body));
            return Ok(());
        }
    }
}

/// Reads the rest of a body whose answer is complete, so that its stream ends as it should rather than by a reset.
async fn drain(mut body: RecvStream) {
    let rest = async {
        while let Some(Ok(piece)) = body.data().await {
            let _ = body.flow_control().release_capacity(piece.len());
        }
    };
    let _ = tokio::time::timeout(DRAIN_LIMIT, rest).await;
}

fn head_of(parts: &http::response::Parts) -> Head {
    let header = |name: &str| {
        parts.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
    };
    Head {
        status: parts.status.as_u16(),
        content_type: header("content-type").unwrap_or_default().to_ascii_lowercase(),
        server: header("server").unwrap_or_default(),
        location: header("location"),
        retry_after: header("retry-after"),
    }
}
