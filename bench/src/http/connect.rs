//! Opening connections: names resolved once, TCP tuned for latency, TLS by rustls.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use events::networks::{NETWORKS_ENV, Networks};
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Url;

use super::arrival;
use super::proxy::{Proxy, open_tunnel};
use super::tls::tls_config;

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name has no address.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The host name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// No address accepted a connection.
    #[error("cannot connect to {address}: {source}")]
    Tcp {
        /// The last address tried.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// It took longer than the connect timeout.
    #[error("no connection within {0:?}")]
    Timeout(Duration),
    /// The TLS handshake failed.
    #[error("TLS: {0}")]
    Tls(io::Error),
    /// The proxy would not connect us.
    #[error("the proxy {proxy} would not connect to {target}: {reason}")]
    Proxy {
        /// Which proxy, without credentials.
        proxy: String,
        /// Host and port asked for.
        target: String,
        /// What it said.
        reason: String,
    },
    /// HTTP/2 was asked for, and the server does not speak it.
    #[error("no HTTP/2 with this server ({0}); leave --http2 out, or ask a server that speaks it")]
    NoHttp2(String),
    /// The host's networks do not hold the address.
    #[error(
        "{host} is {address}, which is not public; who is in charge of this host can allow it ({NETWORKS_ENV})"
    )]
    OutOfNetworks {
        /// The host name.
        host: String,
        /// What it stands for.
        address: IpAddr,
    },
    /// The address is not one this client can use.
    #[error("{0}")]
    Address(String),
}

/// How connections are opened.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The longest a connection may take to open, TLS included.
    pub connect_timeout: Duration,
    /// Idle time before TCP keep-alive probes; none when zero.
    pub tcp_keepalive: Duration,
    /// Accept any certificate.
    pub insecure: bool,
    /// Speak HTTP/2: agreed on by TLS, or, without TLS, known beforehand.
    pub http2: bool,
    /// Go through this proxy.
    pub proxy: Option<Proxy>,
    /// Connect to these networks alone; absent means to any.
    pub networks: Option<Networks>,
}

/// An open connection, plain or encrypted.
#[derive(Debug)]
pub enum Stream {
    /// Plain TCP.
    Plain {
        /// The socket.
        tcp: TcpStream,
        /// Room for the kernel's arrival stamps; none where it gives none.
        stamps: Option<Vec<u8>>,
    },
    /// TLS over TCP.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// The socket underneath.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain { tcp, .. } => tcp,
            Stream::Tls(tls) => tls.get_ref().0,
        }
    }

    /// Reads what has arrived, and says when it did.
    pub fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, Instant)>> {
        if let Stream::Plain { tcp, stamps: Some(control) } = self {
            return arrival::poll_receive(tcp, cx, buffer, control);
        }
        let mut read = ReadBuf::new(buffer);
        let polled = match self {
            Stream::Plain { tcp, .. } => Pin::new(tcp).poll_read(cx, &mut read),
            Stream::Tls(tls) => Pin::new(tls.as_mut()).poll_read(cx, &mut read),
        };
        polled.map_ok(|()| {
            arrival::STAMPS.process.fetch_add(1, Relaxed);
            (read.filled().len(), Instant::now())
        })
    }

    /// Closes the connection so that its local port is free at once: one closed in the middle of an answer would keep
    /// its port for a minute, and a run that ends many so would run out of them.
    pub fn abandon(self) {
        let _ = SockRef::from(self.socket()).set_linger(Some(Duration::ZERO));
    }

    /// Writes what fits.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Stream::Plain { tcp, .. } => Pin::new(tcp).poll_write(cx, bytes),
            Stream::Tls(tls) => Pin::new(tls.as_mut()).poll_write(cx, bytes),
        }
    }

    /// Pushes out what the TLS layer still holds.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain { .. } => Poll::Ready(Ok(())),
            Stream::Tls(tls) => Pin::new(tls.as_mut()).poll_flush(cx),
        }
    }

    /// Says that nothing more will be written.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain { tcp, .. } => Pin::new(tcp).poll_shutdown(cx),
            Stream::Tls(tls) => Pin::new(tls.as_mut()).poll_shutdown(cx),
        }
    }

    /// True when an idle connection can still be written to: nothing arrived and nobody closed it.
    pub fn is_quiet(&self) -> bool {
        let mut byte = [std::mem::MaybeUninit::uninit(); 1];
        match (SockRef::from(self.socket()).peek(&mut byte), self) {
            (Err(error), _) => error.kind() == io::ErrorKind::WouldBlock,
            (Ok(0), _) | (Ok(_), Stream::Plain { .. }) => false,
            (Ok(_), Stream::Tls(_)) => true, // session tickets may wait there
        }
    }
}

/// Opens connections to one origin.
#[derive(Clone)]
pub struct Connector {
    addresses: Arc<[SocketAddr]>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    /// Host and port of the server, for a proxy that opens a tunnel to it.
    target: String,
    options: ConnectOptions,
}

impl Connector {
    /// Resolves the host of `url` once, so that no later measurement contains a name lookup.
    pub async fn resolve(url: &Url, options: ConnectOptions) -> Result<Self, ConnectError> {
        let host =
            url.host_str().ok_or_else(|| ConnectError::Address(format!("{url} has no host")))?.to_owned();
        let port =
            url.port_or_known_default().ok_or_else(|| ConnectError::Address(format!("{url} has no port")))?;
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let addresses = match &options.proxy {
            Some(proxy) => look_up(&proxy.host, proxy.port).await?,
            None => look_up(&bare, port).await?,
        };
        let host_asked = options.proxy.as_ref().map_or(&bare, |proxy| &proxy.host);
        check_networks(host_asked, &addresses, options.networks.as_ref())?;
        if options.proxy.is_some() {
            // What the proxy connects to only it knows; an address that is written out is seen.
            let written: Vec<SocketAddr> =
                bare.parse().map(|ip: IpAddr| (ip, port).into()).into_iter().collect();
            check_networks(&bare, &written, options.networks.as_ref())?;
        }
        let tls = match url.scheme() {
            "http" => None,
            "https" => {
                let name =
                    ServerName::try_from(bare).map_err(|error| ConnectError::Address(error.to_string()))?;
                Some((TlsConnector::from(tls_config(options.insecure, options.http2)), name))
            }
            other => {
                return Err(ConnectError::Address(format!("{other}: only http and https are supported")));
            }
        };
        let target = format!("{host}:{port}");
        Ok(Self { addresses: addresses.into(), tls, target, options })
    }

    /// Where it connects to: the server, or the proxy.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.addresses.iter().map(SocketAddr::ip).collect()
    }

    /// No proxy is between.
    pub fn is_direct(&self) -> bool {
        self.options.proxy.is_none()
    }

    /// Connections speak HTTP/2.
    pub fn speaks_http2(&self) -> bool {
        self.options.http2
    }

    /// The proxy that passes plain requests on, where there is one. TLS and HTTP/2 go through a tunnel instead.
    pub fn forwarder(&self) -> Option<&Proxy> {
        self.options.proxy.as_ref().filter(|_| self.tls.is_none() && !self.options.http2)
    }

    /// Opens one connection.
    pub async fn open(&self) -> Result<Stream, ConnectError> {
        let limit = self.options.connect_timeout;
        tokio::time::timeout(limit, self.open_unbounded()).await.map_err(|_| ConnectError::Timeout(limit))?
    }

    async fn open_unbounded(&self) -> Result<Stream, ConnectError> {
        let mut tcp = self.open_tcp().await?;
        let _ = tcp.set_nodelay(true);
        if !self.options.tcp_keepalive.is_zero() {
            let probes = TcpKeepalive::new().with_time(self.options.tcp_keepalive);
            let _ = SockRef::from(&tcp).set_tcp_keepalive(&probes);
        }
        if let Some(proxy) = self.options.proxy.as_ref().filter(|_| self.forwarder().is_none()) {
            open_tunnel(&mut tcp, proxy, &self.target).await?;
        }
        match &self.tls {
            None => {
                let stamps = arrival::request_stamps(&tcp).then(arrival::control_buffer);
                Ok(Stream::Plain { tcp, stamps })
            }
            Some((connector, name)) => {
                let tls = connector.connect(name.clone(), tcp).await.map_err(ConnectError::Tls)?;
                if self.options.http2 && tls.get_ref().1.alpn_protocol() != Some(b"h2") {
                    return Err(ConnectError::NoHttp2("TLS did not agree on it".into()));
                }
                Ok(Stream::Tls(Box::new(tls)))
            }
        }
    }

    async fn open_tcp(&self) -> Result<TcpStream, ConnectError> {
        let mut failure = None;
        for &address in self.addresses.iter() {
            match TcpStream::connect(address).await {
                Ok(tcp) => return Ok(tcp),
                Err(source) => failure = Some(ConnectError::Tcp { address, source }),
            }
        }
        Err(failure.unwrap_or_else(|| ConnectError::Address("no address".into())))
    }
}

/// Whether all of these addresses may be connected to: which one is used is not ours to say.
fn check_networks(
    host: &str,
    addresses: &[SocketAddr],
    networks: Option<&Networks>,
) -> Result<(), ConnectError> {
    let Some(networks) = networks else { return Ok(()) };
    match addresses.iter().find(|address| !networks.allows_service(**address)) {
        Some(bad) => Err(ConnectError::OutOfNetworks { host: host.to_owned(), address: bad.ip() }),
        None => Ok(()),
    }
}

async fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    let failed = |source| ConnectError::Resolve { host: host.to_owned(), source };
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await.map_err(failed)?.collect();
    match addresses.is_empty() {
        true => Err(failed(io::Error::new(io::ErrorKind::NotFound, "no address"))),
        false => Ok(addresses),
    }
}
