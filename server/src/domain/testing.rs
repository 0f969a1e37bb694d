//! What the domain's tests are made of.

use events::Event;
use events::api::{ScenarioMatrix, WorkloadInput};
use events::envelope::Recorded;
use events::job::{JobCreated, ResolvedCommands};
use events::keys::{JobKey, ServerKey, StreamKey};
use events::timestamp::Timestamp;
use events::workload::{ScenarioSpec, WorkloadSpec};

/// A moment so many seconds after the tests' beginning.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_790_000_000_000_000 + seconds * 1_000_000).expect("inside the range")
}

pub(crate) fn server_key() -> ServerKey {
    ServerKey { org: "acme".into(), config: "local-cpu".into(), hostname: "gpu-1".into() }
}

pub(crate) fn job_key() -> JobKey {
    JobKey {
        org: "acme".into(),
        project: "p".into(),
        workload: "w".into(),
        run: 1,
        scenario: scenario().code(),
    }
}

pub(crate) fn workload() -> WorkloadSpec {
    WorkloadSpec {
        model_code: "google/gemma-3-270m".into(),
        framework_code: "llama-cpp".into(),
        framework_version: "1".into(),
        tool_code: "metrumbench-llm".into(),
        quantization: None,
        engine_args_set_code: None,
        engine_args_set_version: None,
        engine_args: Default::default(),
        tool_args: Default::default(),
        endpoint_url: None,
        prompt_source_code: None,
        build_profile: None,
        keep_server: false,
    }
}

pub(crate) fn scenario() -> ScenarioSpec {
    ScenarioSpec {
        concurrency: 2,
        input_sequence_length: Some(128),
        output_sequence_length: Some(64),
        num_requests: 200,
        streaming: Some(true),
        ..ScenarioSpec::default()
    }
}

pub(crate) fn workload_input() -> WorkloadInput {
    WorkloadInput {
        p_workload_code: None,
        p_name: None,
        p_model_code: "google/gemma-3-270m".into(),
        p_framework_code: "llama-cpp".into(),
        p_framework_version: "1".into(),
        p_tool_code: None,
        p_quantization: None,
        p_engine_args_set_code: None,
        p_engine_args: Default::default(),
        p_tool_args: Default::default(),
        p_endpoint_url: None,
        p_prompt_source_code: None,
        p_build_profile: None,
        p_keep_server: false,
        p_scenarios: ScenarioMatrix {
            p_concurrency: vec![1, 2],
            p_input_sequence_length: vec![128],
            p_output_sequence_length: vec![64],
            ..ScenarioMatrix::default()
        },
    }
}

pub(crate) fn job_created() -> JobCreated {
    JobCreated {
        server: server_key(),
        ordinal: 0,
        workload: workload(),
        scenario: scenario(),
        commands: ResolvedCommands::of(vec!["llama-server".into()], vec!["metrumbench-llm".into()]),
        container_image: None,
    }
}

/// An event of [`job_key`]'s stream as the log gives it back.
pub(crate) fn recorded(event: &Event, version: i64, occurred_at: Timestamp) -> Recorded {
    recorded_in(job_key().stream(), event, version, occurred_at)
}

/// An event of a stream as the log gives it back; its position is its version.
pub(crate) fn recorded_in(
    stream: StreamKey,
    event: &Event,
    version: i64,
    occurred_at: Timestamp,
) -> Recorded {
    use events::envelope::{Actor, ActorKind};
    Recorded {
        position: version,
        stream,
        version,
        event_id: uuid::Uuid::now_v7(),
        event_type: event.event_type().to_owned(),
        schema_version: event.schema_version(),
        org: "acme".into(),
        actor: Actor { kind: ActorKind::System, id: "test".into() },
        causation_id: None,
        correlation_id: None,
        occurred_at,
        recorded_at: occurred_at,
        payload: event.payload().expect("JSON").to_string(),
        leaf: [0; 32],
        hash: [0; 32],
    }
}
