//! What holds of every summary, whatever the requests did.

use std::time::{Duration, Instant};

use bench::answer::Measured;
use bench::collect::{Collector, Objectives};
use bench::extra::Extra;
use bench::failure::{Failure, FailureKind, Redactor};
use bench::openai::Usage;
use bench::record::{Outcome, Phase, Record};
use events::summary::{Client, Distribution, Figures, Host, PERCENTILE_METHOD, SUMMARY_SCHEMA, Summary};
use events::summary_columns::{column_names, columns};
use proptest::prelude::*;

/// A request as a strategy makes it: milliseconds from its start.
#[derive(Clone, Debug)]
struct Made {
    phase: Phase,
    /// Milliseconds from the run's start.
    started: u64,
    first: u64,
    more: u64,
    tokens: Option<u64>,
    streamed: bool,
    /// 0 success, 1 failure, 2 incomplete.
    outcome: u8,
}

fn made() -> impl Strategy<Value = Made> {
    let phase = prop::sample::select(vec![Phase::Warmup, Phase::RampUp, Phase::Measured, Phase::Measured]);
    let tokens = prop::option::of(0..5000u64);
    (phase, 0..10_000u64, 0..5000u64, 0..5000u64, tokens, any::<bool>(), 0..4u8).prop_map(
        |(phase, started, first, more, tokens, streamed, outcome)| Made {
            phase,
            started,
            first,
            more,
            tokens,
            streamed,
            outcome: outcome.saturating_sub(1),
        },
    )
}

fn record(made: &Made, index: u64, begin: Instant) -> Record {
    let at = |ms| begin + Duration::from_millis(ms);
    let (first, end) = (at(made.started + made.first), at(made.started + made.first + made.more));
    let measured = Measured {
        first_visible: Some(first),
        first_output: Some(first),
        last_output: Some(end),
        chunks: 2,
        gaps_ns: vec![made.more * 1_000_000],
        usage: made.tokens.map(|tokens| Usage { completion_tokens: Some(tokens), ..Usage::default() }),
        finish_reason: Some("stop".into()),
        ..Measured::default()
    };
    let failure = Failure::new(FailureKind::Timeout, None, "too late");
    Record {
        index,
        endpoint: (index % 2) as usize,
        phase: made.phase,
        request_id: String::new(),
        scheduled: None,
        ready_at: at(made.started),
        started_at: at(made.started),
        sent: None,
        ended_at: end,
        prompt_words: Some(3),
        text: true,
        streamed: made.streamed,
        status: Some(200),
        outcome: match made.outcome {
            0 => Outcome::Success(Box::new(measured)),
            1 => Outcome::Failed(failure, Box::new(measured)),
            _ => Outcome::Incomplete,
        },
        extra: Extra::None,
        attempts: Vec::new(),
    }
}

fn figures(all: &[Made]) -> (Figures, [Figures; 2]) {
    let begin = Instant::now();
    let mut collector = Collector::new(2, Objectives::default(), Redactor::default());
    collector.open_window(begin);
    all.iter().enumerate().for_each(|(index, made)| collector.add(&record(made, index as u64, begin)));
    (collector.figures(), [collector.endpoint_figures(0), collector.endpoint_figures(1)])
}

fn distributions(figures: &Figures) -> Vec<&Distribution> {
    [
        &figures.response_time_ms,
        &figures.ttft_ms,
        &figures.tpot_ms,
        &figures.tpot_excl_first_ms,
        &figures.inter_chunk_ms,
    ]
    .into_iter()
    .flatten()
    .collect()
}

proptest! {
    #[test]
    fn counts_add_up_and_only_measured_successes_enter_a_figure(all in prop::collection::vec(made(), 0..60)) {
        let (figures, endpoints) = figures(&all);
        let requests = &figures.requests;
        prop_assert_eq!(requests.attempted, requests.succeeded + requests.failed + requests.incomplete);
        let measured = |outcome: u8| {
            all.iter().filter(|made| made.phase == Phase::Measured && made.outcome == outcome).count() as u64
        };
        prop_assert_eq!((requests.succeeded, requests.failed, requests.incomplete), (measured(0), measured(1), measured(2)));
        let successes = || all.iter().filter(|made| made.phase == Phase::Measured && made.outcome == 0);
        prop_assert_eq!(figures.response_time_ms.as_ref().map_or(0, |d| d.n), requests.succeeded);
        let told: Vec<u64> = successes().filter_map(|made| made.tokens).collect();
        prop_assert_eq!(figures.completion_tokens.as_ref().map(|c| (c.n, c.total)),
            (!told.is_empty()).then(|| (told.len() as u64, told.iter().sum())));
        // Null, never 0, where nothing was measured.
        prop_assert_eq!(figures.window_s.is_none(), requests.attempted == 0 || requests.succeeded + requests.failed == 0);
        // The endpoints' figures are parts of the whole.
        prop_assert_eq!(endpoints.iter().map(|e| e.requests.attempted).sum::<u64>(), requests.attempted);
    }

    #[test]
    fn statistics_are_in_order_and_of_real_samples(all in prop::collection::vec(made(), 1..60)) {
        let (figures, _) = figures(&all);
        for d in distributions(&figures) {
            let values = [d.min, d.p50, d.p90, d.p95, d.p99, d.p99_9, d.max].map(Option::unwrap);
            prop_assert!(values.windows(2).all(|pair| pair[0] <= pair[1]), "{d:?}");
            prop_assert!(d.avg.unwrap() >= values[0] - 1e-6 && d.avg.unwrap() <= values[6] + 1e-6, "{d:?}");
            prop_assert!(d.std.unwrap() <= values[6] - values[0] + 1e-6, "{d:?}");
        }
        let mut times: Vec<u64> = all.iter()
            .filter(|made| made.phase == Phase::Measured && made.outcome == 0)
            .map(|made| made.first + made.more).collect();
        times.sort_unstable();
        if let Some(d) = &figures.response_time_ms {
            let rank = (times.len() * 9).div_ceil(10).max(1) - 1;
            prop_assert_eq!(d.p90, Some(times[rank] as f64));
        }
    }

    #[test]
    fn a_summary_survives_its_json_and_always_has_the_same_columns(all in prop::collection::vec(made(), 0..30)) {
        let (figures, _) = figures(&all);
        prop_assert_eq!(columns(&figures).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), column_names());
        let summary = Summary {
            schema: SUMMARY_SCHEMA.into(),
            id: uuid::Uuid::nil(),
            readable_id: String::new(),
            timestamp: String::new(),
            window_started_at: None,
            window_ended_at: None,
            tool: "metrumbench-llm".into(),
            tool_version: String::new(),
            rustc_version: String::new(),
            host: Host::default(),
            config: serde_json::Value::Null,
            simulated: false,
            partial: false,
            cancelled: false,
            percentile_method: PERCENTILE_METHOD.into(),
            flags: Vec::new(),
            figures,
            endpoints: Vec::new(),
            client: Client::default(),
        };
        let line = serde_json::to_string(&summary).unwrap();
        prop_assert_eq!(serde_json::from_str::<Summary>(&line).unwrap(), summary);
    }

    #[test]
    fn no_text_panics_as_a_summary(text in "(\\PC|[\\{\\}\":,\\[\\]0-9.eE-])*") {
        let _ = serde_json::from_str::<Summary>(&text);
    }
}
