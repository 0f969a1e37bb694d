//! A client of the HTTP API, signed in by cookie as the page is, or by token.

use events::api::{ApiError, CommandReply, History};
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Who asks.
#[derive(Clone)]
pub struct Api {
    client: reqwest::Client,
    /// The control plane's address, without a slash at the end.
    pub url: String,
    cookie: Option<String>,
    bearer: Option<String>,
}

/// Anything the API answered.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The header fields.
    pub headers: reqwest::header::HeaderMap,
    /// The body.
    pub text: String,
}

impl Answer {
    /// The body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e} in {} {}", self.status, self.text))
    }

    /// The body of a success.
    pub fn ok<T: DeserializeOwned>(self) -> T {
        assert!(self.status.is_success(), "{}: {}", self.status, self.text);
        self.json()
    }

    /// The error of a refusal: it must be complete.
    pub fn refused(&self) -> ApiError {
        assert!(self.status.is_client_error(), "expected a 4xx, got {}: {}", self.status, self.text);
        let error: ApiError = self.json();
        assert!(!error.code.is_empty() && !error.message.is_empty(), "{error:?}");
        error
    }
}

/// An HTTP client as every test uses it.
pub fn http() -> reqwest::Client {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder().no_proxy().build().expect("an HTTP client")
}

impl Api {
    /// Nobody who signed in.
    pub fn anonymous(url: &str) -> Self {
        Self { client: http(), url: url.trim_end_matches('/').to_owned(), cookie: None, bearer: None }
    }

    /// Somebody with a token.
    pub fn with_token(url: &str, token: &str) -> Self {
        Self { bearer: Some(token.to_owned()), ..Self::anonymous(url) }
    }

    /// Signs in as the page does.
    pub async fn sign_in(url: &str, email: &str, password: &str) -> Self {
        let mut api = Self::anonymous(url);
        let answer = api.post("/api/rpc/sign_in", &json!({"p_email": email, "p_password": password})).await;
        assert!(answer.status.is_success(), "sign-in: {} {}", answer.status, answer.text);
        let cookie = answer.headers.get("set-cookie").expect("a session cookie").to_str().expect("ASCII");
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite"), "{cookie}");
        api.cookie = cookie.split(';').next().map(str::to_owned);
        api
    }

    /// The value of the session cookie, for a browser.
    pub fn cookie(&self) -> Option<&str> {
        self.cookie.as_deref()
    }

    /// A request with this client's identity.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie).header("x-benchtrail-csrf", "1");
        }
        if let Some(token) = &self.bearer {
            request = request.bearer_auth(token);
        }
        request
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap_or_else(|e| panic!("no answer: {e:?}"));
        let (status, headers) = (response.status(), response.headers().clone());
        Answer {
            status,
            headers,
            text: response.text().await.unwrap_or_else(|e| panic!("half an answer: {e:?}")),
        }
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    /// GET once the projections have reached `position`.
    pub async fn get_at_least(&self, path: &str, position: i64) -> Answer {
        let request = self.request(Method::GET, path).header("prefer", format!("at-least={position}"));
        self.send(request).await
    }

    /// POST of a JSON body.
    pub async fn post(&self, path: &str, body: &impl Serialize) -> Answer {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// A command that must succeed.
    pub async fn command(&self, name: &str, args: &impl Serialize) -> CommandReply {
        self.post(&format!("/api/rpc/{name}"), args).await.ok()
    }

    /// A command that must succeed and answers with something of its own.
    pub async fn command_json(&self, name: &str, args: &impl Serialize) -> Value {
        self.post(&format!("/api/rpc/{name}"), args).await.ok()
    }

    /// Rows of a view.
    pub async fn rows(&self, path: &str) -> Vec<Value> {
        self.get(path).await.ok()
    }

    /// Rows of a view once the projections have reached `position`.
    pub async fn rows_at_least(&self, path: &str, position: i64) -> Vec<Value> {
        self.get_at_least(path, position).await.ok()
    }

    /// The provenance of a job's result.
    pub async fn provenance(&self, job: &str) -> History {
        let request = self.request(Method::GET, "/api/history").query(&[("result", job)]);
        self.send(request).await.ok()
    }
}
