//! Suspicion: results that may be unreliable are flagged, shown with a badge and never discarded.

use serde::{Deserialize, Serialize};

/// The control plane, or a person with the right, doubts a result. Stream: the job's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QualityFlagged {
    /// The attempt whose result is doubted.
    pub attempt: u32,
    /// A short stable word, for example `missing_telemetry`, `too_few_requests`, `client_limited`.
    pub rule: String,
    /// What is odd and what to do.
    pub message: String,
}

/// A person looked at a flag and cleared it, with a reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QualityCleared {
    /// The rule whose flag is cleared.
    pub rule: String,
    /// Why.
    pub reason: String,
}
