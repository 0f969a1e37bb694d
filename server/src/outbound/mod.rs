//! Requests to addresses that people name: webhooks, endpoints, addresses of prompts. One module, one policy.
//!
//! An address is judged by what it resolves to, and the connection goes to exactly the addresses that were judged, so
//! that a name cannot point elsewhere a moment later. Whatever is not public (this host, the networks around it, a
//! cloud's metadata service) is refused unless the operator allowed its range. Redirects are not followed and no proxy
//! is used.
//!
//! There are two policies, for there are two that can be turned against their surroundings. The control plane asks
//! webhooks and an OpenID provider: it sits beside the database, and sends plain HTTP only into ranges that were named.
//! Agents ask endpoints and addresses of inputs: those stand in networks of their own, are judged here when they are
//! named, and again, as they resolve there, by the agent.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use events::networks::Networks;
use http::{HeaderMap, Method, StatusCode};
use url::{Host, Url};

/// The most that is read of an answer, bytes.
const MOST_READ: usize = 64 << 10;
/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// What can be done about an address that workloads may not name.
pub const HOW_TO_ALLOW: &str = "name a public address, or have its range allowed: by the operator with --endpoint-allow, and on the agent's host with allowed_networks in agent.toml";

/// Who asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Asker {
    /// This control plane: what it sends, and secrets with it, travels encrypted.
    #[default]
    ControlPlane,
    /// An agent and what it starts. Load may be plain HTTP; the agent's own policy has the last word.
    Agents,
}

/// Which addresses may be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// What may be asked: the public internet, and the ranges that the operator allowed.
    pub networks: Networks,
    asker: Asker,
}

/// Why an address is not asked, or did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The policy or the address itself is in the way. Trying again changes nothing.
    #[error("{0}")]
    Refused(String),
    /// It did not answer. It may later.
    #[error("{0}")]
    Unreachable(String),
}

/// An address that may be asked, and the hosts it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The address.
    pub url: Url,
    /// Where connections go, and nowhere else.
    pub addresses: Vec<SocketAddr>,
}

/// An answer, its body cut off where it is long.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The beginning of the body.
    pub body: Bytes,
}

impl Policy {
    /// What the control plane itself may ask: webhooks, and where an OpenID provider's documents lead.
    pub fn of_control_plane(networks: Networks) -> Self {
        Self { networks, asker: Asker::ControlPlane }
    }

    /// What workloads may have agents ask: endpoints, and other addresses among their arguments and inputs.
    pub fn of_agents(networks: Networks) -> Self {
        Self { networks, asker: Asker::Agents }
    }

    /// What is wrong with an address before anybody is asked: its form, or a host written out.
    ///
    /// # Errors
    /// [`OutboundError::Refused`] says what.
    pub fn check_form(&self, url: &str) -> Result<Url, OutboundError> {
        let refused = |what: String| Err(OutboundError::Refused(what));
        let Ok(url) = Url::parse(url) else {
            return refused("it is not an address of the form https://host/path".to_owned());
        };
        if !matches!(url.scheme(), "http" | "https") {
            return refused(format!("its scheme is {:?}; it has to be https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused("it holds a user name or password; an address is shown to others".to_owned());
        }
        let written_out = match url.host() {
            None => return refused("it names no host".to_owned()),
            // Without asking anybody: RFC 6761 keeps these names for this host.
            Some(Host::Domain(name)) if name == "localhost" || name.ends_with(".localhost") => {
                IpAddr::V4(Ipv4Addr::LOCALHOST)
            }
            Some(Host::Domain(_)) => return Ok(url),
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
        };
        if self.networks.allows(written_out) { Ok(url) } else { refused(self.not_public(written_out)) }
    }

    /// Whether an address may be named at all: by its form, and by what it resolves to here. A name that this host does
    /// not know may be known where it is asked from.
    ///
    /// # Errors
    /// [`OutboundError::Refused`] says what is wrong.
    pub async fn check(&self, url: &str) -> Result<(), OutboundError> {
        match self.resolve(url).await {
            Ok(_) | Err(OutboundError::Unreachable(_)) => Ok(()),
            Err(refused) => Err(refused),
        }
    }

    fn not_public(&self, address: IpAddr) -> String {
        let setting = match self.asker {
            Asker::ControlPlane => "BENCHTRAIL_OUTBOUND_ALLOW",
            Asker::Agents => "BENCHTRAIL_ENDPOINT_ALLOW",
        };
        format!("{address} is not a public address; the operator can allow its range ({setting})")
    }

    /// Resolves an address and judges every host it stands for.
    ///
    /// # Errors
    /// [`OutboundError::Refused`] when one of them may not be asked, [`OutboundError::Unreachable`] when the name does
    /// not resolve.
    pub async fn resolve(&self, url: &str) -> Result<Target, OutboundError> {
        let url = self.check_form(url)?;
        let addresses = look_up(&url).await?;
        // All of them: which one is used is not ours to say.
        if let Some(bad) = addresses.iter().find(|address| !self.networks.allows(address.ip())) {
            return Err(OutboundError::Refused(self.not_public(bad.ip())));
        }
        let named = || addresses.iter().all(|address| self.networks.names(address.ip()));
        if self.asker == Asker::ControlPlane && url.scheme() == "http" && !named() {
            let what = "it is not encrypted; use https, or have the operator allow its range".to_owned();
            return Err(OutboundError::Refused(what));
        }
        Ok(Target { url, addresses })
    }

    /// Asks. Anything but a connection that cannot be made is an answer.
    ///
    /// # Errors
    /// As [`Policy::resolve`], and when no answer comes.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Answer, OutboundError> {
        self.resolve(url).await?.send(method, headers, body, within, MOST_READ).await
    }
}

impl Target {
    /// An address that the operator wrote down: it is not judged, and pinned all the same.
    ///
    /// # Errors
    /// [`OutboundError::Unreachable`] when the name does not resolve.
    pub async fn of_operator(url: Url) -> Result<Self, OutboundError> {
        let addresses = look_up(&url).await?;
        Ok(Self { url, addresses })
    }

    /// Asks the addresses that were judged, and no others. No more than `most` bytes are read of the answer.
    ///
    /// # Errors
    /// [`OutboundError::Unreachable`] when no answer comes.
    pub async fn send(
        self,
        method: Method,
        headers: HeaderMap,
        body: Vec<u8>,
        within: Duration,
        most: usize,
    ) -> Result<Answer, OutboundError> {
        let host = self.url.host_str().unwrap_or_default().to_owned();
        let unreachable = |error: reqwest::Error| OutboundError::Unreachable(cause(&error));
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_WITHIN)
            .timeout(within)
            .resolve_to_addrs(&host, &self.addresses)
            .build()
            .map_err(unreachable)?;
        let request = client.request(method, self.url).headers(headers).body(body);
        let mut response = request.send().await.map_err(unreachable)?;
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let mut read = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            read.extend_from_slice(&chunk);
            if read.len() >= most {
                read.truncate(most);
                break;
            }
        }
        Ok(Answer { status, headers, body: read.into() })
    }
}

/// What an address stands for, with its port.
async fn look_up(url: &Url) -> Result<Vec<SocketAddr>, OutboundError> {
    let port = url.port_or_known_default().unwrap_or(443);
    let addresses: Vec<SocketAddr> = match url.host() {
        Some(Host::Ipv4(address)) => vec![(address, port).into()],
        Some(Host::Ipv6(address)) => vec![(address, port).into()],
        Some(Host::Domain(name)) => {
            let found = tokio::net::lookup_host((name, port));
            let found = tokio::time::timeout(CONNECT_WITHIN, found).await.map_err(|_| {
                OutboundError::Unreachable(format!("the name {name} did not resolve in time"))
            })?;
            found
                .map_err(|error| {
                    OutboundError::Unreachable(format!("the name {name} does not resolve: {error}"))
                })?
                .collect()
        }
        None => Vec::new(),
    };
    if addresses.is_empty() {
        return Err(OutboundError::Unreachable("its name stands for no address".to_owned()));
    }
    Ok(addresses)
}

/// What went wrong, without the address: it may hold a secret of its owner's.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    if innermost.is::<reqwest::Error>() { "the request failed".to_owned() } else { innermost.to_string() }
}

#[cfg(test)]
mod tests;
