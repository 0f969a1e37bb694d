//! Keys and sealed values: what the control plane signs with, and how names and e-mails are kept.

mod files;
mod message_seal;
mod tokens;
mod vault;

use std::path::Path;
use std::sync::Arc;

use ed25519_dalek::{Signer, SigningKey};

pub use files::write_private;
pub use message_seal::MessageSeal;
pub use tokens::{Hidden, Secret, SecretKind, sha256};
pub use vault::Vault;

/// What can go wrong with keys and sealed values.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// A key file could not be read or made.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A key file holds something else.
    #[error(
        "{path} does not hold a key ({what}): restore it from a backup, or move it away to make a new one"
    )]
    Damaged {
        /// Which file.
        path: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A sealed value cannot be opened.
    #[error("a sealed value cannot be opened: {0}")]
    Sealed(&'static str),
}

/// The control plane's keys. Cheap to clone.
#[derive(Clone)]
pub struct Keys {
    signing: Arc<SigningKey>,
    vault: Arc<Vault>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys")
            .field("job_signing_key", &self.job_signing_public_key())
            .finish_non_exhaustive()
    }
}

impl Keys {
    /// Reads the keys in `dir` (`job-signing.key`, `vault.key`, mode 0600), or makes the ones that are missing.
    ///
    /// # Errors
    /// A file cannot be read or written, or holds no key.
    pub fn load(dir: &Path) -> Result<Self, SecretsError> {
        let path = dir.join("job-signing.key");
        let text = files::secret(&path, || hex::encode(rand::random::<[u8; 32]>()))?;
        let damaged = |what| SecretsError::Damaged { path: path.display().to_string(), what };
        let bytes = hex::decode(text.trim()).map_err(|_| damaged("not hexadecimal"))?;
        let seed = <[u8; 32]>::try_from(bytes).map_err(|_| damaged("not 32 bytes"))?;
        let vault = Vault::load(&dir.join("vault.key"))?;
        Ok(Self { signing: Arc::new(SigningKey::from_bytes(&seed)), vault: Arc::new(vault) })
    }

    /// The public key that agents pin when they enrol, hexadecimal.
    pub fn job_signing_public_key(&self) -> String {
        hex::encode(self.signing.verifying_key().as_bytes())
    }

    /// Signs the exact bytes of an assigned job: Ed25519, hexadecimal.
    pub fn sign_job(&self, payload: &str) -> String {
        hex::encode(self.signing.sign(payload.as_bytes()).to_bytes())
    }

    /// Seals and opens names, e-mails and stored replies.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::{Signature, Verifier, VerifyingKey};

    #[test]
    fn a_job_signed_before_a_restart_verifies_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let signature = Keys::load(dir.path()).unwrap().sign_job("{\"job\":1}");
        let public = Keys::load(dir.path()).unwrap().job_signing_public_key();
        let key = VerifyingKey::from_bytes(&hex::decode(public).unwrap().try_into().unwrap()).unwrap();
        let signature = Signature::from_slice(&hex::decode(signature).unwrap()).unwrap();
        assert!(key.verify(b"{\"job\":1}", &signature).is_ok());
        assert!(key.verify(b"{\"job\":2}", &signature).is_err());
    }

    #[test]
    fn keys_are_closed_to_others() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        Keys::load(dir.path()).unwrap();
        for name in ["job-signing.key", "vault.key"] {
            let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_damaged_key_file_is_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("job-signing.key"), "not a key").unwrap();
        let error = Keys::load(dir.path()).unwrap_err().to_string();
        assert!(error.contains("job-signing.key"), "{error}");
        assert_eq!(std::fs::read_to_string(dir.path().join("job-signing.key")).unwrap(), "not a key");
    }
}
