//! How much one principal may ask a second: a token bucket for each, by the cell rate algorithm. The page's own files are
//! not counted.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http::StatusCode;

use super::error::Failure;
use super::extract::RequestContext;
use crate::auth::Principal;
use crate::state::AppState;

/// Requests a second, and how many may come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// In the long run.
    pub per_second: NonZeroU32,
    /// At once, after a silence.
    pub burst: NonZeroU32,
}

impl Rate {
    /// A rate; at least one of each.
    pub fn new(per_second: u32, burst: u32) -> Self {
        let at_least_one = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self { per_second: at_least_one(per_second), burst: at_least_one(burst) }
    }

    fn quota(self) -> Quota {
        Quota::per_second(self.per_second).allow_burst(self.burst)
    }
}

/// The rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Of each person, and each API token.
    pub person: Rate,
    /// Of each address from which nobody is signed in.
    pub anonymous: Rate,
    /// Of each agent.
    pub agent: Rate,
}

impl Default for Rates {
    fn default() -> Self {
        Self { person: Rate::new(2000, 4000), anonymous: Rate::new(100, 1000), agent: Rate::new(500, 2000) }
    }
}

/// Live streams that one principal, or one address from which nobody is signed in, may have open at once.
pub const MOST_STREAMS: usize = 1000;

/// The buckets, and the live streams that are open.
#[derive(Debug)]
pub struct Limits {
    streams: Arc<Mutex<HashMap<String, usize>>>,
    people: DefaultKeyedRateLimiter<String>,
    addresses: DefaultKeyedRateLimiter<IpAddr>,
    agents: DefaultKeyedRateLimiter<String>,
    /// Until when the bucket of an address is empty, so that who is told to wait costs nothing meanwhile.
    empty: Mutex<HashMap<IpAddr, Instant>>,
}

impl Limits {
    /// Full buckets of these rates.
    pub fn new(rates: Rates) -> Self {
        Self {
            people: RateLimiter::keyed(rates.person.quota()),
            addresses: RateLimiter::keyed(rates.anonymous.quota()),
            agents: RateLimiter::keyed(rates.agent.quota()),
            streams: Arc::default(),
            empty: Mutex::default(),
        }
    }

    /// Takes a place for a live stream; nothing where the principal has [`MOST_STREAMS`] open. The place is free again when
    /// what is returned is dropped.
    pub fn open_stream(&self, principal: &Principal, address: IpAddr) -> Option<OpenStream> {
        let whose = match principal {
            Principal::Anonymous => network_of(address).to_string(),
            _ => principal.fingerprint(),
        };
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let open = streams.entry(whose.clone()).or_default();
        if *open >= MOST_STREAMS {
            return None;
        }
        *open += 1;
        Some(OpenStream { whose, streams: Arc::clone(&self.streams) })
    }

    /// Takes one.
    ///
    /// # Errors
    /// The seconds to wait where the bucket is empty.
    pub fn take(&self, principal: &Principal, address: IpAddr) -> Result<(), u64> {
        let taken = match principal {
            Principal::System => return Ok(()),
            Principal::Anonymous => self.addresses.check_key(&network_of(address)),
            Principal::Agent { .. } => self.agents.check_key(&principal.fingerprint()),
            Principal::User { .. } | Principal::Token { .. } => {
                self.people.check_key(&principal.fingerprint())
            }
        };
        taken.map_err(|not_until| {
            let wait = not_until.wait_time_from(DefaultClock::default().now());
            if matches!(principal, Principal::Anonymous) {
                self.empty().insert(network_of(address), Instant::now() + wait);
            }
            whole_seconds(wait)
        })
    }

    /// The seconds that this address has to wait, where its bucket was found empty; nothing is taken.
    pub fn wait_of(&self, address: IpAddr) -> Option<u64> {
        let until = self.empty().get(&network_of(address)).copied()?;
        until.checked_duration_since(Instant::now()).map(whole_seconds)
    }

    fn empty(&self) -> std::sync::MutexGuard<'_, HashMap<IpAddr, Instant>> {
        self.empty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets whose buckets are full again.
    pub fn clean_up(&self) {
        self.people.retain_recent();
        self.addresses.retain_recent();
        self.agents.retain_recent();
        let now = Instant::now();
        self.empty().retain(|_, until| *until > now);
    }
}

/// A live stream's place.
#[derive(Debug)]
pub struct OpenStream {
    whose: String,
    streams: Arc<Mutex<HashMap<String, usize>>>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = streams.get_mut(&self.whose) {
            *open -= 1;
            if *open == 0 {
                streams.remove(&self.whose);
            }
        }
    }
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1000).max(1) as u64
}

/// Whom an address stands for: of IPv6 the network of 64 bits, which one customer has.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        v4 => v4,
    }
}

/// Refuses who asks too much: 429, with the time to wait.
pub async fn limit(
    State(state): State<AppState>,
    principal: Principal,
    context: RequestContext,
    request: Request,
    next: Next,
) -> Response {
    if !request.uri().path().starts_with("/api/") {
        return next.run(request).await;
    }
    match state.limits.take(&principal, context.address) {
        Ok(()) => next.run(request).await,
        Err(seconds) => too_many(seconds),
    }
}

/// The answer to who has to wait.
pub(super) fn too_many(seconds: u64) -> Response {
    let mut failure = Failure::new(
        StatusCode::TOO_MANY_REQUESTS,
        "rate_limited",
        "too many requests in a short time",
        format!(
            "wait {seconds} s, then go on more slowly; a stream (/api/live) or an export takes one request"
        ),
    );
    failure.retry_after_s = Some(seconds);
    failure.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        let few = Rate::new(1, 3);
        Limits::new(Rates { person: few, anonymous: few, agent: few })
    }

    #[test]
    fn a_principal_has_so_many_streams_and_gets_a_place_back_with_each_that_ends() {
        let limits = limits();
        let (here, there) = ("2001:db8::1".parse().unwrap(), "2001:db8:0:1::1".parse().unwrap());
        let mut open: Vec<OpenStream> =
            (0..MOST_STREAMS).map(|_| limits.open_stream(&Principal::Anonymous, here).unwrap()).collect();
        assert!(limits.open_stream(&Principal::Anonymous, here).is_none());
        drop(limits.open_stream(&Principal::Anonymous, there).expect("another network has its own"));
        open.pop();
        open.push(limits.open_stream(&Principal::Anonymous, here).unwrap());
        assert!(limits.open_stream(&Principal::Anonymous, here).is_none());
        open.clear();
        assert!(limits.streams.lock().unwrap().is_empty());
    }

    #[test]
    fn each_principal_has_a_bucket_of_its_own() {
        let limits = limits();
        let home: IpAddr = "192.0.2.1".parse().unwrap();
        let person = |id: &str| Principal::User {
            id: id.into(),
            org: "acme".into(),
            role: events::access::Role::Viewer,
        };
        for _ in 0..3 {
            limits.take(&person("ann"), home).unwrap();
        }
        assert!((1..=2).contains(&limits.take(&person("ann"), home).unwrap_err()));
        limits.take(&person("bob"), home).unwrap();
        limits.take(&Principal::Anonymous, home).unwrap();
    }

    #[test]
    fn who_has_a_whole_network_has_one_bucket() {
        let limits = limits();
        let taken = (1..=6u16).filter(|n| {
            let address = IpAddr::from([0x2001, 0xdb8, 1, 2, *n, *n, *n, *n]);
            limits.take(&Principal::Anonymous, address).is_ok()
        });
        assert_eq!(taken.count(), 3);
    }
}
