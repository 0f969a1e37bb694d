//! JSON Web Tokens for the private NATS in its operator mode: the operator signs accounts, the account signs users.
//!
//! An agent makes its own user key, sends the public half, and gets back a short-lived token that lets it speak on its
//! own subjects and no others. The format is NATS's, version 2:
//! <https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/jwt>.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use events::subjects::{agent_may_publish, agent_may_subscribe};
use nkeys::{KeyPair, KeyPairType};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The longest an agent's token may live.
pub const LONGEST_AGENT_TTL: Duration = Duration::from_secs(3600);

/// Why a token was not issued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// An empty name would make another subject.
    #[error("an agent needs an organisation and a name")]
    NoName,
    #[error("not a NATS user public key (they start with `U`): {0}")]
    NotAUserKey(String),
    #[error("not an account seed (they start with `SA`): {0}")]
    NotAnAccountSeed(String),
    #[error("an agent's NATS credentials live at most {LONGEST_AGENT_TTL:?}, not {0:?}")]
    TooLong(Duration),
    #[error("nkeys: {0}")]
    Nkeys(#[from] nkeys::error::Error),
}

#[derive(Clone)]
/// The key that signs NATS users: whoever holds it can issue any of them. It never leaves the control plane.
pub struct AccountKey(KeyPair);

impl AccountKey {
    /// Reads a key from its seed (`SA…`).
    pub fn from_seed(seed: &str) -> Result<Self, CredentialError> {
        let pair = KeyPair::from_seed(seed.trim())
            .map_err(|error| CredentialError::NotAnAccountSeed(error.to_string()))?;
        match pair.key_pair_type() {
            KeyPairType::Account => Ok(Self(pair)),
            other => Err(CredentialError::NotAnAccountSeed(format!("{other:?}"))),
        }
    }

    /// The account's public name (`A…`).
    #[must_use]
    pub fn public_key(&self) -> String {
        self.0.public_key()
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AccountKey").field(&self.public_key()).finish()
    }
}

/// What a NATS client of the control plane needs: the text of a `.creds` file, with every right in the account.
///
/// Made afresh at each start and kept in memory only, hence without an end date.
pub fn issue_server_user(account: &AccountKey) -> Result<String, CredentialError> {
    let user = KeyPair::new_user();
    let rights = json!({ "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2 });
    let jwt = sign(&account.0, "benchtrail-server", &user.public_key(), None, rights)?;
    Ok(creds_file(&jwt, &user.seed()?))
}

/// A token for one agent, good for `ttl`: it may publish its own reports and hear its own inbox and commands
/// ([`events::subjects`] says where), nothing else.
///
/// `user_public_key` (`U…`) is the agent's; the seed never leaves its host. The client must use the inbox prefix
/// [`events::subjects::inbox_prefix`].
pub fn issue_agent_user(
    account: &AccountKey,
    org: &str,
    agent: &str,
    user_public_key: &str,
    ttl: Duration,
) -> Result<String, CredentialError> {
    if org.is_empty() || agent.is_empty() {
        return Err(CredentialError::NoName);
    }
    if ttl > LONGEST_AGENT_TTL {
        return Err(CredentialError::TooLong(ttl));
    }
    let user = KeyPair::from_public_key(user_public_key)
        .map_err(|error| CredentialError::NotAUserKey(error.to_string()))?;
    if !matches!(user.key_pair_type(), KeyPairType::User) {
        return Err(CredentialError::NotAUserKey(user_public_key.to_owned()));
    }
    let rights = json!({
        "pub": { "allow": agent_may_publish(org, agent) },
        "sub": { "allow": agent_may_subscribe(org, agent) },
        "subs": 64, "data": -1, "payload": -1, "type": "user", "version": 2,
    });
    sign(&account.0, agent, user_public_key, Some(ttl), rights)
}

/// The text of a `.creds` file: a token and the seed of the key it is for.
#[must_use]
pub fn creds_file(jwt: &str, seed: &str) -> String {
    format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}

/// The operator's token for itself.
pub(super) fn operator_jwt(operator: &KeyPair, system_account: &str) -> Result<String, CredentialError> {
    let claims = json!({ "type": "operator", "version": 2, "system_account": system_account });
    sign(operator, "benchtrail", &operator.public_key(), None, claims)
}

/// An account's token, signed by the operator. Only an account with JetStream may keep streams.
pub(super) fn account_jwt(
    operator: &KeyPair,
    name: &str,
    account: &str,
    jetstream: bool,
) -> Result<String, CredentialError> {
    let storage = if jetstream { -1 } else { 0 };
    let claims = json!({
        "limits": {
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
            "mem_storage": storage, "disk_storage": storage, "streams": storage, "consumer": storage,
        },
        "default_permissions": { "pub": {}, "sub": {} },
        "type": "account", "version": 2,
    });
    sign(operator, name, account, None, claims)
}

fn sign(
    issuer: &KeyPair,
    name: &str,
    subject: &str,
    ttl: Option<Duration>,
    nats: Value,
) -> Result<String, CredentialError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut claims = json!({ "iat": now.as_secs(), "iss": issuer.public_key(), "name": name, "sub": subject, "nats": nats });
    if let Some(ttl) = ttl {
        claims["exp"] = (now + ttl).as_secs().into();
    }
    claims["jti"] = hex::encode(Sha256::digest(claims.to_string())).into();
    let head = BASE64_URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT","alg":"ed25519-nkey"}"#);
    let body = BASE64_URL_SAFE_NO_PAD.encode(claims.to_string());
    let signed = format!("{head}.{body}");
    let signature = BASE64_URL_SAFE_NO_PAD.encode(issuer.sign(signed.as_bytes())?);
    Ok(format!("{signed}.{signature}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> AccountKey {
        AccountKey(KeyPair::new_account())
    }

    fn claims(jwt: &str) -> Value {
        let body = jwt.split('.').nth(1).unwrap();
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(body).unwrap()).unwrap()
    }

    #[test]
    fn an_agent_gets_its_own_subjects_only() {
        let user = KeyPair::new_user();
        let jwt =
            issue_agent_user(&account(), "acme", "a7", &user.public_key(), Duration::from_secs(60)).unwrap();
        let claims = claims(&jwt);
        assert_eq!(claims["nats"]["pub"]["allow"], json!(["ingest.acme.a7.*"]));
        assert_eq!(claims["nats"]["sub"]["allow"], json!(["_INBOX.acme.a7.>", "agent.acme.a7.cmd"]));
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 60);
    }

    #[test]
    fn a_name_that_would_widen_the_subject_is_encoded() {
        let user = KeyPair::new_user().public_key();
        for name in ["*", ">", "a.b", "a b", "a\n", "a\u{85}"] {
            let jwt = issue_agent_user(&account(), "acme", name, &user, Duration::from_secs(60)).unwrap();
            let claims = claims(&jwt);
            let subject = claims["nats"]["pub"]["allow"][0].as_str().unwrap().to_owned();
            assert_eq!(subject.split('.').count(), 4, "{subject:?}");
            let agent = subject.split('.').nth(2).unwrap();
            assert!(
                !agent.contains(|c: char| c.is_whitespace() || c.is_control() || "*>".contains(c)),
                "{subject:?}"
            );
        }
    }

    #[test]
    fn an_agent_without_a_name_gets_no_token() {
        let user = KeyPair::new_user().public_key();
        let refused = issue_agent_user(&account(), "acme", "", &user, Duration::from_secs(60));
        assert!(matches!(refused, Err(CredentialError::NoName)));
    }

    #[test]
    fn only_a_user_key_gets_a_token() {
        let refused = issue_agent_user(
            &account(),
            "acme",
            "a7",
            &KeyPair::new_account().public_key(),
            Duration::from_secs(60),
        );
        assert!(matches!(refused, Err(CredentialError::NotAUserKey(_))));
    }

    #[test]
    fn an_agents_token_lives_an_hour_at_most() {
        let user = KeyPair::new_user().public_key();
        let refused =
            issue_agent_user(&account(), "acme", "a7", &user, LONGEST_AGENT_TTL + Duration::from_secs(1));
        assert!(matches!(refused, Err(CredentialError::TooLong(_))));
    }
}
