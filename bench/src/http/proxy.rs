//! Going through a proxy: plain requests are passed on, everything else goes through a tunnel (RFC 9110, 9.3.6).

use base64::Engine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use super::connect::ConnectError;

/// A proxy, used only when asked for: variables such as `http_proxy` are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Its host.
    pub(super) host: String,
    /// Its port.
    pub(super) port: u16,
    /// `Proxy-Authorization`, from the user and password of its address.
    pub authorization: Option<String>,
    /// The password in its address, for the redactor.
    pub secret: Option<String>,
}

impl Proxy {
    /// Reads `http://[user:password@]host[:port]`. The error says what is wrong, without the password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&with_scheme).map_err(|error| format!("not an address: {error}"))?;
        let Some(host) = url.host_str().filter(|_| url.scheme() == "http") else {
            return Err("only proxies of the form http://[user:password@]host[:port] can be used".into());
        };
        let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
        let secret = url.password().map(decode);
        let authorization = (!url.username().is_empty()).then(|| {
            let pair = format!("{}:{}", decode(url.username()), secret.as_deref().unwrap_or_default());
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
        });
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: url.port().unwrap_or(80), authorization, secret })
    }
}

/// The longest answer of a proxy to CONNECT that is read.
const TUNNEL_HEAD_LIMIT: usize = 16 * 1024;

/// Asks `proxy`, to which `tcp` is connected, for a tunnel to `target`.
pub(super) async fn open_tunnel(
    tcp: &mut TcpStream,
    proxy: &Proxy,
    target: &str,
) -> Result<(), ConnectError> {
    let refused = |reason: String| ConnectError::Proxy {
        proxy: format!("{}:{}", proxy.host, proxy.port),
        target: target.to_owned(),
        reason,
    };
    let authorization = proxy.authorization.as_ref();
    let credentials =
        authorization.map_or(String::new(), |value| format!("Proxy-Authorization: {value}\r\n"));
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{credentials}\r\n");
    tcp.write_all(request.as_bytes()).await.map_err(|error| refused(error.to_string()))?;
    let mut head = Vec::new();
    // Byte by byte: what follows the head belongs to the server.
    while !head.ends_with(b"\r\n\r\n") {
        match tcp.read_u8().await {
            Ok(byte) if head.len() < TUNNEL_HEAD_LIMIT => head.push(byte),
            Ok(_) => return Err(refused("its answer does not end".into())),
            Err(error) => return Err(refused(error.to_string())),
        }
    }
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(&head).map(|_| response.code) {
        Ok(Some(200..=299)) => Ok(()),
        Ok(Some(407)) => {
            Err(refused("status 407: give it a user and password, http://user:password@host:port".into()))
        }
        Ok(status) => Err(refused(format!("status {}", status.unwrap_or_default()))),
        Err(error) => Err(refused(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_may_have_a_user_and_a_password() {
        let proxy = Proxy::parse("http://me:p%40ss@proxy:3128").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy", 3128));
        assert_eq!(proxy.authorization.as_deref(), Some("Basic bWU6cEBzcw=="));
        assert_eq!(proxy.secret.as_deref(), Some("p@ss"));
    }

    #[test]
    fn a_proxy_of_another_kind_is_refused() {
        assert!(Proxy::parse("socks5://proxy:1080").is_err());
    }
}
