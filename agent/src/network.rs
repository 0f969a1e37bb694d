//! Where jobs may have this host connect to: the policy's networks, judged by what names resolve to here.

use std::net::SocketAddr;
use std::time::Duration;

use events::networks::Networks;
use url::{Host, Url};

use crate::control::{ControlError, http_client_builder};

/// How long a name may take to resolve.
const RESOLVE_WITHIN: Duration = Duration::from_secs(5);

/// An address that was judged, and the only hosts that it stands for from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    host: String,
    addresses: Vec<SocketAddr>,
}

/// Resolves an address and judges every host that it stands for: which one is used is not ours to say.
///
/// # Errors
/// What is wrong with it, and what to change.
pub async fn judge(url: &str, networks: &Networks) -> Result<Judged, String> {
    let parsed = Url::parse(url).map_err(|error| format!("{url:?} is no address: {error}"))?;
    let port = parsed.port_or_known_default().ok_or_else(|| format!("{url:?} names no port"))?;
    let (host, addresses) = match parsed.host() {
        Some(Host::Ipv4(address)) => (address.to_string(), vec![(address, port).into()]),
        Some(Host::Ipv6(address)) => (format!("[{address}]"), vec![(address, port).into()]),
        Some(Host::Domain(name)) => {
            let found = tokio::time::timeout(RESOLVE_WITHIN, tokio::net::lookup_host((name, port))).await;
            let found = found.map_err(|_| format!("the name {name} did not resolve in time"))?;
            let found = found.map_err(|error| format!("the name {name} does not resolve: {error}"))?;
            (name.to_owned(), found.collect::<Vec<SocketAddr>>())
        }
        None => return Err(format!("{url:?} names no host")),
    };
    if addresses.is_empty() {
        return Err(format!("the name {host} stands for no address"));
    }
    match addresses.iter().find(|address| !networks.allows_service(**address)) {
        None => Ok(Judged { host, addresses }),
        Some(bad) => Err(format!(
            "{host} is {}, which is not public and which this host does not allow: add its range to allowed_networks in agent.toml",
            bad.ip()
        )),
    }
}

impl Judged {
    /// An HTTP client that reaches what was judged and does not ask again what the name stands for.
    ///
    /// # Errors
    /// When no TLS is to be had.
    pub fn client(&self) -> Result<reqwest::Client, ControlError> {
        http_client_builder()
            .resolve_to_addrs(&self.host, &self.addresses)
            .build()
            .map_err(|error| ControlError::Unreachable(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(url: &str, networks: &str) -> Option<String> {
        judge(url, &networks.parse().unwrap()).await.err()
    }

    #[tokio::test]
    async fn what_is_not_public_is_refused_unless_the_policy_names_it() {
        for url in [
            "http://127.0.0.1:8000/v1",
            "http://localhost:8000/v1",
            "http://[::1]:8000/",
            "http://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/latest/meta-data/",
            "https://10.1.2.3/",
        ] {
            let why = refusal(url, "").await.expect(url);
            assert!(why.contains("allowed_networks in agent.toml"), "{url}: {why}");
        }
        assert_eq!(refusal("http://93.184.216.34/v1", "").await, None);
        assert_eq!(refusal("http://10.1.2.3/v1", "10.0.0.0/8").await, None);
        assert_eq!(refusal("http://127.0.0.1:8000", "127.0.0.1:8000").await, None);
        assert!(refusal("http://127.0.0.1:8001", "127.0.0.1:8000").await.is_some(), "another port");
    }

    #[tokio::test]
    async fn a_name_that_does_not_resolve_says_so() {
        let why = refusal("http://no-such-host.invalid/", "127.0.0.0/8").await.unwrap();
        assert!(why.contains("no-such-host.invalid"), "{why}");
    }
}
