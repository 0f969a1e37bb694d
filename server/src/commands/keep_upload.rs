//! Files that people upload for a command to name: an event says that they are kept, and by whom.

use events::quota::Resource;
use events::system::{BlobStored, UPLOAD};
use events::{Event, StreamKey};

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta, quotas};
use crate::auth::Principal;
use crate::blobs::{BlobRef, Received};
use crate::log::Expected;
use crate::state::AppState;

/// Keeps bytes that have arrived, and notes it the first time that they are.
///
/// # Errors
/// `quota_reached`: others have stored so much meanwhile that these fit no more. They are gone then. Or the store or the
/// log does not answer.
pub async fn keep_upload(
    state: &AppState,
    principal: &Principal,
    org: &str,
    received: Received,
    meta: RequestMeta,
) -> Result<BlobRef, CommandError> {
    let BlobRef { sha256, bytes } = received.blob().clone();
    let stream = StreamKey::new("blob", &[org, &sha256]);
    let kept = async || state.log.stream_version(&stream).await.map(|version| version > 0);
    let allowed = match kept().await? {
        true => None,
        // Until the event is appended nobody else of the organisation is allowed anything.
        false => match quotas::ask(state, org, &[(Resource::StoredBytes, bytes)]).await {
            Ok(allowed) => Some(allowed),
            // The same bytes, which somebody else kept at the same moment, count once.
            Err(_) if kept().await? => None,
            Err(refused) => {
                received.discard().await;
                return Err(refused);
            }
        },
    };
    let blob = received.keep().await.map_err(|error| CommandError::unavailable(&error))?;
    let stored = BlobStored {
        sha256,
        size: bytes,
        media_type: "application/octet-stream".to_owned(),
        purpose: UPLOAD.to_owned(),
        job: None,
    };
    let maker = Maker::of(principal, "upload", &meta);
    let write = maker.write(stream.clone(), Expected::NoStream, &[Event::BlobStored(stored)], 0)?;
    let appended = append(&state.log, vec![write]).await;
    drop(allowed);
    match appended {
        // Somebody kept the same bytes before.
        Ok(_) | Err(NotAppended::Moved(_)) => Ok(blob),
        Err(NotAppended::Error(error)) => Err(error),
    }
}
