//! Making events of decisions, and appending them.

use events::canonical::CanonicalJson;
use events::envelope::{Actor, ActorKind, MAX_PAYLOAD_BYTES, NewEvent};
use events::timestamp::Timestamp;
use events::{Event, StreamKey};
use uuid::Uuid;

use super::{CommandError, RequestMeta};
use crate::auth::Principal;
use crate::domain::Refusal;
use crate::log::{AppendOutcome, AppendRequest, Expected, Log, StreamWrite};

/// The namespace of ids that follow from what they are the ids of.
const NAMESPACE: Uuid = Uuid::from_u128(0x2f1c_6a0e_7d43_5b8a_9c55_41b1_3e8f_d2a7);

/// The id that always follows from these words: whoever appends the event for the same reason appends it once.
pub fn event_id_of(words: &[&str]) -> Uuid {
    let mut name = Vec::new();
    for word in words {
        name.extend_from_slice(&(word.len() as u64).to_be_bytes());
        name.extend_from_slice(word.as_bytes());
    }
    Uuid::new_v5(&NAMESPACE, &name)
}

/// What the events of one command have in common.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    actor: Actor,
    correlation_id: Option<Uuid>,
    causation_id: Option<Uuid>,
    now: Timestamp,
    /// Where a resend of the command must not append again: what the events' ids follow from.
    seed: Option<String>,
}

impl Maker {
    /// For a command of a person's or an agent's.
    pub(super) fn of(principal: &Principal, command: &str, meta: &RequestMeta) -> Self {
        let seed =
            meta.idempotency_key.as_ref().map(|key| format!("{}\n{command}\n{key}", principal.fingerprint()));
        Self {
            actor: principal.actor(),
            correlation_id: Some(meta.correlation_id),
            causation_id: None,
            now: meta.now,
            seed,
        }
    }

    /// For what an agent is given, because of an earlier event.
    pub(super) fn caused(principal: &Principal, causation_id: Option<Uuid>, now: Timestamp) -> Self {
        Self { actor: principal.actor(), correlation_id: None, causation_id, now, seed: None }
    }

    /// For what the control plane does by itself.
    pub(super) fn system(causation_id: Option<Uuid>, now: Timestamp) -> Self {
        let actor = Actor { kind: ActorKind::System, id: "control-plane".to_owned() };
        Self { actor, correlation_id: None, causation_id, now, seed: None }
    }

    /// The id of the command's event number `index` in a stream of this kind; random where no resend is expected.
    pub(super) fn id(&self, kind: &str, index: usize) -> Uuid {
        match &self.seed {
            Some(seed) => event_id_of(&[seed, kind, &index.to_string()]),
            None => Uuid::now_v7(),
        }
    }

    /// Whether a resend of the command makes the same ids.
    pub(super) fn recognises_resends(&self) -> bool {
        self.seed.is_some()
    }

    /// An event with an id.
    pub(super) fn event(
        &self,
        stream: &StreamKey,
        event: &Event,
        event_id: Uuid,
    ) -> Result<NewEvent, CommandError> {
        let payload = event.payload().map_err(|error| CommandError::unavailable(&error))?;
        let payload = kept(event.event_type(), &payload)?;
        Ok(NewEvent {
            event_id,
            event_type: event.event_type().to_owned(),
            schema_version: event.schema_version(),
            org: stream.org().to_owned(),
            actor: self.actor.clone(),
            causation_id: self.causation_id,
            correlation_id: self.correlation_id,
            occurred_at: self.now,
            payload,
        })
    }

    /// Events for one stream, numbered from `first` within the command.
    pub(super) fn write(
        &self,
        stream: StreamKey,
        expected: Expected,
        events: &[Event],
        first: usize,
    ) -> Result<StreamWrite, CommandError> {
        let events = events
            .iter()
            .enumerate()
            .map(|(index, event)| self.event(&stream, event, self.id(stream.kind(), first + index)))
            .collect::<Result<_, _>>()?;
        Ok(StreamWrite { stream, expected, events })
    }
}

/// A payload as the log keeps it. What it cannot keep is what the caller sent.
///
/// # Errors
/// `unkeepable`: a text with U+0000, or nested too deeply; `too_large`.
fn kept(event_type: &str, payload: &serde_json::Value) -> Result<CanonicalJson, Refusal> {
    let payload = CanonicalJson::of(payload).map_err(|error| {
        Refusal::invalid("unkeepable", format!("{event_type} cannot be kept: {error}"))
            .hint("send texts without U+0000, and objects that are not nested that deeply")
    })?;
    let bytes = payload.as_str().len();
    if bytes > MAX_PAYLOAD_BYTES {
        let message =
            format!("{event_type} would have {bytes} bytes; at most {MAX_PAYLOAD_BYTES} can be kept");
        return Err(Refusal::invalid("too_large", message).hint("shorten its texts, or send it in parts"));
    }
    Ok(payload)
}

/// An append that was not made because a stream had moved.
#[derive(Debug)]
pub(super) enum NotAppended {
    /// The stream is at another version.
    Moved(StreamKey),
    /// Everything else.
    Error(CommandError),
}

impl From<CommandError> for NotAppended {
    fn from(error: CommandError) -> Self {
        Self::Error(error)
    }
}

impl From<NotAppended> for CommandError {
    fn from(not: NotAppended) -> Self {
        match not {
            NotAppended::Moved(stream) => Self::contended(&stream),
            NotAppended::Error(error) => error,
        }
    }
}

/// Appends and gives the position of the last event.
pub(super) async fn append(log: &Log, writes: Vec<StreamWrite>) -> Result<i64, NotAppended> {
    let ids: Vec<Uuid> = writes.iter().flat_map(|write| &write.events).map(|event| event.event_id).collect();
    match log.append(AppendRequest { writes }).await.map_err(CommandError::from)? {
        AppendOutcome::Appended { last, .. } => Ok(last),
        AppendOutcome::AlreadyAppended { positions } => Ok(positions.into_iter().max().unwrap_or_default()),
        AppendOutcome::VersionConflict { stream, .. } => Err(NotAppended::Moved(stream)),
        AppendOutcome::Rejected { reason } => {
            // A command whose ids follow from its Idempotency-Key was carried out before its answer was lost, at
            // another moment: what it appended then stands.
            let positions = log.positions_of(&ids).await.map_err(CommandError::from)?;
            match positions.values().max() {
                Some(last) if positions.len() == ids.len() => Ok(*last),
                _ => Err(NotAppended::Error(CommandError::unavailable(&reason))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_follows_from_its_words_and_not_from_where_they_are_split() {
        assert_eq!(event_id_of(&["job/a", "queued"]), event_id_of(&["job/a", "queued"]));
        assert_ne!(event_id_of(&["ab", "c"]), event_id_of(&["a", "bc"]));
    }
}
