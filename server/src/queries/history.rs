//! The audit trail: the events of a stream, and the chain behind a result.

use std::collections::BTreeMap;

use events::api::{ChainLink, EventView, History};
use events::catalog::Event;
use events::envelope::Recorded;
use events::keys::{ImportKey, JobKey, StreamKey};
use http::StatusCode;
use serde::Serialize;

use crate::api::Failure;
use crate::auth::Visibility;
use crate::live::{Access, event_view};
use crate::log::{Log, LogError};

/// Events of one answer.
const PAGE: i64 = 1000;

/// What is not there, and what the reader may not see, is answered alike.
pub(super) fn nothing_at(key: &str) -> Failure {
    let shown: String = key.chars().take(200).collect();
    Failure::not_found(
        "not_found",
        format!("there is nothing to see at {shown:?}"),
        "check the key, or sign in",
    )
}

fn stream_key(key: &str) -> Result<StreamKey, Failure> {
    key.parse().map_err(|error: events::keys::KeyError| {
        Failure::bad_request("bad_key", error.to_string(), "for example job/acme/p1/w1/3/c8-isl512-osl256")
    })
}

/// The events of a stream after a position of the log.
///
/// # Errors
/// The key is malformed, the stream is not there or not to be seen, or the log cannot be read.
pub async fn of_stream(
    log: &Log,
    access: &Access,
    visibility: &Visibility,
    key: &str,
    after: i64,
    limit: i64,
) -> Result<History, Failure> {
    let stream = stream_key(key)?;
    // A blob's events are judged one by one below: the same bytes may belong to several projects.
    if stream.kind() != "blob" && !access.sees_stream(visibility, &stream) {
        return Err(nothing_at(key));
    }
    let limit = limit.clamp(1, PAGE);
    let mut events = Vec::new();
    let (mut version, mut seen) = (1, false);
    // `after` is a position of the log; within the stream the versions before it are passed over.
    let more = 'read: loop {
        let page = log.read_stream(&stream, version, PAGE).await?;
        let full = page.len() as i64 == PAGE;
        for recorded in page {
            version = recorded.version + 1;
            if recorded.position <= after || !access.sees(visibility, &recorded) {
                continue;
            }
            seen = true;
            if events.len() as i64 == limit {
                break 'read true;
            }
            events.push(event_view(&recorded));
        }
        if !full {
            break false;
        }
    };
    // Nothing there, or nothing for this reader: answered alike. A page after the last event is empty.
    if !seen && (version == 1 || stream.kind() == "blob") {
        return Err(nothing_at(key));
    }
    let next_after = events.last().filter(|_| more).map(|e| e.position);
    Ok(History { chain: Vec::new(), events, next_after })
}

/// The chain behind a job's result, project → workload → scenario → run → job → invocation → metrics, and the events
/// that made it.
///
/// # Errors
/// As [`of_stream`].
pub async fn of_result(
    log: &Log,
    access: &Access,
    visibility: &Visibility,
    key: &str,
) -> Result<History, Failure> {
    let stream = stream_key(key)?;
    if stream.kind() == "import" {
        return of_import(log, access, visibility, &stream).await;
    }
    let job = JobKey::from_stream(&stream).ok().filter(|_| stream.kind() == "job").ok_or_else(|| {
        Failure::bad_request(
            "bad_key",
            format!("{stream} is no job"),
            "job/<org>/<project>/<workload>/<n>/<scenario>",
        )
    })?;
    if !access.sees_stream(visibility, &stream) {
        return Err(nothing_at(key));
    }
    let scenario = job.scenario_key();
    let workload = scenario.workload_key();
    let mut chain = Vec::new();
    let mut events: BTreeMap<i64, Recorded> = BTreeMap::new();
    for (link, stream) in [
        ("project", workload.project_key().stream()),
        ("workload", workload.stream()),
        ("scenario", scenario.stream()),
        ("run", job.run_key().stream()),
    ] {
        for recorded in log.read_stream(&stream, 1, 1).await? {
            chain.push(chain_link(link, stream.to_string(), &recorded));
            events.insert(recorded.position, recorded);
        }
    }
    let of_job = whole_stream(log, &stream).await?;
    let first = of_job.first().ok_or_else(|| nothing_at(key))?;
    chain.push(chain_link("job", stream.to_string(), first));
    result_links(&of_job, &mut chain);
    events.extend(of_job.into_iter().map(|recorded| (recorded.position, recorded)));
    Ok(History { chain, events: events.values().map(event_view).collect(), next_after: None })
}

/// The chain behind an imported result: project → file → metrics.
async fn of_import(
    log: &Log,
    access: &Access,
    visibility: &Visibility,
    stream: &StreamKey,
) -> Result<History, Failure> {
    let nothing = || nothing_at(stream.as_str());
    let key = ImportKey::from_stream(stream).map_err(|_| nothing())?;
    if !access.sees_stream(visibility, stream) {
        return Err(nothing());
    }
    let project = key.project_key().stream();
    let mut events = log.read_stream(&project, 1, 1).await?;
    let mut chain: Vec<ChainLink> =
        events.iter().map(|recorded| chain_link("project", project.to_string(), recorded)).collect();
    let imported = whole_stream(log, stream).await?;
    let first = imported.first().ok_or_else(nothing)?;
    if let Ok(Event::ToolOutputImported(output)) =
        Event::decode(&first.event_type, first.schema_version, &first.payload)
    {
        chain.push(chain_link("file", format!("{} {}", output.format, output.file_sha256), first));
    }
    chain.push(chain_link("metrics", stream.to_string(), first));
    events.extend(imported);
    Ok(History { chain, events: events.iter().map(event_view).collect(), next_after: None })
}

fn chain_link(link: &str, key: String, recorded: &Recorded) -> ChainLink {
    ChainLink {
        link: link.to_owned(),
        key,
        position: recorded.position,
        hash: hex::encode(recorded.hash),
        recorded_at: recorded.recorded_at,
    }
}

/// The invocation and the metrics of the newest attempt. What an earlier attempt left is no result.
fn result_links(of_job: &[Recorded], chain: &mut Vec<ChainLink>) {
    let mut attempt = 0;
    let (mut invocation, mut metrics) = (None, None);
    for recorded in of_job {
        let Ok(event) = Event::decode(&recorded.event_type, recorded.schema_version, &recorded.payload)
        else {
            continue;
        };
        match event {
            Event::JobClaimed(claimed) => {
                attempt = claimed.attempt;
                (invocation, metrics) = (None, None);
            }
            Event::JobRunning(running) if running.attempt == attempt => {
                let tool = running
                    .tool_argv
                    .first()
                    .map_or("tool", |program| program.rsplit('/').next().unwrap_or(program));
                invocation =
                    Some(chain_link("invocation", format!("{tool} {}", running.tool_version), recorded));
            }
            Event::ToolOutputRecorded(output) if output.attempt == attempt => {
                let tool = format!("{} {}", output.invocation.tool_code, output.invocation.tool_version);
                match &mut invocation {
                    Some(link) => link.key = tool,
                    None => invocation = Some(chain_link("invocation", tool, recorded)),
                }
                metrics = Some(chain_link("metrics", output.summary.id.to_string(), recorded));
            }
            Event::ExternalOutputRecorded(output) if output.attempt == attempt => {
                let tool = format!("{} {}", output.invocation.tool_code, output.invocation.tool_version);
                match &mut invocation {
                    Some(link) => link.key = tool,
                    None => invocation = Some(chain_link("invocation", tool, recorded)),
                }
                metrics = Some(chain_link("metrics", output.invocation.summary_sha256.clone(), recorded));
            }
            _ => {}
        }
    }
    chain.extend(invocation);
    chain.extend(metrics);
}

async fn whole_stream(log: &Log, stream: &StreamKey) -> Result<Vec<Recorded>, LogError> {
    let mut all: Vec<Recorded> = Vec::new();
    loop {
        let page = log.read_stream(stream, all.len() as i64 + 1, PAGE).await?;
        let last = (page.len() as i64) < PAGE;
        all.extend(page);
        if last {
            return Ok(all);
        }
    }
}

/// The event at a position and the proof that it is in the log.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Proved {
    /// The event.
    pub event: EventView,
    /// Its Merkle path and the signed checkpoint. Shows nothing of other events.
    pub proof: events::merkle::Proof,
}

/// The proof of one event.
///
/// # Errors
/// There is no such position, or its event is not to be seen.
pub async fn proof(
    log: &Log,
    access: &Access,
    visibility: &Visibility,
    position: i64,
) -> Result<Proved, Failure> {
    let nothing = || nothing_at(&position.to_string());
    if position < 1 {
        return Err(Failure::new(
            StatusCode::BAD_REQUEST,
            "bad_position",
            format!("{position} is no position"),
            "positions count from 1",
        ));
    }
    let found = log.read_all(position - 1, 1).await?;
    let recorded = found.first().filter(|r| r.position == position).ok_or_else(nothing)?;
    if !access.sees(visibility, recorded) {
        return Err(nothing());
    }
    let proof = match log.proof(position).await {
        Ok(proof) => proof,
        Err(LogError::NoSuchPosition(_)) => return Err(nothing()),
        Err(error) => return Err(error.into()),
    };
    Ok(Proved { event: event_view(recorded), proof })
}
