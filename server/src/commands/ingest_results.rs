//! `ingest_inferencex_results`: a job of InferenceX is completed by its result, where its agent could not hand it in.

use events::access::Role;
use events::api::{CommandReply, IngestInferencexResults};
use events::foreign::{self, Format, InferencexDimensions, PerGpu};
use events::keys::JobKey;
use events::tool_output::{ExternalOutputRecorded, InferencexOutput, ToolInvocation};
use events::tools::ToolCode;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::advance_run::job_ended;
use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, load, reply};
use crate::auth::Principal;
use crate::domain::{Job, Refusal};
use crate::log::Expected;
use crate::state::AppState;

const TRIES: u32 = 8;

/// Hands in the result. Keys in the answer: `job`.
///
/// # Errors
/// `job_not_found`, `wrong_tool`, `job_not_running`, `result_exists`, `bad_results` with the field that is wrong.
pub async fn ingest_inferencex_results(
    state: &AppState,
    principal: &Principal,
    args: IngestInferencexResults,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let (project, _) = load::writable_project(&state.log, &caller, &args.p_project_code).await?;
    let key = JobKey {
        org: project.org,
        project: project.project,
        workload: args.p_workload_code.clone(),
        run: args.p_run_number,
        scenario: args.p_scenario_code.clone(),
    };
    let maker = Maker::of(principal, "ingest_inferencex_results", &meta);
    for _ in 0..TRIES {
        let job = load::job(&state.log, &key).await?;
        let gpus = load::server(&state.log, &job.server)
            .await?
            .and_then(|server| server.capabilities)
            .and_then(|host| u32::try_from(host.gpus.len()).ok());
        let output = output(&args, &job, gpus.unwrap_or(0))?;
        let events = job.hand_in(output)?;
        let write = maker.write(key.stream(), Expected::Exact(job.version), &events, 0)?;
        match append(&state.log, vec![write]).await {
            Ok(position) => {
                job_ended(state, &key, None, meta.now).await?;
                return Ok(reply(position, [("job", json!(key.stream()))]));
            }
            Err(NotAppended::Moved(_)) => {}
            Err(NotAppended::Error(error)) => return Err(error),
        }
    }
    Err(CommandError::contended(&key))
}

/// The result as the event it becomes: an aggregate tells its configuration, a raw result has the workload's.
fn output(args: &IngestInferencexResults, job: &Job, gpus: u32) -> Result<ExternalOutputRecorded, Refusal> {
    let bad = |message: String| {
        Refusal::invalid("bad_results", message)
            .hint("send the JSON object that process_result.py or benchmark_serving.py wrote, as it is")
    };
    let aggregate = args.p_results.get("tput_per_gpu").is_some();
    let format = if aggregate { Format::Inferencex } else { Format::InferencexResult };
    let text = args.p_results.to_string();
    let mut results =
        foreign::read(format, text.as_bytes()).map_err(|error| bad(format!("p_results: {error}")))?;
    if results.len() != 1 {
        return Err(bad(format!("p_results holds {} results, a job has one", results.len())));
    }
    let result = results.remove(0);
    if let Some(concurrency) = result.load.concurrency.filter(|number| *number != job.scenario.concurrency) {
        let wanted = job.scenario.concurrency;
        return Err(bad(format!("p_results is of concurrency {concurrency}, the job's is {wanted}")));
    }
    let dimensions = match result.inferencex {
        Some(dimensions) if aggregate => dimensions,
        _ => InferencexDimensions::of_job(&job.workload, &job.commands, gpus),
    };
    let per_gpu = match result.per_gpu {
        Some(per_gpu) if aggregate => per_gpu,
        _ => PerGpu::of(&result.figures, dimensions.gpu_count),
    };
    let version = args.p_tool_version.as_deref().unwrap_or("unknown");
    if version.is_empty() || version.len() > 200 || version.chars().any(char::is_control) {
        return Err(bad("p_tool_version has 1 to 200 bytes and no control characters".to_owned()));
    }
    let invocation = ToolInvocation {
        tool_code: ToolCode::Inferencex.as_str().to_owned(),
        tool_version: version.to_owned(),
        argv: job.commands.tool_argv.clone(),
        exit_code: None,
        summary_sha256: hex::encode(Sha256::digest(text.as_bytes())),
    };
    Ok(ExternalOutputRecorded {
        attempt: job.attempt(),
        invocation,
        load: result.load,
        figures: result.figures,
        inferencex: Some(InferencexOutput { dimensions, per_gpu }),
        kv_cache: None,
        kyai: None,
    })
}
