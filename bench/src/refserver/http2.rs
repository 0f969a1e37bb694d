//! HTTP/2 without TLS. Each stream is passed on to the server's own HTTP/1.1 side, so that every shape and every timing
//! is there in both versions: a body that is cut becomes a stream that is reset.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use tokio::net::TcpStream;
use url::Url;

use crate::http::connect::{ConnectOptions, Connector};
use crate::http::exchange::exchange;
use crate::http::response::{Head, Progress, Sink};

/// How every HTTP/2 connection begins, and no HTTP/1.1 one does.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// The longest one request is kept alive.
const LIMIT: Duration = Duration::from_secs(3600);

/// Looks at the first bytes without taking them.
pub(super) async fn is_spoken_on(stream: &TcpStream) -> bool {
    let mut first = [0; 3];
    loop {
        match stream.peek(&mut first).await {
            Ok(3) => return PREFACE.starts_with(&first),
            Ok(count) if count > 0 && PREFACE.starts_with(&first[..count]) => tokio::task::yield_now().await,
            _ => return false,
        }
    }
}

/// Serves one connection.
pub(super) async fn serve(stream: TcpStream, own_address: SocketAddr) {
    let mut builder = h2::server::Builder::new();
    builder.initial_window_size(4 << 20).initial_connection_window_size(64 << 20).max_concurrent_streams(100);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(async move {
            let (parts, body) = request.into_parts();
            pass_on(&parts, body, respond, own_address).await;
        });
    }
}

/// Hands a response on as it comes.
struct Relay {
    respond: SendResponse<Bytes>,
    stream: Option<SendStream<Bytes>>,
}

impl Sink for Relay {
    fn head(&mut self, head: Head, _: Instant) {
        let response = http::Response::builder()
            .status(head.status)
            .header("content-type", head.content_type)
            .header("server", head.server)
            .body(());
        self.stream = response.ok().and_then(|response| self.respond.send_response(response, false).ok());
    }

    fn body(&mut self, piece: &[u8], _: Instant) -> Progress {
        let sent = self.stream.as_mut().map(|stream| stream.send_data(Bytes::copy_from_slice(piece), false));
        // A client that has gone is told nothing more.
        if matches!(sent, Some(Ok(()))) { Progress::More } else { Progress::Complete }
    }
}

async fn pass_on(
    parts: &http::request::Parts,
    mut body: RecvStream,
    respond: SendResponse<Bytes>,
    own_address: SocketAddr,
) {
    let mut payload = Vec::new();
    while let Some(Ok(piece)) = body.data().await {
        let _ = body.flow_control().release_capacity(piece.len());
        payload.extend_from_slice(&piece);
    }
    let mut request = format!("{} {} HTTP/1.1\r\nHost: {own_address}\r\n", parts.method, parts.uri.path());
    for (name, value) in &parts.headers {
        if name != "content-length" {
            request.push_str(&format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
        }
    }
    request.push_str(&format!("Connection: close\r\nContent-Length: {}\r\n\r\n", payload.len()));
    let mut request = request.into_bytes();
    request.extend_from_slice(&payload);

    let mut relay = Relay { respond, stream: None };
    let whole = match connect(own_address).await {
        Some(mut stream) => exchange(&mut stream, &request, &mut relay, Instant::now() + LIMIT).await.is_ok(),
        None => false,
    };
    match (whole, relay.stream) {
        (true, Some(mut stream)) => drop(stream.send_data(Bytes::new(), true)),
        (_, Some(mut stream)) => stream.send_reset(Reason::INTERNAL_ERROR),
        (_, None) => relay.respond.send_reset(Reason::INTERNAL_ERROR),
    }
}

async fn connect(address: SocketAddr) -> Option<crate::http::connect::Stream> {
    let url = Url::parse(&format!("http://{address}")).ok()?;
    let options = ConnectOptions {
        connect_timeout: Duration::from_secs(5),
        tcp_keepalive: Duration::ZERO,
        insecure: false,
        http2: false,
        proxy: None,
        networks: None,
    };
    Connector::resolve(&url, options).await.ok()?.open().await.ok()
}
