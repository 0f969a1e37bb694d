//! The NATS road to the control plane.
//!
//! One task keeps a connection: it fetches short-lived credentials over HTTPS, connects with them and the
//! agent's own key, and renews them before they run out. Whoever asks finds the connection here or not at all.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Auth, Client, ConnectOptions, connection::State};
use events::report::AgentCommand;
use events::subjects::{self, IngestKind};
use futures::StreamExt;
use tokio::sync::mpsc;

use super::{ControlError, Https};
use crate::clock;
use crate::identity::Identity;

/// How long a request may take before HTTPS is tried.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the road is left alone after a request on it was not answered.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(10);
/// How often the connection is looked at.
const LOOK: Duration = Duration::from_secs(5);
/// A connection that is down at so many looks in a row is given up and made anew.
const LOOKS_UNTIL_LOST: u32 = 4;
/// The pause after a renewal that failed.
const RENEW_AGAIN: Duration = Duration::from_secs(15);
/// The pauses between attempts to connect, seconds; the last one repeats.
const CONNECT_PAUSES: [u64; 5] = [1, 2, 5, 10, 30];

/// The agent's connection to NATS, or its absence.
pub struct NatsLink {
    org: String,
    agent: String,
    client: Mutex<Option<Client>>,
    resting_until: Mutex<Option<Instant>>,
}

impl NatsLink {
    /// Starts the task that keeps the connection for as long as somebody holds the link.
    pub(super) fn start(
        https: Https,
        identity: &Identity,
        commands: mpsc::Sender<AgentCommand>,
    ) -> Arc<Self> {
        let link = Arc::new(Self {
            org: identity.org.clone(),
            agent: identity.agent.clone(),
            client: Mutex::new(None),
            resting_until: Mutex::new(None),
        });
        let keeper = Keeper {
            https,
            org: identity.org.clone(),
            agent: identity.agent.clone(),
            seed: identity.nats_seed.clone(),
            jwt: Arc::default(),
            commands,
        };
        let weak = Arc::downgrade(&link);
        tokio::spawn(async move {
            let mut failures = 0;
            while let Some(link) = weak.upgrade() {
                match keeper.keep(&link).await {
                    Ok(()) => failures = 0,
                    Err(error) => {
                        tracing::info!(%error, "no NATS, using HTTPS");
                        failures += 1;
                    }
                }
                *lock(&link.client) = None;
                drop(link);
                let pause = CONNECT_PAUSES[failures.min(CONNECT_PAUSES.len() - 1)];
                tokio::time::sleep(Duration::from_secs(pause)).await;
            }
        });
        link
    }

    /// The connection, while it stands and has not just failed to carry an answer.
    pub fn client(&self) -> Option<Client> {
        if lock(&self.resting_until).is_some_and(|until| Instant::now() < until) {
            return None;
        }
        lock(&self.client).clone().filter(|client| client.connection_state() == State::Connected)
    }

    /// Sends a request and gives the answer's bytes.
    ///
    /// # Errors
    /// [`ControlError::Unreachable`] when there is no connection or no answer.
    pub(super) async fn request(&self, kind: IngestKind, body: &[u8]) -> Result<Vec<u8>, ControlError> {
        let client = self.client().ok_or_else(|| ControlError::Unreachable("no NATS connection".into()))?;
        if body.len() > client.max_payload() {
            return Err(ControlError::Unreachable("too large for NATS".into()));
        }
        let subject = subjects::ingest_subject(&self.org, &self.agent, kind);
        let request = client.request(subject, body.to_vec().into());
        match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
            Ok(Ok(message)) => Ok(message.payload.to_vec()),
            Ok(Err(error)) => Err(self.failed(error.to_string())),
            Err(_) => Err(self.failed("no answer within 5 s".into())),
        }
    }

    fn failed(&self, why: String) -> ControlError {
        *lock(&self.resting_until) = Some(Instant::now() + REST_AFTER_FAILURE);
        ControlError::Unreachable(why)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is needed to make a connection and keep it.
struct Keeper {
    https: Https,
    org: String,
    agent: String,
    seed: String,
    jwt: Arc<Mutex<String>>,
    commands: mpsc::Sender<AgentCommand>,
}

impl Keeper {
    /// Connects and stays until the connection is lost for good or cannot be renewed.
    async fn keep(&self, link: &NatsLink) -> Result<(), ControlError> {
        let (url, renew_in) = self.fetch_credentials().await?;
        let client = connect(&url, &self.org, &self.agent, &self.seed, &self.jwt).await?;
        let mut commands = client
            .subscribe(subjects::command_subject(&self.org, &self.agent))
            .await
            .map_err(|e| ControlError::Unreachable(e.to_string()))?;
        tracing::info!(%url, "connected to NATS");
        *lock(&link.resting_until) = None;
        *lock(&link.client) = Some(client.clone());
        // Not inside the loop's select: a command or a look must not put off the renewal.
        let mut renewal = Box::pin(tokio::time::sleep(renew_in));
        let mut lost_for = 0;
        loop {
            tokio::select! {
                message = commands.next() => match message {
                    None => return Ok(()),
                    Some(message) => self.deliver(&message.payload).await,
                },
                // The client connects again by itself, but to the address it knows; NATS may have another one by now.
                () = tokio::time::sleep(LOOK) => {
                    lost_for = if client.connection_state() == State::Connected { 0 } else { lost_for + 1 };
                    if lost_for >= LOOKS_UNTIL_LOST {
                        return Err(ControlError::Unreachable("the connection is lost".into()));
                    }
                }
                () = &mut renewal => match self.fetch_credentials().await {
                    Ok((_, next)) => {
                        renewal.as_mut().reset(tokio::time::Instant::now() + next);
                        // Reconnecting with the new credentials now spares being thrown out when the old ones end.
                        if let Err(error) = client.force_reconnect().await {
                            return Err(ControlError::Unreachable(error.to_string()));
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "NATS credentials could not be renewed, trying again");
                        renewal.as_mut().reset(tokio::time::Instant::now() + RENEW_AGAIN);
                    }
                },
            }
        }
    }

    /// Fetches credentials; an error where the site has no NATS.
    async fn fetch_credentials(&self) -> Result<(String, Duration), ControlError> {
        match fetch_credentials(&self.https, &self.jwt).await? {
            Some(found) => Ok(found),
            None => Err(ControlError::Unreachable("this site offers no NATS".into())),
        }
    }

    async fn deliver(&self, payload: &[u8]) {
        match serde_json::from_slice::<AgentCommand>(payload) {
            // A nudge that finds no room is no loss: the heartbeat says the same.
            Ok(command) => drop(self.commands.try_send(command)),
            Err(error) => tracing::warn!(%error, "a command was not understood"),
        }
    }
}

/// Fetches credentials into `jwt`: where to connect, and after how long to renew them. Nothing where a site has no NATS.
async fn fetch_credentials(
    https: &Https,
    jwt: &Mutex<String>,
) -> Result<Option<(String, Duration)>, ControlError> {
    let credentials = https.credentials().await?;
    let (Some(url), Some(fresh)) = (credentials.nats_url, credentials.jwt) else { return Ok(None) };
    *lock(jwt) = fresh;
    let left = credentials.expires_at.micros_since(clock::now()).max(0).unsigned_abs();
    let renew_in = Duration::from_micros(left * 2 / 3).max(Duration::from_secs(5));
    Ok(Some((url, renew_in)))
}

/// Connects; every reconnect signs with the agent's key and shows the newest credentials.
async fn connect(
    url: &str,
    org: &str,
    agent: &str,
    seed: &str,
    jwt: &Arc<Mutex<String>>,
) -> Result<Client, ControlError> {
    let (seed, jwt) = (seed.to_owned(), Arc::clone(jwt));
    let options = ConnectOptions::with_auth_callback(move |nonce| {
        let (seed, jwt) = (seed.clone(), lock(&jwt).clone());
        async move {
            let key = nkeys::KeyPair::from_seed(&seed).map_err(async_nats::AuthError::new)?;
            let mut auth = Auth::new();
            auth.signature = Some(key.sign(&nonce).map_err(async_nats::AuthError::new)?);
            auth.jwt = Some(jwt);
            Ok(auth)
        }
    })
    .name(format!("benchtrail-agent {agent}"))
    .custom_inbox_prefix(subjects::inbox_prefix(org, agent))
    .connection_timeout(Duration::from_secs(5))
    .request_timeout(Some(REQUEST_TIMEOUT))
    .ping_interval(Duration::from_secs(10));
    options.connect(url).await.map_err(|e| ControlError::Unreachable(format!("{url}: {e}")))
}

/// What a look at NATS found.
pub enum NatsProbe {
    /// It can be used, at this address.
    Connected(String),
    /// The site has none.
    NotOffered,
}

/// Connects once, as the agent would.
///
/// # Errors
/// [`ControlError`] says what stands in the way.
pub async fn probe_nats(https: Https, identity: &Identity) -> Result<NatsProbe, ControlError> {
    let jwt = Arc::default();
    let Some((url, _)) = fetch_credentials(&https, &jwt).await? else { return Ok(NatsProbe::NotOffered) };
    let client = connect(&url, &identity.org, &identity.agent, &identity.nats_seed, &jwt).await?;
    let flushed = tokio::time::timeout(REQUEST_TIMEOUT, client.flush()).await;
    flushed
        .map_err(|_| ControlError::Unreachable(format!("{url}: no answer")))?
        .map_err(|e| ControlError::Unreachable(format!("{url}: {e}")))?;
    Ok(NatsProbe::Connected(url))
}
