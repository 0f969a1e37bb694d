//! Opening connections: names resolved once, TCP tuned for latency, TLS by rustls.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::arrival;

use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Url;

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
    /// The address is not one this client can use.
    #[error("{0}")]
    Address(String),
}

/// How connections are opened.
#[derive(Clone, Copy, Debug)]
pub struct ConnectOptions {
    /// The longest a connection may take to open, TLS included.
    pub connect_timeout: Duration,
    /// Idle time before TCP keep-alive probes; none when zero.
    pub tcp_keepalive: Duration,
    /// Accept any certificate.
    pub insecure: bool,
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
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((bare.as_str(), port))
            .await
            .map_err(|source| ConnectError::Resolve { host: host.clone(), source })?
            .collect();
        if addresses.is_empty() {
            let source = io::Error::new(io::ErrorKind::NotFound, "no address");
            return Err(ConnectError::Resolve { host, source });
        }
        let tls = match url.scheme() {
            "http" => None,
            "https" => {
                let name =
                    ServerName::try_from(bare).map_err(|error| ConnectError::Address(error.to_string()))?;
                Some((TlsConnector::from(tls_config(options.insecure)?), name))
            }
            other => {
                return Err(ConnectError::Address(format!("{other}: only http and https are supported")));
            }
        };
        Ok(Self { addresses: addresses.into(), tls, options })
    }

    /// Opens one connection.
    pub async fn open(&self) -> Result<Stream, ConnectError> {
        let limit = self.options.connect_timeout;
        tokio::time::timeout(limit, self.open_unbounded()).await.map_err(|_| ConnectError::Timeout(limit))?
    }

    async fn open_unbounded(&self) -> Result<Stream, ConnectError> {
        let tcp = self.open_tcp().await?;
        let _ = tcp.set_nodelay(true);
        if !self.options.tcp_keepalive.is_zero() {
            let probes = TcpKeepalive::new().with_time(self.options.tcp_keepalive);
            let _ = SockRef::from(&tcp).set_tcp_keepalive(&probes);
        }
        match &self.tls {
            None => {
                let stamps = arrival::request_stamps(&tcp).then(arrival::control_buffer);
                Ok(Stream::Plain { tcp, stamps })
            }
            Some((connector, name)) => {
                let tls = connector.connect(name.clone(), tcp).await.map_err(ConnectError::Tls)?;
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

fn tls_config(insecure: bool) -> Result<Arc<rustls::ClientConfig>, ConnectError> {
    let builder = rustls::ClientConfig::builder();
    let mut config = if insecure {
        let verifier = Arc::new(AcceptAnything(rustls::crypto::ring::default_provider()));
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    } else {
        let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        // The system's own authorities too: a model server inside a company has a certificate of its house.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// `--insecure`: the certificate is not looked at (its signature over the handshake still is).
#[derive(Debug)]
struct AcceptAnything(rustls::crypto::CryptoProvider);

impl rustls::client::danger::ServerCertVerifier for AcceptAnything {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
