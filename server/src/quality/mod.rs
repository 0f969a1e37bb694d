//! Suspicion: pure rules over a result and its telemetry. What they find is flagged and shown, never discarded.
//!
//! That a result is simulated is no flag: it is said beside the number wherever it appears.

mod rules;

use events::quality::QualityFlagged;
use events::telemetry::TelemetrySampled;
use events::timestamp::Timestamp;
use events::tool_output::{ExternalOutputRecorded, ToolOutputRecorded};

use crate::domain::Job;

/// What the log holds of an attempt's telemetry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TelemetryFacts {
    /// Samples in the log.
    pub samples: u64,
    /// Samples the agent says it took; unknown where it did not say.
    pub taken: Option<u64>,
    /// Events that are missing in the agent's sequence.
    pub missing_events: u64,
    /// The longest time between two samples, seconds.
    pub longest_gap_s: f64,
    /// The nominal time between samples, seconds.
    pub interval_s: f64,
    /// The first and the last sample's time.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Whether a sample has a reading of a GPU.
    pub has_gpus: bool,
    /// Seconds of what was measured before the first sample or after the last, whichever is more; 0 where that is not
    /// known.
    pub uncovered_s: f64,
    /// GPUs that the host's agent sees; 0 where it sees none.
    pub host_gpus: u32,
}

impl TelemetryFacts {
    /// The facts of an attempt's telemetry events, in the order in which they were sampled or any other.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a TelemetrySampled>, taken: Option<u64>) -> Self {
        let mut facts = Self { taken, ..Self::default() };
        let mut sequence: Vec<u64> = Vec::new();
        let mut times: Vec<Timestamp> = Vec::new();
        for event in events {
            sequence.push(event.seq);
            facts.samples += event.samples.len() as u64;
            facts.interval_s = facts.interval_s.max(f64::from(event.interval_ms) / 1000.0);
            times.extend(event.samples.iter().map(|sample| sample.at));
            facts.has_gpus |= event.samples.iter().any(|sample| !sample.gpus.is_empty());
        }
        sequence.sort_unstable();
        sequence.dedup();
        times.sort_unstable();
        let last = sequence.last().copied().unwrap_or(0);
        facts.missing_events = last.saturating_sub(sequence.len() as u64);
        facts.longest_gap_s =
            times.windows(2).map(|pair| pair[1].micros_since(pair[0]) as f64 / 1e6).fold(0.0, f64::max);
        facts.span = times.first().copied().zip(times.last().copied());
        facts
    }

    /// The same, of a measurement between two moments, as far as they are known, on a host with so many GPUs.
    #[must_use]
    pub fn over(mut self, from: Option<Timestamp>, to: Option<Timestamp>, host_gpus: u32) -> Self {
        if let Some((first, last)) = self.span {
            let before = from.map_or(0, |from| first.micros_since(from));
            let after = to.map_or(0, |to| to.micros_since(last));
            self.uncovered_s = before.max(after).max(0) as f64 / 1e6;
        }
        Self { host_gpus, ..self }
    }
}

/// What the rules look at.
struct Facts<'a> {
    job: &'a Job,
    output: &'a ToolOutputRecorded,
    telemetry: &'a TelemetryFacts,
}

/// A rule: the word for it, and what it finds.
type Rule = (&'static str, fn(&Facts<'_>) -> Option<String>);

const RULES: &[Rule] = &[
    ("model_not_served", |facts| rules::model_not_served(facts.job, facts.output.attempt)),
    ("framework_version", |facts| rules::other_version(facts.job, facts.output.attempt)),
    ("all_zero_latencies", rules::all_zero_latencies),
    ("implausible_tokens", rules::implausible_tokens),
    ("token_counts_missing", rules::token_counts_missing),
    ("truncated", rules::truncated),
    ("prompts_cut", rules::prompts_cut),
    ("idle_replica", rules::idle_replica),
    ("high_error_rate", rules::high_error_rate),
    ("too_few_requests", rules::too_few_requests),
    ("partial_run", rules::partial_run),
    ("client_limited", rules::client_limited),
    ("cached_prompts", rules::cached_prompts),
    ("missing_telemetry", rules::missing_telemetry),
    ("telemetry_gap", rules::telemetry_gap),
    ("gpu_telemetry_missing", |facts| rules::no_gpu_telemetry(facts.telemetry)),
];

/// The doubts about a job's result, in a fixed order.
pub fn check(job: &Job, output: &ToolOutputRecorded, telemetry: &TelemetryFacts) -> Vec<QualityFlagged> {
    let facts = Facts { job, output, telemetry };
    RULES
        .iter()
        .filter_map(|(rule, find)| {
            let message = find(&facts)?;
            Some(QualityFlagged { attempt: output.attempt, rule: (*rule).to_owned(), message })
        })
        .collect()
}

/// The doubts about a third-party tool's result of a job, as far as it tells.
pub fn check_external(
    job: &Job,
    output: &ExternalOutputRecorded,
    telemetry: &TelemetryFacts,
) -> Vec<QualityFlagged> {
    let figures = &output.figures;
    // An evaluation has as many questions as it has, and its errors stand in its score as zeroes.
    let load = output.kyai.is_none();
    let rate = events::external_columns::error_rate_pct(figures).filter(|_| load);
    let succeeded = figures.requests_succeeded.filter(|_| load);
    let zeroes = succeeded.and_then(|succeeded| rules::external_zeroes(succeeded, figures));
    let scenario = &job.scenario;
    // Conversations grow from turn to turn: their lengths are no scenario's.
    let each = |total: Option<u64>| {
        let requests = succeeded.filter(|requests| *requests > 0 && output.kv_cache.is_none())?;
        Some(total? as f64 / requests as f64)
    };
    let (answers, prompts) = (each(figures.completion_tokens_total), each(figures.prompt_tokens_total));
    let found = [
        ("model_not_served", rules::model_not_served(job, output.attempt)),
        ("framework_version", rules::other_version(job, output.attempt)),
        ("truncated", answers.and_then(|average| rules::short_answers(scenario, average))),
        ("prompts_cut", prompts.and_then(|average| rules::short_prompts(scenario, average))),
        ("too_few_requests", succeeded.and_then(rules::few_requests)),
        ("high_error_rate", rate.and_then(rules::error_rate)),
        ("few_sessions", output.kv_cache.as_ref().and_then(|cache| rules::few_sessions(scenario, cache))),
        ("missing_telemetry", rules::no_telemetry(telemetry)),
        ("telemetry_gap", rules::gap_in_telemetry(telemetry)),
        ("gpu_telemetry_missing", rules::no_gpu_telemetry(telemetry)),
    ];
    let others = found.into_iter().filter_map(|(rule, message)| Some((rule, message?)));
    let doubts = zeroes.into_iter().chain(others);
    doubts
        .map(|(rule, message)| QualityFlagged { attempt: output.attempt, rule: rule.to_owned(), message })
        .collect()
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
