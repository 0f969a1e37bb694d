//! How this control plane is run: flags and environment, read once.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use events::networks::Networks;
use url::Url;

use crate::api::limits::Rates;
use crate::auth::oidc::OidcConfig;
use crate::notify::{Pace, SmtpConfig};
use crate::outbound::Policy;

/// The settings that request handlers and tasks look at.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder for data and keys.
    pub dir: PathBuf,
    /// The address it was asked to listen on; port 0 means any free one.
    pub listen: SocketAddr,
    /// The built page; absent means the API alone.
    pub page_dir: Option<PathBuf>,
    /// The address people and agents reach it by.
    pub public_url: Url,
    /// The address agents reach NATS by, where it is another than the control plane's own.
    pub nats_public_url: Option<String>,
    /// True behind a proxy that sets `X-Forwarded-For`: the client's address is taken from there.
    pub behind_proxy: bool,
    /// Days a session lasts.
    pub session_days: u32,
    /// Largest blob, bytes.
    pub max_blob_bytes: u64,
    /// How long a client may take over a request's headers, and how long a connection may say nothing.
    pub headers_within: Duration,
    /// How long the control plane waits for agents.
    pub timing: crate::commands::Timing,
    /// The OpenID provider that people may sign in by.
    pub oidc: Option<OidcConfig>,
    /// How e-mail leaves; absent means not at all.
    pub smtp: Option<SmtpConfig>,
    /// How often notifications are looked for and tried.
    pub notify: Pace,
    /// The folder of the programs that agents' hosts fetch; absent means that none are handed out.
    pub agent_dir: Option<PathBuf>,
    /// How much one principal may ask a second.
    pub rates: Rates,
    /// What the control plane may ask itself, of the addresses that people name.
    pub outbound: Policy,
    /// What workloads may have agents ask.
    pub endpoints: Policy,
}

impl Config {
    /// The usual settings.
    pub fn new(dir: impl Into<PathBuf>, listen: SocketAddr) -> Self {
        Self {
            dir: dir.into(),
            listen,
            page_dir: None,
            public_url: url_of(listen),
            nats_public_url: None,
            behind_proxy: false,
            session_days: 7,
            max_blob_bytes: 1 << 30,
            headers_within: Duration::from_secs(30),
            timing: crate::commands::Timing::default(),
            agent_dir: None,
            rates: Rates::default(),
            oidc: None,
            smtp: None,
            notify: Pace::default(),
            outbound: Policy::of_control_plane(Networks::default()),
            endpoints: Policy::of_agents(Networks::default()),
        }
    }

    /// The folder of the keys.
    pub fn keys_dir(&self) -> PathBuf {
        self.dir.join("keys")
    }

    /// The folder of the blobs.
    pub fn blobs_dir(&self) -> PathBuf {
        self.dir.join("blobs")
    }

    /// The folder of archived ranges of the log.
    pub fn archive_dir(&self) -> PathBuf {
        archive_dir(&self.dir)
    }

    /// Whether cookies are for HTTPS only.
    pub fn secure(&self) -> bool {
        self.public_url.scheme() == "https"
    }
}

/// The folder of archived ranges of the log, under the folder for data.
pub fn archive_dir(dir: &Path) -> PathBuf {
    dir.join("archive")
}

/// The address of a listener as a browser would write it: one that listens everywhere is reached by the loopback.
pub fn url_of(listen: SocketAddr) -> Url {
    let mut reachable = listen;
    if reachable.ip().is_unspecified() {
        reachable.set_ip(if listen.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    Url::parse(&format!("http://{reachable}")).expect("a socket address is a valid host and port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_every_address_is_reached_by_the_loopback() {
        assert_eq!(url_of("0.0.0.0:8080".parse().unwrap()).as_str(), "http://127.0.0.1:8080/");
        assert_eq!(url_of("[::]:8080".parse().unwrap()).as_str(), "http://[::1]:8080/");
    }
}
