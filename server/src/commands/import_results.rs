//! `import_results`: results of tools that ran elsewhere come into a project, marked imported. All of a file or nothing.

use bytes::Bytes;
use events::Event;
use events::StreamKey;
use events::access::Role;
use events::api::{CommandReply, ImportResults};
use events::foreign::{self, ForeignError, ForeignResult, InferencexDimensions, Load};
use events::keys::{ImportKey, check_code};
use events::quota::Resource;
use events::system::BlobStored;
use events::tool_output::{InferencexOutput, ToolOutputImported};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, catalogue, load, quotas, reply};
use crate::auth::Principal;
use crate::blobs::BlobError;
use crate::domain::Refusal;
use crate::domain::scenario::{MAX_CONCURRENCY, MAX_SEQUENCE};
use crate::ingest::is_sha256;
use crate::log::{Expected, StreamWrite};
use crate::state::AppState;

/// The largest file that is read, bytes.
pub const MAX_FILE: u64 = 64 << 20;
/// The most results that one append takes: each becomes an event.
const MAX_AT_ONCE: usize = 200;
/// The most faults of one file that are told.
const MAX_FAULTS: usize = 20;

/// Imports the file. Keys in the answer: `import_code`, `results` (stream keys), `file_sha256`.
///
/// # Errors
/// `bad_file` with the line or the field, `file_missing`, `file_too_large`, `already_imported`, `contradiction`,
/// `unknown_model`, `bad_value`.
pub async fn import_results(
    state: &AppState,
    principal: &Principal,
    args: ImportResults,
    meta: RequestMeta,
) -> Result<CommandReply, CommandError> {
    let caller = principal.require(Role::Member)?;
    let (project, facts) = load::writable_project(&state.log, &caller, &args.p_project_code).await?;
    facts.check_open()?;
    check(&args)?;
    state.work.catch_up().await?;
    catalogue::model(state, &caller.org, &args.p_model_code).await?;
    let file = file(state, &caller.org, args.p_content.as_deref(), args.p_upload_sha256.as_deref()).await?;
    let results = foreign::read(args.p_format, &file).map_err(|error| bad_file(&args, &file, &error))?;
    if results.len() > MAX_AT_ONCE {
        let message =
            format!("the file holds {} results, at most {MAX_AT_ONCE} are imported at once", results.len());
        return Err(Refusal::invalid("too_many_results", message).hint("split the file").into());
    }
    let sha256 = hex::encode(Sha256::digest(&file));
    let code = args.p_import_code.clone().unwrap_or_else(|| format!("{}-{}", args.p_format, &sha256[..12]));
    check_code("import code", &code)?;

    // Durable before any event names it.
    let size = file.len() as u64;
    // What was uploaded counts already.
    let more = if args.p_upload_sha256.is_some() { 0 } else { size };
    let _allowed = quotas::ask(state, &caller.org, &[(Resource::StoredBytes, more)]).await?;
    state.blobs.put_bytes(&caller.org, file).await.map_err(unavailable)?;
    let maker = Maker::of(principal, "import_results", &meta);
    let mut writes: Vec<StreamWrite> = Vec::new();
    let mut streams: Vec<StreamKey> = Vec::new();
    for (number, result) in (1u32..).zip(results) {
        let imported = imported(&args, &sha256, number, result)?;
        let key = ImportKey {
            org: project.org.clone(),
            project: project.project.clone(),
            import: code.clone(),
            number,
            scenario: scenario_code(&imported.load),
        };
        let event = Event::ToolOutputImported(Box::new(imported));
        writes.push(maker.write(key.stream(), Expected::NoStream, &[event], writes.len())?);
        streams.push(key.stream());
    }
    let blob = Event::BlobStored(BlobStored {
        sha256: sha256.clone(),
        size,
        media_type: "application/json".to_owned(),
        purpose: "imported_result".to_owned(),
        job: streams.first().map(ToString::to_string),
    });
    writes.push(maker.write(StreamKey::new("blob", &[&caller.org, &sha256]), Expected::Any, &[blob], 0)?);
    match append(&state.log, writes).await {
        Ok(position) => Ok(reply(
            position,
            [("import_code", json!(code)), ("results", json!(streams)), ("file_sha256", json!(sha256))],
        )),
        Err(NotAppended::Moved(_)) => {
            let message = format!("the project has an import {code:?} already");
            Err(Refusal::conflict("already_imported", message)
                .hint("the same file is imported once; give p_import_code for another file")
                .into())
        }
        Err(NotAppended::Error(error)) => Err(error),
    }
}

/// Says the first fault, and all others where each line is a result of its own.
fn bad_file(args: &ImportResults, file: &[u8], first: &ForeignError) -> Refusal {
    let refusal =
        Refusal::invalid("bad_file", format!("the file is no result of {}: {first}", args.p_format))
            .hint("import the file as the tool wrote it, and check p_format");
    let faults = foreign::faults(args.p_format, file);
    if faults.len() < 2 {
        return refusal;
    }
    let shown = faults.iter().take(MAX_FAULTS).map(ToString::to_string);
    let more = faults.len().saturating_sub(MAX_FAULTS);
    let rest = (more > 0).then(|| format!("and {more} more"));
    refusal.because(shown.chain(rest).collect::<Vec<_>>().join("\n"))
}

fn unavailable(error: BlobError) -> CommandError {
    CommandError::unavailable(&error)
}

/// The bytes of a file that came with the command or was uploaded before.
///
/// # Errors
/// `file_missing`, `file_too_large`, `bad_value`.
pub(super) async fn file(
    state: &AppState,
    org: &str,
    content: Option<&str>,
    upload: Option<&str>,
) -> Result<Bytes, CommandError> {
    let hint = "give the text in p_content, or upload the file by PUT /api/uploads/<sha256> and name it in p_upload_sha256";
    match (content, upload) {
        (Some(text), None) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        (None, Some(sha256)) => {
            if !is_sha256(sha256) {
                return Err(Refusal::invalid("bad_value", "p_upload_sha256 is no SHA-256 in hexadecimal")
                    .hint("64 lower-case hexadecimal digits")
                    .into());
            }
            match state.blobs.size(org, sha256).await.map_err(unavailable)? {
                None => Err(Refusal::not_found("file_missing", format!("no file {sha256} was uploaded"))
                    .hint(hint)
                    .into()),
                Some(size) if size > MAX_FILE => {
                    let message = format!("the file has {size} bytes, at most {MAX_FILE} are read");
                    Err(Refusal::invalid("file_too_large", message)
                        .hint("split it, or leave details out")
                        .into())
                }
                Some(_) => Ok(state.blobs.get(org, sha256).await.map_err(unavailable)?),
            }
        }
        (Some(_), Some(_)) => {
            Err(Refusal::invalid("bad_value", "p_content and p_upload_sha256 exclude each other")
                .hint(hint)
                .into())
        }
        (None, None) => {
            Err(Refusal::invalid("file_missing", "no file came with the command").hint(hint).into())
        }
    }
}

/// Checks what the person says, before anything is read.
fn check(args: &ImportResults) -> Result<(), Refusal> {
    let texts = [
        ("p_framework_code", &args.p_framework_code),
        ("p_framework_version", &args.p_framework_version),
        ("p_quantization", &args.p_quantization),
        ("p_gpu_name", &args.p_gpu_name),
    ];
    for (name, text) in texts {
        if text.as_ref().is_some_and(|t| t.is_empty() || t.len() > 200 || t.chars().any(char::is_control)) {
            let message = format!("{name} has 1 to 200 bytes and no control characters");
            return Err(Refusal::invalid("bad_value", message));
        }
    }
    let cost = args.p_cost_per_hour_usd.unwrap_or(0.0);
    if !(0.0..=1_000_000.0).contains(&cost) {
        return Err(Refusal::invalid("bad_value", "p_cost_per_hour_usd must be between 0 and 1,000,000"));
    }
    for (name, value, most) in [
        ("p_gpu_count", args.p_gpu_count, 1_000_000),
        ("p_concurrency", args.p_concurrency, MAX_CONCURRENCY),
        ("p_input_sequence_length", args.p_input_sequence_length, MAX_SEQUENCE),
        ("p_output_sequence_length", args.p_output_sequence_length, MAX_SEQUENCE),
    ] {
        if value.is_some_and(|value| !(1..=most).contains(&value)) {
            return Err(Refusal::invalid("bad_value", format!("{name} must be between 1 and {most}")));
        }
    }
    Ok(())
}

/// One result with what the person says beside it.
fn imported(
    args: &ImportResults,
    sha256: &str,
    number: u32,
    result: ForeignResult,
) -> Result<ToolOutputImported, Refusal> {
    let ForeignResult { tool_code, mut load, figures, inferencex, per_gpu } = result;
    let place = |what: &str| format!("result {number}: {what}");
    load.concurrency = said(&place("p_concurrency"), load.concurrency, args.p_concurrency)?;
    load.input_sequence_length =
        said(&place("p_input_sequence_length"), load.input_sequence_length, args.p_input_sequence_length)?;
    load.output_sequence_length =
        said(&place("p_output_sequence_length"), load.output_sequence_length, args.p_output_sequence_length)?;
    let gpu_count = match &inferencex {
        Some(dimensions) => said(&place("p_gpu_count"), dimensions.gpu_count, args.p_gpu_count)?,
        None => args.p_gpu_count,
    };
    let told =
        |of: fn(&InferencexDimensions) -> &Option<String>| inferencex.as_ref().and_then(|d| of(d).clone());
    let gpu_name = named(&place("p_gpu_name"), told(|d| &d.hardware), &args.p_gpu_name)?;
    let framework_code = named(&place("p_framework_code"), told(|d| &d.framework), &args.p_framework_code)?;
    let quantization = named(&place("p_quantization"), told(|d| &d.precision), &args.p_quantization)?;
    let inferencex = inferencex.map(|mut dimensions| {
        dimensions.gpu_count = gpu_count;
        let known = per_gpu.filter(|each| each.tokens_per_second.is_some());
        let per_gpu = known.unwrap_or_else(|| foreign::PerGpu::of(&figures, gpu_count));
        InferencexOutput { dimensions, per_gpu }
    });
    Ok(ToolOutputImported {
        format: args.p_format,
        file_sha256: sha256.to_owned(),
        number,
        tool_code,
        model_code: args.p_model_code.clone(),
        framework_code,
        framework_version: args.p_framework_version.clone(),
        quantization,
        gpu_name,
        gpu_count,
        cost_per_hour_usd: args.p_cost_per_hour_usd,
        load,
        figures,
        inferencex,
    })
}

/// What the file says; where it says nothing, what the person says. The two may not contradict each other.
fn said(what: &str, file: Option<u32>, person: Option<u32>) -> Result<Option<u32>, Refusal> {
    match (file, person) {
        (Some(file), Some(person)) if file != person => {
            Err(Refusal::invalid("contradiction", format!("{what} is {person}, but the file says {file}"))
                .hint("leave the argument out where the file says it"))
        }
        (file, person) => Ok(file.or(person)),
    }
}

/// As [`said`], of words: the person's stand, unless the file's say something else. One may say more than the other, as
/// `NVIDIA H200` does beside `h200`.
fn named(what: &str, file: Option<String>, person: &Option<String>) -> Result<Option<String>, Refusal> {
    let plain = |text: &str| text.to_lowercase().replace(|c: char| !c.is_alphanumeric(), "");
    match (file, person) {
        (Some(file), Some(person)) => {
            let (in_file, by_person) = (plain(&file), plain(person));
            if in_file.contains(&by_person) || by_person.contains(&in_file) {
                return Ok(Some(person.clone()));
            }
            Err(Refusal::invalid(
                "contradiction",
                format!("{what} is {person:?}, but the file says {file:?}"),
            )
            .hint("leave the argument out where the file says it"))
        }
        (file, person) => Ok(person.clone().or(file)),
    }
}

/// The traffic's code, as far as it is known: `c8-isl512-osl256`, `rate4.5`, or `unstated`.
fn scenario_code(load: &Load) -> String {
    let mut code = match (load.concurrency, load.request_rate) {
        (Some(concurrency), _) => format!("c{concurrency}"),
        (None, Some(rate)) => format!("rate{rate}"),
        (None, None) => "unstated".to_owned(),
    };
    for (axis, value) in [("isl", load.input_sequence_length), ("osl", load.output_sequence_length)] {
        if let Some(value) = value {
            code.push_str(&format!("-{axis}{value}"));
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_named_by_what_is_known_of_it() {
        let load = Load { concurrency: Some(8), output_sequence_length: Some(64), ..Load::default() };
        assert_eq!(scenario_code(&load), "c8-osl64");
        assert_eq!(scenario_code(&Load { request_rate: Some(4.5), ..Load::default() }), "rate4.5");
        assert_eq!(scenario_code(&Load::default()), "unstated");
    }

    #[test]
    fn a_person_fills_in_and_does_not_contradict() {
        assert_eq!(said("x", None, Some(8)), Ok(Some(8)));
        assert_eq!(said("x", Some(8), Some(8)), Ok(Some(8)));
        assert_eq!(said("x", Some(8), Some(9)).unwrap_err().code, "contradiction");
        let named = |file: &str, person: &str| {
            let word = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            named("x", word(file), &word(person)).map_err(|refusal| refusal.code)
        };
        assert_eq!(named("h200", "NVIDIA H200"), Ok(Some("NVIDIA H200".to_owned())));
        assert_eq!(named("trt", "trt-llm"), Ok(Some("trt-llm".to_owned())));
        assert_eq!((named("fp8", ""), named("", "fp8")), (Ok(Some("fp8".into())), Ok(Some("fp8".into()))));
        assert_eq!(named("vllm", "sglang"), Err("contradiction"));
    }
}
