//! Generating one answer on time.

use std::io;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::connection::{After, json_answer, wait_for_client};
use super::request::Asked;
use super::shape::Shape;
use super::truth::Truth;
use super::{Server, UsagePlace};
use crate::answer::REFSERVER_NAME;
use crate::pacing::PreciseTimer;

/// Which API is being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completion,
}

/// The words answers are made of: one a token.
const WORDS: &[&str] = &[" river", " stone", " light", " green", " quiet", " north", " paper", " seven"];

/// One answer under way.
pub struct Answer<'a> {
    server: &'a Server,
    asked: &'a Asked,
    api: Api,
    id: String,
    received_at: Instant,
    truth: Truth,
    random: SmallRng,
    timer: PreciseTimer,
    /// What every event with a token begins with.
    event_start: String,
    /// The event being made.
    data: String,
    /// Events not yet written.
    out: Vec<u8>,
    events: usize,
}

impl<'a> Answer<'a> {
    /// An answer to a request received just now.
    pub fn new(
        server: &'a Server,
        asked: &'a Asked,
        api: Api,
        sequence: u64,
        received_at: Instant,
        truth: Truth,
    ) -> Self {
        let id = format!("sim-{sequence}");
        let event_start = format!(
            "{{\"id\":\"{id}\",\"object\":\"{}\",\"created\":0,\"model\":{},\"choices\":[{{\"index\":0,",
            object_name(api),
            json!(asked.options.model)
        );
        Self {
            server,
            asked,
            api,
            id,
            event_start,
            data: String::new(),
            received_at,
            truth,
            random: SmallRng::seed_from_u64(
                asked.options.seed ^ sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            ),
            timer: PreciseTimer::new(),
            out: Vec::with_capacity(512),
            events: 0,
        }
    }

    /// Answers in one JSON document.
    pub async fn whole(&mut self, stream: &mut TcpStream) -> io::Result<After> {
        let options = &self.asked.options;
        let tokens = if options.shape == Shape::Empty { 0 } else { self.asked.tokens };
        self.timer
            .sleep_until(self.received_at + options.ttft + options.itl * tokens.saturating_sub(1) as u32)
            .await;
        if options.shape == Shape::Cut {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{\"id\"").await?;
            return Ok(After::Close);
        }
        if matches!(options.shape, Shape::InBandError | Shape::ErrorEvent) {
            return json_answer(stream, 200, &json!({"error": {"message": "a simulated error"}})).await;
        }
        let text: String = (0..tokens).map(word).collect();
        let finish = match options.shape {
            Shape::MissingFinish | Shape::MissingFinishAndDone => Value::Null,
            _ => json!("length"),
        };
        let choice = match self.api {
            Api::Chat => {
                json!({"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish})
            }
            Api::Completion => json!({"index": 0, "text": text, "finish_reason": finish}),
        };
        let mut body = json!({"id": self.id, "object": "chat.completion", "created": 0,
                              "model": options.model, "choices": [choice]});
        if options.usage != UsagePlace::None {
            body["usage"] = self.usage();
        }
        self.truth.words = tokens;
        self.truth.complete = finish != Value::Null;
        self.note_end();
        json_answer(stream, 200, &body).await
    }

    /// Answers in an event stream.
    pub async fn stream(&mut self, stream: &mut TcpStream) -> io::Result<After> {
        let options = &self.asked.options;
        self.begin(stream).await?;
        let shape = options.shape;
        let tokens = if shape == Shape::Empty { 0 } else { self.asked.tokens };
        let trouble_at = match shape {
            Shape::Cut | Shape::InBandError | Shape::ErrorEvent | Shape::BadJson | Shape::Stall => tokens / 2,
            _ => u64::MAX,
        };
        let mut due = self.received_at + self.jittered(options.ttft);
        let mut sent = 0;
        while sent < tokens {
            if sent >= trouble_at {
                return self.trouble(stream).await;
            }
            let count = options.tokens_per_chunk.max(1).min(tokens - sent);
            self.timer.sleep_until(due).await;
            due += self.jittered(options.itl) * count as u32;
            self.note_chunk();
            self.token_event(sent, count);
            sent += count;
            self.flush(stream, sent == tokens).await?;
        }
        self.truth.words = tokens;
        self.end(stream).await
    }

    /// The head and the chunk that names the role, at once: neither is a token.
    async fn begin(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nserver: {REFSERVER_NAME}\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
             transfer-encoding: chunked\r\n\r\n"
        );
        if self.api == Api::Chat {
            self.choices_event(
                json!([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]),
                false,
            );
        }
        let events = std::mem::take(&mut self.out);
        self.events = 0;
        self.out.extend_from_slice(head.as_bytes());
        push_chunk(&mut self.out, &events);
        self.write_out(stream).await
    }

    /// Finish reason, usage, `[DONE]`, end of body: each where the shape has it.
    async fn end(&mut self, stream: &mut TcpStream) -> io::Result<After> {
        let shape = self.asked.options.shape;
        let finished = !matches!(shape, Shape::MissingFinish | Shape::MissingFinishAndDone);
        if finished {
            let choice = match self.api {
                Api::Chat => json!({"index": 0, "delta": {}, "finish_reason": "length"}),
                Api::Completion => json!({"index": 0, "text": "", "finish_reason": "length"}),
            };
            self.choices_event(json!([choice]), self.asked.options.usage == UsagePlace::Finish);
        }
        if self.asked.options.usage == UsagePlace::Final && self.asked.include_usage {
            self.choices_event(json!([]), true);
        }
        self.flush(stream, true).await?;
        self.truth.complete = finished;
        self.note_end();
        let done = !matches!(shape, Shape::MissingFinishAndDone | Shape::NoDone | Shape::NoDoneOpen);
        if done {
            self.asked.options.wire.event(&mut self.out, None, "[DONE]");
            self.flush(stream, true).await?;
        }
        if matches!(shape, Shape::OpenAfterDone | Shape::NoDoneOpen) {
            return wait_for_client(stream).await;
        }
        stream.write_all(b"0\r\n\r\n").await?;
        Ok(if self.server.options.close_after_stream { After::Close } else { After::Keep })
    }

    async fn trouble(&mut self, stream: &mut TcpStream) -> io::Result<After> {
        self.flush(stream, true).await?;
        self.note_end();
        let wire = &self.asked.options.wire;
        let error =
            json!({"error": {"message": "a simulated error", "type": "internal_server_error", "code": 500}});
        match self.asked.options.shape {
            Shape::Cut => return Ok(After::Close),
            Shape::Stall => return wait_for_client(stream).await,
            Shape::ErrorEvent => {
                wire.event(&mut self.out, Some("error"), "{\"message\": \"a simulated error\"}")
            }
            Shape::BadJson => wire.event(&mut self.out, None, "{\"choices\": [{\"delta\""),
            _ => {
                wire.event(&mut self.out, None, &error.to_string());
                wire.event(&mut self.out, None, "[DONE]");
            }
        }
        self.flush(stream, true).await?;
        stream.write_all(b"0\r\n\r\n").await?;
        Ok(After::Keep)
    }

    fn token_event(&mut self, first: u64, count: u64) {
        let options = &self.asked.options;
        let field = match self.api {
            Api::Completion => "text",
            Api::Chat if first < options.reasoning_tokens => "reasoning_content",
            Api::Chat => "content",
        };
        if options.usage == UsagePlace::Every {
            let text: String = (first..first + count).map(word).collect();
            let choice = match self.api {
                Api::Completion => json!({"index": 0, "text": text, "finish_reason": null}),
                Api::Chat => json!({"index": 0, "delta": {field: text}, "finish_reason": null}),
            };
            return self.choices_event(json!([choice]), true);
        }
        // By far the most events are these: from ready-made parts, so that the server costs little beside its clients.
        let (open, close) = if self.api == Api::Chat { ("\"delta\":{", "\"}") } else { ("", "\"") };
        let mut data = std::mem::take(&mut self.data);
        data.clear();
        data.push_str(&self.event_start);
        data.push_str(open);
        data.push('"');
        data.push_str(field);
        data.push_str("\":\"");
        (first..first + count).for_each(|index| data.push_str(word(index)));
        data.push_str(close);
        data.push_str(",\"finish_reason\":null}]}");
        options.wire.event(&mut self.out, None, &data);
        self.data = data;
        self.events += 1;
    }

    fn choices_event(&mut self, choices: Value, with_usage: bool) {
        let mut data = json!({"id": self.id, "object": object_name(self.api), "created": 0, "model": self.asked.options.model, "choices": choices});
        if with_usage {
            data["usage"] = self.usage();
        }
        self.asked.options.wire.event(&mut self.out, None, &data.to_string());
        self.events += 1;
    }

    fn usage(&self) -> Value {
        let (prompt, completion) = (self.asked.prompt_tokens, self.asked.tokens);
        let mut usage = json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion});
        if self.asked.options.reasoning_tokens > 0 {
            let reasoning = self.asked.options.reasoning_tokens.min(completion);
            usage["completion_tokens_details"] = json!({"reasoning_tokens": reasoning});
        }
        usage
    }

    fn note_chunk(&mut self) {
        if let Some(log) = &self.server.truth {
            self.truth.chunks_unix_ns.push(log.now_ns());
        }
    }

    /// Notes the end before the last bytes go out: whoever has them can already read the truth.
    fn note_end(&mut self) {
        if let Some(log) = &self.server.truth {
            self.truth.ended_unix_ns = log.now_ns();
            log.write(&self.truth);
        }
    }

    /// Writes the events collected, as one chunk, if there are enough of them or `all` must go.
    async fn flush(&mut self, stream: &mut TcpStream, all: bool) -> io::Result<()> {
        if self.out.is_empty() || !all && self.events < self.asked.options.wire.events_per_write {
            return Ok(());
        }
        let events = std::mem::take(&mut self.out);
        push_chunk(&mut self.out, &events);
        self.events = 0;
        self.write_out(stream).await
    }

    async fn write_out(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        match self.asked.options.wire.split_bytes {
            0 => stream.write_all(&self.out).await?,
            size => {
                for piece in self.out.chunks(size) {
                    stream.write_all(piece).await?;
                    tokio::task::yield_now().await; // let it leave before the next one
                }
            }
        }
        self.out.clear();
        Ok(())
    }

    fn jittered(&mut self, wait: Duration) -> Duration {
        match self.asked.options.jitter {
            jitter if jitter > 0.0 => {
                wait.mul_f64((1.0 + jitter * self.random.random_range(-1.0..1.0)).max(0.0))
            }
            _ => wait,
        }
    }
}

fn object_name(api: Api) -> &'static str {
    if api == Api::Chat { "chat.completion.chunk" } else { "text_completion" }
}

fn word(index: u64) -> &'static str {
    WORDS[(index % WORDS.len() as u64) as usize]
}

/// Appends `payload` as one chunk; an empty one would end the body and is left out.
fn push_chunk(out: &mut Vec<u8>, payload: &[u8]) {
    if payload.is_empty() {
        return;
    }
    out.extend_from_slice(format!("{:x}\r\n", payload.len()).as_bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}
