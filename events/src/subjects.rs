//! NATS subjects: how stream keys and agents are named on the wire, and what an agent may use.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::keys::StreamKey;

/// The JetStream stream that carries the relayed log. A bounded cache: losing it loses nothing.
pub const EVENTS_STREAM: &str = "EVENTS";

/// Every relayed event lies under this subject.
pub const EVENTS_WILDCARD: &str = "events.>";

/// Every agent's reports lie under this subject; the control plane's queue group listens here.
pub const INGEST_WILDCARD: &str = "ingest.*.*.*";

const TOKEN: &AsciiSet = &CONTROLS.add(b'%').add(b'.').add(b'*').add(b'>').add(b' ').add(b'/');

/// One token of a subject: `.`, `*`, `>`, space, `/` and `%` are percent-encoded.
pub fn token(raw: &str) -> String {
    utf8_percent_encode(raw, TOKEN).to_string()
}

/// Reads a token back.
pub fn raw(token: &str) -> String {
    percent_decode_str(token).decode_utf8_lossy().into_owned()
}

/// The subject a stream's events are relayed on: `events.<org>.<kind>.<part>…`.
pub fn event_subject(stream: &StreamKey) -> String {
    let parts = stream.parts();
    let mut subject = format!("events.{}.{}", token(stream.org()), token(stream.kind()));
    for part in parts.iter().skip(1) {
        subject.push('.');
        subject.push_str(&token(part));
    }
    subject
}

/// The kinds of request an agent makes: the last token of `ingest.<org>.<agent>.<kind>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngestKind {
    /// A batch of reports: [`crate::report::ReportBatch`] → [`crate::report::ReportReply`].
    Reports,
    /// The agent is alive: [`crate::report::Heartbeat`] → [`crate::report::HeartbeatReply`].
    Heartbeat,
    /// The agent asks for work: [`crate::report::ClaimRequest`] → [`crate::report::ClaimReply`].
    Claim,
}

impl IngestKind {
    /// The subject's last token.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reports => "reports",
            Self::Heartbeat => "heartbeat",
            Self::Claim => "claim",
        }
    }

    /// The kind a token names.
    pub fn parse(token: &str) -> Option<Self> {
        match token {
            "reports" => Some(Self::Reports),
            "heartbeat" => Some(Self::Heartbeat),
            "claim" => Some(Self::Claim),
            _ => None,
        }
    }
}

/// The subject an agent sends a request on.
pub fn ingest_subject(org: &str, agent: &str, kind: IngestKind) -> String {
    format!("ingest.{}.{}.{}", token(org), token(agent), kind.as_str())
}

/// Reads an ingest subject back: organisation, agent, kind.
pub fn parse_ingest_subject(subject: &str) -> Option<(String, String, IngestKind)> {
    let mut tokens = subject.split('.');
    if tokens.next() != Some("ingest") {
        return None;
    }
    let (org, agent, kind) = (tokens.next()?, tokens.next()?, tokens.next()?);
    if tokens.next().is_some() {
        return None;
    }
    Some((raw(org), raw(agent), IngestKind::parse(kind)?))
}

/// The subject the control plane nudges an agent on (work available, cancel): [`crate::report::AgentCommand`].
/// The organisation is part of it: agents of two organisations may have the same name.
pub fn command_subject(org: &str, agent: &str) -> String {
    format!("agent.{}.{}.cmd", token(org), token(agent))
}

/// The prefix of an agent's reply inbox.
pub fn inbox_prefix(org: &str, agent: &str) -> String {
    format!("_INBOX.{}.{}", token(org), token(agent))
}

/// The subjects an agent may publish on; everything else is refused by the NATS server.
pub fn agent_may_publish(org: &str, agent: &str) -> Vec<String> {
    vec![format!("ingest.{}.{}.*", token(org), token(agent))]
}

/// The subjects an agent may subscribe to.
pub fn agent_may_subscribe(org: &str, agent: &str) -> Vec<String> {
    vec![format!("{}.>", inbox_prefix(org, agent)), command_subject(org, agent)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_encodes_what_nats_would_split() {
        let stream = StreamKey::new("model", &["_", "meta-llama/Llama-3.1 8B"]);
        assert_eq!(event_subject(&stream), "events._.model.meta-llama%2FLlama-3%2E1%208B");
    }

    #[test]
    fn an_ingest_subject_survives() {
        let subject = ingest_subject("acme", "h100x8~gpu-1.example", IngestKind::Reports);
        assert_eq!(
            parse_ingest_subject(&subject),
            Some(("acme".into(), "h100x8~gpu-1.example".into(), IngestKind::Reports))
        );
        assert_eq!(parse_ingest_subject("ingest.a.b"), None);
        assert_eq!(parse_ingest_subject("ingest.a.b.other"), None);
    }
}
