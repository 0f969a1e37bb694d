//! A control plane in this process: real PostgreSQL, real NATS, the real service on a free port.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod agent;

use std::net::SocketAddr;

use events::access::Role;
use events::api::ApiError;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use server::auth::accounts::{self, NewAccount};
use server::auth::{Principal, api_tokens};
use server::config::Config;
use server::plant::{Plant, PlantConfig};
use server::projections::rebuild::rebuild;
use server::state::AppState;
use server::{app, clock, log, seed};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub const ORG: &str = "acme";
pub const PASSWORD: &str = "a long enough password";

/// A running control plane. Call [`Plane::stop`] at the end.
pub struct Plane {
    pub state: AppState,
    pub url: String,
    pub nats_url: String,
    plant: Plant,
    serving: JoinHandle<Result<(), app::RunError>>,
    _dir: TempDir,
}

impl Plane {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::Builder::new().prefix("btapi").tempdir_in("/tmp").unwrap();
        // The database runs as its own user and must be able to enter.
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let var = dir.path().join("var");
        let plant = Plant::start(PlantConfig { durable: false, ..PlantConfig::new(&var) }).await.unwrap();
        log::migrate(&plant.database_url).await.unwrap();
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let mut config = Config::new(&var, listener.local_addr().unwrap());
        change(&mut config);
        let url = config.public_url.as_str().trim_end_matches('/').to_owned();
        let nats = plant.nats.clone();
        let nats_url = nats.url.clone();
        let stop = CancellationToken::new();
        let state = AppState::open(&plant.database_url, nats, config, stop).await.unwrap();
        seed::seed(&state.log).await.unwrap();
        let actor = Principal::operator(ORG).actor();
        accounts::ensure_org(&state.log, ORG, "Acme", actor, clock::now()).await.unwrap();
        let serving = tokio::spawn(app::run(state.clone(), listener));
        Self { state, url, nats_url, plant, serving, _dir: dir }
    }

    /// Stops it. Whatever the test did: its views made again from the log are the same, byte for byte.
    pub async fn stop(self) {
        let never = CancellationToken::new();
        for report in rebuild(&self.state.pool, &self.state.log, None, &never).await.unwrap() {
            assert!(report.equal() && report.flipped, "a rebuild is not what was live: {report:#?}");
        }
        self.state.stop.cancel();
        self.serving.await.unwrap().unwrap();
        self.plant.stop().await;
    }

    /// The log's head.
    pub async fn head(&self) -> i64 {
        self.state.log.head().await.unwrap().position
    }

    /// The types of the events after a position.
    pub async fn types_after(&self, position: i64) -> Vec<String> {
        let events = self.state.log.read_all(position, 1000).await.unwrap();
        events.into_iter().map(|event| event.event_type).collect()
    }

    /// The types of a stream's events.
    pub async fn types_of(&self, stream: &str) -> Vec<String> {
        let events = self.state.log.read_stream(&stream.parse().unwrap(), 1, 100).await.unwrap();
        events.into_iter().map(|event| event.event_type).collect()
    }

    /// Makes an account with a role; gives its id.
    pub async fn account(&self, email: &str, role: Role) -> Uuid {
        self.account_in(ORG, email, role).await
    }

    pub async fn account_in(&self, org: &str, email: &str, role: Role) -> Uuid {
        let (state, actor) = (&self.state, Principal::operator(org).actor());
        accounts::ensure_org(&state.log, org, org, actor.clone(), clock::now()).await.unwrap();
        let new = NewAccount {
            email: email.to_owned(),
            name: email.to_owned(),
            password: PASSWORD.to_owned(),
            org: org.to_owned(),
            role,
        };
        let vault = state.keys.vault();
        accounts::create_account(&state.log, &state.pool, vault, new, actor, clock::now()).await.unwrap()
    }

    /// An API token of a new account with this role.
    pub async fn token(&self, role: Role, scopes: &[&str]) -> String {
        let user = self.account(&format!("{}@example.org", Uuid::now_v7()), role).await;
        self.token_of(user, ORG, role, scopes, clock::now()).await
    }

    pub async fn token_of(
        &self,
        user: Uuid,
        org: &str,
        role: Role,
        scopes: &[&str],
        made_at: events::Timestamp,
    ) -> String {
        let owner = api_tokens::Owner { user, org: org.to_owned(), role };
        let args = events::api::CreateApiToken {
            p_name: "test".into(),
            p_scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            p_expires_in_days: 1,
        };
        let actor = Principal::operator(org).actor();
        let (log, pool) = (&self.state.log, &self.state.pool);
        let new = api_tokens::create(log, pool, &owner, &args, actor, None, made_at).await.unwrap();
        new.secret.reveal().to_owned()
    }

    /// A client with a token of a new account with this role and every scope that the role can have.
    pub async fn client(&self, role: Role) -> Client {
        let scopes: &[&str] = match role {
            Role::Viewer => &["read"],
            Role::Member => &["read", "write"],
            Role::Admin => &["read", "write", "admin"],
        };
        Client::with_token(&self.url, &self.token(role, scopes).await)
    }

    pub fn anonymous(&self) -> Client {
        Client { url: self.url.clone(), http: http(), bearer: None, cookie: None, csrf: true }
    }
}

fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Somebody who asks.
#[derive(Clone)]
pub struct Client {
    pub url: String,
    http: reqwest::Client,
    pub bearer: Option<String>,
    pub cookie: Option<String>,
    /// Whether a change by cookie carries the header that the page sends.
    pub csrf: bool,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {} {}", self.status, self.text))
    }

    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.text);
        self.json()
    }

    /// The error of a refusal: a 4xx in JSON with code, message and hint.
    #[track_caller]
    pub fn refused(&self) -> ApiError {
        assert!(self.status.is_client_error(), "expected a 4xx: {} {}", self.status, self.text);
        let error: ApiError = serde_json::from_str(&self.text)
            .unwrap_or_else(|e| panic!("{e}: {} {:?}", self.status, self.text));
        assert!(!error.code.is_empty() && !error.message.is_empty(), "{error:?}");
        assert!(error.hint.as_ref().is_some_and(|hint| !hint.is_empty()), "no hint: {error:?}");
        error
    }
}

impl Client {
    pub fn with_token(url: &str, token: &str) -> Self {
        Self { url: url.to_owned(), http: http(), bearer: Some(token.to_owned()), cookie: None, csrf: true }
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(token) = &self.bearer {
            request = request.bearer_auth(token);
        }
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
            if self.csrf {
                request = request.header("x-benchtrail-csrf", "1");
            }
        }
        request
    }

    pub async fn send(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        Answer { status, headers, text: response.text().await.unwrap() }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// Sends a body as it stands, as JSON.
    pub async fn post_text(&self, path: &str, body: impl Into<String>) -> Answer {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        self.send(request.body(body.into())).await
    }

    pub async fn rpc(&self, command: &str, args: &Value) -> Answer {
        self.post(&format!("/api/rpc/{command}"), args).await
    }

    /// Signs in; the session's cookie is kept.
    pub async fn sign_in(&mut self, email: &str, password: &str) -> Answer {
        let answer = self.rpc("sign_in", &json!({"p_email": email, "p_password": password})).await;
        if let Some(cookie) = answer.headers.get("set-cookie") {
            self.cookie = cookie.to_str().unwrap().split(';').next().map(str::to_owned);
        }
        answer
    }
}
