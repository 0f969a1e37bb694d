//! Fetching one small document: model lists, prompt files, images.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use url::Url;

use super::connect::{ConnectOptions, Connector};
use super::exchange::exchange;
use super::response::{Head, Progress, Sink};
use crate::links::Reach;

/// The largest document that is fetched where nothing else is said.
const MOST_BYTES: usize = 512 * 1024 * 1024;
const MAX_REDIRECTS: usize = 5;

/// What fetching a document may cost, and where it may lead.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest it may take, redirects included.
    pub time: Duration,
    /// The most bytes.
    pub bytes: usize,
    /// The addresses that may be asked, of redirects too; none for any.
    pub reach: Option<Reach>,
}

impl Limits {
    /// A document the user asked for, wherever it is.
    pub fn within(time: Duration) -> Self {
        Self { time, bytes: MOST_BYTES, reach: None }
    }
}

/// Why a document could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The exchange failed.
    #[error("{url}: {reason}")]
    Failed {
        /// Which document.
        url: String,
        /// Why.
        reason: String,
    },
    /// The server answered with another status.
    #[error("{url}: HTTP status {status}")]
    Status {
        /// Which document.
        url: String,
        /// The status.
        status: u16,
    },
}

/// Collects a whole response.
#[derive(Debug, Default)]
pub struct Document {
    /// The head.
    pub head: Head,
    /// The body.
    pub body: Vec<u8>,
    most_bytes: usize,
}

impl Sink for Document {
    fn head(&mut self, head: Head, _: Instant) {
        self.head = head;
    }

    fn body(&mut self, piece: &[u8], _: Instant) -> Progress {
        self.body.extend_from_slice(piece);
        if self.body.len() > self.most_bytes { Progress::Complete } else { Progress::More }
    }
}

/// Gets `url`, following a few redirects. `authorization` goes only to the first origin.
pub async fn get(
    url: &Url,
    authorization: Option<&str>,
    options: &ConnectOptions,
    limits: &Limits,
) -> Result<Document, FetchError> {
    let (mut at, deadline) = (url.clone(), Instant::now() + limits.time);
    for _ in 0..=MAX_REDIRECTS {
        let failed = |reason: String| FetchError::Failed { url: without_credentials(&at), reason };
        // One small document needs no HTTP/2, and every server that speaks it over TLS speaks HTTP/1.1 too.
        let options = ConnectOptions { http2: false, ..options.clone() };
        let connector = Connector::resolve(&at, options).await.map_err(|error| failed(error.to_string()))?;
        if let Some(address) = out_of_reach(&at, &connector, limits) {
            return Err(failed(format!("{address} is not where a link of this endpoint may lead")));
        }
        let mut stream = connector.open().await.map_err(|error| failed(error.to_string()))?;
        let target = match connector.forwarder() {
            Some(_) => format!("http://{}{}", host_header(&at), path_and_query(&at)),
            None => path_and_query(&at),
        };
        let mut head = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n", host_header(&at));
        if let Some(value) = connector.forwarder().and_then(|proxy| proxy.authorization.as_ref()) {
            head.push_str(&format!("Proxy-Authorization: {value}\r\n"));
        }
        if let Some(value) = authorization.filter(|_| at.origin() == url.origin()) {
            head.push_str(&format!("Authorization: {value}\r\n"));
        }
        head.push_str("Accept: */*\r\nConnection: close\r\nUser-Agent: metrumbench\r\n\r\n");
        let mut document = Document { most_bytes: limits.bytes, ..Document::default() };
        let sent = exchange(&mut stream, head.as_bytes(), &mut document, deadline).await;
        sent.map_err(|broken| failed(broken.error.to_string()))?;
        if document.body.len() > limits.bytes {
            return Err(failed(format!("larger than {} MiB", limits.bytes >> 20)));
        }
        match (document.head.status, &document.head.location) {
            (200..=299, _) => return Ok(document),
            (301 | 302 | 303 | 307 | 308, Some(location)) => {
                at = at.join(location).map_err(|error| failed(error.to_string()))?;
            }
            (status, _) => return Err(FetchError::Status { url: without_credentials(&at), status }),
        }
    }
    Err(FetchError::Failed { url: without_credentials(url), reason: "too many redirects".into() })
}

/// The first address that may not be asked. What a proxy connects to only it knows; an address in the link itself is seen.
fn out_of_reach(url: &Url, connector: &Connector, limits: &Limits) -> Option<IpAddr> {
    let reach = limits.reach.as_ref()?;
    let written = match url.host()? {
        url::Host::Ipv4(address) => Some(IpAddr::V4(address)),
        url::Host::Ipv6(address) => Some(IpAddr::V6(address)),
        url::Host::Domain(_) => None,
    };
    let asked = if connector.is_direct() { connector.addresses() } else { Vec::new() };
    asked.into_iter().chain(written).find(|address| !reach.allows(*address))
}

/// The request target of `url`.
pub fn path_and_query(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// The `Host` header for `url`.
pub fn host_header(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// `url` fit to be shown: user, password and query values that look like keys are left out.
pub fn without_credentials(url: &Url) -> String {
    let mut shown = url.clone();
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    if shown.query().is_some() {
        shown.set_query(Some("[redacted]"));
    }
    shown.to_string()
}
