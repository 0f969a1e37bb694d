//! `create_prompt_source`: a file of inputs gets a code that never means anything else. All of its lines or none.

use bytes::Bytes;
use events::access::Role;
use events::api::{CommandReply, ContentFormat, CreatePromptSource};
use events::keys::check_code;
use events::prompt_source::{PromptSourceCreated, PromptSourceType};
use events::quota::Resource;
use events::system::BlobStored;
use events::{Event, StreamKey};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::append::{Maker, NotAppended, append};
use super::import_results::file;
use super::{CommandError, RequestMeta, catalogue, quotas, reply};
use crate::auth::Principal;
use crate::domain::Refusal;
use crate::domain::blob::PROMPT_SOURCE;
use crate::domain::project::check_name;
use crate::domain::prompt_source::{Content, read_csv, read_jsonl, read_transcripts, refuse};
use crate::log::{Expected, StreamWrite};
use crate::state::AppState;

/// The longest description, characters.
const MAX_DESCRIPTION: usize = 2000;

/// Creates the source. Keys in the answer: `prompt_source_code`, `rows`, `sha256`.
///
/// # Errors
/// `bad_rows` with the faulty lines, `file_missing`, `file_too_large`, `prompt_source_exists`, `bad_code`, `bad_name`,
/// `bad_value`.
pub async fn create_prompt_source(
    state: &AppState,
    principal: &Principal,
    args: CreatePromptSource,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let code = &args.p_prompt_source_code;
    check_code("prompt source code", code)?;
    let name = check_name(args.p_name.as_deref().unwrap_or(code))?;
    let description = args.p_description.clone().unwrap_or_default().trim().to_owned();
    let of_text = |c: char| !c.is_control() || c == '\n';
    if description.chars().count() > MAX_DESCRIPTION || !description.chars().all(of_text) {
        let message =
            format!("p_description has at most {MAX_DESCRIPTION} characters, no control characters");
        return Err(Refusal::invalid("bad_value", message).into());
    }
    let uploaded =
        file(state, &caller.org, args.p_content.as_deref(), args.p_upload_sha256.as_deref()).await?;
    let content = read(state, &args, &uploaded)?;
    let truth = ground_truth(state, &caller.org, &args, &content).await?;
    if let Some((_, there)) = catalogue::prompt_source(state, &caller.org, code).await? {
        return Err(exists(code, there.facts.source_type));
    }
    let as_sent = content.jsonl.as_bytes() == uploaded.as_ref();
    // What was uploaded counts already.
    let rows = if as_sent && args.p_upload_sha256.is_some() { 0 } else { content.jsonl.len() };
    let sent = args.p_ground_truth_content.as_ref().map_or(0, String::len);
    let bytes = rows + sent;
    let _allowed = quotas::ask(state, &caller.org, &[(Resource::StoredBytes, bytes as u64)]).await?;
    let maker = Maker::of(principal, "create_prompt_source", &meta);

    // Durable before any event names it.
    let rows = store(state, &caller.org, Bytes::from(content.jsonl.clone())).await?;
    let truth = match truth {
        Some(bytes) => Some(store(state, &caller.org, bytes).await?),
        None => None,
    };
    let created = PromptSourceCreated {
        name,
        source_type: args.p_type,
        rows: Some(content.rows),
        sha256: Some(rows.sha256.clone()),
        size: Some(rows.size),
        uploaded_sha256: (!as_sent).then(|| hex::encode(Sha256::digest(&uploaded))),
        ground_truth_sha256: truth.as_ref().map(|blob| blob.sha256.clone()),
        ground_truth: truth.is_some(),
        local_paths: content.local_paths,
        words: content.words,
        audio_s: content.audio_s,
        description,
        sources: Vec::new(),
    };
    let stream = StreamKey::new("prompt_source", &[&caller.org, code]);
    let event = Event::PromptSourceCreated(Box::new(created));
    let mut writes: Vec<StreamWrite> = vec![maker.write(stream, Expected::NoStream, &[event], 0)?];
    let sha256 = rows.sha256.clone();
    for (number, blob) in [Some(rows), truth].into_iter().flatten().enumerate() {
        let stream = StreamKey::new("blob", &[&caller.org, &blob.sha256]);
        writes.push(maker.write(stream, Expected::Any, &[Event::BlobStored(blob)], number)?);
    }
    match append(&state.log, writes).await {
        Ok(position) => Ok(reply(
            position,
            [("prompt_source_code", json!(code)), ("rows", json!(content.rows)), ("sha256", json!(sha256))],
        )),
        Err(NotAppended::Moved(_)) => Err(exists(code, args.p_type)),
        Err(NotAppended::Error(error)) => Err(error),
    }
}

fn exists(code: &str, source_type: PromptSourceType) -> CommandError {
    let message = format!("there is a prompt source {code:?} already, a {}", source_type.as_str());
    Refusal::conflict("prompt_source_exists", message)
        .hint("choose another p_prompt_source_code; what a code stands for never changes")
        .into()
}

async fn store(state: &AppState, org: &str, bytes: Bytes) -> Result<BlobStored, CommandError> {
    let stored =
        state.blobs.put_bytes(org, bytes).await.map_err(|error| CommandError::unavailable(&error))?;
    Ok(BlobStored {
        sha256: stored.sha256,
        size: stored.bytes,
        media_type: "application/x-ndjson".to_owned(),
        purpose: PROMPT_SOURCE.to_owned(),
        job: None,
    })
}

fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        Refusal::invalid("bad_rows", format!("line {line}: not UTF-8 text")).hint("save the file as UTF-8")
    })
}

fn read(state: &AppState, args: &CreatePromptSource, bytes: &[u8]) -> Result<Content, Refusal> {
    let text = text(bytes)?;
    let read = match args.p_content_format.unwrap_or_default() {
        ContentFormat::Jsonl => {
            // By their form: a million names are resolved by whoever fetches them, who judges them again.
            let judge = |url: &str| {
                state.config.endpoints.check_form(url).map(drop).map_err(|error| error.to_string())
            };
            read_jsonl(args.p_type, text, &judge)
        }
        ContentFormat::Csv if args.p_type == PromptSourceType::KyaiDataset => read_csv(text),
        ContentFormat::Csv => {
            return Err(Refusal::invalid("bad_value", "only a kyai_dataset can be CSV")
                .hint("send JSONL: one JSON object a line"));
        }
    };
    read.map_err(|faults| refuse("the file", &faults))
}

/// The transcripts, where they came along.
async fn ground_truth(
    state: &AppState,
    org: &str,
    args: &CreatePromptSource,
    content: &Content,
) -> Result<Option<Bytes>, CommandError> {
    let (text_sent, upload) = (&args.p_ground_truth_content, &args.p_ground_truth_upload_sha256);
    if text_sent.is_none() && upload.is_none() {
        return Ok(None);
    }
    if args.p_type != PromptSourceType::MetrumbenchAsrSnapshot {
        return Err(Refusal::invalid("bad_value", "only a metrumbench_asr_snapshot has transcripts").into());
    }
    let bytes = file(state, org, text_sent.as_deref(), upload.as_deref()).await?;
    read_transcripts(text(&bytes)?, &content.ids).map_err(|faults| refuse("the transcripts", &faults))?;
    Ok(Some(bytes))
}
