//! A request as it goes over the wire, in either version of the protocol.

use url::Url;

use super::proxy::Proxy;
use super::simple::{host_header, path_and_query};

/// What all requests to one endpoint begin with.
#[derive(Clone, Debug)]
pub struct RequestHead {
    url: Url,
    /// Names as given, values as sent.
    headers: Vec<(String, String)>,
    /// The same for HTTP/1.1, up to the request id.
    http1: Vec<u8>,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its beginning.
    pub head: &'a RequestHead,
    /// Its `x-request-id`; empty for none.
    pub id: &'a str,
    /// Its body.
    pub body: &'a [u8],
}

impl RequestHead {
    /// A POST to `url` with these headers. `forwarder` is a proxy that passes plain requests on: it must see the whole
    /// address, and the credentials meant for it.
    pub fn new(url: &Url, headers: Vec<(String, String)>, forwarder: Option<&Proxy>) -> Self {
        let target = match forwarder {
            Some(_) => format!("http://{}{}", host_header(url), path_and_query(url)),
            None => path_and_query(url),
        };
        let mut http1 = format!("POST {target} HTTP/1.1\r\nHost: {}\r\n", host_header(url));
        for (name, value) in &headers {
            http1.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(value) = forwarder.and_then(|proxy| proxy.authorization.as_ref()) {
            http1.push_str(&format!("Proxy-Authorization: {value}\r\n"));
        }
        Self { url: url.clone(), headers, http1: http1.into_bytes() }
    }

    /// The HTTP/1.1 form, up to the request id, as text.
    pub fn as_text(&self) -> String {
        String::from_utf8_lossy(&self.http1).into_owned()
    }
}

impl Request<'_> {
    /// The whole request for HTTP/1.1.
    pub fn http1(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.head.http1.len() + self.id.len() + self.body.len() + 64);
        out.extend_from_slice(&self.head.http1);
        if !self.id.is_empty() {
            out.extend_from_slice(b"X-Request-Id: ");
            out.extend_from_slice(self.id.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", self.body.len()).as_bytes());
        out.extend_from_slice(self.body);
        out
    }

    /// The head for HTTP/2.
    pub fn http2(&self) -> Result<http::Request<()>, http::Error> {
        let url = &self.head.url;
        let uri = format!("{}://{}{}", url.scheme(), host_header(url), path_and_query(url));
        let mut request = http::Request::builder().method("POST").version(http::Version::HTTP_2).uri(uri);
        for (name, value) in &self.head.headers {
            // The authority stands in the address, and nothing but it may name the host.
            if !name.eq_ignore_ascii_case("host") {
                request = request.header(name.to_ascii_lowercase(), value);
            }
        }
        if !self.id.is_empty() {
            request = request.header("x-request-id", self.id);
        }
        request.header("content-length", self.body.len()).body(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(proxy: Option<&Proxy>) -> RequestHead {
        let url = Url::parse("http://host:8000/v1/x?a=1").unwrap();
        RequestHead::new(&url, vec![("Accept".into(), "*/*".into())], proxy)
    }

    #[test]
    fn a_request_names_its_path_its_id_and_its_length() {
        let head = head(None);
        let text = String::from_utf8(Request { head: &head, id: "r-1", body: b"{}" }.http1()).unwrap();
        assert_eq!(
            text,
            "POST /v1/x?a=1 HTTP/1.1\r\nHost: host:8000\r\nAccept: */*\r\nX-Request-Id: r-1\r\nContent-Length: 2\r\n\r\n{}"
        );
    }

    #[test]
    fn a_forwarding_proxy_sees_the_whole_address_and_its_credentials() {
        let proxy = Proxy::parse("http://me:secret@proxy:3128").unwrap();
        let text = head(Some(&proxy)).as_text();
        assert!(text.starts_with("POST http://host:8000/v1/x?a=1 HTTP/1.1\r\n"), "{text}");
        assert!(text.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{text}");
    }

    #[test]
    fn http2_has_the_same_headers() {
        let head = head(None);
        let request = Request { head: &head, id: "r-1", body: b"{}" }.http2().unwrap();
        assert_eq!(request.uri(), "http://host:8000/v1/x?a=1");
        assert_eq!(request.headers()["x-request-id"], "r-1");
        assert_eq!(request.headers()["content-length"], "2");
    }
}
