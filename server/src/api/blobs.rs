//! `PUT /api/agent/blobs/<sha256>` and `GET /api/blobs/<org>/<sha256>`.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use events::StreamKey;
use events::access::Role;
use futures::StreamExt as _;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;

use super::error::Failure;
use super::extract::{ApiPath, RequestContext};
use crate::auth::{AgentIdentity, Principal, Visibility};
use crate::blobs::{BlobError, BlobRef, Received};
use crate::commands::keep_upload::keep_upload;
use crate::commands::{CommandError, RequestMeta, load, quotas};
use crate::domain::Project;
use crate::domain::blob::Blob;
use crate::ingest::is_sha256;
use crate::state::AppState;

impl From<BlobError> for Failure {
    fn from(error: BlobError) -> Self {
        let (status, code, hint) = match &error {
            BlobError::Name(_) => {
                (StatusCode::BAD_REQUEST, "bad_blob_name", "name it by its SHA-256, 64 hexadecimal digits")
            }
            BlobError::NotFound { .. } => {
                (StatusCode::NOT_FOUND, "no_such_blob", "check the hash; it may have been erased")
            }
            BlobError::WrongHash { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, "wrong_hash", "send the bytes again")
            }
            BlobError::TooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "blob_too_large", "split it, or compress it")
            }
            BlobError::Receive(_) => (StatusCode::BAD_REQUEST, "body_broken_off", "send it again"),
            BlobError::Damaged { .. } | BlobError::Store(_) | BlobError::Folder { .. } => {
                return Self::unavailable(&error);
            }
        };
        Self::new(status, code, error.to_string(), hint)
    }
}

/// The answer of an upload.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Uploaded {
    /// SHA-256 of the bytes, hexadecimal.
    sha256: String,
    /// Size, bytes.
    size: u64,
}

impl From<BlobRef> for Uploaded {
    fn from(blob: BlobRef) -> Self {
        Self { sha256: blob.sha256, size: blob.bytes }
    }
}

fn check_name(sha256: &str) -> Result<(), Failure> {
    if is_sha256(sha256) {
        return Ok(());
    }
    let hint = "name it by its SHA-256: 64 lower-case hexadecimal digits";
    Err(Failure::bad_request("bad_blob_name", "that is not a SHA-256", hint))
}

/// Stores bytes, streamed; 200 once they are durable and their hash is the one in the path.
pub async fn put(
    State(state): State<AppState>,
    identity: AgentIdentity,
    ApiPath(sha256): ApiPath<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Uploaded>, Failure> {
    // Whatever the quota: what a job leaves is evidence.
    let received =
        receive(&state, identity.org(), &sha256, state.config.max_blob_bytes, &headers, body).await?;
    Ok(Json(received.keep().await?.into()))
}

/// Stores a person's bytes, so that a command can name them. Until one does, nobody can read them back.
pub async fn upload(
    State(state): State<AppState>,
    principal: Principal,
    context: RequestContext,
    ApiPath(sha256): ApiPath<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Uploaded>, Failure> {
    let caller = principal.require(Role::Member)?;
    let most = state.config.max_blob_bytes;
    let most = quotas::room(&state, &caller.org, announced(&headers))?.map_or(most, |room| room.min(most));
    let received = receive(&state, &caller.org, &sha256, most, &headers, body).await?;
    let meta =
        RequestMeta { correlation_id: context.correlation_id, idempotency_key: None, now: context.now };
    Ok(Json(keep_upload(&state, &principal, &caller.org, received, meta).await?.into()))
}

/// How long the body is to be, where the request says so.
fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
}

async fn receive(
    state: &AppState,
    org: &str,
    sha256: &str,
    most: u64,
    headers: &HeaderMap,
    body: Body,
) -> Result<Received, Failure> {
    check_name(sha256)?;
    if announced(headers).is_some_and(|length| length > most) {
        return Err(Failure::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "blob_too_large",
            format!("a blob is at most {most} bytes"),
            "split it, or compress it",
        ));
    }
    let mut left = most;
    let limited = body.into_data_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| error.to_string())?;
        left = left.checked_sub(chunk.len() as u64).ok_or_else(|| format!("more than {most} bytes"))?;
        Ok::<_, String>(chunk)
    });
    Ok(state.blobs.receive(org, sha256, limited).await?)
}

/// Gives a blob to those who may see the project of a job it belongs to. To everybody else it does not exist.
pub async fn get(
    State(state): State<AppState>,
    principal: Principal,
    ApiPath((org, sha256)): ApiPath<(String, String)>,
) -> Result<Response, Failure> {
    check_name(&sha256)?;
    let media_type = may_see(&state, &principal.visibility(), &org, &sha256).await?;
    let (size, bytes) = state.blobs.stream(&org, &sha256).await?;
    let safe = media_type.starts_with("text/plain");
    let headers = [
        (header::CONTENT_LENGTH, HeaderValue::from(size)),
        // Never anything a browser would run: an agent chose the media type.
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static(if safe {
                "text/plain; charset=utf-8"
            } else {
                "application/octet-stream"
            }),
        ),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static(if safe { "inline" } else { "attachment" })),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600")),
    ];
    Ok((headers, Body::from_stream(bytes)).into_response())
}

/// Gives an agent the rows of a prompt source of its organisation, and no other blob.
pub async fn source(
    State(state): State<AppState>,
    identity: AgentIdentity,
    ApiPath(sha256): ApiPath<String>,
) -> Result<Response, Failure> {
    check_name(&sha256)?;
    let org = identity.org();
    let blob = of_stream(&state, org, &sha256).await?;
    if !blob.is_some_and(|blob| blob.is_prompt_source()) {
        return Err(BlobError::NotFound { org: org.to_owned(), sha256 }.into());
    }
    let (size, bytes) = state.blobs.stream(org, &sha256).await?;
    let headers = [
        (header::CONTENT_LENGTH, HeaderValue::from(size)),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
    ];
    Ok((headers, Body::from_stream(bytes)).into_response())
}

/// The blob as all events of its stream make it.
async fn of_stream(state: &AppState, org: &str, sha256: &str) -> Result<Option<Blob>, CommandError> {
    load::state(&state.log, &StreamKey::new("blob", &[org, sha256])).await
}

/// The media type of a blob that the reader may see.
async fn may_see(
    state: &AppState,
    visibility: &Visibility,
    org: &str,
    sha256: &str,
) -> Result<String, Failure> {
    let not_found = || BlobError::NotFound { org: org.to_owned(), sha256: sha256.to_owned() };
    let blob = of_stream(state, org, sha256).await?.ok_or_else(not_found)?;
    for (project, media_type) in blob.belongs() {
        let visible = match project {
            None => visibility.sees(org, "organization", ""),
            Some(key) => {
                let project: Option<Project> = load::state(&state.log, &key.stream()).await?;
                project.is_some_and(|p| visibility.sees(org, p.visibility.as_str(), &p.owner))
            }
        };
        if visible {
            return Ok(media_type.to_owned());
        }
    }
    Err(not_found().into())
}
