//! One request and its response on one connection.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::time::Sleep;

use super::connect::Stream;
use super::response::{ReadError, ResponseReader, Sink};

/// Bytes taken in one read at most. Shared by all connections of a thread: memory does not grow with them.
const READ_BUFFER: usize = 64 * 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BUFFER]);
}

/// Why an exchange ended without a complete response.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The request could not be written.
    #[error("writing the request: {0}")]
    Write(io::Error),
    /// The response could not be read.
    #[error("reading the response: {0}")]
    Read(io::Error),
    /// What was read is no proper response.
    #[error(transparent)]
    Response(#[from] ReadError),
    /// The stream, or the connection it was on, ended or broke the rules of HTTP/2.
    #[error(transparent)]
    Http2(#[from] h2::Error),
    /// The request timeout passed.
    #[error("no complete answer within the request timeout")]
    Timeout,
}

/// A failed exchange.
#[derive(Debug)]
pub struct Broken {
    /// Why.
    pub error: ExchangeError,
    /// True when not one byte of the response had arrived.
    pub before_any_byte: bool,
}

/// A finished exchange.
#[derive(Debug)]
pub struct Finished {
    /// The moment the last byte of the request was handed to the system.
    pub sent_at: Instant,
    /// The moment the last bytes of the answer arrived.
    pub ended_at: Instant,
    /// The reader, which knows whether the connection is reusable, or could be after the rest is drained.
    pub reader: ResponseReader,
}

struct Exchange<'a, S> {
    request: &'a [u8],
    written: usize,
    write_error: Option<io::Error>,
    sent_at: Option<Instant>,
    last_read: Instant,
    reader: ResponseReader,
    sink: &'a mut S,
}

/// Writes `request` and reads until the response ends, the sink says the answer is complete, or `deadline` passes.
pub async fn exchange<S: Sink>(
    stream: &mut Stream,
    request: &[u8],
    sink: &mut S,
    deadline: Instant,
) -> Result<Finished, Broken> {
    let mut state = Exchange {
        request,
        written: 0,
        write_error: None,
        sent_at: None,
        last_read: Instant::now(),
        reader: ResponseReader::default(),
        sink,
    };
    let mut timer = std::pin::pin!(tokio::time::sleep_until(deadline.into()));
    let mut silence_ends_it = false;
    let result = poll_fn(|cx| state.poll(cx, stream, timer.as_mut(), &mut silence_ends_it, deadline)).await;
    match result {
        Ok(()) => Ok(Finished {
            sent_at: state.sent_at.unwrap_or(state.last_read),
            ended_at: state.last_read,
            reader: state.reader,
        }),
        Err(error) => Err(Broken { error, before_any_byte: !state.reader.has_begun() }),
    }
}

impl<S: Sink> Exchange<'_, S> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        mut timer: Pin<&mut Sleep>,
        silence_ends_it: &mut bool,
        deadline: Instant,
    ) -> Poll<Result<(), ExchangeError>> {
        self.write(cx, stream);
        let read_before = self.last_read;
        if let Poll::Ready(result) = self.read(cx, stream) {
            return Poll::Ready(result);
        }
        if self.last_read != read_before
            && let Some(silence) = self.sink.complete_after_silence()
        {
            *silence_ends_it = self.last_read + silence < deadline;
            timer.as_mut().reset((self.last_read + silence).min(deadline).into());
        }
        match timer.poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) if *silence_ends_it => Poll::Ready(Ok(())),
            Poll::Ready(()) => Poll::Ready(Err(ExchangeError::Timeout)),
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, stream: &mut Stream) {
        while self.written < self.request.len() && self.write_error.is_none() {
            match stream.poll_write(cx, &self.request[self.written..]) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => self.write_error = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => self.written += count,
                // The server may have answered before it closed: look at that first.
                Poll::Ready(Err(error)) => self.write_error = Some(error),
            }
        }
        if self.sent_at.is_none() && self.write_error.is_none() {
            match stream.poll_flush(cx) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.sent_at = Some(Instant::now()),
                Poll::Ready(Err(error)) => self.write_error = Some(error),
            }
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, stream: &mut Stream) -> Poll<Result<(), ExchangeError>> {
        BUFFER.with_borrow_mut(|buffer| {
            loop {
                let (count, at) = match stream.poll_receive(cx, buffer) {
                    Poll::Pending => match self.write_error.take() {
                        Some(error) => return Poll::Ready(Err(ExchangeError::Write(error))),
                        None => return Poll::Pending,
                    },
                    Poll::Ready(Err(error)) if is_end_of_file(&error) => return Poll::Ready(self.closed()),
                    Poll::Ready(Err(error)) => {
                        let error =
                            self.write_error.take().map_or(ExchangeError::Read(error), ExchangeError::Write);
                        return Poll::Ready(Err(error));
                    }
                    Poll::Ready(Ok(read)) => read,
                };
                if count == 0 {
                    return Poll::Ready(self.closed());
                }
                self.last_read = at;
                let bytes = &buffer[..count];
                if let Err(error) = self.reader.feed(bytes, at, self.sink) {
                    return Poll::Ready(Err(error.into()));
                }
                if self.reader.is_done() || self.reader.is_complete() {
                    return Poll::Ready(Ok(()));
                }
            }
        })
    }

    fn closed(&mut self) -> Result<(), ExchangeError> {
        self.reader.closed().map_err(|error| match self.write_error.take() {
            Some(error) if !self.reader.has_begun() => ExchangeError::Write(error),
            _ => error.into(),
        })
    }
}

/// rustls reports a connection that ended without a closing alert as an error; to HTTP it is an end like any other.
fn is_end_of_file(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

/// Reads and discards the rest of a response whose answer is already complete. True when the connection can
/// then be used again.
pub async fn drain(stream: &mut Stream, mut reader: ResponseReader) -> bool {
    struct Discard;
    impl Sink for Discard {
        fn head(&mut self, _: super::response::Head, _: Instant) {}
        fn body(&mut self, _: &[u8], _: Instant) -> super::response::Progress {
            super::response::Progress::More
        }
    }
    poll_fn(|cx| {
        BUFFER.with_borrow_mut(|buffer| {
            while !reader.is_done() {
                let count = match stream.poll_receive(cx, buffer) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(_) | Ok((0, _))) => return Poll::Ready(false),
                    Poll::Ready(Ok((count, _))) => count,
                };
                if reader.feed(&buffer[..count], Instant::now(), &mut Discard).is_err() {
                    return Poll::Ready(false);
                }
            }
            Poll::Ready(reader.is_reusable())
        })
    })
    .await
}
