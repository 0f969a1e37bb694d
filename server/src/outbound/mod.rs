//! Requests to addresses that people name: webhooks, endpoints, addresses of prompts. One module, one policy.
//!
//! An address is judged by what it resolves to, and the connection goes to exactly the addresses that were judged, so
//! that a name cannot point elsewhere a moment later. Whatever is not public (this host, the networks around it, a
//! cloud's metadata service) is refused unless the operator allowed its range. Redirects are not followed, no proxy is
//! used, and plain HTTP goes only where the operator allowed the range.

mod ranges;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use ipnet::IpNet;
use url::{Host, Url};

/// The most that is read of an answer, bytes.
const MOST_READ: usize = 64 << 10;
/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Which addresses may be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Ranges that are not public and may be asked all the same.
    pub allowed: Vec<IpNet>,
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
    /// The first 64 KiB of the body.
    pub body: Bytes,
}

impl Policy {
    /// Whether connections may go to this address.
    pub fn allows(&self, address: IpAddr) -> bool {
        ranges::is_public(address) || self.is_allowed(address)
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allowed.iter().any(|range| range.contains(&address))
    }

    /// What is wrong with an address before anybody is asked: its form, or an address written out.
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
            Some(Host::Domain(_)) => return Ok(url),
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
        };
        if self.allows(written_out) { Ok(url) } else { refused(not_public(written_out)) }
    }

    /// Resolves an address and judges every host it stands for.
    ///
    /// # Errors
    /// [`OutboundError::Refused`] when one of them may not be asked, [`OutboundError::Unreachable`] when the name does
    /// not resolve.
    pub async fn resolve(&self, url: &str) -> Result<Target, OutboundError> {
        let url = self.check_form(url)?;
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
        // All of them: which one is used is not ours to say.
        if let Some(bad) = addresses.iter().find(|address| !self.allows(address.ip())) {
            return Err(OutboundError::Refused(not_public(bad.ip())));
        }
        if url.scheme() == "http" && !addresses.iter().all(|address| self.is_allowed(address.ip())) {
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
        let target = self.resolve(url).await?;
        let host = target.url.host_str().unwrap_or_default().to_owned();
        let unreachable = |error: reqwest::Error| OutboundError::Unreachable(cause(&error));
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_WITHIN)
            .timeout(within)
            .resolve_to_addrs(&host, &target.addresses)
            .build()
            .map_err(unreachable)?;
        let request = client.request(method, target.url).headers(headers).body(body);
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let mut read = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            read.extend_from_slice(&chunk);
            if read.len() >= MOST_READ {
                read.truncate(MOST_READ);
                break;
            }
        }
        Ok(Answer { status, body: read.into() })
    }
}

fn not_public(address: IpAddr) -> String {
    format!("{address} is not a public address; the operator can allow its range (BENCHTRAIL_OUTBOUND_ALLOW)")
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
