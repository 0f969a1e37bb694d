//! What is kept of one request.

use std::time::{Duration, Instant};

use crate::answer::Measured;
use crate::extra::{Attempt, Extra};
use crate::failure::{Failure, FailureKind};
use crate::http::pool::Sent;

/// To which part of the run a request belongs. Decided when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the measurement, behind a barrier.
    Warmup,
    /// Ended while the load was still rising.
    RampUp,
    /// Counts.
    Measured,
}

impl Phase {
    /// The name used in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warmup => "warmup",
            Self::RampUp => "ramp_up",
            Self::Measured => "measured",
        }
    }
}

/// How a request ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Answered completely.
    Success(Box<Measured>),
    /// Failed, with what had arrived by then.
    Failed(Failure, Box<Measured>),
    /// Still under way when the run was cancelled.
    Incomplete,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its number within its phase, from 0.
    pub index: u64,
    /// Which endpoint, by position.
    pub endpoint: usize,
    /// Its part of the run.
    pub phase: Phase,
    /// Its request id, as sent in `x-request-id`.
    pub request_id: String,
    /// Open loop: when it should have been sent.
    pub scheduled: Option<Instant>,
    /// When it could have been sent: its slot was free, or its moment had come.
    pub ready_at: Instant,
    /// Just before it was sent, or before a connection was opened for it.
    pub started_at: Instant,
    /// How it was sent, if an answer came.
    pub sent: Option<Sent>,
    /// When it ended.
    pub ended_at: Instant,
    /// Words of its prompt; none where there is no prompt.
    pub prompt_words: Option<u64>,
    /// The answer is text counted in tokens.
    pub text: bool,
    /// Whether the answer was to be streamed.
    pub streamed: bool,
    /// HTTP status.
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
    /// The modality's own part.
    pub extra: Extra,
    /// Each try, where there may be several.
    pub attempts: Vec<Attempt>,
}

/// The durations the methodology defines, of one success.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timings {
    /// Start to complete answer.
    pub response_time: Duration,
    /// Start to first visible output; not streamed: the response time.
    pub ttft: Option<Duration>,
    /// Start to first output of any kind.
    pub first_token: Option<Duration>,
    /// Start to first reasoning.
    pub first_reasoning: Option<Duration>,
    /// (response time − TTFT) / completion tokens.
    pub tpot: Option<Duration>,
    /// (last output − first output) / (completion tokens − 1).
    pub tpot_excl_first: Option<Duration>,
    /// Scheduled moment to complete answer.
    pub from_schedule: Option<Duration>,
}

impl Record {
    /// How failures of its kind of request are called: image generation has classes of its own.
    pub fn names_of_failures(&self) -> fn(FailureKind) -> &'static str {
        match self.extra {
            Extra::Images(_) => FailureKind::imagegen_name,
            _ => FailureKind::name,
        }
    }

    /// The timings of a success; none otherwise.
    pub fn timings(&self) -> Option<Timings> {
        let Outcome::Success(measured) = &self.outcome else { return None };
        let since_start = |at: Instant| at.saturating_duration_since(self.started_at);
        let response_time = since_start(self.ended_at);
        let mut timings = Timings {
            response_time,
            from_schedule: self.scheduled.map(|at| self.ended_at.saturating_duration_since(at)),
            ..Timings::default()
        };
        if measured.first_output.is_none() || !self.text {
            return Some(timings); // an empty answer has no first token
        }
        if !self.streamed {
            timings.ttft = Some(response_time);
            timings.first_token = Some(response_time);
            return Some(timings);
        }
        timings.ttft = measured.first_visible.map(since_start);
        timings.first_token = measured.first_output.map(since_start);
        timings.first_reasoning = measured.first_reasoning.map(since_start);
        let tokens = measured.usage.and_then(|usage| usage.completion_tokens);
        if let (Some(ttft), Some(tokens @ 1..)) = (timings.ttft, tokens) {
            timings.tpot = Some(divide(response_time.saturating_sub(ttft), tokens));
        }
        if let (Some(first), Some(last), Some(tokens @ 2..)) =
            (measured.first_output, measured.last_output, tokens)
        {
            timings.tpot_excl_first = Some(divide(last.saturating_duration_since(first), tokens - 1));
        }
        Some(timings)
    }
}

fn divide(duration: Duration, by: u64) -> Duration {
    Duration::from_nanos((duration.as_nanos() / u128::from(by.max(1))) as u64)
}

/// A success of 11 tokens: reasoning after 100 ms, visible output after 200, the last after 300, complete after 310.
#[cfg(test)]
pub(crate) fn example(streamed: bool) -> Record {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let usage = crate::openai::Usage { completion_tokens: Some(11), ..Default::default() };
    let measured = Measured {
        first_visible: Some(at(200)),
        first_reasoning: Some(at(100)),
        first_output: Some(at(100)),
        last_output: Some(at(300)),
        usage: Some(usage),
        ..Measured::default()
    };
    Record {
        index: 0,
        endpoint: 0,
        phase: Phase::Measured,
        request_id: String::new(),
        scheduled: Some(start - Duration::from_millis(50)),
        ready_at: start,
        started_at: start,
        sent: None,
        ended_at: at(310),
        prompt_words: Some(1),
        text: true,
        streamed,
        status: Some(200),
        outcome: Outcome::Success(Box::new(measured)),
        extra: Extra::None,
        attempts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_follow_the_methodology() {
        let timings = example(true).timings().unwrap();
        let ms = Duration::from_millis;
        assert_eq!(timings.response_time, ms(310));
        assert_eq!(timings.ttft, Some(ms(200)));
        assert_eq!(timings.first_token, Some(ms(100)));
        assert_eq!(timings.tpot, Some(ms(10)));
        assert_eq!(timings.tpot_excl_first, Some(ms(20)));
        assert_eq!(timings.from_schedule, Some(ms(360)));
    }

    #[test]
    fn an_answer_not_streamed_has_its_response_time_as_ttft_and_no_tpot() {
        let timings = example(false).timings().unwrap();
        assert_eq!((timings.ttft, timings.tpot), (Some(Duration::from_millis(310)), None));
    }
}
