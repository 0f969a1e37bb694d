//! What a run with `calibrate` learnt of a prompt source for a model: kept with the source, for the runs after it.

use events::keys::JobKey;
use events::prompt_source::PromptSourceCalibrated;
use events::summary::Summary;
use events::timestamp::Timestamp;
use events::{Event, StreamKey};
use serde_json::Value;

use super::advance_run::output_of;
use super::append::{Maker, NotAppended, append, event_id_of};
use super::{CommandError, load};
use crate::domain::{Aggregate, Job};
use crate::log::{Expected, StreamWrite};
use crate::state::AppState;

/// Records the calibration of a completed job, once. Nothing where it learnt none, or its source is the platform's: that one
/// has hosts and organisations of all kinds.
///
/// # Errors
/// The log does not answer.
pub(super) async fn record(state: &AppState, key: &JobKey, now: Timestamp) -> Result<(), CommandError> {
    let events = load::stream(&state.log, &key.stream()).await?;
    let Some(job) = Job::load(&events)? else { return Ok(()) };
    let Some(source) = job.commands.prompt_source.as_ref().filter(|source| source.org == key.org) else {
        return Ok(());
    };
    let Some(attempt) = job.result_attempt else { return Ok(()) };
    let Some((Event::ToolOutputRecorded(output), _)) = output_of(&events, attempt)? else { return Ok(()) };
    let Some((words_per_token, overhead_tokens, requests)) = learnt(&output.summary) else { return Ok(()) };
    let stream = StreamKey::new("prompt_source", &[&source.org, &source.code]);
    let job_stream = key.stream().to_string();
    let id = event_id_of(&[stream.as_str(), "calibrated", &job_stream, &attempt.to_string()]);
    if state.log.event_by_id(id).await?.is_some() {
        return Ok(());
    }
    let event = Event::PromptSourceCalibrated(PromptSourceCalibrated {
        model_code: job.workload.model_code.clone(),
        words_per_token,
        overhead_tokens,
        requests,
        job: None,
    });
    // The job's own event: who may see the job finds it there.
    let caused_by = events.last().map(|event| event.event_id);
    let event = Maker::system(caused_by, now).event(&stream, &event, id)?;
    match append(&state.log, vec![StreamWrite { stream, expected: Expected::Any, events: vec![event] }]).await
    {
        Ok(_) | Err(NotAppended::Moved(_)) => Ok(()),
        // Another process recorded the same at another moment.
        Err(NotAppended::Error(error)) => match state.log.event_by_id(id).await? {
            Some(_) => Ok(()),
            None => Err(error),
        },
    }
}

/// Words a token, tokens around each prompt, and how many requests that rests on.
fn learnt(summary: &Summary) -> Option<(f64, f64, u64)> {
    let calibration = summary.config.get("calibration")?;
    let number = |value: &Value| value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    let words = summary.config.get("words_per_token").and_then(number).filter(|words| *words > 0.0)?;
    let overhead = calibration.get("overhead_tokens").and_then(number)?;
    Some((words, overhead, calibration.get("requests")?.as_u64()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_without_calibration_teaches_nothing() {
        let mut summary = crate::quality::testing::output(1).summary;
        summary.config = json!({"words_per_token": 0.75});
        assert_eq!(learnt(&summary), None, "the default is not learnt");
        summary.config["calibration"] = json!({"requests": 8, "overhead_tokens": 12.5});
        assert_eq!(learnt(&summary), Some((0.75, 12.5, 8)));
        summary.config["words_per_token"] = json!(0);
        assert_eq!(learnt(&summary), None);
    }
}
