//! How the agent talks to the control plane: NATS requests where they get through, HTTPS otherwise.
//!
//! Both carry the same types to the same door, and nothing here waits for ever: every request has a timeout.
//! A request that timed out may have arrived; that is harmless, because every report carries the id of its event.

mod https;
mod nats;

use std::sync::Arc;

use events::api::ApiError;
use events::report::{
    AgentCommand, AgentCredentials, ClaimReply, ClaimRequest, Heartbeat, HeartbeatReply, ReportBatch,
    ReportReply,
};
use events::subjects::IngestKind;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

pub use https::{Https, http_client, http_client_builder};
pub use nats::{NatsLink, NatsProbe, probe_nats};

/// Why the control plane did not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ControlError {
    /// It could not be reached, or did not answer in time.
    #[error("the control plane cannot be reached: {0}")]
    Unreachable(String),
    /// It answered that it will not.
    #[error("the control plane refused ({status}): {} ({}){}", error.message, error.code, hint(error))]
    Refused {
        /// The HTTP status; 0 over NATS.
        status: u16,
        /// Its own words.
        error: ApiError,
    },
    /// Its answer was not understood.
    #[error(
        "the control plane's answer was not understood: {0}. Do agent and control plane have the same version?"
    )]
    Malformed(String),
}

fn hint(error: &ApiError) -> String {
    error.hint.as_ref().map(|hint| format!(". {hint}")).unwrap_or_default()
}

impl ControlError {
    /// Whether the same request, sent again, will be refused again: what was sent is at fault.
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 413 | 415 | 422, .. })
    }
}

/// An answer that may carry a refusal inside.
trait Answer: DeserializeOwned {
    fn refusal(&self) -> Option<&ApiError>;
}

impl Answer for ReportReply {
    fn refusal(&self) -> Option<&ApiError> {
        self.error.as_ref()
    }
}

impl Answer for HeartbeatReply {
    fn refusal(&self) -> Option<&ApiError> {
        self.error.as_ref()
    }
}

impl Answer for ClaimReply {
    fn refusal(&self) -> Option<&ApiError> {
        self.error.as_ref()
    }
}

impl Answer for AgentCredentials {
    fn refusal(&self) -> Option<&ApiError> {
        None
    }
}

/// The control plane, by whichever road is open.
pub struct Control {
    https: Https,
    nats: Option<Arc<NatsLink>>,
}

impl Control {
    /// Talks over HTTPS only.
    pub fn over_https(https: Https) -> Self {
        Self { https, nats: None }
    }

    /// Talks over NATS while it answers, over HTTPS otherwise. Commands that arrive are sent to `commands`.
    pub fn over_both(
        https: Https,
        identity: &crate::identity::Identity,
        commands: mpsc::Sender<AgentCommand>,
    ) -> Self {
        let nats = NatsLink::start(https.clone(), identity, commands);
        Self { https, nats: Some(nats) }
    }

    /// The HTTPS road, for what only it can do.
    pub fn https(&self) -> &Https {
        &self.https
    }

    /// Whether the NATS road is open.
    pub fn nats_is_open(&self) -> bool {
        self.nats.as_ref().is_some_and(|nats| nats.client().is_some())
    }

    /// Hands in reports.
    ///
    /// # Errors
    /// [`ControlError`]; nothing is known about any item then.
    pub async fn report(&self, batch: &ReportBatch) -> Result<ReportReply, ControlError> {
        self.ask(IngestKind::Reports, batch).await
    }

    /// Says that the agent is alive.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn heartbeat(&self, heartbeat: &Heartbeat) -> Result<HeartbeatReply, ControlError> {
        self.ask(IngestKind::Heartbeat, heartbeat).await
    }

    /// Asks for work.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn claim(&self, claim: &ClaimRequest) -> Result<ClaimReply, ControlError> {
        self.ask(IngestKind::Claim, claim).await
    }

    async fn ask<A: Answer>(&self, kind: IngestKind, question: &impl Serialize) -> Result<A, ControlError> {
        let body = serde_json::to_vec(question).map_err(|e| ControlError::Malformed(e.to_string()))?;
        if let Some(nats) = &self.nats {
            match nats.request(kind, &body).await.and_then(|bytes| read::<A>(0, &bytes)) {
                Ok(answer) => return Ok(answer),
                // Asked again over HTTPS: its status tells whether what was sent is at fault.
                Err(error) => tracing::debug!(%error, "no answer over NATS, asking over HTTPS"),
            }
        }
        let (status, bytes) = self.https.post(&format!("/api/agent/{}", kind.as_str()), body).await?;
        read(status, &bytes)
    }
}

/// Reads an answer; a refusal inside it becomes an error.
fn read<A: Answer>(status: u16, bytes: &[u8]) -> Result<A, ControlError> {
    let answer: A = serde_json::from_slice(bytes).map_err(|e| ControlError::Malformed(e.to_string()))?;
    match answer.refusal() {
        Some(error) => Err(ControlError::Refused { status, error: error.clone() }),
        None => Ok(answer),
    }
}
