//! A result that no rule doubts.

use events::summary::{
    CountStats, Distribution, Figures, PERCENTILE_METHOD, RequestCounts, SUMMARY_SCHEMA, Summary,
};
use events::tool_output::{ToolInvocation, ToolOutputRecorded};

/// An unsuspicious result of 200 requests of 64 tokens.
pub(crate) fn output(attempt: u32) -> ToolOutputRecorded {
    let milliseconds = |value: f64| {
        Some(Distribution {
            n: 200,
            min: Some(value),
            max: Some(value),
            avg: Some(value),
            ..Distribution::default()
        })
    };
    let tokens = |each: u64| {
        Some(CountStats {
            n: 200,
            total: 200 * each,
            min: Some(each),
            max: Some(each),
            avg: Some(each as f64),
            ..CountStats::default()
        })
    };
    let figures = Figures {
        requests: RequestCounts { attempted: 200, succeeded: 200, ..RequestCounts::default() },
        window_s: Some(60.0),
        response_time_ms: milliseconds(500.0),
        ttft_ms: milliseconds(50.0),
        prompt_tokens: tokens(130),
        completion_tokens: tokens(64),
        ..Figures::default()
    };
    ToolOutputRecorded {
        attempt,
        invocation: ToolInvocation {
            tool_code: "metrumbench-llm".into(),
            tool_version: "0.1.0".into(),
            argv: vec![],
            exit_code: Some(0),
            summary_sha256: String::new(),
        },
        summary: Summary {
            schema: SUMMARY_SCHEMA.into(),
            id: uuid::Uuid::nil(),
            readable_id: "llm-x".into(),
            timestamp: "2026-11-29T22:00:00Z".into(),
            window_started_at: None,
            window_ended_at: None,
            tool: "metrumbench-llm".into(),
            tool_version: "0.1.0".into(),
            rustc_version: "rustc".into(),
            host: Default::default(),
            config: serde_json::Value::Null,
            simulated: false,
            partial: false,
            cancelled: false,
            percentile_method: PERCENTILE_METHOD.into(),
            flags: vec![],
            figures,
            endpoints: vec![],
            client: Default::default(),
        },
    }
}
