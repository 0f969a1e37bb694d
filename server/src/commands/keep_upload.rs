//! Files that people upload for a command to name: an event says that they are kept, and by whom.

use events::system::{BlobStored, UPLOAD};
use events::{Event, StreamKey};

use super::append::{Maker, NotAppended, append};
use super::{CommandError, RequestMeta};
use crate::auth::Principal;
use crate::log::Expected;
use crate::state::AppState;

/// Notes that bytes are kept, the first time that they are.
///
/// # Errors
/// The log does not answer.
pub async fn keep_upload(
    state: &AppState,
    principal: &Principal,
    org: &str,
    (sha256, size): (&str, u64),
    meta: RequestMeta,
) -> Result<(), CommandError> {
    let stored = BlobStored {
        sha256: sha256.to_owned(),
        size,
        media_type: "application/octet-stream".to_owned(),
        purpose: UPLOAD.to_owned(),
        job: None,
    };
    let stream = StreamKey::new("blob", &[org, sha256]);
    let maker = Maker::of(principal, "upload", &meta);
    let write = maker.write(stream, Expected::NoStream, &[Event::BlobStored(stored)], 0)?;
    match append(&state.log, vec![write]).await {
        // Somebody kept the same bytes before.
        Ok(_) | Err(NotAppended::Moved(_)) => Ok(()),
        Err(NotAppended::Error(error)) => Err(error),
    }
}
