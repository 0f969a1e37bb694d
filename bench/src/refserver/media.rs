//! Transcriptions and generated images: simulated like text, after the time to first token.

use std::io;
use std::time::Instant;

use base64::Engine;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::Server;
use super::connection::{After, json_answer, wait_for_client, write_answer};
use super::request::Request;
use super::shape::Shape;
use super::truth::Truth;
use crate::images::{parse_size, synthetic};
use crate::pacing::PreciseTimer;

/// What every transcript says.
pub const TRANSCRIPT: &str = "the quick brown fox jumps over the lazy dog";

/// Answers a transcription request in the format it asks for.
pub(super) async fn transcribe(
    stream: &mut TcpStream,
    server: &Server,
    request: &Request,
    shape: Shape,
    received_at: Instant,
    truth: Truth,
) -> io::Result<After> {
    let field = |name: &str| form_field(&request.body, name);
    if field("model").is_none() || find(&request.body, b"name=\"file\"").is_none() {
        let error =
            json!({"error": {"message": "model and file are required", "type": "invalid_request_error"}});
        return json_answer(stream, 400, &error).await;
    }
    PreciseTimer::new().sleep_until(received_at + server.options.ttft).await;
    let text = if shape == Shape::Empty { "" } else { TRANSCRIPT };
    note(server, truth, text.split_whitespace().count() as u64);
    let times = ("00:00:00,000", "00:00:05,000");
    match field("response_format").as_deref() {
        Some("text") => write_answer(stream, 200, "text/plain", text.as_bytes()).await,
        Some("srt") => {
            let body = format!("1\n{} --> {}\n{text}\n\n", times.0, times.1);
            write_answer(stream, 200, "text/plain", body.as_bytes()).await
        }
        Some("vtt") => {
            let body = format!("WEBVTT\n\n00:00.000 --> 00:05.000\n{text}\n\n");
            write_answer(stream, 200, "text/vtt", body.as_bytes()).await
        }
        format => {
            let mut body = json!({"text": text});
            if format == Some("verbose_json") {
                body["language"] = json!("en");
                body["duration"] = json!(5.0);
            }
            if server.options.inference_time {
                body["inference_time"] = json!(server.options.ttft.as_secs_f64());
            }
            json_answer(stream, 200, &body).await
        }
    }
}

/// Answers a request for images with made-up ones of the size asked for.
pub(super) async fn draw(
    stream: &mut TcpStream,
    server: &Server,
    request: &Request,
    shape: Shape,
    received_at: Instant,
    truth: Truth,
) -> io::Result<After> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let size = body["size"].as_str().unwrap_or("1024x1024");
    let (Ok((width, height)), Some(_)) = (parse_size(size), body["prompt"].as_str()) else {
        return json_answer(stream, 422, &json!({"detail": "prompt and a proper size are required"})).await;
    };
    let count = if shape == Shape::Empty { 0 } else { body["n"].as_u64().unwrap_or(1).min(16) };
    let number = truth.received_unix_ns;
    // Made while the model would be thinking, so that it costs no extra time.
    let link = body["response_format"] == "url";
    let made = tokio::task::spawn_blocking(move || -> Result<Vec<String>, String> {
        let encode = |bytes: Vec<u8>| base64::engine::general_purpose::STANDARD.encode(bytes);
        let numbers = (0..count).map(|image| number.wrapping_add(image));
        match link {
            // Made again by whoever follows the link.
            true => Ok(numbers.map(|number| format!("{IMAGES}{width}x{height}-{number}.jpg")).collect()),
            false => numbers.map(|number| synthetic(width, height, number).map(encode)).collect(),
        }
    });
    let images = made.await.map_err(io::Error::other)?.map_err(io::Error::other)?;
    PreciseTimer::new().sleep_until(received_at + server.options.ttft).await;
    note(server, truth, count);
    let host = request.host.as_deref().unwrap_or("localhost");
    let data: Vec<Value> = images
        .into_iter()
        .map(|image| match (link, shape) {
            (true, Shape::Cut) => json!({"url": format!("http://{host}{IMAGES}gone.jpg")}),
            (true, Shape::Stall) => json!({"url": format!("http://{host}{IMAGES}{NEVER}")}),
            // Where cloud machines keep their credentials.
            (true, Shape::BadJson) => json!({"url": "http://169.254.169.254/latest/meta-data/image.jpg"}),
            (true, _) => json!({"url": format!("http://{host}{image}?signature=simulated")}),
            (false, Shape::BadJson) => json!({"b64_json": "####"}),
            (false, Shape::Cut) => json!({"b64_json": image.get(..16)}),
            (false, _) => json!({"b64_json": image}),
        })
        .collect();
    json_answer(stream, 200, &json!({"created": 0, "data": data})).await
}

/// The shape that the truth log gives requests for images behind links.
pub const LINKED: &str = "LinkedImage";

/// The path below which generated images are.
pub const IMAGES: &str = "/images/";

/// The image behind a link of this server's, made again: its name says which.
pub fn linked_image(path: &str) -> Option<Vec<u8>> {
    let (size, number) = path.strip_prefix(IMAGES)?.strip_suffix(".jpg")?.split_once('-')?;
    let ((width, height), number) = (parse_size(size).ok()?, number.parse().ok()?);
    synthetic(width, height, number).ok()
}

/// An image that never comes.
const NEVER: &str = "never.jpg";

/// Sends the image behind a link, and notes that it was asked for.
pub(super) async fn send_linked_image(
    stream: &mut TcpStream,
    server: &Server,
    request: &Request,
) -> io::Result<After> {
    let received_unix_ns = server.truth.as_ref().map_or(0, |truth| truth.unix_ns(request.received_at));
    let truth = Truth { shape: LINKED.into(), received_unix_ns, ..Truth::default() };
    let path = request.path.clone();
    if path.ends_with(NEVER) {
        return wait_for_client(stream).await;
    }
    let made = tokio::task::spawn_blocking(move || linked_image(&path)).await.map_err(io::Error::other)?;
    note(server, truth, 0);
    match made {
        Some(image) => write_answer(stream, 200, "image/jpeg", &image).await,
        None => json_answer(stream, 404, &json!({"detail": "no such image"})).await,
    }
}

fn note(server: &Server, mut truth: Truth, words: u64) {
    if let Some(log) = &server.truth {
        truth.ended_unix_ns = log.now_ns();
        truth.words = words;
        truth.complete = true;
        log.write(&truth);
    }
}

/// The value of a multipart form field that is not a file.
fn form_field(body: &[u8], name: &str) -> Option<String> {
    let at = find(body, format!("name=\"{name}\"\r\n\r\n").as_bytes())?;
    let value = &body[at + name.len() + 11..];
    let end = find(value, b"\r\n--")?;
    Some(String::from_utf8_lossy(&value[..end]).into_owned())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}
