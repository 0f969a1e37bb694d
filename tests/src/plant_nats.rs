//! The private NATS of a control plane, seen by somebody who holds the account's key.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use nkeys::KeyPair;
use serde_json::{Value, json};

/// Connects with every right in the account of the plant in this folder.
pub async fn connect(dir: &Path) -> async_nats::Client {
    let text = std::fs::read(dir.join("server.json")).expect("server.json");
    let server: Value = serde_json::from_slice(&text).expect("JSON");
    let url = server["nats_url"].as_str().expect("nats_url");
    let seed = std::fs::read_to_string(dir.join("keys/nats-account.nk")).expect("the account's key");
    let account = KeyPair::from_seed(seed.trim()).expect("a key");
    let user = KeyPair::new_user();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let claims = json!({
        "iat": now, "iss": account.public_key(), "name": "a test", "sub": user.public_key(), "jti": user.public_key(),
        "nats": {"subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2},
    });
    let part = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
    let signed = format!("{}.{}", part(r#"{"typ":"JWT","alg":"ed25519-nkey"}"#), part(&claims.to_string()));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(account.sign(signed.as_bytes()).expect("signed"));
    let jwt = format!("{signed}.{signature}");
    let user = std::sync::Arc::new(user);
    async_nats::ConnectOptions::with_jwt(jwt, move |nonce| {
        let user = user.clone();
        async move { user.sign(&nonce).map_err(async_nats::AuthError::new) }
    })
    .connect(url)
    .await
    .unwrap_or_else(|error| panic!("the plant's NATS at {url}: {error}"))
}
