//! Things that stand between a client and a server: a TLS front, a proxy.
#![allow(dead_code)] // each test binary uses a part of it

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Accepts connections in a thread of its own until the process ends.
fn listen<F, R>(handle: F) -> SocketAddr
where
    F: Fn(TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(handle(stream));
            }
        });
    });
    address
}

/// TLS with a certificate of its own making, in front of `server`. Agrees to the protocols given.
pub fn tls_front(server: SocketAddr, protocols: &[&str]) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let address = listen(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut tls) = acceptor.accept(stream).await else { return };
            let Ok(mut plain) = TcpStream::connect(server).await else { return };
            let _ = copy_bidirectional(&mut tls, &mut plain).await;
        }
    });
    format!("https://localhost:{}", address.port())
}

/// The first line and the credentials of a connection.
pub type Seen = (String, Option<String>);

/// Serves these files, by path, and counts how often each was asked for.
pub struct Files {
    pub url: String,
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl Files {
    pub fn serve(files: Vec<(&'static str, Vec<u8>)>) -> Self {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (notes, files) = (Arc::clone(&asked), Arc::new(files));
        let address = listen(move |mut stream| {
            let (notes, files) = (Arc::clone(&notes), Arc::clone(&files));
            async move {
                let Some(head) = read_head(&mut stream).await else { return };
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let found = files.iter().find(|(name, _)| *name == path).map(|(_, bytes)| bytes.as_slice());
                let (status, body) = found.map_or(("404 Not Found", &b""[..]), |bytes| ("200 OK", bytes));
                notes.lock().unwrap().push(path);
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(body).await;
            }
        });
        Self { url: format!("http://{address}"), asked }
    }

    pub fn times_asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// A proxy that passes plain requests on and opens tunnels.
pub struct Proxy {
    pub address: SocketAddr,
    /// Each connection.
    pub seen: Arc<Mutex<Vec<Seen>>>,
}

impl Proxy {
    pub fn start() -> Self {
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let notes = Arc::clone(&seen);
        let address = listen(move |stream| relay(stream, Arc::clone(&notes)));
        Self { address, seen }
    }

    pub fn first_lines(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(line, _)| line.clone()).collect()
    }
}

async fn relay(mut client: TcpStream, seen: Arc<Mutex<Vec<Seen>>>) {
    let Some(head) = read_head(&mut client).await else { return };
    let line = head.lines().next().unwrap_or_default().to_owned();
    let credentials = head.lines().find_map(|line| line.strip_prefix("Proxy-Authorization: "));
    seen.lock().unwrap().push((line.clone(), credentials.map(str::to_owned)));
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method == "CONNECT" {
        let Ok(mut server) = TcpStream::connect(target).await else { return };
        let _ = client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
        let _ = copy_bidirectional(&mut client, &mut server).await;
        return;
    }
    let Ok(url) = url::Url::parse(target) else { return };
    let host =
        format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(80));
    let Ok(mut server) = TcpStream::connect(host).await else { return };
    // Every server must take a whole address for its path.
    let _ = server.write_all(head.as_bytes()).await;
    let _ = copy_bidirectional(&mut client, &mut server).await;
}
