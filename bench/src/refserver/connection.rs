//! One client connection: requests in, answers out, until either side has enough.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::answer::{self, Api};
use super::request::{self, Incoming, Request};
use super::shape::Shape;
use super::{Server, media, truth::Truth};
use crate::answer::REFSERVER_NAME;

/// What happens to the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It serves the next request.
    Keep,
    /// It is closed.
    Close,
}

/// Serves one connection. Errors end it: the client is gone.
pub async fn serve(mut stream: TcpStream, server: Arc<Server>) {
    let mut incoming = Incoming::of(&stream);
    let mut served = 0;
    while let Ok(Some(request)) = incoming.next(&mut stream).await {
        if served > 0 && server.options.close_on_reuse {
            return;
        }
        match respond(&mut stream, &server, &request, served).await {
            Ok(After::Keep) if !request.close => served += 1,
            _ => return,
        }
    }
}

async fn respond(
    stream: &mut TcpStream,
    server: &Server,
    request: &Request,
    served: u64,
) -> std::io::Result<After> {
    let api = match (request.method.as_str(), request.path.trim_end_matches('/')) {
        ("GET", "/health" | "/v1/health") => return json_answer(stream, 200, &json!({"status": "ok"})).await,
        ("GET", "/version") => {
            return json_answer(stream, 200, &json!({"version": env!("CARGO_PKG_VERSION")})).await;
        }
        ("GET", "/v1/models" | "/models") => {
            let model = json!({"id": server.options.model, "object": "model", "created": 0, "owned_by": REFSERVER_NAME});
            return json_answer(stream, 200, &json!({"object": "list", "data": [model]})).await;
        }
        ("GET", path) if path.starts_with(media::IMAGES) => {
            return media::send_linked_image(stream, server, request).await;
        }
        ("GET", "/metrics") => return metrics(stream, server).await,
        ("POST", "/v1/chat/completions" | "/chat/completions") => Api::Chat,
        ("POST", "/v1/completions" | "/completions") => Api::Completion,
        ("POST", "/v1/audio/transcriptions" | "/v1/images/generations") => {
            return media_answer(stream, server, request, served).await;
        }
        _ => return json_answer(stream, 404, &error("not_found_error", "no such route")).await,
    };
    let received_at = request.received_at;
    let received_unix_ns = server.truth.as_ref().map_or(0, |truth| truth.unix_ns(received_at));
    let asked = match request::asked(request, &server.options) {
        Ok(asked) => asked,
        Err(reason) => return json_answer(stream, 400, &error("invalid_request_error", &reason)).await,
    };
    let sequence = server.sequence.fetch_add(1, Relaxed);
    let truth = Truth {
        request_id: request.id.clone().unwrap_or_else(|| sequence.to_string()),
        shape: format!("{:?}", asked.options.shape),
        received_unix_ns,
        prompt_tokens: asked.prompt_tokens,
        completion_tokens: asked.tokens,
        served_before: served,
        ..Truth::default()
    };
    if let Some(after) = fault(stream, asked.options.shape).await? {
        return Ok(after);
    }
    let mut answer = answer::Answer::new(server, &asked, api, sequence, received_at, truth);
    let after = match asked.stream && asked.options.shape != Shape::JsonForStream {
        true => answer.stream(stream).await?,
        false => answer.whole(stream).await?,
    };
    server.served.fetch_add(1, Relaxed);
    server.tokens.fetch_add(asked.tokens, Relaxed);
    Ok(after)
}

async fn media_answer(
    stream: &mut TcpStream,
    server: &Server,
    request: &Request,
    served: u64,
) -> std::io::Result<After> {
    let received_at = request.received_at;
    let received_unix_ns = server.truth.as_ref().map_or(0, |truth| truth.unix_ns(received_at));
    let shape = request.shape.as_deref().and_then(|name| name.parse().ok()).unwrap_or(server.options.shape);
    let sequence = server.sequence.fetch_add(1, Relaxed);
    let truth = Truth {
        request_id: request.id.clone().unwrap_or_else(|| sequence.to_string()),
        shape: format!("{shape:?}"),
        received_unix_ns,
        served_before: served,
        ..Truth::default()
    };
    if let Some(after) = fault(stream, shape).await? {
        return Ok(after);
    }
    server.served.fetch_add(1, Relaxed);
    match request.path.contains("audio") {
        true => media::transcribe(stream, server, request, shape, received_at, truth).await,
        false => media::draw(stream, server, request, shape, received_at, truth).await,
    }
}

/// The faults that need no look at the request.
async fn fault(stream: &mut TcpStream, shape: Shape) -> std::io::Result<Option<After>> {
    let after = match shape {
        Shape::Status(code) => {
            let kind = if code == 429 { "rate_limit_error" } else { "simulated_error" };
            json_answer(stream, code, &error(kind, "a simulated failure")).await?
        }
        Shape::Oom => {
            let message = "CUDA out of memory. Tried to allocate 2.00 GiB";
            json_answer(stream, 500, &error("internal_server_error", message)).await?
        }
        Shape::Html => write_answer(stream, 200, "text/html", b"<html><body>Welcome</body></html>").await?,
        Shape::Refuse => After::Close,
        Shape::StallBeforeHead => wait_for_client(stream).await?,
        _ => return Ok(None),
    };
    Ok(Some(after))
}

/// Says nothing until the client goes away.
pub async fn wait_for_client(stream: &mut TcpStream) -> std::io::Result<After> {
    let mut byte = [0];
    while tokio::io::AsyncReadExt::read(stream, &mut byte).await? > 0 {}
    Ok(After::Close)
}

fn error(kind: &str, message: &str) -> serde_json::Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

/// Writes a JSON answer.
pub async fn json_answer(
    stream: &mut TcpStream,
    status: u16,
    body: &serde_json::Value,
) -> std::io::Result<After> {
    write_answer(stream, status, "application/json", body.to_string().as_bytes()).await
}

/// Writes an answer whose length is known.
pub async fn write_answer(
    stream: &mut TcpStream,
    status: u16,
    kind: &str,
    body: &[u8],
) -> std::io::Result<After> {
    let mut bytes = format!(
        "HTTP/1.1 {status} Status\r\nserver: {REFSERVER_NAME}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    stream.write_all(&bytes).await?;
    Ok(After::Keep)
}

async fn metrics(stream: &mut TcpStream, server: &Server) -> std::io::Result<After> {
    let text = format!(
        "# TYPE refserver_requests_total counter\nrefserver_requests_total {}\n\
         # TYPE refserver_tokens_total counter\nrefserver_tokens_total {}\n",
        server.served.load(Relaxed),
        server.tokens.load(Relaxed)
    );
    write_answer(stream, 200, "text/plain; version=0.0.4", text.as_bytes()).await
}
