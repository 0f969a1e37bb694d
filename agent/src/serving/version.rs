//! Which version a model server says it is: evidence beside the version that the workload names.

use std::time::Duration;

use serde_json::Value;

/// How long it may take to say so.
const WITHIN: Duration = Duration::from_secs(5);
/// A longer text is no version.
const LONGEST: usize = 100;

/// Where a framework's servers say their version, in a member `version` of a JSON object; nothing for those that do not, or
/// that count otherwise than their releases do.
pub fn path_of(framework_code: &str) -> Option<&'static str> {
    match framework_code {
        "vllm" | "trt-llm" | "refserver" => Some("/version"),
        "sglang" => Some("/get_server_info"),
        "tgi" => Some("/info"),
        "ollama" => Some("/api/version"),
        _ => None,
    }
}

/// Asks. Nothing where it does not answer, or says no version: that is no reason to fail.
pub async fn ask(client: &reqwest::Client, url: &str) -> Option<String> {
    let answer = client.get(url).timeout(WITHIN).send().await.ok()?;
    let body: Value = answer.error_for_status().ok()?.json().await.ok()?;
    let version = body.get("version")?.as_str()?.trim();
    let plain =
        !version.is_empty() && version.len() <= LONGEST && version.chars().all(|c| c.is_ascii_graphic());
    plain.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What [`ask`] makes of a server that answers with this body.
    async fn of(body: &'static str) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/version", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all((head + body).as_bytes()).await.unwrap();
        });
        let said = ask(&crate::control::http_client().unwrap(), &url).await;
        served.await.unwrap();
        said
    }

    #[tokio::test]
    async fn a_server_says_its_version_or_nothing() {
        assert_eq!(of(r#"{"version": "0.28.0"}"#).await.as_deref(), Some("0.28.0"));
        assert_eq!(of(r#"{"version": 3}"#).await, None);
        assert_eq!(of(r#"{"version": "a b"}"#).await, None);
        assert_eq!(of("no JSON").await, None);
    }
}
