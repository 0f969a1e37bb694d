//! `benchtrail-refserver`: an OpenAI-compatible server with exact timing, every fault a client must survive, and a
//! log of what it truly did. Whatever it serves is a simulation and says so (`server: benchtrail-refserver`).

mod answer;
pub mod cli;
mod connection;
mod http2;
pub mod media;
mod request;
pub mod shape;
pub mod truth;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use shape::{Shape, Wire};
use truth::TruthLog;

/// How the server behaves unless a request asks otherwise.
#[derive(Clone, Debug)]
pub struct Options {
    /// The model it says it serves.
    pub model: String,
    /// From the last byte of a request to the first token.
    pub ttft: Duration,
    /// From one token to the next.
    pub itl: Duration,
    /// A random part of so much (0.1 = ±10 %) is added to each wait.
    pub jitter: f64,
    /// Seed of the jitter.
    pub seed: u64,
    /// Tokens of each answer; none for what the request asks.
    pub tokens: Option<u64>,
    /// Of these, so many first ones are reasoning.
    pub reasoning_tokens: u64,
    /// Tokens in each chunk.
    pub tokens_per_chunk: u64,
    /// What goes wrong.
    pub shape: Shape,
    /// How events are written.
    pub wire: Wire,
    /// Where usage is reported.
    pub usage: UsagePlace,
    /// Close each connection after a streamed answer although it was announced to be kept, as llama.cpp does.
    pub close_after_stream: bool,
    /// Transcriptions tell the server's own processing time.
    pub inference_time: bool,
    /// Close a connection without a word when a second request arrives on it.
    pub close_on_reuse: bool,
    /// Words a token of its input.
    pub words_per_token: f64,
}

/// Where in a stream the token counts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum UsagePlace {
    /// In a chunk of their own at the end, if the request asks for it, as OpenAI has it.
    Final,
    /// In the chunk that says why the model stopped.
    Finish,
    /// In every chunk.
    Every,
    /// Nowhere.
    None,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            model: "benchtrail-sim".into(),
            ttft: Duration::from_millis(50),
            itl: Duration::from_millis(10),
            jitter: 0.0,
            seed: 0,
            tokens: None,
            reasoning_tokens: 0,
            tokens_per_chunk: 1,
            shape: Shape::Ok,
            wire: Wire::default(),
            usage: UsagePlace::Final,
            close_after_stream: false,
            inference_time: false,
            close_on_reuse: false,
            words_per_token: crate::prompts::WORDS_PER_TOKEN,
        }
    }
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) options: Options,
    pub(crate) truth: Option<TruthLog>,
    pub(crate) served: AtomicU64,
    pub(crate) tokens: AtomicU64,
    pub(crate) sequence: AtomicU64,
}

/// Serves on `listener` until `stop`.
pub async fn serve(
    listener: TcpListener,
    options: Options,
    truth: Option<TruthLog>,
    stop: CancellationToken,
) -> io::Result<()> {
    crate::http::arrival::begin_stamping();
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    let server = Arc::new(Server {
        options,
        truth,
        served: AtomicU64::new(0),
        tokens: AtomicU64::new(0),
        sequence: AtomicU64::new(0),
    });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return Ok(()),
        };
        match accepted {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                let server = Arc::clone(&server);
                tokio::spawn(async move {
                    match http2::is_spoken_on(&stream).await {
                        true => http2::serve(stream, address).await,
                        false => connection::serve(stream, server).await,
                    }
                });
            }
            // Out of file descriptors: wait for some to come back rather than die.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Opens a listener with a backlog long enough for a thousand clients at once.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    Ok(socket.into())
}

/// A server in a thread of its own, for tests and for a first run. It stops when dropped.
#[derive(Debug)]
pub struct Background {
    /// Where it listens.
    pub address: SocketAddr,
    stop: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Background {
    /// Starts a server on a free port of this machine.
    pub fn start(options: Options, truth: Option<TruthLog>) -> io::Result<Self> {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || {
            let _ = runtime.block_on(serve(listener, options, truth, stopping));
            runtime.shutdown_background();
        });
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Its base address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
