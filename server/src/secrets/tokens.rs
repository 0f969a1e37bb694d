//! Random secrets with a visible prefix; only their SHA-256 is ever stored.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// What a secret is for; its prefix says so, also to secret scanners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// A person's API token, `bt_u_…`.
    User,
    /// An agent's long-lived token, `bt_a_…`.
    Agent,
    /// A one-time registration token, `bt_e_…`.
    Enrol,
    /// A session in a cookie, `bt_s_…`.
    Session,
    /// The secret in an invitation's link, `bt_i_…`.
    Invitation,
}

impl SecretKind {
    /// The prefix of this kind of secret.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::User => "bt_u_",
            Self::Agent => "bt_a_",
            Self::Enrol => "bt_e_",
            Self::Session => "bt_s_",
            Self::Invitation => "bt_i_",
        }
    }

    /// The kind of a secret, by its prefix.
    pub fn of(text: &str) -> Option<Self> {
        [Self::User, Self::Agent, Self::Enrol, Self::Session, Self::Invitation]
            .into_iter()
            .find(|kind| text.starts_with(kind.prefix()))
    }
}

/// A new secret: 256 random bits. Shown once, stored hashed.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Makes one.
    pub fn new(kind: SecretKind) -> Self {
        let random = BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        Self(format!("{}{random}", kind.prefix()))
    }

    /// The text to show once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is stored in its place.
    pub fn sha256(&self) -> [u8; 32] {
        sha256(&self.0)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A secret that was configured or is on its way to somebody: never shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(zeroize::Zeroizing<String>);

impl Hidden {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(zeroize::Zeroizing::new(text.into()))
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden(…)")
    }
}

/// SHA-256 of a secret as its bearer sent it. A fast hash is right here: the secret has 256 bits of its own.
pub fn sha256(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_says_what_it_is_for_and_never_shows_itself_in_a_log() {
        let secret = Secret::new(SecretKind::Agent);
        assert_eq!(SecretKind::of(secret.reveal()), Some(SecretKind::Agent));
        assert_eq!(secret.reveal().len(), "bt_a_".len() + 43);
        assert!(!format!("{secret:?}").contains(&secret.reveal()[5..]));
        assert_ne!(secret.reveal(), Secret::new(SecretKind::Agent).reveal());
    }
}
