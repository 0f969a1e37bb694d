use events::Event;
use events::external_figures::KvCacheFigures;
use events::foreign::{ForeignFigures, Spread};
use events::job::{JobClaimed, JobCreated, JobRunning};
use events::summary::{CountStats, Distribution};
use events::telemetry::{SystemSample, TelemetrySample, TelemetrySampled};
use events::tool_output::ToolOutputRecorded;
use events::workload::ScenarioSpec;

use super::*;
use crate::domain::testing::{at, job_created, scenario};

fn good_telemetry() -> TelemetryFacts {
    TelemetryFacts {
        samples: 60,
        taken: Some(60),
        missing_events: 0,
        longest_gap_s: 1.0,
        interval_s: 1.0,
        ..Default::default()
    }
}

fn rules_of(output: &ToolOutputRecorded, telemetry: &TelemetryFacts) -> Vec<String> {
    let job = Job::created(&job_created());
    check(&job, output, telemetry).into_iter().map(|flag| flag.rule).collect()
}

fn rules(change: impl FnOnce(&mut ToolOutputRecorded)) -> Vec<String> {
    let mut output = testing::output(1);
    change(&mut output);
    rules_of(&output, &good_telemetry())
}

#[test]
fn an_ordinary_result_is_not_doubted() {
    assert!(rules(|_| {}).is_empty());
}

#[test]
fn a_simulated_result_is_not_a_doubtful_one() {
    assert!(rules(|output| output.summary.simulated = true).is_empty());
}

#[test]
fn latencies_of_zero_are_doubted() {
    let zero = Some(Distribution { n: 200, max: Some(0.0), ..Distribution::default() });
    assert_eq!(rules(|output| output.summary.figures.response_time_ms = zero), ["all_zero_latencies"]);
}

#[test]
fn answers_without_tokens_are_doubted() {
    let none = Some(CountStats { n: 200, total: 0, max: Some(0), avg: Some(0.0), ..CountStats::default() });
    assert_eq!(rules(|output| output.summary.figures.completion_tokens = none), ["implausible_tokens"]);
}

#[test]
fn answers_beyond_the_cap_are_doubted_but_not_by_one_token() {
    let most = |most| {
        move |output: &mut ToolOutputRecorded| {
            output.summary.figures.completion_tokens.as_mut().unwrap().max = Some(most);
        }
    };
    assert!(rules(most(65)).is_empty());
    assert_eq!(rules(most(66)), ["implausible_tokens"]);
}

#[test]
fn missing_usage_is_doubted() {
    assert_eq!(rules(|output| output.summary.figures.completion_tokens = None), ["token_counts_missing"]);
}

#[test]
fn answers_of_half_the_length_are_truncated() {
    let average = |average| {
        move |output: &mut ToolOutputRecorded| {
            output.summary.figures.completion_tokens.as_mut().unwrap().avg = Some(average);
        }
    };
    assert!(rules(average(32.0)).is_empty());
    assert_eq!(rules(average(31.0)), ["truncated"]);
}

#[test]
fn more_than_one_percent_of_errors_is_doubted() {
    assert!(rules(|output| output.summary.figures.errors.rate_pct = Some(1.0)).is_empty());
    assert_eq!(rules(|output| output.summary.figures.errors.rate_pct = Some(1.5)), ["high_error_rate"]);
}

#[test]
fn fewer_than_a_hundred_requests_are_a_smoke_test() {
    let mut output = testing::output(1);
    output.summary.figures.requests.succeeded = 99;
    let flags = check(&Job::created(&job_created()), &output, &good_telemetry());
    assert_eq!(flags[0].rule, "too_few_requests");
    assert!(flags[0].message.contains("smoke test"));
}

#[test]
fn a_run_that_ended_early_is_doubted() {
    assert_eq!(rules(|output| output.summary.partial = true), ["partial_run"]);
}

#[test]
fn a_client_that_was_the_bottleneck_is_doubted() {
    assert_eq!(rules(|output| output.summary.client.limited = true), ["client_limited"]);
}

#[test]
fn prompts_from_the_cache_are_doubted() {
    let cached = Some(CountStats { n: 200, total: 200 * 64, ..CountStats::default() });
    assert_eq!(rules(|output| output.summary.figures.cached_prompt_tokens = cached), ["cached_prompts"]);
}

#[test]
fn what_every_prompt_begins_with_is_no_repeated_prompt() {
    let of = |most: Option<u64>, prompt: u64| {
        let each = most.unwrap_or(20);
        let cached = CountStats { n: 200, total: 200 * each, max: most, ..CountStats::default() };
        rules(|output| {
            output.summary.figures.cached_prompt_tokens = Some(cached);
            let prompts = output.summary.figures.prompt_tokens.as_mut().unwrap();
            (prompts.total, prompts.min) = (200 * prompt, Some(prompt));
        })
    };
    assert_eq!(of(Some(20), 130), Vec::<String>::new(), "the chat template");
    assert_eq!(of(Some(65), 130), ["cached_prompts"], "more than a template has");
    assert_eq!(of(Some(39), 40), ["cached_prompts"], "nearly all of a short prompt");
    assert_eq!(of(None, 130), ["cached_prompts"], "a server that does not say how many a request had");
}

#[test]
fn a_result_of_a_model_that_was_not_served_is_doubted() {
    let of = |served: &[&str], name: Option<&str>| {
        let mut created = job_created();
        created.workload.model_code = "google/gemma-3-270m".into();
        if let Some(name) = name {
            created.workload.tool_args.insert("served_model_name".into(), name.into());
        }
        let mut job = Job::created(&created);
        let claimed = JobClaimed { attempt: 1, agent: "a".into(), lease_s: 60 };
        let running = JobRunning {
            attempt: 1,
            tool_argv: vec![],
            tool_version: "1".into(),
            ready_after_s: 1.0,
            prompt_source_sha256: None,
            weights_revision: None,
            weights_sha256: None,
            framework_version: None,
            served_models: served.iter().map(|model| (*model).to_owned()).collect(),
        };
        job.evolve(&Event::JobClaimed(claimed), at(0));
        job.evolve(&Event::JobRunning(running), at(1));
        check(&job, &testing::output(1), &good_telemetry())
            .into_iter()
            .map(|flag| flag.rule)
            .collect::<Vec<_>>()
    };
    let doubted = ["model_not_served"];
    assert_eq!(of(&["benchtrail-sim"], None), doubted);
    assert_eq!(of(&["google/gemma-3-270m-it"], None), doubted, "another model of the family");
    assert_eq!(of(&["benchtrail-sim"], Some("benchtrail-sim")), Vec::<String>::new(), "named so");
    for served in
        ["google/gemma-3-270m", "Gemma-3-270M", "/models/gemma-3-270m-q4_k_m.gguf", "gemma-3-270m:latest"]
    {
        assert_eq!(of(&["another", served], None), Vec::<String>::new(), "{served}");
    }
    assert_eq!(of(&[], None), Vec::<String>::new(), "not known");
}

#[test]
fn a_scenario_without_an_output_length_has_no_cap_to_break() {
    let scenario = ScenarioSpec { output_sequence_length: None, max_tokens: None, ..scenario() };
    let job = Job::created(&JobCreated { scenario, ..job_created() });
    assert!(check(&job, &testing::output(1), &good_telemetry()).is_empty());
}

#[test]
fn telemetry_that_is_missing_is_one_doubt_not_two() {
    assert_eq!(rules_of(&testing::output(1), &TelemetryFacts::default()), ["missing_telemetry"]);
}

#[test]
fn telemetry_with_a_hole_is_doubted() {
    let holes = [
        TelemetryFacts { missing_events: 1, ..good_telemetry() },
        TelemetryFacts { samples: 50, ..good_telemetry() },
        TelemetryFacts { longest_gap_s: 6.0, ..good_telemetry() },
        TelemetryFacts { uncovered_s: 6.0, ..good_telemetry() },
    ];
    for telemetry in holes {
        assert_eq!(rules_of(&testing::output(1), &telemetry), ["telemetry_gap"], "{telemetry:?}");
    }
}

#[test]
fn a_missing_number_in_the_sequence_is_a_missing_event() {
    let sampled = |seq, second| TelemetrySampled {
        seq,
        interval_ms: 1000,
        samples: vec![TelemetrySample {
            at: at(second),
            gpus: vec![],
            cpus: vec![],
            tpus: vec![],
            system: SystemSample::default(),
        }],
    };
    let events = [sampled(1, 1), sampled(2, 2), sampled(4, 9)];
    let facts = TelemetryFacts::of(&events, Some(4));
    assert_eq!((facts.samples, facts.missing_events, facts.longest_gap_s), (3, 1, 7.0));
    assert_eq!(TelemetryFacts::of(&[], None), TelemetryFacts::default());
    // From second 1 to second 9: what was measured before and after is not covered.
    let over = |from, to| facts.clone().over(from, to, 0).uncovered_s;
    assert_eq!(over(Some(at(1)), Some(at(9))), 0.0);
    assert_eq!(over(Some(at(0)), Some(at(29))), 20.0, "sampling ended early");
    assert_eq!(over(None, Some(at(5))), 0.0);
}

#[test]
fn a_host_whose_gpus_no_sample_has_is_doubted() {
    let lost = TelemetryFacts { host_gpus: 8, ..good_telemetry() };
    assert_eq!(rules_of(&testing::output(1), &lost), ["gpu_telemetry_missing"]);
    let seen = TelemetryFacts { has_gpus: true, ..lost };
    assert!(rules_of(&testing::output(1), &seen).is_empty());
}

#[test]
fn every_message_says_what_to_do_or_why_it_matters() {
    let mut output = testing::output(1);
    output.summary.figures.requests.succeeded = 3;
    output.summary.partial = true;
    output.summary.client.limited = true;
    for flag in check(&Job::created(&job_created()), &output, &TelemetryFacts::default()) {
        assert!(flag.message.len() > 40 && flag.message.ends_with('.'), "{}", flag.message);
    }
}

#[test]
fn prompts_that_the_server_cut_are_doubted() {
    let average = |average| {
        move |output: &mut ToolOutputRecorded| {
            output.summary.figures.prompt_tokens.as_mut().unwrap().avg = Some(average);
        }
    };
    assert!(rules(average(70.0)).is_empty(), "128 were asked for");
    assert_eq!(rules(average(60.0)), ["prompts_cut"]);
}

#[test]
fn a_model_server_of_another_version_than_the_result_is_credited_to_is_doubted() {
    let of = |said: Option<&str>| {
        let created = job_created();
        let mut job = Job::created(&created);
        job.evolve(&Event::JobClaimed(JobClaimed { attempt: 1, agent: "a".into(), lease_s: 60 }), at(0));
        job.attempts[0].framework_version =
            said.map(|said| said.replace("NAMED", &created.workload.framework_version));
        let found = check(&job, &testing::output(1), &good_telemetry());
        found.into_iter().map(|flag| flag.rule).collect::<Vec<_>>()
    };
    for same in [None, Some("NAMED"), Some("vNAMED"), Some("NAMED+cu129")] {
        assert_eq!(of(same), [""; 0], "{same:?}");
    }
    assert_eq!(of(Some("NAMED.1")), ["framework_version"]);
    assert_eq!(of(Some("0.20.0")), ["framework_version"]);
}

#[test]
fn a_replica_that_answered_nothing_is_doubted() {
    let endpoint = |name: &str, succeeded| {
        let mut figures = events::summary::Figures::default();
        figures.requests.succeeded = succeeded;
        events::summary::EndpointFigures { name: name.into(), url: "http://h".into(), weight: 1, figures }
    };
    let of = |second| {
        rules(|output| {
            output.summary.endpoints = vec![endpoint("replica-0", 200), endpoint("replica-1", second)]
        })
    };
    assert!(of(1).is_empty());
    assert_eq!(of(0), ["idle_replica"]);
    assert!(rules(|output| output.summary.endpoints = vec![endpoint("only", 0)]).is_empty());
}

/// What a third-party tool that only sends load gave.
fn external() -> ExternalOutputRecorded {
    let golden = include_str!("../../../events/tests/golden/tool_output.external.v1.json");
    let output: ExternalOutputRecorded = serde_json::from_str(golden).unwrap();
    ExternalOutputRecorded { kyai: None, kv_cache: None, ..output }
}

#[test]
fn a_third_party_tools_zeroes_are_doubted_too() {
    let rules = |change: fn(&mut ExternalOutputRecorded)| -> Vec<String> {
        let mut output = external();
        output.figures = ForeignFigures {
            requests_succeeded: Some(500),
            completion_tokens_total: Some(32_000),
            response_time_ms: Some(Spread { avg: Some(900.0), ..Spread::default() }),
            ..ForeignFigures::default()
        };
        change(&mut output);
        let scenario = ScenarioSpec { concurrency: 8, ..ScenarioSpec::default() };
        let job = Job::created(&JobCreated { scenario, ..job_created() });
        check_external(&job, &output, &good_telemetry()).into_iter().map(|flag| flag.rule).collect()
    };
    assert!(rules(|_| ()).is_empty());
    let zero = |output: &mut ExternalOutputRecorded| {
        output.figures.response_time_ms =
            Some(Spread { avg: Some(0.0), p99: Some(0.0), ..Spread::default() });
    };
    assert_eq!(rules(zero), ["all_zero_latencies"]);
    assert_eq!(rules(|output| output.figures.completion_tokens_total = Some(0)), ["implausible_tokens"]);
    assert!(rules(|output| output.figures.response_time_ms = None).is_empty(), "not measured is not zero");
    let nobody = |output: &mut ExternalOutputRecorded| {
        output.figures.requests_succeeded = Some(0);
        output.figures.completion_tokens_total = Some(0);
    };
    assert_eq!(rules(nobody), ["too_few_requests"]);
}

#[test]
fn a_third_party_tools_answers_and_prompts_that_are_far_shorter_than_asked_are_doubted() {
    let rules = |prompt: u64, answer: u64| -> Vec<String> {
        let figures = ForeignFigures {
            requests_succeeded: Some(200),
            prompt_tokens_total: Some(200 * prompt),
            completion_tokens_total: Some(200 * answer),
            ..ForeignFigures::default()
        };
        let output = ExternalOutputRecorded { figures, ..external() };
        let lengths = ScenarioSpec {
            input_sequence_length: Some(128),
            output_sequence_length: Some(512),
            ..scenario()
        };
        let job = Job::created(&JobCreated { scenario: lengths, ..job_created() });
        check_external(&job, &output, &good_telemetry()).into_iter().map(|flag| flag.rule).collect()
    };
    assert!(rules(130, 512).is_empty());
    assert_eq!(rules(130, 5), ["truncated"]);
    assert_eq!(rules(60, 512), ["prompts_cut"]);
}

#[test]
fn a_replay_of_fewer_conversations_than_were_to_be_in_flight_is_doubted() {
    let found = |figures: &[(&str, f64)]| {
        let cache = KvCacheFigures {
            dataset: "tau2-bench-v1".into(),
            figures: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..KvCacheFigures::default()
        };
        let scenario = ScenarioSpec { concurrency: 64, num_rounds: Some(25), ..ScenarioSpec::default() };
        rules::few_sessions(&scenario, &cache)
    };
    assert_eq!(found(&[]), None, "the runner does not say");
    assert_eq!(found(&[("sessions_total", 64.0), ("sessions_complete", 64.0)]), None);
    let few = found(&[("sessions_total", 40.0)]).unwrap();
    assert!(few.starts_with("40 conversations") && few.contains("25 rounds"), "{few}");
    let broken =
        found(&[("sessions_total", 100.0), ("sessions_incomplete", 1.0), ("sessions_error", 1.0)]).unwrap();
    assert!(broken.starts_with("2 of 100"), "{broken}");
}
