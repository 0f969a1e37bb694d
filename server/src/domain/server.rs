//! Servers: the hosts that serve models and generate load, and whether they can take work.

use std::net::IpAddr;

use events::Event;
use events::envelope::Recorded;
use events::keys::{ServerKey, check_code};
use events::server_host::{
    HostCapabilities, ServerCapabilitiesReported, ServerEnrolled, ServerMaintenanceEnded,
    ServerMaintenanceStarted, ServerRegistered, ServerRemoved, ServerState, ServerStateChanged,
};
use events::timestamp::Timestamp;

use super::{Aggregate, LoadError, Refusal, decode, wrong_beginning};

/// The longest comment, characters.
const MAX_COMMENT: usize = 2000;

/// After how much silence a server counts as stale and as offline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// Seconds until stale; the user guide says 2 minutes.
    pub stale_after_s: u32,
    /// Seconds until offline; the user guide says 10 minutes.
    pub offline_after_s: u32,
    /// The oldest agent that this control plane understands: major, minor, patch. An older one has to be bootstrapped
    /// again.
    pub oldest_agent: [u32; 3],
}

impl Default for Silence {
    fn default() -> Self {
        Self { stale_after_s: 120, offline_after_s: 600, oldest_agent: [0, 1, 0] }
    }
}

/// A server as its stream's events made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// A free comment.
    pub comment: Option<String>,
    /// What an hour costs, US dollars.
    pub cost_per_hour_usd: Option<f64>,
    /// The host's address, as a person knows it.
    pub ip_address: Option<String>,
    /// Whether it can take work.
    pub state: ServerState,
    /// Its agent's name, once enrolled.
    pub agent: Option<String>,
    /// Its agent's version, once enrolled.
    pub agent_version: Option<String>,
    /// Its agent's public NATS key, once enrolled.
    pub nats_public_key: Option<String>,
    /// What it is and has, once reported.
    pub capabilities: Option<HostCapabilities>,
    /// Whether a person removed it.
    pub removed: bool,
    /// Why it is in maintenance, while it is.
    pub maintenance: Option<String>,
    /// The version of its stream.
    pub version: i64,
}

impl Aggregate for Server {
    fn begin(first: &Recorded) -> Result<Self, LoadError> {
        let Event::ServerRegistered(registered) = decode(first)? else {
            return Err(wrong_beginning(first, "server", "server.registered"));
        };
        Ok(Self::registered(&registered))
    }

    fn follow(&mut self, recorded: &Recorded) -> Result<(), LoadError> {
        self.evolve(&decode(recorded)?);
        Ok(())
    }
}

impl Server {
    /// The server as its registration made it.
    pub fn registered(event: &ServerRegistered) -> Self {
        Self {
            comment: event.comment.clone(),
            cost_per_hour_usd: event.cost_per_hour_usd,
            ip_address: event.ip_address.clone(),
            state: ServerState::Registered,
            agent: None,
            agent_version: None,
            nats_public_key: None,
            capabilities: None,
            removed: false,
            maintenance: None,
            version: 1,
        }
    }

    /// What an event makes of the server.
    pub fn evolve(&mut self, event: &Event) {
        self.version += 1;
        match event {
            // One that was removed begins anew: its agent has to enrol again.
            Event::ServerRegistered(registered) if self.removed => {
                *self = Self { version: self.version, ..Self::registered(registered) };
            }
            Event::ServerRegistered(registered) => {
                self.comment.clone_from(&registered.comment);
                self.cost_per_hour_usd = registered.cost_per_hour_usd;
                self.ip_address.clone_from(&registered.ip_address);
            }
            Event::ServerEnrolled(enrolled) => {
                self.agent = Some(enrolled.agent.clone());
                self.agent_version = Some(enrolled.agent_version.clone());
                self.nats_public_key = Some(enrolled.nats_public_key.clone());
            }
            Event::ServerCapabilitiesReported(reported) => {
                self.capabilities = Some(reported.capabilities.clone())
            }
            Event::ServerStateChanged(changed) => self.state = changed.state,
            Event::ServerRemoved(_) => self.removed = true,
            Event::ServerMaintenanceStarted(started) => self.maintenance = Some(started.reason.clone()),
            Event::ServerMaintenanceEnded(_) => self.maintenance = None,
            _ => {}
        }
    }

    /// A person registers a server, again where it was removed, or anew for another one-time token.
    /// Nothing to append when it is registered with the same facts.
    ///
    /// # Errors
    /// `bad_code`, `bad_cost`, `bad_text`, `bad_address`.
    pub fn register(
        current: Option<&Self>,
        key: &ServerKey,
        facts: ServerRegistered,
    ) -> Result<Vec<Event>, Refusal> {
        let ServerRegistered { comment, cost_per_hour_usd, ip_address } = facts;
        check_code("server configuration code", &key.config)?;
        check_code("hostname", &key.hostname)?;
        if cost_per_hour_usd.is_some_and(|cost| !cost.is_finite() || !(0.0..=1_000_000.0).contains(&cost)) {
            return Err(Refusal::invalid("bad_cost", "cost_per_hour_usd must be between 0 and 1,000,000"));
        }
        let said =
            |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let comment = said(comment);
        let ip_address = match said(ip_address) {
            None => None,
            Some(text) => match text.parse::<IpAddr>() {
                Ok(address) => Some(address.to_string()),
                Err(_) => {
                    return Err(Refusal::invalid("bad_address", "p_ip_address is no IP address")
                        .hint("write it as 10.20.0.4 or 2001:db8::4, without a port"));
                }
            },
        };
        let is_text = |text: &String| {
            text.chars().count() <= MAX_COMMENT && !text.chars().any(|c| c.is_control() && c != '\n')
        };
        if comment.as_ref().is_some_and(|comment| !is_text(comment)) {
            return Err(Refusal::invalid(
                "bad_text",
                format!("p_comment has at most {MAX_COMMENT} characters, none of them control characters"),
            ));
        }
        if let Some(server) = current
            && !server.removed
            && comment.as_ref().is_none_or(|comment| server.comment.as_ref() == Some(comment))
            && cost_per_hour_usd.is_none_or(|cost| server.cost_per_hour_usd == Some(cost))
            && ip_address.as_ref().is_none_or(|address| server.ip_address.as_ref() == Some(address))
        {
            return Ok(vec![]);
        }
        let comment = comment.or_else(|| current.and_then(|server| server.comment.clone()));
        let cost_per_hour_usd =
            cost_per_hour_usd.or_else(|| current.and_then(|server| server.cost_per_hour_usd));
        let ip_address = ip_address.or_else(|| current.and_then(|server| server.ip_address.clone()));
        Ok(vec![Event::ServerRegistered(ServerRegistered { comment, cost_per_hour_usd, ip_address })])
    }

    /// The server's agent enrols with its one-time token, or enrols again.
    ///
    /// # Errors
    /// `server_removed`.
    pub fn enrol(
        &self,
        key: &ServerKey,
        agent_version: &str,
        nats_public_key: &str,
    ) -> Result<Vec<Event>, Refusal> {
        if self.removed {
            return Err(Refusal::conflict("server_removed", "the server was removed")
                .hint("register it again, then enrol with the new token"));
        }
        Ok(vec![Event::ServerEnrolled(ServerEnrolled {
            agent: key.agent(),
            agent_version: agent_version.to_owned(),
            nats_public_key: nats_public_key.to_owned(),
        })])
    }

    /// A person removes the server: its agent is let in no more.
    pub fn remove(&self) -> Vec<Event> {
        if self.removed { vec![] } else { vec![Event::ServerRemoved(ServerRemoved {})] }
    }

    /// An administrator puts the server into maintenance, or ends it. Nothing to append where it is so already.
    ///
    /// # Errors
    /// `reason_missing`, `bad_text`.
    pub fn set_maintenance(&self, on: bool, reason: Option<&str>) -> Result<Vec<Event>, Refusal> {
        if !on {
            let ended = Event::ServerMaintenanceEnded(ServerMaintenanceEnded {});
            return Ok(if self.maintenance.is_some() { vec![ended] } else { vec![] });
        }
        let reason = reason.map(str::trim).unwrap_or_default();
        if reason.is_empty() {
            return Err(Refusal::invalid("reason_missing", "maintenance begins with a reason")
                .hint("say in p_reason why the server takes no jobs"));
        }
        if reason.chars().count() > MAX_COMMENT || reason.chars().any(|c| c.is_control() && c != '\n') {
            return Err(Refusal::invalid(
                "bad_text",
                format!("p_reason has at most {MAX_COMMENT} characters, none of them control characters"),
            ));
        }
        if self.maintenance.as_deref() == Some(reason) {
            return Ok(vec![]);
        }
        Ok(vec![Event::ServerMaintenanceStarted(ServerMaintenanceStarted { reason: reason.to_owned() })])
    }

    /// The agent reports what its host is and has. Nothing to append when nothing changed.
    pub fn report_capabilities(&self, capabilities: &HostCapabilities) -> Vec<Event> {
        if self.capabilities.as_ref() == Some(capabilities) {
            return vec![];
        }
        vec![Event::ServerCapabilitiesReported(ServerCapabilitiesReported {
            capabilities: capabilities.clone(),
        })]
    }

    /// Whether its agent enrolled with a version that is not understood any more.
    pub fn is_too_old(&self, oldest: [u32; 3]) -> bool {
        self.agent_version.as_deref().is_some_and(|version| version_of(version) < oldest)
    }

    /// The state that a last heartbeat stands for, as an event where it differs. A server without a heartbeat stays
    /// registered; one that must be bootstrapped again stays so until it enrols and is heard.
    pub fn observe(&self, last_seen: Option<Timestamp>, now: Timestamp, silence: Silence) -> Vec<Event> {
        if self.removed || self.agent.is_none() {
            return vec![];
        }
        if self.is_too_old(silence.oldest_agent) {
            let state = ServerState::RequiresReonboarding;
            return if self.state == state {
                vec![]
            } else {
                vec![Event::ServerStateChanged(ServerStateChanged { state })]
            };
        }
        let Some(last_seen) = last_seen else { return vec![] };
        let state = state_by_silence(last_seen, now, silence);
        if state == self.state
            || (self.state == ServerState::RequiresReonboarding && state != ServerState::Online)
        {
            return vec![];
        }
        vec![Event::ServerStateChanged(ServerStateChanged { state })]
    }
}

/// The three numbers of a version such as `0.1.0-rc.1`; what is no number counts as 0.
fn version_of(text: &str) -> [u32; 3] {
    let core = text.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default();
    let mut numbers = core.split('.').map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

/// Online, stale or offline: by how long ago the last heartbeat was.
pub fn state_by_silence(last_seen: Timestamp, now: Timestamp, silence: Silence) -> ServerState {
    let silent_s = now.micros_since(last_seen) / 1_000_000;
    if silent_s >= i64::from(silence.offline_after_s) {
        ServerState::Offline
    } else if silent_s >= i64::from(silence.stale_after_s) {
        ServerState::Stale
    } else {
        ServerState::Online
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::testing::{at, server_key};

    fn enrolled() -> Server {
        let mut server = Server::registered(&ServerRegistered::default());
        for event in server.clone().enrol(&server_key(), "0.1.0", "UKEY").unwrap() {
            server.evolve(&event);
        }
        server
    }

    #[test]
    fn a_server_is_online_for_two_minutes_stale_until_ten_then_offline() {
        let state = |seconds| state_by_silence(at(0), at(seconds), Silence::default());
        assert_eq!(state(119), ServerState::Online);
        assert_eq!(state(120), ServerState::Stale);
        assert_eq!(state(599), ServerState::Stale);
        assert_eq!(state(600), ServerState::Offline);
    }

    #[test]
    fn the_first_heartbeat_makes_a_registered_server_online_once() {
        let mut server = enrolled();
        let events = server.observe(Some(at(5)), at(6), Silence::default());
        assert_eq!(events, [Event::ServerStateChanged(ServerStateChanged { state: ServerState::Online })]);
        server.evolve(&events[0]);
        assert_eq!(server.observe(Some(at(7)), at(8), Silence::default()), []);
    }

    #[test]
    fn an_agent_that_is_too_old_must_be_bootstrapped_again_and_is_online_once_it_was() {
        let silence = Silence { oldest_agent: [0, 2, 0], ..Silence::default() };
        let mut server = enrolled();
        let events = server.observe(Some(at(5)), at(6), silence);
        let state = ServerState::RequiresReonboarding;
        assert_eq!(events, [Event::ServerStateChanged(ServerStateChanged { state })]);
        server.evolve(&events[0]);
        assert_eq!(server.observe(Some(at(7)), at(8), silence), []);
        for event in server.clone().enrol(&server_key(), "0.2.0-rc.1", "UKEY").unwrap() {
            server.evolve(&event);
        }
        let state = ServerState::Online;
        assert_eq!(
            server.observe(Some(at(9)), at(10), silence),
            [Event::ServerStateChanged(ServerStateChanged { state })]
        );
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(version_of("0.10.0") > version_of("0.9.3") && version_of("1") > version_of("0.99.99"));
        assert_eq!(version_of("v1.2.3-rc.1+abc"), [1, 2, 3]);
    }

    #[test]
    fn a_server_that_never_enrolled_stays_registered() {
        let server = Server::registered(&ServerRegistered::default());
        assert_eq!(server.observe(Some(at(0)), at(9999), Silence::default()), []);
        assert_eq!(enrolled().observe(None, at(9999), Silence::default()), []);
    }

    #[test]
    fn registering_again_with_the_same_facts_appends_nothing() {
        let server = Server { cost_per_hour_usd: Some(2.5), ..enrolled() };
        let cost = |usd| ServerRegistered { cost_per_hour_usd: Some(usd), ..ServerRegistered::default() };
        assert_eq!(Server::register(Some(&server), &server_key(), cost(2.5)), Ok(vec![]));
        assert_eq!(Server::register(Some(&server), &server_key(), cost(3.0)).unwrap().len(), 1);
    }

    #[test]
    fn an_address_is_kept_as_addresses_are_spelt_and_stays_where_it_is_not_said_again() {
        let at =
            |text: &str| ServerRegistered { ip_address: Some(text.into()), ..ServerRegistered::default() };
        let events = Server::register(None, &server_key(), at(" 2001:DB8::4 ")).unwrap();
        let [Event::ServerRegistered(registered)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(registered.ip_address.as_deref(), Some("2001:db8::4"));
        let server = Server::registered(registered);
        assert_eq!(Server::register(Some(&server), &server_key(), at("2001:db8:0::4")), Ok(vec![]));
        let cost = ServerRegistered { cost_per_hour_usd: Some(1.0), ..ServerRegistered::default() };
        let events = Server::register(Some(&server), &server_key(), cost).unwrap();
        let [Event::ServerRegistered(registered)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(registered.ip_address.as_deref(), Some("2001:db8::4"));
        for bad in ["gpu-01", "10.0.0.4:22", "10.0.0"] {
            assert_eq!(
                Server::register(None, &server_key(), at(bad)).unwrap_err().code,
                "bad_address",
                "{bad}"
            );
        }
    }

    #[test]
    fn a_new_cost_changes_nothing_else_and_a_removed_server_begins_anew() {
        let registered = |cost| {
            Event::ServerRegistered(ServerRegistered {
                cost_per_hour_usd: Some(cost),
                ..ServerRegistered::default()
            })
        };
        let mut server = enrolled();
        server.state = ServerState::Online;
        server.evolve(&registered(2.5));
        assert_eq!((server.state, server.agent.is_some()), (ServerState::Online, true));
        for event in server.clone().remove() {
            server.evolve(&event);
        }
        assert!(server.removed && server.remove().is_empty());
        server.evolve(&registered(3.0));
        assert_eq!((server.removed, server.state, server.agent), (false, ServerState::Registered, None));
        assert_eq!(server.cost_per_hour_usd, Some(3.0));
    }

    #[test]
    fn maintenance_begins_with_a_reason_and_ends_once() {
        let mut server = enrolled();
        assert_eq!(server.set_maintenance(true, Some(" ")).unwrap_err().code, "reason_missing");
        for event in server.set_maintenance(true, Some("a new fan")).unwrap() {
            server.evolve(&event);
        }
        assert_eq!(server.maintenance.as_deref(), Some("a new fan"));
        assert_eq!(server.set_maintenance(true, Some("a new fan")), Ok(vec![]));
        let ended = server.set_maintenance(false, None).unwrap();
        server.evolve(&ended[0]);
        assert_eq!((server.maintenance.clone(), server.set_maintenance(false, None)), (None, Ok(vec![])));
    }

    #[test]
    fn a_cost_that_is_not_a_number_is_refused() {
        let refusal = Server::register(
            None,
            &server_key(),
            ServerRegistered { cost_per_hour_usd: Some(f64::NAN), ..ServerRegistered::default() },
        )
        .unwrap_err();
        assert_eq!(refusal.code, "bad_cost");
    }
}
