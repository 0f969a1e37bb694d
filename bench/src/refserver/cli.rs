//! The command line of `benchtrail-refserver`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::shape::{Shape, Wire};
use super::truth::TruthLog;
use super::{Options, UsagePlace, listen, serve};

/// An OpenAI-compatible server that simulates a model with exact timing, for tests and first runs.
///
/// A request may override the behaviour by a header `x-refserver-shape` or a body member
/// `"refserver": {"shape": …, "ttft_ms": …, "itl_ms": …, "tokens": …, "reasoning_tokens": …, "usage": …}`.
/// It takes the flags of a llama.cpp server too, so that it can stand where one is expected.
#[derive(Parser, Clone, Debug)]
#[command(name = "benchtrail-refserver", version, max_term_width = 110, args_override_self = true)]
struct Cli {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port; 0 for a free one, which is printed.
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// The model's name. Default: the file name of --model, or benchtrail-sim.
    #[arg(long, short = 'a')]
    alias: Option<String>,
    /// Milliseconds from the last byte of a request to the first token.
    #[arg(long, default_value_t = 50.0)]
    ttft_ms: f64,
    /// Milliseconds between tokens.
    #[arg(long, default_value_t = 10.0)]
    itl_ms: f64,
    /// Tokens of each answer. Default: what the request asks for.
    #[arg(long)]
    tokens: Option<u64>,
    /// So many of the first tokens are reasoning.
    #[arg(long, default_value_t = 0)]
    reasoning_tokens: u64,
    /// Tokens in each chunk.
    #[arg(long, default_value_t = 1)]
    tokens_per_chunk: u64,
    /// A random part of each wait, such as 0.1 for ±10 %.
    #[arg(long, default_value_t = 0.0)]
    jitter: f64,
    /// Seed of the jitter.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What goes wrong: ok, cut, missing-finish, in-band-error, html, stall, status-429, …
    #[arg(long, default_value = "ok")]
    shape: Shape,
    /// Where usage is reported.
    #[arg(long, value_enum, default_value = "final")]
    usage: UsagePlace,
    /// What ends a line of an event stream.
    #[arg(long, default_value = "lf", value_parser = ["lf", "crlf", "cr"])]
    line_ending: String,
    /// Put comments and other fields between events.
    #[arg(long)]
    comments: bool,
    /// Events in each write.
    #[arg(long, default_value_t = 1)]
    events_per_write: usize,
    /// Write in pieces of so many bytes.
    #[arg(long, default_value_t = 0)]
    split_bytes: usize,
    /// Close each connection after a streamed answer, as llama.cpp does.
    #[arg(long)]
    close_after_stream: bool,
    /// Tell the processing time in transcriptions.
    #[arg(long)]
    inference_time: bool,
    /// Close a connection when a second request arrives on it.
    #[arg(long)]
    close_on_reuse: bool,
    /// Words a token of its input.
    #[arg(long, default_value_t = crate::prompts::WORDS_PER_TOKEN)]
    words_per_token: f64,
    /// Append what was truly done, a JSON line a request.
    #[arg(long, value_name = "FILE")]
    truth_log: Option<PathBuf>,
    /// Print the address as JSON.
    #[arg(long)]
    json: bool,
    /// Threads.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    workers: u16,

    /// A llama.cpp server's flags. The model file only gives its name; the others are taken and ignored.
    #[arg(long, short = 'm')]
    model: Option<PathBuf>,
    #[arg(long, short = 'c', alias = "ctx", hide = true)]
    ctx_size: Option<u64>,
    #[arg(long, hide = true)]
    parallel: Option<u64>,
    #[arg(long, short = 't', hide = true)]
    threads: Option<u64>,
    #[arg(long, alias = "gpu-layers", hide = true)]
    n_gpu_layers: Option<String>,
    #[arg(long, short = 'b', hide = true)]
    batch_size: Option<u64>,
    #[arg(long, hide = true)]
    metrics: bool,
    #[arg(long, hide = true)]
    no_webui: bool,
}

/// Flags of one dash and several letters, and what they are called with two.
const ONE_DASH: [(&str, &str); 2] = [("-np", "--parallel"), ("-ngl", "--n-gpu-layers")];

/// The whole program; returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let arguments = arguments.into_iter().map(|argument| {
        let known = ONE_DASH.iter().find(|(short, _)| argument == *short);
        known.map_or(argument, |(_, long)| OsString::from(long))
    });
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { 2 } else { 0 };
        }
    };
    match run(cli) {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            1
        }
    }
}

fn options(cli: &Cli) -> io::Result<Options> {
    let ms = |ms: f64| Duration::try_from_secs_f64(ms / 1e3).map_err(io::Error::other);
    let of_file =
        cli.model.as_ref().and_then(|path| path.file_stem()).map(|name| name.to_string_lossy().into_owned());
    Ok(Options {
        model: cli.alias.clone().or(of_file).unwrap_or_else(|| Options::default().model),
        ttft: ms(cli.ttft_ms)?,
        itl: ms(cli.itl_ms)?,
        jitter: cli.jitter.clamp(0.0, 1.0),
        seed: cli.seed,
        tokens: cli.tokens,
        reasoning_tokens: cli.reasoning_tokens,
        tokens_per_chunk: cli.tokens_per_chunk,
        shape: cli.shape,
        wire: Wire {
            line_ending: match cli.line_ending.as_str() {
                "crlf" => "\r\n",
                "cr" => "\r",
                _ => "\n",
            },
            comments: cli.comments,
            events_per_write: cli.events_per_write,
            split_bytes: cli.split_bytes,
            ..Wire::default()
        },
        usage: cli.usage,
        close_after_stream: cli.close_after_stream,
        inference_time: cli.inference_time,
        close_on_reuse: cli.close_on_reuse,
        words_per_token: cli.words_per_token,
    })
}

fn run(cli: Cli) -> io::Result<()> {
    let _ = crate::host::allow_open_files(None);
    let truth = cli.truth_log.as_deref().map(TruthLog::open).transpose()?;
    let options = options(&cli)?;
    let listener = listen(SocketAddr::new(cli.host, cli.port))?;
    let address = listener.local_addr()?;
    let mut stdout = io::stdout();
    let _ = match cli.json {
        true => writeln!(
            stdout,
            "{}",
            serde_json::json!({"url": format!("http://{address}"), "port": address.port()})
        ),
        false => writeln!(stdout, "listening on http://{address}"),
    };
    let _ = stdout.flush();
    let runtime = match cli.workers {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        workers => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers.into()).enable_all().build()?
        }
    };
    let result = runtime.block_on(async {
        let stop = CancellationToken::new();
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let stopping = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            stopping.cancel();
        });
        serve(listener, options, truth, stop).await
    });
    runtime.shutdown_background();
    result
}
