//! Signing in by an OpenID provider: authorization code with PKCE.
//!
//! A browser that begins gets a secret in a cookie; the provider's answer counts only in that browser, once, within ten
//! minutes. An account is recognised by the provider's subject, and the first time by its e-mail, if the provider says
//! that it verified it. Whoever has no account needs an invitation, which can be accepted this way.

mod account;

use std::time::Duration;

use events::timestamp::Timestamp;
use openidconnect::core::{CoreAuthenticationFlow, CoreClient, CoreProviderMetadata, CoreUserInfoClaims};
use openidconnect::{
    AccessTokenHash, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointMaybeSet, EndpointNotSet,
    EndpointSet, HttpRequest, HttpResponse, IssuerUrl, Nonce, OAuth2TokenResponse, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, Scope, TokenResponse,
};
use time::OffsetDateTime;
use url::Url;
use uuid::Uuid;

use super::AuthError;
use super::accounts;
use super::sessions::{self, NewSession};
use crate::outbound::{OutboundError, Policy, Target};
use crate::secrets::{Hidden, Secret, SecretKind, sha256};
use crate::state::AppState;

/// The cookie of a browser that is at the provider.
pub const COOKIE: &str = "benchtrail_oidc";
/// Where the provider sends browsers back to.
pub const CALLBACK: &str = "/api/oidc/callback";
/// Seconds that may pass at the provider.
pub const LIFETIME_S: i64 = 600;
/// The most that is read of an answer of the provider's, bytes.
const MOST_READ: usize = 1 << 20;
/// How long the provider may take over an answer.
const PROVIDER_WITHIN: Duration = Duration::from_secs(10);

/// The provider, as the operator configured it.
#[derive(Debug, Clone)]
pub struct OidcConfig {
    /// Its address, exactly as it calls itself.
    pub issuer: String,
    /// How it knows this control plane.
    pub client_id: String,
    /// What proves it; absent for a public client.
    pub client_secret: Option<Hidden>,
    /// What the button in the page says.
    pub label: String,
}

/// Why somebody could not be signed in by the provider.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// No provider is configured.
    #[error("no OpenID provider is configured")]
    Off,
    /// The address to come back to is not one of this page.
    #[error("{0:?} is not a path of this page")]
    BadReturn(String),
    /// The answer belongs to no browser that asked here.
    #[error("this sign-in was not begun in this browser, is too old, or was used before")]
    NotBegun,
    /// The provider says no.
    #[error("the provider refused: {0}")]
    Refused(String),
    /// The provider does not answer as it should.
    #[error("the provider's answer is not usable: {0}")]
    Provider(String),
    /// Nobody here has this identity.
    #[error("there is no account with an e-mail that the provider verified")]
    NoAccount,
    /// An invitation stands in the way.
    #[error(transparent)]
    Invitation(#[from] crate::commands::CommandError),
    /// The vault or the log.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl From<sqlx::Error> for OidcError {
    fn from(error: sqlx::Error) -> Self {
        Self::Auth(error.into())
    }
}

impl OidcError {
    /// A short stable word: the page's address carries it after a failure.
    pub fn code(&self) -> &str {
        match self {
            Self::Off => "oidc_off",
            Self::BadReturn(_) => "bad_return_path",
            Self::NotBegun => "oidc_not_begun",
            Self::Refused(_) => "oidc_refused",
            Self::Provider(_) => "oidc_provider",
            Self::NoAccount => "oidc_no_account",
            Self::Invitation(error) => &error.error.code,
            Self::Auth(AuthError::NoMembership) => "no_membership",
            Self::Auth(_) => "unavailable",
        }
    }
}

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// What the provider could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct HttpFailure(String);

/// The provider is the operator's choice, so its own address is not judged. Where its documents lead elsewhere, the
/// policy for what this control plane asks has its say. Redirects are not followed.
async fn ask(policy: Policy, issuer: IssuerUrl, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
    let (parts, body) = request.into_parts();
    let text = parts.uri.to_string();
    let url = Url::parse(&text).map_err(|error| HttpFailure(format!("{text:?} is no address: {error}")))?;
    let failed =
        |error: OutboundError| HttpFailure(format!("{}: {error}", url.origin().ascii_serialization()));
    let target = if url.origin() == issuer.url().origin() {
        Target::of_operator(url.clone()).await
    } else {
        policy.resolve(&text).await
    };
    let sent =
        target.map_err(failed)?.send(parts.method, parts.headers, body, PROVIDER_WITHIN, MOST_READ).await;
    let answered = sent.map_err(failed)?;
    let mut answer = http::Response::builder().status(answered.status);
    for (name, value) in &answered.headers {
        answer = answer.header(name, value);
    }
    answer.body(answered.body.to_vec()).map_err(|error| HttpFailure(error.to_string()))
}

fn issuer(state: &AppState) -> Result<IssuerUrl, OidcError> {
    let config = state.config.oidc.as_ref().ok_or(OidcError::Off)?;
    IssuerUrl::new(config.issuer.clone()).map_err(|error| OidcError::Provider(error.to_string()))
}

async fn client(state: &AppState) -> Result<Client, OidcError> {
    let config = state.config.oidc.as_ref().ok_or(OidcError::Off)?;
    let bad = |error: &dyn std::fmt::Display| OidcError::Provider(error.to_string());
    let issuer = issuer(state)?;
    let asking = |request: HttpRequest| ask(state.config.outbound.clone(), issuer.clone(), request);
    let found = CoreProviderMetadata::discover_async(issuer.clone(), &asking).await;
    let metadata = found.map_err(|error| bad(&said(&error)))?;
    let secret = config.client_secret.as_ref().map(|secret| ClientSecret::new(secret.reveal().to_owned()));
    let back = format!("{}{CALLBACK}", state.config.public_url.as_str().trim_end_matches('/'));
    let back = RedirectUrl::new(back).map_err(|error| bad(&error))?;
    let client =
        CoreClient::from_provider_metadata(metadata, ClientId::new(config.client_id.clone()), secret);
    Ok(client.set_redirect_uri(back))
}

/// An error with its causes: the innermost helps.
fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// A path of this page: nothing that a browser could take for another host.
fn own_path(path: &str) -> Result<String, OidcError> {
    let bad = || OidcError::BadReturn(path.chars().take(100).collect());
    let base = Url::parse("https://benchtrail.invalid/").expect("it is a URL");
    let plain = path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains('\\')
        && !path.chars().any(|c| c.is_control() || c.is_whitespace())
        && path.len() <= 2000;
    let joined = base.join(path).map_err(|_| bad())?;
    if plain && joined.origin() == base.origin() { Ok(path.to_owned()) } else { Err(bad()) }
}

/// A browser that is sent to the provider.
#[derive(Debug)]
pub struct Begun {
    /// Where it goes.
    pub url: Url,
    /// What goes into the cookie.
    pub cookie: Secret,
}

/// Begins. `invitation` is the secret of a link that is accepted with the account that signs in.
///
/// # Errors
/// [`OidcError`]; nothing is begun then.
pub async fn begin(
    state: &AppState,
    return_to: &str,
    invitation: Option<&str>,
    now: Timestamp,
) -> Result<Begun, OidcError> {
    let return_to = own_path(return_to)?;
    if let Some(token) = invitation {
        crate::commands::invitations::open(state, token, now).await?;
    }
    let client = client(state).await?;
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let (url, csrf, nonce) = client
        .authorize_url(CoreAuthenticationFlow::AuthorizationCode, CsrfToken::new_random, Nonce::new_random)
        .add_scope(Scope::new("email".to_owned()))
        .add_scope(Scope::new("profile".to_owned()))
        .set_pkce_challenge(challenge)
        .url();
    let cookie = Secret::new(SecretKind::Session);
    let held = serde_json::json!({
        "state": csrf.secret(), "nonce": nonce.secret(), "verifier": verifier.secret(), "return_to": return_to,
        "invitation": invitation,
    });
    let key = cookie.sha256();
    sqlx::query("delete from vault.oidc_attempts where expires_at < $1")
        .bind(OffsetDateTime::from(now))
        .execute(&state.pool)
        .await?;
    sqlx::query("insert into vault.oidc_attempts (sha256, held_sealed, expires_at) values ($1, $2, $3)")
        .bind(key.as_slice())
        .bind(state.keys.vault().seal(&place(&key), &held.to_string()))
        .bind(OffsetDateTime::from(now.plus_micros(LIFETIME_S * 1_000_000)))
        .execute(&state.pool)
        .await?;
    Ok(Begun { url, cookie })
}

fn place(key: &[u8; 32]) -> String {
    format!("oidc_attempts/{}", hex::encode(key))
}

/// What a browser brings back from the provider.
#[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
pub struct Returned {
    /// What an ID token is exchanged for.
    code: Option<String>,
    /// What the sign-in was begun with.
    state: Option<String>,
    /// Why there is no code.
    error: Option<String>,
}

#[derive(serde::Deserialize)]
struct Held {
    state: String,
    nonce: String,
    verifier: String,
    return_to: String,
    invitation: Option<String>,
}

/// Who the provider says it is.
struct Identity {
    issuer: String,
    subject: String,
    verified_email: Option<String>,
    name: Option<String>,
}

/// Ends what [`begin`] began: a session, and the path to go on at.
///
/// # Errors
/// [`OidcError`]; no session begins then.
pub async fn finish(
    state: &AppState,
    cookie: Option<&str>,
    returned: Returned,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<(NewSession, String), OidcError> {
    let cookie = cookie.ok_or(OidcError::NotBegun)?;
    let key = sha256(cookie);
    // Taken out before anything else: one answer for one beginning.
    let held: Option<Vec<u8>> = sqlx::query_scalar(
        "delete from vault.oidc_attempts where sha256 = $1 and expires_at > $2 returning held_sealed",
    )
    .bind(key.as_slice())
    .bind(OffsetDateTime::from(now))
    .fetch_optional(&state.pool)
    .await?;
    let held =
        state.keys.vault().open(&place(&key), &held.ok_or(OidcError::NotBegun)?).map_err(AuthError::from)?;
    let held: Held = serde_json::from_str(&held).map_err(|error| OidcError::Provider(error.to_string()))?;
    // By their hashes: how long that takes tells nothing.
    if returned.state.as_deref().map(sha256) != Some(sha256(&held.state)) {
        return Err(OidcError::NotBegun);
    }
    let code = match (returned.code, returned.error) {
        (Some(code), None) => code,
        (_, Some(error)) => return Err(OidcError::Refused(error.chars().take(100).collect())),
        (None, None) => return Err(OidcError::Provider("it sent no code".to_owned())),
    };
    let identity = identify(state, code, &held).await?;
    let user = account::account_of(state, &identity, held.invitation.as_deref(), correlation_id, now).await?;
    let memberships = accounts::memberships(&state.pool, user).await?;
    let (org, role) = memberships.into_iter().next().ok_or(AuthError::NoMembership)?;
    let new = sessions::begin(state, user, &org, role, "oidc", correlation_id, now).await?;
    Ok((new, held.return_to))
}

/// Exchanges the code and checks what comes: signature, issuer, audience, time and nonce.
async fn identify(state: &AppState, code: String, held: &Held) -> Result<Identity, OidcError> {
    let issuer = issuer(state)?;
    let asking = |request: HttpRequest| ask(state.config.outbound.clone(), issuer.clone(), request);
    let provider = |error: &dyn std::error::Error| OidcError::Provider(said(error));
    let client = client(state).await?;
    let tokens = client
        .exchange_code(AuthorizationCode::new(code))
        .map_err(|error| provider(&error))?
        .set_pkce_verifier(PkceCodeVerifier::new(held.verifier.clone()))
        .request_async(&asking)
        .await
        .map_err(|error| provider(&error))?;
    let id_token = tokens.id_token().ok_or_else(|| OidcError::Provider("it sent no ID token".to_owned()))?;
    let verifier = client.id_token_verifier();
    let nonce = Nonce::new(held.nonce.clone());
    let claims = id_token.claims(&verifier, &nonce).map_err(|error| provider(&error))?;
    if let Some(expected) = claims.access_token_hash() {
        let algorithm = id_token.signing_alg().map_err(|error| provider(&error))?;
        let key = id_token.signing_key(&verifier).map_err(|error| provider(&error))?;
        let actual = AccessTokenHash::from_token(tokens.access_token(), algorithm, key)
            .map_err(|error| provider(&error))?;
        if actual != *expected {
            return Err(OidcError::Provider("its access token is another than its ID token says".to_owned()));
        }
    }
    let mut email = claims.email().map(|email| email.as_str().to_owned());
    let mut verified = claims.email_verified().unwrap_or(false);
    let mut name = claims.name().and_then(|name| name.get(None)).map(|name| name.as_str().to_owned());
    // Many providers keep these for their userinfo endpoint.
    if email.is_none()
        && let Ok(request) = client.user_info(tokens.access_token().clone(), Some(claims.subject().clone()))
    {
        let info: CoreUserInfoClaims =
            request.request_async(&asking).await.map_err(|error| provider(&error))?;
        email = info.email().map(|email| email.as_str().to_owned());
        verified = info.email_verified().unwrap_or(false);
        name =
            name.or_else(|| info.name().and_then(|name| name.get(None)).map(|name| name.as_str().to_owned()));
    }
    Ok(Identity {
        issuer: claims.issuer().as_str().to_owned(),
        subject: claims.subject().as_str().to_owned(),
        verified_email: email.filter(|_| verified),
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::own_path;

    #[test]
    fn only_a_path_of_this_page_is_returned_to() {
        for path in ["/", "/projects/acme/p1?tab=runs#top", "/reporting?model=a%2Fb"] {
            assert_eq!(own_path(path).unwrap(), path);
        }
        for path in [
            "",
            "projects",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example/",
            "/\t/evil.example",
            "\\\\evil.example",
            "javascript:alert(1)",
            "/a\nb",
            "///evil.example",
        ] {
            assert!(own_path(path).is_err(), "{path:?}");
        }
    }
}
