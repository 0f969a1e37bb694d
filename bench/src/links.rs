//! Images behind links: fetched while nothing is being measured, for their size, SHA-256 and dimensions.
//!
//! A link in an answer is a stranger's: it leads nowhere that the endpoint itself does not already stand for. Where the
//! endpoint is a public machine, so must the link's be; this machine's own services and its network stay out of reach.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use events::summary_requests::Artifact;
use futures::StreamExt;
use sha2::Digest;
use url::Url;

use crate::endpoints::Endpoint;
use crate::failure::Redactor;
use crate::http::connect::{ConnectError, ConnectOptions, Connector};
use crate::http::simple::{self, FetchError, Limits};
use crate::images;

/// The largest image that is fetched.
pub const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The longest that one image may take.
const LONGEST: Duration = Duration::from_secs(60);

/// Images fetched at once.
pub const AT_ONCE: usize = 4;

/// How far away from everyone an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    /// Of no use as the address of a server of images: unspecified, multicast, or of this link only, where clouds keep
    /// their machines' credentials.
    Never,
    /// This machine.
    Loopback,
    /// A network that is not public.
    Private,
    /// Anywhere.
    Public,
}

fn distance(address: IpAddr) -> Distance {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            if v4.is_unspecified()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_link_local()
                || first == 0
            {
                Distance::Never
            } else if v4.is_loopback() {
                Distance::Loopback
            } else if v4.is_private() || first == 100 && (64..128).contains(&second) {
                Distance::Private
            } else {
                Distance::Public
            }
        }
        IpAddr::V6(v6) => {
            if v6.is_unspecified() || v6.is_multicast() || v6.is_unicast_link_local() {
                Distance::Never
            } else if v6.is_loopback() {
                Distance::Loopback
            } else if v6.is_unique_local() {
                Distance::Private
            } else {
                Distance::Public
            }
        }
    }
}

/// Where links of an endpoint may lead.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    own: Vec<IpAddr>,
}

impl Reach {
    /// That of an endpoint at these addresses.
    pub fn of(own: Vec<IpAddr>) -> Self {
        Self { own }
    }

    /// Whether a link may lead to this address: one of the endpoint's own, or one that is no nearer to us than those.
    pub fn allows(&self, address: IpAddr) -> bool {
        let nearest = self.own.iter().map(|own| distance(*own)).min().unwrap_or(Distance::Public);
        self.own.contains(&address)
            || distance(address) != Distance::Never && distance(address) >= nearest.max(Distance::Loopback)
    }
}

/// Follows the links in answers of one endpoint.
#[derive(Clone, Debug)]
pub struct Follower {
    endpoint: Url,
    authorization: Option<String>,
    options: ConnectOptions,
    reach: Reach,
}

impl Follower {
    /// For the answers of `endpoint`, whose name is looked up now.
    pub async fn of(endpoint: &Endpoint, options: ConnectOptions) -> Self {
        let direct = ConnectOptions { proxy: None, ..options.clone() };
        let own = Connector::resolve(&endpoint.url, direct).await.map(|connector| connector.addresses());
        Self {
            endpoint: endpoint.url.clone(),
            authorization: endpoint.authorization(),
            options,
            reach: Reach::of(own.unwrap_or_default()),
        }
    }

    /// Where a link in an answer leads: some servers give only a path.
    pub fn target(&self, link: &str) -> Result<Url, String> {
        let url = self.endpoint.join(link).map_err(|error| format!("no link: {error}"))?;
        match url.scheme() {
            "http" | "https" => Ok(url),
            other => Err(format!("{other}: only http and https links are fetched")),
        }
    }

    /// The bytes behind a link. The endpoint's key goes to the endpoint alone.
    pub async fn fetch(&self, url: &Url) -> Result<Vec<u8>, String> {
        let own = url.origin() == self.endpoint.origin();
        let limits = Limits { time: LONGEST, bytes: MOST_BYTES, reach: Some(self.reach.clone()) };
        let key = self.authorization.as_deref().filter(|_| own);
        match simple::get(url, key, &self.options, &limits).await {
            Ok(document) => Ok(document.body),
            Err(error) => Err(reason(error)),
        }
    }
}

/// What is known of an image that a server is to fetch itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Its bytes.
    pub bytes: u64,
    /// Pixels across and down.
    pub dimensions: (u32, u32),
}

/// Whether all of the user's own addresses lead where this host may connect to, as their names resolve now. The error
/// is the first that does not, and why.
///
/// # Errors
/// An address out of the networks. One that cannot be resolved here is none of ours: whoever fetches it will say so.
pub async fn check_networks<'a>(
    addresses: impl Iterator<Item = &'a str>,
    options: &ConnectOptions,
) -> Result<(), (String, ConnectError)> {
    if options.networks.is_none() {
        return Ok(());
    }
    let origins: HashMap<String, &str> = addresses
        .filter_map(|address| Some((Url::parse(address).ok()?.origin().ascii_serialization(), address)))
        .collect();
    for address in origins.into_values() {
        let Ok(url) = Url::parse(address) else { continue };
        if let Err(why @ ConnectError::OutOfNetworks { .. }) = Connector::resolve(&url, options.clone()).await
        {
            return Err((Redactor::default().redact(address), why));
        }
    }
    Ok(())
}

/// Fetches each of the user's own addresses once, and says of each image what it is, or why that is not known.
pub async fn look_at<'a>(
    addresses: impl Iterator<Item = &'a str>,
    options: &ConnectOptions,
    within: Duration,
) -> HashMap<String, Result<Remote, String>> {
    let deadline = Instant::now() + within;
    let distinct: HashSet<&str> = addresses.collect();
    let looking = futures::stream::iter(distinct).map(async |address| {
        let time = LONGEST.min(deadline.saturating_duration_since(Instant::now()));
        let looked = match time.is_zero() {
            true => Err("there was no time left to fetch it (--fetch-timeout)".to_owned()),
            false => look(address, options, time).await,
        };
        (address.to_owned(), looked)
    });
    looking.buffer_unordered(AT_ONCE).collect().await
}

async fn look(address: &str, options: &ConnectOptions, time: Duration) -> Result<Remote, String> {
    let url = Url::parse(address).map_err(|error| error.to_string())?;
    let limits = Limits { time, bytes: MOST_BYTES, reach: None };
    let document = simple::get(&url, None, options, &limits).await.map_err(reason)?;
    let dimensions = images::dimensions(&document.body)?;
    Ok(Remote { bytes: document.body.len() as u64, dimensions })
}

/// Why a link could not be followed, without the link: many fail for one reason.
pub fn reason(error: FetchError) -> String {
    match error {
        FetchError::Failed { reason, .. } => reason,
        FetchError::Status { status, .. } => format!("HTTP status {status}"),
    }
}

/// Notes all that an image's bytes tell. What is no image has a size and a hash, and a reason for the rest.
pub fn describe(bytes: &[u8], artifact: &mut Artifact) {
    artifact.size_bytes = Some(bytes.len() as u64);
    artifact.sha256 = Some(sha256(bytes));
    match images::check(bytes) {
        Ok(image) => {
            (artifact.width, artifact.height) = (Some(image.width), Some(image.height));
            artifact.mime_type = Some(image.mime_type.to_owned());
            artifact.unknown_reason = None;
        }
        Err(reason) => artifact.unknown_reason = Some(format!("no whole image: {reason}")),
    }
}

/// SHA-256, hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(own: &str, other: &str) -> bool {
        Reach::of(vec![own.parse().unwrap()]).allows(other.parse().unwrap())
    }

    #[test]
    fn a_link_leads_no_nearer_than_its_endpoint_is() {
        for (own, other, allowed) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "::1", true),
            ("127.0.0.1", "10.0.0.7", true),
            ("127.0.0.1", "93.184.215.14", true),
            ("10.0.0.5", "192.168.1.9", true),
            ("10.0.0.5", "127.0.0.1", false),
            ("93.184.215.14", "151.101.1.69", true),
            ("93.184.215.14", "10.0.0.7", false),
            ("93.184.215.14", "100.100.0.1", false),
            ("93.184.215.14", "fd00::1", false),
            ("93.184.215.14", "::ffff:127.0.0.1", false),
        ] {
            assert_eq!(allows(own, other), allowed, "{own} → {other}");
        }
    }

    #[test]
    fn no_link_leads_to_the_credentials_of_a_cloud_machine() {
        for own in ["127.0.0.1", "10.0.0.5", "93.184.215.14"] {
            for other in ["169.254.169.254", "fe80::1", "0.0.0.0", "::ffff:169.254.169.254", "224.0.0.1"] {
                assert!(!allows(own, other), "{own} → {other}");
            }
        }
        assert!(!Reach::default().allows("127.0.0.1".parse().unwrap()), "an endpoint that has no address");
    }

    #[test]
    fn what_is_no_image_has_a_size_and_a_hash_and_a_reason() {
        let mut artifact = Artifact::default();
        describe(b"<html>", &mut artifact);
        assert_eq!((artifact.size_bytes, artifact.width), (Some(6), None));
        assert!(artifact.sha256.is_some() && artifact.unknown_reason.unwrap().starts_with("no whole image"));
    }
}
