//! An audit trail of refused reports, limited in rate so that bad input cannot fill the log.

use events::Event;
use events::canonical::CanonicalJson;
use events::envelope::NewEvent;
use events::system::ReportRejected;
use events::timestamp::Timestamp;
use uuid::Uuid;

use super::Refused;
use crate::auth::AgentIdentity;
use crate::auth::throttle::Throttle;
use crate::log::{AppendOutcome, AppendRequest, Expected};
use crate::state::AppState;

/// How many refusals of an agent are recorded: 60 a minute.
#[derive(Debug)]
pub struct Rejections(Throttle<(String, String)>);

impl Default for Rejections {
    fn default() -> Self {
        Self(Throttle::new(60, 60))
    }
}

/// One refused report.
pub(super) struct About<'a> {
    /// The id its event would have had; nil for a whole batch.
    pub event_id: Uuid,
    pub kind: &'a str,
    pub refused: &'a Refused,
}

/// Records refusals in the server's stream. That it could not is no reason to answer otherwise.
pub(super) async fn record(
    state: &AppState,
    identity: &AgentIdentity,
    refusals: &[About<'_>],
    now: Timestamp,
) {
    let key = || (identity.org().to_owned(), identity.agent.clone());
    let events: Vec<NewEvent> = refusals
        .iter()
        .take_while(|_| state.rejections.0.take(key(), now).is_ok())
        .filter_map(|about| event(identity, about, now))
        .collect();
    if events.len() < refusals.len() {
        tracing::warn!(
            agent = identity.agent,
            org = identity.org(),
            refused = refusals.len(),
            recorded = events.len(),
            "many reports of an agent are refused; not all are recorded"
        );
    }
    if events.is_empty() {
        return;
    }
    let request = AppendRequest::one(identity.server.stream(), Expected::Any, events);
    match state.log.append(request).await {
        Ok(AppendOutcome::Rejected { reason }) => tracing::warn!(reason, "a refused report was not recorded"),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "a refused report was not recorded"),
    }
}

fn event(identity: &AgentIdentity, about: &About<'_>, now: Timestamp) -> Option<NewEvent> {
    let event = Event::ReportRejected(ReportRejected {
        event_id: about.event_id.to_string(),
        kind: about.kind.to_owned(),
        code: about.refused.code.clone(),
        message: about.refused.message.chars().take(1000).collect(),
    });
    Some(NewEvent {
        event_id: Uuid::now_v7(),
        event_type: event.event_type().to_owned(),
        schema_version: event.schema_version(),
        org: identity.org().to_owned(),
        actor: identity.actor(),
        causation_id: None,
        correlation_id: None,
        occurred_at: now,
        payload: CanonicalJson::of(&event.payload().ok()?).ok()?,
    })
}
