//! Nudging agents over NATS: a hint only, they also ask by themselves.

use events::keys::ServerKey;
use events::report::{AgentCommand, HeldAttempt};
use events::subjects::command_subject;

use crate::state::AppState;

/// A job waits for this server.
pub(super) async fn work_available(state: &AppState, server: &ServerKey) {
    nudge(state, server, &AgentCommand::WorkAvailable).await;
}

/// This attempt is to be stopped.
pub(super) async fn cancel(state: &AppState, server: &ServerKey, held: HeldAttempt) {
    nudge(state, server, &AgentCommand::Cancel { held }).await;
}

async fn nudge(state: &AppState, server: &ServerKey, command: &AgentCommand) {
    let Some(nats) = &state.nats else { return };
    let Ok(payload) = serde_json::to_vec(command) else { return };
    let subject = command_subject(&server.org, &server.agent());
    if let Err(error) = nats.publish(subject, payload.into()).await {
        tracing::debug!(%error, %server, "an agent was not nudged; it will ask by itself");
    }
}
