//! Webhooks by the Standard Webhooks specification: signed over id, time and body, so that a receiver can tell who sent
//! it, that nothing was altered, that it is not an old one, and that it did not have it before.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use events::timestamp::Timestamp;
use hmac::{Hmac, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::Value;
use sha2::Sha256;
use std::time::Duration;
use uuid::Uuid;

use super::deliver::Outcome;
use crate::outbound::{OutboundError, Policy};
use crate::secrets::Hidden;

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// How long a receiver may take.
const WITHIN: Duration = Duration::from_secs(15);

/// A new secret for a receiver to check signatures with.
pub fn new_secret() -> Hidden {
    Hidden::new(format!("{PREFIX}{}", BASE64_STANDARD.encode(rand::random::<[u8; 32]>())))
}

/// The signature of a message: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.
pub fn sign(secret: &Hidden, id: &str, timestamp_s: i64, body: &str) -> String {
    let encoded = secret.reveal().strip_prefix(PREFIX).unwrap_or(secret.reveal());
    let key = BASE64_STANDARD.decode(encoded).unwrap_or_default();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes a key of any length");
    mac.update(format!("{id}.{timestamp_s}.{body}").as_bytes());
    format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

/// Sends a message to a receiver.
pub(super) async fn send(
    policy: &Policy,
    url: &str,
    secret: &Hidden,
    id: Uuid,
    body: &Value,
    now: Timestamp,
) -> Outcome {
    let body = body.to_string();
    let id = format!("msg_{}", id.simple());
    let timestamp_s = now.as_micros() / 1_000_000;
    let signature = sign(secret, &id, timestamp_s, &body);
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &str| {
        headers.insert(name, HeaderValue::from_str(value).expect("ids, numbers and base64 are ASCII"));
    };
    set(header::CONTENT_TYPE, "application/json");
    set(header::USER_AGENT, concat!("benchtrail/", env!("CARGO_PKG_VERSION")));
    set(HeaderName::from_static("webhook-id"), &id);
    set(HeaderName::from_static("webhook-timestamp"), &timestamp_s.to_string());
    set(HeaderName::from_static("webhook-signature"), &signature);
    match policy.send(Method::POST, url, headers, body.into_bytes(), WITHIN).await {
        Ok(answer) if answer.status.is_success() => Outcome::Sent,
        Ok(answer) if answer.status == StatusCode::GONE => Outcome::Gone,
        Ok(answer) => Outcome::Later(format!("the receiver answered {}", answer.status)),
        Err(OutboundError::Refused(why)) => Outcome::Never(why),
        Err(OutboundError::Unreachable(why)) => Outcome::Later(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_specification() {
        // The example of the Standard Webhooks specification's libraries.
        let secret = Hidden::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let body = "{\"test\": 2432232314}";
        let signature = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn another_body_time_or_secret_has_another_signature() {
        let secret = new_secret();
        let signature = sign(&secret, "msg_1", 1, "{}");
        for other in [
            sign(&secret, "msg_1", 1, "{ }"),
            sign(&secret, "msg_1", 2, "{}"),
            sign(&secret, "msg_2", 1, "{}"),
            sign(&new_secret(), "msg_1", 1, "{}"),
        ] {
            assert_ne!(other, signature);
        }
    }
}
