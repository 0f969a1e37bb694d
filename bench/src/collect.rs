//! From records to figures.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use events::summary::{ErrorSample, Errors, Figures, Goodput, RequestCounts, Throughput};

use crate::failure::{Failure, FailureKind, Redactor};
use crate::modality::ModalityTally;
use crate::record::{Outcome, Phase, Record, Timings};
use crate::stats::{Samples, per_second, round};

/// Nanoseconds shown as milliseconds.
pub const NS_TO_MS: f64 = 1e-6;

/// Distinct errors kept with their message.
const ERROR_SAMPLES: usize = 20;

/// Service-level objectives of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objectives {
    /// Limits by metric: `ttft`, `tpot`, `e2e`.
    pub limits: BTreeMap<String, Duration>,
}

impl Objectives {
    /// True when every objective is kept. A metric that was not measured keeps none.
    fn are_kept(&self, timings: &Timings) -> bool {
        self.limits.iter().all(|(metric, limit)| {
            let value = match metric.as_str() {
                "ttft" => timings.ttft,
                "tpot" => timings.tpot,
                _ => Some(timings.response_time),
            };
            value.is_some_and(|value| value <= *limit)
        })
    }
}

/// Running totals of one endpoint, or of all.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Counts of requests.
    pub requests: RequestCounts,
    response_time: Samples,
    ttft: Samples,
    first_token: Samples,
    first_reasoning: Samples,
    tpot: Samples,
    tpot_excl_first: Samples,
    inter_chunk: Samples,
    schedule_delay: Samples,
    from_schedule: Samples,
    prompt_tokens: Samples,
    completion_tokens: Samples,
    reasoning_tokens: Samples,
    cached_prompt_tokens: Samples,
    prompt_words: Samples,
    completion_words: Samples,
    good: u64,
    timeouts: u64,
    failed_here: u64,
    without_usage: u64,
    without_done: u64,
    by_type: BTreeMap<String, u64>,
    by_status: BTreeMap<String, u64>,
    oom: bool,
    errors: Vec<ErrorSample>,
    modality: ModalityTally,
}

impl Tally {
    fn add(&mut self, record: &Record, objectives: &Objectives, redactor: &Redactor) {
        match record.phase {
            Phase::Warmup => return self.requests.warmup += 1,
            Phase::RampUp => return self.requests.ramp_up += 1,
            Phase::Measured => self.requests.attempted += 1,
        }
        if let Some(scheduled) = record.scheduled {
            self.schedule_delay.add(nanos(record.started_at.saturating_duration_since(scheduled)));
        }
        self.modality.add(record);
        match &record.outcome {
            Outcome::Incomplete => self.requests.incomplete += 1,
            Outcome::Failed(failure, _) => self.add_failure(failure, record.names_of_failures(), redactor),
            Outcome::Success(_) => self.add_success(record, objectives),
        }
    }

    fn add_success(&mut self, record: &Record, objectives: &Objectives) {
        let (Outcome::Success(measured), Some(timings)) = (&record.outcome, record.timings()) else { return };
        self.requests.succeeded += 1;
        if measured.first_output.is_none() {
            self.requests.empty += 1;
        }
        self.response_time.add(nanos(timings.response_time));
        let optional = [
            (&mut self.ttft, timings.ttft),
            (&mut self.first_token, timings.first_token),
            (&mut self.first_reasoning, timings.first_reasoning),
            (&mut self.tpot, timings.tpot),
            (&mut self.tpot_excl_first, timings.tpot_excl_first),
            (&mut self.from_schedule, timings.from_schedule),
        ];
        for (samples, value) in optional {
            if let Some(value) = value {
                samples.add(nanos(value));
            }
        }
        for &gap in &measured.gaps_ns {
            self.inter_chunk.add(gap);
        }
        if let Some(words) = record.prompt_words {
            self.prompt_words.add(words);
        }
        self.good += u64::from(objectives.are_kept(&timings));
        if !record.text {
            return;
        }
        self.completion_words.add(measured.words);
        let usage = measured.usage.unwrap_or_default();
        let counts = [
            (&mut self.prompt_tokens, usage.prompt_tokens),
            (&mut self.completion_tokens, usage.completion_tokens),
            (&mut self.reasoning_tokens, usage.reasoning()),
            (&mut self.cached_prompt_tokens, usage.cached()),
        ];
        for (samples, count) in counts {
            if let Some(count) = count {
                samples.add(count);
            }
        }
        self.without_usage += u64::from(usage.completion_tokens.is_none());
        self.without_done += u64::from(record.streamed && !measured.done_marker);
    }

    fn add_failure(&mut self, failure: &Failure, name: fn(FailureKind) -> &'static str, redactor: &Redactor) {
        self.requests.failed += 1;
        self.timeouts += u64::from(failure.kind == FailureKind::Timeout);
        self.failed_here += u64::from(failure.is_local);
        let kind = name(failure.kind);
        *self.by_type.entry(kind.to_owned()).or_default() += 1;
        if let Some(status) = failure.status {
            *self.by_status.entry(status.to_string()).or_default() += 1;
        }
        self.oom |= failure.speaks_of_memory();
        let message = redactor.redact(&failure.message);
        let same = |sample: &&mut ErrorSample| {
            sample.kind == kind && sample.status == failure.status && sample.message == message
        };
        if let Some(sample) = self.errors.iter_mut().find(same) {
            sample.count += 1;
        } else if self.errors.len() < ERROR_SAMPLES {
            self.errors.push(ErrorSample {
                kind: kind.to_owned(),
                status: failure.status,
                message,
                count: 1,
            });
        }
    }

    fn figures(&self, window_s: Option<f64>, objectives: &Objectives) -> Figures {
        let ms = |samples: &Samples| samples.distribution(NS_TO_MS);
        let tokens = |samples: &Samples| samples.counts(window_s, "usage");
        let words = |samples: &Samples| samples.counts(window_s, "whitespace");
        let rate = |samples: &Samples| (!samples.is_empty()).then(|| samples.total() as f64);
        let (prompt, completion) = (rate(&self.prompt_tokens), rate(&self.completion_tokens));
        let over_window = |amount: Option<f64>| amount.and_then(|amount| per_second(amount, window_s));
        let ended = self.requests.succeeded + self.requests.failed;
        Figures {
            requests: self.requests.clone(),
            window_s: window_s.map(round),
            response_time_ms: ms(&self.response_time),
            ttft_ms: ms(&self.ttft),
            first_token_ms: ms(&self.first_token),
            first_reasoning_ms: ms(&self.first_reasoning),
            tpot_ms: ms(&self.tpot),
            tpot_excl_first_ms: ms(&self.tpot_excl_first),
            inter_chunk_ms: ms(&self.inter_chunk),
            schedule_delay_ms: ms(&self.schedule_delay),
            response_time_from_schedule_ms: ms(&self.from_schedule),
            prompt_tokens: tokens(&self.prompt_tokens),
            completion_tokens: tokens(&self.completion_tokens),
            reasoning_tokens: tokens(&self.reasoning_tokens),
            cached_prompt_tokens: tokens(&self.cached_prompt_tokens),
            prompt_words: words(&self.prompt_words),
            completion_words: words(&self.completion_words),
            throughput: Throughput {
                requests_per_second: per_second(self.requests.succeeded as f64, window_s),
                prompt_tokens_per_second: over_window(prompt),
                completion_tokens_per_second: over_window(completion),
                total_tokens_per_second: over_window(prompt.zip(completion).map(|(a, b)| a + b)),
            },
            goodput: (!objectives.limits.is_empty()).then(|| Goodput {
                slo_ms: objectives
                    .limits
                    .iter()
                    .map(|(metric, limit)| (metric.clone(), limit.as_secs_f64() * 1e3))
                    .collect(),
                requests: self.good,
                fraction: (self.requests.attempted > 0)
                    .then(|| round(self.good as f64 / self.requests.attempted as f64)),
                requests_per_second: per_second(self.good as f64, window_s),
            }),
            errors: Errors {
                count: self.requests.failed,
                rate_pct: (ended > 0).then(|| round(100.0 * self.requests.failed as f64 / ended as f64)),
                by_type: self.by_type.clone(),
                by_status: self.by_status.clone(),
                oom_detected: self.oom,
                samples: self.errors.clone(),
            },
            vlm: self.modality.vlm(),
            asr: self.modality.asr(window_s),
            imagegen: self.modality.images(window_s, self.requests.succeeded, ended, self.timeouts),
        }
    }
}

/// The records of a run, condensed as they come.
#[derive(Debug)]
pub struct Collector {
    objectives: Objectives,
    redactor: Redactor,
    overall: Tally,
    endpoints: Vec<Tally>,
    opens_at: Option<Instant>,
    closes_at: Option<Instant>,
    send_skew: Samples,
}

impl Collector {
    /// An empty collector for `endpoints` endpoints.
    pub fn new(endpoints: usize, objectives: Objectives, redactor: Redactor) -> Self {
        Self {
            objectives,
            redactor,
            overall: Tally::default(),
            endpoints: vec![Tally::default(); endpoints],
            opens_at: None,
            closes_at: None,
            send_skew: Samples::default(),
        }
    }

    /// The measurement window opens.
    pub fn open_window(&mut self, at: Instant) {
        self.opens_at = Some(at);
    }

    /// The run was cancelled: the window closes now, whatever ended last.
    pub fn close_window(&mut self, at: Instant) {
        self.closes_at = self.closes_at.max(Some(at));
    }

    /// Takes one record.
    pub fn add(&mut self, record: &Record) {
        if record.phase == Phase::Measured {
            if !matches!(record.outcome, Outcome::Incomplete) {
                self.closes_at = self.closes_at.max(Some(record.ended_at));
            }
            self.send_skew.add(nanos(record.started_at.saturating_duration_since(record.ready_at)));
        }
        self.overall.add(record, &self.objectives, &self.redactor);
        if self.endpoints.len() > 1 {
            self.endpoints[record.endpoint].add(record, &self.objectives, &self.redactor);
        }
    }

    /// Takes what became known of a record after it was added.
    pub fn learn(&mut self, record: &Record) {
        self.overall.modality.learn(record);
        if self.endpoints.len() > 1 {
            self.endpoints[record.endpoint].modality.learn(record);
        }
    }

    /// Something of the images of succeeded requests is not known.
    pub fn images_unknown(&self) -> bool {
        self.overall.modality.images_unknown()
    }

    /// Counts so far.
    pub fn requests(&self) -> &RequestCounts {
        &self.overall.requests
    }

    /// How long requests that could be sent waited for this process, in nanoseconds.
    pub fn send_skew(&self) -> &Samples {
        &self.send_skew
    }

    /// The median TTFT in milliseconds, or the median response time where there is none.
    pub fn median_first_answer_ms(&self) -> Option<f64> {
        let tally = &self.overall;
        let samples = if tally.ttft.is_empty() { &tally.response_time } else { &tally.ttft };
        let [median] = samples.percentiles([500]);
        median.map(|ns| ns as f64 * NS_TO_MS)
    }

    /// The median response time in milliseconds.
    pub fn median_response_ms(&self) -> Option<f64> {
        let [median] = self.overall.response_time.percentiles([500]);
        median.map(|ns| ns as f64 * NS_TO_MS)
    }

    /// Requests that failed for want of something on this machine: open files, local ports.
    pub fn failed_here(&self) -> u64 {
        self.overall.failed_here
    }

    /// Successes whose answer carried no completion token count.
    pub fn without_usage(&self) -> u64 {
        self.overall.without_usage
    }

    /// Streamed successes without `[DONE]`.
    pub fn without_done(&self) -> u64 {
        self.overall.without_done
    }

    /// When the window opened and closed; none when nothing was measured.
    pub fn window(&self) -> Option<(Instant, Instant)> {
        let (opens, closes) = (self.opens_at?, self.closes_at?);
        (self.overall.requests.attempted > 0).then(|| (opens, closes.max(opens)))
    }

    /// The window in seconds; none when nothing was measured.
    pub fn window_s(&self) -> Option<f64> {
        self.window().map(|(opens, closes)| closes.duration_since(opens).as_secs_f64())
    }

    /// Figures over all endpoints.
    pub fn figures(&self) -> Figures {
        self.overall.figures(self.window_s(), &self.objectives)
    }

    /// Figures of one endpoint.
    pub fn endpoint_figures(&self, endpoint: usize) -> Figures {
        match self.endpoints.len() {
            1 => self.figures(),
            _ => self.endpoints[endpoint].figures(self.window_s(), &self.objectives),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}
