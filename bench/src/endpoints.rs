//! Where requests go: one endpoint, or a file of them with weights.

use serde::Deserialize;
use url::Url;

use crate::http::proxy::Proxy;
use crate::http::request::RequestHead;
use crate::http::simple::host_header;

/// One endpoint as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name in results.
    pub name: String,
    /// The whole address requests are posted to.
    pub url: Url,
    /// Its key; never shown.
    pub api_key: Option<String>,
    /// Its share of the traffic.
    pub weight: u32,
}

/// Why the endpoints could not be made out.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Not an address.
    #[error("{text:?} is not an http or https address: {reason}")]
    Url {
        /// What was given.
        text: String,
        /// Why not.
        reason: String,
    },
    /// The file is neither YAML nor JSON nor JSONL of endpoints.
    #[error("endpoints file: {0}; expected a list of objects with url and optional name, api_key, weight")]
    File(String),
}

#[derive(Deserialize)]
struct Entry {
    url: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    api_key: Option<String>,
    #[serde(default = "one")]
    weight: u32,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Listing {
    Bare(Vec<Entry>),
    Wrapped { endpoints: Vec<Entry> },
}

fn one() -> u32 {
    1
}

/// Reads an endpoints file: YAML or JSON (a list, or an object with a list `endpoints`), or one JSON object per line.
pub fn parse_file(text: &str, path: &str, default_key: Option<&str>) -> Result<Vec<Endpoint>, EndpointError> {
    let by_line = || -> Result<Vec<Entry>, serde_json::Error> {
        text.lines().filter(|line| !line.trim().is_empty()).map(serde_json::from_str).collect()
    };
    let entries = match serde_json::from_str::<Listing>(text) {
        Ok(Listing::Bare(entries) | Listing::Wrapped { endpoints: entries }) => entries,
        Err(_) => match by_line() {
            Ok(entries) => entries,
            Err(_) => match serde_norway::from_str::<Listing>(text) {
                Ok(Listing::Bare(entries) | Listing::Wrapped { endpoints: entries }) => entries,
                Err(error) => return Err(EndpointError::File(error.to_string())),
            },
        },
    };
    if entries.iter().all(|entry| entry.weight == 0) {
        return Err(EndpointError::File("no endpoint with a weight above 0".into()));
    }
    entries
        .into_iter()
        .map(|entry| {
            let key = entry.api_key.or_else(|| default_key.map(str::to_owned));
            endpoint(&entry.url, path, key, entry.name, entry.weight)
        })
        .collect()
}

/// One endpoint from a base address or a whole one. `path` is the API's path below `/v1`, such as `chat/completions`.
pub fn endpoint(
    text: &str,
    path: &str,
    api_key: Option<String>,
    name: Option<String>,
    weight: u32,
) -> Result<Endpoint, EndpointError> {
    let shown = crate::failure::Redactor::default().redact(text);
    let bad = |reason: String| EndpointError::Url { text: shown.clone(), reason };
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&with_scheme).map_err(|error| bad(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad("unsupported scheme or no host".into()));
    }
    url.set_fragment(None);
    let base = url.path().trim_end_matches('/').to_owned();
    url.set_path(&full_path(&base, path));
    let name = name.unwrap_or_else(|| host_header(&url));
    Ok(Endpoint { name, url, api_key, weight })
}

fn full_path(base: &str, path: &str) -> String {
    let last = base.rsplit('/').next().unwrap_or_default();
    let is_version = last.strip_prefix('v').is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()));
    if base.ends_with(path) {
        base.to_owned()
    } else if is_version {
        format!("{base}/{path}")
    } else {
        format!("{base}/v1/{path}")
    }
}

impl Endpoint {
    /// The `Authorization` header's value: the key, or the user and password of the address.
    pub fn authorization(&self) -> Option<String> {
        if let Some(key) = &self.api_key {
            return Some(format!("Bearer {key}"));
        }
        let password = self.url.password()?;
        let decode = |text: &str| percent_decode(text);
        let pair = format!("{}:{}", decode(self.url.username()), decode(password));
        Some(format!("Basic {}", base64(pair.as_bytes())))
    }

    /// Everything of it that must not be shown.
    pub fn secrets(&self) -> Vec<String> {
        let query = self.url.query_pairs().map(|(_, value)| value.into_owned());
        self.api_key.iter().cloned().chain(self.url.password().map(percent_decode)).chain(query).collect()
    }

    /// What each request begins with. `forwarder` is the proxy that passes it on, where there is one.
    pub fn request_head(
        &self,
        accept: &str,
        content_type: &str,
        headers: &[(String, String)],
        forwarder: Option<&Proxy>,
    ) -> RequestHead {
        let given = |name: &str| headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
        let mut all = Vec::new();
        let mut add = |name: &str, value: &str| {
            if !given(name) {
                all.push((name.to_owned(), value.to_owned()));
            }
        };
        add("User-Agent", concat!("metrumbench/", env!("CARGO_PKG_VERSION")));
        add("Content-Type", content_type);
        add("Accept", accept);
        if let Some(value) = self.authorization() {
            add("Authorization", &value);
        }
        all.extend(headers.iter().cloned());
        RequestHead::new(&self.url, all, forwarder)
    }
}

fn percent_decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Weighted round robin, smooth: endpoints of weights 3 and 1 alternate as A A B A, not A A A B.
#[derive(Debug)]
pub struct RoundRobin {
    weights: Vec<i64>,
    current: Vec<i64>,
}

impl RoundRobin {
    /// A picker for these weights, of which at least one must be above 0.
    pub fn new(weights: impl IntoIterator<Item = u32>) -> Self {
        let weights: Vec<i64> = weights.into_iter().map(i64::from).collect();
        Self { current: vec![0; weights.len()], weights }
    }

    /// The next endpoint, by position.
    pub fn next_endpoint(&mut self) -> usize {
        let total: i64 = self.weights.iter().sum();
        let mut best = 0;
        for index in 0..self.weights.len() {
            self.current[index] += self.weights[index];
            if self.current[index] > self.current[best] {
                best = index;
            }
        }
        self.current[best] -= total;
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_address_and_a_whole_one_mean_the_same() {
        for text in
            ["http://h:1", "h:1/", "http://h:1/v1", "http://h:1/v1/chat/completions", "http://h:1/v1/"]
        {
            let found = endpoint(text, "chat/completions", None, None, 1).unwrap();
            assert_eq!(found.url.as_str(), "http://h:1/v1/chat/completions", "{text}");
        }
    }

    #[test]
    fn weights_are_spread_smoothly() {
        let mut picker = RoundRobin::new([3, 1]);
        assert_eq!((0..8).map(|_| picker.next_endpoint()).collect::<Vec<_>>(), [0, 0, 1, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn the_file_may_be_yaml_json_or_lines() {
        let yaml = "endpoints:\n  - url: http://a\n    weight: 2\n  - url: http://b\n    api_key: k\n";
        let json = r#"[{"url":"http://a","weight":2},{"url":"http://b","api_key":"k"}]"#;
        let lines = "{\"url\":\"http://a\",\"weight\":2}\n{\"url\":\"http://b\",\"api_key\":\"k\"}\n";
        for text in [yaml, json, lines] {
            let found = parse_file(text, "completions", None).unwrap();
            assert_eq!((found[0].weight, found[1].api_key.as_deref()), (2, Some("k")), "{text}");
        }
    }

    #[test]
    fn a_password_in_the_address_becomes_basic_authorization() {
        let found = endpoint("http://me:p%40ss@h", "completions", None, None, 1).unwrap();
        assert_eq!(found.authorization().unwrap(), format!("Basic {}", base64(b"me:p@ss")));
        assert!(found.secrets().contains(&"p@ss".to_owned()));
    }

    #[test]
    fn a_bad_address_is_refused_without_showing_its_password() {
        let error = endpoint("ftp://me:hunter22@h", "completions", None, None, 1).unwrap_err();
        assert!(!error.to_string().contains("hunter22"), "{error}");
    }
}
