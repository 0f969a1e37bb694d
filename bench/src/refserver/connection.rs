//! One client connection: requests in, answers out, until either side has enough.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::answer::{self, Api};
use super::request::{self, Request};
use super::shape::Shape;
use super::{Server, truth::Truth};
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
    let mut pending = Vec::new();
    let mut served = 0;
    while let Ok(Some(request)) = request::read(&mut stream, &mut pending).await {
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
        ("GET", "/v1/models" | "/models") => {
            let model = json!({"id": server.options.model, "object": "model", "created": 0, "owned_by": REFSERVER_NAME});
            return json_answer(stream, 200, &json!({"object": "list", "data": [model]})).await;
        }
        ("GET", "/metrics") => return metrics(stream, server).await,
        ("POST", "/v1/chat/completions" | "/chat/completions") => Api::Chat,
        ("POST", "/v1/completions" | "/completions") => Api::Completion,
        _ => return json_answer(stream, 404, &error("not_found_error", "no such route")).await,
    };
    let received_unix_ns = server.truth.as_ref().map_or(0, |truth| truth.now_ns());
    let received_at = std::time::Instant::now();
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
    match asked.options.shape {
        Shape::Status(code) => {
            let kind = if code == 429 { "rate_limit_error" } else { "simulated_error" };
            return json_answer(stream, code, &error(kind, "a simulated failure")).await;
        }
        Shape::Oom => {
            let message = "CUDA out of memory. Tried to allocate 2.00 GiB";
            return json_answer(stream, 500, &error("internal_server_error", message)).await;
        }
        Shape::Html => {
            return write_answer(stream, 200, "text/html", b"<html><body>Welcome</body></html>").await;
        }
        Shape::Refuse => return Ok(After::Close),
        Shape::StallBeforeHead => return wait_for_client(stream).await,
        _ => {}
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

async fn write_answer(
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
