//! The HTTPS road to the control plane. Always there, also where a site allows nothing but port 443.

use std::path::Path;
use std::time::Duration;

use events::api::ApiError;
use events::report::{AgentCredentials, EnrolReply, EnrolRequest, SecretsReply, SecretsRequest};
use url::Url;

use super::{ControlError, read};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a question may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an upload may take.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// A client of the control plane's HTTP API.
#[derive(Clone)]
pub struct Https {
    client: reqwest::Client,
    base: Url,
    token: String,
}

impl Https {
    /// A client for the control plane at `base` that shows `token` (empty: none).
    ///
    /// # Errors
    /// When no TLS is to be had.
    pub fn new(base: &Url, token: &str) -> Result<Self, ControlError> {
        let client = http_client()?;
        Ok(Self { client, base: base.clone(), token: token.to_owned() })
    }

    /// The address of a path on the control plane.
    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base.as_str().trim_end_matches('/'))
    }

    /// Posts JSON and gives the answer's status and bytes; a refusal is an error.
    pub(super) async fn post(&self, path: &str, body: Vec<u8>) -> Result<(u16, Vec<u8>), ControlError> {
        let request = self
            .client
            .post(self.address(path))
            .timeout(REQUEST_TIMEOUT)
            .header("content-type", "application/json")
            .body(body);
        self.send(request).await
    }

    async fn send(&self, mut request: reqwest::RequestBuilder) -> Result<(u16, Vec<u8>), ControlError> {
        if !self.token.is_empty() {
            request = request.bearer_auth(&self.token);
        }
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(unreachable)?.to_vec();
        if status.is_success() {
            return Ok((status.as_u16(), bytes));
        }
        Err(ControlError::Refused { status: status.as_u16(), error: api_error(status.as_u16(), &bytes) })
    }

    /// Trades a one-time token for an identity.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn enrol(&self, request: &EnrolRequest) -> Result<EnrolReply, ControlError> {
        let body = serde_json::to_vec(request).map_err(|e| ControlError::Malformed(e.to_string()))?;
        let (_, bytes) = self.post("/api/agent/enrol", body).await?;
        serde_json::from_slice(&bytes).map_err(|e| ControlError::Malformed(e.to_string()))
    }

    /// Fetches short-lived NATS credentials.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn credentials(&self) -> Result<AgentCredentials, ControlError> {
        let (status, bytes) = self.post("/api/agent/credentials", b"{}".to_vec()).await?;
        read(status, &bytes)
    }

    /// Asks for what a job that is held needs and must not stand in its command.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn secrets(&self, request: &SecretsRequest) -> Result<SecretsReply, ControlError> {
        let body = serde_json::to_vec(request).map_err(|e| ControlError::Malformed(e.to_string()))?;
        let (_, bytes) = self.post("/api/agent/secrets", body).await?;
        // What does not fit is not repeated: it may hold a secret.
        serde_json::from_slice(&bytes).map_err(|_| ControlError::Malformed("the job's secrets".into()))
    }

    /// Uploads a file under its hash. Uploading the same bytes twice is harmless.
    ///
    /// # Errors
    /// [`ControlError`]; also when the file cannot be read.
    pub async fn upload(&self, sha256: &str, media_type: &str, file: &Path) -> Result<(), ControlError> {
        let open = tokio::fs::File::open(file).await;
        let file = open.map_err(|e| ControlError::Unreachable(format!("{}: {e}", file.display())))?;
        let size = file.metadata().await.map(|meta| meta.len()).unwrap_or_default();
        let stream = tokio_util::io::ReaderStream::with_capacity(file, 64 << 10);
        let request = self
            .client
            .put(self.address(&format!("/api/agent/blobs/{sha256}")))
            .timeout(UPLOAD_TIMEOUT)
            .header("content-type", media_type)
            .header("content-length", size)
            .body(reqwest::Body::wrap_stream(stream));
        self.send(request).await.map(|_| ())
    }

    /// Fetches the rows of a prompt source into a file, as they come. Its hash is the caller's to check.
    ///
    /// # Errors
    /// [`ControlError`]; also when the file cannot be written.
    pub async fn download(&self, sha256: &str, file: &Path) -> Result<(), ControlError> {
        use tokio::io::AsyncWriteExt;
        let failed = |e: std::io::Error| ControlError::Unreachable(format!("{}: {e}", file.display()));
        let address = self.address(&format!("/api/agent/sources/{sha256}"));
        let request = self.client.get(address).timeout(UPLOAD_TIMEOUT).bearer_auth(&self.token);
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        if !response.status().is_success() {
            let bytes = response.bytes().await.map_err(unreachable)?;
            return Err(ControlError::Refused { status, error: api_error(status, &bytes) });
        }
        let mut out = tokio::fs::File::create(file).await.map_err(failed)?;
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            out.write_all(&chunk).await.map_err(failed)?;
        }
        out.sync_all().await.map_err(failed)
    }

    /// Asks whether the control plane is up; gives its clock as its `Date` header tells it.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn health(&self) -> Result<(), ControlError> {
        self.send(self.client.get(self.address("/healthz")).timeout(REQUEST_TIMEOUT)).await.map(|_| ())
    }
}

/// An HTTP client with a TLS provider and connect timeout. Redirects are not followed: the token is for one host.
///
/// # Errors
/// When no TLS is to be had.
pub fn http_client() -> Result<reqwest::Client, ControlError> {
    http_client_builder().build().map_err(|e| ControlError::Unreachable(e.to_string()))
}

/// What every HTTP client of the agent has.
pub fn http_client_builder() -> reqwest::ClientBuilder {
    // A second installation is refused, which is what we want.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
}

fn unreachable(error: reqwest::Error) -> ControlError {
    // reqwest hides the cause one level down, and the cause is what helps.
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    ControlError::Unreachable(text)
}

fn api_error(status: u16, bytes: &[u8]) -> ApiError {
    #[derive(serde::Deserialize)]
    struct Wrapped {
        error: ApiError,
    }
    serde_json::from_slice::<ApiError>(bytes)
        .or_else(|_| serde_json::from_slice::<Wrapped>(bytes).map(|wrapped| wrapped.error))
        .unwrap_or_else(|_| ApiError {
            code: "http".into(),
            message: format!(
                "HTTP {status}: {}",
                String::from_utf8_lossy(bytes).chars().take(200).collect::<String>()
            ),
            details: None,
            hint: None,
        })
}
