//! The seal by which control planes know each other's messages on NATS: HMAC-SHA256 with a key of the vault, over subject
//! and body. Whoever else may publish there cannot make one.

use std::sync::Arc;

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Seals messages and knows those that were sealed. The first key seals; every key is recognised.
#[derive(Clone)]
pub struct MessageSeal {
    keys: Arc<[[u8; 32]]>,
}

impl std::fmt::Debug for MessageSeal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MessageSeal({} keys)", self.keys.len())
    }
}

impl MessageSeal {
    /// By the vault's derived keys, the newest first.
    pub(super) fn new(keys: Vec<[u8; 32]>) -> Self {
        Self { keys: keys.into() }
    }

    /// The seal of a message, hexadecimal.
    pub fn of(&self, subject: &str, body: &[u8]) -> String {
        hex::encode(mac(&self.keys[0], subject, body).finalize().into_bytes())
    }

    /// Whether this is the seal of the message, by one of the keys.
    pub fn holds(&self, seal: &str, subject: &str, body: &[u8]) -> bool {
        let Ok(seal) = hex::decode(seal) else { return false };
        self.keys.iter().any(|key| mac(key, subject, body).verify_slice(&seal).is_ok())
    }
}

fn mac(key: &[u8; 32], subject: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(subject.as_bytes());
    // No subject holds a zero byte: what is subject and what is body is plain.
    mac.update(&[0]);
    mac.update(body);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_of_one_subject_and_one_body_and_of_the_keys_that_are_known() {
        let (old, other) = (MessageSeal::new(vec![[1; 32]]), MessageSeal::new(vec![[9; 32]]));
        let new = MessageSeal::new(vec![[2; 32], [1; 32]]);
        let seal = old.of("events.acme.job", b"body");
        assert!(old.holds(&seal, "events.acme.job", b"body"));
        assert!(new.holds(&seal, "events.acme.job", b"body"), "a key was added");
        assert!(!old.holds(&new.of("events.acme.job", b"body"), "events.acme.job", b"body"));
        for (subject, body) in [("events.acme.job", &b"other"[..]), ("events.acme.run", b"body")] {
            assert!(!old.holds(&seal, subject, body));
        }
        assert!(!other.holds(&seal, "events.acme.job", b"body"));
        assert!(
            !old.holds("", "events.acme.job", b"body") && !old.holds("no hex", "events.acme.job", b"body")
        );
    }
}
