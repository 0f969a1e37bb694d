//! Idle connections of one origin, and the rule for sending on them.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures::StreamExt;

use super::connect::{ConnectError, Connector, Stream};
use super::exchange::{Broken, ExchangeError, Finished, drain, exchange};
use super::http2::Http2;
use super::request::Request;
use super::response::Sink;

/// How long the rest of a response whose answer is complete may take before the connection is given up.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Connections opened ahead at once.
const OPEN_AHEAD_AT_ONCE: usize = 64;

/// What connections did, over all origins.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections opened.
    pub opened: AtomicU64,
    /// Requests sent on a connection that had served one before.
    pub reused: AtomicU64,
    /// Requests sent again because a reused connection died before any byte of the answer.
    pub retried: AtomicU64,
}

/// Why a request got no complete response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A connection that broke.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
}

/// How a request was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The moment its last byte was handed to the system.
    pub sent_at: Instant,
    /// The moment the last bytes of the answer arrived.
    pub ended_at: Instant,
    /// On a connection that had served one before.
    pub reused: bool,
    /// A second time, because a reused connection had died.
    pub retried: bool,
}

struct Idle {
    stream: Stream,
    since: Instant,
    /// It has served a request; false for one opened ahead.
    served: bool,
}

/// The connections of one origin.
pub struct Pool {
    connector: Connector,
    idle: Mutex<Vec<Idle>>,
    most_idle: usize,
    idle_timeout: Duration,
    counters: Arc<Counters>,
    /// The connections that carry several requests at once, where HTTP/2 was asked for.
    http2: Option<Http2>,
}

impl Pool {
    /// A pool that keeps up to `most_idle` connections for up to `idle_timeout`.
    pub fn new(
        connector: Connector,
        most_idle: usize,
        idle_timeout: Duration,
        counters: Arc<Counters>,
    ) -> Self {
        let http2 = connector.speaks_http2().then(Http2::default);
        Self { connector, idle: Mutex::new(Vec::new()), most_idle, idle_timeout, counters, http2 }
    }

    /// How its connections are opened.
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Opens connections ahead of the first requests: as many as `requests` at once need. One that fails is left to the
    /// request, which will say what is wrong.
    pub async fn open_ahead(&self, requests: usize) {
        if let Some(http2) = &self.http2 {
            let _ = http2.open_ahead(&self.connector, &self.counters, requests).await;
            return;
        }
        let openings = futures::stream::iter(0..requests).map(|_| self.open());
        let opened: Vec<_> = openings.buffer_unordered(OPEN_AHEAD_AT_ONCE).collect().await;
        opened.into_iter().flatten().for_each(|stream| self.put_back(stream, false));
    }

    /// Sends `request` on an idle connection or a new one. An idle connection that dies before any byte of the
    /// answer says nothing about the request (the server may have closed it a moment before): it is sent once
    /// more, on a new one.
    pub async fn send<S: Sink>(
        self: &Arc<Self>,
        request: &Request<'_>,
        sink: &mut S,
        deadline: Instant,
    ) -> Result<Sent, SendError> {
        if let Some(http2) = &self.http2 {
            return http2.send(&self.connector, &self.counters, request, sink, deadline).await;
        }
        let request = &request.http1();
        let mut retried = false;
        if let Some(Idle { mut stream, served, .. }) = self.take_idle() {
            self.counters.reused.fetch_add(u64::from(served), Relaxed);
            match exchange(&mut stream, request, sink, deadline).await {
                Ok(finished) => return Ok(self.finish(stream, finished, served, false)),
                Err(Broken { error, before_any_byte })
                    if !before_any_byte || matches!(error, ExchangeError::Timeout) =>
                {
                    stream.abandon();
                    return Err(error.into());
                }
                Err(_) => {
                    self.counters.retried.fetch_add(1, Relaxed);
                    retried = true;
                }
            }
        }
        let mut stream = match tokio::time::timeout_at(deadline.into(), self.open()).await {
            Ok(opened) => opened?,
            Err(_) => return Err(ExchangeError::Timeout.into()),
        };
        match exchange(&mut stream, request, sink, deadline).await {
            Ok(finished) => Ok(self.finish(stream, finished, false, retried)),
            Err(broken) => {
                stream.abandon();
                Err(broken.error.into())
            }
        }
    }

    async fn open(&self) -> Result<Stream, ConnectError> {
        let stream = self.connector.open().await?;
        self.counters.opened.fetch_add(1, Relaxed);
        Ok(stream)
    }

    fn finish(self: &Arc<Self>, mut stream: Stream, finished: Finished, reused: bool, retried: bool) -> Sent {
        let sent = Sent { sent_at: finished.sent_at, ended_at: finished.ended_at, reused, retried };
        let reader = finished.reader;
        if reader.is_reusable() {
            self.put_back(stream, true);
        } else if !reader.is_done() && reader.may_become_reusable() {
            // The answer is complete but the body is not: its end must not hold up the next request.
            let pool = Arc::clone(self);
            tokio::spawn(async move {
                match tokio::time::timeout(DRAIN_LIMIT, drain(&mut stream, reader)).await {
                    Ok(true) => pool.put_back(stream, true),
                    _ => stream.abandon(),
                }
            });
        } else if !reader.is_done() {
            stream.abandon();
        }
        sent
    }

    fn take_idle(&self) -> Option<Idle> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop()?;
            if idle.since.elapsed() < self.idle_timeout && idle.stream.is_quiet() {
                return Some(idle);
            }
        }
    }

    fn put_back(&self, stream: Stream, served: bool) {
        let mut idle = self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if idle.len() < self.most_idle {
            idle.push(Idle { stream, since: Instant::now(), served });
        }
    }
}
