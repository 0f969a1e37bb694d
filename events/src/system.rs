//! What the control plane does about itself: starts, blobs, refused reports.

use serde::{Deserialize, Serialize};

/// A control plane process started. Stream: `system/_/control-plane`. Every lease is renewed once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlPlaneStarted {
    /// Its version.
    pub version: String,
    /// The commit it was built from, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// What a blob is for that a person uploaded and no command has named yet: nobody but that person knows of it.
pub const UPLOAD: &str = "upload";

/// Bulky bytes became durable, content-addressed. Stream: `blob/<org>/<sha256>`. Appended only once the blob can be read back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlobStored {
    /// SHA-256 of the bytes, hexadecimal.
    pub sha256: String,
    /// Size, bytes.
    pub size: u64,
    /// The media type its sender gave.
    pub media_type: String,
    /// What it is, for example `request_log`, `framework_log`.
    pub purpose: String,
    /// The job it belongs to, as a stream key, where it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// A blob was erased. The hash stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlobErased {
    /// Why.
    pub reason: String,
    /// Size of what is gone, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// A report was refused: an audit trail of bad input, limited in rate. Stream: the server's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportRejected {
    /// The id the report's event would have had.
    pub event_id: String,
    /// The kind of report.
    pub kind: String,
    /// A short stable word.
    pub code: String,
    /// Why it was refused.
    pub message: String,
}
