//! Reading one model answer, streamed or whole: when its parts arrived, what the server counted, how it ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::failure::{Failure, FailureKind};
use crate::http::pool::SendError;
use crate::http::response::{Head, Progress, Sink};
use crate::live::Live;
use crate::openai::{Answer, Message, Usage, error_message};
use crate::sse;
use crate::template::Template;

/// The `server` header of our own reference server.
pub const REFSERVER_NAME: &str = "benchtrail-refserver";

/// Once an answer has said why it finished, this long a silence ends it (a server need not send `[DONE]`).
const SILENCE_AFTER_FINISH: Duration = Duration::from_millis(500);

/// Error bodies and whole answers longer than this are not kept.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// What one successful answer showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// First non-empty visible content or tool call.
    pub first_visible: Option<Instant>,
    /// First non-empty reasoning.
    pub first_reasoning: Option<Instant>,
    /// First output of any kind.
    pub first_output: Option<Instant>,
    /// Last output of any kind.
    pub last_output: Option<Instant>,
    /// Gaps between consecutive chunks with output, in nanoseconds.
    pub gaps_ns: Vec<u64>,
    /// Chunks with output.
    pub chunks: u64,
    /// Words of the answer.
    pub words: u64,
    /// The server's token counts.
    pub usage: Option<Usage>,
    /// Why the model stopped.
    pub finish_reason: Option<String>,
    /// `[DONE]` was seen.
    pub done_marker: bool,
    /// When the answer was complete, if that was before the body ended.
    pub complete_at: Option<Instant>,
    /// The whole body, where the tool looks into it later.
    pub body: Vec<u8>,
}

impl Measured {
    /// The mean gap between chunks with output; none with fewer than two of them.
    pub fn mean_gap(&self) -> Option<Duration> {
        let (first, last) = (self.first_output?, self.last_output?);
        let gaps = u32::try_from(self.chunks.checked_sub(1)?).ok().filter(|gaps| *gaps > 0)?;
        Some(last.saturating_duration_since(first) / gaps)
    }
}

/// Reads one answer. Feed it as the [`Sink`] of an exchange, then ask for the result.
#[derive(Debug)]
pub struct AnswerReader {
    streamed: bool,
    head: Option<Head>,
    parser: sse::Parser,
    template: Template,
    body: Vec<u8>,
    measured: Measured,
    failure: Option<Failure>,
    in_word: bool,
    /// A JSON body where a stream was asked for.
    json_for_stream: bool,
    live: Option<Counting>,
}

/// Where output is counted as it arrives.
#[derive(Debug)]
struct Counting {
    live: Arc<Live>,
    started_at: Option<Instant>,
}

impl AnswerReader {
    /// A reader for a streamed or a whole answer.
    pub fn new(streamed: bool) -> Self {
        Self {
            streamed,
            head: None,
            parser: sse::Parser::new(),
            template: Template::default(),
            body: Vec::new(),
            measured: Measured::default(),
            failure: None,
            in_word: false,
            json_for_stream: false,
            live: None,
        }
    }

    /// Counts output into `live` as it arrives, and times the first of it from `started_at`.
    pub fn count_into(&mut self, live: Arc<Live>, started_at: Option<Instant>) {
        self.live = Some(Counting { live, started_at });
    }

    /// The HTTP status, once there is one.
    pub fn status(&self) -> Option<u16> {
        self.head.as_ref().map(|head| head.status)
    }

    /// True when our own reference server answered.
    pub fn is_simulated(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.server.starts_with(REFSERVER_NAME))
    }

    /// What had arrived, for the record of a failed request.
    pub fn so_far(&self) -> &Measured {
        &self.measured
    }

    /// What arrived, and the failure if it is no complete answer, given how the exchange ended.
    pub fn finish(mut self, sent: Result<(), &SendError>, ended_at: Instant) -> (Measured, Option<Failure>) {
        let failure = self.judge(sent, ended_at).err();
        (self.measured, failure)
    }

    fn judge(&mut self, sent: Result<(), &SendError>, ended_at: Instant) -> Result<(), Failure> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let status = self.status();
        if let Some(code) = status.filter(|code| !(200..300).contains(code)) {
            return Err(Failure::new(FailureKind::of_status(code), status, error_message(&self.body)));
        }
        if let Err(error) = sent {
            return Err(Failure::of_send(error, self.streamed, status));
        }
        if status.is_none() {
            return Err(Failure::new(FailureKind::Connection, None, "no response"));
        }
        if !self.streamed {
            self.read_whole_answer(ended_at)?;
        }
        if self.measured.finish_reason.is_none() {
            let told = if self.measured.done_marker { "[DONE] came" } else { "the body ended" };
            let message =
                format!("{told} without a finish_reason; {} chunks had arrived", self.measured.chunks);
            return Err(Failure::new(FailureKind::MissingFinish, status, message));
        }
        Ok(())
    }

    fn is_success_status(&self) -> bool {
        matches!(self.status(), Some(200..=299))
    }

    fn fail(&mut self, kind: FailureKind, message: impl Into<String>) {
        let status = self.status();
        self.failure.get_or_insert_with(|| Failure::new(kind, status, message));
    }

    fn read_whole_answer(&mut self, ended_at: Instant) -> Result<(), Failure> {
        let status = self.status();
        let body = std::mem::take(&mut self.body);
        let answer: Answer = serde_json::from_slice(&body).map_err(|error| {
            Failure::new(FailureKind::Decode, status, format!("not a JSON answer: {error}"))
        })?;
        if let Some(text) = answer.error_text() {
            return Err(Failure::new(FailureKind::InBandError, status, error_message(text.as_bytes())));
        }
        self.take_answer(&answer, ended_at);
        self.measured.gaps_ns.clear();
        Ok(())
    }

    fn take_event(&mut self, event: sse::Event<'_>, at: Instant) -> Progress {
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.measured.done_marker = true;
            self.measured.complete_at = Some(at);
            return Progress::Complete;
        }
        if data.is_empty() {
            return Progress::More;
        }
        let is_message = event.kind.is_empty();
        if let Some((text, visible)) = self.template.text_of(data).filter(|_| is_message) {
            self.take_text(text, visible, at);
            return Progress::More;
        }
        if let Ok(answer) = serde_json::from_slice::<Answer>(data) {
            if let Some((text, visible)) = answer.only_text().filter(|_| is_message) {
                self.template.keep(data, text, visible);
            }
            return self.take_parsed(&answer, event.kind, data, at);
        }
        // Something in it may be no UTF-8: servers cut tokens in the middle of a character.
        let text = String::from_utf8_lossy(data);
        match serde_json::from_str::<Answer>(&text) {
            Ok(answer) => self.take_parsed(&answer, event.kind, data, at),
            Err(_) if event.kind == b"error" => {
                self.fail(FailureKind::InBandError, &*text);
                Progress::Complete
            }
            Err(error) => {
                self.fail(FailureKind::Decode, format!("an event is no JSON answer: {error}"));
                Progress::Complete
            }
        }
    }

    fn take_parsed(&mut self, answer: &Answer<'_>, kind: &[u8], data: &[u8], at: Instant) -> Progress {
        let message = match answer.error_text() {
            Some(error) => error_message(error.as_bytes()),
            None if kind == b"error" => error_message(data),
            None => {
                self.take_answer(answer, at);
                return Progress::More;
            }
        };
        self.fail(FailureKind::InBandError, message);
        Progress::Complete
    }

    fn take_answer(&mut self, answer: &Answer<'_>, at: Instant) {
        if let Some(usage) = answer.usage {
            self.measured.usage = Some(usage); // servers that report as they go: the last one counts
        }
        for choice in &answer.choices {
            let message = choice.delta.as_ref().or(choice.message.as_ref());
            let reasoning = message.is_some_and(has_reasoning);
            let visible = !choice.text.0.is_empty() || message.is_some_and(has_visible_output);
            if visible || reasoning {
                self.take_output(visible, reasoning, at);
            }
            self.count_words(&choice.text.0);
            if let Some(message) = message {
                for text in
                    [&message.reasoning_content, &message.reasoning, &message.content, &message.refusal]
                {
                    self.count_words(&text.0);
                }
            }
            if let Some(reason) = choice.finish_reason.as_deref().filter(|reason| !reason.is_empty()) {
                self.measured.finish_reason.get_or_insert_with(|| reason.to_owned());
            }
        }
    }

    /// Takes a chunk that holds this text and nothing else.
    fn take_text(&mut self, text: &str, visible: bool, at: Instant) {
        if !text.is_empty() {
            self.take_output(visible, !visible, at);
        }
        self.count_words(text);
    }

    fn take_output(&mut self, visible: bool, reasoning: bool, at: Instant) {
        let measured = &mut self.measured;
        measured.chunks += 1;
        if let Some(counting) = self.live.as_ref().filter(|_| self.streamed) {
            counting.live.chunk();
            if let Some(started_at) =
                counting.started_at.filter(|_| visible && measured.first_visible.is_none())
            {
                counting.live.first_token(at.saturating_duration_since(started_at));
            }
        }
        if visible {
            measured.first_visible.get_or_insert(at);
        }
        if reasoning {
            measured.first_reasoning.get_or_insert(at);
        }
        measured.first_output.get_or_insert(at);
        if let Some(last) = measured.last_output {
            measured.gaps_ns.push(at.saturating_duration_since(last).as_nanos() as u64);
        }
        measured.last_output = Some(at);
    }

    /// Counts words across chunk borders: a word cut in two is one word.
    fn count_words(&mut self, text: &str) {
        for character in text.chars() {
            let space = match character.is_ascii() {
                true => matches!(character, ' ' | '\t'..='\r'),
                false => character.is_whitespace(),
            };
            if !space && !self.in_word {
                self.measured.words += 1;
            }
            self.in_word = !space;
        }
    }
}

fn has_reasoning(message: &Message<'_>) -> bool {
    !message.reasoning_content.0.is_empty() || !message.reasoning.0.is_empty()
}

fn has_visible_output(message: &Message<'_>) -> bool {
    !message.content.0.is_empty()
        || !message.refusal.0.is_empty()
        || message.tool_calls.0
        || message.function_call.0
}

impl Sink for AnswerReader {
    fn head(&mut self, head: Head, _: Instant) {
        let kind = head.content_type.split(';').next().unwrap_or_default().trim();
        let proper = match self.streamed {
            true => matches!(kind, "text/event-stream" | "application/octet-stream" | "text/plain" | ""),
            false => kind.ends_with("json") || matches!(kind, "application/octet-stream" | "text/plain" | ""),
        };
        let wrong = (200..300).contains(&head.status) && !proper;
        let kind = kind.to_owned();
        self.json_for_stream = self.streamed && head.content_type.contains("json");
        self.head = Some(head);
        // A JSON body where a stream was asked for is kept: it may hold the server's error message.
        if wrong && !(self.streamed && kind.ends_with("json")) {
            let wanted = if self.streamed { "an event stream" } else { "JSON" };
            self.fail(FailureKind::WrongContentType, format!("{kind} where {wanted} was expected"));
        }
    }

    fn body(&mut self, piece: &[u8], at: Instant) -> Progress {
        if self.failure.is_some() {
            return Progress::Complete;
        }
        if !self.streamed || !self.is_success_status() || self.json_for_stream {
            self.body.extend_from_slice(piece);
            if self.body.len() > BODY_LIMIT {
                self.fail(FailureKind::Body, "the body is larger than 64 MiB");
                return Progress::Complete;
            }
            if self.json_for_stream && self.is_success_status() {
                self.judge_json_for_stream();
            }
            return Progress::More;
        }
        let mut parser = std::mem::take(&mut self.parser);
        let mut progress = Progress::More;
        parser.feed(piece, |event| {
            if progress == Progress::More {
                progress = self.take_event(event, at);
            }
        });
        self.parser = parser;
        progress
    }

    fn complete_after_silence(&self) -> Option<Duration> {
        (self.streamed && self.measured.finish_reason.is_some()).then_some(SILENCE_AFTER_FINISH)
    }
}

impl AnswerReader {
    fn judge_json_for_stream(&mut self) {
        let Ok(answer) = serde_json::from_slice::<serde_json::Value>(&self.body) else { return };
        let message = match answer.get("error").is_some_and(|error| !error.is_null()) {
            true => (FailureKind::InBandError, error_message(&self.body)),
            false => (
                FailureKind::WrongContentType,
                "a whole JSON answer where an event stream was asked for".into(),
            ),
        };
        self.fail(message.0, message.1);
    }
}
