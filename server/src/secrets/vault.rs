//! Sealing: XChaCha20-Poly1305 with a key kept in a file, so that a copy of the database alone names nobody.
//!
//! A sealed value is `1 ‖ key id (8) ‖ nonce (24) ‖ ciphertext`. What it belongs to (table, column, row) is
//! authenticated with it, so a value moved to another row does not open.

use std::path::Path;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};

use super::{MessageSeal, SecretsError, files};

const FORMAT: u8 = 1;
const KEY_ID: usize = 8;
const NONCE: usize = 24;

struct SealingKey {
    id: [u8; KEY_ID],
    cipher: XChaCha20Poly1305,
    lookup: [u8; 32],
    messages: [u8; 32],
}

/// Seals and opens. The first key of the file seals; every key of the file opens.
pub struct Vault {
    keys: Vec<SealingKey>,
}

impl Vault {
    /// Reads the key file (one 32-byte hexadecimal key a line, the newest first), or makes it.
    pub(super) fn load(path: &Path) -> Result<Self, SecretsError> {
        let text = files::secret(path, || format!("{}\n", hex::encode(rand::random::<[u8; 32]>())))?;
        let damaged = |what| SecretsError::Damaged { path: path.display().to_string(), what };
        let mut keys = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let bytes = hex::decode(line).map_err(|_| damaged("not hexadecimal"))?;
            let key = <[u8; 32]>::try_from(bytes).map_err(|_| damaged("not 32 bytes"))?;
            keys.push(SealingKey {
                id: derive(&key, "benchtrail.vault.id")[..KEY_ID].try_into().expect("eight of 32 bytes"),
                cipher: XChaCha20Poly1305::new(Key::from_slice(&key)),
                lookup: derive(&key, "benchtrail.vault.lookup"),
                messages: derive(&key, "benchtrail.vault.messages"),
            });
        }
        if keys.is_empty() {
            return Err(damaged("empty"));
        }
        Ok(Self { keys })
    }

    /// Seals a text for one place, for example `users.email/<id>`.
    pub fn seal(&self, place: &str, text: &str) -> Vec<u8> {
        let key = &self.keys[0];
        let nonce: [u8; NONCE] = rand::random();
        let payload = Payload { msg: text.as_bytes(), aad: place.as_bytes() };
        let sealed = key
            .cipher
            .encrypt(XNonce::from_slice(&nonce), payload)
            .expect("a text in memory is far below the cipher's limit of 256 GiB");
        let mut out = Vec::with_capacity(1 + KEY_ID + NONCE + sealed.len());
        out.push(FORMAT);
        out.extend_from_slice(&key.id);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&sealed);
        out
    }

    /// Opens what [`Vault::seal`] sealed for the same place.
    ///
    /// # Errors
    /// Another format, a key that is not in the file, another place, or a value that was altered.
    pub fn open(&self, place: &str, sealed: &[u8]) -> Result<String, SecretsError> {
        let (&format, rest) = sealed.split_first().ok_or(SecretsError::Sealed("it is empty"))?;
        if format != FORMAT || rest.len() < KEY_ID + NONCE {
            return Err(SecretsError::Sealed("its format is unknown to this version"));
        }
        let (id, rest) = rest.split_at(KEY_ID);
        let (nonce, ciphertext) = rest.split_at(NONCE);
        let key =
            self.keys.iter().find(|key| key.id == id).ok_or(SecretsError::Sealed(
                "its key is not in vault.key; add the older key as another line",
            ))?;
        let payload = Payload { msg: ciphertext, aad: place.as_bytes() };
        let text = key
            .cipher
            .decrypt(XNonce::from_slice(nonce), payload)
            .map_err(|_| SecretsError::Sealed("it was altered, or belongs elsewhere"))?;
        String::from_utf8(text).map_err(|_| SecretsError::Sealed("it is not text"))
    }

    /// What an e-mail is looked up by: the same for every spelling of its case, useless without the key.
    /// One for each key of the file, the newest first.
    pub fn lookups(&self, email: &str) -> Vec<Vec<u8>> {
        let email = email.trim().to_lowercase();
        self.keys.iter().map(|key| derive(&key.lookup, &email).to_vec()).collect()
    }
}

impl Vault {
    /// What messages among control planes are sealed with.
    pub fn message_seal(&self) -> MessageSeal {
        MessageSeal::new(self.keys.iter().map(|key| key.messages).collect())
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vault({} keys)", self.keys.len())
    }
}

/// HMAC-SHA256.
fn derive(key: &[u8; 32], text: &str) -> [u8; 32] {
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        block.iter_mut().zip(key).for_each(|(b, k)| *b ^= k);
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text.as_bytes()).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault() -> (tempfile::TempDir, Vault) {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::load(&dir.path().join("vault.key")).unwrap();
        (dir, vault)
    }

    #[test]
    fn a_sealed_value_opens_in_its_own_place_only() {
        let (_dir, vault) = vault();
        let sealed = vault.seal("users.email/1", "ada@example.org");
        assert_eq!(vault.open("users.email/1", &sealed).unwrap(), "ada@example.org");
        assert!(vault.open("users.email/2", &sealed).is_err());
    }

    #[test]
    fn an_altered_value_does_not_open() {
        let (_dir, vault) = vault();
        let sealed = vault.seal("p", "text");
        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert!(vault.open("p", &altered).is_err(), "byte {at}");
        }
        assert!(vault.open("p", &[]).is_err());
    }

    #[test]
    fn a_new_key_opens_what_the_old_one_sealed() {
        let (dir, old) = vault();
        let sealed = old.seal("p", "text");
        let path = dir.path().join("vault.key");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{}\n{text}", "ab".repeat(32))).unwrap();
        let new = Vault::load(&path).unwrap();
        assert_eq!(new.open("p", &sealed).unwrap(), "text");
        assert!(old.open("p", &new.seal("p", "text")).is_err());
    }

    #[test]
    fn an_email_is_found_in_any_case_and_hides_itself() {
        let (_dir, vault) = vault();
        assert_eq!(vault.lookups("Ada@Example.org "), vault.lookups("ada@example.org"));
        assert_ne!(vault.lookups("ada@example.org"), vault.lookups("bob@example.org"));
    }

    #[test]
    fn the_keyed_hash_is_hmac_sha256() {
        // RFC 4231 test case 2 with its key padded to 32 bytes with zeros, which HMAC does by itself.
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        assert_eq!(
            hex::encode(derive(&key, "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
